//! The fast decoder of folded bodies: keys that differ from the page's common prefix in at most 32 bytes.
//!
//! Method: the key before is kept in registers, as a copy from where it was just written would wait for that write. The suffix is loaded from so many bytes before its place that
//! it stands where it belongs, and blended in by a mask. Prefix, key, RID and map entry are written as whole words; what they write too much, the next ones overwrite.
//!
//! It reads and writes through pointers. With slices the same method takes 133 instructions and 6.2 ns an entry of the index report's test index, with pointers 84 and 4.2 ns
//! (`lab/benches/index_expand.rs`, hot). What makes each access in bounds is checked once an entry:
//! - input: at least [`BEHIND`] bytes lie before the token, [`AHEAD`] from it on;
//! - page: at least [`OUT_ROOM`] bytes (and a long prefix) lie between the entry's start and the key map;
//! - lengths: shared and added bytes are within the 32 bytes, before they are used.
//!
//! Where these end, the exact decoder goes on.

use super::FoldError;
use super::cost::ESCAPE;
use super::expand::{Body, State, further_rids};
use super::layout::{MAP_BYTES, RID_BYTES, Shape};
use super::rid_code::{LENGTH, RESERVED, difference};
use super::varint;

/// A suffix is loaded from at most so many bytes before the token.
const BEHIND: usize = 32;
/// Bytes read from a token on, at most: 2 of tokens, 3 escapes of up to 9, a suffix of 32 or a load of 32 from its start, 8 of a RID.
const AHEAD: usize = 2 + 3 * 9 + 32 + 8;
/// Common prefixes up to this length are written as whole words.
const TEMPLATE: usize = 32;
/// Bytes written from an entry's start on, at most, but for a longer prefix: 4 of lengths, the prefix as a whole word, a key of 32, 8 of a RID. The map entry of the last entry begins 2 bytes below the
/// map, thus 2 more.
const OUT_ROOM: usize = 4 + TEMPLATE + 32 + 8 + 2;

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

/// Bytes of token, suffix and RID, by the token of an entry of a fixed-length key with one RID and no escape.
static STEP: [u8; 256] = {
    let mut step = [0u8; 256];
    let mut token = 0;
    while token < 256 {
        step[token] = 1 + (token >> 4) as u8 + LENGTH[token & 15];
        token += 1;
    }
    step
};

/// Up to 32 bytes of a key.
type Words<const W: usize> = [u128; W];

/// # Safety
/// 16 `W` bytes from `from` on can be read.
#[inline(always)]
#[expect(unsafe_code, reason = "the module's reason")]
unsafe fn load<const W: usize>(from: *const u8) -> Words<W> {
    // SAFETY: the caller's promise; unaligned.
    std::array::from_fn(|w| u128::from_le(unsafe { from.add(16 * w).cast::<u128>().read_unaligned() }))
}

/// # Safety
/// 8 bytes from `from` on can be read.
#[inline(always)]
#[expect(unsafe_code, reason = "the module's reason")]
unsafe fn load_u64(from: *const u8) -> u64 {
    // SAFETY: the caller's promise; unaligned.
    unsafe { from.cast::<u64>().read_unaligned() }
}

/// # Safety
/// 8 bytes from `to` on can be written.
#[inline(always)]
#[expect(unsafe_code, reason = "the module's reason")]
unsafe fn store_u64(to: *mut u8, word: u64) {
    // SAFETY: the caller's promise; unaligned.
    unsafe { to.cast::<u64>().write_unaligned(word) }
}

/// Words whose first `n` bytes are ones, for `n` up to 32.
#[inline(always)]
fn mask<const W: usize>(n: usize) -> Words<W> {
    debug_assert!(n <= 32 && W <= 2);
    // SAFETY: 32 - n + 16 W is at most 64.
    #[expect(unsafe_code, reason = "the module's reason")]
    unsafe {
        load::<W>(ONES.as_ptr().add(32 - n.min(32)))
    }
}

