//! Values to records and back; damaged records.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Rng, identical, refs, row, schema, stored};
use pagefold_types::{
    BatchWriter, Column, ColumnValue, DataType, LargeValueRef, PackedRow, PackedRows, Physical, RECORD_BYTES_MAX, RecordError, RowLayout,
    Schema, Value, ValueError, ValueRef,
};

fn no_large(_: LargeValueRef) -> Result<Vec<u8>, RecordError> {
    unreachable!("no large values here")
}

#[test]
fn round_trip() {
    let mut rng = Rng(1);
    for _ in 0..20_000 {
        let schema = schema(&mut rng, 20);
        let layout = RowLayout::new(&schema).unwrap();
        let values = row(&mut rng, &schema);
        let mut record = vec![7];
        let length = layout.encode(&refs(&values), &mut record).unwrap();
        let record = &record[1..];
        assert_eq!(length, record.len());
        assert_eq!(layout.encoded_len(&refs(&values)).unwrap(), length);
        layout.validate(record).unwrap();
        let back = layout.decode_owned(record, no_large).unwrap();
        for ((back, value), column) in back.iter().zip(&values).zip(schema.columns()) {
            assert!(identical(back, &stored(value, &column.data_type)), "{back:?} {value:?} {column:?}");
        }
    }
}

#[test]
fn typed_access_agrees() {
    let mut rng = Rng(2);
    for _ in 0..5_000 {
        let schema = schema(&mut rng, 12);
        let layout = RowLayout::new(&schema).unwrap();
        let values = row(&mut rng, &schema);
        let mut record = Vec::new();
        layout.encode(&refs(&values), &mut record).unwrap();
        for i in 0..schema.len() {
            let reader = layout.reader(i).unwrap();
            let value = layout.value(&record, i).unwrap();
            assert_eq!(reader.is_null(&record), value.is_null());
            let by_type = match reader.physical() {
                Physical::Boolean => reader.boolean(&record).unwrap().map(ValueRef::Boolean),
                Physical::Int { .. } => layout.int_at(&record, i).unwrap().map(ValueRef::Int),
                Physical::Decimal { .. } => layout.decimal_at(&record, i).unwrap().map(ValueRef::Decimal),
                Physical::Real => reader.real(&record).unwrap().map(ValueRef::Real),
                Physical::Double => reader.double(&record).unwrap().map(ValueRef::Double),
                Physical::Uuid => reader.uuid(&record).unwrap().map(ValueRef::Uuid),
                Physical::Interval => reader.interval(&record).unwrap().map(ValueRef::Interval),
                Physical::Bytes => layout.bytes_at(&record, i).unwrap().map(ValueRef::Bytes),
                Physical::Text | Physical::Char { .. } => {
                    layout.bytes_at(&record, i).unwrap().map(|b| ValueRef::Text(std::str::from_utf8(b).unwrap()))
                }
            };
            assert_eq!(by_type.unwrap_or(ValueRef::Null), value);
            if !value.is_null() && !matches!(reader.physical(), Physical::Int { .. }) {
                assert!(layout.int_at(&record, i).is_err());
            }
        }
        assert_eq!(layout.column(&record, schema.len()), Err(RecordError::NoSuchColumn { column: schema.len() }));
    }
}

/// Any bytes: no panic; what `validate` lets pass is fully readable and is exactly what `encode` makes of its values.
fn probe(layout: &RowLayout, record: &[u8]) -> bool {
    let valid = layout.validate(record).is_ok();
    let columns = layout.decode(record);
    for i in 0..layout.column_count() {
        let reader = layout.reader(i).unwrap();
        let _ = (reader.int(record), reader.decimal(record), reader.bytes(record), reader.uuid(record), reader.double(record));
        let _ = (reader.real(record), reader.boolean(record));
    }
    let _ = layout.large_values(record);
    if valid {
        let mut again = Vec::new();
        layout.encode_columns(&columns.unwrap(), &mut again).unwrap();
        assert_eq!(again, record);
    }
    valid
}

