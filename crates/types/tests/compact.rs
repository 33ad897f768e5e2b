//! The compact record: there and back, column by column against the packed record, golden bytes, damaged bytes.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Rng, refs, row, schema};
use pagefold_types::{
    Column, ColumnValue, CompactLayout, DataType, LargeValueRef, Physical, RecordError, RowLayout, Schema, Value, ValueRef,
};

fn layouts(schema: &Schema) -> (RowLayout, CompactLayout) {
    let packed = RowLayout::new(schema).unwrap();
    (packed.clone(), CompactLayout::new(packed))
}

/// A packed record of random values, some of them large-value references.
fn packed_record(rng: &mut Rng, schema: &Schema, layout: &RowLayout) -> Vec<u8> {
    let values = row(rng, schema);
    let mut columns: Vec<ColumnValue<'_>> = refs(&values).into_iter().map(ColumnValue::Value).collect();
    for (index, column) in columns.iter_mut().enumerate() {
        if layout.fixed_span(index).is_none() && rng.chance(10) {
            let word = rng.next() as u32;
            *column = ColumnValue::Large(LargeValueRef { first_page: word, raw_bytes: word >> 3, tag: 0, partition: 9 });
        }
    }
    let mut packed = Vec::new();
    layout.encode_columns(&columns, &mut packed).unwrap();
    packed
}

/// What the typed readers say of a column, in the form of the packed record's.
fn read<'r>(layout: &CompactLayout, record: &'r [u8], column: usize) -> Result<ColumnValue<'r>, RecordError> {
    let value = |value: Option<ValueRef<'r>>| ColumnValue::Value(value.unwrap_or(ValueRef::Null));
    if let Some(large) = layout.large_value(record, column)? {
        assert_eq!(layout.column(record, column), Err(RecordError::Large { column }));
        return Ok(ColumnValue::Large(large));
    }
    let bytes = layout.column(record, column)?;
    assert_eq!(bytes.is_none(), layout.is_null(record, column).unwrap());
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    Ok(match layout.packed().data_type(column).physical() {
        Physical::Boolean => value(layout.boolean(record, column)?.map(ValueRef::Boolean)),
        Physical::Int { .. } => value(layout.int(record, column)?.map(ValueRef::Int)),
        Physical::Decimal { .. } => value(layout.decimal(record, column)?.map(ValueRef::Decimal)),
        Physical::Real => value(layout.real(record, column)?.map(ValueRef::Real)),
        Physical::Double => value(layout.double(record, column)?.map(ValueRef::Double)),
        Physical::Uuid => value(layout.uuid(record, column)?.map(ValueRef::Uuid)),
        Physical::Interval => value(layout.interval(record, column)?.map(ValueRef::Interval)),
        Physical::Char { .. } | Physical::Text => value(bytes.map(text).map(ValueRef::Text)),
        Physical::Bytes => value(bytes.map(ValueRef::Bytes)),
    })
}

/// Equal bit for bit, but for blanks at the end of CHAR.
fn same(packed: ColumnValue<'_>, compact: ColumnValue<'_>, data_type: DataType) -> bool {
    match (packed, compact) {
        (ColumnValue::Value(ValueRef::Real(a)), ColumnValue::Value(ValueRef::Real(b))) => a.to_bits() == b.to_bits(),
        (ColumnValue::Value(ValueRef::Double(a)), ColumnValue::Value(ValueRef::Double(b))) => a.to_bits() == b.to_bits(),
        (ColumnValue::Value(ValueRef::Text(a)), ColumnValue::Value(ValueRef::Text(b))) if matches!(data_type, DataType::Char(_)) => {
            a.trim_end_matches(' ') == b
        }
        (packed, compact) => packed == compact,
    }
}

