//! ALTER TABLE and ALTER INDEX: columns, names, types, defaults, conditions, keys.
//!
//! All of it is a change of definitions in the transaction; rows stay as they are stored, and are read as the table says from then on
//! (`docs/altering.md`). Compression and page size are changed by REORG.

use super::constraint::{base_name, check_name, first_free, plain_check, plain_key, plain_unique};
use super::dependents::Going;
use super::table::of_column;
use super::{Defining, taken, too_much};
use crate::bind::change::{column_of, to_slots};
use crate::bind::types;
use crate::catalog::{Found, TableRef, find_if_any, refuse_system};
use crate::execute::Execution;
use crate::expression::Expr;
use crate::forms::is_of_view;
use crate::parse::{identifier, new_object_name, object_name};
use crate::print::printed;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{IndexChange, TableChange};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_format::catalog::{Constraint, ConstraintKind, DefinedKind};
use pagefold_types::{Column, Direction, Value};
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, ColumnOption, RenameTableNameKind, TableConstraint};
use std::sync::Arc;

impl Defining<'_> {
    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> SqlResult<String> {
        let name = object_name(&alter.name)?;
        if let Some(tag) = self.alter_view(&name, alter)? {
            return Ok(tag);
        }
        let mut operations: Vec<&AlterTableOperation> = alter.operations.iter().collect();
        operations.sort_by_key(|operation| pass(operation));
        for operation in operations {
            let table = match TableRef::find(self.transaction, &name) {
                Err(error) if error.sqlstate() == "42P01" && alter.if_exists => {
                    self.notice(format!("{}, skipping", error.message()));
                    continue;
                }
                found => found?,
            };
            self.alter_one(&table, operation)?;
        }
        Ok("ALTER TABLE".into())
    }

    /// A view that gets another name, by ALTER VIEW or ALTER TABLE; `None`: it is a table.
    fn alter_view(&mut self, name: &str, alter: &ast::AlterTable) -> SqlResult<Option<String>> {
        let is_said = is_of_view(alter);
        let notes = match find_if_any(self.transaction, name)? {
            Some(Found::View(_)) => self.transaction.object(DefinedKind::View, name)?.notes.clone(),
            Some(Found::Table(_)) if is_said => return Err(SqlError::new("42809", format!("\"{name}\" is not a view"))),
            None if is_said && alter.if_exists => {
                self.notice(format!("relation \"{name}\" does not exist, skipping"));
                return Ok(Some("ALTER VIEW".into()));
            }
            None if is_said => return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist"))),
            _ => return Ok(None),
        };
        refuse_system(name)?;
        let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) }] = alter.operations.as_slice() else {
            let what: Vec<String> = alter.operations.iter().map(AlterTableOperation::to_string).collect();
            return Err(SqlError::unsupported(format!("ALTER VIEW ... {}", what.join(", "))));
        };
        let to = self.new_name(name, to)?;
        self.transaction.drop_object(DefinedKind::View, name)?;
        self.transaction.create_object(DefinedKind::View, &to, notes).map_err(|error| taken(error, &to))?;
        self.refuse_circle(&to)?;
        Ok(Some(if is_said { "ALTER VIEW" } else { "ALTER TABLE" }.into()))
    }

    /// A new name without a schema is one in the schema that the old one is in.
    fn new_name(&mut self, old: &str, to: &ast::ObjectName) -> SqlResult<String> {
        let to = match old.split_once('.') {
            Some((schema, _)) if to.0.len() == 1 => format!("{schema}.{}", new_object_name(to)?),
            _ => self.check_schema(to)?,
        };
        self.refuse_taken(&to)?;
        Ok(to)
    }

    fn alter_one(&mut self, table: &Arc<TableRef>, operation: &AlterTableOperation) -> SqlResult<()> {
        if !matches!(operation, AlterTableOperation::SetOptionsParens { .. }) {
            table.refuse_partition("ALTER TABLE")?;
        }
        match operation {
            AlterTableOperation::AlterColumn { column_name, op } => {
                let column = column_of(table, column_name)?;
                self.alter_column(table, column, op)
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => self.add_constraint(table, constraint),
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(table, &identifier(old_name), &identifier(new_name))
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                let cascade = *drop_behavior == Some(ast::DropBehavior::Cascade);
                self.drop_constraint(table, &identifier(name), *if_exists, cascade)
            }
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                self.add_column(table, column_def, *if_not_exists)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => column_names.iter().try_for_each(|name| {
                let table = TableRef::find(self.transaction, &table.name)?;
                self.drop_column(&table, name, *if_exists, *drop_behavior == Some(ast::DropBehavior::Cascade))
            }),
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let column = column_of(table, old_column_name)?;
                let to = identifier(new_column_name);
                if table.is_visible_name(&to) {
                    return Err(SqlError::new("42701", format!("column \"{to}\" of relation \"{}\" already exists", table.name)));
                }
                // Conditions are kept as they were written, with the name.
                if let Some(name) = self.rule_of_column(table, column)? {
                    let error = SqlError::unsupported(format!("renaming a column that {name} refers to"));
                    return Err(error.with_hint("Drop the constraint, rename the column, and add the constraint again."));
                }
                self.change(table, &[TableChange::RenameColumn { column: table.schema.columns()[column].name.clone(), to }])
            }
            AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to) } => {
                let to = self.new_name(&table.name, to)?;
                self.change(table, &[TableChange::Rename(to)])
            }
            AlterTableOperation::AddPartitions { if_not_exists: false, new_partitions } => {
                let all = new_partitions.iter().flat_map(|partition| match partition {
                    ast::Partition::Partitions(all) => all.as_slice(),
                    _ => &[],
                });
                all.into_iter().try_for_each(|change| self.alter_partition(table, change))
            }
            AlterTableOperation::DropPartitions { if_exists: false, partitions } => {
                partitions.iter().try_for_each(|partition| self.drop_partition(table, partition))
            }
            AlterTableOperation::SetOptionsParens { options } => {
                let changes = super::options::changes(&super::options::pairs(options)?)?;
                self.change(table, &changes)
            }
            other => Err(SqlError::unsupported(format!("ALTER TABLE ... {other}"))),
        }
    }

    /// Changes a table, all its parts.
    pub(super) fn change(&mut self, table: &TableRef, changes: &[TableChange]) -> SqlResult<()> {
        if table.is_divided() {
            self.transaction.change_partitioned_table(&table.name, changes)?;
        } else {
            self.transaction.change_table(&table.name, changes)?;
        }
        Ok(())
    }

    pub(super) fn alter_index(&mut self, name: &ast::ObjectName, operation: &ast::AlterIndexOperation) -> SqlResult<String> {
        let ast::AlterIndexOperation::RenameIndex { index_name } = operation;
        let name = object_name(name)?;
        // One of a schema stays there.
        let to = match name.split_once('.') {
            Some((schema, _)) if index_name.0.len() == 1 => format!("{schema}.{}", new_object_name(index_name)?),
            _ => new_object_name(index_name)?,
        };
        refuse_system(&name)?;
        refuse_system(&to)?;
        let changed = match self.transaction.change_index(&name, &[IndexChange::Rename(to.clone())]) {
            // Perhaps it is one of a table that is divided.
            Err(Error::Unknown { .. }) => self.transaction.rename_partitioned_index(&name, &to),
            changed => changed.map(drop),
        };
        match changed {
            Err(Error::Unknown { .. }) => Err(SqlError::new("42704", format!("index \"{name}\" does not exist"))),
            changed => changed.map(|()| "ALTER INDEX".into()).map_err(|error| taken(error, &to)),
        }
    }

    fn add_column(&mut self, table: &Arc<TableRef>, definition: &ast::ColumnDef, if_not_exists: bool) -> SqlResult<()> {
        let name = identifier(&definition.name);
        if table.is_visible_name(&name) {
            if if_not_exists {
                self.notice(format!("column \"{name}\" of relation \"{}\" already exists, skipping", table.name));
                return Ok(());
            }
            return Err(SqlError::new("42701", format!("column \"{name}\" of relation \"{}\" already exists", table.name)));
        }
        if types::is_serial(&definition.data_type) {
            return Err(SqlError::unsupported("adding a SERIAL column"));
        }
        let data_type = types::data_type(&definition.data_type)?;
        let (mut nullable, mut default, mut checks, mut is_unique) = (true, None, Vec::new(), false);
        let mut primary_key = None;
        let mut foreign_keys = Vec::new();
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => nullable = false,
                ColumnOption::Default(expr) => default = Some(printed(expr)?),
                ColumnOption::Check(check) => checks.push((option.name.clone().or_else(|| check.name.clone()), check.clone())),
                ColumnOption::Unique(unique) => is_unique = plain_unique(unique).map(|_| true)?,
                ColumnOption::ForeignKey(key) => foreign_keys.push(of_column(key, option.name.as_ref(), &definition.name)),
                ColumnOption::PrimaryKey(key) => {
                    plain_key(key)?;
                    primary_key = Some(option.name.as_ref().map(identifier));
                }
                other => return Err(SqlError::unsupported(format!("ADD COLUMN ... {other}"))),
            }
        }
        // What rows have in it that are there: the default of this moment.
        let value = match &default {
            None => Value::Null,
            Some(text) => {
                let expr = self.bind(|binder| binder.default_expression(text, &data_type, &name))?;
                if expr.any(Expr::is_volatile) {
                    let error = SqlError::unsupported("adding a column whose DEFAULT is another value each time");
                    return Err(error.with_hint("Add the column, SET DEFAULT, and UPDATE the rows that are there."));
                }
                let execution = Execution::new(&self.run, self.transaction.read_view()?, Vec::new(), Arc::new([]));
                execution.context().evaluate(&expr, &[])?
            }
        };
        if value == Value::Null && !nullable && table.rows() > 0 {
            let message = format!("column \"{name}\" of relation \"{}\" contains null values", table.name);
            return Err(SqlError::new("23502", message).of_column(&table.name, &name).with_hint("Give it a DEFAULT."));
        }
        // There may be rows that are not counted: not yet, or not any more.
        let is_filled = nullable || value != Value::Null;
        let column = Column::new(name.clone(), data_type, nullable || !is_filled);
        self.change(table, &[TableChange::AddColumn { column, value }])?;
        if !is_filled {
            let table = TableRef::find(self.transaction, &table.name)?;
            self.set_not_null(&table, table.schema.len() - 1)?;
        }
        let table = TableRef::find(self.transaction, &table.name)?;
        if let Some(text) = default {
            self.set_default(&table, table.schema.len() - 1, Some(&text))?;
        }
        for (own, check) in checks {
            let table = TableRef::find(self.transaction, &table.name)?;
            self.add_constraint(&table, &TableConstraint::Check(ast::CheckConstraint { name: own, ..check }))?;
        }
        if let Some(own) = primary_key {
            let table = TableRef::find(self.transaction, &table.name)?;
            self.add_primary_key(&table, own, vec![table.schema.len() - 1])?;
        }
        let table = TableRef::find(self.transaction, &table.name)?;
        if is_unique {
            let columns = vec![(table.schema.len() - 1, Direction::Ascending)];
            let key = self.free_name(base_name(&table.name, &[&name], "key"), |name| table.rules.has_constraint(name));
            self.add_unique(&table, key, columns)?;
        }
        foreign_keys.iter().try_for_each(|key| self.add_foreign_key(&table.name, key, true))
    }

    fn drop_column(&mut self, table: &Arc<TableRef>, name: &ast::Ident, if_exists: bool, cascade: bool) -> SqlResult<()> {
        let column = match column_of(table, name) {
            Err(error) if if_exists && error.sqlstate() == "42703" => {
                self.notice(format!("{}, skipping", error.message()));
                return Ok(());
            }
            found => found?,
        };
        if table.primary_key.contains(&column) {
            return Err(SqlError::unsupported("dropping a column of the primary key"));
        }
        let going = Going::Column(table.name.clone(), column, table.schema.columns()[column].name.clone());
        let what = going.to_string();
        let counts = table.rules.identity[column].and_then(|identity| self.sequence_numbered(identity.sequence));
        // Nobody makes a view of it from here on, and its own default needs the sequence no more.
        self.forget_default(table, column)?;
        let all: Vec<Going> = std::iter::once(going).chain(counts.iter().cloned().map(Going::Sequence)).collect();
        let mut dependents = self.defaults_on(&all, &[])?;
        dependents.extend(self.views_on(&all));
        self.drop_dependents(Some(&what), dependents, cascade)?;
        // As in PostgreSQL, indexes and conditions of the column go with it.
        for index in 0..table.index_count() {
            if table.index_columns(index).iter().any(|(own, _)| *own == column) {
                let what = format!("column {} of table {}", identifier(name), table.name);
                self.drop_referring_to_index(&what, table, index, cascade)?;
                self.drop_index_of(table, index)?;
            }
        }
        let is_column = |other: &u32| *other as usize == column;
        let keys = table.rules.foreign_keys().filter(|(key, _)| key.columns.iter().any(is_column));
        for key in keys.map(|(key, _)| key.name.clone()).collect::<Vec<_>>() {
            let table = TableRef::find(self.transaction, &table.name)?;
            self.drop_constraint(&table, &key, true, false)?;
        }
        while let Some(rule) = self.rule_of_column(table, column)? {
            let table = TableRef::find(self.transaction, &table.name)?;
            if !table.rules.has_constraint(&rule) {
                if cascade {
                    self.cascades(vec![format!("column {rule} of table {}", table.name)]);
                    self.drop_column(&table, &ast::Ident::with_quote('"', rule), false, true)?;
                    continue;
                }
                let error = SqlError::new(
                    "2BP01",
                    format!("cannot drop column {} because generated column {rule} depends on it", identifier(name)),
                );
                return Err(error.with_hint("Drop the generated column first, or use CASCADE."));
            }
            self.drop_constraint(&table, &rule, false, false)?;
        }
        let own = table.schema.columns()[column].name.clone();
        let table = TableRef::find(self.transaction, &table.name)?;
        self.change(&table, &[TableChange::DropColumn(own)])?;
        counts.iter().try_for_each(|name| Ok(self.transaction.drop_object(DefinedKind::Sequence, name)?))
    }

    /// A column that goes has no default, counts nothing and is computed of nothing any more.
    fn forget_default(&mut self, table: &TableRef, column: usize) -> SqlResult<()> {
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        self.say(table, |notes| {
            let mut own = notes.column(column);
            (own.default, own.identity, own.generated) = (None, None, None);
            notes.set_column(&own).map_err(too_much)
        })
    }

    fn drop_index_of(&mut self, table: &TableRef, index: usize) -> SqlResult<()> {
        let name = table.index_name(index);
        if table.is_divided() {
            self.transaction.drop_partitioned_index(&name)?
        } else {
            self.transaction.drop_index(&name)?
        }
        Ok(())
    }

    /// The first CHECK or generated column, by name, that refers to a column.
    pub(super) fn rule_of_column(&mut self, table: &TableRef, column: usize) -> SqlResult<Option<String>> {
        // As the transaction has it by now.
        let table = TableRef::find(self.transaction, &table.name)?;
        let refers = |expr: &Expr| expr.any(|part| matches!(part, Expr::Slot(slot) if *slot == column));
        let rules = self.bind(|binder| binder.row_rules(&table))?;
        let check = rules.checks.iter().find(|(_, expr)| refers(expr)).map(|(name, _)| name.clone());
        let generated = || rules.generated.iter().find(|(_, expr)| refers(expr)).map(|(at, _)| table.schema.columns()[*at].name.clone());
        Ok(check.or_else(generated))
    }

    pub(super) fn set_default(&mut self, table: &TableRef, column: usize, default: Option<&str>) -> SqlResult<()> {
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        self.say(table, |notes| {
            let mut own = notes.column(column);
            own.default = default.map(str::to_owned);
            notes.set_column(&own).map_err(too_much)
        })
    }

    fn alter_column(&mut self, table: &Arc<TableRef>, column: usize, operation: &AlterColumnOperation) -> SqlResult<()> {
        let own = &table.schema.columns()[column];
        let name = own.name.clone();
        if let AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault = operation {
            Self::refuse_default(table, column)?;
        }
        match operation {
            AlterColumnOperation::SetDefault { value } => {
                let text = printed(value)?;
                self.bind(|binder| binder.default_expression(&text, &own.data_type, &own.name))?;
                self.set_default(table, column, Some(&text))
            }
            AlterColumnOperation::DropDefault => self.set_default(table, column, None),
            AlterColumnOperation::SetNotNull if own.nullable => self.set_not_null(table, column),
            AlterColumnOperation::SetNotNull => Ok(()),
            AlterColumnOperation::DropNotNull if table.primary_key.contains(&column) => {
                Err(SqlError::new("42P16", format!("column \"{name}\" is in a primary key")))
            }
            AlterColumnOperation::DropNotNull if own.nullable => Ok(()),
            AlterColumnOperation::DropNotNull => self.change(table, &[TableChange::DropNotNull(name)]),
            AlterColumnOperation::SetDataType { data_type, using, .. } => self.set_type(table, column, data_type, using.as_ref()),
            other => Err(SqlError::unsupported(format!("ALTER COLUMN ... {other}"))),
        }
    }

    fn set_not_null(&mut self, table: &TableRef, column: usize) -> SqlResult<()> {
        let name = &table.schema.columns()[column].name;
        match self.change(table, &[TableChange::SetNotNull(name.clone())]) {
            // The engine names the row.
            Err(error) if matches!(error.engine(), Some(Error::Value(_))) => {
                let message = format!("column \"{name}\" of relation \"{}\" contains null values", table.name);
                Err(SqlError::new("23502", message).with_detail(error.message().to_owned()).of_column(&table.name, name))
            }
            done => done,
        }
    }

    /// Values of some columns come from elsewhere.
    fn refuse_default(table: &TableRef, column: usize) -> SqlResult<()> {
        let what = match (&table.rules.generated[column], table.rules.identity[column]) {
            (Some(_), _) => "a generated column",
            (None, Some(identity)) if identity.always => "an identity column",
            _ => return Ok(()),
        };
        let name = &table.schema.columns()[column].name;
        let message = format!("column \"{name}\" of relation \"{}\" is {what}", table.name);
        Err(SqlError::syntax(message).of_column(&table.name, name))
    }

    fn add_unique(&mut self, table: &TableRef, name: String, columns: Vec<(usize, Direction)>) -> SqlResult<()> {
        super::table::refuse_elsewhere(&name, &table.name)?;
        let attributes = IndexAttributes::new(name.clone(), columns, true).with_format(IndexFormat::Prefix, 8192);
        if table.is_divided() {
            self.transaction.create_partitioned_index(&table.name, &attributes).map_err(|error| taken(error, &name))
        } else {
            self.transaction.create_index(&table.first().table, attributes).map(drop).map_err(|error| taken(error, &name))
        }
    }

    fn add_constraint(&mut self, table: &Arc<TableRef>, constraint: &TableConstraint) -> SqlResult<()> {
        match constraint {
            TableConstraint::Check(check) => {
                let text = printed(plain_check(check)?)?;
                let is_key =
                    |name: &String| (0..table.index_count()).any(|index| table.is_unique(index) && table.index_name(index) == *name);
                let is_taken = |name: &String| table.rules.has_constraint(name) || is_key(name);
                let columns: Vec<&str> = table.schema.columns().iter().map(|column| column.name.as_str()).collect();
                let free = || first_free(check_name(&table.name, &columns, &text), is_taken);
                let name = check.name.as_ref().map_or_else(free, identifier);
                if is_taken(&name) {
                    return Err(SqlError::new("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", table.name)));
                }
                self.check_rows(table, &name, &text)?;
                self.say(table, |notes| {
                    let mut all = notes.constraints();
                    let mut made = Constraint::new(ConstraintKind::Check, name.clone());
                    made.condition = Some(text.clone());
                    all.push(made);
                    notes.set_constraints(&all).map_err(too_much)
                })
            }
            TableConstraint::PrimaryKey(key) => {
                let mut columns = Vec::with_capacity(key.columns.len());
                for column in &plain_key(key)?.columns {
                    let ast::Expr::Identifier(name) = &column.column.expr else {
                        return Err(SqlError::unsupported("a key of an expression"));
                    };
                    let at = column_of(table, name)?;
                    if columns.contains(&at) {
                        let message = format!("column \"{}\" appears twice in primary key constraint", identifier(name));
                        return Err(SqlError::new("42701", message));
                    }
                    columns.push(at);
                }
                self.add_primary_key(table, key.name.as_ref().map(identifier), columns)
            }
            TableConstraint::Unique(unique) => {
                let mut columns = Vec::with_capacity(plain_unique(unique)?.columns.len());
                for column in &unique.columns {
                    let ast::Expr::Identifier(name) = &column.column.expr else {
                        return Err(SqlError::unsupported("a key of an expression"));
                    };
                    columns.push((column_of(table, name)?, Direction::Ascending));
                }
                let names: Vec<&str> = columns.iter().map(|(column, _)| table.schema.columns()[*column].name.as_str()).collect();
                let is_constraint = |name: &String| table.rules.has_constraint(name);
                let free = || self.free_name(base_name(&table.name, &names, "key"), is_constraint);
                let name = unique.name.as_ref().map_or_else(free, identifier);
                if table.rules.has_constraint(&name) {
                    return Err(SqlError::new("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", table.name)));
                }
                self.add_unique(table, name, columns)
            }
            TableConstraint::ForeignKey(key) => self.add_foreign_key(&table.name, key, true),
            other => Err(SqlError::unsupported(format!("ALTER TABLE ... ADD {other}"))),
        }
    }

    /// A table without a primary key gets one: its columns are not NULL from then on.
    pub(super) fn add_primary_key(&mut self, table: &Arc<TableRef>, name: Option<String>, columns: Vec<usize>) -> SqlResult<()> {
        if !table.primary_key.is_empty() {
            return Err(SqlError::new("42P16", format!("multiple primary keys for table \"{}\" are not allowed", table.name)));
        }
        if table.is_divided() {
            return Err(SqlError::unsupported("adding a primary key to a table that is divided"));
        }
        let is_constraint = |name: &String| table.rules.has_constraint(name);
        let key = match name {
            Some(name) => name,
            None => self.free_name(base_name(&table.name, &[], "pkey"), is_constraint),
        };
        if table.rules.has_constraint(&key) {
            return Err(SqlError::new("42710", format!("constraint \"{key}\" for relation \"{}\" already exists", table.name)));
        }
        for column in &columns {
            let now = TableRef::find(self.transaction, &table.name)?;
            if now.schema.columns()[*column].nullable {
                self.set_not_null(&now, *column)?;
            }
        }
        let names = columns.iter().map(|column| table.schema.columns()[*column].name.clone()).collect();
        self.change(table, &[TableChange::PrimaryKey(names)])?;
        let now = TableRef::find(self.transaction, &table.name)?;
        self.add_unique(&now, key, columns.into_iter().map(|column| (column, Direction::Ascending)).collect())
    }

    /// A CHECK or foreign key, or the index of a key, gets another name.
    fn rename_constraint(&mut self, table: &Arc<TableRef>, from: &str, to: &str) -> SqlResult<()> {
        let index = (0..table.index_count()).find(|index| table.index_name(*index) == from && table.is_unique(*index));
        if index.is_none() && !table.rules.has_constraint(from) {
            let message = format!("constraint \"{from}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new("42704", message));
        }
        let is_taken = (0..table.index_count()).any(|index| table.is_unique(index) && table.index_name(index) == to);
        if is_taken || table.rules.has_constraint(to) {
            return Err(SqlError::new("42710", format!("constraint \"{to}\" for relation \"{}\" already exists", table.name)));
        }
        if index.is_some() {
            super::table::refuse_elsewhere(to, &table.name)?;
            let renamed = match table.is_divided() {
                true => self.transaction.rename_partitioned_index(from, to),
                false => self.transaction.change_index(from, &[IndexChange::Rename(to.to_owned())]).map(drop),
            };
            return renamed.map_err(|error| taken(error, to));
        }
        self.say(table, |notes| {
            let mut all = notes.constraints();
            all.iter_mut().filter(|own| own.name == from).for_each(|own| own.name = to.to_owned());
            notes.set_constraints(&all).map_err(too_much)
        })
    }

    /// Refuses a condition that a row does not meet.
    pub(super) fn check_rows(&mut self, table: &Arc<TableRef>, name: &str, text: &str) -> SqlResult<()> {
        // Nobody else changes rows from here on.
        self.say(table, |_| Ok(()))?;
        let (mut condition, plan, subplans) = self.bind(|binder| {
            let condition = binder.of_row(table, text, |binder, expr| binder.condition(expr, "CHECK"))?;
            let query = crate::parse::parse_query(&format!("SELECT * FROM {}", quoted(&table.name)))?;
            let planned = binder.query(&query)?;
            Ok((condition, planned.plan, std::mem::take(&mut binder.subplans)))
        })?;
        to_slots(&mut condition);
        // Rows that came since the snapshot, too.
        let view = self.transaction.newest_view()?;
        let execution = Execution::new(&self.run, view, Vec::new(), subplans.into());
        let context = execution.context();
        let mut rows = crate::execute::open(&plan, &context)?;
        while let Some(seen) = rows.next(&context)? {
            // Columns that were dropped have their places.
            let mut seen = seen.into_iter();
            let row: Vec<Value> =
                table.visible.iter().map(|visible| if *visible { seen.next().unwrap_or(Value::Null) } else { Value::Null }).collect();
            if context.evaluate(&condition, &row)? == Value::Boolean(false) {
                let message = format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name);
                return Err(SqlError::new("23514", message)
                    .with_detail(crate::execute::change::failing_row(table, &row))
                    .of_constraint(name, &table.name));
            }
        }
        Ok(())
    }

    fn drop_constraint(&mut self, table: &Arc<TableRef>, name: &str, if_exists: bool, cascade: bool) -> SqlResult<()> {
        if table.rules.has_constraint(name) {
            return self.say(table, |notes| {
                let all: Vec<Constraint> = notes.constraints().into_iter().filter(|own| own.name != name).collect();
                notes.set_constraints(&all).map_err(too_much)
            });
        }
        let key = (0..table.index_count()).find(|index| table.index_name(*index) == name && table.is_unique(*index));
        if let Some(index) = key {
            if table.first().indexes[index].attributes().is_of_key(&table.primary_key) {
                return Err(SqlError::unsupported("dropping a primary key"));
            }
            self.drop_referring_to_index(&format!("constraint {name} on table {}", table.name), table, index, cascade)?;
            return self.drop_index_of(table, index);
        }
        let missing = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
        if if_exists {
            self.notice(format!("{missing}, skipping"));
            return Ok(());
        }
        Err(SqlError::new("42704", missing))
    }
}

/// When one of several changes is done: what goes goes first, and what new columns need comes behind them.
fn pass(operation: &AlterTableOperation) -> u8 {
    use AlterColumnOperation as Column;
    match operation {
        AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropConstraint { .. } => 0,
        AlterTableOperation::AlterColumn { op: Column::DropDefault | Column::DropNotNull, .. } => 0,
        AlterTableOperation::AlterColumn { op: Column::SetDataType { .. }, .. } => 1,
        AlterTableOperation::AddColumn { .. } => 2,
        AlterTableOperation::AlterColumn { .. } => 3,
        AlterTableOperation::AddConstraint { constraint: TableConstraint::ForeignKey(_), .. } => 5,
        AlterTableOperation::AddConstraint { .. } => 4,
        _ => 6,
    }
}

/// The name of a table in a query.
pub(super) fn quoted(name: &str) -> String {
    name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".")
}
