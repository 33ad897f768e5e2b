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
        // Two texts behind each other are not two others.
        let two = |a: &str, b: &str| [bytes(Value::Text(a.into())), bytes(Value::Text(b.into()))].concat();
        assert_ne!(two("a", "bc"), two("ab", "c"));
    }
}
