//! EXCHANGE: a table takes the place of a range partition, and the partition that of the table.
//!
//! Both keep their pages, methods, dictionaries and numbers; what changes hands is what the catalog says of them: names, the range,
//! names of indexes, and notes. So it takes moments, whatever their sizes.
//!
//! Invariants:
//! - both have the same columns in the same places, the same primary key, and indexes of the same columns, one for one;
//! - every row of the table is in the range of the partition: it is made sure of when nobody else changes rows of it any more;
//! - no key of it is one of another partition, where keys are unique over all: it is made sure of when nobody else gives such a key to a row any more;
//! - a name passes by way of one that nobody has, so each definition in the log goes with those before it.

use super::super::defining::{Definer, Defining};
use super::super::keys_of_partitions::check_unique;
use super::super::open::DatabaseState;
use super::super::read_view::{ReadView, ScanRequest};
use super::{Share, Transaction, spans};
use crate::btree::Direction as Way;
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, RangePartition};
use crate::table_space::{Table, TableAttributes};
use crate::transaction::Mode;
use crate::{Error, Result, Silent};
use pagefold_format::catalog::{ConstraintKind, Notes};
use pagefold_types::KeyRange;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Indexes of a partition, each with that of the table that takes its place.
type Pairs = Vec<(Arc<Index>, Arc<Index>)>;

impl Transaction<'_> {
    /// A table takes the place of a partition, with its rows and indexes, and the partition that of the table, each under the name of the
    /// other. No row is written: pages, compression, page sizes and formats of keys stay as they are. What is said of them in notes
    /// stays with the name; statistics go with the rows. Who has an older snapshot goes on with both as they were.
    ///
    /// Rows of the table are looked for that are outside the range of the partition: by an index that begins with the columns of the ranges, or
    /// else by reading all of them.
    ///
    /// # Errors
    /// [`Error::Parameter`] names what differs: columns, primary key, indexes, conditions that rows meet. [`Error::OutOfRange`] names a row
    /// that belongs in another partition. When there is no such table or partition; those of locks. Nothing has happened then.
    pub fn exchange_partition(&mut self, table: &str, partition: &str, with: &str) -> Result<()> {
        self.define(None, |t| {
            let (whole, found) = t.note_definition(|defining, by| {
                let whole = defining.lock_partitioned(by, table)?;
                by.lock_name(with)?;
                Ok((whole, defining.lock_called(by, with)?))
            })?;
            t.check_seen(&found.lifetime, || found.object())?;
            let member = whole.partition(partition)?.clone();
            let refused = |why: String| Error::Parameter(format!("{} and partition \"{partition}\" of \"{table}\": {why}", found.object()));
            if found.range().is_some() {
                return Err(refused("the table is a partition itself".into()));
            }
            // Rows are read before the partition is locked: those who change its rows wait for moments only.
            let before = t.defining.table_of(&t.database, &member)?;
            differs(&found, &before).map_or(Ok(()), |why| Err(refused(why)))?;
            t.check_all_in(&whole, &member, &found)?;
            let old = t.note_definition(|defining, by| {
                by.lock_name(member.table_name())?;
                defining.lock_called(by, member.table_name())
            })?;
            t.check_seen(&old.lifetime, || old.object())?;
            let indexes = t.defining.pairs(&t.database, (&whole, &member), &found, &old).map_err(&refused)?;
            let (of_partition, of_table) = (demands_of(&t.notes_of_table(&old)), demands_of(&t.notes_of_table(&found)));
            if let Some(alone) = of_partition.symmetric_difference(&of_table).next() {
                return Err(refused(format!("rows of one of them meet {alone}, those of the other need not: drop it first")));
            }
            t.check_keys_of_others(&old, &found, &indexes)?;
            t.note_definition(|defining, by| defining.exchange(by, &old, &found, &indexes))?;
            t.log_definitions()
        })
    }

    /// Refuses a table with a key that another partition has, where keys are unique over all. Until the end of the transaction nobody else gives one to a row.
    fn check_keys_of_others(&mut self, partition: &Table, table: &Arc<Table>, indexes: &Pairs) -> Result<()> {
        for (old, new) in indexes {
            let Some(whole) = spans(partition, old) else { continue };
            self.database.core.locks.lock_whole(self.state.id(), whole, Mode::Exclusive, self.options.lock_timeout)?;
            let mut compared = vec![Share { table: Arc::clone(table), index: Arc::clone(new) }];
            let ends = new.tree().ends()?;
            for share in self.shares(partition, old)?.iter().filter(|share| share.index.object_id != old.object_id) {
                share.index.check_usable()?;
                if share.index.tree().ends()?.zip(ends.as_ref()).is_some_and(|(own, other)| own.0 <= other.1 && other.0 <= own.1) {
                    compared.push(share.clone());
                }
            }
            let snapshot = self.database.core.transactions.snapshot(self.state.id());
            check_unique(&compared, &snapshot, &Silent)?;
        }
        Ok(())
    }

    /// Refuses a table with a row that is outside the range of a partition.
    fn check_all_in(&mut self, whole: &PartitionedTable, member: &RangePartition, table: &Arc<Table>) -> Result<()> {
        let keys = member.keys();
        if keys.start.is_empty() && keys.end.is_none() {
            return Ok(());
        }
        let layout = whole.key_layout();
        let check = |record: &[u8]| {
            let mut key = Vec::new();
            layout.encode_from_record(table.layout(), record, &mut key).map_err(|e| Error::Value(format!("{}: {e}", table.object())))?;
            if key < keys.start || keys.end.as_ref().is_some_and(|end| key >= *end) {
                let why = "belongs in another partition";
                return Err(Error::OutOfRange { object: table.object(), key: layout.describe(&key), why });
            }
            Ok(())
        };
        // What is committed now, and what this transaction has done: nobody else changes the table.
        let snapshot = Arc::new(self.database.core.transactions.snapshot(self.state.id()));
        let view = ReadView::new(&self.database, &self.state, snapshot, None, self.defining.all_dropped());
        let in_order = |index: &&Arc<Index>| {
            // In whole, its keys begin as those of the ranges do.
            index.damage().is_none()
                && index.attributes().columns.len() >= whole.columns().len()
                && whole.is_in_order_of(&index.attributes().columns)
        };
        let indexes = self.defining.indexes_as_now(table);
        let request = ScanRequest::default();
        match indexes.iter().find(in_order) {
            Some(index) => {
                let before = KeyRange { start: Vec::new(), end: Some(keys.start.clone()) };
                let behind = keys.end.clone().map(|start| KeyRange { start, end: None });
                for range in Some(before).filter(|_| !keys.start.is_empty()).into_iter().chain(behind) {
                    let mut rows = view.range(table, index, range, Way::Forward, &request)?.into_rows();
                    while let Some((_, record)) = rows.next_record()? {
                        check(record)?;
                    }
                }
            }
            None => {
                let mut rows = view.scan(table, &request)?.into_rows();
                while let Some((_, record)) = rows.next_record()? {
                    check(record)?;
                }
            }
        }
        Ok(())
    }
}

