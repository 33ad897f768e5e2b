//! Byte strings in chains of pages: dictionaries and large values.
//!
//! Invariant: the longest a string can be is known from outside, and a chain is followed no further.

use super::table::Table;
use crate::Result;
use crate::data_set::DataSet;
use crate::pool::{By, MiniTransaction};
use pagefold_format::chain::{self, ChainPage};
use pagefold_format::log::Undo;
use pagefold_format::op::PageOp;
use pagefold_format::page::PageType;
use pagefold_format::space_map::CLASS_NO_ROWS;
use std::ops::RangeInclusive;

/// Takes pages for a chain of so many bytes. They are the caller's until a mini-transaction makes them.
pub(super) fn take_pages(data_set: &DataSet, length: usize) -> Result<Vec<u32>> {
    let count = chain::pages_needed(length, data_set.page_bytes()).max(1);
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        match data_set.allocate_page(CLASS_NO_ROWS) {
            Ok(number) => numbers.push(number),
            Err(error) => {
                give_back(data_set, &numbers);
                return Err(error);
            }
        }
    }
    Ok(numbers)
}

/// Pages that were taken and not made are free again.
pub(super) fn give_back(data_set: &DataSet, numbers: &[u32]) {
    numbers.iter().for_each(|number| data_set.give_back(*number));
}

/// Builds the image of page `i` of a chain over these pages.
pub(super) fn build_page(image: &mut [u8], numbers: &[u32], i: usize, page_type: PageType, owner: u32, bytes: &[u8]) {
    let payload = chain::payload_bytes(image.len());
    let part = &bytes[(i * payload).min(bytes.len())..((i + 1) * payload).min(bytes.len())];
    let next = numbers.get(i + 1).copied().unwrap_or(0);
    chain::build(image, numbers[i], page_type, next, i as u32, owner, part);
}

/// Writes a large value into a chain of new pages, each with a mini-transaction of its own; returns the first.
pub(super) fn write_large(table: &Table, by: By<'_>, data_set: &DataSet, owner: u32, bytes: &[u8]) -> Result<u32> {
    let numbers = take_pages(data_set, bytes.len())?;
    let mut image = vec![0; data_set.page_bytes()];
    for (i, number) in numbers.iter().enumerate() {
        if let Err(error) = table.manager().prepare_log() {
            give_back(data_set, &numbers[i..]);
            return Err(error);
        }
        build_page(&mut image, &numbers, i, PageType::LargeValue, owner, bytes);
        let mut mtr = MiniTransaction::begin(table.manager());
        let handle = mtr.create_at(data_set, *number, CLASS_NO_ROWS, true).inspect_err(|_| give_back(data_set, &numbers[i..]))?;
        mtr.apply(handle, PageOp::Image(&image))?;
        mtr.set_undo(by, Undo::AllocatedPage { file_id: data_set.file_id(), page: *number });
        mtr.commit()?;
    }
    Ok(numbers[0])
}

/// Reads a chain; exactly `length` bytes.
pub(super) fn read_chain(table: &Table, data_set: &DataSet, page_type: PageType, first: u32, owner: u32, length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    walk_chain(table, data_set, page_type, first, owner, length..=length, |_, payload| bytes.extend_from_slice(payload))?;
    Ok(bytes)
}

/// Visits the pages of a chain of so many bytes.
pub(super) fn walk_chain(
    table: &Table,
    data_set: &DataSet,
    page_type: PageType,
    first: u32,
    owner: u32,
    lengths: RangeInclusive<usize>,
    mut visit: impl FnMut(u32, &[u8]),
) -> Result<()> {
    let mut seen = 0;
    let mut number = first;
    let pages = chain::pages_needed(*lengths.end(), data_set.page_bytes()).max(1);
    for sequence in 0..pages as u32 {
        if sequence > 0 && number == 0 {
            break;
        }
        let page = table.manager().shared(data_set, number, crate::pool::Access::Scan)?;
        let part = ChainPage::parse(&page, page_type).map_err(|e| data_set.corrupt(number, e))?;
        if part.sequence != sequence || part.owner != owner {
            return Err(data_set.corrupt(number, format!("part {} of {}, expected part {sequence} of {owner}", part.sequence, part.owner)));
        }
        seen += part.payload.len();
        visit(number, part.payload);
        number = part.next;
    }
    if !lengths.contains(&seen) || number != 0 {
        return Err(data_set.corrupt(first, format!("a chain of {seen} bytes where {lengths:?} are expected")));
    }
    Ok(())
}
