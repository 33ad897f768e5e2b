//! What there is, as the session's transaction finds it: lists, columns, and definitions as SQL.
//!
//! Invariant: the SQL of a definition, run in an empty database, makes the same definition again. What cannot be said in SQL yet (gaps between partitions, the pool of a key's index) is in
//! a comment.

use super::words::quoted;
use pagefold::engine::Transaction;
use pagefold::engine::catalog::{ColumnNotes, ConstraintKind, DefinedKind, Notes, PartitionedTable, Reference, Sequence};
use pagefold::engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold::engine::table::{Table, TableAttributes};
use pagefold::sql::{is_system_relation, partition_called};
use pagefold::types::Direction;
use pagefold::{DataType, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Page size of the index of a key that CREATE TABLE makes.
const KEY_PAGE_BYTES: usize = 8 * 1024;

/// What a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Table,
    Partitioned,
    View,
    Sequence,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::Partitioned => "partitioned table",
            Kind::View => "view",
            Kind::Sequence => "sequence",
        }
    }
}

/// A table with what belongs to it; of a partitioned one the first partition stands for all.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) whole: Option<Arc<PartitionedTable>>,
    pub(super) table: Arc<Table>,
    pub(super) rows: u64,
    notes: Arc<Notes>,
    /// Names, and the index of the first partition.
    indexes: Vec<(String, Arc<Index>)>,
    /// Indexes of one partition alone, with the name of its table.
    alone: Vec<(String, Arc<Index>)>,
}

/// A column as `\d` shows it.
pub(super) struct ColumnLine {
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) is_nullable: bool,
    pub(super) default: String,
    pub(super) comment: String,
}

/// Names and kinds of all relations; partitions are not among them.
pub(super) fn relations(transaction: &mut Transaction<'_>) -> Result<Vec<(String, Kind)>> {
    let mut relations = Vec::new();
    let mut partitions = BTreeSet::new();
    for name in transaction.object_names(DefinedKind::PartitionedTable) {
        if let Some(whole) = known(transaction.partitioned_table(&name))? {
            partitions.extend(whole.partitions().iter().map(|partition| partition.table_name().to_owned()));
            relations.push((name, Kind::Partitioned));
        }
    }
    let tables = transaction.table_names().into_iter().filter(|name| !partitions.contains(name));
    relations.extend(tables.map(|name| (name, Kind::Table)));
    relations.extend(transaction.object_names(DefinedKind::View).into_iter().map(|name| (name, Kind::View)));
    relations.extend(transaction.object_names(DefinedKind::Sequence).into_iter().map(|name| (name, Kind::Sequence)));
    // Those of the database itself are no part of what somebody has defined.
    relations.retain(|(name, _)| !is_system_relation(name));
    relations.sort();
    Ok(relations)
}

/// Is this the schema of a session's temporary tables?
pub(super) fn is_temporary_relation(name: &str) -> bool {
    name.split_once('.').is_some_and(|(schema, _)| is_temporary(schema))
}

fn is_temporary(schema: &str) -> bool {
    schema.starts_with("pg_temp_")
}

/// `None` for what is not there, or not for this transaction.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Unknown { .. } | Error::Stale { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A table by name.
pub(super) fn table(transaction: &mut Transaction<'_>, name: &str) -> Result<Option<Found>> {
    if let Some(table) = known(transaction.table(name))? {
        let mut indexes: Vec<_> = transaction.indexes(&table)?.into_iter().map(|index| (index.name().to_owned(), index)).collect();
        indexes.sort_by(|a, b| a.0.cmp(&b.0));
        let notes = transaction.notes_of_table(&table);
        return Ok(Some(Found { name: name.to_owned(), whole: None, rows: table.row_count(), table, notes, indexes, alone: Vec::new() }));
    }
    let Some(whole) = known(transaction.partitioned_table(name))? else {
        // One of an ambiguous name is not shown.
        let own = partition_called(transaction, name).ok().flatten();
        return own.map_or(Ok(None), |own| table(transaction, &own));
    };
    let mut rows = 0_u64;
    for partition in whole.partitions() {
        rows = rows.saturating_add(transaction.table_of_partition(partition)?.row_count());
    }
    let table = transaction.table_of_partition(whole.first())?;
    let mut indexes = Vec::new();
    for index in transaction.partitioned_indexes_of(&whole) {
        if let Some(first) = transaction.index_of_partition(whole.first(), &table, &index)? {
            indexes.push((index, first));
        }
    }
    let mut alone = Vec::new();
    for partition in whole.partitions() {
        let own = transaction.table_of_partition(partition)?;
        let is_share = |index: &Index| indexes.iter().any(|(name, _)| PartitionedTable::index_name(name, partition) == index.name());
        let of_partition = transaction.indexes(&own)?.into_iter().filter(|index| !is_share(index));
        alone.extend(of_partition.map(|index| (partition.table_name().to_owned(), index)));
    }
    alone.sort_by(|a, b| (&a.0, a.1.name()).cmp(&(&b.0, b.1.name())));
    let notes = transaction.notes_of_table(&table);
    Ok(Some(Found { name: name.to_owned(), whole: Some(whole), rows, table, notes, indexes, alone }))
}