/// The number at `at`, whose bytes it adds to `at`; what is none sets the top bit of `seen`.
///
/// # Safety
/// 8 bytes from there on can be read.
#[inline(always)]
#[expect(unsafe_code, reason = "the module's reason")]
unsafe fn number(input: *const u8, at: &mut usize, seen: &mut u64) -> usize {
    // SAFETY: the caller's promise.
    let (value, n) = varint::from_word(u64::from_be(unsafe { load_u64(input.add(*at)) }));
    *at += n;
    *seen |= u64::from(n > 8) << 63;
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Decodes entries from `state` on, as far as this decoder can. The key map begins at `map`.
///
/// # Errors
/// When the input is no body.
pub(super) fn entries(shape: Shape, header: Body, input: &[u8], state: &mut State, page: &mut [u8], map: usize) -> Result<(), FoldError> {
    let Some(rest) = header.longest_key.checked_sub(header.common_prefix) else { return Ok(()) };
    let single = shape.single;
    let run = match (shape.fixed_key_bytes != 0, rest) {
        (true, ..=16) if single => run::<true, true, 1>,
        (true, ..=16) => run::<true, false, 1>,
        (false, ..=16) if single => run::<false, true, 1>,
        (false, ..=16) => run::<false, false, 1>,
        (true, ..=32) if single => run::<true, true, 2>,
        (true, ..=32) => run::<true, false, 2>,
        (false, ..=32) if single => run::<false, true, 2>,
        (false, ..=32) => run::<false, false, 2>,
        _ => return Ok(()),
    };
    run(shape, header, input, state, page, map)?;
    // The last entries of the input from a copy that has room behind it.
    const TAIL: usize = BEHIND + 2 * AHEAD;
    let from = state.at.saturating_sub(BEHIND).min(input.len());
    let tail = &input[from..];
    if tail.len() <= TAIL {
        let mut buffer = [0u8; TAIL + AHEAD];
        buffer[..tail.len()].copy_from_slice(tail);
        state.at -= from;
        run(shape, header, &buffer[..tail.len() + AHEAD], state, page, map)?;
        state.at += from;
        if state.at > input.len() {
            return Err(FoldError::Damaged("cut off"));
        }
    }
    Ok(())
}

/// `FIXED`: keys of one length. `SINGLE`: one RID each. `W`: words of 16 bytes for what follows the common prefix.
#[expect(unsafe_code, reason = "the module's reason")]
fn run<const FIXED: bool, const SINGLE: bool, const W: usize>(
    shape: Shape,
    header: Body,
    input: &[u8],
    state: &mut State,
    page: &mut [u8],
    map: usize,
) -> Result<(), FoldError> {
    let prefix = header.common_prefix;
    let long = prefix > TEMPLATE;
    let longest_rest = header.longest_key - prefix;
    let lengths = 2 * usize::from(!FIXED) + 2 * usize::from(!SINGLE);
    let out_room = OUT_ROOM + if long { prefix } else { 0 };
    let page_bytes = page.len();
    // What the pointers below rely on, whoever calls.
    let sound = state.done > 0
        && MAP_BYTES.checked_mul(header.entries).and_then(|bytes| bytes.checked_add(map)) == Some(page_bytes)
        && longest_rest <= 16 * W
        && (prefix..=header.longest_key).contains(&state.key.len())
        && state.key.end <= page_bytes
        && state.key.start >= lengths;
    if !sound || map < out_room || input.len() < AHEAD {
        return Ok(());
    }
    let (in_last, out_last) = (input.len() - AHEAD, map - out_room);
    let from = input.as_ptr();
    let slot_bits = u32::from(shape.slot_bits) & 15;
    let slot_mask = (1u64 << slot_bits) - 1;
    let head_mask = u32::MAX.checked_shl(32 - 8 * longest_rest.min(4) as u32).unwrap_or(0);

    let mut template = [0u8; TEMPLATE];
    let mut long_prefix = Vec::new();
    let first_prefix = &page[state.key.start..state.key.start + prefix];
    if long {
        long_prefix.extend_from_slice(first_prefix);
    } else {
        template[..prefix].copy_from_slice(first_prefix);
    }
    let mut rest = state.key.len() - prefix;
    let mut bytes = [0u8; 32];
    bytes[..rest].copy_from_slice(&page[state.key.start + prefix..state.key.end]);
    // SAFETY: 16 W is at most 32.
    let mut key = unsafe { load::<W>(bytes.as_ptr()) };
    let (mut at, mut out, mut done, mut linear, mut seen, mut rids) =
        (state.at, state.out, state.done, state.linear, state.seen, state.rids);
    let mut last_key = state.key.start;

    while done < header.entries && at <= in_last && at >= BEHIND && out <= out_last {
        let more;
        let to = page.as_mut_ptr();
        // SAFETY (all of the loop's body, up to further RIDs): `at` is in BEHIND..=len - AHEAD and `out` at most `map` - OUT_ROOM - long prefix, as the loop's condition says; offsets from them are
        // bounded as the constants' comments say, since suffixes and keys are checked against `longest_rest`, at most 32, before they are used. `done` is below `entries`, so the map entry lies at `map`
        // or above and its two bytes more are not below `map` - 2.
        unsafe {
            let token = *from.add(at);
            let start = at;
            at += 1;
            let (shared, added, code);
            let mut next = 0;
            if FIXED {
                let mut suffix = usize::from(token >> 4);
                code = token & 15;
                if SINGLE && suffix != ESCAPE {
                    next = start + usize::from(STEP[usize::from(token)]);
                }
                if suffix == ESCAPE {
                    suffix = suffix.saturating_add(number(from, &mut at, &mut seen));
                }
                more = if SINGLE { 0 } else { number(from, &mut at, &mut seen) };
                if suffix > longest_rest {
                    return Err(FoldError::Damaged("suffix length"));
                }
                added = suffix;
                shared = longest_rest - suffix;
            } else {
                let second = *from.add(at);
                at += 1;
                code = second & 15;
                let mut fields = [usize::from(token >> 4), usize::from(token & 15), usize::from(second >> 4)];
                if fields.contains(&ESCAPE) {
                    for field in &mut fields {
                        if *field == ESCAPE {
                            *field = field.saturating_add(number(from, &mut at, &mut seen));
                        }
                    }
                }
                let [dropped, new, others] = fields;
                if dropped > rest {
                    return Err(FoldError::Damaged("shared prefix"));
                }
                shared = rest - dropped;
                added = new;
                more = others;
                rest = shared.saturating_add(added);
                if rest > longest_rest {
                    return Err(FoldError::Damaged("key length"));
                }
                if SINGLE && more != 0 {
                    return Err(FoldError::Damaged("RID list in a unique index"));
                }
            }
            let fresh = load::<W>(from.add(at - shared));
            let keep = mask::<W>(shared);
            for w in 0..W {
                key[w] = ((key[w] ^ fresh[w]) & keep[w]) ^ fresh[w];
            }
            at += added;
            if code < 4 {
                linear = linear.wrapping_add(u64::from(code) + 1);
            } else {
                linear = linear.wrapping_add(difference(code, u64::from_le(load_u64(from.add(at)))));
                seen |= u64::from(code == RESERVED) << 63;
            }
            seen |= linear;
            at = if next != 0 { next } else { at + usize::from(LENGTH[usize::from(code)]) };

            // Eight bytes from two below: the next map entry, or what is free, takes those two.
            let head = if FIXED {
                (key[0] as u32).swap_bytes() & head_mask
            } else {
                (key[0] as u32).swap_bytes() & u32::MAX.checked_shl(32 - 8 * rest.min(4) as u32).unwrap_or(0)
            };
            done += 1;
            let map_entry = u64::from(out as u16) << 16 | u64::from(head) << 32;
            store_u64(to.add(page_bytes - MAP_BYTES * done - 2), map_entry.to_le());

            let entry = to.add(out);
            let mut o = 0;
            if !FIXED {
                entry.cast::<u16>().write_unaligned(((prefix + rest) as u16).to_le());
                o += 2;
            }
            if !SINGLE {
                entry.add(o).cast::<u16>().write_unaligned((more.wrapping_add(1) as u16).to_le());
                o += 2;
            }
            last_key = out + o;
            if long {
                std::ptr::copy_nonoverlapping(long_prefix.as_ptr(), entry.add(o), prefix);
            } else {
                entry.add(o).cast::<[u8; TEMPLATE]>().write_unaligned(template);
            }
            o += prefix;
            for (w, word) in key.iter().enumerate() {
                entry.add(o + 16 * w).cast::<u128>().write_unaligned(word.to_le());
            }
            o += if FIXED { longest_rest } else { rest };
            let rid = (linear >> slot_bits) << 12 | (linear & slot_mask);
            store_u64(entry.add(o), (rid << 8).to_be());
            out += o + RID_BYTES;
        }
        rids += 1;
        if !SINGLE && more > 0 {
            if more >= page_bytes || out + RID_BYTES * more > map {
                return Err(FoldError::NoRoom("entry"));
            }
            let mut list = State { done, at, out, key: 0..0, linear, seen, rids };
            let left = list_rids(slot_bits, input, &mut list, &mut page[..map], more);
            further_rids(shape, input, &mut list, page, left)?;
            (at, out, linear, seen) = (list.at, list.out, list.linear, list.seen);
            rids += more;
        }
    }
    let key_bytes = prefix + if FIXED { longest_rest } else { rest };
    *state = State { done, at, out, key: last_key..last_key + key_bytes, linear, seen, rids };
    Ok(())
}

/// RIDs of a list after the first, as long as 8 bytes of input and room for 8 RIDs are left; returns how many of `count` are to come.
///
/// Gaps often are of one length, so eight gaps of one byte, four of two or two of three are taken at once: their lengths need not be found one after the other.
#[expect(unsafe_code, reason = "the module's reason")]
#[inline]
fn list_rids(slot_bits: u32, input: &[u8], state: &mut State, page: &mut [u8], count: usize) -> usize {
    const ROOM: usize = 8 * RID_BYTES + 1;
    let slot_mask = (1u64 << slot_bits) - 1;
    let (mut at, mut out, mut linear, mut seen, mut left) = (state.at, state.out, state.linear, state.seen, count);
    if input.len() < 8 || page.len() < ROOM {
        return count;
    }
    let (in_last, out_last) = (input.len() - 8, page.len() - ROOM);
    let (from, to) = (input.as_ptr(), page.as_mut_ptr());
    while left > 0 && at <= in_last && out <= out_last {
        // SAFETY: 8 bytes of input and 8 RIDs and a byte of room are there, as the loop's condition says; each turn takes no more.
        unsafe {
            let word = u64::from_be(load_u64(from.add(at)));
            let mut put = |gap: u64| {
                linear = linear.wrapping_add(gap + 1);
                let rid = (linear >> slot_bits) << 12 | (linear & slot_mask);
                store_u64(to.add(out), (rid << 8).to_be());
                out += RID_BYTES;
            };
            if word & 0xC000_C000_C000_C000 == 0x8000_8000_8000_8000 && left >= 4 {
                for shift in [48, 32, 16, 0] {
                    put(word >> shift & 0x3FFF);
                }
                at += 8;
                left -= 4;
            } else if word & 0x8080_8080_8080_8080 == 0 && left >= 8 {
                for shift in [56, 48, 40, 32, 24, 16, 8, 0] {
                    put(word >> shift & 0x7F);
                }
                at += 8;
                left -= 8;
            } else if word & 0xE000_00E0_0000_0000 == 0xC000_00C0_0000_0000 && left >= 2 {
                put(word >> 40 & 0x1F_FFFF);
                put(word >> 16 & 0x1F_FFFF);
                at += 6;
                left -= 2;
            } else {
                let (gap, n) = varint::from_word(word);
                put(gap);
                seen |= u64::from(n > 8) << 63;
                at += n;
                left -= 1;
            }
        }
        // RIDs only grow within a list, but a sum that wraps around must not be missed.
        seen |= linear;
    }
    (state.at, state.out, state.linear, state.seen) = (at, out, linear, seen);
    left
}
