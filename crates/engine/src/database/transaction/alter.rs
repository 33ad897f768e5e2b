//! Altering tables and indexes, as part of a transaction.
//!
//! What is altered is what the catalog says. Rows stay as they are: a change of columns makes another layout, which rows get from then on
//! ([`Layouts`](crate::table_space::Layouts)), and who reads older ones brings them into it. A table that is altered is locked as a whole until the
//! transaction ends: nobody else changes its rows meanwhile. Readers go on, and see it as it was.
//!
//! Invariants:
//! - what a transaction has altered it alone sees so until the commit; who has an older snapshot sees the table as it was, names and columns too;
//! - a layout is in the log, by a commit of its own, before a row has it: pages may have rows of it whatever becomes of the transaction;
//! - a change that a value forbids names the row, and nothing has happened.

use super::super::index_build::name_row;
use super::super::read_view::PageWalk;
use super::super::reading::Reading;
use super::Transaction;
use crate::index::{Index, IndexAttributes};
use crate::table_space::{DataPages, Layouts, RowBuffer, RowSink, Table, TableAttributes};
use crate::{Error, Result};
use pagefold_format::catalog::Notes;
use pagefold_types::{Column, DataType, RECORD_BYTES_MAX, Rid, RowLayout, Value, ValueRef};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A change of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TableChange {
    /// It gets another name.
    Rename(String),
    /// A column gets another name.
    RenameColumn {
        /// The column.
        column: String,
        /// Its name from now on.
        to: String,
    },
    /// A column comes, behind all others.
    AddColumn {
        /// The column.
        column: Column,
        /// What the rows that are there have in it; NULL, if it may be.
        value: Value,
    },
    /// A column goes.
    DropColumn(String),
    /// A column gets another type, which has all its values exactly.
    SetType {
        /// The column.
        column: String,
        /// Its type from now on.
        data_type: DataType,
    },
    /// A column may not be NULL any more.
    SetNotNull(String),
    /// A column may be NULL.
    DropNotNull(String),
    /// A table without a primary key gets one, of columns that may not be NULL. Its unique index is made like any other.
    PrimaryKey(Vec<String>),
    /// What LOAD and REORG leave free, in percent of each page.
    Pctfree(u8),
    /// The most rows on a page, of those that are still to be filled by LOAD and REORG.
    Maxrows(u16),
    /// The buffer pool: of data sets that come, and of all when the database is opened again.
    Pool(String),
}

/// A change of an index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum IndexChange {
    /// It gets another name.
    Rename(String),
    /// What builds of it leave free, in percent of each leaf.
    Pctfree(u8),
    /// The buffer pool, when the database is opened again.
    Pool(String),
}

/// A table as it is to be.
struct Plan {
    attributes: TableAttributes,
    /// By place; `None`: dropped.
    columns: Vec<Option<Column>>,
    added: Vec<(Column, Option<Value>)>,
    /// Columns whose values are to be looked at.
    checked: Vec<usize>,
    /// Columns that are of another type, or may be NULL or not, or go.
    other: Vec<usize>,
}

