//! Rows of any schema and of many kinds of numbers and texts, encoded as a column area and read back in every way; changes of one row into another in place.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pagefold_codec::page::{PageEncoder, PageSchema};
use pagefold_codec::row::{Dictionary, Encoder};
use pagefold_fuzz::area::{self, Under};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{ColumnValue, DataType, Interval, LargeValueRef, RowLayout, Value, decimal_limit};

static CODES: LazyLock<(Dictionary, Arc<Encoder>)> = LazyLock::new(|| {
    let tokens: Vec<Vec<u8>> =
        (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec(), b"text ".to_vec(), b"00".to_vec(), vec![b'x'; 32]]).collect();
    let dictionary = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let encoder = Arc::new(Encoder::new(&dictionary));
    (dictionary, encoder)
});

/// How the values of a column come.
#[derive(Clone, Copy)]
struct Style {
    kind: u8,
    nulls: u8,
    base: i64,
    step: i64,
}

fn mix(mut x: u64) -> u64 {
    for _ in 0..2 {
        x = (x ^ x >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    x ^ x >> 32
}

impl Style {
    fn take(input: &mut Input<'_>) -> Style {
        let (kind, nulls, wide) = (input.byte(), input.byte(), input.byte());
        let (base, step) = (i64::from(input.u32() as i32), i64::from(input.u16() as i16));
        Style { kind, nulls, base: base << (wide % 40), step: step << (wide >> 4) }
    }

    fn number(&self, row: usize, noise: u64) -> i64 {
        let line = self.base.wrapping_add(self.step.wrapping_mul(row as i64));
        let (random, small) = (mix(noise), (noise & 15) as i64);
        match self.kind % 8 {
            0 => self.base,
            1 => line,
            2 => line.wrapping_add(small),
            3 => random as i64,
            4 => mix(noise % 3 ^ self.base as u64) as i64,
            5 if random % 23 == 0 => random as i64 >> (random % 40),
            5 => self.base.wrapping_add(small),
            6 => self.base.wrapping_add(self.step.wrapping_mul(small)),
            _ => line.wrapping_add(if random % 19 == 0 { random as i64 >> 20 } else { small }),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self.nulls % 4 {
            0 | 1 => false,
            2 => mix(row as u64 ^ u64::from(self.nulls)) % 5 == 0,
            _ => self.nulls > 200 || row % 7 < usize::from(self.nulls / 32),
        }
    }

    fn text(&self, row: usize, noise: u64) -> String {
        let number = self.number(row, noise);
        match self.kind >> 3 & 3 {
            0 => format!("text {number}"),
            1 => ["", "a", "ab  ", "ab", "\u{e9}t\u{e9}", "text 00"][number.rem_euclid(6) as usize].to_owned(),
            2 => "x".repeat(number.rem_euclid(70) as usize),
            _ => format!("{:x}", mix(number as u64)),
        }
    }

    fn value(&self, data_type: &DataType, row: usize, noise: u64) -> Value {
        let number = self.number(row, noise);
        match data_type {
            DataType::Boolean => Value::Boolean(number & 1 == 1),
            DataType::Real => Value::Real(number as f32 / 8.0),
            DataType::Double => Value::Double(number as f64 / 8.0),
            DataType::Decimal { precision, .. } => {
                let wide = if *precision > 18 { i128::from(number) * 1_000_003 } else { number.into() };
                Value::Decimal(wide % decimal_limit(*precision))
            }
            DataType::Char(chars) => Value::Text(self.text(row, noise).chars().take(*chars as usize).collect()),
            DataType::Varchar(chars) => Value::Text(self.text(row, noise).chars().take(chars.map_or(usize::MAX, |c| c as usize)).collect()),
            DataType::Bytea => Value::Bytes(self.text(row, noise).into_bytes()),
            DataType::Uuid => Value::Uuid((u128::from(mix(number as u64)) << 64 | 7).to_be_bytes()),
            DataType::Interval => {
                let (months, days) = (number.rem_euclid(1_000) as i32 - 500, (mix(number as u64) % 60) as i32 - 30);
                Value::Interval(Interval { months, days, micros: number })
            }
            other => {
                let (least, most) = other.int_range().expect("an integer");
                let span = i128::from(most) - i128::from(least) + 1;
                Value::Int((i128::from(least) + (i128::from(number) - i128::from(least)).rem_euclid(span)) as i64)
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let Ok(layout) = RowLayout::new(&schema) else { return };
    let (flags, rows, seed) = (input.byte(), 1 + usize::from(input.byte()), u64::from(input.u32()));
    if schema.len() > 24 || rows * schema.len() > 400 {
        return;
    }
    let styles: Vec<Style> = (0..schema.len()).map(|_| Style::take(&mut input)).collect();
    let noise = input.rest();
    let page_schema = Arc::new(PageSchema::new(&layout));
    let dictionary = (flags & 1 == 0).then_some(&CODES.0);
    let mut encoder = PageEncoder::new(page_schema.clone(), dictionary.map(|_| CODES.1.clone()));
    let mut records = Vec::new();
    for row in 0..rows {
        // Columns with one noise are differences to one another.
        let own = noise.get(row % noise.len().max(1)).copied().unwrap_or(0);
        let values: Vec<Value> = schema
            .columns()
            .iter()
            .zip(&styles)
            .enumerate()
            .map(|(at, (column, style))| {
                let noise =
                    if flags & 2 == 0 { mix(row as u64 ^ seed) ^ u64::from(own) } else { mix(u64::from(own) + (at * 1000 + row) as u64) };
                if column.nullable && style.is_null(row) { Value::Null } else { style.value(&column.data_type, row, noise) }
            })
            .collect();
        let values: Vec<ColumnValue<'_>> = values
            .iter()
            .enumerate()
            .map(|(at, value)| match value {
                Value::Text(_) | Value::Bytes(_) if flags & 4 != 0 && (row + at) % 11 == 0 => {
                    ColumnValue::Large(LargeValueRef { first_page: row as u32 % 5, raw_bytes: 9, tag: 10, partition: 0 })
                }
                value => value.as_ref().into(),
            })
            .collect();
        let mut record = Vec::new();
        if layout.encode_columns(&values, &mut record).is_ok() && layout.validate(&record).is_ok() {
            encoder.push(&record).expect("a valid record");
            records.push(record);
        }
    }
    if records.is_empty() {
        return;
    }
    let len = encoder.len_of(records.len());
    let mut bytes = Vec::new();
    if encoder.encode(records.len(), &mut bytes).is_some() {
        assert_eq!(bytes.len(), len);
        area::encoded(Under { layout: &layout, schema: &page_schema, dictionary }, &bytes, &records, seed);
    }
});
