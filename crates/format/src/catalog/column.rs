//! What is said of a column beside its name and type.
//!
//! | Tag | Attribute |
//! |---|---|
//! | 1 | column id |
//! | 2 | comment |
//! | 3 | default: an expression as text |
//! | 5 | identity: object id of its sequence, then 1 when a value is always generated, 0 when one may be given |
//! | 7 | generated: an expression of other columns, as text |

use super::attributes::{Attributes, Kept, put, put_number};
use crate::FormatError;
use crate::wire::{Reader, put_varint};

/// Where the values of an identity column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Object id of the sequence.
    pub sequence: u32,
    /// No other value may be given.
    pub always: bool,
}

/// What is said of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNotes {
    /// The column, by its id.
    pub column: u32,
    /// A comment.
    pub comment: Option<String>,
    /// What a row gets that is given no value: an expression as text.
    pub default: Option<String>,
    /// Its values come from a sequence.
    pub identity: Option<Identity>,
    /// Its values are those of this expression.
    pub generated: Option<String>,
    /// What a later version has said.
    pub kept: Kept,
}

impl ColumnNotes {
    /// Of a column, nothing said yet.
    #[must_use]
    pub fn new(column: u32) -> ColumnNotes {
        ColumnNotes { column, ..ColumnNotes::default() }
    }

    /// As attributes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, self.column.into());
        self.comment.iter().for_each(|text| put(&mut out, 2, text.as_bytes()));
        self.default.iter().for_each(|text| put(&mut out, 3, text.as_bytes()));
        if let Some(Identity { sequence, always }) = self.identity {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, sequence.into());
            bytes.push(always.into());
            put(&mut out, 5, &bytes);
        }
        self.generated.iter().for_each(|text| put(&mut out, 7, text.as_bytes()));
        self.kept.merge(out)
    }

    /// Read back.
    ///
    /// # Errors
    /// When the bytes are none, or a later version has said what must be known.
    pub fn decode(bytes: &[u8]) -> Result<ColumnNotes, FormatError> {
        let mut notes = ColumnNotes::default();
        let mut column = None;
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.tag {
                1 => column = Some(attribute.number()?),
                2 => notes.comment = Some(attribute.text()?.into()),
                3 => notes.default = Some(attribute.text()?.into()),
                5 => {
                    let mut reader = Reader::new(attribute.bytes);
                    let sequence = reader.varint32()?;
                    let always = match reader.u8()? {
                        0 => false,
                        1 => true,
                        other => return Err(FormatError::new(format!("an identity of kind {other}"))),
                    };
                    attribute.ends(&reader)?;
                    notes.identity = Some(Identity { sequence, always });
                }
                7 => notes.generated = Some(attribute.text()?.into()),
                _ => notes.kept.keep(attribute)?,
            }
        }
        notes.column = column.ok_or_else(|| FormatError::new("notes of no column"))?;
        Ok(notes)
    }
}
