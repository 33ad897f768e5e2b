//! Values: how they order, when they are the same, which ones programs have. Written from the documentation of the order, not with its code.

use crate::random::Random;
use pagefold_types::{DataType, Interval, TimeUnit, Value};
use std::cmp::Ordering;

/// The order of SQL: NaN is the greatest number and equals itself, -0 equals 0, text and bytes by their bytes, NULL last.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    fn float(a: f64, b: f64) -> Ordering {
        match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if a < b => Ordering::Less,
            (false, false) if a > b => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Boolean(a), Value::Boolean(b)) => u8::from(*a).cmp(&u8::from(*b)),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => float(f64::from(*a), f64::from(*b)),
        (Value::Double(a), Value::Double(b)) => float(*a, *b),
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        (Value::Interval(a), Value::Interval(b)) => micros(*a).cmp(&micros(*b)),
        _ => panic!("{a:?} and {b:?} never meet"),
    }
}

/// What an interval is compared by: months of 30 days, days of 24 hours.
pub(crate) fn micros(interval: Interval) -> i128 {
    (i128::from(interval.months) * 30 + i128::from(interval.days)) * 86_400_000_000 + i128::from(interval.micros)
}

/// The same to the bit.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Boolean(a), Value::Boolean(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Decimal(a), Value::Decimal(b)) => a == b,
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Uuid(a), Value::Uuid(b)) => a == b,
        (Value::Interval(a), Value::Interval(b)) => (a.months, a.days, a.micros) == (b.months, b.days, b.micros),
        _ => false,
    }
}

pub(crate) fn same_row(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// What a column gives back of a value: CHAR(n) is padded.
pub(crate) fn stored(value: &Value, data_type: DataType) -> Value {
    match (value, data_type) {
        (Value::Text(text), DataType::Char(n)) => {
            let chars = text.chars().count();
            Value::Text(format!("{text}{}", " ".repeat((n as usize).saturating_sub(chars))))
        }
        _ => value.clone(),
    }
}

/// Bytes of a value in the variable part of a record.
pub(crate) fn variable_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// A value as it is shown in a failing program: long ones by their length.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) if text.len() > 40 => format!("Text({} bytes, {:?}...)", text.len(), text.chars().take(12).collect::<String>()),
        Value::Bytes(bytes) if bytes.len() > 20 => format!("Bytes({} bytes, {:02x?}...)", bytes.len(), &bytes[..8]),
        value => format!("{value:?}"),
    }
}

pub(crate) fn shown_row(row: &[Value]) -> String {
    format!("[{}]", row.iter().map(shown).collect::<Vec<_>>().join(", "))
}

pub(crate) const TYPES: [DataType; 27] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 4, scale: 2 },
    DataType::Decimal { precision: 15, scale: 2 },
    DataType::Decimal { precision: 18, scale: 0 },
    DataType::Decimal { precision: 19, scale: 4 },
    DataType::Decimal { precision: 38, scale: 10 },
    DataType::Decimal { precision: 9, scale: -2 },
    DataType::Date,
    DataType::Time { unit: TimeUnit::Milli },
    DataType::Time { unit: TimeUnit::Nano },
    DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false },
    DataType::Timestamp { unit: TimeUnit::Second, with_zone: true },
    DataType::Char(1),
    DataType::Char(12),
    DataType::Varchar(None),
    DataType::Varchar(None),
    DataType::Varchar(None),
    DataType::Varchar(Some(10)),
    DataType::Bytea,
    DataType::Uuid,
    DataType::Interval,
];

/// The least value of a type that programs are shrunk to.
pub(crate) fn simplest(data_type: DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(false),
        DataType::Real => Value::Real(0.0),
        DataType::Double => Value::Double(0.0),
        DataType::Decimal { .. } => Value::Decimal(0),
        DataType::Char(_) | DataType::Varchar(_) => Value::Text(String::new()),
        DataType::Bytea => Value::Bytes(Vec::new()),
        DataType::Uuid => Value::Uuid([0; 16]),
        DataType::Interval => Value::Interval(Interval::ZERO),
        _ => Value::Int(0),
    }
}

const WORDS: [&str; 12] = ["carefully ", "final ", "deposits", "é", "\0", "\u{1}", "日本 ", "🦀", " ", "xq", "%", "'"];

fn text(random: &mut Random, bytes: usize) -> String {
    let mut text = String::new();
    let repeats = random.one_in(2);
    while text.len() < bytes {
        if repeats {
            text.push_str(random.of(&WORDS));
        } else {
            text.push(char::from(b'a' + random.below(26) as u8));
        }
    }
    while text.len() > bytes {
        text.pop();
    }
    text
}

/// Bytes of a variable value: mostly few, now and then more than a page.
fn length(random: &mut Random, large: bool) -> usize {
    match random.below(if large { 40 } else { 30 }) {
        0..5 => 0,
        5..24 => 1 + random.below(12) as usize,
        24..29 => random.below(90) as usize,
        29 => random.below(500) as usize,
        30..34 => random.below(3_000) as usize,
        34..36 => random.below(9_000) as usize,
        // About a page: nothing has room beside it.
        36..38 => (random.of(&[2_048, 4_096, 8_192]) - random.below(200)) as usize,
        _ => random.below(80_000) as usize,
    }
}

