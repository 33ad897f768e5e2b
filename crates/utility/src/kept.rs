//! What a table keeps when LOAD replaces its rows: what is said of it in notes, and its indexes.
//!
//! Invariants:
//! - a table that has the same columns afterwards, wherever they are, has the same notes; one of other columns has none;
//! - it has one index of its primary key, with the name that the one before had.

use crate::{Error, Result};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_format::FormatError;
use pagefold_format::catalog::{ColumnNotes, Notes};
use pagefold_types::{Column, Schema};

/// What is said of a table that is replaced, for the one of these attributes in its place.
///
/// # Errors
/// When a note makes no sense.
pub(crate) fn kept_notes(old: &Table, now: &TableAttributes) -> Result<Notes> {
    let before = old.attributes();
    // A column that was dropped has its place, and the table in its place has none of it. Whether a column may be NULL is not said in notes.
    let places = before.visible_columns();
    let same = |at: &usize, column: &Column| {
        let own = &before.schema.columns()[*at];
        (&own.name, own.data_type) == (&column.name, column.data_type)
    };
    let columns = now.schema.columns();
    if places.len() != columns.len() || !places.iter().zip(columns).all(|(at, column)| same(at, column)) {
        return Ok(Notes::default());
    }
    let mut notes = (*old.notes()).clone();
    let damaged = |error: FormatError| Error::Data(format!("table \"{}\": {error}", old.name()));
    // They are of the rows that go.
    notes.set_statistics(None).map_err(damaged)?;
    if places.iter().copied().eq(0..columns.len()) {
        return Ok(notes);
    }
    let moved = |column: u32| places.iter().position(|at| *at == column as usize).and_then(|at| u32::try_from(at).ok());
    let all_moved = |columns: &mut Vec<u32>| columns.iter_mut().for_each(|column| *column = moved(*column).unwrap_or(*column));
    let of_columns = notes.columns();
    for own in &of_columns {
        notes.set_column(&ColumnNotes::new(own.column)).map_err(damaged)?;
    }
    for mut own in of_columns {
        if let Some(column) = moved(own.column) {
            own.column = column;
            notes.set_column(&own).map_err(damaged)?;
        }
    }
    let mut constraints = notes.constraints();
    for constraint in &mut constraints {
        all_moved(&mut constraint.columns);
        if let Some(reference) = constraint.reference.as_mut().filter(|reference| reference.name == now.name) {
            all_moved(&mut reference.columns);
        }
    }
    notes.set_constraints(&constraints).map_err(damaged)?;
    Ok(notes)
}

/// The indexes of a table that is replaced.
#[derive(Debug, Default)]
pub(crate) struct KeptIndexes {
    all: Vec<IndexAttributes>,
    /// The name of that of the primary key.
    of_key: Option<String>,
}

impl KeptIndexes {
    /// Those of `table`, called as they are here, for the columns of the same names wherever they are now and whatever their types.
    ///
    /// # Errors
    /// When there is no such column.
    pub(crate) fn of(name: &str, table: &Table, indexes: Vec<IndexAttributes>, now: &Schema) -> Result<KeptIndexes> {
        let before = table.attributes();
        let of_key = || indexes.iter().filter(|index| index.is_of_key(&before.primary_key)).map(|index| &index.name);
        // There may be another unique index of the same columns, or one that an earlier LOAD has made.
        let usual = [format!("{name}_pk"), format!("{name}_pkey")];
        let of_key = of_key().find(|own| usual.contains(own)).or_else(|| of_key().next()).cloned();
        let moved = indexes.into_iter().map(|index| moved_index(index, before.schema.columns(), now));
        Ok(KeptIndexes { all: moved.collect::<Result<_>>()?, of_key })
    }

    /// With one of the primary key of the table of this name: the one that there is, if it is to stay, or in its place what is `made` under its name.
    pub(crate) fn with_key(
        mut self,
        name: &str,
        primary_key: &[usize],
        stays: bool,
        make: impl FnOnce(String) -> IndexAttributes,
    ) -> Vec<IndexAttributes> {
        let is_there = stays && self.all.iter().any(|index| index.is_of_key(primary_key));
        if !(primary_key.is_empty() || is_there) {
            let key_name = self.of_key.unwrap_or_else(|| format!("{name}_pk"));
            self.all.retain(|index| index.name != key_name);
            self.all.push(make(key_name));
        }
        self.all
    }
}

/// An index of a table that is replaced, for the columns of these names, wherever they are now.
fn moved_index(mut index: IndexAttributes, before: &[Column], now: &Schema) -> Result<IndexAttributes> {
    for (column, _) in &mut index.columns {
        let name = &before[*column].name;
        let number = now.columns().iter().position(|own| own.name == *name);
        let lost = || Error::Data(format!("index \"{}\" has column \"{name}\", which the new rows lack; drop it first", index.name));
        *column = number.ok_or_else(lost)?;
    }
    Ok(index)
}
