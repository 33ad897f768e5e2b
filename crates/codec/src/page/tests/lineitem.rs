//! LINEITEM of TPC-H: sizes that must be reached, and (ignored) figures of size and time.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use crate::page::bits::{BLOCK, SLACK, unpack_64, unpack_64_portable};
use crate::page::{Bitmap, ColumnArea, PageEncoder, PageSchema, StringValue};
use crate::row::{Dictionary, Encoder, RowSample, TrainOptions, train};
use pagefold_types::{Column, DataType, RowLayout, Schema, ValueRef};
use tpchgen::distribution::Distributions;
use tpchgen::generators::LineItemGenerator;
use tpchgen::text::TextPool;

const NAMES: [&str; 16] = [
    "orderkey",
    "partkey",
    "suppkey",
    "linenumber",
    "quantity",
    "extendedprice",
    "discount",
    "tax",
    "returnflag",
    "linestatus",
    "shipdate",
    "commitdate",
    "receiptdate",
    "shipinstruct",
    "shipmode",
    "comment",
];

struct LineItems {
    schema: Arc<PageSchema>,
    records: Vec<Vec<u8>>,
    dictionary: Dictionary,
    encoder: Arc<Encoder>,
}

/// `rows` rows of scale factor 1 from `skip` on, and codes trained on their strings.
fn line_items(skip: usize, rows: usize, pool: &TextPool) -> LineItems {
    let price = DataType::Decimal { precision: 15, scale: 2 };
    let text = DataType::Varchar(None);
    let (big, int, date) = (DataType::BigInt, DataType::Integer, DataType::Date);
    let types = [big, big, big, int, price, price, price, price, text, text, date, date, date, text, text, text];
    let columns = NAMES.iter().zip(types).map(|(name, data_type)| Column::new(*name, data_type, false));
    let layout = RowLayout::new(&Schema::new(columns.collect()).unwrap()).unwrap();
    let generator = LineItemGenerator::new_with_distributions_and_text_pool(1.0, 1, 1, Distributions::static_default(), pool);
    let records = generator.iter().skip(skip).take(rows).map(|item| {
        let texts = [item.l_returnflag, item.l_linestatus, item.l_shipinstruct, item.l_shipmode, item.l_comment];
        let [flag, status, instruct, mode, comment] = texts.map(ValueRef::Text);
        let dates = [item.l_shipdate, item.l_commitdate, item.l_receiptdate];
        let [ship, commit, receipt] = dates.map(|date| ValueRef::Int(date.to_unix_epoch().into()));
        let decimals = [item.l_quantity * 100, item.l_extendedprice.0, item.l_discount.0, item.l_tax.0];
        let [quantity, extended, discount, tax] = decimals.map(|d| ValueRef::Decimal(d.into()));
        let [order, part, supplier, line] = [item.l_orderkey, item.l_partkey, item.l_suppkey, item.l_linenumber.into()].map(ValueRef::Int);
        let values =
            [order, part, supplier, line, quantity, extended, discount, tax, flag, status, ship, commit, receipt, instruct, mode, comment];
        let mut record = Vec::new();
        layout.encode(&values, &mut record).unwrap();
        record
    });
    let records: Vec<Vec<u8>> = records.collect();
    let schema = Arc::new(PageSchema::new(&layout));
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut encoder = PageEncoder::new(schema.clone(), None);
    for page in records.chunks(500) {
        page.iter().for_each(|record| encoder.push(record).unwrap());
        encoder.sample_strings(&mut bytes, &mut ends);
        encoder.clear();
    }
    let dictionary = train(&RowSample::new(&bytes, &ends).unwrap(), &TrainOptions::default());
    let encoder = Arc::new(Encoder::new(&dictionary));
    LineItems { schema, records, dictionary, encoder }
}