impl Transaction<'_> {
    /// Changes what a table is, all of it or nothing. What is there of rows stays as it is stored, and is read as the table says from now on; rows that are written
    /// from now on are stored so. Others see it after the commit.
    ///
    /// Indexes of a column whose type changes, or whether it may be NULL, are built anew.
    ///
    /// # Errors
    /// When there is no such table or column, or a name is taken; when an index, the primary key or the ranges of partitions keep a column from going; when a value
    /// forbids it, whose row is named then; those of locks; when there is no room in the log.
    pub fn change_table(&mut self, name: &str, changes: &[TableChange]) -> Result<Arc<Table>> {
        let savepoint = self.savepoint();
        let changed = self.table(name).and_then(|table| {
            self.check_alone(&table, changes)?;
            let altered = self.change_one(&table, changes, None)?;
            if altered.name() != name {
                self.rename_references(name, altered.name())?;
            }
            Ok(altered)
        });
        if changed.is_err() {
            // Where only rollback is left, that takes it back, too.
            let _ = self.roll_back_to(savepoint);
        }
        changed
    }

    /// The same of all partitions of a partitioned table. It cannot be renamed.
    ///
    /// # Errors
    /// As [`change_table`](Self::change_table).
    pub fn change_partitioned_table(&mut self, name: &str, changes: &[TableChange]) -> Result<()> {
        if changes.iter().any(|change| matches!(change, TableChange::Rename(_))) {
            return Err(Error::Parameter(format!("partitioned table \"{name}\" cannot be renamed")));
        }
        let savepoint = self.savepoint();
        let whole = self.lock_partitioned_table(name);
        let changed = whole.and_then(|whole| {
            let tables = whole.partitions().iter().map(|partition| self.table_of_partition(partition));
            let tables = tables.collect::<Result<Vec<_>>>()?;
            // A change that was taken back has left its places in the partitions that there were then.
            let most = tables.iter().map(|table| table.attributes_now().layouts).max_by_key(|layouts| layouts.columns().len());
            tables.iter().try_for_each(|table| self.change_one(table, changes, most.as_ref()).map(drop))?;
            // Values that were different may be the same now.
            match changes.iter().any(|change| matches!(change, TableChange::SetType { .. })) {
                true => self.check_keys_of_all(name),
                false => Ok(()),
            }
        });
        if changed.is_err() {
            let _ = self.roll_back_to(savepoint);
        }
        changed
    }

    /// Changes what an index is.
    ///
    /// # Errors
    /// When there is no such index, or a name is taken; those of locks; when there is no room in the log.
    pub fn change_index(&mut self, name: &str, changes: &[IndexChange]) -> Result<Arc<Index>> {
        let index = self.index(name)?;
        self.define(None, |t| {
            t.check_seen(&index.lifetime, || index.object())?;
            let mut attributes = IndexAttributes { notes: Notes::clone(&t.notes_of_index(&index)), ..index.attributes_now() };
            for change in changes {
                match change {
                    IndexChange::Rename(to) => attributes.name.clone_from(to),
                    IndexChange::Pctfree(pctfree) => attributes.pctfree = *pctfree,
                    IndexChange::Pool(pool) => {
                        t.database.core.manager.pool(pool, attributes.page_bytes)?;
                        attributes.pool.clone_from(pool);
                    }
                }
            }
            let altered = t.note_definition(|defining, by| {
                defining.check_alone(by, &index)?;
                defining.alter_index_attributes(by, &index, attributes)
            })?;
            t.log_definitions()?;
            Ok(altered)
        })
    }

    /// A partition has the columns of the others.
    fn check_alone(&self, table: &Table, changes: &[TableChange]) -> Result<()> {
        let is_own = |change: &TableChange| matches!(change, TableChange::Pctfree(_) | TableChange::Maxrows(_) | TableChange::Pool(_));
        match table.range().is_some() && !changes.iter().all(is_own) {
            true => Err(Error::Parameter(format!("{} is a partition: its name and columns change as those of its table", table.object()))),
            false => Ok(()),
        }
    }

    fn change_one(&mut self, table: &Arc<Table>, changes: &[TableChange], others: Option<&Layouts>) -> Result<Arc<Table>> {
        let (altered, indexes) = self.define(None, |t| {
            t.check_table(table, None)?;
            t.check_seen(&table.lifetime, || table.object())?;
            // From here on nobody else changes rows: what is found of them stays so.
            t.note_definition(|defining, by| defining.lock_to_alter(by, table).map(drop))?;
            let plan = t.plan(table, changes)?;
            let indexes = t.indexes_to_build(table, &plan);
            t.check_rows(table, &plan)?;
            let Plan { mut attributes, columns, added, other, .. } = plan;
            if !(other.is_empty() && added.is_empty()) {
                let of_table = |error: Error| match error {
                    Error::Parameter(reason) => Error::Parameter(format!("{}: {reason}", table.object())),
                    other => other,
                };
                let known = table.attributes_now().layouts;
                let (layouts, schema) = known.next(&table.attributes().schema, &columns, &added, others).map_err(of_table)?;
                t.database.register_layouts(table, layouts.with_number(table.attributes().layouts.number()))?;
                (attributes.layouts, attributes.schema) = (layouts, schema);
                // They are of other columns.
                attributes.source_schema.clear();
                attributes.notes.set_statistics(None).map_err(|e| Error::Parameter(e.to_string()))?;
            }
            for index in &indexes {
                t.note_definition(|defining, by| defining.drop_index(by, index.name()).map(drop))?;
            }
            let altered = t.note_definition(|defining, by| defining.alter_attributes(by, table, attributes))?;
            t.log_definitions()?;
            Ok((altered, indexes))
        })?;
        for index in &indexes {
            let attributes = IndexAttributes { notes: Notes::clone(&self.notes_of_index(index)), ..index.attributes_now() };
            self.create_index(&altered, attributes)?;
        }
        Ok(altered)
    }

    /// What a table is after changes.
    fn plan(&self, table: &Table, changes: &[TableChange]) -> Result<Plan> {
        let refuse = |why: String| Err(Error::Parameter(format!("{}: {why}", table.object())));
        let own = table.attributes();
        let attributes = TableAttributes { notes: Notes::clone(&self.notes_of_table(table)), ..table.attributes_now() };
        let columns = own.schema.columns().iter().enumerate();
        let columns: Vec<Option<Column>> = columns.map(|(at, column)| (!own.layouts.is_dropped(at)).then(|| column.clone())).collect();
        let mut plan = Plan { attributes, columns, added: Vec::new(), checked: Vec::new(), other: Vec::new() };
        for change in changes {
            match change {
                TableChange::Rename(to) => plan.attributes.name.clone_from(to),
                TableChange::RenameColumn { column, to } => plan.column(table, column)?.1.name.clone_from(to),
                TableChange::AddColumn { column, value } => {
                    if value.as_ref().is_null() && !column.nullable {
                        let name = &column.name;
                        return refuse(format!("column \"{name}\" may not be NULL: say what the rows that are there have in it"));
                    }
                    let fits = value.as_ref().check(&column.data_type, &column.name);
                    fits.map_err(|e| Error::Value(format!("{}: {e}", table.object())))?;
                    plan.added.push((column.clone(), Some(value.clone()).filter(|value| !value.as_ref().is_null())));
                }
                TableChange::DropColumn(name) => {
                    let (at, _) = plan.column(table, name)?;
                    let is_in = |columns: &[usize]| columns.contains(&at);
                    if is_in(&own.primary_key) || own.range.as_ref().is_some_and(|range| is_in(&range.columns)) {
                        return refuse(format!("column \"{name}\" is one of the primary key, or of the ranges of partitions"));
                    }
                    if let Some(index) = self.defining.indexes_as_now(table).iter().find(|index| index.has_column(|column| column == at)) {
                        return refuse(format!("column \"{name}\" is one of index \"{}\": drop that first", index.name()));
                    }
                    match at.checked_sub(own.schema.len()) {
                        Some(added) => drop(plan.added.remove(added)),
                        None => (plan.columns[at], plan.other) = (None, [&*plan.other, &[at]].concat()),
                    }
                }
                TableChange::SetType { column: name, data_type } => {
                    let (at, column) = plan.column(table, name)?;
                    let before = std::mem::replace(&mut column.data_type, *data_type);
                    if before == *data_type {
                        continue;
                    }
                    if !data_type.is_valid() || !data_type.converts_from(&before) {
                        return refuse(format!("column \"{name}\": values of {before} cannot become ones of {data_type}"));
                    }
                    if own.range.as_ref().is_some_and(|range| range.columns.contains(&at)) && !data_type.holds_as_is(&before) {
                        return refuse(format!("column \"{name}\" is one of the ranges of partitions"));
                    }
                    if !data_type.holds_as_is(&before) {
                        plan.checked.push(at);
                        plan.other.push(at);
                    }
                }
                TableChange::SetNotNull(name) | TableChange::DropNotNull(name) => {
                    let nullable = matches!(change, TableChange::DropNotNull(_));
                    let (at, column) = plan.column(table, name)?;
                    if std::mem::replace(&mut column.nullable, nullable) == nullable {
                        continue;
                    }
                    let is_key = own.primary_key.contains(&at) || own.range.as_ref().is_some_and(|range| range.columns.contains(&at));
                    if is_key {
                        return refuse(format!("column \"{name}\" is one of the primary key, or of the ranges of partitions"));
                    }
                    if !nullable {
                        plan.checked.push(at);
                    }
                    plan.other.push(at);
                }
                TableChange::PrimaryKey(names) => {
                    if !own.primary_key.is_empty() || own.range.is_some() {
                        return refuse("it has a primary key, or is a partition".into());
                    }
                    for name in names {
                        let (at, column) = plan.column(table, name)?;
                        if column.nullable || at >= own.schema.len() {
                            return refuse(format!("column \"{name}\" may be NULL, or is not there yet"));
                        }
                        plan.attributes.primary_key.push(at);
                    }
                }
                TableChange::Pctfree(pctfree) => plan.attributes.pctfree = *pctfree,
                TableChange::Maxrows(maxrows) => plan.attributes.maxrows = *maxrows,
                TableChange::Pool(pool) => {
                    self.database.core.manager.pool(pool, own.page_bytes)?;
                    plan.attributes.pool.clone_from(pool);
                }
            }
        }
        plan.finish(table)
    }

    /// Indexes whose keys are others afterwards.
    fn indexes_to_build(&self, table: &Table, plan: &Plan) -> Vec<Arc<Index>> {
        let mut indexes = self.defining.indexes_as_now(table);
        indexes.retain(|index| index.has_column(|column| plan.other.contains(&column)));
        indexes
    }

    /// Refuses what a value of a row forbids.
    fn check_rows(&self, table: &Table, plan: &Plan) -> Result<()> {
        let grows = if plan.added.is_empty() && plan.other.is_empty() { 0 } else { plan.most_grown()? };
        // Records of such tables are never longer than what can be, whatever they grow by.
        let is_long = table.record_bytes_max() + grows > RECORD_BYTES_MAX;
        if plan.checked.is_empty() && !is_long {
            return Ok(());
        }
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        let reading = Reading { serializable: None, read: None, ..self.reading(&snapshot) };
        let (mut walk, mut buffer) = (PageWalk::of(DataPages::of(table)), RowBuffer::default());
        let bytes_max = if is_long { RECORD_BYTES_MAX.saturating_sub(grows) } else { usize::MAX };
        let mut looking = Looking { table, plan, bytes_max, found: None, large: Vec::new() };
        while walk.step(&reading, table, &mut buffer, &mut looking)? {
            looking.look_at_large()?;
            if let Some(error) = looking.found.take() {
                return Err(error);
            }
        }
        looking.look_at_large()?;
        looking.found.map_or(Ok(()), Err)
    }
}

