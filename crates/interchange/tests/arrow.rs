//! Arrow to records to Arrow gives back the same arrays, for every type.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use arrow_array::builder::{BinaryBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType as Arrow, Field, IntervalUnit, Schema, TimeUnit};
use common::Rng;
use pagefold_interchange::{TableSchema, arrow_schema_from_bytes, arrow_schema_to_bytes};
use pagefold_types::DataType;
use std::collections::HashMap;
use std::sync::Arc;

const ROWS: usize = 1_300;

/// Values or NULL; the first ones are the extremes.
fn options<T: Copy>(rng: &mut Rng, extremes: &[T], nulls: bool, make: impl Fn(u64) -> T) -> Vec<Option<T>> {
    (0..ROWS)
        .map(|i| {
            if nulls && rng.below(4) == 0 {
                return None;
            }
            Some(extremes.get(i / 2).copied().unwrap_or_else(|| make(rng.next())))
        })
        .collect()
}

macro_rules! ints {
    ($columns:ident, $rng:ident, $nulls:ident, $($t:ty),*) => {
        $({
            type N = <$t as ArrowPrimitiveType>::Native;
            let values = options($rng, &[N::MIN, N::MAX, 0 as N], $nulls, |v| v as N);
            $columns.push(Arc::new(PrimitiveArray::<$t>::from_iter(values)));
        })*
    };
}

macro_rules! times {
    ($columns:ident, $rng:ident, $nulls:ident, $($t:ty => $most:expr),*) => {
        $({
            let most: i64 = $most;
            let values = options($rng, &[0, most as _], $nulls, |v| (v % most as u64) as _);
            $columns.push(Arc::new(PrimitiveArray::<$t>::from_iter(values)));
        })*
    };
}

fn arrays(rng: &mut Rng, nulls: bool) -> Vec<ArrayRef> {
    let mut columns: Vec<ArrayRef> = Vec::new();
    columns.push(Arc::new(BooleanArray::from(options(rng, &[], nulls, |v| v % 2 == 0))));
    ints!(columns, rng, nulls, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);
    ints!(columns, rng, nulls, Date32Type, Date64Type);
    ints!(columns, rng, nulls, TimestampSecondType, TimestampMillisecondType, TimestampMicrosecondType, TimestampNanosecondType);
    times!(columns, rng, nulls, Time32SecondType => 86_400, Time32MillisecondType => 86_400_000);
    times!(columns, rng, nulls, Time64MicrosecondType => 86_400_000_000, Time64NanosecondType => 86_400_000_000_000);
    for zone in ["UTC", "+02:00", "Europe/Berlin"] {
        let values = options(rng, &[i64::MIN, i64::MAX], nulls, |v| v as i64);
        columns.push(Arc::new(TimestampMicrosecondArray::from(values).with_timezone(zone)));
    }
    columns.push(Arc::new(Float32Array::from(options(rng, &[-0.0, f32::INFINITY, f32::MIN], nulls, |v| v as u32 as f32 / 7.0))));
    columns.push(Arc::new(Float64Array::from(options(rng, &[-0.0, f64::NEG_INFINITY, f64::MAX], nulls, |v| v as f64 / 7.0))));
    let halves = Float32Array::from(options(rng, &[-0.0, 65_504.0], nulls, |v| (v % 2_048) as f32));
    columns.push(arrow_cast::cast(&halves, &Arrow::Float16).unwrap());
    for (precision, scale) in [(1, 0), (9, 2), (15, 2), (18, 18), (19, -3), (38, 10)] {
        let limit = 10i128.pow(precision.into());
        let values = options(rng, &[limit - 1, 1 - limit, 0], nulls, |v| i128::from(v).wrapping_mul(i128::from(v) << 3 | 5) % limit);
        let array = Decimal128Array::from(values.clone()).with_precision_and_scale(precision, scale).unwrap();
        columns.push(Arc::new(array));
        let values: Vec<Option<i256>> = values.into_iter().map(|v| v.map(i256::from_i128)).collect();
        columns.push(Arc::new(Decimal256Array::from(values).with_precision_and_scale(precision, scale).unwrap()));
    }
    columns.push(Arc::new(
        Decimal64Array::from(options(rng, &[999_999_999_999_999_999, -1], nulls, |v| (v >> 8) as i64))
            .with_precision_and_scale(18, 4)
            .unwrap(),
    ));
    columns.push(Arc::new(
        Decimal32Array::from(options(rng, &[999_999_999, -1], nulls, |v| (v >> 36) as i32)).with_precision_and_scale(9, 4).unwrap(),
    ));

    let words = ["", "a", "blau", "€uro", "a longer text that is not inline in a view", "\0"];
    let texts = options(rng, &words, nulls, |v| words[(v % 6) as usize]);
    let plain = StringArray::from(texts.clone());
    columns.push(Arc::new(plain.clone()));
    columns.push(Arc::new(LargeStringArray::from(texts.clone())));
    columns.push(Arc::new(StringViewArray::from(texts.clone())));
    for key in [Arrow::Int8, Arrow::Int32, Arrow::UInt16] {
        for value in [Arrow::Utf8, Arrow::LargeUtf8] {
            columns.push(arrow_cast::cast(&plain, &Arrow::Dictionary(Box::new(key.clone()), Box::new(value))).unwrap());
        }
    }
    let bytes: Vec<Option<&[u8]>> = texts.iter().map(|t| t.map(str::as_bytes)).collect();
    let binary = BinaryArray::from(bytes.clone());
    columns.push(Arc::new(LargeBinaryArray::from(bytes.clone())));
    columns.push(Arc::new(BinaryViewArray::from(bytes)));
    columns.push(Arc::new(binary));
    for width in [1, 16, 20] {
        let values = options(rng, &[], nulls, |v| v);
        let values = values.iter().map(|v| v.map(|v| vec![v as u8; width as usize]));
        columns.push(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width).unwrap()));
    }
    columns
}

