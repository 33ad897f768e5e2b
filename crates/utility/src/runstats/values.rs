//! Values of a column while statistics are gathered: numbers, or the beginnings of bytes; each distinct one once, with a number.
//!
//! Invariants:
//! - numbers and bytes order like the SQL values, as far as they are kept;
//! - of bytes the first [`KEPT_BYTES`] are kept, and a hash of all: so memory is bounded, and values that begin alike are told apart.

use crate::estimate::random::mixed;
use pagefold_types::{Column, DataType, Direction, Interval, KeyLayout, Physical, Schema, Value};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes kept of a value.
pub(super) const KEPT_BYTES: usize = 48;

/// How values of a type are held, and what they are as keys.
#[derive(Debug)]
pub(super) struct Shape {
    physical: Physical,
    key: Option<KeyLayout>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    Int(i64),
    Bytes(Vec<u8>),
}

impl Shape {
    pub(super) fn new(data_type: DataType) -> Shape {
        // Of CHAR blanks at the end do not count, and are many.
        let key_type = if data_type.is_text() { DataType::Varchar(None) } else { data_type };
        let key = Schema::new(vec![Column::new("value", key_type, false)]).ok();
        Shape { physical: data_type.physical(), key: key.map(|schema| KeyLayout::new(&schema, &[(0, Direction::Ascending)])) }
    }

    /// Are values numbers in a batch?
    pub(super) fn is_int(&self) -> bool {
        match self.physical {
            Physical::Boolean | Physical::Int { .. } | Physical::Real | Physical::Double => true,
            Physical::Decimal { width } => width <= 8,
            Physical::Uuid | Physical::Interval | Physical::Char { .. } | Physical::Text | Physical::Bytes => false,
        }
    }

    /// Are numbers of a batch not in the order of the values?
    pub(super) fn is_float(&self) -> bool {
        matches!(self.physical, Physical::Real | Physical::Double)
    }

    /// A number as a batch has it, in the order of the values: -0 is 0, and every NaN the greatest.
    #[inline]
    pub(super) fn ordered(&self, int: i64) -> i64 {
        let float = match self.physical {
            Physical::Real => f64::from(f32::from_bits(int as u32)),
            Physical::Double => f64::from_bits(int as u64),
            _ => return int,
        };
        let bits = if float.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (float + 0.0).to_bits() } as i64;
        if bits < 0 { bits ^ i64::MAX } else { bits }
    }

    /// Bytes as a batch has them, as they are compared.
    #[inline]
    pub(super) fn significant<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        match self.physical {
            Physical::Char { .. } => &bytes[..bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)],
            _ => bytes,
        }
    }

    /// What intervals are compared by, as a number of 16 bytes; `None` of other types, whose bytes are compared.
    #[inline]
    pub(super) fn compared(&self, bytes: &[u8]) -> Option<[u8; 16]> {
        match self.physical {
            Physical::Interval => bytes.try_into().ok().map(|bytes| Interval::from_bytes(bytes).span().to_le_bytes()),
            _ => None,
        }
    }

    /// What is kept of those: of DECIMAL and INTERVAL the bytes in an order that is that of the numbers.
    #[inline]
    pub(super) fn kept(&self, significant: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if let Physical::Decimal { .. } | Physical::Interval = self.physical {
            out.extend(significant.iter().rev());
            out.iter_mut().take(1).for_each(|first| *first ^= 0x80);
        } else {
            out.extend_from_slice(&significant[..significant.len().min(KEPT_BYTES)]);
        }
    }

    /// The value as a key of one column. `None` for what cannot be one, as half a character.
    pub(super) fn key(&self, held: &Held) -> Option<Vec<u8>> {
        let value = match (self.physical, held) {
            (Physical::Boolean, Held::Int(int)) => Value::Boolean(*int != 0),
            (Physical::Int { .. }, Held::Int(int)) => Value::Int(*int),
            (Physical::Decimal { .. }, Held::Int(int)) => Value::Decimal((*int).into()),
            (Physical::Real | Physical::Double, Held::Int(int)) => {
                let float = f64::from_bits(if *int < 0 { int ^ i64::MAX } else { *int } as u64);
                if self.physical == Physical::Real { Value::Real(float as f32) } else { Value::Double(float) }
            }
            (Physical::Decimal { .. }, Held::Bytes(bytes)) => Value::Decimal(wide(bytes)?),
            (Physical::Interval, Held::Bytes(bytes)) => Value::Interval(Interval::of_span(wide(bytes)?)?),
            (Physical::Uuid, Held::Bytes(bytes)) => Value::Uuid(bytes.as_slice().try_into().ok()?),
            (Physical::Char { .. } | Physical::Text, Held::Bytes(bytes)) => {
                // What was cut may have been cut within a character.
                let whole = match std::str::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
                };
                Value::Text(whole.into())
            }
            (Physical::Bytes, Held::Bytes(bytes)) => Value::Bytes(bytes.clone()),
            _ => return None,
        };
        let mut key = Vec::new();
        self.key.as_ref()?.encode(&[value.as_ref()], &mut key).ok()?;
        Some(key)
    }
}

