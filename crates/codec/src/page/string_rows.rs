//! Collects the values of a column of byte strings and encodes the first n of them.
//!
//! Equal values are found while rows come in, so each is turned into string codes once. A row that is NULL has no bytes; in a dictionary it has the number of
//! the row before. What is chosen for n rows depends on these rows alone.

use std::ops::Range;

use super::bits::{pack, pack_codes, packed_len};
use super::encoder::Parts;
use super::int_rows::{PROBE_DISTINCT, PROBE_ROWS, SLOPE_BITS, index_bits};
use super::layout::{Entry, Kind, LARGE, NULLS, OUTSIDE};
use super::nulls::RowBits;
use super::numbers::Packing;
use crate::bytes::common_prefix;
use crate::row::{CODE_BITS, Encoder};

/// More distinct strings make no dictionary.
const DISTINCT_MAX: usize = 1_024;
const SLOT_BITS: u32 = 11;
const _: () = assert!(DISTINCT_MAX * 2 <= 1 << SLOT_BITS);

/// A value; the counts are of all values up to and with it.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    bytes: u32,
    codes: u32,
    /// Bytes that all of them begin with.
    prefix: u32,
}

/// A row; the counts are of all rows up to and with it.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Number of its value.
    id: u32,
    values: u32,
    bytes: u32,
    codes: u32,
}

/// A value that some row has.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownValue {
    id: u32,
    /// Its length in bytes, and in codes.
    pub(super) bytes: u32,
    codes: u32,
}

/// Where the codes of a value that is new come from.
#[derive(Clone, Copy)]
pub(super) enum CodesOf<'a> {
    Unknown,
    Encoder(&'a Encoder),
    Known(&'a [u16]),
}

/// The values of a column of byte strings, one a row.
#[derive(Debug)]
pub(super) struct StringRows {
    bytes: Vec<u8>,
    codes: Vec<u16>,
    values: Vec<Value>,
    rows: Vec<Row>,
    /// Rows from here on may repeat values that are not known to be equal.
    distinct_rows: usize,
    /// Hash table: number of a value + 1.
    slots: Vec<u16>,
    nulls: RowBits,
    nullable: bool,
    large: RowBits,
    /// Room to work in, by value of other rows: what it is here.
    known: Vec<Option<KnownValue>>,
}

/// Strings one behind the other: how they are kept.
#[derive(Clone, Copy, Debug)]
struct Heap {
    coded: bool,
    /// Bytes that all begin with, kept once; 0 with codes.
    prefix: usize,
    bytes: usize,
}

/// Where each string of a heap ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    slope: u32,
    packing: Packing,
}

/// How the first rows of a column are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringPlan {
    kind: Kind,
    heap: Heap,
    ends: Ends,
    /// Distinct values, when there is a dictionary.
    count: usize,
    nulls: bool,
    large: bool,
    /// Bytes of parameters behind the directory.
    pub(super) outside_bytes: usize,
    /// Bytes of bitmaps, numbers, ends and strings.
    pub(super) data_bytes: usize,
}

impl StringPlan {
    /// Name of the encoding and bits a row of the packed numbers.
    pub(super) fn describe(&self) -> (Kind, u32) {
        (self.kind, if self.kind.is_string_dictionary() { index_bits(self.count) } else { self.ends.packing.width })
    }
}

impl StringRows {
    pub(super) fn new(nullable: bool) -> Self {
        Self {
            bytes: Vec::new(),
            codes: Vec::new(),
            values: Vec::new(),
            rows: Vec::new(),
            distinct_rows: usize::MAX,
            slots: vec![0; 1 << SLOT_BITS],
            nulls: RowBits::default(),
            nullable,
            large: RowBits::default(),
            known: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.codes.clear();
        self.values.clear();
        self.rows.clear();
        self.distinct_rows = usize::MAX;
        self.slots.fill(0);
        self.nulls.clear();
        self.large.clear();
    }

    fn bytes_of(&self, id: usize) -> &[u8] {
        let start = id.checked_sub(1).map_or(0, |before| self.values[before].bytes as usize);
        &self.bytes[start..self.values[id].bytes as usize]
    }

    /// The values, each once unless there are too many.
    pub(super) fn distinct_values(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.values.len()).map(|id| self.bytes_of(id))
    }