/// In what two tables differ that are to change places.
fn differs(table: &Table, partition: &Table) -> Option<String> {
    let (own, other) = (table.attributes(), partition.attributes());
    let text = |attributes: &TableAttributes, at: usize| {
        attributes.schema.columns().get(at).map_or_else(
            || "none".to_owned(),
            |column| {
                let dropped = if attributes.layouts.is_dropped(at) { " (dropped, until both are made anew)" } else { "" };
                let null = if column.nullable { "" } else { " NOT NULL" };
                format!("{} {}{null}{dropped}", column.name, column.data_type)
            },
        )
    };
    let count = own.schema.len().max(other.schema.len());
    if let Some(at) = (0..count).find(|at| text(own, *at) != text(other, *at)) {
        return Some(format!("column {} is {} in the table and {} in the partition", at + 1, text(own, at), text(other, at)));
    }
    if own.primary_key != other.primary_key {
        let key = |attributes: &TableAttributes| {
            let names: Vec<&str> = attributes.primary_key.iter().map(|at| attributes.schema.columns()[*at].name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        return Some(format!("the primary key is ({}) in the table and ({}) in the partition", key(own), key(other)));
    }
    (own.schema != other.schema).then(|| "their columns differ".into())
}

/// What rows of a table meet by what is said of it: conditions, references, values made of others. What constraints are called does not
/// matter, nor what a reference does when rows of the other table change.
fn demands_of(notes: &Notes) -> BTreeSet<String> {
    let constraints = notes.constraints().into_iter();
    let of_rows = constraints.filter(|constraint| matches!(constraint.kind, ConstraintKind::Check | ConstraintKind::ForeignKey));
    let mut demands: BTreeSet<String> = of_rows
        .map(|constraint| match (constraint.condition, constraint.reference) {
            (Some(condition), _) => format!("CHECK ({condition})"),
            (None, Some(reference)) => {
                let places = |columns: &[u32]| columns.iter().map(|column| (column + 1).to_string()).collect::<Vec<_>>().join(", ");
                let (own, other) = (places(&constraint.columns), places(&reference.columns));
                let full = if reference.full { " MATCH FULL" } else { "" };
                format!("FOREIGN KEY of columns {own} to columns {other} of \"{}\"{full}", reference.name)
            }
            (None, None) => format!("constraint \"{}\"", constraint.name),
        })
        .collect();
    let generated = notes.columns().into_iter().filter_map(|column| Some((column.column, column.generated?)));
    demands.extend(generated.map(|(column, text)| format!("column {} GENERATED AS ({text})", column + 1)));
    demands
}

impl Defining {
    /// The table of a name, live or of this transaction, of which nobody else changes rows any more.
    fn lock_called(&self, by: Definer<'_>, name: &str) -> Result<Arc<Table>> {
        let table = match self.table(name) {
            Some(own) => Arc::clone(own),
            None => by.lock_live_table(name)?,
        };
        self.check_not_dropped(table.object_id, || table.object())?;
        self.check_name_is_there(table.object_id, "table", name)?;
        self.lock_to_alter(by, &table)
    }

    /// The indexes of a partition and of a table, one for one; or what keeps them from changing places.
    fn pairs(
        &self,
        database: &DatabaseState,
        (whole, member): (&PartitionedTable, &RangePartition),
        table: &Table,
        partition: &Table,
    ) -> std::result::Result<Pairs, String> {
        let mut own = self.indexes_as_now(table);
        let names: Vec<String> =
            self.partitioned_indexes(database, whole).iter().map(|index| PartitionedTable::index_name(index, member)).collect();
        let mut pairs = Vec::new();
        for old in self.indexes_as_now(partition) {
            if !names.iter().any(|name| name == old.name()) {
                return Err(format!("index \"{}\" is of the partition alone: drop it first", old.name()));
            }
            let is_like = |index: &Arc<Index>| {
                let (own, other) = (index.attributes(), old.attributes());
                (&own.columns, own.unique) == (&other.columns, other.unique)
            };
            let Some(at) = own.iter().position(is_like) else {
                let kind = if old.attributes().unique { "unique " } else { "" };
                let columns: Vec<String> = old
                    .attributes()
                    .columns
                    .iter()
                    .map(|(column, direction)| {
                        format!("{}{}", partition.attributes().schema.columns()[*column].name, descending(*direction))
                    })
                    .collect();
                return Err(format!("the table lacks a {kind}index of ({}), as \"{}\" is", columns.join(", "), old.name()));
            };
            let new = own.remove(at);
            if let Some(damaged) = [&old, &new].into_iter().find(|index| index.damage().is_some()) {
                return Err(format!("{} is damaged: build it anew first", damaged.object()));
            }
            pairs.push((old, new));
        }
        match own.first() {
            Some(more) => Err(format!("the partition has no index like \"{}\" of the table: drop that first", more.name())),
            None => Ok(pairs),
        }
    }

    /// Both are called as the other was, and what the other was of the partitioned table; not logged yet.
    fn exchange(&mut self, by: Definer<'_>, partition: &Arc<Table>, table: &Arc<Table>, indexes: &Pairs) -> Result<()> {
        // What is said stays with the name, statistics go with the rows.
        let said = |of_name: &Notes, of_rows: &Notes| -> Result<Notes> {
            let mut notes = of_name.clone();
            notes.set_statistics(of_rows.statistics().map(<[u8]>::to_vec)).map_err(|e| Error::Parameter(e.to_string()))?;
            Ok(notes)
        };
        let notes_of = |of: &Table| self.notes(of.object_id).unwrap_or_else(|| of.notes());
        let (of_partition, of_table) = (notes_of(partition), notes_of(table));
        let role = |from: &Table, notes: Notes, now: TableAttributes| {
            // Columns have other places in neither, so what is said of them by place stays right.
            TableAttributes { name: from.name().into(), range: from.range().cloned(), notes, ..now }
        };
        let out = role(table, said(&of_table, &of_partition)?, partition.attributes_now());
        let into = role(partition, said(&of_partition, &of_table)?, table.attributes_now());
        let between = |object_id: u32| format!("exchange {object_id}");
        let given_up = TableAttributes { name: between(partition.object_id), ..out.clone() };
        let given_up = self.alter_attributes(by, partition, given_up)?;
        self.alter_attributes(by, table, into)?;
        self.alter_attributes(by, &given_up, out)?;
        for (old, new) in indexes {
            let notes_of = |of: &Index| self.notes(of.object_id).unwrap_or_else(|| of.notes());
            let (of_old, of_new) = (notes_of(old), notes_of(new));
            let role = |index: &Index, name: &str, notes: Notes| IndexAttributes { name: name.into(), notes, ..index.attributes_now() };
            let (out, into) = (role(old, new.name(), said(&of_new, &of_old)?), role(new, old.name(), said(&of_old, &of_new)?));
            let given_up = IndexAttributes { name: between(old.object_id), ..out.clone() };
            let given_up = self.alter_index_attributes(by, old, given_up)?;
            self.alter_index_attributes(by, new, into)?;
            self.alter_index_attributes(by, &given_up, out)?;
        }
        Ok(())
    }
}

fn descending(direction: pagefold_types::Direction) -> &'static str {
    if direction == pagefold_types::Direction::Descending { " DESC" } else { "" }
}
