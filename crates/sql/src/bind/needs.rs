//! What the text of a view or default needs of the catalog: relations, their columns, sequences.
//!
//! Invariant: only what the text names itself is noted, not what a view needs that it names.

use super::{Binder, Scope, Source};
use crate::SqlResult;
use sqlparser::tokenizer::Location;
use std::collections::BTreeSet;

/// What was found by its name.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Tables and views.
    pub(crate) relations: BTreeSet<String>,
    /// Columns of tables, by number.
    pub(crate) columns: BTreeSet<(String, usize)>,
    pub(crate) sequences: BTreeSet<String>,
    pub(crate) wildcards: Vec<Wildcard>,
}

/// A `*` of the text.
#[derive(Debug)]
pub(crate) struct Wildcard {
    pub(crate) place: Location,
    /// The name of a relation stands before it.
    pub(crate) is_qualified: bool,
    /// The names of the columns that it means, each with that of its relation if it has one.
    pub(crate) columns: Vec<(Option<String>, String)>,
}

impl Needs {
    /// Columns of the tables of a query that is bound.
    pub(super) fn note_columns(&mut self, scope: &Scope) {
        for relation in &scope.relations {
            if let Source::Table(table) = &relation.source {
                self.columns.extend(relation.used.iter().map(|column| (table.name.clone(), *column)));
            }
        }
    }
}

impl Binder<'_> {
    /// What is needed by what is bound meanwhile.
    pub(crate) fn needs_of<R>(&mut self, bind: impl FnOnce(&mut Self) -> SqlResult<R>) -> SqlResult<Needs> {
        let around = self.needs.replace(Needs::default());
        let bound = bind(self);
        let needs = std::mem::replace(&mut self.needs, around);
        bound.map(|_| needs.unwrap_or_default())
    }
}
