//! Numbers against other ways to compute them; casts there and back.

use crate::expression::arithmetic::{Operands, Operation, apply};
use crate::expression::{cast, decimal};
use pagefold_types::{DataType, TimeUnit, Value, ValueRef};
use proptest::prelude::*;
use std::cmp::Ordering;

const MOST: i128 = 10i128.pow(38) - 1;

/// Digits, the first one first, without zeros at the front.
type Digits = Vec<u8>;

fn digits(value: i128) -> Digits {
    if value == 0 { Vec::new() } else { value.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect() }
}

fn trimmed(mut digits: Digits) -> Digits {
    let zeros = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..zeros);
    digits
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn times(a: &[u8], b: &[u8]) -> Digits {
    let mut sum = vec![0u32; a.len() + b.len()];
    for (i, x) in a.iter().rev().enumerate() {
        for (j, y) in b.iter().rev().enumerate() {
            sum[i + j] += u32::from(*x) * u32::from(*y);
        }
    }
    let mut carry = 0;
    let mut made: Digits = sum
        .iter()
        .map(|cell| {
            let all = cell + carry;
            carry = all / 10;
            (all % 10) as u8
        })
        .collect();
    made.reverse();
    trimmed(made)
}

fn minus(a: &[u8], b: &[u8]) -> Digits {
    let mut borrow = 0i8;
    let mut made: Digits = (0..a.len())
        .map(|i| {
            let x = a[a.len() - 1 - i] as i8;
            let y = if i < b.len() { b[b.len() - 1 - i] as i8 } else { 0 };
            let mut digit = x - y - borrow;
            borrow = i8::from(digit < 0);
            if digit < 0 {
                digit += 10;
            }
            digit as u8
        })
        .collect();
    made.reverse();
    trimmed(made)
}

/// As at school; rounded half up.
fn divided(a: &[u8], b: &[u8]) -> Digits {
    let mut rest = Vec::new();
    let mut quotient = Vec::new();
    for digit in a {
        rest.push(*digit);
        rest = trimmed(rest);
        let mut count = 0;
        while compare(&rest, b) != Ordering::Less {
            rest = minus(&rest, b);
            count += 1;
        }
        quotient.push(count);
    }
    let up = compare(&times(&rest, &[2]), b) != Ordering::Less;
    let mut quotient = trimmed(quotient);
    if up {
        quotient.insert(0, 0);
        for digit in quotient.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                break;
            }
        }
    }
    trimmed(quotient)
}

fn with_zeros(mut of: Digits, zeros: usize) -> Digits {
    if !of.is_empty() {
        of.extend(std::iter::repeat_n(0, zeros));
    }
    of
}

/// `None` beyond 38 digits.
fn number(of: &[u8], negative: bool) -> Option<i128> {
    if of.len() > 38 {
        return None;
    }
    let value = of.iter().fold(0i128, |value, digit| value * 10 + i128::from(*digit));
    Some(if negative { -value } else { value })
}

