//! A folded body back to entries and key map.
//!
//! Two decoders give the same bytes. The exact one, here, takes one entry at a time, whatever its lengths. The fast one (`fast.rs`) takes the entries whose keys differ from the page's
//! common prefix in at most 32 bytes, as far as both buffers have room for whole words.
//!
//! Invariant: whatever the input, all reads and writes are inside the given slices, and time is linear in the page.
//! What is expanded is in bounds by construction; that keys ascend is for `check` to say.

use super::cost::ESCAPE;
use super::layout::{MAP_BYTES, RID_BYTES, Shape, key_head, put_map, rid_bytes};
use super::rid_code::{LENGTH, RESERVED, difference, from_linear, linear_limit};
use super::{FoldError, fast, varint};
use std::ops::Range;

/// What the folded leaf's header says about its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Number of entries.
    pub entries: usize,
    /// Bytes that all keys share.
    pub common_prefix: usize,
    /// Length of the longest key.
    pub longest_key: usize,
}

/// What [`expand`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// End of the entries.
    pub low_end: usize,
    /// RIDs of all entries.
    pub rids: usize,
}

/// Where a decoder stands: both decoders go on from it.
pub(super) struct State {
    /// Entries done.
    pub(super) done: usize,
    /// Next byte of the input.
    pub(super) at: usize,
    /// Next byte of the page.
    pub(super) out: usize,
    /// Where the key before lies in the page.
    pub(super) key: Range<usize>,
    /// Last RID, linear.
    pub(super) linear: u64,
    /// All linear RIDs, or-ed; the top bit for what was no number or RID code.
    pub(super) seen: u64,
    /// RIDs done.
    pub(super) rids: usize,
}

/// Expands the body at `input[body]` into `page`: entries from `start`, key map at the end, zeros between.
///
/// # Errors
/// [`FoldError::Damaged`] when the bytes are not a body of this shape, [`FoldError::NoRoom`] when the page is too small. The page then holds anything.
pub fn expand(shape: Shape, header: Body, input: &[u8], body: Range<usize>, page: &mut [u8], start: usize) -> Result<Expanded, FoldError> {
    expand_by(shape, header, input, body, page, start, true)
}

/// [`expand`] by the exact decoder alone: what tests and fuzzers compare the fast one with.
///
/// # Errors
/// As [`expand`].
#[doc(hidden)]
pub fn expand_exact(
    shape: Shape,
    header: Body,
    input: &[u8],
    body: Range<usize>,
    page: &mut [u8],
    start: usize,
) -> Result<Expanded, FoldError> {
    expand_by(shape, header, input, body, page, start, false)
}

/// [`expand`], with or without the fast decoder.
pub(super) fn expand_by(
    shape: Shape,
    header: Body,
    input: &[u8],
    body: Range<usize>,
    page: &mut [u8],
    start: usize,
    fast: bool,
) -> Result<Expanded, FoldError> {
    let input = input.get(..body.end).ok_or(FoldError::Damaged("body reaches beyond the page"))?;
    let map = page.len().checked_sub(MAP_BYTES * header.entries).filter(|m| *m >= start).ok_or(FoldError::NoRoom("key map"))?;
    if shape.slot_bits > 12 || usize::from(u16::MAX) < page.len() || body.start > body.end {
        return Err(FoldError::Damaged("header"));
    }
    if shape.fixed_key_bytes != 0 && header.longest_key != usize::from(shape.fixed_key_bytes) {
        return Err(FoldError::Damaged("key length"));
    }
    let mut state = State { done: 0, at: body.start, out: start, key: start..start, linear: 0, seen: 0, rids: 0 };
    if header.entries > 0 {
        exact_entry(shape, header, input, &mut state, page, map)?;
        if state.key.len() < header.common_prefix {
            return Err(FoldError::Damaged("common prefix"));
        }
    }
    if fast {
        fast::entries(shape, header, input, &mut state, page, map)?;
    }
    while state.done < header.entries {
        exact_entry(shape, header, input, &mut state, page, map)?;
    }
    if state.at != body.end {
        return Err(FoldError::Damaged("bytes after the last entry"));
    }
    if state.seen >= linear_limit(shape.slot_bits) {
        return Err(FoldError::Damaged("RID"));
    }
    page[state.out..map].fill(0);
    Ok(Expanded { low_end: state.out, rids: state.rids })
}

fn take_number(input: &[u8], state: &mut State) -> Result<usize, FoldError> {
    let (value, n) = varint::read(input, state.at).ok_or(FoldError::Damaged("number"))?;
    state.at += n;
    usize::try_from(value).map_err(|_| FoldError::Damaged("number"))
}

