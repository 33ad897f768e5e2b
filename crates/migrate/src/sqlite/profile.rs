//! Which types the columns of a table have: SQLite's values have types, its columns do not.
//!
//! One pass over the rows finds what values there are. A column gets the type that it was declared with, as far as all of its values
//! are exactly values of that; else the narrowest that has them all. A text is a date only where it comes back as the same text.

use super::refused;
use crate::foreign::ForeignTable;
use pagefold_interchange::{InterchangeError, TableSchema};
use pagefold_types::{Column, DataType, Schema, TimeUnit, text};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::path::Path;

/// What becomes of a column that has numbers and texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixed {
    /// It is an error that names the column and a row.
    #[default]
    Refuse,
    /// Numbers become texts: the shortest that are the same number again.
    AsText,
}

/// Integers up to this are the same as floating-point numbers.
const EXACT: i64 = 1 << 53;

/// What values a column has.
#[derive(Clone, Debug, Default)]
struct Found {
    nulls: u64,
    /// The first row with such a value, from 0; and how many there are.
    integers: Option<(u64, u64)>,
    reals: Option<(u64, u64)>,
    texts: Option<(u64, u64)>,
    blobs: Option<(u64, u64)>,
    least: i64,
    most: i64,
    characters: u32,
    /// Are all numbers decimals with the declared digits?
    is_decimal: bool,
    /// Are all texts such dates?
    date: Option<DataType>,
}

/// What a column was declared as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Declared {
    Boolean,
    Integer(DataType),
    Double,
    Decimal { precision: u8, scale: i8 },
    Date(DataType),
    Text(Option<u32>),
    Blob,
    Nothing,
}

impl Declared {
    /// By the words that SQLite goes by, and those that programs use.
    fn of(text: &str) -> Declared {
        let text = text.trim().to_ascii_uppercase();
        let (word, arguments) =
            text.split_once('(').map_or((text.as_str(), ""), |(word, rest)| (word.trim(), rest.split(')').next().unwrap_or_default()));
        let numbers: Vec<u32> = arguments.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        match word {
            "BOOLEAN" | "BOOL" => return Declared::Boolean,
            "DATE" => return Declared::Date(DataType::Date),
            "DATETIME" | "TIMESTAMP" => return Declared::Date(DataType::Timestamp { unit: TimeUnit::Second, with_zone: false }),
            "SMALLINT" | "INT2" | "TINYINT" => return Declared::Integer(DataType::SmallInt),
            "INT4" | "MEDIUMINT" => return Declared::Integer(DataType::Integer),
            "NUMERIC" | "DECIMAL" | "DEC" | "MONEY" => {
                return match numbers[..] {
                    [precision @ 1..=38, scale] if scale <= precision => {
                        Declared::Decimal { precision: precision as u8, scale: scale as i8 }
                    }
                    [precision @ 1..=38] => Declared::Decimal { precision: precision as u8, scale: 0 },
                    _ => Declared::Nothing,
                };
            }
            _ => {}
        }
        if word.contains("INT") {
            Declared::Integer(DataType::BigInt)
        } else if ["CHAR", "CLOB", "TEXT"].iter().any(|name| word.contains(name)) {
            Declared::Text(numbers.first().copied().filter(|length| *length > 0))
        } else if word.contains("BLOB") || word == "BYTEA" {
            Declared::Blob
        } else if ["REAL", "FLOA", "DOUB"].iter().any(|name| word.contains(name)) {
            Declared::Double
        } else {
            Declared::Nothing
        }
    }

    /// Which texts may be dates.
    fn date(self) -> Option<DataType> {
        if let Declared::Date(data_type) = self { Some(data_type) } else { None }
    }
}

/// Powers of ten up to this are floating-point numbers.
const EXACT_POWER: i8 = 22;

/// The number without its point, if a floating-point number is a decimal of so many digits behind it: the nearest one to that is this. Both sides of
/// the division are exact, so it is rounded once, as a text would be. -0 is no decimal.
pub(super) fn decimal_of(number: f64, scale: i8) -> Option<i128> {
    if scale > EXACT_POWER || (number == 0.0 && number.is_sign_negative()) {
        return None;
    }
    let factor = 10f64.powi(scale.into());
    let scaled = (number * factor).round();
    (scaled.abs() < EXACT as f64 && scaled / factor == number).then_some(scaled as i128)
}

fn note(place: &mut Option<(u64, u64)>, row: u64) {
    place.get_or_insert((row, 0)).1 += 1;
}

