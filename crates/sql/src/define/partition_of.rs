//! Partitions with both of their bounds: CREATE TABLE ... PARTITION OF, ATTACH PARTITION; and DETACH PARTITION.
//!
//! ATTACH puts an empty partition there, lets the table take its place (EXCHANGE), and drops what that leaves; DETACH does so with an empty table. So rows are checked, and none is written.
//!
//! Invariants:
//! - bounds are never rounded, ranges never overlap, and keys between them belong nowhere;
//! - what is said of the rows of a table that is attached is what is said of the whole, before and after.

use super::constraint::base_name;
use super::partition::{limit_value, listed, relation, set_storage};
use super::{Defining, options, taken};
use crate::catalog::{TableRef, find_if_any, is_relation};
use crate::parse::{object_name, short_name};
use crate::partition_names::beside;
use crate::partitioning::not_of_ranges;
use crate::temporary::{self, is_temporary};
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{PartitionSpec, PartitionedTable, first_key, limit_key};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::table_space::TableAttributes;
use pagefold_format::catalog::Notes;
use pagefold_types::{Column, KeyRange, Value, ValueRef};
use sqlparser::ast::{self, ForValues, PartitionBoundValue};
use std::sync::Arc;

/// What stands for one column in a bound.
enum Bound {
    Least,
    Value(Value),
    Greatest,
}

fn named(expr: &ast::Expr) -> Option<Bound> {
    let ast::Expr::Identifier(name) = expr else { return None };
    match name.quote_style.is_none().then(|| name.value.to_lowercase()).as_deref() {
        Some("minvalue") => Some(Bound::Least),
        Some("maxvalue") => Some(Bound::Greatest),
        _ => None,
    }
}

/// A bound, as PostgreSQL has it within a statement.
fn expressions(values: &[PartitionBoundValue]) -> Vec<ast::Expr> {
    let expression = |value: &PartitionBoundValue| match value {
        PartitionBoundValue::Expr(expr) => expr.clone(),
        PartitionBoundValue::MinValue => ast::Expr::Identifier("MINVALUE".into()),
        PartitionBoundValue::MaxValue => ast::Expr::Identifier("MAXVALUE".into()),
    };
    values.iter().map(expression).collect()
}

/// The first key that a bound lets in; `None`: there is none.
fn key_of(bound: &[Bound], attributes: &TableAttributes, columns: &[usize]) -> SqlResult<Option<Vec<u8>>> {
    let values: Vec<Option<ValueRef<'_>>> = bound
        .iter()
        .map_while(|own| match own {
            Bound::Least => None,
            Bound::Value(value) => Some(Some(value.as_ref())),
            Bound::Greatest => Some(None),
        })
        .collect();
    // With MINVALUE behind some values all keys that begin with these are let in.
    if values.is_empty() { Ok(Some(first_key())) } else { Ok(limit_key(attributes, columns, &values)?) }
}

