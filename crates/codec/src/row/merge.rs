//! Byte-pair merging: the most frequent pair of adjacent symbols becomes a symbol, again and again.
//!
//! Exact counts, kept up to date merge by merge (after Gage, "A New Algorithm for Data Compression", 1994, and the occurrence lists of Re-Pair,
//! Larsson and Moffat, 1999). Each position of the text holds a symbol at its first and its last byte; a pair's occurrences are a doubly linked
//! list through the positions. So a merge touches only the places where the pair occurs.
//!
//! Memory: 10 bytes for each byte of text, 6 MB for the table of pairs, 8 bytes for each pair in the heap.

use std::collections::BinaryHeap;

use super::table::MAX_TOKEN_LEN;

/// Slots of the table of pairs at most. It is full when three quarters are used; a pair that appears then is not followed.
const TABLE_MAX: usize = 1 << 19;
const TABLE_MIN: usize = 1 << 12;

/// Stands between rows; no pair contains it.
const SEPARATOR: u16 = u16::MAX;
const NONE: u32 = u32::MAX;

/// Merges pairs of `rows`, least frequent pair `min_count`, until there are `limit` symbols. Returns their bytes; the first 256 are the single
/// bytes.
pub(super) fn merge_pairs<'a>(rows: impl Iterator<Item = &'a [u8]>, limit: usize, min_count: u32) -> Vec<Vec<u8>> {
    let mut merger = Merger::new(rows);
    while merger.symbols.len() < limit {
        match merger.heap.pop() {
            Some((count, key)) => merger.pop(count, key, min_count),
            None => break,
        }
    }
    merger.symbols
}

#[derive(Clone, Copy)]
struct Pair {
    key: u32,
    count: u32,
    /// First occurrence.
    head: u32,
}

struct Merger {
    symbols: Vec<Vec<u8>>,
    text: Vec<u16>,
    /// Occurrence of the same pair behind and before this one.
    next: Vec<u32>,
    prev: Vec<u32>,
    pairs: PairTable,
    /// Counts may be out of date: too high, never too low. Ties go to the greater key.
    heap: BinaryHeap<(u32, u32)>,
}

impl Merger {
    fn new<'a>(rows: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut text = vec![SEPARATOR];
        for row in rows {
            text.extend(row.iter().map(|&byte| u16::from(byte)));
            text.push(SEPARATOR);
        }
        let links = vec![NONE; text.len()];
        let table = (text.len() / 2).next_power_of_two().clamp(TABLE_MIN, TABLE_MAX);
        let mut merger = Self {
            symbols: (0..=255).map(|byte| vec![byte]).collect(),
            pairs: PairTable::new(table),
            next: links.clone(),
            prev: links,
            text,
            heap: BinaryHeap::new(),
        };
        // From the back, so that every list ascends.
        for position in (0..merger.text.len() - 1).rev() {
            merger.add(merger.text[position], merger.text[position + 1], position);
        }
        merger.heap = merger.pairs.slots.iter().filter(|pair| pair.key != NONE).map(|pair| (pair.count, pair.key)).collect();
        merger
    }

    fn pop(&mut self, count: u32, key: u32, min_count: u32) {
        let Some(slot) = self.pairs.find(key) else { return };
        let now = self.pairs.slots[slot].count;
        if now < min_count {
            return;
        }
        if now < count {
            self.heap.push((now, key));
            return;
        }
        self.merge((key >> 16) as u16, key as u16, slot);
    }

    fn len(&self, symbol: u16) -> usize {
        self.symbols.get(usize::from(symbol)).map_or(1, Vec::len)
    }

    fn merge(&mut self, left: u16, right: u16, slot: usize) {
        let merged = self.symbols.len() as u16;
        let bytes = [self.symbols[usize::from(left)].as_slice(), &self.symbols[usize::from(right)]].concat();
        let (left_len, merged_len) = (self.len(left), bytes.len());
        self.symbols.push(bytes);
        let mut fresh = Vec::new();
        while self.pairs.slots[slot].head != NONE {
            let start = self.pairs.slots[slot].head as usize;
            let middle = start + left_len;
            let end = start + merged_len;
            self.unlink(slot, start);
            let before = self.text[start - 1];
            let before_start = start - self.len(before);
            let after = self.text[end];
            self.remove(before, left, before_start);
            self.remove(right, after, middle);
            self.text[start] = merged;
            self.text[end - 1] = merged;
            fresh.extend(self.add(before, merged, before_start));
            fresh.extend(self.add(merged, after, start));
        }
        for slot in fresh {
            let Pair { key, count, .. } = self.pairs.slots[slot];
            if count > 1 {
                self.heap.push((count, key));
            }
        }
    }

    /// Notes that the pair begins at `position`; returns its slot when it is new.
    fn add(&mut self, left: u16, right: u16, position: usize) -> Option<usize> {
        if left == SEPARATOR || right == SEPARATOR || self.len(left) + self.len(right) > MAX_TOKEN_LEN {
            return None;
        }
        let (slot, new) = self.pairs.find_or_insert(key(left, right))?;
        let pair = &mut self.pairs.slots[slot];
        pair.count += 1;
        let head = pair.head;
        pair.head = position as u32;
        self.next[position] = head;
        self.prev[position] = NONE;
        if head != NONE {
            self.prev[head as usize] = position as u32;
        }
        new.then_some(slot)
    }

    /// Notes that the pair does not begin at `position` any more.
    fn remove(&mut self, left: u16, right: u16, position: usize) {
        if left == SEPARATOR || right == SEPARATOR {
            return;
        }
        // A pair that is not followed, or was not when this occurrence came, has no entry here.
        if let Some(slot) = self.pairs.find(key(left, right)) {
            self.unlink(slot, position);
        }
    }

    fn unlink(&mut self, slot: usize, position: usize) {
        let (next, prev) = (self.next[position], self.prev[position]);
        let pair = &mut self.pairs.slots[slot];
        pair.count -= 1;
        if prev == NONE {
            pair.head = next;
        } else {
            self.next[prev as usize] = next;
        }
        if next != NONE {
            self.prev[next as usize] = prev;
        }
    }
}

