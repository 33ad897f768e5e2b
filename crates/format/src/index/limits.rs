//! Lengths and cuts that the B+tree needs to know.

use super::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};
use super::leaf::{Leaf, Place};
use pagefold_codec::index::cost::{Neighbour, count_cost, joint_cost, next_rid_cost};
use pagefold_codec::index::layout::{MAP_BYTES, RID_BYTES, common_prefix};
use pagefold_types::Rid;

/// Length of the shortest prefix of the right side's `key || RID` that is greater than the left side's: the separator between two leaves. Left must be less than right.
#[must_use]
pub fn separator_len(left_key: &[u8], left_rid: Rid, right_key: &[u8], right_rid: Rid) -> usize {
    let shared = common_prefix(left_key, right_key);
    if shared < right_key.len() { shared + 1 } else { right_key.len() + common_prefix(&left_rid.to_bytes(), &right_rid.to_bytes()) + 1 }
}

/// Writes that separator to `out`.
pub fn put_separator(left_key: &[u8], left_rid: Rid, right_key: &[u8], right_rid: Rid, out: &mut Vec<u8>) {
    let length = separator_len(left_key, left_rid, right_key, right_rid);
    out.clear();
    out.extend_from_slice(&right_key[..length.min(right_key.len())]);
    out.extend_from_slice(&right_rid.to_bytes()[..(length - length.min(right_key.len())).min(RID_BYTES)]);
}

/// Where to cut a leaf in two so that about `part` of `of` parts of what it is short of, bytes in memory or bytes of its fold, lie before the cut. Between entries if that is not far
/// off, else inside a RID list. `None` when there are not two RIDs.
#[must_use]
pub fn cut(leaf: &Leaf<'_>, part: usize, of: usize) -> Option<Place> {
    let in_memory = leaf.page.len() - leaf.free_bytes();
    let by_fold = leaf.folds() && leaf.folded_bytes() * leaf.page.len() > in_memory * FOLDED_PAGE_BYTES;
    let total = if by_fold { leaf.folded_bytes() } else { in_memory }.saturating_sub(LEAF_HEADER_BYTES);
    let shape = leaf.shape;
    let mut before = Neighbour::NONE;
    let mut sum: usize = 0;
    let wanted = total * part / of.max(1);
    // Nearest to what is wanted: any place, and places between entries.
    let mut any: Option<(usize, Place)> = None;
    let mut between: Option<(usize, Place)> = None;
    for (i, entry) in leaf.entries().enumerate() {
        let mut before_rid = 0;
        for r in 0..entry.rid_count() {
            let place = Place { entry: i, rid: r };
            let rid = entry.rid(r);
            if sum > 0 {
                let off = sum.abs_diff(wanted);
                if any.is_none_or(|a| off < a.0) {
                    any = Some((off, place));
                }
                if r == 0 && between.is_none_or(|b| off < b.0) {
                    between = Some((off, place));
                }
            }
            sum += match (by_fold, r) {
                (false, 0) => shape.entry_bytes(entry.key.len(), 1) + MAP_BYTES,
                (false, _) => RID_BYTES,
                (true, 0) => joint_cost(shape, before, entry.key, rid) + count_cost(shape, entry.rid_count()),
                (true, _) => next_rid_cost(shape, before_rid, rid),
            };
            before_rid = rid;
        }
        before = Neighbour::of(&entry);
    }
    between.filter(|b| b.0 <= total / 8).or(any).map(|c| c.1)
}

/// Is a leaf of this kind and size possible?
#[must_use]
pub fn is_leaf_size(kind: LeafKind, leaf_bytes: usize) -> bool {
    crate::page::is_page_size(leaf_bytes) && (!kind.fold || matches!(leaf_bytes, 8192 | 16384 | 32768))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(left: (&[u8], u64), right: (&[u8], u64)) -> Vec<u8> {
        let rid = |n| Rid::from_u64(n).unwrap();
        let mut out = vec![9; 3];
        put_separator(left.0, rid(left.1), right.0, rid(right.1), &mut out);
        let whole = |side: (&[u8], u64)| [side.0, &rid(side.1).to_bytes()].concat();
        assert!(whole(left) < out && out <= whole(right), "{left:?} {right:?} {out:?}");
        out
    }

    #[test]
    fn separators_are_shortest() {
        assert_eq!(separator((b"smith", 1), (b"stewart", 0)), b"st");
        assert_eq!(separator((b"smith", 1), (b"smiths", 0)), b"smiths");
        assert_eq!(separator((b"smith", 1), (b"smith", 2)), b"smith\0\0\0\0\0\0\x02");
        assert_eq!(separator((b"smith", 0x10_00_00_00_00_00), (b"smith", 0x20_00_00_00_00_00)), b"smith\0\x20");
        assert_eq!(separator((b"", 1), (b"a", 2)), b"a");
    }
}
