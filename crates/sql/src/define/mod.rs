//! Statements that define something: tables, indexes, views, schemas, comments; and TRUNCATE.
//!
//! * `table`: CREATE TABLE; `table_as`: CREATE TABLE AS
//! * `index`: CREATE INDEX
//! * `alter`: ALTER TABLE, ALTER INDEX
//! * `check`: changes that are made without SQL
//! * `constraint`: what of a constraint there is, and its name
//! * `foreign_key`: FOREIGN KEY, and what it keeps from going
//! * `drop`: DROP, TRUNCATE; `dependents`: what needs that which goes
//! * `sequence`: CREATE SEQUENCE, ALTER SEQUENCE
//! * `options`: storage parameters
//! * `partition`: PARTITION BY RANGE, and partitions that come and go; `partition_of`: those with both bounds, ATTACH and DETACH
//!
//! Invariant: all of it happens in the transaction of the session, and is taken back with it. Expressions of defaults and conditions are kept as text, and have been bound once before they are.

mod alter;
mod check;
mod constraint;
mod dependents;
mod drop;
mod foreign_key;
mod index;
pub(crate) mod options;
pub(crate) mod partition;
mod partition_of;
mod retype;
pub(crate) mod sequence;
mod table;
mod table_as;

use crate::bind::Binder;
use crate::bind::view_change::{CheckOption, Doing};
use crate::catalog::TableRef;
use crate::execute::Run;
use crate::expression::ParamTypes;
use crate::parse::{identifier, new_object_name, object_name, short_name};
use crate::print::printed_query;
use crate::session::Notice;
use crate::temporary::Entered;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::Transaction;
use pagefold_format::FormatError;
use pagefold_format::catalog::{DefinedKind, Notes};
use sqlparser::ast::{self, Statement as Node};
use std::sync::Arc;

/// Refuses a name that becomes part of others, behind or before a point or a slash.
fn check_plain(name: &str) -> SqlResult<()> {
    match name.contains(['.', '/']) {
        true => Err(SqlError::new("42602", format!("the name \"{name}\" has a point or a slash in it"))),
        false => Ok(()),
    }
}

/// Binds a part of a definition, which has no parameters.
fn bound<R>(transaction: &mut Transaction<'static>, bind: impl FnOnce(&mut Binder<'_>) -> SqlResult<R>) -> SqlResult<R> {
    let types = ParamTypes::default();
    let mut binder = Binder::new(transaction, &types);
    let bound = bind(&mut binder)?;
    if types.0.borrow().is_empty() { Ok(bound) } else { Err(SqlError::new("42P02", "parameters cannot be in a definition")) }
}

/// Whoever runs a statement that defines something.
pub(crate) struct Defining<'d> {
    pub(crate) transaction: &'d mut Transaction<'static>,
    pub(crate) run: Run<'d>,
    /// What is to be known beside the tag.
    pub(crate) notices: Vec<Notice>,
}

impl<'d> Defining<'d> {
    pub(crate) fn new(transaction: &'d mut Transaction<'static>, run: Run<'d>) -> Defining<'d> {
        Defining { transaction, run, notices: Vec::new() }
    }
}

impl Defining<'_> {
    fn notice(&mut self, message: impl Into<String>) {
        self.notices.push(Notice { message: message.into(), detail: None });
    }

    /// IF NOT EXISTS, of what is there.
    fn skips(&mut self, what: &str, name: &str) {
        self.notice(format!("{what} \"{}\" already exists, skipping", short_name(name)));
    }

    /// Runs a statement; gives its tag.
    pub(crate) fn define(&mut self, node: &Node) -> SqlResult<String> {
        match node {
            Node::CreateTable(table) => self.create_table(table),
            Node::CreateIndex(index) => self.create_index(index),
            Node::CreateView(view) => self.create_view(view),
            Node::CreateSchema { schema_name: ast::SchemaName::Simple(name), if_not_exists, .. } => {
                self.create_schema(name, *if_not_exists)
            }
            Node::Drop { object_type, if_exists, names, cascade, purge: false, temporary: false, table: None, .. } => {
                self.drop_objects(*object_type, *if_exists, names, *cascade)
            }
            Node::CreateSequence { temporary: false, if_not_exists, name, data_type, sequence_options, owned_by } => {
                self.create_sequence(name, data_type.as_ref(), sequence_options, *if_not_exists, owned_by.as_ref())
            }
            Node::Truncate(truncate) => self.truncate(truncate),
            Node::AlterTable(alter) => self.alter_table(alter),
            Node::AlterIndex { name, operation } => self.alter_index(name, operation),
            Node::Comment { object_type, object_name, comment, if_exists: false, .. } => {
                self.comment(object_type, object_name, comment.as_deref())
            }
            other => Err(SqlError::unsupported(first_words(&other.to_string()))),
        }
    }