/// The query of a view.
pub(super) fn view(transaction: &Transaction<'_>, name: &str) -> Result<Option<String>> {
    let view = known(transaction.object(DefinedKind::View, name))?;
    Ok(view.and_then(|view| view.notes.text().map(str::to_owned)))
}

/// Which rows it lets in, as it stands before AS.
fn view_options(transaction: &Transaction<'_>, name: &str) -> Result<String> {
    let view = known(transaction.object(DefinedKind::View, name))?;
    let option = view.and_then(|view| view.notes.constraints().into_iter().find(|option| option.kind == ConstraintKind::Check));
    Ok(option
        .map_or_else(String::new, |option| format!(" WITH ({} = {})", option.name, text(option.condition.as_deref().unwrap_or_default()))))
}

impl Found {
    pub(super) fn attributes(&self) -> &TableAttributes {
        self.table.attributes()
    }

    /// Names, and the index of the first partition.
    pub(super) fn indexes(&self) -> &[(String, Arc<Index>)] {
        &self.indexes
    }

    fn column_notes(&self, column: usize) -> ColumnNotes {
        self.notes.column(u32::try_from(column).unwrap_or(u32::MAX))
    }

    pub(super) fn columns(&self) -> Vec<ColumnLine> {
        let line = |at: usize| {
            let column = &self.attributes().schema.columns()[at];
            let notes = self.column_notes(at);
            let default = match (&notes.identity, &notes.generated, &notes.default) {
                (Some(identity), ..) if identity.always => "generated always as identity".to_owned(),
                (Some(_), ..) => "generated by default as identity".to_owned(),
                (None, Some(generated), _) => format!("generated always as ({generated})"),
                (None, None, default) => default.clone().unwrap_or_default(),
            };
            ColumnLine {
                name: column.name.clone(),
                data_type: column.data_type.to_string(),
                is_nullable: column.nullable,
                default,
                comment: notes.comment.unwrap_or_default(),
            }
        };
        self.attributes().visible_columns().into_iter().map(line).collect()
    }

    /// Indexes, each as the end of its definition.
    pub(super) fn index_lines(&self) -> Vec<String> {
        let key = self.key_index().map(|(name, _)| name.clone());
        let line = |(name, index): &(String, Arc<Index>)| {
            let kind = match (Some(name) == key.as_ref(), index.attributes().unique) {
                (true, _) => "primary key, ",
                (false, true) => "unique, ",
                (false, false) => "",
            };
            format!("{} {kind}({}){}", quoted(name), self.key_columns(&index.attributes().columns), index_storage(index.attributes()))
        };
        let of_partition = |(table, index): &(String, Arc<Index>)| {
            let unique = if index.attributes().unique { "unique, " } else { "" };
            let columns = self.key_columns(&index.attributes().columns);
            format!("{} {unique}of {} alone ({columns}){}", quoted(index.name()), quoted(table), index_storage(index.attributes()))
        };
        self.indexes.iter().map(line).chain(self.alone.iter().map(of_partition)).collect()
    }

