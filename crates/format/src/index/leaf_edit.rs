//! The changes of a leaf, byte by byte. Each checks first and then cannot fail: on an error the page is as it was.
//!
//! Invariant: see [`super::leaf`]: entries stay in key order without gaps, free bytes are zero, common prefix, heads and folded size are exact.

use super::header::{self, LEAF_HEADER_BYTES};
use super::leaf::{Leaf, Place};
use super::plan::{InsertPlan, body_cost, check_key};
use crate::FormatError;
use crate::page::{self, get_u16, put_u16};
use pagefold_codec::index::layout::{Entry, MAP_BYTES, RID_BYTES, Shape, common_prefix, key_head, put_map};
use pagefold_codec::index::slot_bits_for;
use pagefold_types::Rid;

pub(super) fn insert(page: &mut [u8], key: &[u8], rid: Rid) -> Result<(), FormatError> {
    let plan = Leaf::new(page).plan_insert(key, rid)?;
    insert_planned(page, &plan, key, rid)
}

/// As [`insert`], which has been worked out for the leaf as it is.
pub(super) fn insert_planned(page: &mut [u8], plan: &InsertPlan, key: &[u8], rid: Rid) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    if !plan.fits(&leaf) {
        return Err(no_room());
    }
    let (shape, n, i) = (leaf.shape, leaf.entries, plan.place.entry);
    if plan.new_entry {
        let at = if i < n { leaf.offset(i) } else { leaf.low_end() };
        let bytes = shape.entry_bytes(key.len(), 1);
        open_gap(page, at, bytes)?;
        let mut out = at;
        if shape.fixed_key_bytes == 0 {
            put_u16(page, out, key.len() as u16);
            out += 2;
        }
        if !shape.single {
            put_u16(page, out, 1);
            out += 2;
        }
        page[out..out + key.len()].copy_from_slice(key);
        out += key.len();
        page[out..out + RID_BYTES].copy_from_slice(&rid.to_bytes());

        // The map entries behind move down by one and their entries up by the gap.
        let end = page.len();
        page.copy_within(end - MAP_BYTES * n..end - MAP_BYTES * i, end - MAP_BYTES * (n + 1));
        page::set_count(page, n as u16 + 1);
        shift_offsets(page, i + 1, n + 1, bytes as u16);
        let prefix = header::common_prefix(page);
        put_map(page, i, at, key_head(key, prefix)).map_err(fold)?;
        if i == 0 || i == n {
            renew_prefix(page, i..i + 1);
        }
    } else {
        let entry = leaf.offset(i);
        let key_bytes = leaf.entry(i).key.len();
        let at = entry + shape.entry_bytes(key_bytes, plan.place.rid);
        let count_at = entry + shape.prefix_bytes() - 2;
        open_gap(page, at, RID_BYTES)?;
        page[at..at + RID_BYTES].copy_from_slice(&rid.to_bytes());
        let count = get_u16(page, count_at);
        put_u16(page, count_at, count + 1);
        shift_offsets(page, i + 1, n, RID_BYTES as u16);
    }
    header::set_rids(page, header::rids(page) + 1);
    header::set_slot_bits(page, plan.slot_bits);
    header::set_folded_bytes(page, plan.folded_bytes);
    Ok(())
}

