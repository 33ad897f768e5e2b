//! Rows decoded one by one: ratio and speed of `fixed` against zstd and LZ4 with a dictionary, and FSST.
//!
//! `cargo bench -p pagefold-lab --bench row_decode`. Every contender is trained on the same sample and compresses the same other rows of LINEITEM at
//! scale factor 1; what it decodes is compared with the row before anything is timed. A row that a method would enlarge counts with its own
//! length in the ratio, as a table would store it.
#![allow(clippy::unwrap_used, reason = "a benchmark has no better answer to an error")]

use std::hint::black_box;
use std::mem::MaybeUninit;

use pagefold_codec::row::{CODE_COUNT, Dictionary, Encoder, MAX_TOKEN_LEN, RowSample, TrainOptions, train};
use pagefold_lab::lineitem::{Rows, Selection};
use pagefold_lab::measure::{Clock, Contender, interleave};

const SAMPLE: Selection = Selection { scale_factor: 1.0, offset: 0, step: 180 };
const TESTED: Selection = Selection { scale_factor: 1.0, offset: 90, step: 120 };
const ROUNDS: usize = 41;
const ZSTD_DICTIONARY_LEN: usize = 110 << 10;
const ZSTD_LEVEL: i32 = 3;
const LZ4_DICTIONARY_LEN: usize = 64 << 10;
const BUFFER_LEN: usize = 4096;

type DecodeAll<'a> = Box<dyn Fn(&[&[u8]]) -> u64 + 'a>;

/// A method, and the rows it has compressed.
struct Method<'a> {
    name: &'static str,
    stored: Rows,
    encode_mb_per_s: f64,
    /// Decodes stored rows and returns the sum of their lengths.
    decode_all: DecodeAll<'a>,
}

/// Encodes all rows. `decode` decodes to the front of a buffer of its own, `BUFFER_LEN` bytes at first, and returns the length.
fn method<'a>(
    name: &'static str,
    rows: &Rows,
    mut encode: impl FnMut(&[u8], &mut Vec<u8>),
    decode: impl Fn(&[u8], &mut Vec<u8>) -> usize + 'a,
) -> Method<'a> {
    let mut stored = Rows::default();
    let start_s = Clock::Thread.now_s();
    for row in rows.iter() {
        stored.push_with(|out| encode(row, out));
    }
    let encode_mb_per_s = rows.bytes.len() as f64 / (Clock::Thread.now_s() - start_s) / 1e6;
    let mut buffer = vec![0; BUFFER_LEN];
    for (row, stored) in rows.iter().zip(stored.iter()) {
        let len = decode(stored, &mut buffer);
        assert_eq!(&buffer[..len], row, "{name}");
    }
    let decode_all = move |stored: &[&[u8]]| {
        let mut buffer = vec![0; BUFFER_LEN];
        let mut bytes = 0;
        for row in stored {
            bytes += decode(row, &mut buffer);
            black_box(buffer.as_ptr());
        }
        bytes as u64
    };
    Method { name, stored, encode_mb_per_s, decode_all: Box::new(decode_all) }
}

/// `fixed` decoded with slices only: what the unsafe copy is measured against.
struct SafeTable {
    entries: Vec<[u8; MAX_TOKEN_LEN]>,
    lens: Vec<u8>,
}

impl SafeTable {
    fn new(dictionary: &Dictionary) -> Self {
        let mut table = Self { entries: vec![[0; MAX_TOKEN_LEN]; CODE_COUNT], lens: vec![0; CODE_COUNT] };
        for (code, token) in dictionary.tokens().enumerate() {
            table.entries[code][..token.len()].copy_from_slice(token);
            table.lens[code] = token.len() as u8;
        }
        table
    }

    fn decode(&self, compressed: &[u8], out: &mut [u8]) -> usize {
        let entries: &[[u8; MAX_TOKEN_LEN]; CODE_COUNT] = self.entries.as_slice().try_into().unwrap();
        let lens: &[u8; CODE_COUNT] = self.lens.as_slice().try_into().unwrap();
        let mut at = 0;
        let mut copy = |code: u32| {
            let code = (code & 0xfff) as usize;
            if let Some(place) = out.get_mut(at..at + MAX_TOKEN_LEN) {
                place.copy_from_slice(&entries[code]);
            }
            at += usize::from(lens[code]);
        };
        let (pairs, rest) = compressed.as_chunks::<3>();
        for &[a, b, c] in pairs {
            let codes = u32::from_le_bytes([a, b, c, 0]);
            copy(codes);
            copy(codes >> 12);
        }
        if let &[a, b] = rest {
            copy(u32::from_le_bytes([a, b, 0, 0]));
        }
        at
    }
}

fn main() {
    let shuffled = |count: usize| {
        let mut order: Vec<usize> = (0..count).collect();
        let mut state = 1_u64;
        for last in (1..count).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (state >> 33) as usize % (last + 1));
        }
        order
    };
    for (form, sample, rows) in [("text", SAMPLE.text(), TESTED.text()), ("packed", SAMPLE.packed(), TESTED.packed())] {
        println!("\nLINEITEM {form} rows: {} of {:.1} bytes", rows.len(), rows.bytes.len() as f64 / rows.len() as f64);
        compare(&sample, &rows, &shuffled(rows.len()));
    }
}