/// The number of which these bytes were kept.
fn wide(kept: &[u8]) -> Option<i128> {
    let (first, rest) = kept.split_first()?;
    let first = first ^ 0x80;
    let sign = if first & 0x80 == 0 { 0 } else { -1 };
    Some(std::iter::once(first).chain(rest.iter().copied()).fold(sign, |n, byte| n << 8 | i128::from(byte)))
}

/// The value that a key of one column stands for, if it does.
pub(super) fn value_of_key(data_type: DataType, key: &[u8]) -> Option<Value> {
    Shape::new(data_type).key?.decode(key).ok()?.pop()
}

/// The hash of a number.
#[inline]
pub(super) fn hash_of_int(int: i64) -> u64 {
    mixed((int as u64).wrapping_add(0x9E37_79B9_7F4A_7C15))
}

/// The hash of bytes, all of them.
#[inline]
pub(super) fn hash_of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[derive(Debug)]
enum Values {
    Ints(Vec<i64>),
    Bytes { bytes: Vec<u8>, ends: Vec<usize> },
}

/// Distinct values by number, in the order in which they came.
#[derive(Debug)]
pub(super) struct ValueTable {
    /// Number of a value plus 1, at a place that its hash says or behind it; 0: none. A power of two of them, at most half of them taken.
    places: Vec<u32>,
    hashes: Vec<u64>,
    values: Values,
}

impl ValueTable {
    pub(super) fn of_ints() -> ValueTable {
        ValueTable { places: vec![0; 64], hashes: Vec::new(), values: Values::Ints(Vec::new()) }
    }

    pub(super) fn of_bytes() -> ValueTable {
        ValueTable { places: vec![0; 64], hashes: Vec::new(), values: Values::Bytes { bytes: Vec::new(), ends: Vec::new() } }
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    fn double(&mut self) {
        let mask = self.places.len() * 2 - 1;
        self.places = vec![0; mask + 1];
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut at = *hash as usize & mask;
            while self.places[at] != 0 {
                at = (at + 1) & mask;
            }
            self.places[at] = number as u32 + 1;
        }
    }

