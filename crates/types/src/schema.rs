//! Columns and schemas.
//!
//! Invariant: a [`Schema`] has 1 to [`COLUMNS_MAX`] columns, names of 1 to [`COLUMN_NAME_BYTES_MAX`] bytes, no name twice, valid types only.
//!
//! Stored form: `count u16`, then for each column `name length u16, name, nullable u8, type`.

use crate::bytes::Reader;
use crate::{DataType, SchemaError};
use std::collections::HashMap;

/// The most columns a table has.
pub const COLUMNS_MAX: usize = 2_000;

/// The longest column name, in bytes.
pub const COLUMN_NAME_BYTES_MAX: usize = 1_024;

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; letters in either case are different.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// May be NULL?
    pub nullable: bool,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Column {
        Column { name: name.into(), data_type, nullable }
    }
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    columns: Vec<Column>,
}

impl Schema {
    /// Checks and takes the columns.
    ///
    /// # Errors
    /// [`SchemaError`]: too many columns or none, a bad or repeated name, an invalid type.
    pub fn new(columns: Vec<Column>) -> Result<Schema, SchemaError> {
        if columns.is_empty() || columns.len() > COLUMNS_MAX {
            return Err(SchemaError::ColumnCount { count: columns.len(), max: COLUMNS_MAX });
        }
        let mut seen: HashMap<&str, usize> = HashMap::with_capacity(columns.len());
        for (i, column) in columns.iter().enumerate() {
            if column.name.is_empty() || column.name.len() > COLUMN_NAME_BYTES_MAX {
                return Err(SchemaError::ColumnName { position: i + 1, bytes: column.name.len(), max: COLUMN_NAME_BYTES_MAX });
            }
            if !column.data_type.is_valid() {
                return Err(SchemaError::TypeText { text: column.data_type.to_string(), reason: "a parameter is out of range" });
            }
            if let Some(first) = seen.insert(&column.name, i) {
                return Err(SchemaError::DuplicateColumn { name: column.name.clone(), first: first + 1, second: i + 1 });
            }
        }
        Ok(Schema { columns })
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many columns: at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a schema is never empty")]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Position (from 0) of the column of that name; when no name is equal, of the only one that is equal but for the case of ASCII letters.
    ///
    /// # Errors
    /// [`SchemaError::UnknownColumn`], which lists the names there are.
    pub fn index_of(&self, name: &str) -> Result<usize, SchemaError> {
        if let Some(i) = self.columns.iter().position(|c| c.name == name) {
            return Ok(i);
        }
        let mut alike = self.columns.iter().enumerate().filter(|(_, c)| c.name.eq_ignore_ascii_case(name));
        match (alike.next(), alike.next()) {
            (Some((i, _)), None) => Ok(i),
            _ => Err(SchemaError::UnknownColumn { name: name.chars().take(80).collect(), known: self.names_for_message() }),
        }
    }

    fn names_for_message(&self) -> String {
        const SHOWN: usize = 20;
        let mut names = self.columns.iter().take(SHOWN).map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        if self.columns.len() > SHOWN {
            names.push_str(&format!(" and {} more", self.columns.len() - SHOWN));
        }
        names
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend((self.columns.len() as u16).to_le_bytes());
        for column in &self.columns {
            out.extend((column.name.len() as u16).to_le_bytes());
            out.extend(column.name.as_bytes());
            out.push(u8::from(column.nullable));
            column.data_type.encode(out);
        }
    }

    /// From the stored form, all of `bytes`.
    ///
    /// # Errors
    /// [`SchemaError`] when the bytes are not a valid schema.
    pub fn decode(bytes: &[u8]) -> Result<Schema, SchemaError> {
        let mut reader = Reader::new(bytes);
        let count = usize::from(reader.u16().ok_or(SchemaError::Bytes("column count"))?);
        // A column takes at least five bytes: the count cannot make us reserve more than the bytes justify.
        let mut columns = Vec::with_capacity(count.min(bytes.len() / 5));
        for _ in 0..count {
            let length = usize::from(reader.u16().ok_or(SchemaError::Bytes("name length"))?);
            let name = reader.take(length).and_then(|b| std::str::from_utf8(b).ok()).ok_or(SchemaError::Bytes("name"))?;
            let nullable = match reader.u8() {
                Some(0) => false,
                Some(1) => true,
                _ => return Err(SchemaError::Bytes("nullable")),
            };
            columns.push(Column::new(name, DataType::decode_from(&mut reader)?, nullable));
        }
        if !reader.is_empty() {
            return Err(SchemaError::Bytes("bytes behind the last column"));
        }
        Schema::new(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Column::new("id", DataType::BigInt, false),
            Column::new("Name", DataType::Varchar(Some(20)), true),
            Column::new("price", DataType::Decimal { precision: 15, scale: 2 }, true),
        ])
        .unwrap()
    }

    #[test]
    fn look_up() {
        let s = schema();
        assert_eq!(s.index_of("price").unwrap(), 2);
        assert_eq!(s.index_of("name").unwrap(), 1);
        assert_eq!(s.index_of("nam").unwrap_err().to_string(), "unknown column \"nam\"; there are id, Name, price");
    }

    #[test]
    fn refusals() {
        let column = |n: &str| Column::new(n, DataType::Date, false);
        let error = |c: Vec<Column>| Schema::new(c).unwrap_err().to_string();
        assert_eq!(error(vec![column("a"), column("b"), column("a")]), "column name \"a\" occurs twice (columns 1 and 3)");
        assert!(error(vec![]).contains("not 0"));
        assert!(error(vec![column("")]).contains("column 1"));
        assert!(error((0..=COLUMNS_MAX).map(|i| column(&i.to_string())).collect()).contains("2001"));
        assert!(error(vec![Column::new("a", DataType::Char(0), false)]).contains("CHAR(0)"));
    }

    #[test]
    fn stored_form_round_trips_and_damage_is_refused() {
        let mut bytes = Vec::new();
        schema().encode(&mut bytes);
        assert_eq!(Schema::decode(&bytes).unwrap(), schema());
        for cut in 0..bytes.len() {
            assert!(Schema::decode(&bytes[..cut]).is_err());
        }
        for i in 0..bytes.len() {
            for flip in 1..=255u8 {
                bytes[i] ^= flip;
                let _ = Schema::decode(&bytes);
                bytes[i] ^= flip;
            }
        }
        bytes.push(0);
        assert!(Schema::decode(&bytes).is_err());
    }
}