impl Plan {
    /// A column by its name, and its place.
    fn column(&mut self, table: &Table, name: &str) -> Result<(usize, &mut Column)> {
        let mut columns =
            self.columns.iter_mut().map(Option::as_mut).chain(self.added.iter_mut().map(|(column, _)| Some(column))).enumerate();
        let found = columns.find_map(|(at, column)| column.filter(|column| column.name == name).map(|column| (at, column)));
        found.ok_or_else(|| {
            let known = table.attributes().schema.index_of(name).err();
            Error::Parameter(
                known.map_or_else(|| format!("{}: no column \"{name}\"", table.object()), |known| format!("{}: {known}", table.object())),
            )
        })
    }

    /// The columns as they are to be, where no other layout is needed for that.
    fn finish(mut self, table: &Table) -> Result<Plan> {
        self.other.sort_unstable();
        self.other.dedup();
        let own = table.attributes();
        let renamed: Vec<Column> =
            own.schema.columns().iter().zip(&self.columns).map(|(old, new)| new.clone().unwrap_or_else(|| old.clone())).collect();
        let of_table = |e: pagefold_types::SchemaError| Error::Parameter(format!("{}: {e}", table.object()));
        // Names are looked at whatever follows.
        let all = self.columns.iter().flatten().chain(self.added.iter().map(|(column, _)| column)).cloned().collect::<Vec<_>>();
        if !all.is_empty() {
            pagefold_types::Schema::new(all).map_err(of_table)?;
        }
        if self.other.is_empty() && self.added.is_empty() {
            let schema = pagefold_types::Schema::new(renamed).map_err(of_table)?;
            if schema != own.schema {
                self.attributes.source_schema.clear();
                self.attributes.layouts = self.attributes.layouts.renamed(&schema);
                self.attributes.schema = schema;
            }
        }
        self.attributes.check()?;
        Ok(self)
    }