fn batch(rng: &mut Rng, nulls: bool) -> RecordBatch {
    let mut arrays = arrays(rng, nulls);
    let mut fields: Vec<Field> =
        arrays.iter().enumerate().map(|(i, a)| Field::new(format!("c{i}"), a.data_type().clone(), nulls)).collect();
    let uuid = HashMap::from([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]);
    let sixteen = arrays.iter().position(|a| *a.data_type() == Arrow::FixedSizeBinary(16)).unwrap();
    fields.push(Field::new("uuid", Arrow::FixedSizeBinary(16), nulls).with_metadata(uuid));
    arrays.push(arrays[sixteen].clone());
    if nulls {
        fields.push(Field::new("nothing", Arrow::Null, true));
        arrays.push(Arc::new(NullArray::new(ROWS)));
    }
    let schema = Schema::new_with_metadata(fields, HashMap::from([("origin".to_owned(), "test".to_owned())]));
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

#[test]
fn every_type_round_trips() {
    let mut rng = Rng(31);
    for nulls in [false, true] {
        let batch = batch(&mut rng, nulls);
        let table = TableSchema::from_arrow(batch.schema()).unwrap();
        for limit in [32_767, 1_150] {
            let back = common::through_records(&table, std::slice::from_ref(&batch), limit, ROWS);
            assert_eq!(back.len(), 1);
            for (i, field) in batch.schema().fields().iter().enumerate() {
                assert_eq!(back[0].column(i).data_type(), field.data_type());
                // Dictionaries may be other ones with the same values.
                let same = if let Arrow::Dictionary(_, values) = field.data_type() {
                    arrow_cast::cast(back[0].column(i), values).unwrap() == arrow_cast::cast(batch.column(i), values).unwrap()
                } else {
                    back[0].column(i) == batch.column(i)
                };
                assert!(same, "{field:?}");
            }
            assert_eq!(back[0].schema(), batch.schema());
        }
    }
}

#[test]
fn sliced_and_small_batches() {
    let mut rng = Rng(32);
    let batch = batch(&mut rng, true);
    let table = TableSchema::from_arrow(batch.schema()).unwrap();
    let slices: Vec<RecordBatch> = [(0, 7), (7, 0), (7, 600), (607, 693)].iter().map(|(from, n)| batch.slice(*from, *n)).collect();
    let whole = common::rows(&table, std::slice::from_ref(&batch));
    assert_eq!(common::rows(&table, &slices), whole);
    let small = common::through_records(&table, &slices, 32_767, 100);
    assert!(small.iter().all(|b| b.num_rows() <= 100));
    assert_eq!(common::rows(&table, &small), whole);
}

#[test]
fn sql_types() {
    let mut rng = Rng(33);
    let table = TableSchema::from_arrow(batch(&mut rng, false).schema()).unwrap();
    let text: Vec<String> = table.schema().columns()[..27].iter().map(|c| c.data_type.to_string()).collect();
    assert_eq!(
        text.join(" | "),
        "BOOLEAN | SMALLINT | SMALLINT | INTEGER | BIGINT | SMALLINT | INTEGER | BIGINT | DECIMAL(20,0) | DATE | TIMESTAMP(3) | \
         TIMESTAMP(0) | TIMESTAMP(3) | TIMESTAMP | TIMESTAMP(9) | TIME(0) | TIME(3) | TIME | TIME(9) | TIMESTAMP WITH TIME ZONE | \
         TIMESTAMP WITH TIME ZONE | TIMESTAMP WITH TIME ZONE | REAL | DOUBLE | REAL | DECIMAL(1,0) | DECIMAL(1,0)"
    );
    let uuid = table.schema().columns().last().unwrap();
    assert_eq!((uuid.data_type, uuid.nullable), (DataType::Uuid, false));
}

#[test]
fn schemas_are_kept_as_bytes() {
    let mut rng = Rng(34);
    let schema = batch(&mut rng, true).schema();
    let bytes = arrow_schema_to_bytes(&schema);
    let back = arrow_schema_from_bytes(&bytes).unwrap();
    assert_eq!(back, schema);
    let table = TableSchema::from_arrow(schema).unwrap();
    assert_eq!(TableSchema::from_parts(back, table.schema().clone()).unwrap(), table);
    for cut in [0, 1, 8, bytes.len() / 2] {
        assert!(arrow_schema_from_bytes(&bytes[..cut]).is_err());
    }
}

#[test]
fn natural_types_stand_for_all_sql_types() {
    let columns = [
        "BOOLEAN",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "REAL",
        "DOUBLE",
        "DECIMAL(15,2)",
        "DECIMAL(3,-2)",
        "DATE",
        "TIME(0)",
        "TIME(3)",
        "TIME",
        "TIME(9)",
        "TIMESTAMP(0)",
        "TIMESTAMP(9) WITH TIME ZONE",
        "VARCHAR",
        "BYTEA",
        "UUID",
        "INTERVAL",
    ];
    let columns = columns.iter().map(|t| pagefold_types::Column::new(*t, t.parse().unwrap(), true)).collect();
    let schema = pagefold_types::Schema::new(columns).unwrap();
    let table = TableSchema::from_schema(schema.clone());
    assert_eq!(*TableSchema::from_arrow(Arc::clone(table.arrow())).unwrap().schema(), schema);
}

/// Texts, with a note of what they are: written as PostgreSQL writes them, read in any form.
#[test]
fn intervals_are_texts() {
    let note = HashMap::from([("pagefold:type".to_owned(), "INTERVAL".to_owned())]);
    let texts = vec![Some("1 mon"), None, Some("30 days"), Some("-1 years +00:00:00.000001"), Some("P1DT2H")];
    let arrays: [Arc<dyn Array>; 3] = [
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts)),
    ];
    for array in arrays {
        let field = Field::new("span", array.data_type().clone(), true).with_metadata(note.clone());
        let schema = Arc::new(Schema::new(vec![field]));
        let table = TableSchema::from_arrow(Arc::clone(&schema)).unwrap();
        assert_eq!(table.schema().columns()[0].data_type, DataType::Interval);
        let batch = RecordBatch::try_new(schema, vec![array]).unwrap();
        let back = common::through_records(&table, std::slice::from_ref(&batch), 32_767, ROWS);
        let shown = arrow_cast::cast(back[0].column(0), &Arrow::Utf8).unwrap();
        let expected = vec![Some("1 mon"), None, Some("30 days"), Some("-1 years +00:00:00.000001"), Some("1 day 02:00:00")];
        assert_eq!(*shown.as_string::<i32>(), StringArray::from(expected));
        assert_eq!(back[0].schema(), batch.schema());
    }
    let field = Field::new("odd one", Arrow::Utf8, true).with_metadata(note);
    let schema = Arc::new(Schema::new(vec![field]));
    let table = TableSchema::from_arrow(Arc::clone(&schema)).unwrap();
    let batch = RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec!["1 day", "soon"]))]).unwrap();
    let layout = pagefold_types::RowLayout::new(table.schema()).unwrap();
    let packer = pagefold_interchange::Packer::new(&table, &layout, vec![0], 1_000);
    let error = packer.pack(&batch, &mut pagefold_types::PackedRows::default()).unwrap_err().to_string();
    assert!(error.contains("\"odd one\"") && error.contains("\"soon\""), "{error}");
}