#[test]
fn random_rows_come_back_column_by_column() {
    let mut rng = Rng(1);
    let (mut smaller, mut others, mut read_alone) = (0, 0, 0);
    for columns in [1, 3, 15, 16, 17, 33, 70] {
        for _ in 0..120 {
            let schema = schema(&mut rng, columns);
            let (packed_layout, layout) = layouts(&schema);
            for _ in 0..15 {
                let packed = packed_record(&mut rng, &schema, &packed_layout);
                let mut compact = b"kept".to_vec();
                let len = layout.compact(&packed, &mut compact);
                assert_eq!((layout.compact_len(&packed), &compact[..4], compact.len() - 4), (len, &b"kept"[..], len.unwrap_or(0)));
                if len.is_none() {
                    others += 1;
                    continue;
                }
                smaller += 1;
                let compact = &compact[4..];
                assert!(compact.len() < packed.len());
                layout.validate(compact).unwrap();
                let mut back = b"kept".to_vec();
                assert_eq!(layout.expand(compact, &mut back), Ok(packed.len()));
                assert_eq!((&back[..4], &back[4..]), (&b"kept"[..], &packed[..]));
                let mut spans = Vec::new();
                for column in 0..packed_layout.column_count() {
                    let expected = packed_layout.column(&packed, column).unwrap();
                    let found = read(&layout, compact, column).unwrap();
                    assert!(same(expected, found, packed_layout.data_type(column)), "{expected:?}, {found:?}");
                    spans.push(layout.column_span(compact, column).unwrap());
                }
                assert!(layout.column_span(compact, spans.len()).is_err());
                // Some integers without the rest.
                let wanted: Vec<usize> = (0..spans.len()).filter(|_| rng.chance(3)).collect();
                if let Some(integers) = layout.integer_columns(&wanted) {
                    read_alone += usize::from(!wanted.is_empty());
                    let mut record = vec![0xAA; rng.below(100) as usize];
                    let len = integers.expand(&layout, compact, &mut record).unwrap();
                    for column in wanted {
                        let expected = packed_layout.column(&packed, column).unwrap();
                        assert_eq!(packed_layout.column(&record[..len], column).unwrap(), expected);
                    }
                }
                // Every byte behind the header is one column's, or of the two of a long one.
                let long = spans.iter().filter(|span| span.len() > 14).count();
                assert_eq!(layout.header_len() + spans.iter().map(|span| span.len()).sum::<usize>() + 2 * long, compact.len());
            }
        }
    }
    assert!(smaller > 2000 && others > 500 && read_alone > 200, "{smaller}, {others}, {read_alone}");
}

#[test]
fn golden_bytes() {
    let column = Column::new;
    let schema = Schema::new(vec![
        column("a", DataType::Integer, false),
        column("b", DataType::Char(5), true),
        column("c", DataType::Varchar(None), false),
        column("d", DataType::Double, false),
        column("e", DataType::Decimal { precision: 10, scale: 2 }, false),
        column("f", DataType::Boolean, false),
        column("g", DataType::BigInt, true),
    ])
    .unwrap();
    let (packed_layout, layout) = layouts(&schema);
    let values = [
        ValueRef::Int(300),
        ValueRef::Text("ab"),
        ValueRef::Text("a long text of 23 bytes"),
        ValueRef::Double(1.5),
        ValueRef::Decimal(-1),
        ValueRef::Boolean(false),
        ValueRef::Null,
    ];
    let (mut packed, mut compact) = (Vec::new(), Vec::new());
    packed_layout.encode(&values, &mut packed).unwrap();
    assert_eq!(layout.compact(&packed, &mut compact), Some(37));
    // NULL bitmap, lengths, 300, ab, end offset, 1.5, -1, text.
    let expected: [&[u8]; 8] =
        [&[2], &[0x22, 0x2f, 0x01, 0x00], &[0x2c, 1], b"ab", &[37, 0], &[0xf8, 0x3f], &[0xff], b"a long text of 23 bytes"];
    assert_eq!(compact, expected.concat());
    assert_eq!(packed.len(), 59);
    let mut back = Vec::new();
    layout.expand(&expected.concat(), &mut back).unwrap();
    assert_eq!(back, packed);
}

#[test]
fn golden_bytes_of_more_columns_than_a_word_has_lengths() {
    let columns = (0..35).map(|number| Column::new(format!("c{number}"), DataType::BigInt, false)).collect();
    let (packed_layout, layout) = layouts(&Schema::new(columns).unwrap());
    let values: Vec<ValueRef<'_>> = (0..35).map(|number| ValueRef::Int(number * 8)).collect();
    let (mut packed, mut compact) = (Vec::new(), Vec::new());
    packed_layout.encode(&values, &mut packed).unwrap();
    layout.compact(&packed, &mut compact).unwrap();
    // 0 takes no byte, 8 to 120 take one, 128 to 248 two with the sign, 256 to 272 two.
    let lengths: Vec<u8> = [0x10].into_iter().chain([0x11; 7]).chain([0x22; 8]).chain([0x22, 0x02]).collect();
    assert_eq!(compact[..18], lengths);
    assert_eq!(compact[18..22], [15, 0, 47, 0]);
    assert_eq!((layout.header_len(), compact.len()), (22, 22 + 15 + 2 * 19));
    assert_eq!(compact[22..37], [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120]);
    assert_eq!(compact[73..], [16, 1]);
}

