//! The content of a file in memory: chunks of 4 KB where something was written, nothing elsewhere.
//!
//! Chunks are shared between copies until one of them writes, so that a copy costs a pointer per chunk. What counts as taken space is
//! apart from what is stored: a chunk counts once it was written or allocated, until it is punched or cut off.
//!
//! Bytes beyond the length are always zero.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::range::RangeSet;

pub(crate) const CHUNK_BYTES: u64 = 4096;

type Chunk = [u8; CHUNK_BYTES as usize];

static ZEROS: Chunk = [0; CHUNK_BYTES as usize];

/// A sparse sequence of bytes. Callers have checked that ranges end at most at `i64::MAX`.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseBytes {
    len: u64,
    chunks: BTreeMap<u64, Arc<Chunk>>,
    taken: RangeSet,
}

/// The numbers of the chunks that a range touches.
fn chunk_range(offset: u64, len: u64) -> Range<u64> {
    if len == 0 { 0..0 } else { offset / CHUNK_BYTES..(offset + len).div_ceil(CHUNK_BYTES) }
}

impl SparseBytes {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of space that the file takes.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken.total() * CHUNK_BYTES
    }

    /// Bytes of space that writing or allocating the range would take in addition.
    pub(crate) fn bytes_to_take(&self, offset: u64, len: u64) -> u64 {
        self.taken.missing(chunk_range(offset, len)) * CHUNK_BYTES
    }

    /// Reads up to the end of the file.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let total = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0;
        while done < total {
            let at = offset + done as u64;
            let within = (at % CHUNK_BYTES) as usize;
            let piece = (ZEROS.len() - within).min(total - done);
            let chunk = self.chunks.get(&(at / CHUNK_BYTES)).map_or(&ZEROS, |chunk| &**chunk);
            buf[done..done + piece].copy_from_slice(&chunk[within..within + piece]);
            done += piece;
        }
        total
    }

    pub(crate) fn write(&mut self, buf: &[u8], offset: u64) {
        self.taken.insert(chunk_range(offset, buf.len() as u64));
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let within = (at % CHUNK_BYTES) as usize;
            let piece = (ZEROS.len() - within).min(buf.len() - done);
            let content = &buf[done..done + piece];
            if let Ok(whole) = Chunk::try_from(content) {
                self.chunks.insert(at / CHUNK_BYTES, Arc::new(whole));
            } else {
                let chunk = self.chunks.entry(at / CHUNK_BYTES).or_insert_with(|| Arc::new(ZEROS));
                Arc::make_mut(chunk)[within..within + piece].copy_from_slice(content);
            }
            done += piece;
        }
        if !buf.is_empty() {
            self.len = self.len.max(offset + buf.len() as u64);
        }
    }

    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let first_gone = len.div_ceil(CHUNK_BYTES);
            drop(self.chunks.split_off(&first_gone));
            self.taken.remove(first_gone..u64::MAX);
            self.zero_within_chunk(len, CHUNK_BYTES - 1 - (len + CHUNK_BYTES - 1) % CHUNK_BYTES);
        }
        self.len = len;
    }

    pub(crate) fn allocate(&mut self, offset: u64, len: u64) {
        self.taken.insert(chunk_range(offset, len));
        if len > 0 {
            self.len = self.len.max(offset + len);
        }
    }

    pub(crate) fn punch_hole(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let (first_whole, whole_end) = (offset.div_ceil(CHUNK_BYTES), end / CHUNK_BYTES);
        if first_whole > whole_end {
            // All inside one chunk.
            self.zero_within_chunk(offset, len);
            return;
        }
        self.zero_within_chunk(offset, first_whole * CHUNK_BYTES - offset);
        self.zero_within_chunk(whole_end * CHUNK_BYTES, end % CHUNK_BYTES);
        let mut gone = self.chunks.split_off(&first_whole);
        self.chunks.append(&mut gone.split_off(&whole_end));
        self.taken.remove(first_whole..whole_end);
    }

    /// Whole chunks of a range that have only zeros take no space.
    pub(crate) fn give_zeros_back(&mut self, offset: u64, len: u64) {
        for number in offset.div_ceil(CHUNK_BYTES)..(offset + len) / CHUNK_BYTES {
            if self.chunks.get(&number).is_none_or(|chunk| **chunk == ZEROS) {
                self.chunks.remove(&number);
                self.taken.remove(number..number + 1);
            }
        }
    }

    fn zero_within_chunk(&mut self, offset: u64, len: u64) {
        if len > 0
            && let Some(chunk) = self.chunks.get_mut(&(offset / CHUNK_BYTES))
        {
            let within = (offset % CHUNK_BYTES) as usize;
            Arc::make_mut(chunk)[within..within + len as usize].fill(0);
        }
    }

    /// Makes a range within one chunk equal to that of `source`. It must not go beyond the length.
    pub(crate) fn copy_within_chunk(&mut self, source: &Self, offset: u64, len: u64) {
        let number = offset / CHUNK_BYTES;
        if len == CHUNK_BYTES {
            match source.chunks.get(&number) {
                Some(chunk) => self.chunks.insert(number, Arc::clone(chunk)),
                None => self.chunks.remove(&number),
            };
        } else {
            let within = (offset % CHUNK_BYTES) as usize;
            let range = within..within + len as usize;
            let from = source.chunks.get(&number).map_or(&ZEROS, |chunk| &**chunk);
            let to = self.chunks.entry(number).or_insert_with(|| Arc::new(ZEROS));
            Arc::make_mut(to)[range.clone()].copy_from_slice(&from[range]);
        }
        if self.chunks.contains_key(&number) {
            self.taken.insert(number..number + 1);
        }
    }

    /// Feeds length and content; holes and zeros are the same.
    pub(crate) fn hash_into(&self, hasher: &mut Xxh3) {
        hasher.update(&self.len.to_le_bytes());
        for (number, chunk) in &self.chunks {
            if **chunk != ZEROS {
                hasher.update(&number.to_le_bytes());
                hasher.update(&**chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn content(bytes: &SparseBytes) -> Vec<u8> {
        let mut content = vec![0xEE; bytes.len() as usize + 10];
        let read = bytes.read(&mut content, 0);
        content.truncate(read);
        content
    }

    #[test]
    fn sparse_bytes_behave_like_a_vector() {
        let mut random = Random::new(11);
        for _ in 0..60 {
            let mut bytes = SparseBytes::default();
            let mut vector: Vec<u8> = Vec::new();
            for step in 0..60 {
                let offset = random.below(5 * CHUNK_BYTES) & if random.chance(1, 2) { !(CHUNK_BYTES - 1) } else { u64::MAX };
                let len = random.below(3) * CHUNK_BYTES + random.below(CHUNK_BYTES) * random.below(2);
                let end = (offset + len) as usize;
                let copy = bytes.clone();
                let before = vector.clone();
                let to_take = bytes.bytes_to_take(offset, len);
                let taken = bytes.taken_bytes();
                match random.below(5) {
                    0 | 1 => {
                        let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                        bytes.write(&data, offset);
                        if len > 0 {
                            vector.resize(vector.len().max(end), 0);
                            vector[offset as usize..end].copy_from_slice(&data);
                        }
                        assert_eq!(bytes.taken_bytes(), taken + to_take);
                    }
                    2 => {
                        bytes.set_len(offset);
                        vector.resize(offset as usize, 0);
                    }
                    3 => {
                        bytes.allocate(offset, len);
                        if len > 0 {
                            vector.resize(vector.len().max(end), 0);
                        }
                        assert_eq!(bytes.taken_bytes(), taken + to_take);
                    }
                    _ => {
                        bytes.punch_hole(offset, len);
                        let stop = end.min(vector.len());
                        let start = (offset as usize).min(stop);
                        vector[start..stop].fill(0);
                    }
                }
                assert!(content(&bytes) == vector, "step {step}");
                assert!(content(&copy) == before, "a copy does not see later changes");
                let mut piece = vec![0; 700];
                let from = random.below(6 * CHUNK_BYTES);
                let read = bytes.read(&mut piece, from);
                assert_eq!(&piece[..read], vector.get(from as usize..(from as usize + 700).min(vector.len())).unwrap_or(&[]));
                assert_eq!(bytes.bytes_to_take(0, u64::from(u32::MAX)) + bytes.taken_bytes(), 1 << 32);
            }
        }
    }

    #[test]
    fn punching_gives_whole_chunks_back() {
        let mut bytes = SparseBytes::default();
        bytes.write(&[7; 3 * CHUNK_BYTES as usize], 0);
        bytes.punch_hole(1, 2 * CHUNK_BYTES);
        assert_eq!((bytes.taken_bytes(), bytes.len()), (2 * CHUNK_BYTES, 3 * CHUNK_BYTES));
        bytes.set_len(1);
        assert_eq!((bytes.taken_bytes(), content(&bytes)), (CHUNK_BYTES, vec![7]));
        bytes.allocate(0, 1 << 50);
        assert_eq!((bytes.taken_bytes(), bytes.len()), (1 << 50, 1 << 50));
    }

    #[test]
    fn hash_knows_content_not_representation() {
        let hash = |bytes: &SparseBytes| {
            let mut hasher = Xxh3::new();
            bytes.hash_into(&mut hasher);
            hasher.digest()
        };
        let (mut sparse, mut dense) = (SparseBytes::default(), SparseBytes::default());
        sparse.set_len(3 * CHUNK_BYTES);
        dense.write(&[0; 3 * CHUNK_BYTES as usize], 0);
        assert_eq!(hash(&sparse), hash(&dense));
        dense.write(&[1], CHUNK_BYTES);
        assert_ne!(hash(&sparse), hash(&dense));
        sparse.write(&[1], 2 * CHUNK_BYTES);
        assert_ne!(hash(&sparse), hash(&dense));
    }
}
