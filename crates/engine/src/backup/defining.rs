//! Which tables and indexes there are, while the log of a copy is read for where it is to end.
//!
//! Invariants:
//! - the same is there as for the recovery that follows (`recovery/definitions.rs`): it begins with what the copy describes, committed or not;
//! - only what was not there before brings data sets. What is said of an object that is there names those that it has: its definition may have a file which no copy has, since the log makes it;
//! - of what the log brings with a file that no copy has, it does not hold the pages.

use super::source::Described;
use crate::catalog::definition_data_sets;
use crate::data_set::DataSetEntry;
use crate::{Error, Result};
use pagefold_format::catalog::{DefinedKind, DefinitionView};
use pagefold_format::copy::{Manifest, is_asked, stands_for};
use pagefold_format::log::{CheckpointDefinition, Lsn, Role, Undo};
use std::collections::{BTreeMap, BTreeSet};

/// A table, index or something else, committed or not.
#[derive(Clone, Debug)]
struct Object {
    /// Of a table.
    name: Option<String>,
    /// It came with a file that no copy has.
    lacks_files: bool,
}

impl Object {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Is it a table that is called so?
    fn is_one_of(&self, asked: &[String]) -> bool {
        self.name().is_some_and(|name| is_asked(asked, name))
    }
}

struct Pending {
    transaction: u64,
    /// Start of its record before.
    after: Lsn,
    object_id: u32,
    /// `None`: it goes.
    object: Option<Object>,
}

pub(super) struct Defining<'a> {
    manifest: &'a Manifest,
    /// Only these tables matter; none: whatever there is.
    asked: &'a [String],
    pending: Vec<Pending>,
    /// What is committed, by number.
    there: BTreeMap<u32, Object>,
}

impl<'a> Defining<'a> {
    /// What there is where redo of the copy begins.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(super) fn new(manifest: &'a Manifest, asked: &'a [String], described: &Described) -> Result<Defining<'a>> {
        let mut defining = Defining { manifest, asked, pending: Vec::new(), there: BTreeMap::new() };
        for table in &described.tables {
            let object = Object { name: Some(table.name.clone()), lacks_files: defining.is_lacking(&table.data_sets) };
            defining.there.insert(table.object_id, object);
        }
        defining.there.extend(described.others.iter().map(|object_id| (*object_id, Object { name: None, lacks_files: false })));
        for CheckpointDefinition { transaction, after, object_id, rows } in
            described.checkpoint.iter().flat_map(|checkpoint| &checkpoint.definitions)
        {
            defining.define(*transaction, *after, *object_id, rows.as_deref())?;
        }
        Ok(defining)
    }

    /// A transaction has done something, or taken something back.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(super) fn follow(&mut self, role: &Role<'_>) -> Result<()> {
        match *role {
            Role::Undoable { transaction, previous, undo: Undo::Definition { object_id, rows } } => {
                self.define(transaction, previous, object_id, rows)
            }
            Role::Compensation { transaction, next } => {
                self.taken_back(transaction, next);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A transaction says of an object what it is, or that it goes.
    fn define(&mut self, transaction: u64, after: Lsn, object_id: u32, rows: Option<&[u8]>) -> Result<()> {
        // The copy's checkpoint may have it, too.
        if self.of(transaction).any(|pending| pending.after == after) {
            return Ok(());
        }
        let object = rows.map(|rows| self.object(object_id, rows)).transpose()?;
        self.pending.push(Pending { transaction, after, object_id, object });
        Ok(())
    }

    /// An object as its definition has it.
    fn object(&self, object_id: u32, rows: &[u8]) -> Result<Object> {
        let view = DefinitionView::new(rows).map_err(|e| Error::Damaged { path: "log".into(), reason: e.to_string() })?;
        let made =
            || self.pending.iter().rev().filter(|pending| pending.object_id == object_id).find_map(|pending| pending.object.as_ref());
        let lacks_files = match self.there.get(&object_id).or_else(made) {
            Some(before) => before.lacks_files,
            None => self.is_lacking(&definition_data_sets(rows)?),
        };
        Ok(Object { name: (view.kind == DefinedKind::Table).then(|| view.name.to_owned()), lacks_files })
    }

    /// Has one of these data sets a file that no copy has?
    fn is_lacking(&self, data_sets: &[DataSetEntry]) -> bool {
        data_sets.iter().any(|entry| entry.header_writes.is_some() && self.manifest.data_set(entry.file_id).is_none())
    }

    /// A transaction has taken back what it did behind its record at `next`; all, when that is 0.
    pub(super) fn taken_back(&mut self, transaction: u64, next: Lsn) {
        self.pending.retain(|pending| pending.transaction != transaction || pending.after < next);
    }

    fn of(&self, transaction: u64) -> impl Iterator<Item = &Pending> {
        self.pending.iter().filter(move |pending| pending.transaction == transaction)
    }

    /// Does this commit bring what no copy has the pages of, or take away a table that was asked for?
    pub(super) fn is_end(&self, transaction: u64) -> bool {
        // What comes of each object in the end.
        let outcome: BTreeMap<u32, Option<&Object>> =
            self.of(transaction).map(|pending| (pending.object_id, pending.object.as_ref())).collect();
        // An index that no copy has is built anew where tables are asked for.
        let matters = |object: &Object| self.asked.is_empty() || object.is_one_of(self.asked);
        let comes_again = |name: Option<&str>| outcome.values().flatten().any(|object| object.name() == name);
        let mut gone = outcome.iter().filter(|(_, object)| object.is_none()).filter_map(|(object_id, _)| self.there.get(object_id));
        outcome.values().flatten().any(|object| object.lacks_files && matters(object))
            || !self.asked.is_empty() && gone.any(|object| object.is_one_of(self.asked) && !comes_again(object.name()))
    }

    /// Has this transaction defined a table that is called, or was, as it was asked for?
    pub(super) fn is_about_asked(&self, transaction: u64) -> bool {
        let of = |pending: &Pending| [pending.object.clone(), self.there.get(&pending.object_id).cloned()];
        !self.asked.is_empty() && self.of(transaction).flat_map(of).flatten().any(|object| object.is_one_of(self.asked))
    }

    /// What was asked for and no table is called by now.
    pub(super) fn lacking(&self) -> BTreeSet<&'a str> {
        let is_there = |asked: &str| self.there.values().filter_map(Object::name).any(|name| stands_for(asked, name));
        self.asked.iter().map(String::as_str).filter(|asked| !is_there(asked)).collect()
    }

    /// Numbers of the tables that are called by now as it was asked for.
    pub(super) fn tables(&self) -> BTreeSet<u32> {
        self.there.iter().filter(|(_, object)| object.is_one_of(self.asked)).map(|(object_id, _)| *object_id).collect()
    }

    /// The transaction is committed: what it has defined counts.
    pub(super) fn committed(&mut self, transaction: u64) {
        let committed: Vec<Pending> = self.pending.extract_if(.., |pending| pending.transaction == transaction).collect();
        for Pending { object_id, object, .. } in committed {
            match object {
                Some(object) => drop(self.there.insert(object_id, object)),
                None => drop(self.there.remove(&object_id)),
            }
        }
    }
}
