//! Entries to a folded body.
//!
//! | Part of an entry | When | Bytes |
//! |---|---|---|
//! | token | keys of one length | suffix length (high nibble), RID code (low nibble) |
//! | two tokens | else | bytes dropped from the key before, bytes added (nibbles); RIDs - 1, RID code (nibbles) |
//! | escapes | a nibble other than the RID code is 15 | the number - 15 (variable length), in the order of the nibbles |
//! | RIDs - 1 | keys of one length, not single | variable length |
//! | suffix | | the key without what it shares with the key before |
//! | first RID | | 0 to 7 bytes, see `rid_code` |
//! | further RIDs | | difference from the RID before - 1 (variable length) |

use super::cost::{ESCAPE, Neighbour};
use super::layout::{Entry, Shape, common_prefix};
use super::{FoldError, linear_rid, rid_code, varint};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// How often [`encode`] has run on this thread: an insert must not raise it.
#[must_use]
pub fn encode_calls() -> u64 {
    CALLS.get()
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FoldError> {
        let end = self.at + bytes.len();
        self.out.get_mut(self.at..end).ok_or(FoldError::NoRoom("body"))?.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    fn put_number(&mut self, value: u64) -> Result<(), FoldError> {
        let (bytes, n) = varint::bytes(value);
        self.put(&bytes[..n])
    }

    fn put_escape(&mut self, n: usize) -> Result<(), FoldError> {
        if n < ESCAPE { Ok(()) } else { self.put_number((n - ESCAPE) as u64) }
    }
}

fn nibble(n: usize) -> u8 {
    n.min(ESCAPE) as u8
}

/// Encodes `entries` (ascending) into `out`; returns the bytes used, which are the sum of [`super::cost::entry_cost`].
///
/// # Errors
/// [`FoldError::NoRoom`] when `out` is too short; `out` then holds what did fit.
pub fn encode<'a>(shape: Shape, entries: impl IntoIterator<Item = Entry<'a>>, out: &mut [u8]) -> Result<usize, FoldError> {
    CALLS.set(CALLS.get() + 1);
    let mut w = Writer { out, at: 0 };
    let mut before = Neighbour::NONE;
    for entry in entries {
        let shared = common_prefix(before.key, entry.key);
        let suffix = &entry.key[shared..];
        let more = entry.rid_count() - 1;
        let mut linear = linear_rid(entry.rid(0), shape.slot_bits);
        let (code, word) = rid_code::code(linear_rid(before.last_rid, shape.slot_bits), linear);
        if shape.fixed_key_bytes == 0 {
            let dropped = before.key.len() - shared;
            w.put(&[nibble(dropped) << 4 | nibble(suffix.len()), nibble(more) << 4 | code])?;
            w.put_escape(dropped)?;
            w.put_escape(suffix.len())?;
            w.put_escape(more)?;
        } else {
            w.put(&[nibble(suffix.len()) << 4 | code])?;
            w.put_escape(suffix.len())?;
            if !shape.single {
                w.put_number(more as u64)?;
            }
        }
        w.put(suffix)?;
        w.put(&word.to_le_bytes()[..usize::from(rid_code::LENGTH[usize::from(code)])])?;
        for i in 1..=more {
            let next = linear_rid(entry.rid(i), shape.slot_bits);
            w.put_number(next - linear - 1)?;
            linear = next;
        }
        before = Neighbour::of(&entry);
    }
    Ok(w.at)
}
