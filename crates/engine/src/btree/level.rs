//! Levelling: a leaf without room gives entries to a neighbour that has some.
//!
//! So leaves are split only where their neighbours are full, too (B*-trees: Knuth, volume 3, section 6.2.4): under inserts at random leaves are fuller than with splits alone, and what inserts in one place leave
//! behind half full is filled. It is one mini-transaction without undo, needs no new page, and moves one 32nd of a leaf at least: so an insert moves at most as much as it
//! brings, on average, as with splits.

use super::moves::Moves;
use super::split::RoomFor;
use super::tree::BTree;
use crate::Result;
use crate::pool::MiniTransaction;
use pagefold_format::index::leaf_view::FULL;
use pagefold_types::Rid;

/// A neighbour has room if it is so much emptier.
const WORTHWHILE: usize = FULL / 16;

impl BTree<'_> {
    /// Levels the leaf that this entry belongs to with the emptier of its neighbours. True: there is another chance that the entry fits; false: neither neighbour has room.
    pub(super) fn level(&self, search: &[u8], key: &[u8], rid: Rid, room_for: RoomFor) -> Result<bool> {
        let leaves = match self.neighbours(search, 1) {
            // One that is damaged has no room: the leaf is split.
            Err(error) if error.is_damage() => return Ok(false),
            found => found?,
        };
        let Some(leaves) = leaves else { return Ok(false) };
        let own = leaves.own;
        let view = leaves.view(own);
        if self.has_room(&view, key, rid, room_for).map_err(|e| self.damaged(leaves.leaves[own].number(), e))? {
            return Ok(true);
        }
        let mut others: Vec<(usize, usize)> = [own.wrapping_sub(1), own + 1]
            .into_iter()
            .filter(|i| *i < leaves.leaves.len())
            .map(|i| (leaves.view(i).fill(), i))
            .filter(|(fill, _)| fill + WORTHWHILE <= view.fill())
            .collect();
        others.sort_unstable();
        for (fill, other) in others {
            let mut moves = Moves::new(&leaves);
            if moves.shift(own, other, (view.fill() - fill) / 2).is_none() || !moves.separate(&leaves, None) {
                continue;
            }
            let mut mtr = MiniTransaction::begin(self.manager);
            leaves.make(&mut mtr, &moves)?;
            mtr.commit()?;
            return Ok(true);
        }
        Ok(false)
    }
}