fn texts(exprs: &[ast::Expr]) -> String {
    exprs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Defining<'_> {
    /// CREATE TABLE ... PARTITION OF.
    pub(super) fn create_partition_of(&mut self, create: &ast::CreateTable, of: &ast::ObjectName) -> SqlResult<String> {
        let whole = TableRef::find(self.transaction, &object_name(of)?)?;
        if create.temporary {
            let message = format!("cannot create a temporary relation as partition of permanent relation \"{}\"", whole.name);
            return Err(SqlError::new("42809", message));
        }
        let name = self.check_schema(&create.name)?;
        if create.if_not_exists && self.is_taken(&name)? {
            self.skips("relation", &name);
            return Ok("CREATE TABLE".into());
        }
        if !whole.is_divided() {
            return Err(SqlError::new("42P17", format!("\"{}\" is not partitioned", whole.name)));
        }
        refuse_closed(&whole, "PARTITION OF", "ALTER TABLE ... ADD PARTITION name VALUES LESS THAN (...) adds one.")?;
        let short = short_name(&name);
        if name != beside(&whole.name, short) {
            return Err(SqlError::unsupported("a partition in another schema than its table"));
        }
        let parameters = match &create.table_options {
            ast::CreateTableOptions::None => Vec::new(),
            ast::CreateTableOptions::With(parameters) => options::pairs(parameters)?,
            _ => return Err(SqlError::unsupported("these options of a partition").with_hint("WITH (compress = 'page', page_size = '16K')")),
        };
        let (from, to) = match &create.for_values {
            Some(ForValues::From { from, to }) => (expressions(from), expressions(to)),
            Some(ForValues::Default) => return Err(no_default()),
            _ => return Err(not_of_ranges()),
        };
        let mut spec = PartitionSpec { name: super::partition::partition_name(&ast::Ident::with_quote('"', short))?, ..Default::default() };
        set_storage(&mut spec, whole.first().table.attributes(), &parameters)?;
        self.refuse_taken_partition(&whole, short)?;
        self.set_bounds(&mut spec, &whole, (&from, &to))?;
        self.transaction.add_partition(&whole.name, &spec).map_err(|error| taken(error, &name))?;
        Ok("CREATE TABLE".into())
    }

    /// ALTER TABLE ... ATTACH PARTITION.
    pub(super) fn attach_partition(&mut self, whole: &TableRef, name: &ast::Expr, bounds: &[&ast::Expr]) -> SqlResult<()> {
        refuse_not_partitioned(whole)?;
        refuse_closed(
            whole,
            "ATTACH PARTITION",
            "ALTER TABLE ... EXCHANGE PARTITION name WITH TABLE puts a table in the place of a partition.",
        )?;
        let table = TableRef::find(self.transaction, &object_name(&relation(name)?)?)?;
        if table.whole_name().is_some() {
            return Err(SqlError::new("42809", format!("\"{}\" is already a partition", short_name_of_partition(&table.name))));
        }
        if table.is_divided() {
            return Err(SqlError::unsupported("partitions of a partition"));
        }
        if is_temporary(&table.name) {
            let message = format!("cannot attach a temporary relation as partition of permanent relation \"{}\"", whole.name);
            return Err(SqlError::new("42809", message));
        }
        let short = short_name(&table.name).to_owned();
        if table.name != beside(&whole.name, &short) {
            return Err(SqlError::unsupported("a partition in another schema than its table"));
        }
        let [from, to] = bounds else { return Err(no_default()) };
        let own = |list: &ast::Expr| listed(list).into_iter().cloned().collect::<Vec<ast::Expr>>();
        self.refuse_referred(&table, "attach")?;
        refuse_other_columns(whole, &table)?;
        if table.rules.owned_sequences().next().is_some() {
            let error = SqlError::unsupported(format!("attaching table \"{}\", a column of which has a sequence of its own", table.name));
            return Err(error.with_hint("Numbers come from the sequence of the partitioned table: drop the default or identity first."));
        }
        let mut spec =
            PartitionSpec { name: super::partition::partition_name(&ast::Ident::with_quote('"', &*short))?, ..Default::default() };
        self.set_bounds(&mut spec, whole, (&own(from), &own(to)))?;
        let table = self.with_keys_of(whole, table)?;
        self.transaction.add_partition(&whole.name, &spec).map_err(|error| taken(error, &table.name))?;
        match self.transaction.exchange_partition(&whole.name, &short, &table.name) {
            Err(error @ Error::OutOfRange { .. }) => {
                let message = format!("partition constraint of relation \"{}\" is violated by some row", table.name);
                Err(SqlError::new("23514", message).with_detail(error.to_string()))
            }
            // It names what is different.
            Err(error @ Error::Parameter(_)) => Err(SqlError::new("42804", error.to_string())),
            done => Ok(done?),
        }?;
        Ok(self.transaction.drop_table(&table.name)?)
    }

    /// ALTER TABLE ... DETACH PARTITION.
    pub(super) fn detach_partition(&mut self, whole: &TableRef, name: &ast::Expr) -> SqlResult<()> {
        refuse_not_partitioned(whole)?;
        let name = object_name(&relation(name)?)?;
        let short = short_name(&name).to_owned();
        let partitions = self.transaction.partitioned_table(&whole.name)?;
        let Some(partition) = partitions.partition(&short).ok().filter(|_| is_called(whole, &name, &short)) else {
            return Err(match find_if_any(self.transaction, &name)? {
                Some(_) => SqlError::new("42P01", format!("relation \"{name}\" is not a partition of relation \"{}\"", whole.name)),
                None => SqlError::new("42P01", format!("relation \"{name}\" does not exist")),
            });
        };
        let name = beside(&whole.name, &short);
        if !whole.is_open() && is_relation(self.transaction, &name) {
            return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
        }
        self.refuse_referred(whole, "detach a partition of")?;
        self.refuse_read_partition(whole, &short)?;
        if whole.visible.contains(&false) {
            let error = SqlError::unsupported(format!("detaching a partition of \"{}\", a column of which was dropped", whole.name));
            return Err(error.with_hint("Its place is still in the rows."));
        }
        let table = self.transaction.table_of_partition(partition)?;
        let notes = notes_alone(&self.transaction.notes_of_table(&table))?;
        let attributes = TableAttributes { name: name.clone(), range: None, notes, ..table.attributes_now() };
        let key = table.attributes().primary_key.clone();
        let made = self.transaction.create_table(attributes).map_err(|error| taken(error, &name))?;
        for at in 0..whole.index_count() {
            let like = whole.first().indexes[at].attributes();
            let own = self.index_name_of(&name, like, whole, &key);
            let attributes = IndexAttributes { name: own.clone(), notes: Notes::default(), ..like.clone() };
            self.transaction.create_index(&made, attributes).map_err(|error| taken(error, &own))?;
        }
        self.transaction.exchange_partition(&whole.name, &short, &name)?;
        self.transaction.drop_partition(&whole.name, &short)?;
        // A condition may name the table.
        let made = TableRef::find(self.transaction, &name)?;
        self.bind(|binder| binder.row_rules(&made))?;
        if is_temporary(&name) {
            temporary::add_name(&short);
        }
        Ok(())
    }

    /// The range of a new partition, which no other one has keys of.
    fn set_bounds(&mut self, spec: &mut PartitionSpec, whole: &TableRef, (from, to): (&[ast::Expr], &[ast::Expr])) -> SqlResult<()> {
        let attributes = whole.first().table.attributes();
        // None comes or goes from here on.
        let partitions: Arc<PartitionedTable> = self.transaction.lock_partitioned_table(&whole.name)?;
        let columns = partitions.columns();
        let (start, end) = (self.bound("FROM", from, attributes, columns)?, self.bound("TO", to, attributes, columns)?);
        let (start, end) = (key_of(&start, attributes, columns)?, key_of(&end, attributes, columns)?);
        let keys = match start {
            Some(start) if end.as_ref().is_none_or(|end| start < *end) => KeyRange { start, end },
            _ => {
                let error = SqlError::new("42P17", format!("empty range bound specified for partition \"{}\"", spec.name));
                let (from, to) = (texts(from), texts(to));
                return Err(error.with_detail(format!("Specified lower bound ({from}) is greater than or equal to upper bound ({to}).")));
            }
        };
        let begins_before = |a: &KeyRange, b: &KeyRange| b.end.as_ref().is_none_or(|end| a.start < *end);
        let overlaps = |own: &KeyRange| begins_before(own, &keys) && begins_before(&keys, own);
        if let Some(other) = partitions.own_partitions().iter().find(|other| overlaps(other.keys())) {
            return Err(SqlError::new("42P17", format!("partition \"{}\" would overlap partition \"{}\"", spec.name, other.name())));
        }
        (spec.start, spec.limit) = (Some(keys.start), keys.end);
        Ok(())
    }

    /// What a bound says of each column.
    fn bound(&mut self, what: &str, exprs: &[ast::Expr], attributes: &TableAttributes, columns: &[usize]) -> SqlResult<Vec<Bound>> {
        if exprs.len() != columns.len() {
            return Err(SqlError::new("42P16", format!("{what} must specify exactly one value per partitioning column")));
        }
        let mut bound: Vec<Bound> = Vec::with_capacity(columns.len());
        for (expr, column) in exprs.iter().zip(columns) {
            let own = match named(expr) {
                Some(own) => own,
                None => match limit_value(self.transaction, self.run.now, expr, &attributes.schema.columns()[*column])? {
                    Value::Null => return Err(SqlError::new("42P17", "cannot specify NULL in range bound")),
                    value => Bound::Value(value),
                },
            };
            let follows = |word: &str| Err(SqlError::types(format!("every bound following {word} must also be {word}")));
            match (bound.last(), &own) {
                (Some(Bound::Least), Bound::Value(_) | Bound::Greatest) => return follows("MINVALUE"),
                (Some(Bound::Greatest), Bound::Value(_) | Bound::Least) => return follows("MAXVALUE"),
                _ => bound.push(own),
            }
        }
        Ok(bound)
    }

    /// A table that is to be attached gets the primary key and the indexes of the whole that it lacks.
    fn with_keys_of(&mut self, whole: &TableRef, table: Arc<TableRef>) -> SqlResult<Arc<TableRef>> {
        if table.primary_key.is_empty() && !whole.primary_key.is_empty() {
            self.add_primary_key(&table, None, whole.primary_key.clone())?;
        }
        let table = TableRef::find(self.transaction, &table.name)?;
        // Two of the same columns are two.
        let mut own: Vec<usize> = (0..table.index_count()).collect();
        for at in 0..whole.index_count() {
            let like = whole.first().indexes[at].attributes();
            let is_like = |own: &usize| table.index_columns(*own) == like.columns && table.is_unique(*own) == like.unique;
            if let Some(found) = own.iter().position(is_like) {
                own.remove(found);
                continue;
            }
            let name = self.index_name_of(&table.name, like, whole, &whole.primary_key);
            let attributes = IndexAttributes { name: name.clone(), notes: Notes::default(), ..like.clone() };
            self.transaction.create_index(&table.first().table, attributes).map_err(|error| taken(error, &name))?;
        }
        TableRef::find(self.transaction, &table.name)
    }

    /// What an index is called that a table gets as the whole has it.
    fn index_name_of(&mut self, table: &str, like: &IndexAttributes, whole: &TableRef, key: &[usize]) -> String {
        let names: Vec<&str> = like.columns.iter().map(|(column, _)| whole.schema.columns()[*column].name.as_str()).collect();
        let base = match like.unique {
            true if like.is_of_key(key) => base_name(table, &[], "pkey"),
            true => base_name(table, &names, "key"),
            false => base_name(table, &names, "idx"),
        };
        self.free_name(base, |_| false)
    }
}