#[test]
fn hostile_records() {
    let mut rng = Rng(3);
    let mut refused = 0;
    for _ in 0..3_000 {
        let schema = schema(&mut rng, 10);
        let layout = RowLayout::new(&schema).unwrap();
        let mut record = Vec::new();
        layout.encode(&refs(&row(&mut rng, &schema)), &mut record).unwrap();
        for cut in 0..record.len() {
            assert!(!probe(&layout, &record[..cut]), "a cut record is refused");
        }
        for _ in 0..50 {
            let mut damaged = record.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << rng.below(8);
            }
            refused += u32::from(!probe(&layout, &damaged));
        }
        let n = rng.below(200);
        let noise: Vec<u8> = (0..n).map(|_| rng.next() as u8).collect();
        probe(&layout, &noise);
        record.push(0);
        assert!(!probe(&layout, &record), "bytes behind the record are refused");
    }
    assert!(refused > 10_000, "{refused}");
}

#[test]
fn misfits_name_the_column() {
    let schema = Schema::new(vec![
        Column::new("small", DataType::SmallInt, false),
        Column::new("price", DataType::Decimal { precision: 5, scale: 2 }, true),
        Column::new("code", DataType::Char(3), true),
        Column::new("word", DataType::Varchar(Some(4)), true),
        Column::new("time", "TIME(0)".parse().unwrap(), true),
    ])
    .unwrap();
    let layout = RowLayout::new(&schema).unwrap();
    let good = [Value::Int(1), Value::Decimal(-99_999), Value::Text("abc  ".into()), Value::Text("€€€€".into()), Value::Int(86_400)];
    let mut out = vec![1, 2, 3];
    let mut with = |i: usize, value: Value| {
        let mut row = good.clone();
        row[i] = value;
        let result = layout.encode(&refs(&row), &mut out);
        if result.is_err() {
            assert_eq!(out, [1, 2, 3], "left as it was");
        }
        out.truncate(3);
        result.map_err(|e| e.to_string())
    };
    with(0, Value::Int(-32_768)).unwrap();
    assert_eq!(with(0, Value::Null).unwrap_err(), "column \"small\" is NOT NULL, but the value is NULL");
    assert_eq!(with(0, Value::Int(40_000)).unwrap_err(), "column \"small\": 40000 does not fit SMALLINT");
    assert_eq!(with(1, Value::Decimal(100_000)).unwrap_err(), "column \"price\": 1000.00 does not fit DECIMAL(5,2)");
    assert_eq!(with(1, Value::Decimal(i128::MIN)).unwrap_err().matches("price").count(), 1);
    assert_eq!(with(1, Value::Int(1)).unwrap_err(), "column \"price\" is DECIMAL(5,2), but the value is an integer");
    assert_eq!(with(2, Value::Text("abcd".into())).unwrap_err(), "column \"code\": \"abcd\" does not fit CHAR(3)");
    assert_eq!(with(3, Value::Text("abcde".into())).unwrap_err(), "column \"word\": \"abcde\" does not fit VARCHAR(4)");
    assert_eq!(with(4, Value::Int(86_401)).unwrap_err(), "column \"time\": 24:00:01 does not fit TIME(0)");
    assert_eq!(layout.encode(&[], &mut Vec::new()), Err(ValueError::Count { expected: 5, found: 0 }));
}