#[test]
fn what_cannot_be_stored_is_refused_by_name() {
    let item = Arc::new(Field::new("item", Arrow::Int32, true));
    for data_type in [
        Arrow::List(item.clone()),
        Arrow::LargeList(item.clone()),
        Arrow::FixedSizeList(item.clone(), 2),
        Arrow::Struct(vec![item.as_ref().clone()].into()),
        Arrow::Interval(IntervalUnit::DayTime),
        Arrow::Duration(TimeUnit::Second),
        Arrow::Decimal256(76, 2),
        Arrow::Dictionary(Box::new(Arrow::Int8), Box::new(Arrow::List(item))),
    ] {
        let schema = Schema::new(vec![Field::new("id", Arrow::Int64, false), Field::new("odd one", data_type, true)]);
        let error = TableSchema::from_arrow(Arc::new(schema)).unwrap_err().to_string();
        assert!(error.contains("\"odd one\""), "{error}");
    }
}

#[test]
fn misfits_name_row_and_column() {
    let schema = Arc::new(Schema::new(vec![Field::new("t", Arrow::Time32(TimeUnit::Second), true)]));
    let values: Vec<Option<i32>> = (0..700).map(|i| Some(if i == 600 { -1 } else { i })).collect();
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(Time32SecondArray::from(values))]).unwrap();
    let table = TableSchema::from_arrow(schema).unwrap();
    let layout = pagefold_types::RowLayout::new(table.schema()).unwrap();
    let packer = pagefold_interchange::Packer::new(&table, &layout, vec![0], 1_000);
    let error = packer.pack(&batch, &mut pagefold_types::PackedRows::default()).unwrap_err().to_string();
    assert_eq!(error, "row 601: column \"t\": -00:00:01 does not fit TIME(0)");
}