    fn codes_of(&self, id: usize) -> &[u16] {
        let start = id.checked_sub(1).map_or(0, |before| self.values[before].codes as usize);
        &self.codes[start..self.values[id].codes as usize]
    }

    /// Bytes of the values of the first `rows` rows.
    pub(super) fn bytes(&self, rows: usize) -> usize {
        rows.checked_sub(1).map_or(0, |last| self.rows[last].bytes as usize)
    }

    /// A row. `large`: the bytes are a large-value reference. Gives its value.
    pub(super) fn push(&mut self, value: &[u8], large: bool, codes: CodesOf<'_>) -> KnownValue {
        let id = self.id(value, codes);
        let value = KnownValue { id: id as u32, bytes: value.len() as u32, codes: self.codes_of(id).len() as u32 };
        self.push_value(value, large);
        value
    }

    /// A row that has this value. For as long as equal values are [known](Self::knows_equal_values) to be equal.
    #[inline]
    pub(super) fn push_known(&mut self, value: KnownValue) {
        self.push_value(value, false);
    }

    /// Rows of another column, with the codes that are known there. A value is looked up once, where equal ones are known to be equal there.
    pub(super) fn push_rows(&mut self, from: &StringRows, rows: Range<usize>) {
        let mut known = std::mem::take(&mut self.known);
        known.clear();
        if from.distinct_rows == usize::MAX {
            known.resize(from.values.len(), None);
        }
        self.reserve(rows.len());
        for row in rows {
            if from.nullable && from.nulls.get(row) {
                self.push_null();
                continue;
            }
            let (id, large) = (from.rows[row].id as usize, from.large.get(row));
            match known.get(id).copied().flatten() {
                Some(value) if self.knows_equal_values() => self.push_value(value, large),
                _ => {
                    let value = self.push(from.bytes_of(id), large, CodesOf::Known(from.codes_of(id)));
                    if let Some(known) = known.get_mut(id) {
                        *known = Some(value);
                    }
                }
            }
        }
        self.known = known;
    }

    /// There is room for so many rows more.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    #[inline]
    fn push_value(&mut self, value: KnownValue, large: bool) {
        let before = self.rows.last().copied().unwrap_or_default();
        self.large.push(large);
        if self.nullable {
            self.nulls.push(false);
        }
        self.rows.push(Row {
            id: value.id,
            values: self.values.len() as u32,
            bytes: before.bytes + value.bytes,
            codes: before.codes + value.codes,
        });
    }

    pub(super) fn push_null(&mut self) {
        debug_assert!(self.nullable);
        self.large.push(false);
        self.nulls.push(true);
        self.rows.push(self.rows.last().copied().unwrap_or_default());
    }

    /// Are values of the next row that are equal to others still found?
    #[inline]
    pub(super) fn knows_equal_values(&mut self) -> bool {
        if self.rows.len() == PROBE_ROWS && self.values.len() > PROBE_DISTINCT {
            self.distinct_rows = PROBE_ROWS.min(self.distinct_rows);
        }
        self.distinct_rows == usize::MAX
    }

    /// Number of the value; a new one when it is not known.
    fn id(&mut self, value: &[u8], codes: CodesOf<'_>) -> usize {
        if self.knows_equal_values() {
            let mut slot = (hash(value) >> (u64::BITS - SLOT_BITS)) as usize;
            loop {
                match usize::from(self.slots[slot]) {
                    0 if self.values.len() == DISTINCT_MAX => {
                        self.distinct_rows = self.rows.len();
                        break;
                    }
                    0 => {
                        self.slots[slot] = self.values.len() as u16 + 1;
                        break;
                    }
                    id if self.bytes_of(id - 1) == value => return id - 1,
                    _ => slot = (slot + 1) % (1 << SLOT_BITS),
                }
            }
        }
        let prefix = match self.values.last() {
            Some(last) => common_prefix(&self.bytes_of(0)[..last.prefix as usize], value),
            None => value.len(),
        };
        self.bytes.extend_from_slice(value);
        match codes {
            CodesOf::Unknown => {}
            CodesOf::Encoder(encoder) => encoder.codes(value, |code| self.codes.push(code)),
            CodesOf::Known(codes) => self.codes.extend_from_slice(codes),
        }
        let prefix = prefix.min(usize::from(u16::MAX)) as u32;
        self.values.push(Value { bytes: self.bytes.len() as u32, codes: self.codes.len() as u32, prefix });
        self.values.len() - 1
    }

