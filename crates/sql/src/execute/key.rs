//! Values as bytes that are the same just when the values are equal: keys of hashes. Both sides have one type each.

use pagefold_types::ValueRef;

/// Appends a value. NULL is one value.
pub(crate) fn encode(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Boolean(value) => out.extend([1, u8::from(value)]),
        ValueRef::Int(value) => {
            out.push(2);
            out.extend(value.to_le_bytes());
        }
        ValueRef::Decimal(value) => {
            out.push(3);
            out.extend(value.to_le_bytes());
        }
        ValueRef::Real(value) => {
            out.push(4);
            // -0 equals 0, and each NaN the others.
            let bits = if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() };
            out.extend(bits.to_le_bytes());
        }
        ValueRef::Double(value) => {
            out.push(5);
            let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
            out.extend(bits.to_le_bytes());
        }
        ValueRef::Text(text) => {
            out.push(6);
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        }
        ValueRef::Bytes(bytes) => {
            out.push(7);
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        ValueRef::Uuid(bytes) => {
            out.push(8);
            out.extend(bytes);
        }
        ValueRef::Interval(value) => {
            out.push(9);
            // A month equals 30 days.
            out.extend(value.span().to_le_bytes());
        }
    }
}

/// The values that were appended, one by one.
pub(crate) fn values_of(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = match key.first()? {
            0 => 0,
            1 => 1,
            2 | 5 => 8,
            3 | 8 | 9 => 16,
            4 => 4,
            _ => 8 + key.get(1..9).and_then(|length| usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok())?,
        };
        let (value, rest) = key.split_at_checked(1 + length)?;
        key = rest;
        Some(value)
    })
}

/// Is a value that was appended NULL?
pub(crate) fn is_null(value: &[u8]) -> bool {
    value == [0]
}

#[cfg(test)]
mod unit {
    use super::*;
    use pagefold_types::Value;

    #[test]
    fn equal_values_are_equal_bytes() {
        let bytes = |value: Value| {
            let mut out = Vec::new();
            encode(value.as_ref(), &mut out);
            out
        };
        assert_eq!(bytes(Value::Double(0.0)), bytes(Value::Double(-0.0)));
        assert_eq!(bytes(Value::Double(f64::NAN)), bytes(Value::Double(-f64::NAN)));
        assert_ne!(bytes(Value::Text("a".into())), bytes(Value::Text("b".into())));
        assert_ne!(bytes(Value::Null), bytes(Value::Boolean(false)));
        let interval = |months, days| Value::Interval(pagefold_types::Interval { months, days, micros: 0 });
        assert_eq!(bytes(interval(1, 0)), bytes(interval(0, 30)));
        assert_ne!(bytes(interval(1, 0)), bytes(interval(0, 31)));
        let row = [Value::Text("ab".into()), Value::Null, Value::Int(1), interval(1, 0), Value::Bytes(vec![7; 3]), Value::Boolean(true)];
        let apart: Vec<Vec<u8>> = row.iter().cloned().map(bytes).collect();
        assert_eq!(values_of(&apart.concat()).collect::<Vec<_>>(), apart);
        assert_eq!(apart.iter().position(|value| is_null(value)), Some(1));
        // Two texts behind each other are not two others.
        let two = |a: &str, b: &str| [bytes(Value::Text(a.into())), bytes(Value::Text(b.into()))].concat();
        assert_ne!(two("a", "bc"), two("ab", "c"));
    }
}
