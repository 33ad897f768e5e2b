//! Schemas, and rows of many shapes.

use std::sync::{Arc, LazyLock};

use crate::page::PageSchema;
use crate::row::{Dictionary, Encoder, RowSample, TrainOptions, train};
use pagefold_types::{Column, ColumnValue, DataType, LargeValueRef, RowLayout, Schema, TimeUnit, ValueRef};

/// splitmix64
pub(in crate::page) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(super) fn below(state: &mut u64, limit: u64) -> u64 {
    random(state) % limit
}

const WORDS: [&str; 24] = [
    "furiously",
    "regular",
    "deposits",
    "above the",
    "carefully",
    "final",
    "accounts",
    "sleep",
    "quickly",
    "among",
    "ironic",
    "requests",
    "pending",
    "blithely",
    "express",
    "packages",
    "wake",
    "after",
    "special",
    "foxes",
    "theodolites",
    "bold",
    "instructions",
    "even",
];

pub(super) fn text(state: &mut u64, words: u64) -> String {
    let words: Vec<&str> = (0..words).map(|_| WORDS[below(state, 24) as usize]).collect();
    words.join(" ")
}

/// Codes trained on such texts, and others of a few tokens.
pub(super) static CODES: LazyLock<[(Dictionary, Arc<Encoder>); 2]> = LazyLock::new(|| {
    let (mut state, mut bytes, mut ends) = (7, Vec::new(), Vec::new());
    for _ in 0..2000 {
        let words = 1 + below(&mut state, 6);
        bytes.extend_from_slice(text(&mut state, words).as_bytes());
        ends.push(bytes.len() as u32);
    }
    let trained = train(&RowSample::new(&bytes, &ends).unwrap(), &TrainOptions::default());
    let few: Vec<Vec<u8>> = (0..=255).map(|b| vec![b]).chain([b"ab".to_vec(), b"abc".to_vec(), vec![b'x'; 32]]).collect();
    [trained, Dictionary::from_tokens(&few).unwrap()].map(|dictionary| {
        let encoder = Arc::new(Encoder::new(&dictionary));
        (dictionary, encoder)
    })
});

/// How the values of a column come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Constant,
    Sorted,
    Few,
    Outliers,
    Multiples,
    Random,
    Extremes,
    Near,
}

const SHAPES: [Shape; 8] =
    [Shape::Constant, Shape::Sorted, Shape::Few, Shape::Outliers, Shape::Multiples, Shape::Random, Shape::Extremes, Shape::Near];

const TYPES: [DataType; 18] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::BigInt,
    DataType::Date,
    DataType::Date,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 7, scale: 2 },
    DataType::Decimal { precision: 15, scale: 2 },
    DataType::Decimal { precision: 30, scale: 3 },
    DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false },
    DataType::Char(12),
    DataType::Varchar(None),
    DataType::Varchar(Some(300)),
    DataType::Bytea,
    DataType::Uuid,
];

/// A table made up from a seed.
pub(super) struct Table {
    pub(super) layout: RowLayout,
    pub(super) schema: Arc<PageSchema>,
    pub(super) records: Vec<Vec<u8>>,
    pub(super) shapes: Vec<Shape>,
}

/// A value without its lifetime.
enum Made {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Large(LargeValueRef),
}

pub(super) fn table(seed: u64, columns: usize, rows: usize) -> Table {
    let state = &mut seed.wrapping_mul(31);
    let types: Vec<DataType> = (0..columns).map(|_| TYPES[below(state, TYPES.len() as u64) as usize]).collect();
    let nulls: Vec<u64> = (0..columns).map(|_| [0, 0, 1, 5, 100][below(state, 5) as usize]).collect();
    let named = types.iter().zip(&nulls).enumerate();
    let named = named.map(|(i, (data_type, nulls))| Column::new(format!("c{i}"), *data_type, *nulls > 0));
    let layout = RowLayout::new(&Schema::new(named.collect()).unwrap()).unwrap();
    let shapes: Vec<Shape> = (0..columns).map(|_| SHAPES[below(state, SHAPES.len() as u64) as usize]).collect();
    let mut before = 0;
    let records = (0..rows).map(|row| {
        let made: Vec<Made> = (0..columns)
            .map(|c| {
                if nulls[c] == 100 || nulls[c] > 0 && below(state, 8) < nulls[c] {
                    return Made::Null;
                }
                let value = value(types[c], shapes[c], row, before, state);
                if let Made::Int(value) = value {
                    before = value;
                }
                value
            })
            .collect();
        let values: Vec<ColumnValue<'_>> = made.iter().zip(&types).map(|(made, data_type)| column_value(made, *data_type)).collect();
        let mut record = Vec::new();
        layout.encode_columns(&values, &mut record).unwrap();
        record
    });
    let records = records.collect();
    Table { schema: Arc::new(PageSchema::new(&layout)), layout, records, shapes }
}

