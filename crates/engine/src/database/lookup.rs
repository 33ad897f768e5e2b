//! Finding the tables and indexes of an open database, by name and by number. What nobody has used is opened then.

use super::open::DatabaseState;
use crate::data_set::DataSet;
use crate::index::Index;
use crate::objects::{Opening, Place};
use crate::table_space::Table;
use crate::{Error, Result};
use std::sync::Arc;

impl DatabaseState {
    /// Names of all tables, in their order. None of them is opened for that.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        self.objects.read().tables.names().map(str::to_owned).collect()
    }

    /// Names of all indexes, in their order. None of them is opened for that.
    #[must_use]
    pub fn index_names(&self) -> Vec<String> {
        self.objects.read().indexes.names().map(str::to_owned).collect()
    }

    /// All tables, by name. They are opened, those too that nobody has used.
    ///
    /// # Errors
    /// When the definition or a data set of one is damaged or cannot be read.
    pub fn tables(&self) -> Result<Vec<Arc<Table>>> {
        let all: Vec<Opening> = {
            let objects = self.objects.read();
            objects.tables.places().filter_map(|place| objects.opening(place.object_id)).collect()
        };
        all.into_iter().map(|opening| opening.open(&self.core)).collect()
    }

    /// The tables that somebody has used since the database was opened, and that are not known to be damaged.
    #[must_use]
    pub fn opened_tables(&self) -> Vec<Arc<Table>> {
        self.objects.read().tables.opened().filter(|table| table.check_usable().is_ok()).collect()
    }

    /// All indexes, by name. They are opened, those too that nobody has used.
    ///
    /// # Errors
    /// As [`Self::tables`].
    pub fn indexes(&self) -> Result<Vec<Arc<Index>>> {
        let places: Vec<_> = self.objects.read().indexes.places().cloned().collect();
        let opened = places.iter().map(|place| self.open_index(place));
        // One that goes meanwhile is none.
        opened.filter_map(Result::transpose).collect()
    }

    /// How many files of tables and indexes are open.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.core.files.count()
    }

    /// The catalog's data set.
    #[must_use]
    pub fn catalog(&self) -> Arc<DataSet> {
        Arc::clone(&self.objects.read().catalog)
    }

    /// A table by name. It is opened, if nobody has used it.
    ///
    /// # Errors
    /// When there is none, or as [`Self::tables`].
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        let opening = {
            let objects = self.objects.read();
            match objects.tables.get(name).map(|place| (place.opened(), objects.opening(place.object_id))) {
                Some((Some(table), _)) => return table.check_usable().map(|()| table),
                Some((None, Some(opening))) => opening,
                _ => return Err(unknown("table", name, objects.tables.names())),
            }
        };
        opening.open(&self.core)
    }

    /// A table by name that is about to be dropped, whatever state its data sets and those of its indexes are in: what cannot be opened of it is not.
    pub(super) fn table_to_drop(&self, name: &str) -> Result<Arc<Table>> {
        let opening = {
            let objects = self.objects.read();
            let found = objects.tables.get(name).and_then(|place| objects.opening(place.object_id));
            found.ok_or_else(|| unknown("table", name, objects.tables.names()))?
        };
        opening.open_to_drop(&self.core)
    }

    /// Names of the indexes of which the log or the catalog says that they are damaged.
    #[must_use]
    pub fn damaged_index_names(&self) -> Vec<String> {
        self.objects.read().damaged_index_names()
    }

    /// An index by name. It is opened with its table, if nobody has used them. It may be [damaged](Index::damage): it can be dropped and built anew then, not read.
    ///
    /// # Errors
    /// When there is none, or as [`Self::tables`].
    pub fn index(&self, name: &str) -> Result<Arc<Index>> {
        let place = self.objects.read().indexes.get(name).cloned();
        let opened = place.map_or(Ok(None), |place| self.open_index(&place))?;
        opened.ok_or_else(|| unknown("index", name, self.objects.read().indexes.names()))
    }

    /// The index at a place, opened with its table; `None` when it is gone.
    pub(super) fn open_index(&self, place: &Place<Index>) -> Result<Option<Arc<Index>>> {
        if place.opened().is_none() {
            let opening = self.objects.read().opening(place.owner);
            opening.map(|opening| opening.open(&self.core)).transpose()?;
        }
        Ok(place.opened())
    }

    /// The table of a number that is neither former nor about to be made.
    pub(super) fn live_table_by_id(&self, object_id: u32) -> Result<Option<Arc<Table>>> {
        let opening = {
            let objects = self.objects.read();
            match objects.tables.by_id(object_id).map(|place| place.opened()) {
                Some(None) => objects.opening(object_id),
                Some(Some(table)) => return table.check_usable().map(|()| Some(table)),
                None => return Ok(None),
            }
        };
        opening.map(|opening| opening.open(&self.core)).transpose()
    }

    /// The indexes of a table, by name, that can be used; not those that a running transaction makes. [`Table::all_indexes`] has the damaged ones, too.
    #[must_use]
    pub fn indexes_of(&self, table: &Table) -> Vec<Arc<Index>> {
        table.indexes().iter().filter(|index| !index.lifetime.is_staged()).cloned().collect()
    }

    /// The table of an index.
    ///
    /// # Errors
    /// When the catalog has changed meanwhile.
    pub fn table_of(&self, index: &Index) -> Result<Arc<Table>> {
        let table = self.table_by_id(index.table_id)?;
        table.ok_or_else(|| unknown("table", &format!("of index {}", index.name()), self.objects.read().tables.names()))
    }
}

fn unknown<'a>(kind: &'static str, name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    const SHOWN: usize = 20;
    let names: Vec<&str> = names.take(SHOWN + 1).collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    let hint = if names.is_empty() {
        format!("; the database has no {kind}")
    } else {
        format!("; there are: {}{more}", names[..names.len().min(SHOWN)].join(", "))
    };
    Error::Unknown { kind, name: name.into(), hint }
}
