//! Conditions as a user writes them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::schema::every_type;
use pagefold_types::{ColumnTest, ColumnValue, Direction, KeyLayout, Predicate, RowLayout, Schema, Value, text};
use std::ops::RangeBounds;
use std::sync::LazyLock;

struct Table {
    schema: Schema,
    layout: RowLayout,
    records: Vec<Vec<u8>>,
    keys: Vec<KeyLayout>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let schema = every_type();
    let layout = RowLayout::new(&schema).expect("narrow");
    let records = ["1", "0", "-1"]
        .into_iter()
        .map(|number| {
            let values: Vec<Value> = schema
                .columns()
                .iter()
                .map(|c| {
                    let texts = [
                        number,
                        "true",
                        "2024-02-29",
                        "12:30:00",
                        "2024-02-29 12:30:00",
                        "2024-02-29 12:30:00+00",
                        r"\x00ff",
                        "00000000-0000-0000-0000-00000000000a",
                    ];
                    texts.iter().find_map(|t| text::parse(t, &c.data_type).ok()).expect("a value")
                })
                .collect();
            let mut record = Vec::new();
            layout.encode(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut record).expect("a row");
            record
        })
        .collect();
    let pairs = (0..schema.len()).map(|i| {
        let next = (i + 5) % schema.len();
        KeyLayout::new(&schema, &[(i, Direction::Ascending), (next, Direction::Descending), (0, Direction::Ascending)])
    });
    let keys = pairs.collect();
    Table { schema, layout, records, keys }
});

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let predicate = match Predicate::parse(&text, &TABLE.schema) {
        Ok(predicate) => predicate,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    assert!(predicate.columns().iter().all(|c| *c < TABLE.schema.len()));
    let matches: Vec<bool> = TABLE.records.iter().map(|r| predicate.matches(&TABLE.layout, r).expect("a record")).collect();
    // Terms that are taken, by themselves, and what is left say the same.
    let mut taken: Vec<Vec<bool>> = Vec::new();
    let mut offered = 0;
    let rest = predicate.take_terms(|column, test| {
        offered += 1;
        if offered % 3 == 0 {
            return false;
        }
        let reader = TABLE.layout.reader(column).expect("a column");
        let meets = TABLE.records.iter().map(|record| match (reader.value(record).expect("a record"), test) {
            (ColumnValue::Value(value), ColumnTest::Null) => value.is_null(),
            (ColumnValue::Value(value), ColumnTest::NotNull) => !value.is_null(),
            (ColumnValue::Value(value), ColumnTest::Between(low, high)) => !value.is_null() && (low, high).contains(&value),
            (ColumnValue::Large(_), _) => false,
        });
        taken.push(meets.collect());
        true
    });
    for (i, matched) in matches.iter().enumerate() {
        let left = rest.as_ref().is_none_or(|rest| rest.matches(&TABLE.layout, &TABLE.records[i]).expect("a record"));
        assert_eq!(*matched, left && taken.iter().all(|meets| meets[i]), "row {i}");
    }
    for layout in &TABLE.keys {
        let ranges = predicate.key_ranges(layout);
        assert!(ranges.windows(2).all(|pair| pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start)), "ranges are not apart");
        for (record, matched) in TABLE.records.iter().zip(&matches) {
            let mut key = Vec::new();
            layout.encode_from_record(&TABLE.layout, record, &mut key).expect("a key");
            let within = ranges.iter().any(|r| r.start <= key && r.end.as_ref().is_none_or(|end| key < *end));
            assert!(within || !matched, "a row that matches lies outside the ranges");
        }
    }
});
