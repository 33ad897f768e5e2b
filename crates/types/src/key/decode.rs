//! Keys back to values: for messages, `print`, and index-only reads.

use super::layout::{Direction, KeyLayout};
use super::scalar::KeyReader;
use crate::{KeyError, Value};

impl KeyLayout {
    /// The values of a key, in key order. Bytes are untrusted.
    ///
    /// # Errors
    /// [`KeyError::Bytes`] when these bytes are no key of this layout.
    pub fn decode(&self, key: &[u8]) -> Result<Vec<Value>, KeyError> {
        let mut reader = KeyReader::new(key);
        let mut values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let offset = reader.offset();
            let damaged = KeyError::Bytes { offset };
            reader.flip = if column.direction == Direction::Descending { 0xFF } else { 0 };
            let null = column.nullable
                && match reader.byte() {
                    Some(0) => false,
                    Some(1) => true,
                    _ => return Err(damaged),
                };
            let value = if null { Value::Null } else { reader.value(column.physical).ok_or_else(|| damaged.clone())? };
            value.as_ref().check(&column.data_type, &column.name).map_err(|_| damaged)?;
            values.push(value);
        }
        if reader.is_at_end() { Ok(values) } else { Err(KeyError::Bytes { offset: reader.offset() }) }
    }

    /// Where the columns of a key end in its bytes, in key order: keys that are the same up to there have the same values in so many columns. Bytes are untrusted.
    ///
    /// # Errors
    /// [`KeyError::Bytes`] when these bytes are no key of this layout.
    pub fn column_ends(&self, key: &[u8], ends: &mut Vec<usize>) -> Result<(), KeyError> {
        ends.clear();
        let mut reader = KeyReader::new(key);
        for column in &self.columns {
            let offset = reader.offset();
            reader.flip = if column.direction == Direction::Descending { 0xFF } else { 0 };
            let null = column.nullable && reader.byte().ok_or(KeyError::Bytes { offset })? != 0;
            let passed = match column.physical.fixed_width() {
                _ if null => Some(()),
                Some(width) => reader.skip(width),
                None => reader.value(column.physical).map(drop),
            };
            if passed.is_none() {
                return Err(KeyError::Bytes { offset });
            }
            ends.push(reader.offset());
        }
        if reader.is_at_end() { Ok(()) } else { Err(KeyError::Bytes { offset: reader.offset() }) }
    }

    /// The key's values as a message shows them: `(7, "Smith", NULL)`; of damaged keys their bytes.
    #[must_use]
    pub fn describe(&self, key: &[u8]) -> String {
        match self.decode(key) {
            Ok(values) => {
                let texts: Vec<String> =
                    values.iter().zip(&self.columns).map(|(v, c)| crate::value::excerpt(v.as_ref(), &c.data_type)).collect();
                format!("({})", texts.join(", "))
            }
            Err(_) => crate::value::excerpt(crate::ValueRef::Bytes(key), &crate::DataType::Bytea),
        }
    }
}