    /// The smallest encoding of the first `rows` rows (at least one). `coded`: string codes are known.
    pub(super) fn plan(&self, rows: usize, coded: bool, work: &mut Vec<i64>) -> StringPlan {
        let nulls = if self.nullable { self.nulls.count(rows) } else { 0 };
        let large = self.large.count(rows) > 0;
        let none = Heap { coded: false, prefix: 0, bytes: 0 };
        let ends = Ends { slope: 0, packing: Packing::default() };
        let mut best = StringPlan {
            kind: Kind::Null,
            heap: none,
            ends,
            count: 0,
            nulls: nulls > 0 && nulls < rows,
            large,
            outside_bytes: 0,
            data_bytes: if nulls == rows { 0 } else { usize::MAX },
        };
        if nulls == rows {
            return best;
        }
        let last = self.rows[rows - 1];
        let count = last.values as usize;
        let values = self.values[count - 1];
        let prefix = values.prefix as usize;
        // NULL rows have no bytes, so no prefix either.
        let cut = |bytes: u32, strings: usize| bytes as usize - prefix * strings + prefix;
        let code_bytes = |codes: u32| packed_len(codes as usize, CODE_BITS);
        let mut heaps = [None; 4];
        if rows <= self.distinct_rows {
            heaps[0] = Some((Kind::BytesDictionary, Heap { coded: false, prefix, bytes: cut(values.bytes, count) }));
            heaps[1] = coded.then(|| (Kind::CodesDictionary, Heap { coded: true, prefix: 0, bytes: code_bytes(values.codes) }));
        }
        heaps[2] = Some((Kind::Bytes, Heap { coded: false, prefix, bytes: cut(last.bytes, rows - nulls) }));
        heaps[3] = coded.then(|| (Kind::Codes, Heap { coded: true, prefix: 0, bytes: code_bytes(last.codes) }));
        // The shortest heap first: most others are then longer by themselves.
        heaps.sort_by_key(|heap| heap.map_or(usize::MAX, |(_, heap)| heap.bytes));
        for (kind, heap) in heaps.into_iter().flatten() {
            let outside_bytes = kind.outside_bytes();
            let mut data_bytes = heap.bytes + if kind.is_string_dictionary() { packed_len(rows, index_bits(count)) } else { 0 };
            let least = best.data_bytes.saturating_add(best.outside_bytes);
            if data_bytes + outside_bytes >= least {
                continue;
            }
            let ends = self.ends(kind, heap, if kind.is_string_dictionary() { count } else { rows }, work);
            data_bytes += ends.packing.len(work.len());
            if data_bytes + outside_bytes < least {
                best = StringPlan { kind, heap, ends, count, outside_bytes, data_bytes, ..best };
            }
        }
        best.data_bytes += rows.div_ceil(8) * (usize::from(best.nulls) + usize::from(best.large));
        best
    }

    /// Where the strings end; `work` becomes what is packed.
    fn ends(&self, kind: Kind, heap: Heap, count: usize, work: &mut Vec<i64>) -> Ends {
        let (mut strings, skip_nulls) = (0, self.nullable && !kind.is_string_dictionary());
        let mut end = |index: usize, bytes: u32, codes: u32| {
            strings += usize::from(!(skip_nulls && self.nulls.get(index)));
            if heap.coded { i64::from(codes) } else { i64::from(bytes) - (heap.prefix * strings) as i64 }
        };
        work.clear();
        if kind.is_string_dictionary() {
            work.extend(self.values[..count].iter().enumerate().map(|(index, value)| end(index, value.bytes, value.codes)));
        } else {
            work.extend(self.rows[..count].iter().enumerate().map(|(index, row)| end(index, row.bytes, row.codes)));
        }
        let slope = ((work[count - 1] << SLOPE_BITS) / count as i64).min(i64::from(u32::MAX)) as u32;
        work.iter_mut().enumerate().for_each(|(index, end)| *end -= line_end(slope, index));
        Ends { slope, packing: Packing::plain(work) }
    }