pub(super) fn remove(page: &mut [u8], key: &[u8], rid: Rid) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    let (place, folded) = leaf.plan_remove(key, rid)?;
    let (shape, n, i) = (leaf.shape, leaf.entries, place.entry);
    let entry = leaf.offset(i);
    let rids = leaf.entry(i).rid_count();
    if leaf.rid_count() == 0 {
        return Err(damaged());
    }
    if rids <= 1 {
        let bytes = shape.entry_bytes(key.len(), 1);
        close_gap(page, entry, bytes)?;
        let end = page.len();
        page.copy_within(end - MAP_BYTES * n..end - MAP_BYTES * (i + 1), end - MAP_BYTES * (n - 1));
        page[end - MAP_BYTES * n..end - MAP_BYTES * (n - 1)].fill(0);
        page::set_count(page, n as u16 - 1);
        shift_offsets(page, i, n - 1, (bytes as u16).wrapping_neg());
        if i == 0 || i == n - 1 {
            renew_prefix(page, 0..0);
        }
    } else {
        let at = entry + shape.entry_bytes(key.len(), place.rid);
        let count_at = entry + shape.prefix_bytes() - 2;
        close_gap(page, at, RID_BYTES)?;
        put_u16(page, count_at, rids as u16 - 1);
        shift_offsets(page, i + 1, n, (RID_BYTES as u16).wrapping_neg());
    }
    header::set_rids(page, header::rids(page) - 1);
    header::set_folded_bytes(page, folded);
    Ok(())
}

/// Keeps what lies before `cut`.
pub(super) fn keep_first(page: &mut [u8], cut: Place) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    check_cut(&leaf, cut)?;
    let shape = leaf.shape;
    let (low_end, kept) = if cut.rid == 0 {
        (if cut.entry < leaf.entries { leaf.offset(cut.entry) } else { leaf.low_end() }, cut.entry)
    } else {
        (leaf.offset(cut.entry) + shape.entry_bytes(leaf.entry(cut.entry).key.len(), cut.rid), cut.entry + 1)
    };
    let old = leaf.entries;
    let end = page.len();
    if low_end < LEAF_HEADER_BYTES || low_end > end - MAP_BYTES * old {
        return Err(damaged());
    }
    if cut.rid > 0 {
        let count_at = Leaf::new(page).offset(cut.entry) + shape.prefix_bytes() - 2;
        put_u16(page, count_at, cut.rid as u16);
    }
    page[low_end..end - MAP_BYTES * kept].fill(0);
    page::set_low_end(page, low_end as u16);
    page::set_count(page, kept as u16);
    renew_prefix(page, 0..0);
    recount(page);
    Ok(())
}

/// Keeps what lies at and behind `cut`.
pub(super) fn keep_from(page: &mut [u8], cut: Place) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    check_cut(&leaf, cut)?;
    let (count, run) = leaf.run(cut, Place { entry: leaf.entries, rid: 0 });
    let mut image = empty_like(page, leaf.kind());
    append(&mut image, count, &run)?;
    page.copy_from_slice(&image);
    Ok(())
}

/// The leaf without entries; what else its header knows stays.
fn empty_like(page: &[u8], kind: header::LeafKind) -> Vec<u8> {
    let mut empty = vec![0; page.len()];
    header::format_leaf(&mut empty, page::page_number(page), kind, Leaf::new(page).next());
    page::set_lsn(&mut empty, page::lsn(page));
    page::set_write_counter(&mut empty, page::write_counter(page));
    empty
}

/// Appends entries that all order after those there are. When the first has the key of the last entry, the two RID lists become one.
pub(super) fn append(page: &mut [u8], count: usize, run: &[u8]) -> Result<(), FormatError> {
    let checked = RunCheck::of(&Leaf::new(page), count, run)?;
    put_run(page, run, checked)
}

/// Puts entries that all order before those there are in front of them. When the last has the key of the first entry, the two RID lists become one.
pub(super) fn prepend(page: &mut [u8], count: usize, run: &[u8]) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    let (own_count, own) = leaf.run(Place::default(), Place { entry: leaf.entries, rid: 0 });
    let mut image = empty_like(page, leaf.kind());
    append(&mut image, count, run)?;
    append(&mut image, own_count, &own)?;
    page.copy_from_slice(&image);
    Ok(())
}

/// What the check of a run found out.
struct RunCheck {
    count: usize,
    rids: usize,
    /// The run's first entry continues the RID list of the page's last.
    joins: bool,
    slot_bits: u8,
}

