//! What an entry takes in a folded body, exactly.
//!
//! An entry's cost depends on its left neighbour's key and last RID and on nothing else of the leaf, so an insert or a removal changes the size of the fold by what can be
//! computed from two neighbours: the encoder never runs to find out whether something fits.
//!
//! Invariant: taking a RID or an entry out never makes the body larger (so a removal, or half of a split page, always fits). Prefixes: what the next key no longer shares with its
//! left neighbour was stored in the dropped entry. RIDs: `rid_code` and `varint`.

use super::layout::{Entry, RID_BYTES, Shape, common_prefix, rid_at};
use super::{linear_rid, rid_code, varint};

/// Nibbles from 15 up continue in a number after the token.
pub(crate) const ESCAPE: usize = 15;

/// What the next entry needs to know of the entry before it.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its last RID, packed.
    pub last_rid: u64,
}

impl<'a> Neighbour<'a> {
    /// The left neighbour of the first entry.
    pub const NONE: Neighbour<'static> = Neighbour { key: &[], last_rid: 0 };

    /// `entry` as a left neighbour.
    #[inline]
    #[must_use]
    pub fn of(entry: &Entry<'a>) -> Neighbour<'a> {
        Neighbour { key: entry.key, last_rid: entry.last_rid() }
    }
}

#[inline]
pub(crate) fn escape_len(n: usize) -> usize {
    if n < ESCAPE { 0 } else { varint::len((n - ESCAPE) as u64) }
}

/// Bytes of token, escapes and suffix of a key after `before`; without the count of RIDs.
#[inline]
#[must_use]
pub fn key_cost(shape: Shape, before: &[u8], key: &[u8]) -> usize {
    let shared = common_prefix(before, key);
    let add = key.len() - shared;
    if shape.fixed_key_bytes == 0 {
        // Keys of unequal length differ within both (prefix-free), so the token tells how many bytes of the key before go.
        2 + escape_len(before.len() - shared) + escape_len(add) + add
    } else {
        1 + escape_len(add) + add
    }
}

/// Bytes that the number of RIDs takes beside the token.
#[inline]
#[must_use]
pub fn count_cost(shape: Shape, rids: usize) -> usize {
    if shape.single {
        0
    } else if shape.fixed_key_bytes == 0 {
        escape_len(rids.saturating_sub(1))
    } else {
        varint::len(rids.saturating_sub(1) as u64)
    }
}

/// Bytes of an entry's first RID after `before` (both packed).
#[inline]
#[must_use]
pub fn first_rid_cost(shape: Shape, before: u64, rid: u64) -> usize {
    rid_code::code_len(linear_rid(before, shape.slot_bits), linear_rid(rid, shape.slot_bits))
}

/// Bytes of a further RID of the same entry; `before < rid`, both packed.
#[inline]
#[must_use]
pub fn next_rid_cost(shape: Shape, before: u64, rid: u64) -> usize {
    let gap = linear_rid(rid, shape.slot_bits).wrapping_sub(linear_rid(before, shape.slot_bits)).wrapping_sub(1);
    // Out of order (a damaged leaf that nobody has checked) it still is a number.
    varint::len(gap & varint::MAX)
}

/// Bytes of an entry's RIDs without the first.
#[must_use]
pub fn more_rids_cost(shape: Shape, rids: &[u8]) -> usize {
    let mut before = rid_at(rids, 0);
    let mut sum = 0;
    for at in (RID_BYTES..rids.len()).step_by(RID_BYTES) {
        let rid = rid_at(rids, at);
        sum += next_rid_cost(shape, before, rid);
        before = rid;
    }
    sum
}

/// The part of an entry's cost that depends on its left neighbour.
#[inline]
#[must_use]
pub fn joint_cost(shape: Shape, before: Neighbour<'_>, key: &[u8], first_rid: u64) -> usize {
    key_cost(shape, before.key, key) + first_rid_cost(shape, before.last_rid, first_rid)
}

/// All bytes of an entry in a folded body.
#[must_use]
pub fn entry_cost(shape: Shape, before: Neighbour<'_>, entry: &Entry<'_>) -> usize {
    joint_cost(shape, before, entry.key, entry.rid(0)) + count_cost(shape, entry.rid_count()) + more_rids_cost(shape, entry.rids)
}
