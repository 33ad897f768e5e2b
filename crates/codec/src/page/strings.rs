//! One value of a column of byte strings.
//!
//! Nothing here panics, whatever the bytes: what is no string is an error.

use std::cmp::Ordering;
use std::ops::Range;

use super::bitmap::bits_at;
use super::bits::{BLOCK, bit, load, mask, unpack, unpack_all, unpack_block};
use super::layout::{Entry, Kind, header_rows};
use super::string_rows::line_end;
use crate::CodecError;
use crate::row::{CODE_BITS, Dictionary, MAX_TOKEN_LEN};
use pagefold_types::RECORD_BYTES_MAX;

const DAMAGED: CodecError = CodecError::Page("string outside its heap");
const BAD_CODES: CodecError = CodecError::Page("string of codes");
const NO_CODES: CodecError = CodecError::Page("string codes without a dictionary");

/// Codes that the strings of a block may have together to be read in one pass.
pub(super) const BLOCK_CODES: usize = 1024;

/// Two numbers of so many bits lie in eight bytes from any bit on.
const PAIR_WIDTH_MAX: u32 = 28;

/// The codes of strings, and where each string ends among them.
pub(super) type CodesAndEnds = (Vec<u16>, Vec<usize>);

/// Strings one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap<'a> {
    area: &'a [u8],
    /// Offset of the strings.
    at: usize,
    prefix: &'a [u8],
    ends_at: usize,
    ends_width: u32,
    slope: u32,
    base: i32,
    /// Strings are codes of this dictionary.
    codes: Option<Option<&'a Dictionary>>,
    pub(super) count: usize,
}

/// A column of byte strings of an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings<'a> {
    pub(super) area: &'a [u8],
    pub(super) entry: Entry,
    pub(super) heap: Heap<'a>,
    nulls_at: Option<usize>,
    large_at: Option<usize>,
    all_null: bool,
}

impl<'a> Heap<'a> {
    /// Offset of the strings and of their prefix; `None` when the prefix starts before the area.
    #[inline(always)]
    fn read(area: &'a [u8], entry: Entry, rows: usize, dictionary: Option<&'a Dictionary>) -> Self {
        let outside = entry.outside();
        let (line, place) = (load(area, outside), load(area, outside + 8));
        let at = usize::from(place as u16);
        let prefix_len = usize::from((place >> 16) as u16);
        let prefix = at.checked_sub(prefix_len).and_then(|start| area.get(start..at)).unwrap_or_default();
        let (ends_at, count, ends_width) = if entry.is_string_dictionary() {
            let width = area.get(outside + 16).map_or(0, |width| (*width).min(64));
            (usize::from((place >> 32) as u16), usize::from((place >> 48) as u16), u32::from(width))
        } else {
            (entry.at, rows, entry.width)
        };
        let codes = entry.has_codes().then_some(dictionary);
        Self { area, at, prefix, ends_at, ends_width, slope: line as u32, base: (line >> 32) as i32, codes, count }
    }

    #[inline(always)]
    fn end(&self, index: usize) -> usize {
        self.on_line(index, unpack(self.area, self.ends_at, self.ends_width, index))
    }

    /// The end of a string by its packed number.
    #[inline(always)]
    fn on_line(&self, index: usize, number: u64) -> usize {
        line_end(self.slope, index).wrapping_add(i64::from(self.base)).wrapping_add(number as i64) as usize
    }

    /// Where string `index` starts and ends, in bytes or codes.
    #[inline(always)]
    fn span(&self, index: usize) -> Result<(usize, usize), CodecError> {
        if index >= self.count {
            return Err(DAMAGED);
        }
        let (start, end) = if index > 0 && self.ends_width <= PAIR_WIDTH_MAX {
            // Both ends with one load.
            let first = (index - 1) * self.ends_width as usize;
            let pair = load(self.area, self.ends_at + first / 8) >> (first % 8);
            let mask = mask(self.ends_width);
            (self.on_line(index - 1, pair & mask), self.on_line(index, pair >> self.ends_width & mask))
        } else {
            (if index == 0 { 0 } else { self.end(index - 1) }, self.end(index))
        };
        // Far above what an area holds, far below what could overflow.
        if start <= end && end <= u32::MAX as usize { Ok((start, end)) } else { Err(DAMAGED) }
    }

