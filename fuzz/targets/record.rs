//! A packed record under any schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{ColumnValue, Direction, KeyLayout, RowLayout};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let Ok(layout) = RowLayout::new(&schema) else { return };
    let record = input.rest();
    let columns = layout.column_count();
    let valid = layout.validate(record);
    for column in 0..columns {
        let value = layout.column(record, column);
        assert!(valid.is_err() || value.is_ok());
        let reader = layout.reader(column).expect("a column");
        let _ = (reader.int(record), reader.decimal(record), reader.boolean(record), reader.real(record));
        let _ = (reader.double(record), reader.uuid(record), reader.bytes(record), reader.value(record));
    }
    for column in 0..=columns {
        let _ = (layout.value(record, column), layout.int_at(record, column), layout.decimal_at(record, column));
        let _ = (layout.bytes_at(record, column), layout.column(record, column));
    }
    let _ = (layout.large_values(record), layout.column(record, columns));
    if valid.is_err() {
        return;
    }
    let values = layout.decode(record).expect("valid");
    let mut again = Vec::new();
    layout.encode_columns(&values, &mut again).expect("what a record holds");
    assert_eq!(again, record, "two records of the same values");

    let key = KeyLayout::new(&schema, &[(0, Direction::Ascending), (columns - 1, Direction::Descending)]);
    let mut from_record = Vec::new();
    let made = key.encode_from_record(&layout, record, &mut from_record);
    let plain: Option<Vec<_>> = values.iter().map(|v| if let ColumnValue::Value(v) = v { Some(*v) } else { None }).collect();
    if let Some(plain) = plain {
        made.expect("no value lies outside");
        let mut from_values = Vec::new();
        key.encode_from_values(&plain, &mut from_values).expect("the same");
        assert_eq!(from_values, from_record);
        let back = key.decode(&from_record).expect("a key");
        assert!(back[0].as_ref() == plain[0] && back[1].as_ref() == plain[columns - 1]);
    }
});
