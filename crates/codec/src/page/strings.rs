//! One value of a column of byte strings.
//!
//! Nothing here panics, whatever the bytes: what is no string is an error.

use std::cmp::Ordering;
use std::ops::Range;

use super::bits::{bit, load, mask, unpack};
use super::layout::{Entry, Kind, header_rows};
use super::string_rows::line_end;
use crate::CodecError;
use crate::row::{CODE_BITS, Dictionary, MAX_TOKEN_LEN};
use pagefold_types::RECORD_BYTES_MAX;

const DAMAGED: CodecError = CodecError::Page("string outside its heap");
const NO_CODES: CodecError = CodecError::Page("string codes without a dictionary");

/// Two numbers of so many bits lie in eight bytes from any bit on.
const PAIR_WIDTH_MAX: u32 = 28;

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
    area: &'a [u8],
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
    #[inline]
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

    #[inline]
    fn append_codes(&self, dictionary: &Dictionary, start: usize, end: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        if self.at + (end * CODE_BITS as usize).div_ceil(8) > self.area.len() {
            return Err(DAMAGED);
        }
        // Tokens are copied as bytes of a constant number, as in decoding rows; what is too much is cut off.
        let longest = out.len() + RECORD_BYTES_MAX;
        out.reserve(((end - start + 1) * MAX_TOKEN_LEN).min(RECORD_BYTES_MAX + MAX_TOKEN_LEN));
        for index in start..end {
            let (token, len) = dictionary.wide_token(unpack(self.area, self.at, CODE_BITS, index) as u16);
            let end = out.len() + len;
            if len == 0 || end > longest {
                return Err(CodecError::Page("string of codes"));
            }
            out.extend_from_slice(token);
            out.truncate(end);
        }
        Ok(())
    }

    /// How string `index` compares with `other`; as if blanks without end followed both, when `padded`. Decodes as few codes as possible.
    pub(super) fn compare(&self, index: usize, other: &[u8], padded: bool) -> Result<Ordering, CodecError> {
        let (start, end) = self.span(index)?;
        let mut rest = other;
        let mut decided = Ordering::Equal;
        let mut step = |part: &[u8]| {
            let both = part.len().min(rest.len());
            decided = part[..both].cmp(&rest[..both]);
            if decided.is_eq() && part.len() > both {
                decided = if padded { beyond(&part[both..]) } else { Ordering::Greater };
            }
            rest = &rest[both..];
            decided.is_eq()
        };
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
        Ok(match decided {
            Ordering::Equal if rest.is_empty() => Ordering::Equal,
            Ordering::Equal if padded => beyond(rest).reverse(),
            Ordering::Equal => Ordering::Less,
            decided => decided,
        })
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
