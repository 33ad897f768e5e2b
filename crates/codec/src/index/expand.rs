//! A folded body back to entries and key map.
//!
//! Two decoders give the same bytes. The exact one takes one entry at a time, whatever its lengths. The fast one is for keys that differ from the page's common prefix in at most 32
//! bytes: it holds the key in registers (a copy from the key just written would wait for that write), loads the suffix from where it already stands in place,
//! and writes whole words, as far as both buffers have room for the excess; the exact one does the rest.
//!
//! Invariant: whatever the input, all reads and writes are inside the given slices, and time is linear in the page.
//! What is expanded is in bounds by construction; that keys ascend is for `check` to say.

use super::cost::ESCAPE;
use super::layout::{MAP_BYTES, RID_BYTES, Shape, key_head, put_map, rid_bytes};
use super::rid_code::{LENGTH, RESERVED, difference, from_linear, linear_limit};
use super::{FoldError, varint};
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
struct State {
    /// Entries done.
    done: usize,
    /// Next byte of the input.
    at: usize,
    /// Next byte of the page.
    out: usize,
    /// Where the key before lies in the page.
    key: Range<usize>,
    /// Last RID, linear.
    linear: u64,
    /// All linear RIDs, or-ed.
    seen: u64,
    rids: usize,
}

/// Expands the body at `input[body]` into `page`: entries from `start`, key map at the end, zeros between.
///
/// # Errors
/// [`FoldError::Damaged`] when the bytes are not a body of this shape, [`FoldError::NoRoom`] when the page is too small. The page then holds anything.
pub fn expand(shape: Shape, header: Body, input: &[u8], body: Range<usize>, page: &mut [u8], start: usize) -> Result<Expanded, FoldError> {
    expand_by(shape, header, input, body, page, start, true)
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
    let rest = header.longest_key - header.common_prefix.min(header.longest_key);
    if !fast {
        // Nothing: the exact decoder does all.
    } else if rest <= 16 {
        fast_by_shape::<1>(shape, header, input, &mut state, page, map)?;
    } else if rest <= 32 {
        fast_by_shape::<2>(shape, header, input, &mut state, page, map)?;
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
    for _ in 0..more {
        let (gap, n) = varint::read(input, state.at).ok_or(FoldError::Damaged("RID"))?;
        state.at += n;
        state.linear = state.linear.wrapping_add(gap + 1);
        state.seen |= state.linear;
        page[out..out + RID_BYTES].copy_from_slice(&rid_bytes(from_linear(state.linear, shape.slot_bits)));
        out += RID_BYTES;
    }
    state.out = out;
    state.rids += more + 1;
    state.done += 1;
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

fn fast_by_shape<const W: usize>(
    shape: Shape,
    header: Body,
    input: &[u8],
    state: &mut State,
    page: &mut [u8],
    map: usize,
) -> Result<(), FoldError> {
    let run = match (shape.fixed_key_bytes != 0, shape.single) {
        (true, true) => fast::<true, true, W>,
        (true, false) => fast::<true, false, W>,
        (false, true) => fast::<false, true, W>,
        (false, false) => fast::<false, false, W>,
    };
    run(shape, header, input, state, page, map)?;
    // The last entries of the input once more, from a copy that has room behind it.
    const TAIL: usize = 256;
    let room = fast_input_room::<W>();
    let from = state.at.saturating_sub(TAIL / 2).min(input.len());
    let tail = &input[from..];
    let mut buffer = [0u8; TAIL + 128];
    if tail.len() <= TAIL && room <= 128 {
        buffer[..tail.len()].copy_from_slice(tail);
        state.at -= from;
        run(shape, header, &buffer[..tail.len() + 128], state, page, map)?;
        state.at += from;
        if state.at > input.len() {
            return Err(FoldError::Damaged("cut off"));
        }
    }
    Ok(())
}

/// Bytes that the fast decoder may read from the token on.
const fn fast_input_room<const W: usize>() -> usize {
    2 + 3 * 9 + 16 * W + 8
}

/// 32 bytes of ones, 32 of zeros.
static ONES: [u8; 64] = {
    let mut ones = [0u8; 64];
    let mut i = 0;
    while i < 32 {
        ones[i] = 0xFF;
        i += 1;
    }
    ones
};

#[inline(always)]
fn load<const W: usize>(bytes: &[u8]) -> [u128; W] {
    let mut words = [0u128; W];
    for (w, word) in words.iter_mut().enumerate() {
        let mut chunk = [0u8; 16];
        chunk.copy_from_slice(&bytes[16 * w..16 * w + 16]);
        *word = u128::from_le_bytes(chunk);
    }
    words
}

/// Words whose first `n` bytes (at most 32) are ones.
#[inline(always)]
fn mask<const W: usize>(n: usize) -> [u128; W] {
    load::<W>(&ONES[32 - n..32 - n + 16 * W])
}

#[inline(always)]
fn load_u64(bytes: &[u8]) -> u64 {
    let mut chunk = [0u8; 8];
    chunk.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(chunk)
}

/// The number at `at`; what is none sets the top bit of `seen`. The caller guarantees 8 bytes.
#[inline(always)]
fn fast_number(input: &[u8], at: &mut usize, seen: &mut u64) -> usize {
    let (value, n) = varint::from_word(load_u64(&input[*at..*at + 8]).swap_bytes());
    *at += n;
    *seen |= u64::from(n > 8) << 63;
    value as usize
}

/// Entries from `state` on, as long as input and page have room for whole words. `FIXED`: keys of one length. `SINGLE`: one RID each.
fn fast<const FIXED: bool, const SINGLE: bool, const W: usize>(
    shape: Shape,
    header: Body,
    input: &[u8],
    state: &mut State,
    page: &mut [u8],
    map: usize,
) -> Result<(), FoldError> {
    /// Common prefixes up to this length are written as a whole word.
    const TEMPLATE: usize = 32;
    let prefix = header.common_prefix;
    let in_room = fast_input_room::<W>();
    let out_room = 4 + prefix.max(TEMPLATE) + 16 * W + 8;
    if input.len() < in_room || map < out_room || state.done == 0 {
        return Ok(());
    }
    let (in_last, out_last) = (input.len() - in_room, map - out_room);
    let slot_bits = shape.slot_bits;
    let longest_rest = header.longest_key - prefix;
    let whole_rest = mask::<W>(longest_rest);

    let first_prefix = &page[state.key.start..state.key.start + prefix];
    let mut template = [0u8; TEMPLATE];
    let long_prefix = if prefix <= TEMPLATE {
        template[..prefix].copy_from_slice(first_prefix);
        None
    } else {
        Some(first_prefix.to_vec())
    };
    let mut rest_bytes = state.key.len() - prefix;
    let mut key = [0u128; W];
    {
        let mut bytes = [0u8; 32];
        bytes[..rest_bytes].copy_from_slice(&page[state.key.start + prefix..state.key.end]);
        key.copy_from_slice(&load::<W>(&bytes));
    }
    let (mut at, mut out, mut done, mut linear, mut seen, mut rids) =
        (state.at, state.out, state.done, state.linear, state.seen, state.rids);
    let mut last_key = state.key.start;
    let mut map_at = page.len() - MAP_BYTES * done;

    while done < header.entries && at <= in_last && at >= 16 * W && out <= out_last {
        let token = input[at];
        at += 1;
        let (shared, added, code, more);
        if FIXED {
            let mut suffix = usize::from(token >> 4);
            code = token & 15;
            if suffix == ESCAPE {
                suffix = suffix.saturating_add(fast_number(input, &mut at, &mut seen));
            }
            if SINGLE {
                more = 0;
            } else {
                more = fast_number(input, &mut at, &mut seen);
            }
            if suffix > longest_rest {
                return Err(FoldError::Damaged("suffix length"));
            }
            added = suffix;
            shared = longest_rest - suffix;
        } else {
            let second = input[at];
            at += 1;
            code = second & 15;
            let mut fields = [usize::from(token >> 4), usize::from(token & 15), usize::from(second >> 4)];
            if fields.contains(&ESCAPE) {
                for field in &mut fields {
                    if *field == ESCAPE {
                        *field = field.saturating_add(fast_number(input, &mut at, &mut seen));
                    }
                }
            }
            if fields[0] > rest_bytes {
                return Err(FoldError::Damaged("shared prefix"));
            }
            shared = rest_bytes - fields[0];
            added = fields[1];
            more = fields[2];
            rest_bytes = shared.saturating_add(added);
            if rest_bytes > longest_rest {
                return Err(FoldError::Damaged("key length"));
            }
            if SINGLE && more != 0 {
                return Err(FoldError::Damaged("RID list in a unique index"));
            }
        }
        // The suffix, as it stands `shared` bytes behind the load's start, is in place already.
        let fresh = load::<W>(&input[at - shared..at - shared + 16 * W]);
        let keep = mask::<W>(shared);
        let whole = if FIXED { whole_rest } else { mask::<W>(rest_bytes) };
        for w in 0..W {
            key[w] = ((key[w] & keep[w]) | (fresh[w] & !keep[w])) & whole[w];
        }
        at += added;
        let word = load_u64(&input[at..at + 8]);
        at += usize::from(LENGTH[usize::from(code)]);
        linear = linear.wrapping_add(difference(code, word));
        seen |= linear | u64::from(code == RESERVED) << 63;

        let window = &mut page[out..out + out_room];
        let entry = out;
        let mut o = 0;
        if !FIXED {
            window[..2].copy_from_slice(&((prefix + rest_bytes) as u16).to_le_bytes());
            o += 2;
        }
        if !SINGLE {
            window[o..o + 2].copy_from_slice(&(more.wrapping_add(1) as u16).to_le_bytes());
            o += 2;
        }
        last_key = entry + o;
        match &long_prefix {
            None => window[o..o + TEMPLATE].copy_from_slice(&template),
            Some(bytes) => window[o..o + bytes.len()].copy_from_slice(bytes),
        }
        o += prefix;
        for (w, word) in key.iter().enumerate() {
            window[o + 16 * w..o + 16 * w + 16].copy_from_slice(&word.to_le_bytes());
        }
        o += if FIXED { longest_rest } else { rest_bytes };
        window[o..o + 8].copy_from_slice(&(from_linear(linear, slot_bits) << 8).to_be_bytes());
        out += o + RID_BYTES;

        map_at -= MAP_BYTES;
        let slot = &mut page[map_at..map_at + MAP_BYTES];
        slot[..2].copy_from_slice(&(entry as u16).to_le_bytes());
        slot[2..].copy_from_slice(&(key[0] as u32).swap_bytes().to_le_bytes());

        if !SINGLE && more > 0 {
            if more >= page.len() || out + RID_BYTES * more > map {
                return Err(FoldError::NoRoom("entry"));
            }
            rids += more;
            let mut left = more;
            while left > 0 && at + 8 <= input.len() && out + 8 <= map {
                linear = linear.wrapping_add(fast_number(input, &mut at, &mut seen) as u64 + 1);
                seen |= linear;
                page[out..out + 8].copy_from_slice(&(from_linear(linear, slot_bits) << 8).to_be_bytes());
                out += RID_BYTES;
                left -= 1;
            }
            for _ in 0..left {
                let (gap, n) = varint::read(input, at).ok_or(FoldError::Damaged("RID"))?;
                at += n;
                linear = linear.wrapping_add(gap + 1);
                seen |= linear;
                page[out..out + RID_BYTES].copy_from_slice(&rid_bytes(from_linear(linear, slot_bits)));
                out += RID_BYTES;
            }
        }
        rids += 1;
        done += 1;
    }
    let key_bytes = prefix + if FIXED { longest_rest } else { rest_bytes };
    *state = State { done, at, out, key: last_key..last_key + key_bytes, linear, seen, rids };
    Ok(())
}