#[test]
fn integers_take_the_bytes_they_need() {
    let (packed_layout, layout) = layouts(&Schema::new(vec![Column::new("a", DataType::BigInt, false)]).unwrap());
    for bits in 0..63 {
        for value in [(1_i64 << bits) - 1, 1 << bits, -(1 << bits), -(1 << bits) - 1] {
            let mut packed = Vec::new();
            packed_layout.encode(&[ValueRef::Int(value)], &mut packed).unwrap();
            let needed =
                (0..=8).find(|&bytes| if bytes == 0 { value == 0 } else { value << (64 - 8 * bytes) >> (64 - 8 * bytes) == value });
            let needed = needed.unwrap();
            assert_eq!(layout.compact_len(&packed), Some(1 + needed).filter(|&len| len < 8), "{value}");
            let mut compact = Vec::new();
            if layout.compact(&packed, &mut compact).is_some() {
                assert_eq!(layout.int(&compact, 0), Ok(Some(value)));
            }
        }
    }
}

#[test]
fn values_have_one_form() {
    // One column: the record is its length, then its bytes.
    let valid = |data_type, bytes: &[u8]| {
        let (_, layout) = layouts(&Schema::new(vec![Column::new("a", data_type, false)]).unwrap());
        let long = [&[15, 3 + bytes.len() as u8, 0], bytes].concat();
        assert!(bytes.len() > 14 || layout.validate(&long).is_err(), "a short value as a long one");
        layout.validate(&[&[bytes.len() as u8], bytes].concat()).is_ok()
    };
    let decimal = DataType::Decimal { precision: 3, scale: 0 };
    for (data_type, good, bad) in [
        (DataType::Integer, &[&[][..], &[1], &[0xff], &[0x80, 0]], &[&[0][..], &[1, 0], &[0xff, 0xff], &[1, 0, 0, 0, 0]]),
        (DataType::Boolean, &[&[][..], &[1], &[1], &[1]], &[&[0][..], &[2], &[0xff], &[1, 0]]),
        (decimal, &[&[][..], &[1], &[0xe7, 3], &[0x19, 0xfc]], &[&[0][..], &[0xe8, 3], &[0x18, 0xfc], &[1, 0, 0]]),
        (DataType::Double, &[&[][..], &[0x80], &[0xf8, 0x3f], &[1, 0]], &[&[0][..], &[0, 0x3f], &[0, 0], &[0; 9]]),
        (DataType::Char(4), &[&b""[..], b"abcd", b" b", "äöü€".as_bytes()], &[&b" "[..], b"abc ", b"abcde", b"\xff"]),
        (DataType::Varchar(Some(4)), &[&b""[..], b"abcd", b"a ", "äöü€".as_bytes()], &[&b"abcde"[..], b"\xff", b"     ", b"abc\xc3"]),
        (DataType::Uuid, &[], &[&[0_u8; 0][..], &[1], &[1; 14], &[0; 13]]),
        (DataType::Interval, &[], &[&[0_u8; 0][..], &[1], &[1; 14], &[0; 13]]),
    ] as [(DataType, &[&[u8]], &[&[u8]; 4]); 8]
    {
        for bytes in good {
            assert!(valid(data_type, bytes), "{data_type:?} {bytes:?}");
        }
        for bytes in bad {
            assert!(!valid(data_type, bytes), "{data_type:?} {bytes:?}");
        }
    }
}

#[test]
fn a_value_of_the_same_length_is_changed_in_place() {
    let columns = vec![Column::new("a", DataType::Integer, false), Column::new("b", DataType::Char(30), false)];
    let (packed_layout, layout) = layouts(&Schema::new(columns).unwrap());
    let compact = |int, text| {
        let (mut packed, mut compact) = (Vec::new(), Vec::new());
        packed_layout.encode(&[ValueRef::Int(int), ValueRef::Text(text)], &mut packed).unwrap();
        layout.compact(&packed, &mut compact).unwrap();
        compact
    };
    let mut record = compact(1000, "a text of 21 bytes...");
    let span = layout.column_span(&record, 0).unwrap();
    record[span].copy_from_slice(&2000_i16.to_le_bytes());
    let span = layout.column_span(&record, 1).unwrap();
    record[span][..6].copy_from_slice(b"A TEXT");
    assert_eq!(record, compact(2000, "A TEXT of 21 bytes..."));
}