    pub(super) fn check_lines(&self) -> Vec<String> {
        let checks = self.notes.constraints().into_iter().filter(|constraint| constraint.kind == ConstraintKind::Check);
        checks.map(|check| format!("{} CHECK ({})", quoted(&check.name), check.condition.unwrap_or_default())).collect()
    }

    /// How it is stored, and divided.
    pub(super) fn storage_lines(&self) -> Vec<String> {
        let mut lines = vec![with(&table_options(self.attributes()))];
        if let Some(whole) = &self.whole {
            lines.push(self.division(whole));
        }
        lines
    }

    pub(super) fn comment(&self) -> Option<String> {
        self.notes.comment().map(str::to_owned)
    }

    fn division(&self, whole: &PartitionedTable) -> String {
        let columns: Vec<String> = whole.columns().iter().map(|column| self.column_name(*column)).collect();
        let partitions: Vec<&str> = whole.own_partitions().iter().map(|partition| partition.name()).collect();
        let partitions = if partitions.is_empty() { "no partition yet".to_owned() } else { partitions.join(", ") };
        format!("divided by ranges of ({}): {partitions}", columns.join(", "))
    }

    pub(super) fn column_name(&self, column: usize) -> String {
        quoted(&self.attributes().schema.columns()[column].name)
    }

    fn key_columns(&self, columns: &[(usize, Direction)]) -> String {
        let one = |(column, direction): &(usize, Direction)| {
            let name = self.column_name(*column);
            if *direction == Direction::Descending { name + " DESC" } else { name }
        };
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The index that holds the primary key.
    fn key_index(&self) -> Option<&(String, Arc<Index>)> {
        let key = &self.attributes().primary_key;
        let is_key = |index: &Index| index.attributes().is_of_key(key);
        let mut keys = self.indexes.iter().filter(|(_, index)| !key.is_empty() && is_key(index));
        let first = keys.next()?;
        // Of several the one with the name that is given to it.
        let named = self
            .indexes
            .iter()
            .find(|(name, index)| is_key(index) && (*name == format!("{}_pkey", self.name) || *name == format!("{}_pk", self.name)));
        Some(named.unwrap_or(first))
    }
}

pub(super) fn page_size(bytes: usize) -> String {
    if bytes.is_multiple_of(1024) { format!("'{}K'", bytes / 1024) } else { bytes.to_string() }
}

pub(super) fn with(options: &[String]) -> String {
    format!("WITH ({})", options.join(", "))
}

fn table_options(attributes: &TableAttributes) -> Vec<String> {
    let plain = TableAttributes::new("", attributes.schema.clone()).with_page_bytes(attributes.page_bytes);
    let mut options = vec![format!("compress = '{}'", attributes.method), format!("page_size = {}", page_size(attributes.page_bytes))];
    if attributes.pctfree != plain.pctfree {
        options.push(format!("pctfree = {}", attributes.pctfree));
    }
    if attributes.maxrows != plain.maxrows {
        options.push(format!("maxrows = {}", attributes.maxrows));
    }
    if attributes.pool != plain.pool {
        options.push(format!("pool = {}", text(&attributes.pool)));
    }
    options
}

pub(super) fn has_default_pool(attributes: &IndexAttributes) -> bool {
    let plain = IndexAttributes::new("", Vec::new(), false).with_format(attributes.format, attributes.page_bytes);
    attributes.pool == plain.pool
}

/// Format, page size and free space, where they are not those of an index that is made without options.
fn index_options(attributes: &IndexAttributes) -> Vec<String> {
    let mut options = Vec::new();
    if attributes.format != IndexFormat::Prefix || attributes.page_bytes != KEY_PAGE_BYTES {
        options.push(format!("format = '{}'", attributes.format.name()));
        options.push(format!("page_size = {}", page_size(attributes.page_bytes)));
    }
    if attributes.pctfree != IndexAttributes::new("", Vec::new(), false).pctfree {
        options.push(format!("pctfree = {}", attributes.pctfree));
    }
    options
}

/// The same as CREATE TABLE has it for the indexes of its keys.
fn key_options(attributes: &IndexAttributes) -> impl Iterator<Item = String> {
    index_options(attributes).into_iter().map(|option| format!("key_{option}"))
}

/// With a blank before it; nothing for the index that CREATE INDEX makes without options.
fn index_storage(attributes: &IndexAttributes) -> String {
    let mut options = index_options(attributes);
    if !has_default_pool(attributes) {
        options.push(format!("pool = {}", text(&attributes.pool)));
    }
    if options.is_empty() { String::new() } else { format!(" {}", with(&options)) }
}

/// A text as a literal.
pub(super) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes definitions as SQL.
pub(super) struct Writer<'a, 't> {
    pub(super) transaction: &'a mut Transaction<'t>,
    /// Names of schemas, for names with a point.
    pub(super) schemas: Vec<String>,
}

impl<'a, 't> Writer<'a, 't> {
    pub(super) fn new(transaction: &'a mut Transaction<'t>) -> Writer<'a, 't> {
        let schemas = transaction.object_names(DefinedKind::Schema);
        Writer { transaction, schemas }
    }

