//! A value, owned ([`Value`]) or borrowed from a record ([`ValueRef`]).
//!
//! The kind follows from the column's type: SMALLINT, INTEGER, BIGINT, DATE, TIME and TIMESTAMP are all `Int`, DECIMAL is the number without its point.
//! Equality is SQL's total order (`order.rs`): NaN equals itself, -0 equals 0, NULL equals NULL, a month equals 30 days.

use crate::{DataType, Interval, ValueError};

/// A value borrowed from somewhere.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// NULL of any type
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// SMALLINT, INTEGER, BIGINT, DATE, TIME, TIMESTAMP
    Int(i64),
    /// DECIMAL: the unscaled number
    Decimal(i128),
    /// REAL
    Real(f32),
    /// DOUBLE
    Double(f64),
    /// CHAR, VARCHAR
    Text(&'a str),
    /// BYTEA
    Bytes(&'a [u8]),
    /// UUID, most significant byte first
    Uuid([u8; 16]),
    /// INTERVAL
    Interval(Interval),
}

/// A value that owns its bytes.
#[derive(Clone, Debug)]
pub enum Value {
    /// NULL of any type
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// SMALLINT, INTEGER, BIGINT, DATE, TIME, TIMESTAMP
    Int(i64),
    /// DECIMAL: the unscaled number
    Decimal(i128),
    /// REAL
    Real(f32),
    /// DOUBLE
    Double(f64),
    /// CHAR, VARCHAR
    Text(String),
    /// BYTEA
    Bytes(Vec<u8>),
    /// UUID, most significant byte first
    Uuid([u8; 16]),
    /// INTERVAL
    Interval(Interval),
}

/// Puts a value behind others.
///
/// As [`Vec::push`], which builds the value where it can be dropped, as it may have to take memory, and then moves it in larger
/// pieces than it was written in: processors wait for that, longer than all else takes that is done for a number.
#[inline(always)]
pub fn push_value(values: &mut Vec<Value>, value: Value) {
    if values.len() < values.capacity() {
        values.push(value);
    } else {
        push_growing(values, value);
    }
}

#[cold]
#[inline(never)]
fn push_growing(values: &mut Vec<Value>, value: Value) {
    values.push(value);
}

impl Value {
    /// Borrows it.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Boolean(b) => ValueRef::Boolean(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Decimal(d) => ValueRef::Decimal(*d),
            Value::Real(r) => ValueRef::Real(*r),
            Value::Double(d) => ValueRef::Double(*d),
            Value::Text(s) => ValueRef::Text(s),
            Value::Bytes(b) => ValueRef::Bytes(b),
            Value::Uuid(u) => ValueRef::Uuid(*u),
            Value::Interval(i) => ValueRef::Interval(*i),
        }
    }
}

impl ValueRef<'_> {
    /// Copies it.
    #[must_use]
    pub fn to_owned(&self) -> Value {
        match *self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(b) => Value::Boolean(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Decimal(d) => Value::Decimal(d),
            ValueRef::Real(r) => Value::Real(r),
            ValueRef::Double(d) => Value::Double(d),
            ValueRef::Text(s) => Value::Text(s.to_owned()),
            ValueRef::Bytes(b) => Value::Bytes(b.to_owned()),
            ValueRef::Uuid(u) => Value::Uuid(u),
            ValueRef::Interval(i) => Value::Interval(i),
        }
    }

    /// NULL?
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// What it is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ValueRef::Null => "NULL",
            ValueRef::Boolean(_) => "a truth value",
            ValueRef::Int(_) => "an integer",
            ValueRef::Decimal(_) => "a decimal number",
            ValueRef::Real(_) => "a 32-bit floating-point number",
            ValueRef::Double(_) => "a 64-bit floating-point number",
            ValueRef::Text(_) => "text",
            ValueRef::Bytes(_) => "bytes",
            ValueRef::Uuid(_) => "a UUID",
            ValueRef::Interval(_) => "an interval",
        }
    }

    /// Does the value, if not NULL, fit the type? CHAR(n) takes longer text when only blanks are cut off.
    ///
    /// # Errors
    /// [`ValueError::Type`] or [`ValueError::Range`], naming `column`.
    pub fn check(&self, data_type: &DataType, column: &str) -> Result<(), ValueError> {
        let fits = match (self, data_type) {
            (ValueRef::Null, _)
            | (ValueRef::Boolean(_), DataType::Boolean)
            | (ValueRef::Real(_), DataType::Real)
            | (ValueRef::Double(_), DataType::Double)
            | (ValueRef::Text(_), DataType::Varchar(None))
            | (ValueRef::Bytes(_), DataType::Bytea)
            | (ValueRef::Uuid(_), DataType::Uuid)
            | (ValueRef::Interval(_), DataType::Interval) => true,
            (ValueRef::Int(i), t) if let Some((least, most)) = t.int_range() => (least..=most).contains(i),
            (ValueRef::Decimal(d), DataType::Decimal { precision, .. }) => {
                d.unsigned_abs() < crate::data_type::decimal_limit(*precision).unsigned_abs()
            }
            (ValueRef::Text(s), DataType::Varchar(Some(n))) => at_most_chars(s, *n),
            (ValueRef::Text(s), DataType::Char(n)) => fit_char(s, *n).is_some(),
            _ => return Err(ValueError::Type { column: column.to_owned(), data_type: *data_type, found: self.kind() }),
        };
        if fits {
            Ok(())
        } else {
            Err(ValueError::Range { column: column.to_owned(), data_type: *data_type, value: excerpt(*self, data_type) })
        }
    }
}

/// At most `n` characters?
pub(crate) fn at_most_chars(text: &str, n: u32) -> bool {
    let n = n as usize;
    // A character takes one to four bytes: most texts need no counting.
    text.len() <= n || (text.len() <= n.saturating_mul(4) && text.chars().count() <= n)
}

/// What of `text` is kept in a CHAR(n), and how many blanks follow it. `None` when more than blanks would be cut off.
pub(crate) fn fit_char(text: &str, n: u32) -> Option<(&str, usize)> {
    let n = n as usize;
    let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
    if chars <= n {
        return Some((text, n - chars));
    }
    // Blanks are one byte each, so characters too many are bytes too many.
    let kept = text.len() - (chars - n);
    let (head, tail) = (text.get(..kept)?, text.get(kept..)?);
    tail.bytes().all(|b| b == b' ').then_some((head, 0))
}

/// The value as text for a message: at most about 60 characters.
#[must_use]
pub fn excerpt(value: ValueRef<'_>, data_type: &DataType) -> String {
    const SHOWN: usize = 60;
    let quoted = |s: &str| {
        let cut: String = s.chars().take(SHOWN).collect();
        if cut.len() < s.len() { format!("\"{cut}...\" ({} bytes)", s.len()) } else { format!("\"{cut}\"") }
    };
    match value {
        ValueRef::Text(s) => quoted(s),
        ValueRef::Bytes(b) if b.len() > SHOWN / 2 => {
            format!("{}... ({} bytes)", crate::text::to_text(ValueRef::Bytes(&b[..SHOWN / 2]), &DataType::Bytea), b.len())
        }
        other => crate::text::to_text(other, data_type),
    }
}