    /// By how many bytes a record becomes longer at most.
    fn most_grown(&self) -> Result<usize> {
        let fixed = |column: &Column| column.data_type.fixed_width().unwrap_or(2);
        let of_added = self.added.iter().map(|(column, value)| {
            let text = match value.as_ref().map(Value::as_ref) {
                Some(ValueRef::Text(text)) => text.len(),
                Some(ValueRef::Bytes(bytes)) => bytes.len(),
                _ => 0,
            };
            fixed(column) + text
        });
        let of_changed = self.other.iter().filter_map(|at| self.columns.get(*at)?.as_ref()).map(fixed);
        let all = self.columns.len() + self.added.len();
        // A bit for NULL each.
        Ok(of_added.chain(of_changed).sum::<usize>() + self.other.len() + all.div_ceil(8))
    }
}

/// Looks for a row that forbids a change.
struct Looking<'a> {
    table: &'a Table,
    plan: &'a Plan,
    bytes_max: usize,
    found: Option<Error>,
    /// Rows of which a value lies outside, copied: nothing is fetched while their page is latched.
    large: Vec<(Rid, Vec<u8>)>,
}

impl RowSink<Error> for Looking<'_> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>> {
        if self.found.is_some() {
            return Ok(ControlFlow::Break(()));
        }
        if record.len() > self.bytes_max {
            let row = name_row(self.table, record, rid);
            let reason = format!("it takes {} bytes; with the new columns it would be longer than a row can be", record.len());
            self.found = Some(Error::Value(format!("{}: {row}: {reason}", self.table.object())));
            return Ok(ControlFlow::Break(()));
        }
        let layout = self.table.layout();
        if layout.large_values(record).is_ok_and(|large| large.iter().any(|(column, _)| self.plan.checked.contains(column))) {
            self.large.push((rid, record.to_vec()));
            return Ok(ControlFlow::Continue(()));
        }
        let damaged = |e: pagefold_types::RecordError| Error::Damaged { path: self.table.object(), reason: e.to_string() };
        for column in self.plan.checked.iter().copied().filter(|column| *column < layout.column_count()) {
            let value = layout.value(record, column).map_err(damaged)?;
            if let Some(error) = self.plan.refuses(self.table, layout, (record, rid), column, value) {
                self.found = Some(error);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Looking<'_> {
    fn look_at_large(&mut self) -> Result<()> {
        for (rid, record) in std::mem::take(&mut self.large) {
            let checked: Vec<usize> =
                self.plan.checked.iter().copied().filter(|column| *column < self.table.layout().column_count()).collect();
            let values = self.table.values_of(&record, &checked)?;
            for (column, value) in checked.iter().zip(&values) {
                let refused = self.plan.refuses(self.table, self.table.layout(), (&record, rid), *column, value.as_ref());
                self.found = self.found.take().or(refused);
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Why a value of a row keeps a column from being what it is to be.
    fn refuses(&self, table: &Table, layout: &RowLayout, (record, rid): (&[u8], Rid), at: usize, value: ValueRef<'_>) -> Option<Error> {
        let column = self.columns.get(at)?.as_ref()?;
        let reason = if value.is_null() {
            (!column.nullable).then(|| format!("column \"{}\" is NULL", column.name))
        } else {
            let goes = value.converted(&layout.data_type(at), &column.data_type).is_some();
            let text = || pagefold_types::excerpt(value, &layout.data_type(at));
            (!goes).then(|| format!("column \"{}\": {} is no {}", column.name, text(), column.data_type))
        };
        reason.map(|reason| Error::Value(format!("{}: {}: {reason}", table.object(), name_row(table, record, rid))))
    }
}