impl Found {
    fn add(&mut self, value: ValueRef<'_>, declared: Declared, row: u64, scratch: &mut Vec<u8>) -> Result<(), String> {
        match value {
            ValueRef::Null => self.nulls += 1,
            ValueRef::Integer(number) => {
                if self.integers.is_none() {
                    (self.least, self.most) = (number, number);
                }
                note(&mut self.integers, row);
                (self.least, self.most) = (self.least.min(number), self.most.max(number));
                if let Declared::Decimal { precision, scale } = declared {
                    self.is_decimal &= i128::from(number).checked_mul(10i128.pow(scale as u32)).is_some_and(|n| has_digits(n, precision));
                }
            }
            ValueRef::Real(number) => {
                note(&mut self.reals, row);
                if let Declared::Decimal { precision, scale } = declared {
                    self.is_decimal &= decimal_of(number, scale).is_some_and(|n| has_digits(n, precision));
                }
            }
            ValueRef::Text(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8".to_owned())?;
                note(&mut self.texts, row);
                self.characters = self.characters.max(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
                self.add_date(text, declared, scratch);
            }
            ValueRef::Blob(_) => note(&mut self.blobs, row),
        }
        Ok(())
    }

    /// Times may have digits of seconds, all the same number.
    fn add_date(&mut self, text: &str, declared: Declared, scratch: &mut Vec<u8>) {
        let is_first = self.texts.is_some_and(|(_, count)| count == 1);
        let Some(first) = declared.date() else { return };
        if !is_first {
            self.date = self.date.filter(|date| text::is_canonical(text, date, scratch));
            return;
        }
        let times = [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro].map(|unit| DataType::Timestamp { unit, with_zone: false });
        self.date = [first, DataType::Date].into_iter().chain(times).find(|date| text::is_canonical(text, date, scratch));
    }

    /// The type of the column, or why there is none.
    fn decide(&self, declared: Declared, mixed: Mixed) -> Result<DataType, String> {
        let numbers = self.integers.is_some() || self.reals.is_some();
        let varchar = |limit: Option<u32>| {
            DataType::Varchar(limit.filter(|limit| self.characters <= *limit && DataType::Varchar(Some(*limit)).is_valid()))
        };
        let kinds = [("integers", self.integers), ("floating-point numbers", self.reals), ("texts", self.texts), ("blobs", self.blobs)];
        let refuse = || {
            let mut found: Vec<_> = kinds.iter().filter_map(|(kind, found)| found.map(|(row, count)| (count, *kind, row))).collect();
            found.sort_unstable();
            let found: Vec<String> = found.iter().map(|(count, kind, row)| format!("{kind}: {count}, first in row {}", row + 1)).collect();
            format!("its values have no type in common ({})", found.join("; "))
        };
        match (numbers, self.texts, self.blobs) {
            (false, None, None) => Ok(match declared {
                Declared::Boolean => DataType::Boolean,
                Declared::Integer(_) => DataType::BigInt,
                Declared::Double => DataType::Double,
                Declared::Decimal { precision, scale } => DataType::Decimal { precision, scale },
                Declared::Date(date) => date,
                Declared::Text(limit) => varchar(limit),
                Declared::Blob => DataType::Bytea,
                Declared::Nothing => DataType::Varchar(None),
            }),
            (true, None, None) => self.number(declared).ok_or_else(refuse),
            (false, Some(_), None) => Ok(self.date.unwrap_or(match declared {
                Declared::Text(limit) => varchar(limit),
                _ => DataType::Varchar(None),
            })),
            (false, None, Some(_)) => Ok(DataType::Bytea),
            (true, Some(_), None) if mixed == Mixed::AsText => Ok(DataType::Varchar(None)),
            _ => Err(refuse()),
        }
    }

    fn number(&self, declared: Declared) -> Option<DataType> {
        let within = |least: i64, most: i64| self.integers.is_none() || (least <= self.least && self.most <= most);
        if self.reals.is_none() {
            return Some(match declared {
                Declared::Boolean if within(0, 1) => DataType::Boolean,
                Declared::Integer(DataType::SmallInt) if within(i16::MIN.into(), i16::MAX.into()) => DataType::SmallInt,
                Declared::Integer(DataType::Integer) if within(i32::MIN.into(), i32::MAX.into()) => DataType::Integer,
                Declared::Decimal { precision, scale } if self.is_decimal => DataType::Decimal { precision, scale },
                Declared::Double if within(-EXACT, EXACT) => DataType::Double,
                _ => DataType::BigInt,
            });
        }
        match declared {
            Declared::Decimal { precision, scale } if self.is_decimal => Some(DataType::Decimal { precision, scale }),
            _ => within(-EXACT, EXACT).then_some(DataType::Double),
        }
    }
}

fn has_digits(number: i128, precision: u8) -> bool {
    number.unsigned_abs() < 10u128.pow(precision.into())
}

/// The columns of a table, with types that have all of its values.
pub(super) fn schema(
    connection: &Connection,
    path: &Path,
    table: &ForeignTable,
    query: &str,
    mixed: Mixed,
) -> Result<TableSchema, InterchangeError> {
    let of_table = |reason: String| InterchangeError::File { path: path.to_owned(), reason: format!("table \"{}\", {reason}", table.name) };
    let failed = |error: rusqlite::Error| refused(path, &format!("table \"{}\"", table.name), &error);
    let declared: Vec<Declared> = table.columns.iter().map(|column| Declared::of(&column.declared)).collect();
    let mut found = vec![Found { is_decimal: true, ..Found::default() }; table.columns.len()];
    let mut statement = connection.prepare(query).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut number, mut scratch) = (0, Vec::new());
    while let Some(row) = rows.next().map_err(failed)? {
        for (column, found) in found.iter_mut().enumerate() {
            let value = row.get_ref(column).map_err(failed)?;
            let added = found.add(value, declared[column], number, &mut scratch);
            added.map_err(|reason| of_table(format!("column \"{}\": row {} has {reason}", table.columns[column].name, number + 1)))?;
        }
        number += 1;
    }
    let mut columns = Vec::with_capacity(found.len());
    for ((column, found), declared) in table.columns.iter().zip(&found).zip(declared) {
        let decided = found.decide(declared, mixed);
        let data_type = decided.map_err(|reason| of_table(format!("column \"{}\": {reason}", column.name)))?;
        columns.push(Column::new(&column.name, data_type, column.nullable || found.nulls > 0));
    }
    Ok(TableSchema::from_schema(Schema::new(columns)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(declared: &str, values: &[ValueRef<'_>], mixed: Mixed) -> Result<DataType, String> {
        let declared = Declared::of(declared);
        let mut found = Found { is_decimal: true, ..Found::default() };
        for (row, value) in values.iter().enumerate() {
            found.add(*value, declared, row as u64, &mut Vec::new())?;
        }
        found.decide(declared, mixed)
    }

    fn text(text: &str) -> ValueRef<'_> {
        ValueRef::Text(text.as_bytes())
    }

    #[test]
    fn a_type_has_all_values() {
        use ValueRef::{Blob, Integer, Null, Real};
        let seconds = DataType::Timestamp { unit: TimeUnit::Second, with_zone: false };
        let millis = DataType::Timestamp { unit: TimeUnit::Milli, with_zone: false };
        let cases: [(&str, &[ValueRef<'_>], DataType); 24] = [
            ("INTEGER", &[Integer(1), Null], DataType::BigInt),
            ("smallint", &[Integer(1), Integer(-32_768)], DataType::SmallInt),
            ("smallint", &[Integer(1), Integer(40_000)], DataType::BigInt),
            ("BOOLEAN", &[Integer(1), Integer(0), Null], DataType::Boolean),
            ("BOOLEAN", &[Integer(2)], DataType::BigInt),
            ("NUMERIC(10,2)", &[Real(0.99), Integer(3), Real(-17.5)], DataType::Decimal { precision: 10, scale: 2 }),
            ("NUMERIC(10,2)", &[Real(0.999)], DataType::Double),
            ("NUMERIC(10,2)", &[Real(-0.0)], DataType::Double),
            ("NUMERIC(38,30)", &[Real(0.5)], DataType::Double),
            ("NUMERIC(4,2)", &[Integer(100)], DataType::BigInt),
            ("DECIMAL(12)", &[Integer(100)], DataType::Decimal { precision: 12, scale: 0 }),
            ("REAL", &[Integer(100), Real(0.5)], DataType::Double),
            ("DOUBLE PRECISION", &[Integer(EXACT + 1)], DataType::BigInt),
            ("DATETIME", &[text("2009-01-01 00:00:00"), Null], seconds),
            ("DATETIME", &[text("2009-01-01 00:00:00.125")], millis),
            ("DATETIME", &[text("2009-01-01 00:00:00"), text("2009-01-01")], DataType::Varchar(None)),
            ("DATE", &[text("2009-01-31")], DataType::Date),
            ("DATE", &[text("2009-02-31")], DataType::Varchar(None)),
            ("VARCHAR(10)", &[text("ten of ten")], DataType::Varchar(Some(10))),
            ("VARCHAR(9)", &[text("ten of ten")], DataType::Varchar(None)),
            ("", &[Blob(&[1])], DataType::Bytea),
            ("TEXT", &[Null], DataType::Varchar(None)),
            ("BLOB", &[], DataType::Bytea),
            ("DATE", &[Integer(7)], DataType::BigInt),
        ];
        for (declared, values, expected) in cases {
            assert_eq!(decided(declared, values, Mixed::Refuse), Ok(expected), "{declared} {values:?}");
        }
    }

    #[test]
    fn what_has_no_type_in_common_is_named() {
        use ValueRef::{Blob, Integer, Real};
        let mixed = [Integer(1), Integer(2), text("two")];
        let refused = decided("INTEGER", &mixed, Mixed::Refuse).unwrap_err();
        assert_eq!(refused, "its values have no type in common (texts: 1, first in row 3; integers: 2, first in row 1)");
        assert_eq!(decided("INTEGER", &mixed, Mixed::AsText), Ok(DataType::Varchar(None)));
        assert!(decided("", &[Integer(1), Blob(&[1])], Mixed::AsText).is_err());
        assert!(decided("REAL", &[Integer(i64::MAX), Real(0.5)], Mixed::Refuse).is_err());
        assert!(decided("TEXT", &[ValueRef::Text(&[0xFF])], Mixed::Refuse).unwrap_err().contains("UTF-8"));
    }
}