    /// The number of a value with this hash; if it is new, true. A new one is to be pushed.
    #[inline]
    fn find(&mut self, hash: u64) -> (u32, bool) {
        if self.hashes.len() * 2 >= self.places.len() {
            self.double();
        }
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let place = self.places[at];
            if place == 0 {
                let number = self.hashes.len() as u32;
                self.places[at] = number + 1;
                self.hashes.push(hash);
                return (number, true);
            }
            // Two of some thousand values with one hash of 64 bits: nobody has seen that.
            if self.hashes[place as usize - 1] == hash {
                return (place - 1, false);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a number.
    #[inline]
    pub(super) fn of_int(&mut self, int: i64) -> u32 {
        let (number, is_new) = self.find(hash_of_int(int));
        if is_new && let Values::Ints(ints) = &mut self.values {
            ints.push(int);
        }
        number
    }

    /// The number of bytes with this hash, of which these are kept.
    #[inline]
    pub(super) fn of_kept(&mut self, hash: u64, kept: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let (number, is_new) = self.find(hash);
        if is_new && let Values::Bytes { bytes, ends } = &mut self.values {
            kept(bytes);
            ends.push(bytes.len());
        }
        number
    }

    fn bytes(&self, number: u32) -> &[u8] {
        let Values::Bytes { bytes, ends } = &self.values else { return &[] };
        let number = number as usize;
        &bytes[number.checked_sub(1).map_or(0, |before| ends[before])..ends[number]]
    }

    pub(super) fn held(&self, number: u32) -> Held {
        match &self.values {
            Values::Ints(ints) => Held::Int(ints[number as usize]),
            Values::Bytes { .. } => Held::Bytes(self.bytes(number).to_vec()),
        }
    }

    /// The numbers in the order of their values.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let numbers = 0..self.len() as u32;
        match &self.values {
            Values::Ints(ints) => {
                let mut pairs: Vec<(i64, u32)> = ints.iter().copied().zip(numbers).collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|(_, number)| number).collect()
            }
            Values::Bytes { .. } => {
                // Most are told apart by their first bytes.
                let head = |number: u32| {
                    let (mut head, bytes) = ([0; 8], self.bytes(number));
                    let len = bytes.len().min(8);
                    head[..len].copy_from_slice(&bytes[..len]);
                    u64::from_be_bytes(head)
                };
                let mut pairs: Vec<(u64, u32)> = numbers.map(|number| (head(number), number)).collect();
                let whole = |number: u32| (self.bytes(number), self.hashes[number as usize]);
                pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| whole(a.1).cmp(&whole(b.1))));
                pairs.into_iter().map(|(_, number)| number).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::random::SplitMix64;
    use std::collections::BTreeSet;

    #[test]
    fn values_have_numbers() {
        let mut random = SplitMix64(3);
        let (mut ints, mut texts) = (ValueTable::of_ints(), ValueTable::of_bytes());
        let (mut ints_seen, mut texts_seen) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..20_000 {
            let int = random.below(5_000) as i64 - 2_500;
            let number = ints.of_int(int);
            assert_eq!(ints.held(number), Held::Int(int));
            ints_seen.insert(int);
            let text = format!("{}{}", "long ".repeat(random.below(3) as usize), int);
            let number = texts.of_kept(hash_of_bytes(text.as_bytes()), |out| out.extend_from_slice(text.as_bytes()));
            assert_eq!(texts.held(number), Held::Bytes(text.clone().into_bytes()));
            texts_seen.insert(text);
        }
        let ordered: Vec<Held> = ints.in_order().into_iter().map(|number| ints.held(number)).collect();
        assert!(ordered.into_iter().eq(ints_seen.into_iter().map(Held::Int)));
        let ordered: Vec<Held> = texts.in_order().into_iter().map(|number| texts.held(number)).collect();
        assert!(ordered.into_iter().eq(texts_seen.into_iter().map(|text| Held::Bytes(text.into_bytes()))));
    }

    #[test]
    fn floats_and_decimals_order_and_come_back() {
        let double = Shape::new(DataType::Double);
        let floats = [f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.5, f64::INFINITY, f64::NAN];
        let ordered = floats.map(|float| double.ordered(float.to_bits() as i64));
        assert!(ordered.is_sorted_by(|a, b| a < b));
        assert_eq!(double.ordered((-0.0f64).to_bits() as i64), double.ordered(0));
        for (float, int) in floats.into_iter().zip(ordered) {
            let key = double.key(&Held::Int(int)).unwrap();
            assert_eq!(value_of_key(DataType::Double, &key), Some(Value::Double(float)));
        }
        let real = Shape::new(DataType::Real);
        let key = real.key(&Held::Int(real.ordered(i64::from((-2.5f32).to_bits() as i32)))).unwrap();
        assert_eq!(value_of_key(DataType::Real, &key), Some(Value::Real(-2.5)));
        let wide = DataType::Decimal { precision: 38, scale: 0 };
        let (shape, mut last) = (Shape::new(wide), Vec::new());
        for number in [-i128::pow(10, 37), -1, 0, 1, 255, 256, i128::pow(10, 37)] {
            let mut kept = Vec::new();
            shape.kept(&number.to_le_bytes(), &mut kept);
            assert!(last < kept, "{number}");
            let key = shape.key(&Held::Bytes(kept.clone())).unwrap();
            assert_eq!(value_of_key(wide, &key), Some(Value::Decimal(number)));
            last = kept;
        }
    }

    #[test]
    fn equal_intervals_are_one_value() {
        let shape = Shape::new(DataType::Interval);
        let kept = |months: i32, days: i32, micros: i64| {
            let mut kept = Vec::new();
            let compared = shape.compared(&Interval { months, days, micros }.to_bytes()).unwrap();
            shape.kept(&compared, &mut kept);
            kept
        };
        assert_eq!(kept(1, 0, 0), kept(0, 30, 0));
        let ordered = [kept(i32::MIN, 0, 0), kept(-1, 0, 0), kept(0, 0, -1), kept(0, 0, 0), kept(0, 1, 0), kept(i32::MAX, 0, 0)];
        assert!(ordered.is_sorted_by(|a, b| a < b));
        for kept in ordered {
            let key = shape.key(&Held::Bytes(kept.clone())).unwrap();
            let Some(Value::Interval(interval)) = value_of_key(DataType::Interval, &key) else { panic!("an interval") };
            assert_eq!(wide(&kept), Some(interval.span()));
        }
    }

    #[test]
    fn texts_are_cut_at_characters() {
        let shape = Shape::new(DataType::Char(10));
        assert_eq!(shape.significant(b"ab   "), b"ab");
        let key = shape.key(&Held::Bytes("ä".as_bytes()[..1].to_vec())).unwrap();
        assert_eq!(value_of_key(DataType::Char(10), &key), Some(Value::Text(String::new())));
    }
}