/// A value for a column: of few, so that they meet; an extreme one; or any.
pub(crate) fn value(random: &mut Random, data_type: DataType, nullable: bool, large: bool) -> Value {
    if nullable && random.one_in(6) {
        return Value::Null;
    }
    let how = random.below(10);
    let few = random.below(5) as i64;
    match data_type {
        DataType::Boolean => Value::Boolean(few % 2 == 0),
        DataType::Real => Value::Real(match how {
            0..6 => few as f32,
            6 | 7 => {
                random.of(&[f32::NAN, -f32::NAN, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45])
            }
            _ => f32::from_bits(random.next() as u32),
        }),
        DataType::Double => Value::Double(match how {
            0..6 => few as f64,
            6 | 7 => {
                random.of(&[f64::NAN, -f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324])
            }
            _ => f64::from_bits(random.next()),
        }),
        DataType::Decimal { precision, .. } => {
            let limit = 10i128.pow(u32::from(precision));
            Value::Decimal(match how {
                0..6 => i128::from(few),
                6 => limit - 1,
                7 => 1 - limit,
                _ => (i128::from(random.next() as i64) << 64 | i128::from(random.next())) % limit,
            })
        }
        DataType::Char(n) => {
            let chars = random.below(u64::from(n) + 1);
            Value::Text(if how < 5 {
                ["", "a", "b", "c", "é"][few as usize].into()
            } else {
                (0..chars).map(|_| random.of(&['a', ' ', 'é', '\0', '日', '🦀', 'z'])).collect()
            })
        }
        DataType::Varchar(Some(n)) => {
            let chars = random.below(u64::from(n) + 1);
            Value::Text(if how < 5 {
                ["", "a", "b", "a ", "é"][few as usize].into()
            } else {
                (0..chars).map(|_| random.of(&['a', ' ', 'é', '\0', '日', '🦀', 'z', '\''])).collect()
            })
        }
        DataType::Varchar(None) => {
            let bytes = length(random, large);
            Value::Text(if how < 4 { ["", "a", "b\0", "final deposits", "é"][few as usize].into() } else { text(random, bytes) })
        }
        DataType::Bytea => {
            let bytes = length(random, large);
            Value::Bytes(if how < 4 {
                [&b""[..], &[0], &[0, 0], &[255], &[1]][few as usize].into()
            } else if random.one_in(2) {
                (0..bytes).map(|_| random.next() as u8).collect()
            } else {
                vec![few as u8; bytes]
            })
        }
        DataType::Uuid => Value::Uuid(match how {
            0..6 => [few as u8; 16],
            6 => [255; 16],
            _ => std::array::from_fn(|_| random.next() as u8),
        }),
        DataType::Interval => Value::Interval(match how {
            // Equal ones that are not the same.
            0..2 => Interval { months: few as i32, ..Interval::ZERO },
            2..4 => Interval { days: few as i32 * 30, ..Interval::ZERO },
            4..6 => Interval { micros: few * 30 * 86_400_000_000, ..Interval::ZERO },
            6 => Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX },
            7 => Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN },
            _ => Interval { months: random.next() as i32, days: random.next() as i32, micros: random.next() as i64 },
        }),
        DataType::Time { unit } => {
            let day = 86_400 * [1, 1_000, 1_000_000, 1_000_000_000][unit as usize];
            Value::Int(match how {
                0..6 => few,
                6 | 7 => day,
                _ => random.below(day as u64 + 1) as i64,
            })
        }
        DataType::SmallInt | DataType::Integer | DataType::Date | DataType::BigInt | DataType::Timestamp { .. } => {
            let (least, most) = match data_type {
                DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
                DataType::Integer | DataType::Date => (i64::from(i32::MIN), i64::from(i32::MAX)),
                _ => (i64::MIN, i64::MAX),
            };
            Value::Int(match how {
                0..6 => few,
                6 => least,
                7 => most,
                _ => {
                    let any = i128::from(random.next()) % (i128::from(most) - i128::from(least) + 1);
                    (i128::from(least) + any) as i64
                }
            })
        }
    }
}

/// The value that the `i`-th of many rows has in its place: another one for each row where the type has as many.
pub(crate) fn varied(value: &Value, data_type: DataType, i: usize) -> Value {
    if i == 0 {
        return value.clone();
    }
    let by = i as i64;
    match (value, data_type) {
        (Value::Int(n), DataType::SmallInt) => Value::Int(i64::from((*n as i16).wrapping_add(by as i16))),
        (Value::Int(n), DataType::Integer | DataType::Date) => Value::Int(i64::from((*n as i32).wrapping_add(by as i32))),
        (Value::Int(n), DataType::BigInt | DataType::Timestamp { .. }) => Value::Int(n.wrapping_add(by * 7)),
        (Value::Int(n), _) => Value::Int(if by <= *n { n - by } else { *n }),
        (Value::Decimal(n), DataType::Decimal { precision, .. }) => Value::Decimal((n + i128::from(by)) % 10i128.pow(u32::from(precision))),
        (Value::Real(x), _) => Value::Real(x + by as f32),
        (Value::Double(x), _) => Value::Double(x + by as f64),
        (Value::Text(text), DataType::Varchar(None)) => Value::Text(format!("{i} {text}")),
        (Value::Text(_), DataType::Varchar(Some(_))) => Value::Text(format!("{}", i % 1000)),
        (Value::Bytes(bytes), _) => Value::Bytes([&(i as u16).to_be_bytes()[..], bytes].concat()),
        (Value::Uuid(uuid), _) => {
            let mut uuid = *uuid;
            uuid[3] = uuid[3].wrapping_add(i as u8);
            Value::Uuid(uuid)
        }
        (Value::Interval(interval), _) => Value::Interval(Interval { micros: interval.micros.wrapping_add(by), ..*interval }),
        _ => value.clone(),
    }
}