    /// String `index` where it lies, when it is no codes and has no prefix.
    #[inline(always)]
    pub(super) fn plain(&self, index: usize) -> Result<Option<&'a [u8]>, CodecError> {
        if self.codes.is_some() || !self.prefix.is_empty() {
            return Ok(None);
        }
        let (start, end) = self.span(index)?;
        self.area.get(self.at + start..self.at + end).map(Some).ok_or(DAMAGED)
    }

    /// The prefix, and where the rest of string `index`, which is no codes, lies in the area.
    pub(super) fn plain_span(&self, index: usize) -> Result<(&'a [u8], Range<usize>), CodecError> {
        let (start, end) = self.span(index)?;
        Ok((self.prefix, self.at + start..self.at + end))
    }

    /// Appends string `index`.
    #[inline(always)]
    pub(super) fn append(&self, index: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let (start, end) = self.span(index)?;
        match self.codes {
            None => {
                if !self.prefix.is_empty() {
                    out.extend_from_slice(self.prefix);
                }
                extend(out, self.area, self.at + start..self.at + end)
            }
            Some(dictionary) => self.append_codes(dictionary.ok_or(NO_CODES)?, start, end, out),
        }
    }

    #[inline(never)]
    fn append_codes(&self, dictionary: &Dictionary, start: usize, end: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let limit = ((end - start) * MAX_TOKEN_LEN).min(RECORD_BYTES_MAX);
        let packed = self.packed(end)?;
        dictionary.append_codes(packed, start..end, out, limit, |_| {}).map(drop).ok_or(BAD_CODES)
    }

    /// The codes of all strings, and where each string ends among them. `None` when they are none.
    pub(super) fn all_codes(&self) -> Result<Option<CodesAndEnds>, CodecError> {
        if self.codes.is_none() {
            return Ok(None);
        }
        let mut ends = unpack_all(self.area, self.ends_at, self.ends_width, self.count, |number| number as usize);
        let mut last = 0;
        for (index, end) in ends.iter_mut().enumerate() {
            *end = self.on_line(index, *end as u64);
            if *end < last || *end > u32::MAX as usize {
                return Err(DAMAGED);
            }
            last = *end;
        }
        Ok(Some((unpack_all(self.packed(last)?, 0, CODE_BITS, last, |code| code as u16), ends)))
    }

    /// The area from the codes on, when there are so many.
    #[inline(always)]
    fn packed(&self, codes: usize) -> Result<&'a [u8], CodecError> {
        let there = self.at + (codes * CODE_BITS as usize).div_ceil(8) <= self.area.len();
        self.area.get(self.at..).filter(|_| there).ok_or(DAMAGED)
    }

    /// Appends the first `count` strings of a block of 64, and their ends. False, and nothing appended, when they are not codes or too many. `lengths`: room for one per code.
    ///
    /// One pass over the codes of all strings: how many each has cannot be foreseen.
    #[inline]
    pub(super) fn append_block(
        &self,
        block: usize,
        count: usize,
        lengths: &mut [u32; BLOCK_CODES],
        (ends, out): (&mut Vec<i32>, &mut Vec<u8>),
    ) -> Result<bool, CodecError> {
        let Some(dictionary) = self.codes else { return Ok(false) };
        let dictionary = dictionary.ok_or(NO_CODES)?;
        let mut numbers = [0; BLOCK];
        unpack_block(self.area, self.ends_at, self.ends_width, block, &mut numbers);
        let first = block * BLOCK;
        let start = if first == 0 { 0 } else { self.end(first - 1) };
        let mut code_ends = [0; BLOCK];
        let mut last = start;
        for (index, (end, number)) in code_ends.iter_mut().zip(&numbers[..count]).enumerate() {
            *end = self.on_line(first + index, *number);
            if *end < last || *end > u32::MAX as usize {
                return Err(DAMAGED);
            }
            last = *end;
        }
        if last - start > BLOCK_CODES {
            return Ok(false);
        }
        let (base, mut at) = (out.len(), 0);
        let packed = self.packed(last)?;
        let len = dictionary.append_codes(packed, start..last, out, (last - start) * MAX_TOKEN_LEN, |len| {
            if let Some(length) = lengths.get_mut(at) {
                *length = len as u32;
            }
            at += 1;
        });
        if len.is_none() {
            return Err(BAD_CODES);
        }
        let mut before = 0;
        for end in &code_ends[..count] {
            let len = (end - start).checked_sub(1).and_then(|code| lengths.get(code)).map_or(0, |len| *len as usize);
            if len - before > RECORD_BYTES_MAX {
                return Err(BAD_CODES);
            }
            before = len;
            ends.push((base + len) as i32);
        }
        Ok(true)
    }

    /// How string `index` compares with `other`; as if blanks without end followed both, when `padded`. Decodes as few codes as possible.
    pub(super) fn compare(&self, index: usize, other: &[u8], padded: bool) -> Result<Ordering, CodecError> {
        let mut rest = other;
        let mut decided = Ordering::Equal;
        self.each_part(index, |part| {
            let both = part.len().min(rest.len());
            decided = part[..both].cmp(&rest[..both]);
            if decided.is_eq() && part.len() > both {
                decided = if padded { beyond(&part[both..]) } else { Ordering::Greater };
            }
            rest = &rest[both..];
            decided.is_eq()
        })?;
        Ok(match decided {
            Ordering::Equal if rest.is_empty() => Ordering::Equal,
            Ordering::Equal if padded => beyond(rest).reverse(),
            Ordering::Equal => Ordering::Less,
            decided => decided,
        })
    }

    /// Does string `index` begin so? Decodes as few codes as possible.
    pub(super) fn begins_with(&self, index: usize, beginning: &[u8]) -> Result<bool, CodecError> {
        let (mut rest, mut same) = (beginning, true);
        self.each_part(index, |part| {
            let both = part.len().min(rest.len());
            same = part[..both] == rest[..both];
            rest = &rest[both..];
            same && !rest.is_empty()
        })?;
        Ok(same && rest.is_empty())
    }

    /// Hands out the parts of string `index` until told to stop by `false`.
    fn each_part(&self, index: usize, mut step: impl FnMut(&[u8]) -> bool) -> Result<(), CodecError> {
        let (start, end) = self.span(index)?;
        match self.codes {
            None => {
                let value = self.area.get(self.at + start..self.at + end).ok_or(DAMAGED)?;
                let _ = step(self.prefix) && step(value);
            }
            Some(dictionary) => {
                let dictionary = dictionary.ok_or(NO_CODES)?;
                if self.at + (end * CODE_BITS as usize).div_ceil(8) > self.area.len() {
                    return Err(DAMAGED);
                }
                for index in start..end {
                    let token = dictionary.token(unpack(self.area, self.at, CODE_BITS, index) as u16);
                    if token.is_empty() {
                        return Err(CodecError::Page("code without a token"));
                    }
                    if !step(token) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends a part of `area`. Most are short: one copy of a constant length takes less time than one of any length.
#[inline(always)]
fn extend(out: &mut Vec<u8>, area: &[u8], part: Range<usize>) -> Result<(), CodecError> {
    const SHORT: usize = 32;
    match area.get(part.start..).and_then(<[u8]>::first_chunk::<SHORT>) {
        Some(chunk) if part.len() <= SHORT => {
            let len = out.len() + part.len();
            out.extend_from_slice(chunk);
            out.truncate(len);
        }
        _ => out.extend_from_slice(area.get(part).ok_or(DAMAGED)?),
    }
    Ok(())
}

/// How these bytes compare with blanks.
fn beyond(bytes: &[u8]) -> Ordering {
    bytes.iter().map(|byte| byte.cmp(&b' ')).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl<'a> Strings<'a> {
    #[inline(always)]
    pub(super) fn of(area: &'a [u8], column: usize, dictionary: Option<&'a Dictionary>) -> Self {
        let entry = Entry::read(area, column);
        let rows = header_rows(area);
        let heap = Heap::read(area, entry, rows, dictionary);
        let (nulls_at, large_at) = (entry.nulls_at(rows), entry.large_at(rows));
        Self { area, entry, heap, nulls_at, large_at, all_null: !entry.is_string() }
    }

    #[inline(always)]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls_at.is_some_and(|at| bit(self.area, at, row)) || self.all_null
    }

    /// A bit for each row of a block: it is NULL.
    #[inline]
    pub(super) fn nulls(&self, block: usize) -> u64 {
        if self.all_null { u64::MAX } else { self.nulls_at.map_or(0, |at| bits_at(self.area, at, block * BLOCK)) }
    }

    #[inline(always)]
    pub(super) fn is_large(&self, row: usize) -> bool {
        self.large_at.is_some_and(|at| bit(self.area, at, row))
    }

    /// May any row be a large-value reference?
    pub(super) fn has_large(&self) -> bool {
        self.large_at.is_some()
    }

    #[inline(always)]
    pub(super) fn has_dictionary(&self) -> bool {
        self.entry.is_string_dictionary()
    }

    /// Number of the row's string in the heap.
    #[inline(always)]
    pub(super) fn index(&self, row: usize) -> usize {
        if self.has_dictionary() { unpack(self.area, self.entry.at, self.entry.width, row) as usize } else { row }
    }
}

const _: () = assert!(Kind::Bytes.outside_bytes() + 5 == Kind::BytesDictionary.outside_bytes());
