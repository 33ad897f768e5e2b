//! Random types, values and schemas from a seed.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use pagefold_types::{Column, DataType, Interval, Schema, TimeUnit, Value, ValueRef, decimal_limit};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    pub fn i128(&mut self) -> i128 {
        (u128::from(self.next()) << 64 | u128::from(self.next())) as i128
    }
}

pub fn unit(rng: &mut Rng) -> TimeUnit {
    [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano][rng.below(4) as usize]
}

pub fn data_type(rng: &mut Rng) -> DataType {
    match rng.below(17) {
        0 => DataType::Boolean,
        1 => DataType::SmallInt,
        2 => DataType::Integer,
        3 => DataType::BigInt,
        4 => DataType::Real,
        5 => DataType::Double,
        6 | 7 => {
            let precision = 1 + rng.below(38) as u8;
            DataType::Decimal { precision, scale: rng.below(u64::from(precision) + 3) as i8 - 2 }
        }
        8 => DataType::Date,
        9 => DataType::Time { unit: unit(rng) },
        10 => DataType::Timestamp { unit: unit(rng), with_zone: rng.chance(2) },
        11 => DataType::Char(1 + rng.below(12) as u32),
        12 => DataType::Varchar(None),
        13 => DataType::Varchar(Some(1 + rng.below(20) as u32)),
        14 => DataType::Bytea,
        15 => DataType::Uuid,
        _ => DataType::Interval,
    }
}

/// Few different characters, so that values share beginnings; some need escapes in keys, some several bytes in UTF-8.
fn text(rng: &mut Rng, chars: u64) -> String {
    const ALPHABET: [char; 12] = ['a', 'a', 'b', ' ', '\0', '\u{1}', '\u{2}', 'ä', '€', '\u{10FFFF}', '\u{7F}', '~'];
    let n = rng.below(chars + 1);
    (0..n).map(|_| ALPHABET[rng.below(12) as usize]).collect()
}

fn int(rng: &mut Rng, least: i64, most: i64) -> i64 {
    let value = match rng.below(4) {
        0 => [least, most, 0, -1, 1, least.saturating_add(1), most.saturating_sub(1)][rng.below(7) as usize],
        1 => rng.below(8) as i64 - 4,
        2 => (rng.next() as i64) >> rng.below(64),
        _ => rng.next() as i64,
    };
    value.clamp(least, most)
}

fn double(rng: &mut Rng) -> f64 {
    const SPECIAL: [f64; 10] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, f64::MIN_POSITIVE, f64::MAX, f64::MIN];
    match rng.below(3) {
        0 => SPECIAL[rng.below(10) as usize],
        1 => f64::from_bits(rng.next()),
        _ => rng.below(2_000) as f64 / 8.0 - 100.0,
    }
}

/// Many of which are equal to others without being the same.
fn interval(rng: &mut Rng) -> Interval {
    const DAY: i64 = 86_400_000_000;
    if rng.chance(3) {
        let days = rng.below(90) as i64 - 45;
        return [
            Interval { months: (days / 30) as i32, days: (days % 30) as i32, micros: 0 },
            Interval { months: 0, days: days as i32, micros: 0 },
            Interval { months: 0, days: 0, micros: days * DAY },
        ][rng.below(3) as usize];
    }
    let mut part = |least: i64, most: i64| int(rng, least, most);
    let small = (i64::from(i32::MIN), i64::from(i32::MAX));
    Interval { months: part(small.0, small.1) as i32, days: part(small.0, small.1) as i32, micros: part(i64::MIN, i64::MAX) }
}

/// A value of the type, not NULL.
pub fn value(rng: &mut Rng, data_type: &DataType) -> Value {
    if let Some((least, most)) = data_type.int_range() {
        return Value::Int(int(rng, least, most));
    }
    match *data_type {
        DataType::Boolean => Value::Boolean(rng.chance(2)),
        DataType::Real => Value::Real(if rng.chance(3) { f32::from_bits(rng.next() as u32) } else { double(rng) as f32 }),
        DataType::Double => Value::Double(double(rng)),
        DataType::Decimal { precision, .. } => {
            let limit = decimal_limit(precision);
            Value::Decimal(match rng.below(3) {
                0 => [0, 1, -1, limit - 1, 1 - limit][rng.below(5) as usize],
                1 => rng.below(10) as i128 - 5,
                _ => rng.i128() % limit,
            })
        }
        DataType::Char(n) | DataType::Varchar(Some(n)) => Value::Text(text(rng, u64::from(n))),
        DataType::Varchar(None) => Value::Text(text(rng, 40)),
        DataType::Bytea => {
            let n = rng.below(12);
            Value::Bytes((0..n).map(|_| [0, 0, 1, 2, 0xFF, 0xFE, 7][rng.below(7) as usize]).collect())
        }
        DataType::Uuid => Value::Uuid((rng.i128() >> rng.below(128)).to_be_bytes()),
        DataType::Interval => Value::Interval(interval(rng)),
        _ => unreachable!("held as Int"),
    }
}

pub fn value_or_null(rng: &mut Rng, column: &Column) -> Value {
    if column.nullable && rng.chance(5) { Value::Null } else { value(rng, &column.data_type) }
}

pub fn schema(rng: &mut Rng, columns: u64) -> Schema {
    let n = 1 + rng.below(columns);
    let nullable = rng.below(3);
    let columns = (0..n).map(|i| Column::new(format!("c{i}"), data_type(rng), nullable == 1 || (nullable == 2 && rng.chance(2))));
    Schema::new(columns.collect()).unwrap()
}

pub fn row(rng: &mut Rng, schema: &Schema) -> Vec<Value> {
    schema.columns().iter().map(|c| value_or_null(rng, c)).collect()
}

pub fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// The value as it comes back: CHAR(n) padded.
pub fn stored(value: &Value, data_type: &DataType) -> Value {
    match (value, data_type) {
        (Value::Text(s), DataType::Char(n)) => Value::Text(s.clone() + &" ".repeat(*n as usize - s.chars().count())),
        _ => value.clone(),
    }
}

/// Equal bit for bit: unlike `==`, tells -0 from 0 and a month from 30 days.
pub fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Interval(a), Value::Interval(b)) => a == b,
        _ => a == b,
    }
}