    /// Writes the first `rows` rows as planned and returns the column's entry.
    pub(super) fn write(&self, plan: &StringPlan, rows: usize, work: &mut Vec<i64>, parts: &mut Parts) -> Entry {
        let (kind, outside) = (plan.kind, parts.outside_at());
        if kind == Kind::Null {
            return Entry::new(kind, 0, 0, parts.data_at(), 0);
        }
        if plan.large {
            self.large.write(rows, &mut parts.data);
        }
        if plan.nulls {
            self.nulls.write(rows, &mut parts.data);
        }
        let at = parts.data_at();
        let (_, width) = plan.describe();
        let dictionary = kind.is_string_dictionary();
        if dictionary {
            pack(self.rows[..rows].iter().map(|row| u64::from(row.id)), width, &mut parts.data);
        }
        let ends_at = parts.data_at();
        self.ends(kind, plan.heap, if dictionary { plan.count } else { rows }, work);
        plan.ends.packing.write(work.iter().copied(), &mut parts.data);
        let prefix = plan.heap.prefix;
        parts.data.extend_from_slice(&self.bytes[..prefix]);
        let heap_at = parts.data_at();
        parts.outside.extend_from_slice(&plan.ends.slope.to_le_bytes());
        parts.outside.extend_from_slice(&(plan.ends.packing.base as i32).to_le_bytes());
        parts.outside.extend_from_slice(&(heap_at as u16).to_le_bytes());
        parts.outside.extend_from_slice(&(prefix as u16).to_le_bytes());
        if dictionary {
            parts.outside.extend_from_slice(&(ends_at as u16).to_le_bytes());
            parts.outside.extend_from_slice(&(plan.count as u16).to_le_bytes());
            parts.outside.push(plan.ends.packing.width as u8);
        }
        let ids = (0..if dictionary { plan.count } else { rows }).filter(|index| dictionary || !self.nullable || !self.nulls.get(*index));
        let ids = ids.map(|index| if dictionary { index } else { self.rows[index].id as usize });
        if plan.heap.coded && (dictionary || self.values.len() == self.rows.len() && rows == self.rows.len()) {
            // Each value is that of one row, or all are wanted, in this order.
            let count = if dictionary { plan.count } else { rows };
            pack_codes(&self.codes[..count.checked_sub(1).map_or(0, |last| self.values[last].codes as usize)], &mut parts.data);
        } else if plan.heap.coded {
            pack(ids.flat_map(|id| self.codes_of(id)).map(|code| u64::from(*code)), CODE_BITS, &mut parts.data);
        } else {
            ids.for_each(|id| parts.data.extend_from_slice(&self.bytes_of(id)[prefix..]));
        }
        debug_assert_eq!(parts.data_at() - heap_at + prefix, plan.heap.bytes);
        debug_assert_eq!(parts.outside_at() - outside, plan.outside_bytes);
        let flags = OUTSIDE | if plan.nulls { NULLS } else { 0 } | if plan.large { LARGE } else { 0 };
        Entry::new(kind, flags, width, at, outside as u32)
    }
}

/// Where string `index` would end if all were of one length.
#[inline(always)]
pub(super) fn line_end(slope: u32, index: usize) -> i64 {
    ((u64::from(slope) * (index as u64 + 1)) >> SLOPE_BITS) as i64
}

fn hash(value: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = (value.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = value.as_chunks::<8>();
    for word in words {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    (hash.rotate_left(23) ^ short_word(rest)).wrapping_mul(FACTOR)
}

/// A number of up to seven bytes, which differs from that of others of the same length.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    let [Some(first), Some(last)] = [bytes.first(), bytes.last()] else { return 0 };
    u64::from(*first) | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(*last) << 16
}