#[test]
fn wide_rows_and_large_values() {
    let column = |n: &str, nullable| Column::new(n, DataType::Varchar(None), nullable);
    let schema = Schema::new(vec![
        Column::new("id", DataType::Integer, false),
        column("a", true),
        column("b", false),
        Column::new("c", DataType::Bytea, true),
    ])
    .unwrap();
    let layout = RowLayout::new(&schema).unwrap();
    let text = |n: usize| Value::Text("x".repeat(n));
    let values = [Value::Int(5), text(100), text(40_000), Value::Bytes(vec![1; 3_000])];
    let fixed = layout.fixed_len();
    assert_eq!(layout.encoded_len(&refs(&values)).unwrap(), fixed + 43_100);
    let too_wide = layout.encode(&refs(&values), &mut Vec::new());
    assert_eq!(too_wide, Err(ValueError::TooWide { bytes: fixed + 43_100, max: RECORD_BYTES_MAX }));

    assert_eq!(layout.plan_large(&refs(&values), RECORD_BYTES_MAX, &[]).unwrap(), [2]);
    assert_eq!(layout.plan_large(&refs(&values), 2_000, &[]).unwrap(), [2, 3]);
    assert_eq!(layout.plan_large(&refs(&values), fixed + 48, &[]).unwrap(), [1, 2, 3]);
    assert_eq!(layout.plan_large(&refs(&values), fixed + 47, &[]), Err(ValueError::TooWide { bytes: fixed + 48, max: fixed + 47 }));
    assert_eq!(layout.plan_large(&refs(&values), 2_000, &[3]), Err(ValueError::TooWide { bytes: fixed + 3_032, max: 2_000 }));
    assert_eq!(layout.plan_large(&refs(&[Value::Int(5), text(1), text(1), Value::Null]), 2_000, &[]).unwrap(), [0usize; 0]);

    let large = LargeValueRef { first_page: 9, raw_bytes: 40_000, tag: 800, partition: 1 };
    let columns = [
        ColumnValue::Value(values[0].as_ref()),
        ColumnValue::Value(values[1].as_ref()),
        ColumnValue::Large(large),
        ColumnValue::Value(values[3].as_ref()),
    ];
    let mut record = Vec::new();
    layout.encode_columns(&columns, &mut record).unwrap();
    layout.validate(&record).unwrap();
    assert_eq!(layout.decode(&record).unwrap(), columns);
    assert_eq!(layout.large_values(&record).unwrap(), [(2, large)]);
    assert_eq!(layout.value(&record, 2), Err(RecordError::Large { column: 2 }));
    assert_eq!(layout.bytes_at(&record, 2), Err(RecordError::Large { column: 2 }));
    let back = layout
        .decode_owned(&record, |r| {
            assert_eq!(r, large);
            Ok::<_, RecordError>(layout.large_bytes(2, values[2].as_ref()).unwrap())
        })
        .unwrap();
    assert_eq!(back, values);
    assert_eq!(layout.large_value(1, vec![0xFF]), Err(RecordError::Utf8 { column: 1 }));
    assert!(matches!(
        layout.encode_columns(&[ColumnValue::Large(large), columns[1], columns[2], columns[3]], &mut Vec::new()),
        Err(ValueError::NotLarge { .. })
    ));

    let mut replaced = Vec::new();
    let changes = [(1, ColumnValue::Large(large)), (2, ColumnValue::Value(ValueRef::Text("short")))];
    layout.replace(&record, &changes, &mut replaced).unwrap().unwrap();
    layout.validate(&replaced).unwrap();
    assert_eq!(layout.large_values(&replaced).unwrap(), [(1, large)]);
    assert_eq!(layout.value(&replaced, 2).unwrap(), ValueRef::Text("short"));
    assert_eq!(layout.value(&replaced, 3).unwrap(), values[3].as_ref());
}

#[test]
fn patches_equal_a_new_record() {
    let mut rng = Rng(4);
    for _ in 0..10_000 {
        let schema = schema(&mut rng, 12);
        let layout = RowLayout::new(&schema).unwrap();
        let mut values = row(&mut rng, &schema);
        let mut record = Vec::new();
        layout.encode(&refs(&values), &mut record).unwrap();
        let i = rng.below(schema.len() as u64) as usize;
        let value = common::value_or_null(&mut rng, &schema.columns()[i]);
        let patched = layout.patch_fixed(&mut record, i, value.as_ref());
        assert_eq!(patched.is_ok(), layout.fixed_span(i).is_some());
        if patched.is_ok() {
            values[i] = value;
        }
        let mut fresh = Vec::new();
        layout.encode(&refs(&values), &mut fresh).unwrap();
        assert_eq!(record, fresh);
        if layout.fixed_span(i).is_some() {
            assert_eq!(layout.patch_fixed(&mut record, i, ValueRef::Null).is_ok(), schema.columns()[i].nullable);
            let before = record.clone();
            let wrong = if layout.data_type(i) == DataType::Boolean { ValueRef::Int(0) } else { ValueRef::Boolean(true) };
            assert!(layout.patch_fixed(&mut record, i, wrong).is_err() && record == before);
        }
        assert!(layout.patch_fixed(&mut [], i, ValueRef::Null).is_err());
    }
}