    /// A name as it is written: with its schema.
    pub(super) fn name(&self, name: &str) -> String {
        match name.split_once('.') {
            // The schema of the session, whichever it is.
            Some((schema, rest)) if is_temporary(schema) => format!("pg_temp.{}", quoted(rest)),
            Some((schema, rest)) if self.schemas.iter().any(|own| own == schema) => format!("{}.{}", quoted(schema), quoted(rest)),
            _ => quoted(name),
        }
    }

    /// Everything: schemas, sequences, tables with their indexes, views.
    pub(super) fn all(&mut self) -> Result<Vec<String>> {
        // What goes with a session is no part of the database.
        let kept = self.schemas.iter().filter(|schema| !is_temporary(schema));
        let mut statements: Vec<String> = kept.map(|schema| format!("CREATE SCHEMA {};", quoted(schema))).collect();
        let mut relations = relations(self.transaction)?;
        relations.retain(|(name, _)| !is_temporary_relation(name));
        let (mut tables, mut keys) = (Vec::new(), Vec::new());
        let mut owned = BTreeSet::new();
        for (name, _) in relations.iter().filter(|(_, kind)| matches!(kind, Kind::Table | Kind::Partitioned)) {
            if let Some(found) = table(self.transaction, name)? {
                owned.extend((0..found.attributes().schema.len()).filter_map(|column| Some(found.column_notes(column).identity?.sequence)));
                tables.extend(self.table(&found)?);
                keys.extend(self.add_foreign_keys(&found)?);
            }
        }
        for (name, _) in relations.iter().filter(|(_, kind)| *kind == Kind::Sequence) {
            let sequence = known(self.transaction.object(DefinedKind::Sequence, name))?;
            if let Some(sequence) = sequence.filter(|sequence| !owned.contains(&sequence.object_id)) {
                let numbers = sequence.notes.sequence().unwrap_or_default();
                statements.push(format!("CREATE SEQUENCE {}{};", self.name(name), sequence_options(&numbers, &DataType::BigInt)));
            }
        }
        statements.extend(tables);
        // Behind all tables: they may refer to each other in a circle.
        statements.extend(keys);
        // A view may be of another one, whose name comes later: those that are named in others come first.
        let views: Vec<&String> = relations.iter().filter(|(_, kind)| *kind == Kind::View).map(|(name, _)| name).collect();
        let mut left = Vec::new();
        for name in views {
            left.push((name.clone(), view(self.transaction, name)?.unwrap_or_default()));
        }
        while !left.is_empty() {
            let needs_none =
                |(own, query): &(String, String)| left.iter().all(|(other, _)| other == own || !query.contains(other.as_str()));
            let next = left.iter().position(needs_none).unwrap_or(0);
            let (name, query) = left.remove(next);
            statements.push(format!("CREATE VIEW {}{} AS {query};", self.name(&name), view_options(self.transaction, &name)?));
        }
        Ok(statements)
    }