fn value(data_type: DataType, shape: Shape, row: usize, before: i64, state: &mut u64) -> Made {
    if let DataType::Char(_) | DataType::Varchar(_) | DataType::Bytea = data_type {
        return string(data_type, shape, row, state);
    }
    let number = match shape {
        Shape::Constant => 4711,
        Shape::Sorted => row as i64 * 37 + below(state, 40) as i64,
        Shape::Few => [3, -70_000, 12, 99_999, 31_000][below(state, 5) as usize],
        Shape::Outliers if below(state, 50) == 0 => random(state) as i64 >> below(state, 60),
        Shape::Outliers => 1000 + below(state, 30) as i64,
        Shape::Multiples => 500 + 100 * below(state, 50) as i64,
        Shape::Random => random(state) as i64 >> below(state, 64),
        Shape::Extremes => [i64::MIN, i64::MAX, 0, -1][below(state, 4) as usize],
        Shape::Near => before.wrapping_add(below(state, 90) as i64 - 45),
    };
    Made::Int(number)
}

fn string(data_type: DataType, shape: Shape, row: usize, state: &mut u64) -> Made {
    let text = match shape {
        Shape::Constant => "always".to_string(),
        Shape::Sorted => format!("Nr{row:06}"),
        Shape::Few => ["", "DELIVER", "é blank  ", "abcabcab", "x"][below(state, 5) as usize].to_string(),
        Shape::Outliers if below(state, 40) == 0 => "x".repeat(below(state, 900) as usize),
        Shape::Outliers | Shape::Near => text(state, 1 + row as u64 % 4),
        Shape::Multiples => format!("Customer#{:05}", below(state, 9999)),
        Shape::Random => (0..below(state, 30)).map(|_| char::from_u32(below(state, 600) as u32).unwrap_or('x')).collect(),
        Shape::Extremes if below(state, 5) == 0 && !matches!(data_type, DataType::Char(_)) => {
            let word = random(state) as u32;
            return Made::Large(LargeValueRef { first_page: word, raw_bytes: word >> 8, tag: u64::from(word >> 9), partition: 3 });
        }
        Shape::Extremes => String::new(),
    };
    match data_type {
        DataType::Char(n) => Made::Text(text.trim_end().chars().take(n as usize).collect()),
        DataType::Varchar(Some(n)) => Made::Text(text.chars().take(n as usize).collect()),
        DataType::Bytea => Made::Bytes(text.into_bytes()),
        _ => Made::Text(text),
    }
}

fn column_value<'m>(made: &'m Made, data_type: DataType) -> ColumnValue<'m> {
    ColumnValue::Value(match (made, data_type) {
        (Made::Null, _) => ValueRef::Null,
        (Made::Large(large), _) => return ColumnValue::Large(*large),
        (Made::Text(text), _) => ValueRef::Text(text),
        (Made::Bytes(bytes), _) => ValueRef::Bytes(bytes),
        (Made::Int(i), DataType::Boolean) => ValueRef::Boolean(i % 2 == 0),
        (Made::Int(i), DataType::SmallInt) => ValueRef::Int(i64::from(*i as i16)),
        (Made::Int(i), DataType::Integer | DataType::Date) => ValueRef::Int(i64::from(*i as i32)),
        (Made::Int(i), DataType::Real) => ValueRef::Real(*i as f32 / 100.0),
        (Made::Int(i), DataType::Double) => ValueRef::Double(*i as f64 / 100.0),
        (Made::Int(i), DataType::Decimal { precision, .. }) => ValueRef::Decimal(i128::from(*i) % 10i128.pow(precision.into())),
        (Made::Int(i), DataType::Uuid) => ValueRef::Uuid(u128::from(*i as u64).to_be_bytes()),
        (Made::Int(i), _) => ValueRef::Int(*i),
    })
}
