//! What a condition names or compares with: columns, and values that have no column's type yet.

/// What an operand is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    Column(String),
    /// A whole number, if it is written like this.
    Whole(i64),
    /// Any other number as it was written, exact.
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
    Boolean(bool),
    Null,
}

impl Atom {
    /// A number as it was written.
    pub(super) fn number(text: String) -> Atom {
        match text.parse() {
            Ok(whole) if i64::to_string(&whole) == text => Atom::Whole(whole),
            _ => Atom::Number(text),
        }
    }
}

/// An operand, and where it was written: equal wherever that is.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) atom: Atom,
    /// In characters, from 1; `None` when it was not written but built.
    pub(super) position: Option<usize>,
    /// A name that was written in double quotes.
    pub(super) quoted: bool,
}

impl PartialEq for Placed {
    fn eq(&self, other: &Placed) -> bool {
        self.atom == other.atom
    }
}

/// One side of a comparison: a value, or a column.
///
/// Made `From` numbers, texts, bytes, truth values, intervals, `Option`s of them (`None` is NULL) and [`ColumnName`](super::ColumnName). What it means follows from the
/// column that it is compared with: a number is a number for columns of any number type, compared exactly; a text is read as a value of the column's
/// type, such as `"1995-06-17"` for a DATE. A floating-point number is the shortest decimal number that reads as it: `0.1` is 0.1, also for a DECIMAL.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand(pub(super) Atom);

impl Operand {
    pub(super) fn built(self) -> Placed {
        Placed { atom: self.0, position: None, quoted: false }
    }

    /// NULL: comparisons with it are unknown.
    #[must_use]
    pub fn null() -> Operand {
        Operand(Atom::Null)
    }

    /// A value that is known to be of a type, such as one that was read from a row: `Int` is a day for DATE, `Decimal` has the type's scale.
    #[must_use]
    pub fn of(value: crate::ValueRef<'_>, data_type: &crate::DataType) -> Operand {
        use crate::{DataType, ValueRef};
        let text = || crate::text::to_text(value, data_type);
        Operand(match value {
            ValueRef::Null => Atom::Null,
            ValueRef::Boolean(value) => Atom::Boolean(value),
            ValueRef::Bytes(bytes) => Atom::Bytes(bytes.to_vec()),
            ValueRef::Text(text) => Atom::Text(text.to_owned()),
            ValueRef::Decimal(_) => Atom::number(text()),
            ValueRef::Int(value) if matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt) => Atom::Whole(value),
            ValueRef::Real(value) => return value.into(),
            ValueRef::Double(value) => return value.into(),
            ValueRef::Int(_) | ValueRef::Uuid(_) | ValueRef::Interval(_) => Atom::Text(text()),
        })
    }
}

macro_rules! numbers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Operand {
            fn from(value: $integer) -> Operand {
                Operand(Atom::number(value.to_string()))
            }
        }
    )*};
}
numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl From<$float> for Operand {
            fn from(value: $float) -> Operand {
                // NaN and infinities are values of REAL and DOUBLE alone, and have names.
                Operand(match value {
                    v if v.is_nan() => Atom::Text("NaN".to_owned()),
                    v if v.is_infinite() => Atom::Text(if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()),
                    v => Atom::Number(format!("{v:e}")),
                })
            }
        }
    )*};
}
floats!(f32 f64);

impl From<crate::Interval> for Operand {
    fn from(interval: crate::Interval) -> Operand {
        Operand(Atom::Text(crate::text::to_text(crate::ValueRef::Interval(interval), &crate::DataType::Interval)))
    }
}

impl From<bool> for Operand {
    fn from(value: bool) -> Operand {
        Operand(Atom::Boolean(value))
    }
}

impl From<&str> for Operand {
    fn from(text: &str) -> Operand {
        Operand(Atom::Text(text.to_owned()))
    }
}

impl From<&String> for Operand {
    fn from(text: &String) -> Operand {
        Operand(Atom::Text(text.clone()))
    }
}

impl From<String> for Operand {
    fn from(text: String) -> Operand {
        Operand(Atom::Text(text))
    }
}

impl From<&[u8]> for Operand {
    fn from(bytes: &[u8]) -> Operand {
        Operand(Atom::Bytes(bytes.to_vec()))
    }
}

impl From<Vec<u8>> for Operand {
    fn from(bytes: Vec<u8>) -> Operand {
        Operand(Atom::Bytes(bytes))
    }
}

impl<T: Into<Operand>> From<Option<T>> for Operand {
    fn from(value: Option<T>) -> Operand {
        value.map_or(Operand(Atom::Null), Into::into)
    }
}
