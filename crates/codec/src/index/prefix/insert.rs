//! An insert into a block of bit-packed keys, or of one key, without a key put together: codes and RIDs are unpacked, the pair goes among them, and they are planned as they are.
//!
//! Invariants: the plan is the one that [`Plan::new`] makes of the same pairs, as the bits in which keys differ stay what they are; whatever the bytes of the block, numbers ascend, or it is an error.

use super::plan::{Plan, Window, window};
use super::view::Block;
use super::{BlockError, HEAD_BYTES, KeyForm, LINEAR_BITS, PAIRS_MAX, bits, gather, to_linear};
use std::cmp::Ordering;

/// What became of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The plan has the pair, behind so many others.
    At(usize),
    /// The pair is there already.
    Known,
    /// The key, or the block, is not such that this way serves.
    Otherwise,
}

impl Plan {
    /// Plans `block` with a pair more. `own` is the key without the bytes that all keys of the leaf share. The plan keeps its allocations; unless it has the pair then, nothing else is to be done with it.
    ///
    /// # Errors
    /// When codes or RIDs of the block do not ascend.
    pub fn insert(&mut self, block: &Block<'_>, own: &[u8], rid: u64) -> Result<Inserted, BlockError> {
        if block.pairs >= PAIRS_MAX {
            return Ok(Inserted::Otherwise);
        }
        let Some(code) = block.code_of(own) else { return Ok(Inserted::Otherwise) };
        self.coded.clear();
        self.coded.slots = block.slots;
        self.unpack_keys(block)?;
        self.unpack_rids(block)?;
        self.raise_slots(rid & 0xFFF);
        let coded = &mut self.coded;
        let linear = to_linear(rid, coded.slots);
        let (entry, known) = match block.form {
            KeyForm::One => (0, true),
            _ => match coded.codes.binary_search(&code) {
                Ok(entry) => (entry, true),
                Err(entry) => (entry, false),
            },
        };
        let start = coded.start(entry);
        let at = if known {
            match coded.rids(entry).binary_search(&linear) {
                Ok(_) => return Ok(Inserted::Known),
                Err(at) => start + at,
            }
        } else {
            coded.codes.insert(entry, code);
            coded.ends.insert(entry, start as u32);
            start
        };
        coded.linear.insert(at, linear);
        coded.ends[entry..].iter_mut().for_each(|end| *end += 1);
        self.begin(block.frame.fixed_key_bytes != 0, block.key_bytes);
        if block.form.is_packed() {
            self.window = Window { tail: block.tail, bytes: block.window_bytes, mask: block.mask };
        }
        self.settle();
        Ok(Inserted::At(at))
    }

    /// Appends the block that an insert has planned, as it is on the leaf of `block`; returns the head of its first key.
    pub fn encode_inserted(&self, block: &Block<'_>, own: &[u8], at: usize, out: &mut Vec<u8>) -> u32 {
        // Behind the first pair nothing changes the first key; before it, the key may be the same.
        if at > 0 {
            self.put(block.rest, out);
            return block.frame.head;
        }
        self.put(own.get(HEAD_BYTES..).unwrap_or(&[]), out);
        crate::index::layout::key_head(own, 0)
    }

    fn unpack_keys(&mut self, block: &Block<'_>) -> Result<(), BlockError> {
        let coded = &mut self.coded;
        if block.form == KeyForm::One {
            coded.ends.push(block.pairs as u32);
            return Ok(());
        }
        let first = gather::pick(block.first_window(), block.mask);
        let limit = 1u64 << block.mask.count_ones();
        let (mut code, mut descends, mut i) = (first, false, 0);
        coded.codes.push(code);
        let (single, frame) = (block.count_width == 0, block.form == KeyForm::Frame);
        bits::for_each(block.bytes, block.codes, block.code_width, block.entries - 1, |number| {
            let next = number + if frame { first } else { code };
            i += 1;
            descends |= next < code || next >= limit;
            if next != code {
                if single {
                    coded.ends.push(i);
                }
                coded.codes.push(next);
                code = next;
            } else {
                descends |= !single;
            }
        });
        if descends {
            return Err(BlockError("codes do not ascend"));
        }
        if single {
            coded.ends.push(block.entries as u32);
            return Ok(());
        }
        let mut end = 0;
        for i in 0..block.entries {
            end += block.count_of(i);
            coded.ends.push(end as u32);
        }
        if end == block.pairs { Ok(()) } else { Err(BlockError("counts do not add up")) }
    }

    /// Needs the ends.
    fn unpack_rids(&mut self, block: &Block<'_>) -> Result<(), BlockError> {
        let coded = &mut self.coded;
        let mut high = block.base;
        // Gaps are below 2^56, and there are fewer than 2^7.
        if block.ascending {
            coded.linear.push(high);
            bits::for_each(block.bytes, block.gaps, block.gap_width, block.pairs - 1, |gap| {
                high += gap + 1;
                coded.linear.push(high);
            });
        } else if block.entries == block.pairs {
            bits::for_each(block.bytes, block.firsts, block.first_width, block.entries, |first| {
                let linear = block.base + first;
                high = high.max(linear);
                coded.linear.push(linear);
            });
            if coded.ends.len() < block.entries && !lists_ascend(&coded.linear, &coded.ends) {
                return Err(BlockError("pairs do not ascend"));
            }
        } else {
            let (mut start, mut at) = (0, block.gaps);
            for (entry, end) in coded.ends.iter().enumerate() {
                let mut linear = block.first_of(entry);
                coded.linear.push(linear);
                for _ in start + 1..*end {
                    linear += bits::get(block.bytes, at, block.gap_width) + 1;
                    at += block.gap_width as usize;
                    coded.linear.push(linear);
                }
                high = high.max(linear);
                start = *end;
            }
        }
        if (high / block.slots) >> (LINEAR_BITS - 12) == 0 { Ok(()) } else { Err(BlockError("RID out of range")) }
    }

    /// Numbers RIDs anew if there is such a slot for the first time.
    fn raise_slots(&mut self, slot: u64) {
        let (old, new) = (self.coded.slots, slot + 1);
        if new > old {
            self.coded.linear.iter_mut().for_each(|linear| *linear = *linear / old * new + *linear % old);
            self.coded.slots = new;
        }
    }
}

fn lists_ascend(linear: &[u64], ends: &[u32]) -> bool {
    let mut start = 0;
    ends.iter().all(|end| {
        let list = &linear[start as usize..*end as usize];
        start = *end;
        list.is_sorted_by(|a, b| a < b)
    })
}

impl Block<'_> {
    /// The code of a key that differs from the block's only in the bits in which they differ from each other; of a block of one key, that key's.
    pub(super) fn code_of(&self, own: &[u8]) -> Option<u64> {
        let own_bytes = self.key_bytes - self.frame.shared.len();
        if own.len() != own_bytes {
            return None;
        }
        if self.form == KeyForm::One {
            return (self.cmp_first_key(own) == Ordering::Equal).then_some(0);
        }
        if !self.form.is_packed() {
            return None;
        }
        let (start, end) = (own_bytes - self.tail - self.window_bytes, own_bytes - self.tail);
        let key = window(&own[start..end]);
        if (key ^ self.first_window()) & !self.mask != 0 {
            return None;
        }
        let same = |from, to| from == to || self.cmp_own(from, to, &own[from..to]) == Ordering::Equal;
        (same(0, start) && same(end, own_bytes)).then(|| gather::pick(key, self.mask))
    }
}