    /// Binds something on no relation.
    fn bind<R>(&mut self, bind: impl FnOnce(&mut Binder<'_>) -> SqlResult<R>) -> SqlResult<R> {
        bound(self.transaction, bind)
    }

    fn create_view(&mut self, view: &ast::CreateView) -> SqlResult<String> {
        if view.materialized || view.temporary || view.or_alter || !view.cluster_by.is_empty() || view.to.is_some() {
            return Err(SqlError::unsupported("this form of CREATE VIEW"));
        }
        let check = view_options(&view.options)?;
        let name = self.check_schema(&view.name)?;
        // Others use it: it can name no temporary table.
        let _entered = Entered::new(None);
        let mut text = printed_query(&view.query)?;
        if !view.columns.is_empty() {
            let columns: Vec<String> = view.columns.iter().map(|column| column.name.to_string()).collect();
            text = format!("SELECT * FROM ({text}) AS v ({})", columns.join(", "));
        }
        let text = self.with_columns_named(text)?;
        // It is bound once, so that what is wrong shows now.
        let query = crate::parse::parse_query(&text)?;
        let outputs = self.bind(|binder| binder.query(&query))?.outputs;
        let mut notes = Notes::default();
        notes.set_text(Some(&text)).map_err(too_much)?;
        if let Some(check) = check {
            match self.bind(|binder| binder.query_target(&query, &name, (Doing::Ask, Some(check), false))) {
                Err(error) if error.sqlstate() == "55000" => {
                    let refused = SqlError::new("0A000", "WITH CHECK OPTION is supported only on automatically updatable views");
                    return Err(refused.with_detail(error.detail().unwrap_or_default()));
                }
                bound => drop(bound?),
            }
            notes.set_constraints(&[check.constraint()]).map_err(too_much)?;
        }
        match self.transaction.object(DefinedKind::View, &name) {
            Ok(before) if view.or_replace => {
                let before = crate::parse::parse_query(before.notes.text().unwrap_or_default())?;
                // One that finds its tables no more is replaced by whatever comes.
                if let Ok(before) = self.bind(|binder| binder.query(&before)) {
                    same_columns(&before.outputs, &outputs)?;
                }
                self.transaction.alter_object(DefinedKind::View, &name, notes)?;
                self.refuse_circle(&name)?;
            }
            Ok(_) if view.if_not_exists => self.skips("relation", &name),
            _ => {
                self.refuse_taken(&name)?;
                self.transaction.create_object(DefinedKind::View, &name, notes).map_err(|error| taken(error, &name))?;
            }
        }
        Ok("CREATE VIEW".into())
    }

    /// Refuses a view that needs itself: one that has come in the place of another, or to a name that others know.
    fn refuse_circle(&mut self, name: &str) -> SqlResult<()> {
        let _entered = Entered::new(None);
        let view = self.transaction.object(DefinedKind::View, name)?;
        let query = crate::parse::parse_query(view.notes.text().unwrap_or_default())?;
        match self.bind(|binder| binder.query(&query)) {
            Err(error) if error.sqlstate() == "54001" => {
                Err(SqlError::new("42P17", format!("infinite recursion detected in rules for relation \"{}\"", short_name(name))))
            }
            // What it lacks is told to whoever uses it.
            _ => Ok(()),
        }
    }

    fn create_schema(&mut self, name: &ast::ObjectName, if_not_exists: bool) -> SqlResult<String> {
        let name = object_name(name)?;
        if name.starts_with("pg_") {
            let error = SqlError::new("42939", format!("unacceptable schema name \"{name}\""));
            return Err(error.with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        let is_there = name == "public" || self.transaction.object(DefinedKind::Schema, &name).is_ok();
        match (is_there, if_not_exists) {
            (true, true) => self.skips("schema", &name),
            (true, false) => return Err(SqlError::new("42P06", format!("schema \"{name}\" already exists"))),
            _ => {
                check_plain(&name)?;
                self.transaction.create_object(DefinedKind::Schema, &name, Notes::default()).map_err(|error| taken(error, &name))?;
            }
        }
        Ok("CREATE SCHEMA".into())
    }

    /// A name in a schema needs that schema.
    fn check_schema(&mut self, name: &ast::ObjectName) -> SqlResult<String> {
        let whole = new_object_name(name)?;
        crate::catalog::refuse_system(&whole)?;
        if let Some((schema, _)) = whole.split_once('.').filter(|_| name.0.len() == 2)
            && let Err(error) = self.transaction.object(DefinedKind::Schema, schema)
        {
            return Err(match error {
                Error::Unknown { .. } => SqlError::new("3F000", format!("schema \"{schema}\" does not exist")),
                other => other.into(),
            });
        }
        Ok(whole)
    }

    /// Is there anything of this name that can be selected from?
    fn is_taken(&mut self, name: &str) -> SqlResult<bool> {
        Ok(crate::catalog::find_if_any(self.transaction, name)?.is_some())
    }

    fn refuse_taken(&mut self, name: &str) -> SqlResult<()> {
        if self.is_taken(name)? { Err(SqlError::new("42P07", format!("relation \"{name}\" already exists"))) } else { Ok(()) }
    }

    /// Says something else of a table, of all its parts.
    fn say(&mut self, table: &TableRef, change: impl Fn(&mut Notes) -> SqlResult<()>) -> SqlResult<()> {
        let tables = if table.is_divided() {
            // None comes or goes from here on: one that has come since the table was found is told, too.
            let whole = self.transaction.lock_partitioned_table(&table.name)?;
            let tables = whole.partitions().iter().map(|partition| self.transaction.table_of_partition(partition));
            tables.collect::<Result<Vec<_>, Error>>()?
        } else {
            vec![Arc::clone(&table.first().table)]
        };
        for part in &tables {
            let mut notes = (*self.transaction.notes_of_table(part)).clone();
            change(&mut notes)?;
            self.transaction.alter_table(part, notes)?;
        }
        Ok(())
    }

    fn comment(&mut self, kind: &ast::CommentObject, name: &ast::ObjectName, comment: Option<&str>) -> SqlResult<String> {
        match kind {
            ast::CommentObject::Table => {
                let table = TableRef::find(self.transaction, &object_name(name)?)?;
                table.refuse_partition("COMMENT")?;
                self.say(&table, |notes| notes.set_comment(comment).map_err(too_much))?;
            }
            ast::CommentObject::Column => {
                let mut parts = name.0.clone();
                let column = parts.pop().ok_or_else(|| SqlError::syntax("COMMENT ON COLUMN needs a column"))?;
                let table = TableRef::find(self.transaction, &object_name(&ast::ObjectName(parts))?)?;
                table.refuse_partition("COMMENT")?;
                let ast::ObjectNamePart::Identifier(column) = column else { return Err(SqlError::syntax("this is no column")) };
                let column = crate::bind::change::column_of(&table, &column)?;
                let column = u32::try_from(column).map_err(|_| SqlError::new("XX000", "a column number"))?;
                self.say(&table, |notes| {
                    let mut own = notes.column(column);
                    own.comment = comment.map(str::to_owned);
                    notes.set_column(&own).map_err(too_much)
                })?;
            }
            other => return Err(SqlError::unsupported(format!("COMMENT ON {other}"))),
        }
        Ok("COMMENT".into())
    }
}

fn first_words(text: &str) -> String {
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn too_much(error: FormatError) -> SqlError {
    SqlError::new("54000", error.to_string())
}

/// A name that is taken, as PostgreSQL says it.
fn taken(error: Error, name: &str) -> SqlError {
    match error {
        Error::Exists { .. } => SqlError::new("42P07", format!("relation \"{name}\" already exists")),
        other => other.into(),
    }
}

/// Which rows a view lets in. What else WITH says of it is about rights, of which there are none here.
fn view_options(options: &ast::CreateTableOptions) -> SqlResult<Option<CheckOption>> {
    let options = match options {
        ast::CreateTableOptions::None => return Ok(None),
        ast::CreateTableOptions::With(options) => options,
        other => return Err(SqlError::unsupported(format!("{other} of a view"))),
    };
    let mut check = None;
    for option in options {
        let (name, value) = match option {
            ast::SqlOption::KeyValue { key, value } => (identifier(key), crate::settings::text_of(value).to_lowercase()),
            ast::SqlOption::Ident(name) => (identifier(name), "true".into()),
            other => return Err(SqlError::syntax(format!("{other} is no option of a view"))),
        };
        match (name.as_str(), value.as_str()) {
            ("security_barrier" | "security_invoker", "true" | "false" | "on" | "off" | "1" | "0" | "yes" | "no") => {}
            ("security_barrier" | "security_invoker", _) => {
                return Err(SqlError::new("22023", format!("invalid value for boolean option \"{name}\": {value}")));
            }
            ("check_option", _) if check.is_some() => {
                return Err(SqlError::new("22023", "parameter \"check_option\" specified more than once"));
            }
            ("check_option", "local") => check = Some(CheckOption::Local),
            ("check_option", "cascaded") => check = Some(CheckOption::Cascaded),
            ("check_option", _) => {
                let error = SqlError::new("22023", format!("invalid value for enum option \"check_option\": {value}"));
                return Err(error.with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
            _ => return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
        }
    }
    Ok(check)
}

/// A view that is replaced keeps its columns: others may stand behind them.
fn same_columns(before: &[crate::bind::Output], now: &[crate::bind::Output]) -> SqlResult<()> {
    if now.len() < before.len() {
        return Err(SqlError::new("42P16", "cannot drop columns from view"));
    }
    for (old, new) in before.iter().zip(now) {
        if old.name != new.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", old.name, new.name);
            return Err(SqlError::new("42P16", message).with_hint("Drop the view, and make it anew."));
        }
        if old.data_type != new.data_type {
            let (from, to) = (crate::expression::type_name(&old.data_type), crate::expression::type_name(&new.data_type));
            let message = format!("cannot change data type of view column \"{}\" from {from} to {to}", old.name);
            return Err(SqlError::new("42P16", message));
        }
    }
    Ok(())
}
