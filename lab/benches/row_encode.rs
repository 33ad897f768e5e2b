//! What writing rows of `fixed` costs: training, encoding, and encoding again after a change.
//!
//! `cargo bench -p pagefold-lab --bench row_encode`. LINEITEM at scale factor 1; trained on rows other than those encoded. The change is one of
//! `l_quantity` in packed records. Codes beyond those of a full parse are counted after one change, and after a hundred to the same row in
//! all its fixed-width columns.
#![allow(clippy::unwrap_used, reason = "a benchmark has no better answer to an error")]

use std::hint::black_box;

use pagefold_codec::row::{Encoder, RowSample, TrainOptions, train};
use pagefold_lab::lineitem::{Rows, Selection, layout};
use pagefold_lab::measure::{Clock, Contender, interleave};

const TESTED: Selection = Selection { scale_factor: 1.0, offset: 90, step: 120 };
const ROUNDS: usize = 11;
const QUANTITY: usize = 4;
/// Rows are sampled for training at these steps: about 33,000, 6,000 and 1,500 rows.
const STEPS: [usize; 3] = [180, 1000, 4000];

fn main() {
    for (form, rows) in [("text", TESTED.text()), ("packed", TESTED.packed())] {
        println!("\nLINEITEM {form} rows: {} of {:.1} bytes", rows.len(), rows.bytes.len() as f64 / rows.len() as f64);
        for step in STEPS {
            let selection = Selection { scale_factor: 1.0, offset: 0, step };
            let sample = if form == "text" { selection.text() } else { selection.packed() };
            let encoder = trained(&sample, &rows);
            if step == STEPS[0] {
                encoding(&encoder, &rows, form == "packed");
            }
        }
    }
}

fn trained(sample: &Rows, rows: &Rows) -> Encoder {
    let row_sample = RowSample::new(&sample.bytes, &sample.ends).unwrap();
    let mut seconds: Vec<f64> = Vec::new();
    let mut trained = None;
    for _ in 0..5 {
        let start_s = Clock::Thread.now_s();
        trained = Some(train(&row_sample, &TrainOptions::default()));
        seconds.push(Clock::Thread.now_s() - start_s);
    }
    seconds.sort_unstable_by(f64::total_cmp);
    let encoder = Encoder::new(&trained.unwrap());
    let stored: usize = rows.iter().map(|row| encoder.encoded_len(row).unwrap_or(row.len())).sum();
    println!(
        "trained on {:6} rows, {:4.1} MB, in {:.3} s ({:.3}-{:.3}); ratio {:.4}",
        sample.len(),
        sample.bytes.len() as f64 / 1e6,
        seconds[2],
        seconds[0],
        seconds[4],
        rows.bytes.len() as f64 / stored as f64
    );
    encoder
}

fn encoding(encoder: &Encoder, rows: &Rows, packed: bool) {
    let mut stored = Rows::default();
    let mut changed = Rows::default();
    let mut contenders = vec![Contender::new("encode", || {
        let mut out = Vec::new();
        rows.iter().for_each(|row| {
            out.clear();
            black_box(encoder.encode(row, &mut out));
        });
        rows.len() as u64
    })];
    if packed {
        rows.iter().for_each(|row| {
            stored.push_with(|out| {
                encoder.encode(row, out).unwrap();
            });
        });
        let (at, width) = layout().fixed_span(QUANTITY).unwrap();
        for (number, row) in rows.iter().enumerate() {
            changed.push_with(|out| {
                let start = out.len() + at;
                out.extend_from_slice(row);
                let quantity = (number % 50 + 1) as i64 * 100;
                out[start..start + width].copy_from_slice(&quantity.to_le_bytes()[..width]);
            });
        }
        contenders.push(Contender::new("encode again after a change", || {
            let mut out = Vec::new();
            for ((before, codes), row) in rows.iter().zip(stored.iter()).zip(changed.iter()) {
                out.clear();
                black_box(encoder.reencode(before, codes, row, &mut out));
            }
            rows.len() as u64
        }));
        drift(encoder, rows, &stored, &changed);
    }
    for timing in interleave(Clock::Thread, ROUNDS, contenders) {
        let seconds = timing.spread();
        println!(
            "{}: {:.0} ns a row ({:.0}-{:.0}), {:.0} MB/s",
            timing.name,
            seconds.median / rows.len() as f64 * 1e9,
            seconds.low / rows.len() as f64 * 1e9,
            seconds.high / rows.len() as f64 * 1e9,
            rows.bytes.len() as f64 / seconds.median / 1e6
        );
    }
}

fn drift(encoder: &Encoder, rows: &Rows, stored: &Rows, changed: &Rows) {
    let (mut again, mut full) = (0, 0);
    let mut out = Vec::new();
    for ((before, codes), row) in rows.iter().zip(stored.iter()).zip(changed.iter()) {
        out.clear();
        again += encoder.reencode(before, codes, row, &mut out).unwrap_or(row.len());
        full += encoder.encoded_len(row).unwrap_or(row.len());
    }
    println!("after one change {:.3} % longer than by a full parse", (again as f64 / full as f64 - 1.0) * 100.0);
    let layout = layout();
    let spans: Vec<(usize, usize)> = (0..layout.column_count()).filter_map(|column| layout.fixed_span(column)).collect();
    let (mut again, mut full) = (0, 0);
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for index in (0..rows.len()).step_by(10) {
        let (mut row, mut codes) = (rows.row(index).to_vec(), stored.row(index).to_vec());
        for _ in 0..100 {
            // The value that another row has there.
            let (at, width) = spans[random(spans.len())];
            let other = random(rows.len());
            let before = row.clone();
            row[at..at + width].copy_from_slice(&rows.row(other)[at..at + width]);
            out.clear();
            encoder.reencode(&before, &codes, &row, &mut out).unwrap();
            std::mem::swap(&mut codes, &mut out);
        }
        again += codes.len();
        full += encoder.encoded_len(&row).unwrap_or(row.len());
    }
    println!("after a hundred changes {:.3} % longer than by a full parse", (again as f64 / full as f64 - 1.0) * 100.0);
}
