//! A value that is borrowed from a row, a literal or a parameter where it can be, so that comparing texts allocates nothing.

use pagefold_types::{Value, ValueRef};
use std::ops::Range;

/// A value, borrowed or owned.
#[derive(Clone, Debug)]
pub(crate) enum Datum<'a> {
    Ref(ValueRef<'a>),
    Own(Value),
}

impl Datum<'_> {
    pub(crate) const NULL: Datum<'static> = Datum::Ref(ValueRef::Null);

    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Datum::Ref(value) => *value,
            Datum::Own(value) => value.as_ref(),
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Datum::Ref(value) => value.to_owned(),
            Datum::Own(value) => value,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.as_ref().is_null()
    }

    /// `None` is unknown.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self.as_ref() {
            ValueRef::Boolean(truth) => Some(truth),
            _ => None,
        }
    }

    /// Of an integer, day or time; 0 of others.
    pub(crate) fn int(&self) -> i64 {
        match self.as_ref() {
            ValueRef::Int(value) => value,
            _ => 0,
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self.as_ref() {
            ValueRef::Text(text) => text,
            _ => "",
        }
    }

    pub(crate) fn double(&self) -> f64 {
        match self.as_ref() {
            ValueRef::Double(value) => value,
            ValueRef::Real(value) => value.into(),
            _ => f64::NAN,
        }
    }
}

impl<'a> Datum<'a> {
    pub(crate) fn boolean(truth: Option<bool>) -> Datum<'a> {
        Datum::Ref(truth.map_or(ValueRef::Null, ValueRef::Boolean))
    }

    pub(crate) fn from_int(value: i64) -> Datum<'a> {
        Datum::Ref(ValueRef::Int(value))
    }

    pub(crate) fn from_text(text: String) -> Datum<'a> {
        Datum::Own(Value::Text(text))
    }

    /// These bytes of a text. Those that are no range of characters give nothing.
    pub(crate) fn cut(self, range: Range<usize>) -> Datum<'a> {
        match self {
            Datum::Ref(ValueRef::Text(text)) => Datum::Ref(ValueRef::Text(text.get(range).unwrap_or_default())),
            Datum::Own(Value::Text(mut text)) => {
                if text.get(range.clone()).is_none() {
                    text.clear();
                } else {
                    text.truncate(range.end);
                    text.drain(..range.start);
                }
                Datum::Own(Value::Text(text))
            }
            other => other,
        }
    }

    /// Without the blanks at its end: CHAR as other text sees it.
    pub(crate) fn without_padding(self) -> Datum<'a> {
        let kept = self.text().trim_end_matches(' ').len();
        if kept == self.text().len() { self } else { self.cut(0..kept) }
    }
}

impl<'a> From<&'a Value> for Datum<'a> {
    fn from(value: &'a Value) -> Datum<'a> {
        Datum::Ref(value.as_ref())
    }
}
