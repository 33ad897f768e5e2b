//! Sizes and times of `fixed` and `huffman` on rows like LINEITEM's (text) and a bank's (CHAR columns).
//!
//! `cargo run --release -p pagefold-codec --example huffman`

use std::time::Instant;

use pagefold_codec::row::{DECODE_SLACK, DictionaryChoice, HuffmanEncoder, RowDictionary, RowSample, TrainOptions, train_row_dictionary};

#[path = "../tests/support/rows.rs"]
mod rows;

const ROWS: usize = 60_000;
const MEASURED: usize = 20_000;
const ROUNDS: usize = 15;
const ROW_MAX: usize = 1000;

/// Nanoseconds a row: the median of rounds in which all contenders take turns.
fn measure(contenders: &mut [(&str, &mut dyn FnMut() -> usize)], rows: usize) {
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for ((_, run), times) in contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            std::hint::black_box(run());
            times.push(start.elapsed().as_nanos() as f64 / rows as f64);
        }
    }
    for ((name, _), times) in contenders.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("  {name:<28} {:7.1} ns a row ({:.1} to {:.1})", times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
    }
}

fn report(name: &str, make: fn(&mut rows::Random, usize) -> Vec<u8>) {
    let mut random = rows::Random(1);
    let all: Vec<Vec<u8>> = (0..ROWS).map(|number| make(&mut random, number)).collect();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for row in all.iter().step_by(3) {
        bytes.extend_from_slice(row);
        ends.push(bytes.len() as u32);
    }
    let sample = RowSample::new(&bytes, &ends).expect("a sample");
    let start = Instant::now();
    let RowDictionary::Huffman(dictionary) = train_row_dictionary(&sample, &TrainOptions::default(), DictionaryChoice::Huffman) else {
        unreachable!("as chosen")
    };
    let trained = start.elapsed();
    let encoder = HuffmanEncoder::new(&dictionary);
    // Rows that the dictionary was not trained on.
    let others = || all.iter().enumerate().filter(|(number, _)| number % 3 != 0).map(|(_, row)| row.as_slice());
    let plain: usize = others().map(<[u8]>::len).sum();
    let lens: Vec<_> = others().map(|row| encoder.encoded_lens(row)).collect();
    let (fixed, huffman): (usize, usize) = lens.iter().fold((0, 0), |(f, h), lens| (f + lens.fixed, h + lens.huffman));
    let better: usize = lens.iter().map(|lens| lens.fixed.min(lens.huffman)).sum();
    println!(
        "{name}: {} rows of {:.1} bytes; fixed {:.3}, huffman {:.3}, of fixed {:.4}, best of both {:.4}; {} tokens, {:?}, trained in {trained:?}",
        lens.len(),
        plain as f64 / lens.len() as f64,
        plain as f64 / fixed as f64,
        plain as f64 / huffman as f64,
        huffman as f64 / fixed as f64,
        better as f64 / fixed as f64,
        dictionary.tokens().token_count(),
        dictionary.codes(),
    );
    let rows: Vec<&[u8]> = all.iter().skip(1).step_by(3).take(MEASURED).map(Vec::as_slice).collect();
    let (mut stored, mut ends) = ([Vec::new(), Vec::new()], [vec![0], vec![0]]);
    for row in &rows {
        encoder.fixed().encode(row, &mut stored[0]).expect("smaller");
        encoder.encode(row, &mut stored[1]).expect("smaller");
        ends.iter_mut().zip(&stored).for_each(|(ends, stored)| ends.push(stored.len()));
    }
    let slices = |index: usize| -> Vec<&[u8]> { ends[index].windows(2).map(|ends| &stored[index][ends[0]..ends[1]]).collect() };
    let (fixed, huffman) = (slices(0), slices(1));
    let mut buffer = vec![0; ROW_MAX + DECODE_SLACK];
    for ((row, fixed), huffman) in rows.iter().zip(&fixed).zip(&huffman) {
        let len = dictionary.tokens().decode_into(fixed, &mut buffer, ROW_MAX).expect("a row");
        assert_eq!(buffer[..len], **row);
        let len = dictionary.decode_into(huffman, &mut buffer, ROW_MAX).expect("a row");
        assert_eq!(buffer[..len], **row);
    }
    let mut buffer_2 = buffer.clone();
    let (mut many, mut many_ends) = (Vec::new(), Vec::new());
    let (mut out, mut out_2, mut out_3) = (Vec::new(), Vec::new(), Vec::new());
    let changed: Vec<Vec<u8>> = rows.iter().map(|row| [&row[..row.len() / 3], b"73910", &row[row.len() / 3 + 5..]].concat()).collect();
    measure(
        &mut [
            ("fixed, decode", &mut || {
                fixed.iter().map(|row| dictionary.tokens().decode_into(row, &mut buffer, ROW_MAX).unwrap_or(0)).sum()
            }),
            ("huffman, decode", &mut || huffman.iter().map(|row| dictionary.decode_into(row, &mut buffer_2, ROW_MAX).unwrap_or(0)).sum()),
            ("huffman, decode, 60 at once", &mut || {
                huffman
                    .chunks(60)
                    .map(|rows| {
                        dictionary.decode_many(rows, &mut many, &mut many_ends, ROW_MAX).expect("rows");
                        many_ends.len()
                    })
                    .sum()
            }),
            ("fixed, encode", &mut || {
                rows.iter()
                    .map(|row| {
                        out.clear();
                        encoder.fixed().encode(row, &mut out).unwrap_or(0)
                    })
                    .sum()
            }),
            ("huffman, encode", &mut || {
                rows.iter()
                    .map(|row| {
                        out_2.clear();
                        encoder.encode(row, &mut out_2).unwrap_or(0)
                    })
                    .sum()
            }),
            ("huffman, one field changed", &mut || {
                changed
                    .iter()
                    .zip(&rows)
                    .zip(&huffman)
                    .map(|((changed, row), codes)| {
                        out_3.clear();
                        encoder.reencode(row, codes, changed, &mut out_3).unwrap_or(0)
                    })
                    .sum()
            }),
        ],
        MEASURED,
    );
}

fn main() {
    report("LINEITEM, text", rows::line_item);
    report("payments, CHAR", rows::payment);
}