fn key(left: u16, right: u16) -> u32 {
    u32::from(left) << 16 | u32::from(right)
}

struct PairTable {
    slots: Vec<Pair>,
    used: usize,
}

impl PairTable {
    fn new(slots: usize) -> Self {
        Self { slots: vec![Pair { key: NONE, count: 0, head: NONE }; slots], used: 0 }
    }

    fn probe(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
        while self.slots[slot].key != key && self.slots[slot].key != NONE {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn find(&self, key: u32) -> Option<usize> {
        let slot = self.probe(key);
        (self.slots[slot].key == key).then_some(slot)
    }

    /// The slot of `key` and whether it is new; `None` when there is no room for it.
    fn find_or_insert(&mut self, key: u32) -> Option<(usize, bool)> {
        let slot = self.probe(key);
        if self.slots[slot].key == key {
            return Some((slot, false));
        }
        if self.used >= self.slots.len() / 4 * 3 {
            return None;
        }
        self.used += 1;
        self.slots[slot].key = key;
        Some((slot, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Merges with everything counted anew each time. Counts of pairs like `aa` in `aaa` are those of all places, as above.
    fn slow(rows: &[Vec<u8>], limit: usize, min_count: u32) -> Vec<Vec<u8>> {
        let mut symbols: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut rows: Vec<Vec<u16>> = rows.iter().map(|row| row.iter().map(|&byte| u16::from(byte)).collect()).collect();
        while symbols.len() < limit {
            let mut counts: HashMap<u32, u32> = HashMap::new();
            for pair in rows.iter().flat_map(|row| row.windows(2)) {
                if symbols[usize::from(pair[0])].len() + symbols[usize::from(pair[1])].len() <= MAX_TOKEN_LEN {
                    *counts.entry(key(pair[0], pair[1])).or_default() += 1;
                }
            }
            let Some((count, best)) = counts.into_iter().map(|(key, count)| (count, key)).max() else { break };
            if count < min_count {
                break;
            }
            let (left, right) = ((best >> 16) as u16, best as u16);
            let merged = symbols.len() as u16;
            symbols.push([symbols[usize::from(left)].as_slice(), &symbols[usize::from(right)]].concat());
            for row in &mut rows {
                let mut position = 0;
                while position + 1 < row.len() {
                    if row[position] == left && row[position + 1] == right {
                        row[position] = merged;
                        row.remove(position + 1);
                    }
                    position += 1;
                }
            }
        }
        symbols
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn merges_as_the_slow_way_does() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for alphabet in [2, 5, 60] {
            let rows: Vec<Vec<u8>> =
                (0..60).map(|_| (0..random(40)).map(|_| random(alphabet).min(random(alphabet)) as u8).collect()).collect();
            for min_count in [2, 5] {
                let fast = merge_pairs(rows.iter().map(Vec::as_slice), 400, min_count);
                let slow = slow(&rows, 400, min_count);
                // Runs of one symbol are merged from the other end once a list has been rebuilt, so counts of what follows may differ by a few.
                let same = fast.iter().zip(&slow).take_while(|(fast, slow)| fast == slow).count();
                assert!(alphabet == 2 || same == slow.len(), "{same} of {}", slow.len());
                assert!(same > 256 || slow.len() == 256);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn no_symbol_is_longer_than_a_token() {
        let symbols = merge_pairs([[3; 4000].as_slice()].into_iter(), 500, 2);
        let longest = symbols.iter().map(Vec::len).max();
        assert_eq!(longest, Some(MAX_TOKEN_LEN));
    }
}