fn compare(sample: &Rows, rows: &Rows, shuffled: &[usize]) {
    let row_sample = RowSample::new(&sample.bytes, &sample.ends).unwrap();
    let start_s = Clock::Thread.now_s();
    let dictionary = train(&row_sample, &TrainOptions::default());
    let trained_s = Clock::Thread.now_s() - start_s;
    println!(
        "trained in {trained_s:.2} s on {:.1} MB; dictionary of {} bytes, table of {} bytes",
        sample.bytes.len() as f64 / 1e6,
        dictionary.to_bytes().len(),
        dictionary.table_len()
    );
    let encoder = Encoder::new(&dictionary);
    let safe = SafeTable::new(&dictionary);

    let sample_lens: Vec<usize> = sample.iter().map(<[u8]>::len).collect();
    let zstd_dictionary = zstd::dict::from_continuous(&sample.bytes, &sample_lens, ZSTD_DICTIONARY_LEN).unwrap();
    let zstd_encoder = zstd::dict::EncoderDictionary::copy(&zstd_dictionary, ZSTD_LEVEL);
    let zstd_decoder = zstd::dict::DecoderDictionary::copy(&zstd_dictionary);
    let mut zstd_compress = zstd::bulk::Compressor::with_prepared_dictionary(&zstd_encoder).unwrap();
    zstd_compress.include_contentsize(false).unwrap();
    zstd_compress.include_checksum(false).unwrap();
    zstd_compress.include_dictid(false).unwrap();
    let zstd_decompress = std::cell::RefCell::new(zstd::bulk::Decompressor::with_prepared_dictionary(&zstd_decoder).unwrap());

    let lz4_dictionary = &sample.bytes[sample.bytes.len().saturating_sub(LZ4_DICTIONARY_LEN)..];

    let fsst = fsst::Compressor::train(&sample.iter().collect());
    let fsst_decompress = fsst.decompressor();

    let encode_fixed = |row: &[u8], out: &mut Vec<u8>| {
        // Rows that would not shrink do not occur here.
        encoder.encode(row, out).unwrap();
    };
    let methods = [
        method(
            "zstd -3, 110 KB dictionary",
            rows,
            |row, out| {
                let start = out.len();
                out.resize(start + zstd::zstd_safe::compress_bound(row.len()), 0);
                let len = zstd_compress.compress_to_buffer(row, &mut out[start..]).unwrap();
                out.truncate(start + len);
            },
            |stored: &[u8], out: &mut Vec<u8>| zstd_decompress.borrow_mut().decompress_to_buffer(stored, out.as_mut_slice()).unwrap(),
        ),
        method(
            "lz4, 64 KB dictionary",
            rows,
            |row, out| out.extend_from_slice(&lz4_flex::block::compress_with_dict(row, lz4_dictionary)),
            |stored: &[u8], out: &mut Vec<u8>| lz4_flex::block::decompress_into_with_dict(stored, out, lz4_dictionary).unwrap(),
        ),
        method(
            "fsst",
            rows,
            |row, out| out.extend_from_slice(&fsst.compress(row)),
            |stored: &[u8], out: &mut Vec<u8>| fsst_decompress.decompress_into(stored, as_uninit(out)),
        ),
        method("fixed", rows, encode_fixed, |stored: &[u8], out: &mut Vec<u8>| dictionary.decode_into(stored, out, BUFFER_LEN).unwrap()),
        method("fixed, appended to a Vec", rows, encode_fixed, |stored: &[u8], out: &mut Vec<u8>| {
            out.clear();
            dictionary.decode(stored, out, BUFFER_LEN).unwrap()
        }),
        method("fixed, slices only", rows, encode_fixed, |stored: &[u8], out: &mut Vec<u8>| safe.decode(stored, out)),
    ];

    let run = |order: &[usize]| {
        let contenders = methods.iter().map(|method| {
            let stored: Vec<&[u8]> = order.iter().map(|&index| method.stored.row(index)).collect();
            Contender::new(method.name, move || (method.decode_all)(&stored))
        });
        interleave(Clock::Thread, ROUNDS, contenders.collect())
    };
    let in_order = run(&(0..rows.len()).collect::<Vec<_>>());
    let at_random = run(shuffled);
    let zstd_bytes = stored_bytes(rows, &methods[0].stored);
    println!("| method | ratio | over zstd | encode MB/s | decode GB/s | ns/row | ns/row at random | speed over zstd (spread) |");
    println!("|---|---|---|---|---|---|---|---|");
    for ((method, timing), random) in methods.iter().zip(&in_order).zip(&at_random) {
        let bytes = stored_bytes(rows, &method.stored);
        let seconds = timing.spread().median;
        let speed = timing.speed_over(&in_order[0]);
        println!(
            "| {} | {:.2} | {:.2} | {:.0} | {:.2} | {:.1} | {:.1} | {:.2} ({:.2} to {:.2}) |",
            method.name,
            rows.bytes.len() as f64 / bytes as f64,
            zstd_bytes as f64 / bytes as f64,
            method.encode_mb_per_s,
            rows.bytes.len() as f64 / seconds / 1e9,
            seconds / rows.len() as f64 * 1e9,
            random.spread().median / rows.len() as f64 * 1e9,
            speed.median,
            speed.low,
            speed.high
        );
    }
}

/// Bytes that the rows take with this method.
fn stored_bytes(rows: &Rows, stored: &Rows) -> usize {
    rows.iter().zip(stored.iter()).map(|(row, stored)| row.len().min(stored.len())).sum()
}

#[expect(unsafe_code, reason = "the interface of fsst-rs takes uninitialised memory")]
fn as_uninit(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: same layout; fsst writes initialised bytes only.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) }
}