/// Areas of at most `room` bytes, filled as LOAD does.
fn areas(items: &LineItems, room: usize) -> Vec<Vec<u8>> {
    let mut encoder = PageEncoder::new(items.schema.clone(), Some(items.encoder.clone()));
    let mut areas = Vec::new();
    let mut records = items.records.iter();
    loop {
        let record = records.next();
        if let Some(record) = record {
            encoder.push(record).unwrap();
        }
        while encoder.rows() > 0 && (record.is_none() || encoder.rows() >= encoder.rows_worth_a_trial()) {
            let rows = encoder.rows_that_fit(room, usize::MAX, |_| 0);
            if rows == encoder.rows() && record.is_some() {
                break;
            }
            let mut area = Vec::new();
            encoder.encode(rows, &mut area).unwrap();
            encoder.drain(rows);
            areas.push(area);
        }
        if record.is_none() {
            return areas;
        }
    }
}

#[test]
fn size_of_a_row() {
    let items = line_items(100_000, 3_000, &TextPool::new(3 << 20, Distributions::static_default()));
    let areas = areas(&items, 16_000);
    let mut record = Vec::new();
    let mut records = items.records.iter();
    for area in &areas {
        let area = ColumnArea::parse(&items.schema, Some(&items.dictionary), area).unwrap();
        for row in 0..area.rows() {
            record.clear();
            area.record(row, &mut record).unwrap();
            assert_eq!(Some(&record), records.next());
        }
    }
    assert!(records.next().is_none());
    let bytes: usize = areas.iter().map(Vec::len).sum();
    assert!(bytes <= 22 * items.records.len(), "{bytes} bytes");
}

impl ColumnArea<'_> {
    /// The value of a column without NULLs.
    fn bytes_or_int(&self, column: usize, row: usize) -> Result<i64, Vec<u8>> {
        if self.schema.is_int(column) {
            return Ok(self.int(column, row).unwrap());
        }
        let mut buffer = Vec::new();
        let Ok(Some(StringValue::Bytes(bytes))) = self.bytes(column, row, &mut buffer) else { panic!("a string") };
        Err(bytes.to_vec())
    }
}

/// Nanoseconds a call, the best of five rounds.
fn time(calls: usize, mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    best
}

/// Nanoseconds a number of this width takes to unpack by portable code, and by the code chosen for this processor.
fn unpacking(width: u32) -> (f64, f64) {
    let packed = vec![0xA5; 8 * width as usize + SLACK];
    let mut out = [0; BLOCK];
    let portable = time(BLOCK * 10_000, || {
        for _ in 0..10_000 {
            unpack_64_portable(black_box(&packed), width, &mut out);
            black_box(&out);
        }
    });
    let chosen = time(BLOCK * 10_000, || {
        for _ in 0..10_000 {
            unpack_64(black_box(&packed), width, &mut out);
            black_box(&out);
        }
    });
    (portable, chosen)
}

