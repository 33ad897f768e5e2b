//! Tables and views as a statement finds them.
//!
//! Invariant: a [`TableRef`] is what one transaction sees of a table at one version of the catalog. A table that is divided by ranges is a list of tables;
//! its indexes have the same columns in all of them, in the same order.

use crate::parse::nearest;
use crate::partition_names::partition_called;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{PartitionedTable, Transaction, split_partition_name};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::Table;
use pagefold_format::catalog::{Constraint, ConstraintKind, DefinedKind, Identity, Notes, Reference};
use pagefold_types::{Direction, Predicate, Schema, ValueRef};
use std::sync::Arc;

/// A table.
#[derive(Debug)]
pub(crate) struct TableRef {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    /// Columns by number; empty without one.
    pub(crate) primary_key: Vec<usize>,
    /// One, unless it is divided.
    pub(crate) parts: Vec<Part>,
    /// What is said of its columns and rows.
    pub(crate) rules: Rules,
    /// For each column: it was not dropped. One that was keeps its place, and is NULL in new rows.
    pub(crate) visible: Vec<bool>,
    whole: Option<Arc<PartitionedTable>>,
}

/// Defaults and constraints of a table.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// For each column: what a row has in it that is given no value, as text.
    pub(crate) defaults: Vec<Option<String>>,
    /// For each column: its value is always this expression.
    pub(crate) generated: Vec<Option<String>>,
    /// For each column: its values come from a sequence of its own, and always do.
    pub(crate) identity: Vec<Option<Identity>>,
    pub(crate) constraints: Vec<Constraint>,
}

impl Rules {
    fn of(notes: &Notes, columns: usize) -> Rules {
        let mut rules = Rules {
            defaults: vec![None; columns],
            generated: vec![None; columns],
            identity: vec![None; columns],
            constraints: notes.constraints(),
        };
        for own in notes.columns() {
            let column = own.column as usize;
            if column < columns {
                rules.defaults[column] = own.default;
                rules.generated[column] = own.generated;
                rules.identity[column] = own.identity;
            }
        }
        rules
    }

    /// Sequences that belong to columns, by number of the object.
    pub(crate) fn owned_sequences(&self) -> impl Iterator<Item = u32> {
        self.identity.iter().flatten().map(|identity| identity.sequence)
    }

    /// Is there a constraint of this name?
    pub(crate) fn has_constraint(&self, name: &str) -> bool {
        self.constraints.iter().any(|constraint| constraint.name == name)
    }

    /// Foreign keys: the constraint and what it refers to.
    pub(crate) fn foreign_keys(&self) -> impl Iterator<Item = (&Constraint, &Reference)> {
        self.constraints.iter().filter_map(|constraint| Some((constraint, constraint.reference.as_ref()?)))
    }

    /// Names and conditions of CHECK.
    pub(crate) fn checks(&self) -> impl Iterator<Item = (&str, &str)> {
        let checks = self.constraints.iter().filter(|constraint| constraint.kind == ConstraintKind::Check);
        checks.filter_map(|constraint| Some((constraint.name.as_str(), constraint.condition.as_deref()?)))
    }
}

/// Which indexes and partitions count.
#[derive(Clone, Copy)]
enum Seen {
    BySnapshot,
    Now,
}

/// A table of rows with its indexes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) table: Arc<Table>,
    pub(crate) indexes: Vec<Arc<Index>>,
    /// Why it cannot be used: table and indexes are those of another partition then, which stands for the columns.
    refused: Option<Error>,
}

impl Part {
    fn of(table: Arc<Table>, indexes: Vec<Arc<Index>>) -> Part {
        Part { table, indexes, refused: None }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.refused.is_none()
    }
}

/// What stands behind a name in FROM.
pub(crate) enum Found {
    Table(Arc<TableRef>),
    /// The query of a view, as text.
    View(String),
}

