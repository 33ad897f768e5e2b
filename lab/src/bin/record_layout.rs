//! Does the order of bytes in a record change what `fixed` makes of it?
//!
//! LINEITEM at scale factor 1, a dictionary trained per layout, other rows compressed with it.

use pagefold_codec::row::{Encoder, RowSample, TrainOptions, train};
use pagefold_lab::lineitem::{Rows, Selection, values};
use pagefold_types::ValueRef;
use tpchgen::generators::LineItem;

const SAMPLE: Selection = Selection { scale_factor: 1.0, offset: 0, step: 180 };
const TESTED: Selection = Selection { scale_factor: 1.0, offset: 90, step: 400 };

/// Integers with their width in bytes, and texts, in column order.
struct Parts<'a> {
    integers: Vec<(i64, usize)>,
    texts: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn of(item: &'a LineItem<'a>) -> Self {
        let (mut integers, mut texts) = (Vec::new(), Vec::new());
        for (column, value) in values(item).into_iter().enumerate() {
            match value {
                ValueRef::Int(value) => integers.push((value, if column < 3 { 8 } else { 4 })),
                ValueRef::Decimal(value) => integers.push((value as i64, 7)),
                ValueRef::Text(text) => texts.push(text.as_bytes()),
                _ => unreachable!("LINEITEM has no such type"),
            }
        }
        Self { integers, texts }
    }

    fn little_endian(&self, order: &[usize], out: &mut Vec<u8>) {
        for &(value, width) in order.iter().map(|&column| &self.integers[column]) {
            out.extend_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    fn big_endian(&self, out: &mut Vec<u8>) {
        for (value, width) in &self.integers {
            out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }

    /// Byte 7 of every integer, then byte 6 of every integer, and so on.
    fn planes(&self, out: &mut Vec<u8>) {
        for plane in (0..8).rev() {
            out.extend(self.integers.iter().filter(|(_, width)| plane < *width).map(|(value, _)| value.to_le_bytes()[plane]));
        }
    }

    /// As few bytes as each value needs, their numbers before them in 4 bits each.
    fn shortest(&self, out: &mut Vec<u8>) {
        let lens: Vec<usize> = self.integers.iter().map(|(value, _)| (64 - value.leading_zeros() as usize).div_ceil(8)).collect();
        out.extend(lens.chunks(2).map(|pair| (pair[0] | pair.get(1).unwrap_or(&0) << 4) as u8));
        for ((value, _), len) in self.integers.iter().zip(lens) {
            out.extend_from_slice(&value.to_le_bytes()[..len]);
        }
    }

    fn end_offsets(&self, start: usize, out: &mut Vec<u8>) {
        let mut end = start;
        for text in &self.texts {
            end += text.len();
            out.extend_from_slice(&(end as u16).to_le_bytes());
        }
    }

    fn one_byte_lens(&self, out: &mut Vec<u8>) {
        out.extend(self.texts.iter().map(|text| text.len() as u8));
    }

    fn texts(&self, out: &mut Vec<u8>) {
        self.texts.iter().for_each(|text| out.extend_from_slice(text));
    }

    fn texts_with_lens(&self, out: &mut Vec<u8>) {
        for text in &self.texts {
            out.push(text.len() as u8);
            out.extend_from_slice(text);
        }
    }
}

type Layout = (&'static str, fn(&Parts<'_>, &mut Vec<u8>));

const COLUMN_ORDER: [usize; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Columns with many values first, those with few beside each other and beside the texts with few values.
const FEW_VALUES_LAST: [usize; 11] = [0, 1, 2, 5, 8, 9, 10, 4, 3, 6, 7];
/// Where the texts of the packed record begin: 28 + 28 + 12 bytes, and five end offsets.
const TEXTS_START: usize = 78;

const LAYOUTS: [Layout; 11] = [
    ("little-endian, u16 end offsets in the record (the packed record)", |parts, out| {
        parts.little_endian(&COLUMN_ORDER, out);
        parts.end_offsets(TEXTS_START, out);
        parts.texts(out);
    }),
    ("big-endian", |parts, out| {
        parts.big_endian(out);
        parts.end_offsets(TEXTS_START, out);
        parts.texts(out);
    }),
    ("few-valued columns last", |parts, out| {
        parts.little_endian(&FEW_VALUES_LAST, out);
        parts.end_offsets(TEXTS_START, out);
        parts.texts(out);
    }),
    ("end offsets counted from the first text", |parts, out| {
        parts.little_endian(&COLUMN_ORDER, out);
        parts.end_offsets(0, out);
        parts.texts(out);
    }),
    ("1-byte lengths instead of end offsets", |parts, out| {
        parts.little_endian(&COLUMN_ORDER, out);
        parts.one_byte_lens(out);
        parts.texts(out);
    }),
    ("1-byte length before each text", |parts, out| {
        parts.little_endian(&COLUMN_ORDER, out);
        parts.texts_with_lens(out);
    }),
    ("big-endian, 1-byte length before each text", |parts, out| {
        parts.big_endian(out);
        parts.texts_with_lens(out);
    }),
    ("few-valued columns last, 1-byte length before each text", |parts, out| {
        parts.little_endian(&FEW_VALUES_LAST, out);
        parts.texts_with_lens(out);
    }),
    ("byte planes, 1-byte length before each text", |parts, out| {
        parts.planes(out);
        parts.texts_with_lens(out);
    }),
    ("integers in as few bytes as they need, end offsets", |parts, out| {
        parts.shortest(out);
        parts.end_offsets(TEXTS_START, out);
        parts.texts(out);
    }),
    ("integers in as few bytes as they need, 1-byte length before each text", |parts, out| {
        parts.shortest(out);
        parts.texts_with_lens(out);
    }),
];

fn rows(selection: &Selection, layout: &Layout) -> Rows {
    let mut rows = Rows::default();
    for item in selection.items() {
        let parts = Parts::of(&item);
        rows.push_with(|out| layout.1(&parts, out));
    }
    rows
}

fn main() {
    println!("| layout | bytes | compressed bytes | against the packed record |\n|---|---|---|---|");
    let mut packed = None;
    for layout in &LAYOUTS {
        let sample = rows(&SAMPLE, layout);
        let row_sample = RowSample::new(&sample.bytes, &sample.ends).unwrap_or_else(|error| panic!("{error}"));
        let encoder = Encoder::new(&train(&row_sample, &TrainOptions::default()));
        let tested = rows(&TESTED, layout);
        let count = tested.len() as f64;
        let stored: usize = tested.iter().map(|row| encoder.encoded_len(row).unwrap_or(row.len())).sum();
        let stored = stored as f64 / count;
        let change = stored / *packed.get_or_insert(stored) * 100.0 - 100.0;
        println!("| {} | {:.1} | {stored:.2} | {change:+.1} % |", layout.0, tested.bytes.len() as f64 / count);
    }
}