impl RunCheck {
    fn of(leaf: &Leaf<'_>, count: usize, run: &[u8]) -> Result<RunCheck, FormatError> {
        let shape = leaf.shape;
        let mut at = 0;
        let mut rids = 0;
        let mut max_slot = 0;
        let mut joins = false;
        let mut before = leaf.entries.checked_sub(1).map(|i| leaf.entry(i));
        let mut entries = Vec::new();
        for i in 0..count {
            let entry = Entry::read(run, at, shape).ok_or_else(|| FormatError::new("append: an entry is cut off"))?;
            check_key(shape, entry.key)?;
            at += shape.entry_bytes(entry.key.len(), entry.rid_count());
            let mut last = None;
            for r in 0..entry.rid_count() {
                let rid = entry.rid(r);
                if last.is_some_and(|l| l >= rid) {
                    return Err(FormatError::new("append: RIDs do not ascend"));
                }
                last = Some(rid);
                max_slot = max_slot.max((rid & 0xFFF) as u16);
            }
            if let Some(b) = before {
                match b.key.cmp(entry.key) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal if b.last_rid() < entry.rid(0) && shape.single => {}
                    std::cmp::Ordering::Equal if b.last_rid() < entry.rid(0) && i == 0 && b.rid_count() > 0 => joins = true,
                    _ => return Err(FormatError::new("append: entries do not ascend")),
                }
            }
            rids += entry.rid_count();
            before = Some(entry);
            if leaf.folds() {
                entries.push(entry);
            }
        }
        if at != run.len() {
            return Err(FormatError::new("append: bytes after the last entry"));
        }
        let mut bytes = run.len() + MAP_BYTES * count;
        if joins {
            bytes -= entry_overhead(shape, entries_key_bytes(leaf));
        }
        let rids_before = if joins { leaf.entry(leaf.entries - 1).rid_count() } else { 0 };
        if bytes > leaf.free_bytes() || rids_before + rids > usize::from(u16::MAX) {
            return Err(no_room());
        }
        let slot_bits = if leaf.folds() { shape.slot_bits.max(slot_bits_for(max_slot)) } else { shape.slot_bits };
        if leaf.folds() {
            let shape = Shape { slot_bits, ..shape };
            let joined: Vec<u8>;
            let mut kept = leaf.entries;
            if joins {
                kept -= 1;
                let old = leaf.entry(kept);
                joined = [old.rids, entries[0].rids].concat();
                entries[0] = Entry { key: old.key, rids: &joined };
            }
            let all = (0..kept).map(|i| leaf.entry(i)).chain(entries.iter().copied());
            if LEAF_HEADER_BYTES + body_cost(shape, all) > header::FOLDED_PAGE_BYTES {
                return Err(no_room());
            }
        }
        Ok(RunCheck { count, rids, joins, slot_bits })
    }
}

fn entry_overhead(shape: Shape, key_bytes: usize) -> usize {
    shape.entry_bytes(key_bytes, 0) + MAP_BYTES
}

fn entries_key_bytes(leaf: &Leaf<'_>) -> usize {
    leaf.entries.checked_sub(1).map_or(0, |i| leaf.entry(i).key.len())
}

/// Copies a checked run behind the entries there are.
fn put_run(page: &mut [u8], run: &[u8], checked: RunCheck) -> Result<(), FormatError> {
    let leaf = Leaf::new(page);
    let (shape, n, low_end) = (leaf.shape, leaf.entries, leaf.low_end());
    let prefix = leaf.prefix;
    let (mut from, mut out, mut i) = (0, low_end, n);
    if checked.joins {
        let old = leaf.entry(n - 1);
        let count_at = leaf.offset(n - 1) + shape.prefix_bytes() - 2;
        let count = old.rid_count();
        let more = Entry::read(run, 0, shape).ok_or_else(damaged)?;
        page[out..out + more.rids.len()].copy_from_slice(more.rids);
        put_u16(page, count_at, (count + more.rid_count()) as u16);
        from = shape.entry_bytes(more.key.len(), more.rid_count());
        out += more.rids.len();
    }
    let added = checked.count - usize::from(checked.joins);
    page[out..out + run.len() - from].copy_from_slice(&run[from..]);
    let end = out + run.len() - from;
    while out < end {
        let entry = Entry::read(page, out, shape).ok_or_else(damaged)?;
        let (head, bytes) = (key_head(entry.key, prefix), shape.entry_bytes(entry.key.len(), entry.rid_count()));
        put_map(page, i, out, head).map_err(fold)?;
        out += bytes;
        i += 1;
    }
    page::set_low_end(page, end as u16);
    page::set_count(page, (n + added) as u16);
    header::set_slot_bits(page, checked.slot_bits);
    renew_prefix(page, n..n + added);
    let rids = header::rids(page) + checked.rids;
    header::set_rids(page, rids);
    recount(page);
    Ok(())
}