impl TableRef {
    /// Finds a table that is to be changed, or its definition.
    pub(crate) fn find(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Arc<TableRef>> {
        refuse_system(name)?;
        match find(transaction, name)? {
            Found::Table(table) => Ok(table),
            Found::View(_) => Err(SqlError::new("42809", format!("\"{name}\" is a view, not a table"))),
        }
    }

    /// As it is now, whatever the transaction's snapshot; `None` when there is none.
    pub(crate) fn find_now(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Option<Arc<TableRef>>> {
        match transaction.table_now(name) {
            Ok(table) => return Ok(Some(Arc::new(TableRef::undivided(transaction, table, Seen::Now)?))),
            Err(Error::Unknown { .. } | Error::Stale { why: DROPPED, .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match transaction.partitioned_table_now(name) {
            Ok(whole) => Ok(Some(Arc::new(TableRef::divided(transaction, whole, Seen::Now)?))),
            Err(Error::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn undivided(transaction: &mut Transaction<'static>, table: Arc<Table>, seen: Seen) -> SqlResult<TableRef> {
        let mut indexes = match seen {
            Seen::BySnapshot => transaction.indexes(&table)?,
            Seen::Now => transaction.indexes_now(&table),
        };
        indexes.sort_by(|a, b| a.name().cmp(b.name()));
        let rules = Rules::of(&transaction.notes_of_table(&table), table.attributes().schema.len());
        let attributes = table.attributes();
        Ok(TableRef {
            visible: visible(&table),
            rules,
            name: table.name().to_owned(),
            schema: attributes.schema.clone(),
            primary_key: attributes.primary_key.clone(),
            parts: vec![Part::of(table, indexes)],
            whole: None,
        })
    }

    fn divided(transaction: &mut Transaction<'static>, whole: Arc<PartitionedTable>, seen: Seen) -> SqlResult<TableRef> {
        let names = transaction.partitioned_indexes_of(&whole);
        let mut parts = Vec::with_capacity(whole.partitions().len());
        // Those that are damaged are in the way of who needs them.
        let mut refused: Vec<(usize, Error)> = Vec::new();
        for (at, partition) in whole.partitions().iter().enumerate() {
            let table = match transaction.table_of_partition(partition) {
                Err(error) if error.is_damage() || error.is_refusal() => {
                    refused.push((at, error));
                    continue;
                }
                table => table?,
            };
            let mut indexes = Vec::with_capacity(names.len());
            for name in &names {
                let own = PartitionedTable::index_name(name, partition);
                indexes.extend(match seen {
                    Seen::BySnapshot => transaction.index_of_partition(partition, &table, name)?,
                    Seen::Now => transaction.indexes_now(&table).into_iter().find(|index| index.name() == own),
                });
            }
            // One that is damaged somewhere is used nowhere.
            parts.push((Part::of(table, indexes), partition));
        }
        let is_everywhere = |name: &String| {
            parts.iter().all(|(part, partition)| {
                let own = PartitionedTable::index_name(name, partition);
                part.indexes.iter().any(|index| index.name() == own)
            })
        };
        let usable: Vec<&String> = names.iter().filter(|name| is_everywhere(name)).collect();
        let keep = |(mut part, partition): (Part, _)| {
            part.indexes.retain(|index| usable.iter().any(|name| PartitionedTable::index_name(name, partition) == index.name()));
            part
        };
        let (schema, primary_key) = (whole.schema().clone(), whole.primary_key().to_vec());
        let name = whole.name().to_owned();
        let parts = parts.iter().map(|(part, partition)| (part.clone(), *partition));
        let mut parts: Vec<Part> = parts.map(keep).collect();
        let Some(other) = parts.first().cloned() else {
            return Err(refused.swap_remove(0).1.into());
        };
        for (at, error) in refused {
            parts.insert(at, Part { refused: Some(error), ..other.clone() });
        }
        let rules = Rules::of(&transaction.notes_of_table(&parts[0].table), schema.len());
        let visible = visible(&parts[0].table);
        Ok(TableRef { name, schema, primary_key, parts, rules, visible, whole: Some(whole) })
    }

    /// The first part, which stands for the columns and indexes of all.
    pub(crate) fn first(&self) -> &Part {
        &self.parts[0]
    }

    /// Columns of an index.
    pub(crate) fn index_columns(&self, index: usize) -> &[(usize, Direction)] {
        &self.first().indexes[index].attributes().columns
    }

    /// The name of an index: of a table that is divided, that of all its parts together.
    pub(crate) fn index_name(&self, index: usize) -> String {
        let name = self.first().indexes[index].name();
        split_partition_name(name).filter(|_| self.is_divided()).map_or(name, |(name, _)| name).to_owned()
    }

    /// Has it a column of just this name?
    pub(crate) fn is_visible_name(&self, name: &str) -> bool {
        self.schema.columns().iter().zip(&self.visible).any(|(column, visible)| *visible && column.name == name)
    }

    pub(crate) fn index_count(&self) -> usize {
        self.first().indexes.len()
    }

    /// Of a table that is divided, over all its parts.
    pub(crate) fn is_unique(&self, index: usize) -> bool {
        self.first().indexes[index].attributes().unique
    }

    /// Has a column another value in each row?
    pub(crate) fn is_key(&self, column: usize) -> bool {
        (0..self.index_count()).any(|index| self.is_unique(index) && matches!(self.index_columns(index), [(own, _)] if *own == column))
    }

    /// The first unique index, by name, of just these columns, in whatever order.
    pub(crate) fn unique_index_of(&self, columns: &[usize]) -> Option<usize> {
        (0..self.index_count()).find(|index| {
            let own = self.index_columns(*index);
            self.is_unique(*index) && own.len() == columns.len() && own.iter().all(|(column, _)| columns.contains(column))
        })
    }

    /// The first index, by name, whose first columns are just these, in whatever order.
    pub(crate) fn index_beginning_with(&self, columns: &[usize]) -> Option<usize> {
        (0..self.index_count()).find(|index| {
            let own = self.index_columns(*index).get(..columns.len());
            own.is_some_and(|own| own.iter().all(|(column, _)| columns.contains(column)))
        })
    }

    /// Rows, as far as they are known.
    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().filter(|part| part.is_usable()).map(|part| part.table.row_count()).sum()
    }

    /// A part, by number, if it can be used.
    pub(crate) fn part(&self, at: usize) -> SqlResult<&Part> {
        let part = &self.parts[at];
        match &part.refused {
            Some(error) => Err(error.clone().into()),
            None => Ok(part),
        }
    }

    /// The names of all parts, whatever state they are in.
    pub(crate) fn part_names(&self) -> Vec<&str> {
        match &self.whole {
            Some(whole) => whole.partitions().iter().map(|partition| partition.table_name()).collect(),
            None => vec![self.first().table.name()],
        }
    }

    pub(crate) fn is_divided(&self) -> bool {
        self.whole.is_some()
    }

    /// Was it made before its partitions?
    pub(crate) fn is_open(&self) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.is_open())
    }

    /// Refuses to say something of a partition alone: what is said of a table that is divided holds for all of it.
    pub(crate) fn refuse_partition(&self, what: &str) -> SqlResult<()> {
        let part = self.first().table.name();
        match self.whole_name() {
            Some(whole) => {
                let error = SqlError::unsupported(format!("{what} of the partition \"{part}\" alone"));
                Err(error.with_hint(format!(
                    "Its columns and constraints are those of \"{whole}\": alter that. Only its storage parameters are its own."
                )))
            }
            None => Ok(()),
        }
    }

    /// Of a partition by its own name that of the table that is divided.
    pub(crate) fn whole_name(&self) -> Option<&str> {
        let part = &self.first().table;
        split_partition_name(part.name()).filter(|_| !self.is_divided() && part.range().is_some()).map(|(whole, _)| whole)
    }

    /// Parts that have rows for which a condition may be true.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(crate) fn parts_for(&self, condition: Option<&Predicate>) -> SqlResult<Vec<usize>> {
        let found = self.whole.as_ref().map_or_else(|| vec![0], |whole| whole.find_for_condition(condition));
        found.iter().try_for_each(|at| self.part(*at).map(drop))?;
        Ok(found)
    }

    /// The part for a row of these values, by number.
    pub(crate) fn part_of(&self, values: &[ValueRef<'_>]) -> SqlResult<usize> {
        let Some(whole) = &self.whole else { return Ok(0) };
        let mut key = Vec::with_capacity(32);
        whole.key(values, &mut key)?;
        let at = whole.find_for(&key)?;
        self.part(at).map(|_| at)
    }

    /// Pseudo-columns behind the others: the number of the part that has a row, and its RID.
    pub(crate) fn place_columns(&self) -> [usize; 2] {
        [self.schema.len(), self.schema.len() + 1]
    }

    /// Columns that say to which part a row belongs.
    pub(crate) fn range_columns(&self) -> &[usize] {
        self.whole.as_ref().map_or(&[], |whole| whole.columns())
    }
}

/// Relations of these names are the database's own: read by whoever likes, changed by nobody.
const SYSTEM: &str = "pagefold_";

/// Is this the name of a relation of the database itself?
#[must_use]
pub fn is_system(name: &str) -> bool {
    name.starts_with(SYSTEM)
}

/// Refuses the name of a relation that is the database's own, or would be.
pub(crate) fn refuse_system(name: &str) -> SqlResult<()> {
    match is_system(name) {
        true => Err(SqlError::new("42501", format!("permission denied: \"{name}\" is a system catalog"))),
        false => Ok(()),
    }
}

fn visible(table: &Table) -> Vec<bool> {
    let mut visible = vec![false; table.attributes().schema.len()];
    for column in table.attributes().visible_columns() {
        visible[column] = true;
    }
    visible
}

/// What the engine says of an object that the transaction itself has dropped: for a statement there is none.
const DROPPED: &str = "was dropped by this transaction";

/// Finds what has a name; 42P01 with the nearest name, when nothing has it.
pub(crate) fn find(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Found> {
    find_if_any(transaction, name)?.ok_or_else(|| unknown_table(transaction, name))
}

/// Finds what has a name, if anything has it.
pub(crate) fn find_if_any(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Option<Found>> {
    match transaction.table(name) {
        Ok(table) => return Ok(Some(Found::Table(Arc::new(TableRef::undivided(transaction, table, Seen::BySnapshot)?)))),
        // What the transaction has dropped may have left its name to something of another kind.
        Err(Error::Unknown { .. } | Error::Stale { why: DROPPED, .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match transaction.partitioned_table(name) {
        Ok(whole) => return Ok(Some(Found::Table(Arc::new(TableRef::divided(transaction, whole, Seen::BySnapshot)?)))),
        Err(Error::Unknown { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match transaction.object(DefinedKind::View, name) {
        Ok(view) => {
            let text = view.notes.text().map(str::to_owned);
            let text = text.ok_or_else(|| SqlError::new("XX001", format!("view \"{name}\" has no query")))?;
            return Ok(Some(Found::View(text)));
        }
        Err(Error::Unknown { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match partition_called(transaction, name)? {
        Some(own) => {
            let table = transaction.table(&own)?;
            Ok(Some(Found::Table(Arc::new(TableRef::undivided(transaction, table, Seen::BySnapshot)?))))
        }
        None => Ok(None),
    }
}

/// Has a relation of whatever kind this name? One that cannot be used has it, too.
pub(crate) fn is_relation(transaction: &mut Transaction<'static>, name: &str) -> bool {
    let others = [DefinedKind::Sequence, DefinedKind::PartitionedIndex];
    others.into_iter().any(|kind| transaction.object(kind, name).is_ok())
        || !matches!(transaction.index(name), Err(Error::Unknown { .. } | Error::Stale { why: DROPPED, .. }))
        || !matches!(find_if_any(transaction, name), Ok(None))
}

/// Names of all tables; of one that is divided its own, not those of its parts.
pub(crate) fn table_names(transaction: &Transaction<'static>) -> Vec<String> {
    let mut names = transaction.table_names();
    names.retain(|name| split_partition_name(name).is_none());
    names.extend(transaction.object_names(DefinedKind::PartitionedTable));
    names
}

fn unknown_table(transaction: &Transaction<'static>, name: &str) -> SqlError {
    let mut known = table_names(transaction);
    known.extend(transaction.object_names(DefinedKind::View));
    known.retain(|name| !crate::temporary::is_temporary(name));
    let error = SqlError::new("42P01", format!("relation \"{name}\" does not exist"));
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}
