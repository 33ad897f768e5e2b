//! Huffman codes of a row that differs little from one whose codes are there.
//!
//! The codes that end before the first changed byte are kept as bits, but for the last [`KEEP_OFF`] of them; so are those behind the last changed byte.
//! Between the two, the bytes are parsed anew. The result is nearly as short as that of a full parse: only near the change can another cut
//! be better.

use super::bits::{BitReader, BitWriter, ShortRow};
use super::codes::PADDING_BITS_MAX;
use super::encode::HuffmanEncoder;
use super::parse::parse;
use crate::bytes::{common_prefix, common_suffix};

/// Codes next to the change, on either side, that are chosen again.
const KEEP_OFF: usize = 2;

/// Where a code begins: its first bit, and its place in the row.
#[derive(Clone, Copy, Default)]
struct Boundary {
    bit: usize,
    at: usize,
}

impl HuffmanEncoder {
    /// As [`encode`](Self::encode), given a row `before` and its `codes`: the less the rows differ, the less there is to do. If `codes` are not
    /// those of `before`, what is appended does not stand for `row`.
    pub fn reencode(&self, before: &[u8], codes: &[u8], row: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let prefix = common_prefix(before, row);
        let suffix = common_suffix(&before[prefix..], &row[prefix..]);
        let Some((from, to, end)) = self.kept(codes, before.len(), prefix, suffix) else {
            return self.encode(row, out);
        };
        let start = out.len();
        let mut writer = BitWriter::new(out);
        writer.push_range(codes, 0, from.bit);
        let tail = before.len() - to.at;
        let between = &row[from.at..row.len() - tail];
        parse(&self.fixed.matcher, &self.words, between, |token| writer.push(self.words[usize::from(token)]));
        writer.push_range(codes, to.bit, end.bit);
        writer.finish();
        let len = out.len() - start;
        if len < row.len() {
            return Some(len);
        }
        out.truncate(start);
        self.encode(row, out)
    }

    /// Where the kept codes before the change end, where those behind it begin, and where all end; nothing when `codes` are not those of a row
    /// of `len` bytes.
    fn kept(&self, codes: &[u8], len: usize, prefix: usize, suffix: usize) -> Option<(Boundary, Boundary, Boundary)> {
        let same_from = len - suffix;
        let mut short = ShortRow::default();
        let mut reader = BitReader::new(codes, &mut short);
        let mut now = Boundary::default();
        // The last boundaries up to the change, the newest first.
        let mut last = [now; KEEP_OFF + 1];
        let mut to = None;
        let mut behind = 0;
        while now.at < len {
            if now.at <= prefix {
                last.rotate_right(1);
                last[0] = now;
            }
            if now.at >= same_from {
                to = to.or((behind == KEEP_OFF).then_some(now));
                behind += 1;
            }
            now.at += self.table.skip_code(&mut reader);
            now.bit = reader.position();
            if reader.remaining() < 0 {
                return None;
            }
        }
        reader.refill();
        let padded = reader.remaining() <= PADDING_BITS_MAX as isize && reader.padded_bits() == u64::MAX;
        (now.at == len && padded).then_some((last[KEEP_OFF], to.unwrap_or(now), now))
    }
}