    /// One relation; nothing if there is none of this name.
    pub(super) fn one(&mut self, name: &str) -> Result<Vec<String>> {
        if let Some(found) = table(self.transaction, name)? {
            let mut statements = self.table(&found)?;
            statements.extend(self.add_foreign_keys(&found)?);
            return Ok(statements);
        }
        if let Some(query) = view(self.transaction, name)? {
            return Ok(vec![format!("CREATE VIEW {}{} AS {query};", self.name(name), view_options(self.transaction, name)?)]);
        }
        let sequence = known(self.transaction.object(DefinedKind::Sequence, name))?;
        let numbers = sequence.map(|sequence| sequence.notes.sequence().unwrap_or_default());
        Ok(numbers
            .map(|numbers| format!("CREATE SEQUENCE {}{};", self.name(name), sequence_options(&numbers, &DataType::BigInt)))
            .into_iter()
            .collect())
    }

    /// Foreign keys of a table, as they stand behind its columns.
    pub(super) fn foreign_keys(&mut self, found: &Found) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for constraint in found.notes.constraints() {
            let Some(reference) = &constraint.reference else { continue };
            let parent = table(self.transaction, &reference.name)?;
            let names = |of: Option<&Found>, columns: &[u32]| {
                let name = |column: &u32| {
                    let known = of.filter(|of| (*column as usize) < of.attributes().schema.len());
                    known.map_or_else(|| format!("column {column}"), |of| of.column_name(*column as usize))
                };
                columns.iter().map(name).collect::<Vec<_>>().join(", ")
            };
            let mut line = format!(
                "{} FOREIGN KEY ({}) REFERENCES {} ({})",
                quoted(&constraint.name),
                names(Some(found), &constraint.columns),
                self.name(&reference.name),
                names(parent.as_ref(), &reference.columns)
            );
            if reference.full {
                line += " MATCH FULL";
            }
            for (when, action) in ["DELETE", "UPDATE"].into_iter().zip(reference.actions) {
                if let Some(action) = Reference::ACTIONS.get(usize::from(action)).filter(|_| action > 0) {
                    line += &format!(" ON {when} {action}");
                }
            }
            lines.push(line);
        }
        Ok(lines)
    }

    fn add_foreign_keys(&mut self, found: &Found) -> Result<Vec<String>> {
        let name = self.name(&found.name);
        Ok(self.foreign_keys(found)?.into_iter().map(|line| format!("ALTER TABLE {name} ADD CONSTRAINT {line};")).collect())
    }

    fn table(&mut self, found: &Found) -> Result<Vec<String>> {
        let attributes = found.attributes();
        let name = self.name(&found.name);
        let mut lines = Vec::new();
        for at in attributes.visible_columns() {
            lines.push(self.column(found, at, &attributes.schema.columns()[at])?);
        }
        let key = found.key_index();
        if !attributes.primary_key.is_empty() {
            let columns: Vec<String> = attributes.primary_key.iter().map(|column| found.column_name(*column)).collect();
            // The key of a temporary table is in its schema, whose name is another one in each session.
            let named = key.filter(|(name, _)| !is_temporary_relation(name));
            let constraint = named.map_or_else(String::new, |(name, _)| format!("CONSTRAINT {} ", quoted(name)));
            lines.push(format!("{constraint}PRIMARY KEY ({})", columns.join(", ")));
        }
        lines.extend(found.check_lines().into_iter().map(|check| format!("CONSTRAINT {check}")));
        let (mut comments, mut division) = (String::new(), String::new());
        if let Some(whole) = &found.whole {
            let ends = whole.partitions().windows(2);
            if !whole.is_open() && ends.into_iter().any(|pair| pair[0].keys().end.as_ref() != Some(&pair[1].keys().start)) {
                comments += "-- between partitions there are gaps, which are not said in SQL yet\n";
            }
            division = self.partition_by(found, whole)?;
        }
        let mut storage = table_options(attributes);
        storage.extend(key.into_iter().flat_map(|(_, index)| key_options(index.attributes())));
        if let Some((key, index)) = key.filter(|(_, index)| !has_default_pool(index.attributes())) {
            comments += &format!("-- the index {} of the key has the pool {}\n", quoted(key), text(&index.attributes().pool));
        }
        let temporary = if is_temporary_relation(&found.name) { "TEMPORARY " } else { "" };
        let mut statements =
            vec![format!("{comments}CREATE {temporary}TABLE {name} (\n    {}\n) {division}{};", lines.join(",\n    "), with(&storage))];
        for (own, index) in &found.indexes {
            if key.is_some_and(|(key, _)| key == own) {
                continue;
            }
            let unique = if index.attributes().unique { "UNIQUE " } else { "" };
            let (columns, storage) = (found.key_columns(&index.attributes().columns), index_storage(index.attributes()));
            // One of a temporary table is where that is.
            let own = own.split_once('.').filter(|(schema, _)| is_temporary(schema)).map_or(own.as_str(), |(_, own)| own);
            statements.push(format!("CREATE {unique}INDEX {} ON {name} ({columns}){storage};", quoted(own)));
        }
        if let Some(whole) = &found.whole {
            statements.extend(self.partitions_of(found, whole)?);
            for (table, index) in &found.alone {
                let unique = if index.attributes().unique { "UNIQUE " } else { "" };
                let (columns, storage) = (found.key_columns(&index.attributes().columns), index_storage(index.attributes()));
                let (index, table) = (quoted(index.name()), self.name(table));
                statements.push(format!("CREATE {unique}INDEX {index} ON {table} ({columns}){storage};"));
            }
            statements.extend(self.own_parameters(found, whole)?);
        }
        if let Some(comment) = found.comment() {
            statements.push(format!("COMMENT ON TABLE {name} IS {};", text(&comment)));
        }
        for column in found.columns().into_iter().filter(|column| !column.comment.is_empty()) {
            statements.push(format!("COMMENT ON COLUMN {name}.{} IS {};", quoted(&column.name), text(&column.comment)));
        }
        Ok(statements)
    }