#[test]
#[ignore = "figures, to be read: cargo test --release -p pagefold-codec lineitem -- --ignored --nocapture"]
fn figures() {
    let items = line_items(2_000_000, 120_000, TextPool::get_or_init_default());
    let rows = items.records.len();
    let record_bytes: usize = items.records.iter().map(Vec::len).sum();
    for room in [4_000, 8_100, 16_200, 32_500] {
        let areas = areas(&items, room);
        let bytes: usize = areas.iter().map(Vec::len).sum();
        let (pages, full) = (areas.len(), room * (areas.len() - 1));
        println!(
            "room {room}: {pages} areas, {:.2} bytes a row, {:.1} % of the room used",
            bytes as f64 / rows as f64,
            100.0 * bytes as f64 / (full + areas[pages - 1].len()) as f64
        );
    }
    let mut encoder = PageEncoder::new(items.schema.clone(), Some(items.encoder.clone()));
    items.records[..700].iter().for_each(|record| encoder.push(record).unwrap());
    println!("700 rows: {} bytes", encoder.len_of(700));
    for (name, size) in NAMES.iter().zip(encoder.column_sizes(700)) {
        println!("  {name:14} {:20} {:2} bits, {:6} bytes, {:.2} a row", size.encoding, size.bits, size.bytes, size.bytes as f64 / 700.0);
    }
    let load = time(rows, || drop(black_box(areas(&items, 16_200))));
    println!("encode: {load:.0} ns a row, {:.0} MB/s of records", record_bytes as f64 / rows as f64 / load * 1e3);
    let push = time(rows, || {
        let mut encoder = PageEncoder::new(items.schema.clone(), Some(items.encoder.clone()));
        for records in items.records.chunks(700) {
            records.iter().for_each(|record| encoder.push(record).unwrap());
            encoder.clear();
        }
    });
    println!("  of which push {push:.0} ns a row");
    let plan = time(200 * 700, || {
        for round in 0..200 {
            black_box(encoder.len_of(700 - round % 2));
        }
    });
    println!("  a trial {plan:.0} ns a row");

    let images = areas(&items, 16_200);
    let views: Vec<ColumnArea<'_>> =
        images.iter().map(|image| ColumnArea::trusted(&items.schema, Some(&items.dictionary), image)).collect();
    let parse = time(views.len(), || {
        for image in &images {
            let _ = black_box(ColumnArea::parse(&items.schema, Some(&items.dictionary), image).unwrap());
        }
    });
    println!("parse: {parse:.0} ns an area");
    let (mut buffer, mut record) = (Vec::new(), Vec::new());
    for (column, name) in NAMES.iter().enumerate() {
        let single = time(rows, || {
            for view in &views {
                for row in 0..view.rows() {
                    if items.schema.is_int(column) {
                        black_box(view.int(column, row));
                    } else {
                        black_box(view.bytes(column, row, &mut buffer).unwrap());
                    }
                }
            }
        });
        let (mut values, mut ends, mut bytes): (Vec<i64>, Vec<i32>, Vec<u8>) = Default::default();
        let batch = time(rows, || {
            for view in &views {
                values.clear();
                ends.clear();
                bytes.clear();
                if items.schema.is_int(column) {
                    view.ints(column, 0..view.rows(), &mut values);
                } else {
                    view.strings(column, 0..view.rows(), &mut ends, &mut bytes, usize::MAX).unwrap();
                }
                black_box((&values, &bytes));
            }
        });
        let sought = views[3].bytes_or_int(column, 70);
        let select = time(rows, || {
            for view in &views {
                let mut selection = Bitmap::new(view.rows(), true);
                match &sought {
                    Ok(int) => view.select_int(column, *int..=int + 20, &mut selection),
                    Err(bytes) => view.select_bytes_equal(column, bytes, &mut selection).unwrap(),
                }
                black_box(&selection);
            }
        });
        println!("  {name:14} single {single:5.1} ns, batch {batch:5.2} ns, selection {select:5.2} ns");
    }
    for width in [3, 12, 25] {
        let (portable, chosen) = unpacking(width);
        println!("  64 numbers of {width} bits: portable {:.0} ns, as the processor can {:.0} ns", 64.0 * portable, 64.0 * chosen);
    }
    let one = time(rows, || {
        for view in &views {
            for row in 0..view.rows() {
                record.clear();
                black_box(view.record(row, &mut record).unwrap());
            }
        }
    });
    println!("record: {one:.0} ns");
    let fixed: Vec<Vec<u8>> = items.records[..20_000]
        .iter()
        .map(|record| {
            let mut out = Vec::new();
            items.encoder.encode(record, &mut out).map_or_else(Vec::new, |_| out)
        })
        .collect();
    let decode = time(fixed.len(), || {
        for row in &fixed {
            record.clear();
            black_box(items.dictionary.decode(row, &mut record, 500).unwrap());
        }
    });
    println!("for comparison: the record decoded by these codes {decode:.0} ns");
    let multiply = time(64_000, || {
        black_box((0..64_000u64).fold(black_box(3u64), |product, number| product.wrapping_mul(product | number)));
    });
    println!("for comparison: 64 multiplications, one after the other, {:.0} ns", 64.0 * multiply);
}
