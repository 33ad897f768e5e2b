//! A compact record under any schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{CompactLayout, RECORD_BYTES_MAX, RowLayout};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let Ok(packed_layout) = RowLayout::new(&schema) else { return };
    let layout = CompactLayout::new(packed_layout.clone());
    let record = input.rest();
    let columns = packed_layout.column_count();
    let valid = layout.validate(record);
    let mut packed = b"before".to_vec();
    let expanded = layout.expand(record, &mut packed);
    assert!(packed.starts_with(b"before") && packed.len() - 6 == expanded.unwrap_or(0) && packed.len() - 6 <= RECORD_BYTES_MAX);
    for column in 0..=columns {
        let span = layout.column_span(record, column);
        assert!(span.is_ok() || valid.is_err() || column == columns);
        if let Ok(span) = span {
            assert!(record.get(span).is_some());
        }
        let _ = (layout.column(record, column), layout.large_value(record, column), layout.is_null(record, column));
        let _ = (layout.boolean(record, column), layout.int(record, column), layout.decimal(record, column));
        let _ = (layout.real(record, column), layout.double(record, column), layout.uuid(record, column));
    }
    // Some columns: every second one, and those that are integers.
    let choose = |keep: &dyn Fn(usize) -> bool| (0..columns).filter(|column| keep(*column)).collect::<Vec<usize>>();
    let second = choose(&|column| column % 2 == record.len() % 2);
    let mut part = b"before".to_vec();
    let some = layout.expand_columns(record, &second, &mut part);
    assert!(part.starts_with(b"before") && part.len() - 6 == some.unwrap_or(0) && part.len() - 6 <= RECORD_BYTES_MAX);
    let integers = choose(&|column| layout.integer_columns(&[column]).is_some());
    let reader = layout.integer_columns(&integers).expect("each is one");
    let mut words = vec![0xA5; record.len() % 7];
    let read = reader.expand(&layout, record, &mut words);
    assert!(read.is_ok() || valid.is_err());
    if valid.is_err() {
        return;
    }
    expanded.expect("valid");
    some.expect("valid");
    let words = &words[..read.expect("valid")];
    for (chosen, part) in [(&second, &part[6..]), (&integers, words)] {
        for column in chosen {
            assert_eq!(packed_layout.column(part, *column), packed_layout.column(&packed[6..], *column));
        }
    }
    packed_layout.validate(&packed[6..]).expect("a packed record");
    let mut again = Vec::new();
    match layout.compact(&packed[6..], &mut again) {
        Some(_) => assert_eq!(again, record, "two compact records of the same values"),
        None => assert!(record.len() >= packed.len() - 6),
    }
});
