//! Constraints of a table.
//!
//! | Tag | Attribute |
//! |---|---|
//! | 1 | kind: 1 CHECK, 2 UNIQUE, 3 FOREIGN KEY, 4 PRIMARY KEY |
//! | 2 | comment |
//! | 3 | name |
//! | 5 | columns, by their ids |
//! | 7 | condition of a CHECK, as text |
//! | 9 | FOREIGN KEY: object id of the other table (0: it is named), then the ids of its columns |
//! | 11 | FOREIGN KEY: on delete (1 byte), on update (1): 0 no action, 1 restrict, 2 cascade, 3 set null, 4 set default |
//! | 13 | object id of the index that holds a UNIQUE or PRIMARY KEY |
//! | 15 | no bytes: it is deferrable |
//! | 17 | no bytes: rows that were there before it are not known to meet it |
//! | 19 | FOREIGN KEY: name of the other table |
//! | 21 | FOREIGN KEY, no bytes: either all columns are NULL or none is (MATCH FULL) |

use super::attributes::{Attributes, Kept, numbers, put, put_number};
use crate::FormatError;

/// What a constraint demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// A condition of a row.
    Check,
    /// No two rows with these values.
    Unique,
    /// A row of another table with these values.
    ForeignKey,
    /// No two rows with these values, none of which is NULL.
    PrimaryKey,
}

impl ConstraintKind {
    const ALL: [ConstraintKind; 4] =
        [ConstraintKind::Check, ConstraintKind::Unique, ConstraintKind::ForeignKey, ConstraintKind::PrimaryKey];

    fn number(self) -> u64 {
        self as u64 + 1
    }
}

/// What a FOREIGN KEY refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// Object id of the table; 0 where it is named.
    pub table: u32,
    /// Name of the table; empty where there is none. What is written anew, or comes from a copy, has another number.
    pub name: String,
    /// Ids of its columns.
    pub columns: Vec<u32>,
    /// What happens on DELETE and on UPDATE of the other row, by number as in the file.
    pub actions: [u8; 2],
    /// Either all columns are NULL or none is.
    pub full: bool,
}

impl Reference {
    /// What may happen to a row whose partner goes or gets another key, by number as in the file, in the words of SQL.
    pub const ACTIONS: [&str; 5] = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];
}

/// A constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// What it demands.
    pub kind: ConstraintKind,
    /// Its name.
    pub name: String,
    /// A comment.
    pub comment: Option<String>,
    /// Ids of the columns it is about.
    pub columns: Vec<u32>,
    /// The condition of a CHECK, as text.
    pub condition: Option<String>,
    /// What a FOREIGN KEY refers to.
    pub reference: Option<Reference>,
    /// Object id of the index that holds it.
    pub index: Option<u32>,
    /// It may be looked at when a transaction ends.
    pub deferrable: bool,
    /// Rows that were there before it are not known to meet it.
    pub not_valid: bool,
    /// What a later version has said.
    pub kept: Kept,
}

impl Constraint {
    /// A constraint of this kind and name.
    #[must_use]
    pub fn new(kind: ConstraintKind, name: impl Into<String>) -> Constraint {
        Constraint {
            kind,
            name: name.into(),
            comment: None,
            columns: Vec::new(),
            condition: None,
            reference: None,
            index: None,
            deferrable: false,
            not_valid: false,
            kept: Kept::default(),
        }
    }

    /// As attributes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, self.kind.number());
        self.comment.iter().for_each(|text| put(&mut out, 2, text.as_bytes()));
        put(&mut out, 3, self.name.as_bytes());
        if !self.columns.is_empty() {
            put(&mut out, 5, &numbers(&self.columns));
        }
        self.condition.iter().for_each(|text| put(&mut out, 7, text.as_bytes()));
        if let Some(Reference { table, columns, actions, .. }) = &self.reference {
            let all: Vec<u32> = std::iter::once(*table).chain(columns.iter().copied()).collect();
            put(&mut out, 9, &numbers(&all));
            put(&mut out, 11, actions);
        }
        self.index.iter().for_each(|index| put_number(&mut out, 13, u64::from(*index)));
        if self.deferrable {
            put(&mut out, 15, &[]);
        }
        if self.not_valid {
            put(&mut out, 17, &[]);
        }
        if let Some(reference) = &self.reference {
            if !reference.name.is_empty() {
                put(&mut out, 19, reference.name.as_bytes());
            }
            if reference.full {
                put(&mut out, 21, &[]);
            }
        }
        self.kept.merge(out)
    }

    /// Read back.
    ///
    /// # Errors
    /// When the bytes are none, or a later version has said what must be known.
    pub fn decode(bytes: &[u8]) -> Result<Constraint, FormatError> {
        let mut found = Constraint::new(ConstraintKind::Check, "");
        let (mut kind, mut name, mut actions) = (None, None, None);
        let (mut referred, mut full) = (None, false);
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.tag {
                1 => {
                    let number: u64 = attribute.number()?;
                    let known = ConstraintKind::ALL.into_iter().find(|kind| kind.number() == number);
                    kind = Some(
                        known
                            .ok_or_else(|| FormatError::new(format!("a constraint of kind {number}, which this version does not know")))?,
                    );
                }
                2 => found.comment = Some(attribute.text()?.into()),
                3 => name = Some(attribute.text()?.into()),
                5 => found.columns = attribute.numbers()?,
                7 => found.condition = Some(attribute.text()?.into()),
                9 => {
                    let all = attribute.numbers()?;
                    let (table, columns) = all.split_first().ok_or_else(|| FormatError::new("a reference to no table"))?;
                    found.reference = Some(Reference { table: *table, columns: columns.to_vec(), ..Reference::default() });
                }
                11 => {
                    let bytes: [u8; 2] =
                        attribute.bytes.try_into().map_err(|_| FormatError::new("actions of a reference that are not two"))?;
                    if bytes.iter().any(|action| *action > 4) {
                        return Err(FormatError::new("an action of a reference that this version does not know"));
                    }
                    actions = Some(bytes);
                }
                13 => found.index = Some(attribute.number()?),
                15 => found.deferrable = attribute.mark()?,
                17 => found.not_valid = attribute.mark()?,
                19 => referred = Some(attribute.text()?.to_owned()),
                21 => full = attribute.mark()?,
                _ => found.kept.keep(attribute)?,
            }
        }
        match (&mut found.reference, actions) {
            (Some(reference), actions) => {
                reference.actions = actions.unwrap_or_default();
                reference.name = referred.unwrap_or_default();
                reference.full = full;
                if reference.columns.len() != found.columns.len() || reference.columns.is_empty() {
                    return Err(FormatError::new("a reference to more or fewer columns than refer to them"));
                }
            }
            (None, None) if referred.is_none() && !full => {}
            (None, _) => return Err(FormatError::new("something of a reference that is not there")),
        }
        let (Some(kind), Some(name)) = (kind, name) else { return Err(FormatError::new("a constraint without kind or name")) };
        Ok(Constraint { kind, name, ..found })
    }
}
