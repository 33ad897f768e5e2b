//! Scans with a condition give what a filter of all decoded rows gives, however the rows lie and whoever looks.

use super::tests::{load_rows, refs};
use super::*;
use crate::Error;
use crate::database::{Database, Isolation, OpenMode, ReadView, ScanRequest, Settings, TransactionOptions};
use crate::pool::PoolSettings;
use crate::test_random::Random;
use pagefold_codec::row::{DictionaryChoice, RowSample, TrainOptions, train_row_dictionary};
use pagefold_io::{MemoryStorage, SimulatedClock};
use pagefold_types::{Column, DataType, Interval, Predicate, Rid, Schema, Value, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows by their first column.
type Model = BTreeMap<i64, (Rid, Vec<Value>)>;

fn database() -> Database {
    let pools = PoolSettings { memory_bytes: 4 << 20, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let settings = Settings { pools, ..Settings::default() };
    Database::open(Arc::new(MemoryStorage::new()), clock, Path::new("db"), OpenMode::Create, settings).unwrap()
}

fn schema() -> Schema {
    Schema::new(vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("n", DataType::Integer, true),
        Column::new("flag", DataType::Boolean, true),
        Column::new("price", DataType::Decimal { precision: 9, scale: 2 }, true),
        Column::new("wide", DataType::Decimal { precision: 30, scale: 4 }, false),
        Column::new("real", DataType::Double, true),
        Column::new("day", DataType::Date, false),
        Column::new("code", DataType::Char(6), true),
        Column::new("words", DataType::Varchar(None), true),
        Column::new("uuid", DataType::Uuid, true),
        Column::new("bytes", DataType::Bytea, true),
        Column::new("span", DataType::Interval, true),
    ])
    .unwrap()
}

const WORDS: [&str; 5] = ["always ", "final ", "slyly ", "ütter ", "deposits above the "];

/// A row; the shape decides which encodings its page comes to have.
fn row(random: &mut Random, id: i64, shape: usize) -> Vec<Value> {
    let number = |random: &mut Random| match shape {
        0 => 7,
        1 => random.index(4) as i64 * 100_000,
        2 => id * 3 + random.index(2) as i64,
        3 => random.index(1000) as i64 * 25,
        _ => random.next() as i32 as i64,
    };
    let text = |random: &mut Random, most: usize| -> String {
        let (count, from) = if shape == 0 { (1, 0) } else { (random.index(most), random.index(WORDS.len())) };
        (0..count).map(|i| WORDS[(from + i * shape) % WORDS.len()]).collect()
    };
    let maybe = |random: &mut Random, value: Value| if shape != 1 && random.index(6) == 0 { Value::Null } else { value };
    let (n, price, wide, bits) = (number(random), number(random) % 1_000_000_000, number(random), number(random));
    let (code, words) = (text(random, 2), text(random, 6));
    // Some lie in large-value pages.
    let words = if shape == 4 && random.index(25) == 0 { words + &"x".repeat(5000) } else { words };
    let real = [0.0, -0.0, f64::NAN, 1.5, bits as f64][random.index(5)];
    let (flag, bytes) = (random.index(3) > 0, n.to_le_bytes()[..random.index(4)].to_vec());
    let months = (n % 5) as i32;
    let span = match random.index(2) {
        0 => Interval { months, days: 0, micros: 0 },
        _ => Interval { months: 0, days: 30 * months, micros: i64::from(random.index(8) == 0) },
    };
    vec![
        Value::Int(id),
        maybe(random, Value::Int(n)),
        maybe(random, Value::Boolean(flag)),
        maybe(random, Value::Decimal(price.into())),
        Value::Decimal(i128::from(wide) << (random.index(2) * 40)),
        maybe(random, Value::Double(real)),
        Value::Int(id / 50 + random.index(3) as i64),
        maybe(random, Value::Text(format!("{:<6}", code.chars().take(6).collect::<String>()))),
        maybe(random, Value::Text(words)),
        maybe(random, Value::Uuid([(n as u8) & 3; 16])),
        maybe(random, Value::Bytes(bytes)),
        // Of equal values one in months, one in days.
        maybe(random, Value::Interval(span)),
    ]
}

/// 3,000 rows on full pages, codes of a dictionary among their strings.
fn loaded(database: &Database, random: &mut Random) -> (Arc<Table>, Model) {
    let attributes = TableAttributes { method: Method::Page, ..TableAttributes::new("t", schema()).with_page_bytes(8192) };
    let mut change = database.change();
    let table = change.create_table(attributes).unwrap();
    let sample: String = WORDS.concat().repeat(50);
    let ends: Vec<u32> = (1..=50).map(|i| (i * sample.len() / 50) as u32).collect();
    let sample = RowSample::new(sample.as_bytes(), &ends).unwrap();
    table.set_dictionary(train_row_dictionary(&sample, &TrainOptions::default(), DictionaryChoice::Fixed)).unwrap();
    let rows: Vec<Vec<Value>> = (0..3000).map(|id| row(random, id, (id / 300) as usize % 5)).collect();
    let rids = load_rows(&table, &rows);
    change.commit().unwrap();
    (table, rids.into_iter().zip(rows).enumerate().map(|(id, row)| (id as i64, row)).collect())
}

/// A random condition with constants from rows and from beside them.
fn condition(random: &mut Random, model: &Model) -> String {
    let schema = schema();
    let literal = |random: &mut Random, column: usize| {
        let row = &model.values().nth(random.index(model.len())).unwrap().1;
        let id = random.below(3000) as i64;
        let fallback = self::row(random, id, 2)[column].clone();
        let value = [&row[column], &fallback].into_iter().find(|value| **value != Value::Null).cloned();
        let value = match value.unwrap_or(Value::Int(0)) {
            Value::Text(text) if text.len() > 100 => Value::Text(text[text.len() - 10..].to_owned()),
            Value::Text(text) if random.index(4) == 0 => Value::Text(text + " "),
            value => value,
        };
        let data_type = match (&value, schema.columns()[column].data_type) {
            (Value::Int(_), DataType::BigInt | DataType::Integer | DataType::Date) => schema.columns()[column].data_type,
            (Value::Int(_), _) => return None,
            (_, data_type) => data_type,
        };
        Some(format!("'{}'", text::to_text(value.as_ref(), &data_type)))
    };
    let like = |random: &mut Random| {
        let pieces = ["a", "%", "_", "final ", "slyly", "ü", " ", "always %", "deposits"];
        let pattern: String = (0..1 + random.index(4)).map(|_| pieces[random.index(pieces.len())]).collect();
        match random.index(3) {
            0 => format!("'{}%'", &pattern.replace(['%', '_'], "")),
            1 => format!("'%{}%'", &pattern.replace(['%', '_'], "")),
            _ => format!("'{pattern}'"),
        }
    };
    let term = |random: &mut Random| -> String {
        loop {
            let column = random.index(schema.len());
            let name = &schema.columns()[column].name;
            let operator = ["=", "<", "<=", ">", ">=", "<>", "=", "between", "in", "is", "like", "beside", "columns"][random.index(13)];
            let not = ["", "not "][random.index(2)];
            let (Some(a), Some(b)) = (literal(random, column), literal(random, column)) else { continue };
            return match operator {
                "between" => format!("{name} {not}between {a} and {b}"),
                "in" => {
                    let mut values: Vec<String> = (0..random.index(30)).filter_map(|_| literal(random, column)).collect();
                    values.extend([a, b]);
                    if random.index(8) == 0 {
                        values.push("null".into());
                    }
                    format!("{name} {not}in ({})", values.join(", "))
                }
                "is" => format!("{name} is {not}null"),
                "like" => format!("{} {not}like {}", ["code", "words"][random.index(2)], like(random)),
                "beside" => format!(
                    "{} {} {}.505",
                    ["n", "price", "wide", "id"][random.index(4)],
                    ["=", "<", "<>", ">="][random.index(4)],
                    random.index(3000)
                ),
                "columns" => format!(
                    "{} {} {}",
                    ["n", "id"][random.index(2)],
                    ["=", "<", "<>"][random.index(3)],
                    ["price", "wide", "n"][random.index(3)]
                ),
                _ => format!("{name} {operator} {a}"),
            };
        }
    };
    fn any(random: &mut Random, term: &impl Fn(&mut Random) -> String, depth: usize) -> String {
        if depth == 0 || random.index(4) == 0 {
            return term(random);
        }
        let parts: Vec<String> = (0..1 + random.index(3)).map(|_| any(random, term, depth - 1)).collect();
        let joined = parts.join([" and ", " or "][random.index(2)]);
        format!("{}({joined})", ["", "", "not "][random.index(3)])
    }
    let terms: Vec<String> = (0..1 + random.index(4)).map(|_| term(random)).collect();
    match random.index(7) {
        0 => terms.join(" or "),
        1 => format!("({}) and not ({})", terms.join(" or "), term(random)),
        2..5 => any(random, &term, 3),
        _ => terms.join(" and "),
    }
}

/// A row of a batch: columns id, n, code and words.
type Part = (i64, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>);
const COLUMNS: [usize; 4] = [0, 1, 7, 8];

fn parts(table: &Table, batch: &ColumnBatch, out: &mut Vec<Part>) {
    let int = |column: usize, row: usize| {
        let column = &batch.columns()[column];
        column.validity().get(row).then(|| column.ints()[row])
    };
    let string = |column: usize, row: usize| {
        let column = &batch.columns()[column];
        let BatchValues::Bytes { bytes, ends, large } = column.values() else { panic!("strings") };
        let start = if row == 0 { 0 } else { ends[row - 1] as usize };
        let value = bytes[start..ends[row] as usize].to_vec();
        let large = large.get(row).then(|| pagefold_types::LargeValueRef::from_bytes(&value).unwrap());
        column.validity().get(row).then(|| large.map_or(value, |large| table.read_large(large).unwrap()))
    };
    assert!(batch.columns().iter().all(|column| column.validity().len() == batch.len()));
    out.extend((0..batch.len()).map(|row| (int(0, row).unwrap(), int(1, row), string(2, row), string(3, row))));
}

fn part_of(row: &[Value]) -> Part {
    let Value::Int(id) = row[0] else { panic!("an id") };
    let string = |value: &Value| if let Value::Text(text) = value { Some(text.as_bytes().to_vec()) } else { None };
    (id, if let Value::Int(n) = row[1] { Some(n) } else { None }, string(&row[7]), string(&row[8]))
}

/// What the scans of a view give is what the filter of the model's rows gives.
fn compare(table: &Arc<Table>, view: &ReadView, model: &Model, text: &str) -> usize {
    let condition = Predicate::parse(text, &schema()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let satisfies = |row: &[Value]| condition.eval(|column| Ok::<_, Error>(row[column].as_ref())).unwrap() == Some(true);
    let expected: Vec<Part> = model.values().filter(|(_, row)| satisfies(row)).map(|(_, row)| part_of(row)).collect();
    let mut found = Vec::new();
    let mut looked_at = 0;
    let request = ScanRequest { columns: Some(COLUMNS.to_vec()), condition: Some(condition.clone()), ..ScanRequest::default() };
    for batch in view.scan(table, &request).unwrap() {
        let batch = batch.unwrap();
        parts(table, &batch, &mut found);
        looked_at += batch.rows_looked_at();
    }
    found.sort_unstable();
    assert!(found == expected, "{text}: {} rows instead of {}", found.len(), expected.len());
    assert!(looked_at <= model.len());
    expected.len()
}

#[test]
fn conditions_are_filters() {
    let database = database();
    let mut random = Random(11);
    let (table, mut model) = loaded(&database, &mut random);
    let mut found = 0;
    for _ in 0..1000 {
        let condition = condition(&mut random, &model);
        found += compare(&table, &database.read_view(), &model, &condition);
    }
    assert!(found > 10_000, "{found} rows");
    // Rows are patched, lie by themselves, move, go and come.
    let repeatable = TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() };
    for round in 0..30 {
        let mut reader = database.begin(repeatable);
        let before = model.clone();
        compare(&table, &reader.read_view().unwrap(), &before, "id >= 0");
        let mut writer = database.begin(TransactionOptions::default());
        for _ in 0..60 {
            let (id, rid) = model.iter().nth(random.index(model.len())).map(|(id, row)| (*id, row.0)).unwrap();
            let shape = random.index(5);
            let fresh = row(&mut random, id, shape);
            match random.index(6) {
                0 => {
                    assert!(writer.delete(&table, rid).unwrap());
                    model.remove(&id);
                }
                1 => {
                    let id = 3000 + round * 100 + random.index(100) as i64;
                    let fresh = row(&mut random, id, shape);
                    model.entry(id).or_insert_with(|| (writer.insert(&table, &refs(&fresh)).unwrap(), fresh));
                }
                2 => {
                    assert!(writer.update(&table, rid, &[(8, fresh[8].as_ref()), (7, fresh[7].as_ref())]).unwrap());
                    let row = &mut model.get_mut(&id).unwrap().1;
                    row[7..9].clone_from_slice(&fresh[7..9]);
                }
                _ => {
                    assert!(writer.update(&table, rid, &[(1, fresh[1].as_ref())]).unwrap());
                    model.get_mut(&id).unwrap().1[1] = fresh[1].clone();
                }
            }
        }
        for _ in 0..4 {
            let condition = condition(&mut random, &model);
            compare(&table, &writer.read_view().unwrap(), &model, &condition);
            compare(&table, &reader.read_view().unwrap(), &before, &condition);
        }
        if round % 3 == 2 {
            writer.rollback().unwrap();
            model = before;
        } else {
            writer.commit().unwrap();
        }
        compare(&table, &database.read_view(), &model, &condition(&mut random, &model));
    }
}

#[test]
fn a_scan_that_finds_nothing_can_be_stopped() {
    let database = database();
    let mut random = Random(12);
    let schema = Schema::new(vec![Column::new("id", DataType::BigInt, false)]).unwrap();
    let mut change = database.change();
    let attributes = TableAttributes { method: Method::Page, ..TableAttributes::new("t", schema.clone()).with_page_bytes(8192) };
    let table = change.create_table(attributes).unwrap();
    load_rows(&table, &(0..40_000).map(|_| vec![Value::Int(random.index(1000) as i64)]).collect::<Vec<_>>());
    change.commit().unwrap();
    let condition = Predicate::parse("id < 0", &schema).unwrap();
    let request = ScanRequest { columns: Some(vec![0]), condition: Some(condition), ..ScanRequest::default() };
    let mut scan = database.read_view().scan(&table, &request).unwrap();
    let first = scan.next().unwrap().unwrap();
    assert!(first.is_empty() && (1..30_000).contains(&first.rows_looked_at()), "{} rows", first.rows_looked_at());
    let rest: usize = scan.map(|batch| batch.unwrap().len()).sum();
    assert_eq!(rest, 0);
}
