//! What happens to a page between disk and frame: verification, and for folded leaves expansion and folding.
//!
//! Invariant: whatever is in a frame has passed the checksum, the lost-write check and its type's structural check.

use crate::Result;
use crate::data_set::DataSet;
use crate::frames::add;
use pagefold_format::data::DataPage;
use pagefold_format::index::{check, folded};
use pagefold_format::page::{self, PageType};

/// Checks a page as it was read. True when it belongs into the data set's second pool.
pub(super) fn verify(data_set: &DataSet, number: u32, disk: &[u8]) -> Result<bool> {
    let found = page::verify(disk, &data_set.identity(number)).map_err(|e| data_set.corrupt(number, e))?;
    let mut ahead = data_set.space().word(number).page_ahead(page::write_counter(disk));
    if ahead > 0 && data_set.is_recovering() {
        data_set.space().see_write(number, page::write_counter(disk));
        ahead = 0;
    }
    if ahead != 0 {
        let counter = page::write_counter(disk);
        return Err(data_set
            .corrupt(number, format!("write counter {counter} is {ahead:+} from what the space map has: a lost or misplaced write")));
    }
    if (found == PageType::FoldedLeaf) != data_set.is_folded()
        && matches!(found, PageType::FoldedLeaf | PageType::Leaf | PageType::PrefixLeaf)
    {
        return Err(data_set.corrupt(number, format!("a page of type {found:?} in this index")));
    }
    Ok(data_set.is_folded() && found != PageType::FoldedLeaf)
}

/// Brings a verified page into its frame: expanded or copied, structure checked.
pub(super) fn into_frame(data_set: &DataSet, number: u32, disk: &[u8], frame: &mut [u8]) -> Result<()> {
    let fail = |e: pagefold_format::FormatError| data_set.corrupt(number, e);
    if page::page_type(disk) == Some(PageType::FoldedLeaf) {
        add(&data_set.counters.expansions, 1);
        return folded::expand(disk, frame).map_err(fail);
    }
    if disk.len() != frame.len() {
        return Err(data_set.corrupt(number, format!("a page of {} bytes for a frame of {}", disk.len(), frame.len())));
    }
    frame.copy_from_slice(disk);
    match page::page_type(frame) {
        Some(PageType::Data) => DataPage::new(frame).validate().map_err(fail),
        Some(PageType::Leaf | PageType::PrefixLeaf | PageType::NonLeaf) => check::validate(frame).map_err(fail),
        _ => Ok(()),
    }
}

/// Brings a page from its frame into its form on disk, ready but for write counter and checksum.
pub(super) fn from_frame(data_set: &DataSet, number: u32, frame: &[u8], disk: &mut [u8]) -> Result<()> {
    if data_set.is_folded() && page::page_type(frame) == Some(PageType::Leaf) {
        add(&data_set.counters.compressions, 1);
        return folded::fold(frame, disk).map(drop).map_err(|e| data_set.corrupt(number, e));
    }
    if disk.len() != frame.len() {
        return Err(data_set.corrupt(number, format!("a frame of {} bytes for a page of {}", frame.len(), disk.len())));
    }
    disk.copy_from_slice(frame);
    Ok(())
}