fn check_cut(leaf: &Leaf<'_>, cut: Place) -> Result<(), FormatError> {
    if cut.entry > leaf.entries || (cut.rid > 0 && cut.rid >= leaf.entry(cut.entry).rid_count()) {
        return Err(FormatError::new("cut outside the leaf"));
    }
    Ok(())
}

/// Counts RIDs and folded size anew.
fn recount(page: &mut [u8]) {
    let leaf = Leaf::new(page);
    let rids = leaf.entries().map(|e| e.rid_count()).sum();
    let folded = if leaf.folds() { LEAF_HEADER_BYTES + body_cost(leaf.shape, leaf.entries()) } else { 0 };
    header::set_rids(page, rids);
    header::set_folded_bytes(page, folded);
}

/// After the first or last entry changed: finds the common prefix and, when it is another, renews all heads, else those of `fresh`.
fn renew_prefix(page: &mut [u8], fresh: std::ops::Range<usize>) {
    let leaf = Leaf::new(page);
    let n = leaf.entries;
    let prefix = if n == 0 { 0 } else { common_prefix(leaf.entry(0).key, leaf.entry(n - 1).key) };
    let range = if prefix == leaf.prefix { fresh } else { 0..n };
    header::set_common_prefix(page, prefix);
    for i in range {
        let head = key_head(Leaf::new(page).entry(i).key, prefix);
        let at = page.len() - MAP_BYTES * (i + 1) + 2;
        page[at..at + 4].copy_from_slice(&head.to_le_bytes());
    }
}

/// Makes room for `bytes` at `at` in the low area.
fn open_gap(page: &mut [u8], at: usize, bytes: usize) -> Result<(), FormatError> {
    let end = usize::from(page::low_end(page));
    if at < LEAF_HEADER_BYTES || at > end || end + bytes > page.len() {
        return Err(damaged());
    }
    page.copy_within(at..end, at + bytes);
    page::set_low_end(page, (end + bytes) as u16);
    Ok(())
}

/// Takes `bytes` at `at` out of the low area.
fn close_gap(page: &mut [u8], at: usize, bytes: usize) -> Result<(), FormatError> {
    let end = usize::from(page::low_end(page));
    if at < LEAF_HEADER_BYTES || at + bytes > end || end > page.len() {
        return Err(damaged());
    }
    page.copy_within(at + bytes..end, at);
    page[end - bytes..end].fill(0);
    page::set_low_end(page, (end - bytes) as u16);
    Ok(())
}

/// Adds `by` (modulo 2^16) to the offsets of entries `from..to`.
fn shift_offsets(page: &mut [u8], from: usize, to: usize, by: u16) {
    let end = page.len();
    if from >= to {
        return;
    }
    let map = &mut page[end - MAP_BYTES * to..end - MAP_BYTES * from];
    for slot in map.chunks_exact_mut(MAP_BYTES) {
        let offset = u16::from_le_bytes([slot[0], slot[1]]).wrapping_add(by);
        slot[..2].copy_from_slice(&offset.to_le_bytes());
    }
}

fn fold(error: pagefold_codec::index::FoldError) -> FormatError {
    FormatError::new(error.to_string())
}

fn no_room() -> FormatError {
    FormatError::new("the leaf has no room for this")
}

fn damaged() -> FormatError {
    FormatError::new("the leaf is damaged")
}