/// Column by column gives the records that row by row gives.
#[test]
fn batches_equal_single_rows() {
    let mut rng = Rng(5);
    for _ in 0..2_000 {
        let schema = schema(&mut rng, 12);
        let layout = RowLayout::new(&schema).unwrap();
        let rows: Vec<Vec<Value>> = (0..rng.below(20)).map(|_| row(&mut rng, &schema)).collect();
        let limit = layout.fixed_len() + rng.below(120) as usize;
        let (mut expected, mut packed) = (PackedRows::default(), PackedRows::default());
        for prefix in [&rows[..rows.len() / 3], &rows[..]] {
            for values in prefix {
                expected.push(&layout, &refs(values), limit).unwrap();
            }
            write_batch(&schema, &layout, prefix, limit, &mut packed);
        }
        assert_eq!((packed.len(), packed.record_bytes()), (expected.len(), expected.record_bytes()));
        for (a, b) in packed.iter().zip(expected.iter()) {
            match (a, b) {
                (PackedRow::Record(a), PackedRow::Record(b)) => assert_eq!(a, b),
                (PackedRow::Wide(a), PackedRow::Wide(b)) => assert_eq!(a, b),
                _ => panic!("{a:?} {b:?}"),
            }
        }
    }
}

fn bytes_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(s) => Some(s.as_bytes()),
        Value::Bytes(b) => Some(b),
        _ => None,
    }
}

fn write_batch(schema: &Schema, layout: &RowLayout, rows: &[Vec<Value>], limit: usize, packed: &mut PackedRows) {
    let mut writer = BatchWriter::new(layout, rows.len(), limit, packed);
    let variable: Vec<usize> = (0..schema.len()).filter(|i| layout.fixed_span(*i).is_none()).collect();
    for i in &variable {
        writer.add_lengths(*i, |row| bytes_of(&rows[row][*i])).unwrap();
    }
    let wide = writer.place();
    for (i, column) in schema.columns().iter().enumerate() {
        match column.data_type.physical() {
            Physical::Int { .. } => writer.put_ints(i, |row| if let Value::Int(v) = rows[row][i] { Some(v) } else { None }).unwrap(),
            Physical::Decimal { .. } => {
                writer.put_decimals(i, |row| if let Value::Decimal(v) = rows[row][i] { Some(v) } else { None }).unwrap();
            }
            Physical::Char { .. } | Physical::Text | Physical::Bytes => writer.put_bytes(i, |row| bytes_of(&rows[row][i])).unwrap(),
            _ => writer.put_values(i, |row| Some(rows[row][i].as_ref()).filter(|v| !v.is_null())).unwrap(),
        }
    }
    writer.finish(&wide, |row| rows[row].clone()).unwrap();
}

#[test]
fn batches_refuse_what_rows_refuse() {
    let schema = Schema::new(vec![
        Column::new("n", DataType::SmallInt, false),
        Column::new("d", DataType::Decimal { precision: 20, scale: 0 }, false),
        Column::new("c", DataType::Char(2), false),
    ])
    .unwrap();
    let layout = RowLayout::new(&schema).unwrap();
    let mut packed = PackedRows::default();
    let mut writer = BatchWriter::new(&layout, 2, 100, &mut packed);
    let error = writer.add_lengths(2, |row| Some([&b"ab "[..], b"abc"][row])).unwrap_err();
    assert_eq!((error.0, error.1.to_string()), (1, "column \"c\": \"abc\" does not fit CHAR(2)".to_owned()));
    let mut writer = BatchWriter::new(&layout, 2, 100, &mut packed);
    writer.add_lengths(2, |_| Some(b"ab")).unwrap();
    assert!(writer.place().is_empty());
    assert_eq!(
        writer.put_ints(0, |row| [Some(1), None][row]).unwrap_err().1.to_string(),
        "column \"n\" is NOT NULL, but the value is NULL"
    );
    assert_eq!(writer.put_ints(0, |_| Some(32_768)).unwrap_err().1.to_string(), "column \"n\": 32768 does not fit SMALLINT");
    let error = writer.put_decimals(1, |row| [Some(1), Some(10i128.pow(20))][row]).unwrap_err();
    assert_eq!(error.0, 1);
}

#[test]
fn the_widest_layout_there_can_be() {
    let uuids = |n: usize| Schema::new((0..n).map(|i| Column::new(i.to_string(), DataType::Uuid, false)).collect()).unwrap();
    assert_eq!(RowLayout::new(&uuids(1_900)).unwrap().constant_len(), Some(30_400));
    let wide = Schema::new((0..1_999).map(|i| Column::new(i.to_string(), DataType::Uuid, true)).collect()).unwrap();
    assert!(RowLayout::new(&wide).is_ok());
    let mut columns = wide.columns().to_vec();
    columns.push(Column::new("last", DataType::Uuid, true));
    assert!(RowLayout::new(&Schema::new(columns).unwrap()).is_ok());
}