/// No access to any bytes panics; what is valid is the one form of its packed record.
fn check(packed_layout: &RowLayout, layout: &CompactLayout, record: &[u8]) -> bool {
    let mut packed = vec![7];
    let expanded = layout.expand(record, &mut packed);
    assert_eq!(packed[0], 7);
    assert_eq!(expanded.unwrap_or(0), packed.len() - 1);
    assert!(packed.len() <= pagefold_types::RECORD_BYTES_MAX + 1);
    for column in 0..=packed_layout.column_count() {
        if let Ok(span) = layout.column_span(record, column) {
            assert!(span.start <= span.end && span.end <= record.len());
        }
        let _ = (layout.column(record, column), layout.large_value(record, column), layout.is_null(record, column));
        let _ = (layout.boolean(record, column), layout.int(record, column), layout.decimal(record, column));
        let _ = (layout.real(record, column), layout.double(record, column), layout.uuid(record, column));
    }
    if layout.validate(record).is_err() {
        return false;
    }
    expanded.unwrap();
    packed_layout.validate(&packed[1..]).unwrap();
    for column in 0..packed_layout.column_count() {
        let expected = packed_layout.column(&packed[1..], column).unwrap();
        assert!(same(expected, read(layout, record, column).unwrap(), packed_layout.data_type(column)));
    }
    let mut again = Vec::new();
    if layout.compact(&packed[1..], &mut again).is_some() {
        assert_eq!(again, record);
    } else {
        assert!(record.len() >= packed.len() - 1);
    }
    true
}

#[test]
fn damaged_records_do_no_harm() {
    let mut rng = Rng(5);
    let (mut valid, mut damaged_count) = (0, 0);
    for columns in [1, 4, 20, 40] {
        for _ in 0..150 {
            let schema = schema(&mut rng, columns);
            let (packed_layout, layout) = layouts(&schema);
            let packed = packed_record(&mut rng, &schema, &packed_layout);
            let mut compact = Vec::new();
            layout.compact(&packed, &mut compact);
            for _ in 0..30 {
                let mut damaged = compact.clone();
                for _ in 0..=rng.below(3) {
                    let at = rng.below(damaged.len() as u64 + 1) as usize;
                    match (rng.below(5), damaged.get_mut(at)) {
                        (0, _) => damaged.truncate(at),
                        (1, _) => damaged.insert(at, rng.next() as u8),
                        (2, Some(byte)) => *byte = [0, 0xff, 0x7f, 0x80][rng.below(4) as usize],
                        (_, Some(byte)) => *byte ^= 1 << rng.below(8),
                        _ => damaged.push(rng.next() as u8),
                    }
                }
                let accepted = check(&packed_layout, &layout, &damaged);
                (valid, damaged_count) = (valid + usize::from(accepted), damaged_count + usize::from(!accepted));
            }
            let random: Vec<u8> = (0..rng.below(120)).map(|_| rng.next() as u8 & rng.next() as u8).collect();
            check(&packed_layout, &layout, &random);
        }
    }
    assert!(valid > 1000 && damaged_count > 1000, "{valid} valid, {damaged_count} not");
}

#[test]
fn char_is_padded_in_characters_and_bounded() {
    let columns = vec![Column::new("a", DataType::Char(32_000), true), Column::new("b", DataType::Char(32_000), true)];
    let (packed_layout, layout) = layouts(&Schema::new(columns).unwrap());
    let (mut packed, mut compact) = (Vec::new(), Vec::new());
    packed_layout.encode(&[Value::Text("ä€".into()).as_ref(), ValueRef::Null], &mut packed).unwrap();
    assert_eq!(layout.compact(&packed, &mut compact), Some(7));
    check(&packed_layout, &layout, &compact);
    // Both as blanks only: no record is as long as that.
    let mut out = Vec::new();
    assert!(matches!(layout.expand(&[0, 0], &mut out), Err(RecordError::Length { .. })));
    assert!(matches!(layout.validate(&[0, 0]), Err(RecordError::Length { .. })));
    assert!(out.is_empty());
}
