//! Conditions as a user writes them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::schema::every_type;
use pagefold_types::{
    ColumnTest, ColumnValue, Condition, DataType, Direction, KeyLayout, Parts, Predicate, RowLayout, Schema, Term, Value, ValueRef, text,
};
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

/// Asks each part by itself.
fn says(term: Term<'_>, record: &[u8]) -> bool {
    match term.parts() {
        Parts::And(terms) => terms.into_iter().all(|term| says(term, record)),
        Parts::Or(terms) => terms.into_iter().any(|term| says(term, record)),
        Parts::Other => term.to_predicate().matches(&TABLE.layout, record).expect("a record"),
        Parts::Column(column, test) => {
            let reader = TABLE.layout.reader(column).expect("a column");
            match reader.value(record).expect("a record") {
                ColumnValue::Value(ValueRef::Text(text)) if matches!(test, ColumnTest::Like { .. }) => {
                    let padded = matches!(TABLE.schema.columns()[column].data_type, DataType::Char(_));
                    test.meets(ValueRef::Text(if padded { text.trim_end_matches(' ') } else { text }))
                }
                ColumnValue::Value(value) => test.meets(value),
                ColumnValue::Large(_) => false,
            }
        }
    }
}

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
    // Taken apart, it says the same; printed, it is read as itself.
    for (i, matched) in matches.iter().enumerate() {
        assert_eq!(*matched, says(predicate.term(), &TABLE.records[i]), "row {i}");
    }
    let condition = Condition::parse(&text).expect("it was bound");
    assert_eq!(Condition::parse(&condition.to_string()).as_ref(), Ok(&condition), "{condition}");
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