    /// What a sequence is, by its object's number: it may have been named after a table that has another name by now.
    fn numbers(&mut self, sequence: u32) -> Result<Option<Sequence>> {
        for name in self.transaction.object_names(DefinedKind::Sequence) {
            if let Some(found) = known(self.transaction.object(DefinedKind::Sequence, &name))?.filter(|found| found.object_id == sequence) {
                return Ok(found.notes.sequence());
            }
        }
        Ok(None)
    }

    fn column(&mut self, found: &Found, at: usize, column: &pagefold::types::Column) -> Result<String> {
        let notes = found.column_notes(at);
        let mut line = format!("{} {}", quoted(&column.name), column.data_type);
        match (&notes.identity, &notes.generated, &notes.default) {
            (Some(identity), ..) => {
                line += if identity.always { " GENERATED ALWAYS AS IDENTITY" } else { " GENERATED BY DEFAULT AS IDENTITY" };
                if let Some(sequence) = self.numbers(identity.sequence)? {
                    let options = sequence_options(&sequence, &column.data_type);
                    if !options.is_empty() {
                        line += &format!(" ({})", options.trim_start());
                    }
                }
            }
            (None, Some(generated), _) => line += &format!(" GENERATED ALWAYS AS ({generated}) STORED"),
            (None, None, Some(default)) => line += &format!(" DEFAULT {default}"),
            (None, None, None) => {}
        }
        if !column.nullable && notes.identity.is_none() && !found.attributes().primary_key.contains(&at) {
            line += " NOT NULL";
        }
        Ok(line)
    }
}

/// What differs from a sequence that is made without options, with a blank before each.
fn sequence_options(sequence: &Sequence, data_type: &DataType) -> String {
    let (lowest, highest) = data_type.int_range().unwrap_or((i64::MIN, i64::MAX));
    let is_up = sequence.increment > 0;
    // In the order of pg_dump.
    let mut options = String::new();
    if sequence.start != if is_up { sequence.least } else { sequence.greatest } {
        options += &format!(" START WITH {}", sequence.start);
    }
    if sequence.increment != 1 {
        options += &format!(" INCREMENT BY {}", sequence.increment);
    }
    if sequence.least != if is_up { 1 } else { lowest } {
        options += &format!(" MINVALUE {}", sequence.least);
    }
    if sequence.greatest != if is_up { highest } else { -1 } {
        options += &format!(" MAXVALUE {}", sequence.greatest);
    }
    if sequence.cache != 1 {
        options += &format!(" CACHE {}", sequence.cache);
    }
    if sequence.cycles {
        options += " CYCLE";
    }
    options
}