fn take_escape(nibble: u8, input: &[u8], state: &mut State) -> Result<usize, FoldError> {
    if usize::from(nibble) < ESCAPE { Ok(usize::from(nibble)) } else { Ok(take_number(input, state)?.saturating_add(ESCAPE)) }
}

fn take_byte(input: &[u8], state: &mut State) -> Result<u8, FoldError> {
    let byte = *input.get(state.at).ok_or(FoldError::Damaged("cut off"))?;
    state.at += 1;
    Ok(byte)
}

/// One entry, byte by byte.
fn exact_entry(shape: Shape, header: Body, input: &[u8], state: &mut State, page: &mut [u8], map: usize) -> Result<(), FoldError> {
    let token = take_byte(input, state)?;
    let (shared, added, more, code);
    if shape.fixed_key_bytes == 0 {
        let second = take_byte(input, state)?;
        let dropped = take_escape(token >> 4, input, state)?;
        added = take_escape(token & 15, input, state)?;
        more = take_escape(second >> 4, input, state)?;
        code = second & 15;
        shared = state.key.len().checked_sub(dropped).ok_or(FoldError::Damaged("shared prefix"))?;
        if shape.single && more != 0 {
            return Err(FoldError::Damaged("RID list in a unique index"));
        }
    } else {
        added = take_escape(token >> 4, input, state)?;
        code = token & 15;
        more = if shape.single { 0 } else { take_number(input, state)? };
        shared = usize::from(shape.fixed_key_bytes).checked_sub(added).ok_or(FoldError::Damaged("suffix length"))?;
        if shared > state.key.len() {
            return Err(FoldError::Damaged("shared prefix"));
        }
    }
    let key_bytes = shared.saturating_add(added);
    if key_bytes > header.longest_key || (state.done > 0 && shared < header.common_prefix) {
        return Err(FoldError::Damaged("key length"));
    }
    if more >= page.len() || state.out + shape.entry_bytes(key_bytes, more + 1) > map {
        return Err(FoldError::NoRoom("entry"));
    }
    let entry = state.out;
    let mut out = put_entry_prefix(shape, page, entry, key_bytes, more + 1);
    page.copy_within(state.key.start..state.key.start + shared, out);
    let suffix = input.get(state.at..state.at + added).ok_or(FoldError::Damaged("cut off"))?;
    page[out + shared..out + key_bytes].copy_from_slice(suffix);
    state.at += added;
    state.key = out..out + key_bytes;
    put_map(page, state.done, entry, key_head(&page[state.key.clone()], header.common_prefix))?;
    out += key_bytes;

    let length = usize::from(LENGTH[usize::from(code)]);
    let bytes = input.get(state.at..state.at + length).ok_or(FoldError::Damaged("cut off"))?;
    if code == RESERVED {
        return Err(FoldError::Damaged("RID code"));
    }
    let mut word = [0u8; 8];
    word[..length].copy_from_slice(bytes);
    state.at += length;
    state.linear = state.linear.wrapping_add(difference(code, u64::from_le_bytes(word)));
    state.seen |= state.linear;
    page[out..out + RID_BYTES].copy_from_slice(&rid_bytes(from_linear(state.linear, shape.slot_bits)));
    out += RID_BYTES;
    state.out = out;
    further_rids(shape, input, state, page, more)?;
    state.rids += more + 1;
    state.done += 1;
    Ok(())
}

/// RIDs of a list after the first; the caller has checked that they fit the page.
pub(super) fn further_rids(shape: Shape, input: &[u8], state: &mut State, page: &mut [u8], count: usize) -> Result<(), FoldError> {
    for _ in 0..count {
        let (gap, n) = varint::read(input, state.at).ok_or(FoldError::Damaged("RID"))?;
        state.at += n;
        state.linear = state.linear.wrapping_add(gap + 1);
        state.seen |= state.linear;
        page[state.out..state.out + RID_BYTES].copy_from_slice(&rid_bytes(from_linear(state.linear, shape.slot_bits)));
        state.out += RID_BYTES;
    }
    Ok(())
}

/// Writes key length and count of RIDs, where the shape has them; returns where the key goes.
#[inline]
fn put_entry_prefix(shape: Shape, page: &mut [u8], entry: usize, key_bytes: usize, rids: usize) -> usize {
    let mut out = entry;
    if shape.fixed_key_bytes == 0 {
        page[out..out + 2].copy_from_slice(&(key_bytes as u16).to_le_bytes());
        out += 2;
    }
    if !shape.single {
        page[out..out + 2].copy_from_slice(&(rids as u16).to_le_bytes());
        out += 2;
    }
    out
}