#[test]
fn columns_are_matched_by_name() {
    let table = |columns: &[(&str, &str)]| {
        let columns = columns.iter().map(|(n, t)| pagefold_types::Column::new(*n, t.parse().unwrap(), true)).collect();
        TableSchema::from_schema(pagefold_types::Schema::new(columns).unwrap())
    };
    let to = table(&[("id", "INTEGER"), ("code", "CHAR(4)")]);
    assert_eq!(to.match_source(&table(&[("code", "VARCHAR"), ("id", "INTEGER")]), false).unwrap(), [1, 0]);
    assert_eq!(to.match_source(&table(&[("column1", "INTEGER"), ("column2", "VARCHAR")]), true).unwrap(), [0, 1]);
    for (source, part) in [
        (table(&[("id", "INTEGER")]), "1 columns, the table has 2"),
        (table(&[("id", "INTEGER"), ("kode", "VARCHAR")]), "unknown column \"code\""),
        (table(&[("id", "BIGINT"), ("code", "VARCHAR")]), "\"id\" is INTEGER in the table, but BIGINT"),
    ] {
        let error = to.match_source(&source, false).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn builders_are_used_as_expected() {
    // Values of these builders, not only of `from`: appended NULLs have bytes behind them in none of them.
    let (mut text, mut bytes) = (StringBuilder::new(), BinaryBuilder::new());
    let mut dictionary = StringDictionaryBuilder::<Int16Type>::new();
    for i in 0..10 {
        text.append_option((i % 3 > 0).then(|| "x".repeat(i)));
        bytes.append_option((i % 4 > 0).then(|| vec![0u8; i]));
        dictionary.append_option((i % 5 > 0).then_some("d"));
    }
    let arrays: Vec<(&str, ArrayRef, bool)> =
        vec![("a", Arc::new(text.finish()), true), ("b", Arc::new(bytes.finish()), true), ("c", Arc::new(dictionary.finish()), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(arrays).unwrap();
    let table = TableSchema::from_arrow(batch.schema()).unwrap();
    assert_eq!(common::through_records(&table, std::slice::from_ref(&batch), 32_767, 100), [batch]);
}

#[test]
fn damaged_stored_schemas_do_not_panic() {
    let mut rng = Rng(35);
    let good = arrow_schema_to_bytes(&batch(&mut rng, true).schema());
    for _ in 0..2_000 {
        let mut bytes = good.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
        let _ = arrow_schema_from_bytes(&bytes).map(TableSchema::from_arrow);
    }
}