/// Of any number of digits, as likely one as another.
fn decimals() -> impl Strategy<Value = i128> {
    (0u32..=38, -MOST..=MOST).prop_map(|(digits, value)| value % 10i128.pow(digits).max(1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn products_are_those_of_school(a in decimals(), b in decimals(), scales in 0u8..=76, cut in 0u8..=76) {
        let cut = cut.min(scales);
        let exact = times(&digits(a), &digits(b));
        let mut one = vec![1];
        one = with_zeros(one, usize::from(cut));
        let expected = number(&divided(&exact, &one), (a < 0) != (b < 0));
        prop_assert_eq!(decimal::multiply(a, b, scales, scales - cut).ok(), expected);
    }

    #[test]
    fn quotients_are_those_of_school(a in decimals(), b in decimals(), shift in -38i16..=76) {
        prop_assume!(b != 0);
        let zeros = usize::from(shift.unsigned_abs());
        let (above, below) = if shift < 0 { (digits(a), with_zeros(digits(b), zeros)) } else { (with_zeros(digits(a), zeros), digits(b)) };
        let expected = number(&divided(&above, &below), (a < 0) != (b < 0));
        prop_assert_eq!(decimal::divide(a, b, shift).ok(), expected);
    }

    #[test]
    fn scales_change_as_at_school(a in decimals(), from in -38i8..=38, to in -38i8..=38) {
        let by = i16::from(to) - i16::from(from);
        let zeros = usize::from(by.unsigned_abs());
        let expected = if by >= 0 { with_zeros(digits(a), zeros) } else { divided(&digits(a), &with_zeros(vec![1], zeros)) };
        let found = decimal::rescale(a, from, to).and_then(decimal::checked).ok();
        prop_assert_eq!(found, number(&expected, a < 0));
    }

    #[test]
    fn integers_are_exact_or_refused(a: i64, b: i64, narrow in 0u32..64, width in 0usize..3) {
        let data_type = [DataType::SmallInt, DataType::Integer, DataType::BigInt][width];
        let (least, most) = data_type.int_range().unwrap();
        let fit = |value: i64| (value >> narrow).clamp(least, most);
        let (a, b) = (fit(a), fit(b));
        let (x, y) = (i128::from(a), i128::from(b));
        for (operation, exact) in [
            (Operation::Add, Some(x + y)),
            (Operation::Subtract, Some(x - y)),
            (Operation::Multiply, Some(x * y)),
            (Operation::Divide, x.checked_div(y)),
            (Operation::Remainder, x.checked_rem(y)),
        ] {
            let expected = exact.and_then(|exact| i64::try_from(exact).ok()).filter(|exact| (least..=most).contains(exact));
            let found = apply(operation, &Operands::Integers(data_type), ValueRef::Int(a), ValueRef::Int(b));
            prop_assert_eq!(found.ok().map(|datum| datum.into_value()), expected.map(Value::Int));
        }
    }

    #[test]
    fn doubles_are_the_machines_or_refused(a: f64, b: f64) {
        for (operation, exact) in [
            (Operation::Add, a + b),
            (Operation::Subtract, a - b),
            (Operation::Multiply, a * b),
            (Operation::Divide, a / b),
        ] {
            match apply(operation, &Operands::Doubles, ValueRef::Double(a), ValueRef::Double(b)) {
                Ok(found) => prop_assert_eq!(found.into_value(), Value::Double(exact)),
                Err(error) => {
                    let refused = (exact.is_infinite() && a.is_finite() && b.is_finite())
                        || (exact == 0.0 && matches!(operation, Operation::Multiply | Operation::Divide))
                        || (b == 0.0 && operation == Operation::Divide);
                    prop_assert!(refused, "{a} {operation:?} {b}: {error}");
                }
            }
        }
    }

    #[test]
    fn decimals_become_the_nearest_double(a in decimals(), scale in -10i8..=38) {
        let text = format!("{a}e{}", -i16::from(scale));
        prop_assert_eq!(decimal::to_double(a, scale).to_bits(), text.parse::<f64>().unwrap().to_bits());
    }

    #[test]
    fn values_come_back_from_their_texts(bits: i64, wide in decimals(), double: f64, real: f32, bytes: Vec<u8>, uuid: [u8; 16], which in 0usize..16) {
        let ranged = |data_type: DataType| {
            let (least, most) = data_type.int_range().unwrap();
            let span = i128::from(most) - i128::from(least) + 1;
            (data_type, Value::Int((i128::from(least) + i128::from(bits).rem_euclid(span)) as i64))
        };
        let unit = [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano][bits.rem_euclid(4) as usize];
        let (data_type, value) = match which {
            0 => ranged(DataType::SmallInt),
            1 => ranged(DataType::Integer),
            2 => ranged(DataType::BigInt),
            3 => ranged(DataType::Date),
            4 => ranged(DataType::Time { unit }),
            5 => (DataType::Timestamp { unit, with_zone: false }, Value::Int(bits / 64)),
            6 => (DataType::Timestamp { unit, with_zone: true }, Value::Int(bits / 64)),
            7 => (DataType::Boolean, Value::Boolean(bits % 2 == 0)),
            8 => (DataType::Double, Value::Double(double)),
            9 => (DataType::Real, Value::Real(real)),
            10 => (DataType::Bytea, Value::Bytes(bytes)),
            11 => (DataType::Uuid, Value::Uuid(uuid)),
            12 => (DataType::Decimal { precision: 38, scale: 38 }, Value::Decimal(wide)),
            13 => (DataType::Decimal { precision: 38, scale: -3 }, Value::Decimal(wide / 1_000)),
            14 => (DataType::Decimal { precision: 38, scale: 0 }, Value::Decimal(wide)),
            _ => (DataType::Decimal { precision: 38, scale: 10 }, Value::Decimal(wide)),
        };
        let text_type = DataType::Varchar(None);
        let text = cast::cast((&value).into(), &data_type, &text_type).unwrap().into_value();
        let back = cast::cast((&text).into(), &text_type, &data_type).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        prop_assert_eq!(back.into_value(), value, "{:?}", text);
    }

    /// Casts end with a value of their type or an error; nothing panics.
    #[test]
    fn casts_keep_to_their_types(bits: i64, wide in decimals(), double: f64, text in "[-+0-9eE.: aNf]{0,24}", from in 0usize..10, to in 0usize..18) {
        let all = types();
        let unit = TimeUnit::Micro;
        let (from, value) = match from {
            0 => (DataType::Integer, Value::Int(i64::from(bits as i32))),
            1 => (DataType::BigInt, Value::Int(bits)),
            2 => (DataType::Decimal { precision: 38, scale: 7 }, Value::Decimal(wide)),
            3 => (DataType::Double, Value::Double(double)),
            4 => (DataType::Double, Value::Double(f64::from_bits(bits.cast_unsigned()))),
            5 => (DataType::Date, Value::Int(i64::from(bits as i32))),
            6 => (DataType::Timestamp { unit, with_zone: true }, Value::Int(bits)),
            7 => (DataType::Timestamp { unit: TimeUnit::Nano, with_zone: false }, Value::Int(bits)),
            _ => (DataType::Varchar(None), Value::Text(text)),
        };
        let to = all[to % all.len()];
        if let Ok(made) = cast::cast((&value).into(), &from, &to) {
            made.as_ref().check(&to, "cast").unwrap_or_else(|error| panic!("{value:?} {from} to {to}: {error}"));
        }
    }
}

fn types() -> Vec<DataType> {
    [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal(5,2)",
        "decimal(38,20)",
        "decimal(4,-2)",
        "date",
        "time(0)",
        "time(9)",
        "timestamp(0)",
        "timestamp(9)",
        "timestamptz",
        "char(5)",
        "varchar(3)",
        "uuid",
    ]
    .map(|text| text.parse().unwrap())
    .to_vec()
}