/// DEFAULT has no range.
fn no_default() -> SqlError {
    let error = SqlError::unsupported("a DEFAULT partition: each has one range of keys");
    error.with_hint("Partitions FROM (MINVALUE) and TO (MAXVALUE) take what lies before and behind the others.")
}

fn refuse_closed(whole: &TableRef, what: &str, hint: &str) -> SqlResult<()> {
    match whole.is_open() {
        true => Ok(()),
        false => Err(SqlError::unsupported(format!("{what} a table that was made with its partitions")).with_hint(hint)),
    }
}

fn refuse_not_partitioned(table: &TableRef) -> SqlResult<()> {
    match table.is_divided() {
        true => Ok(()),
        false => Err(SqlError::new("42P17", format!("table \"{}\" is not partitioned", table.name))),
    }
}

fn short_name_of_partition(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

/// Is a partition meant by this name? It lies where its table does.
fn is_called(whole: &TableRef, name: &str, short: &str) -> bool {
    name == beside(&whole.name, short) || (is_temporary(&whole.name) && name == short)
}

/// Columns are the same in name, type, NULL and place.
fn refuse_other_columns(whole: &TableRef, table: &TableRef) -> SqlResult<()> {
    let visible = |of: &TableRef| {
        let all = of.schema.columns().iter().zip(&of.visible);
        all.filter(|(_, visible)| **visible).map(|(column, _)| column.clone()).collect::<Vec<Column>>()
    };
    let (all, own) = (visible(whole), visible(table));
    if let Some(more) = own.iter().find(|own| !all.iter().any(|column| column.name == own.name)) {
        let error =
            SqlError::types(format!("table \"{}\" contains column \"{}\" not found in parent \"{}\"", table.name, more.name, whole.name));
        return Err(error.with_detail("The new partition may contain only the columns present in parent."));
    }
    for column in &all {
        let Some(found) = own.iter().find(|own| own.name == column.name) else {
            return Err(SqlError::types(format!("child table is missing column \"{}\"", column.name)));
        };
        if found.data_type != column.data_type {
            return Err(SqlError::types(format!("child table \"{}\" has different type for column \"{}\"", table.name, column.name)));
        }
        if found.nullable && !column.nullable {
            return Err(SqlError::types(format!("column \"{}\" in child table must be marked NOT NULL", column.name)));
        }
    }
    if whole.visible != table.visible {
        let what = if whole.visible.contains(&false) { &whole.name } else { &table.name };
        let error = SqlError::types(format!("a column of \"{what}\" was dropped: \"{}\" has not the same places in its rows", table.name));
        return Err(error.with_hint("INSERT INTO a new partition SELECT from the table takes its rows over."));
    }
    Ok(())
}

/// What is said of a partition that becomes a table of its own: sequences stay with the whole.
fn notes_alone(notes: &Notes) -> SqlResult<Notes> {
    let mut alone = notes.clone();
    alone.set_statistics(None).map_err(super::too_much)?;
    for mut column in notes.columns() {
        if column.identity.is_some() {
            (column.identity, column.default) = (None, None);
            alone.set_column(&column).map_err(super::too_much)?;
        }
    }
    Ok(alone)
}
