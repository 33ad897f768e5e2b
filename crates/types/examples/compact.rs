//! Sizes and times of compact records of rows like LINEITEM's.
//!
//! `cargo run --release -p pagefold-types --example compact`

use std::time::Instant;

use pagefold_types::{Column, CompactLayout, DataType, RowLayout, Schema, ValueRef};

const ROWS: usize = 20_000;
const ROUNDS: usize = 15;

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn layout() -> RowLayout {
    let money = DataType::Decimal { precision: 15, scale: 2 };
    let types = [
        ("orderkey", DataType::BigInt),
        ("partkey", DataType::BigInt),
        ("suppkey", DataType::BigInt),
        ("linenumber", DataType::Integer),
        ("quantity", money),
        ("extendedprice", money),
        ("discount", money),
        ("tax", money),
        ("returnflag", DataType::Char(1)),
        ("linestatus", DataType::Char(1)),
        ("shipdate", DataType::Date),
        ("commitdate", DataType::Date),
        ("receiptdate", DataType::Date),
        ("shipinstruct", DataType::Char(25)),
        ("shipmode", DataType::Char(10)),
        ("comment", DataType::Varchar(Some(44))),
    ];
    let columns = types.map(|(name, data_type)| Column::new(name, data_type, false)).to_vec();
    RowLayout::new(&Schema::new(columns).expect("a schema")).expect("a layout")
}

fn record(layout: &RowLayout, state: &mut u64, number: usize) -> Vec<u8> {
    let mut random = |below| random(state, below);
    let date = 8_000 + random(2_500) as i64;
    let comment: String = (0..10 + random(34)).map(|_| b"aeiou nrst lm"[random(13) as usize] as char).collect();
    let values = [
        ValueRef::Int(number as i64 / 4 * 8 + 1),
        ValueRef::Int(1 + random(200_000) as i64),
        ValueRef::Int(1 + random(10_000) as i64),
        ValueRef::Int(1 + number as i64 % 4),
        ValueRef::Decimal(100 * (1 + i128::from(random(50)))),
        ValueRef::Decimal(90_000 + i128::from(random(9_000_000))),
        ValueRef::Decimal(i128::from(random(11))),
        ValueRef::Decimal(i128::from(random(9))),
        ValueRef::Text(["N", "R", "A"][random(3) as usize]),
        ValueRef::Text(["O", "F"][random(2) as usize]),
        ValueRef::Int(date),
        ValueRef::Int(date + random(60) as i64),
        ValueRef::Int(date + random(30) as i64),
        ValueRef::Text(["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"][random(4) as usize]),
        ValueRef::Text(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"][random(7) as usize]),
        ValueRef::Text(&comment),
    ];
    let mut record = Vec::new();
    layout.encode(&values, &mut record).expect("a record");
    record
}

/// Nanoseconds a row: median, least and most.
fn measure(name: &str, mut run: impl FnMut() -> usize) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_nanos() as f64 / ROWS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("  {name:<20} {:6.1} ns a row ({:.1} to {:.1})", times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
}

fn main() {
    let packed_layout = layout();
    let layout = CompactLayout::new(packed_layout.clone());
    let mut state = 1;
    let packed: Vec<Vec<u8>> = (0..ROWS).map(|number| record(&packed_layout, &mut state, number)).collect();
    let mut compact = Vec::new();
    let ends: Vec<usize> = packed
        .iter()
        .map(|row| {
            layout.compact(row, &mut compact).expect("smaller");
            compact.len()
        })
        .collect();
    let starts = [0].into_iter().chain(ends.iter().copied());
    let rows: Vec<&[u8]> = starts.zip(&ends).map(|(start, &end)| &compact[start..end]).collect();
    let bytes: usize = packed.iter().map(Vec::len).sum();
    println!("LINEITEM: {ROWS} records of {:.1} bytes, compact {:.1}", bytes as f64 / ROWS as f64, compact.len() as f64 / ROWS as f64);
    let mut out = Vec::new();
    measure("compact", || {
        packed
            .iter()
            .map(|row| {
                out.clear();
                layout.compact(row, &mut out).unwrap_or(0)
            })
            .sum()
    });
    measure("expand", || {
        rows.iter()
            .map(|row| {
                out.clear();
                layout.expand(row, &mut out).unwrap_or(0)
            })
            .sum()
    });
    measure("int of column 11", || rows.iter().map(|row| layout.int(row, 11).ok().flatten().unwrap_or(0) as usize).sum());
    measure("the same, packed", || packed.iter().map(|row| packed_layout.int_at(row, 11).ok().flatten().unwrap_or(0) as usize).sum());
}
