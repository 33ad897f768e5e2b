//! CREATE TABLE.

use super::constraint::{base_name, check_name, first_free, plain_check, plain_key, plain_unique};
use super::options;
use super::partition::{Division, division};
use super::{Defining, check_plain, taken, too_much};
use crate::bind::types;
use crate::catalog::TableRef;
use crate::parse::{At, identifier, new_object_name};
use crate::print::printed;
use crate::temporary;
use crate::{SqlError, SqlResult};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_format::catalog::{ColumnNotes, Constraint, ConstraintKind, DefinedKind, Identity, Notes};
use pagefold_types::{Column, Direction, Schema};
use sqlparser::ast::{self, ColumnOption, TableConstraint};

/// Page size of tables, where none is said.
const PAGE_BYTES: usize = 16 * 1024;
/// That of indexes of keys.
const INDEX_PAGE_BYTES: usize = 8 * 1024;

/// A key: its name, if it is given one, and its columns.
type Key = (Option<String>, Vec<usize>);

/// A table as it is said, step by step.
#[derive(Default)]
pub(super) struct Said {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    notes: Vec<ColumnNotes>,
    constraints: Vec<Constraint>,
    /// Conditions of CHECK, with their names if they are given one.
    checks: Vec<(Option<String>, String)>,
    primary_key: Option<Key>,
    unique: Vec<Key>,
    /// With the columns that they are about.
    foreign_keys: Vec<ast::ForeignKeyConstraint>,
}

impl Said {
    pub(super) fn new(name: &str) -> Said {
        Said { name: name.to_owned(), ..Said::default() }
    }

    fn column(&self, name: &ast::Ident) -> SqlResult<usize> {
        let wanted = identifier(name);
        let found = self.columns.iter().position(|column| column.name == wanted);
        found.ok_or_else(|| SqlError::new("42703", format!("column \"{wanted}\" named in key does not exist")).at_span(name.span))
    }

    fn key_columns(&self, columns: &[ast::IndexColumn]) -> SqlResult<Vec<usize>> {
        let mut found = Vec::with_capacity(columns.len());
        for column in columns {
            let ast::Expr::Identifier(name) = &column.column.expr else {
                return Err(SqlError::unsupported(format!("the key column {}", column.column)));
            };
            let at = self.column(name)?;
            if found.contains(&at) {
                return Err(SqlError::new("42701", format!("column \"{}\" appears twice in a key", identifier(name))).at_span(name.span));
            }
            found.push(at);
        }
        Ok(found)
    }

    fn set_primary_key(&mut self, name: Option<String>, columns: Vec<usize>) -> SqlResult<()> {
        if self.primary_key.is_some() {
            return Err(SqlError::new("42P16", format!("multiple primary keys for table \"{}\" are not allowed", self.name)));
        }
        self.primary_key = Some((name, columns));
        Ok(())
    }

    fn notes_of(&mut self, column: usize) -> &mut ColumnNotes {
        let id = u32::try_from(column).unwrap_or(u32::MAX);
        let at = self.notes.iter().position(|own| own.column == id).unwrap_or_else(|| {
            self.notes.push(ColumnNotes::new(id));
            self.notes.len() - 1
        });
        &mut self.notes[at]
    }

    fn base_name(&self, columns: &[usize], what: &str) -> String {
        let columns: Vec<&str> = columns.iter().map(|column| self.columns[*column].name.as_str()).collect();
        base_name(&self.name, &columns, what)
    }

    fn has_constraint(&self, name: &str) -> bool {
        self.constraints.iter().any(|constraint| constraint.name == name)
    }

    /// A name for a CHECK that has none.
    fn check_name(&self, condition: &str) -> String {
        let is_key = |name: &String| self.unique.iter().any(|(own, _)| own.as_ref() == Some(name));
        let columns: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        first_free(check_name(&self.name, &columns, condition), |name| self.has_constraint(name) || is_key(name))
    }

    /// The name is settled when all columns are known.
    fn add_check(&mut self, name: Option<&ast::Ident>, condition: &ast::Expr) -> SqlResult<()> {
        self.checks.push((name.map(identifier), printed(condition)?));
        Ok(())
    }

    fn settle_checks(&mut self) -> SqlResult<()> {
        for (name, condition) in std::mem::take(&mut self.checks) {
            let name = name.unwrap_or_else(|| self.check_name(&condition));
            if self.has_constraint(&name) {
                return Err(SqlError::new("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", self.name)));
            }
            let mut constraint = Constraint::new(ConstraintKind::Check, name);
            constraint.condition = Some(condition);
            self.constraints.push(constraint);
        }
        Ok(())
    }
}

impl Defining<'_> {
    pub(super) fn create_table(&mut self, create: &ast::CreateTable) -> SqlResult<String> {
        refuse_other_clauses(create)?;
        if let Some(of) = &create.partition_of {
            return self.create_partition_of(create, of);
        }
        let name =
            if create.temporary { self.temporary_name(&create.name, create.query.is_some())? } else { self.check_schema(&create.name)? };
        if self.is_taken(&name)? {
            if create.if_not_exists {
                // What is wrong with a query is told nevertheless.
                let filling = create.query.as_ref().map(|query| self.filling(create, query)).transpose()?;
                self.skips("relation", &name);
                return Ok(if filling.is_some() { "CREATE TABLE AS" } else { "CREATE TABLE" }.into());
            }
            return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
        }
        let options = match &create.table_options {
            ast::CreateTableOptions::None => Vec::new(),
            ast::CreateTableOptions::With(options) => options::pairs(options)?,
            _ => return Err(SqlError::unsupported("these table options").with_hint("WITH (compress = 'page', page_size = '16K')")),
        };
        if let Some(query) = &create.query {
            return self.create_table_as(&name, create, query, &options);
        }
        let said = self.said(&name, create)?;
        let division = create.partition_by.as_deref().map(division).transpose()?;
        self.make(said, &options, division.as_ref())?;
        Ok("CREATE TABLE".into())
    }

    /// The table that columns and constraints define.
    pub(super) fn said(&mut self, name: &str, create: &ast::CreateTable) -> SqlResult<Said> {
        let mut said = Said::new(name);
        if let Some(like) = &create.like {
            self.columns_like(&mut said, like)?;
        }
        for column in &create.columns {
            self.column(&mut said, column)?;
        }
        for constraint in &create.constraints {
            table_constraint(&mut said, constraint)?;
        }
        said.settle_checks()?;
        Ok(said)
    }

    /// The columns of another table, with NOT NULL, and with defaults where it is said so.
    fn columns_like(&mut self, said: &mut Said, like: &ast::CreateTableLikeKind) -> SqlResult<()> {
        let (ast::CreateTableLikeKind::Parenthesized(like) | ast::CreateTableLikeKind::Plain(like)) = like;
        let of = TableRef::find(self.transaction, &crate::parse::object_name(&like.name)?)?;
        for (at, column) in of.schema.columns().iter().enumerate().filter(|(at, _)| of.visible[*at]) {
            said.columns.push(column.clone());
            if matches!(like.defaults, Some(ast::CreateTableLikeDefaults::Including)) && of.rules.generated[at].is_none() {
                said.notes_of(said.columns.len() - 1).default = of.rules.defaults[at].clone();
            }
        }
        Ok(())
    }

    /// The name of a temporary table, in the schema of the session.
    fn temporary_name(&mut self, name: &ast::ObjectName, is_filled: bool) -> SqlResult<String> {
        let Some(schema) = temporary::own_schema() else { return Err(SqlError::unsupported("a temporary table here")) };
        let whole = match crate::parse::parts(name)?.as_slice() {
            [name] => temporary::in_schema(&schema, &identifier(name)),
            _ => new_object_name(name)?,
        };
        let Some((_, short)) = whole.split_once('.').filter(|(own, _)| **own == *schema) else {
            return Err(SqlError::new("42P16", "cannot create temporary relation in non-temporary schema"));
        };
        check_plain(short)?;
        if self.transaction.object(DefinedKind::Schema, &schema).is_err() {
            self.transaction.create_object(DefinedKind::Schema, &schema, Notes::default()).map_err(|error| taken(error, &schema))?;
        }
        // What it is filled with does not see it.
        if !is_filled {
            temporary::add_name(short);
        }
        Ok(whole)
    }

    fn column(&mut self, said: &mut Said, definition: &ast::ColumnDef) -> SqlResult<()> {
        let name = identifier(&definition.name);
        if said.columns.iter().any(|column| column.name == name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")).at_span(definition.name.span));
        }
        let data_type = types::data_type(&definition.data_type).at_span(definition.name.span)?;
        said.columns.push(Column::new(name.clone(), data_type, true));
        let at = said.columns.len() - 1;
        if types::is_serial(&definition.data_type) {
            self.count(said, at, false, &[])?;
        }
        let is_nullable = definition.options.iter().any(|option| option.option == ColumnOption::Null);
        for option in &definition.options {
            let constraint_name = option.name.as_ref();
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull if is_nullable => {
                    return Err(SqlError::syntax(format!(
                        "conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{}\"",
                        said.name
                    )));
                }
                ColumnOption::NotNull => said.columns[at].nullable = false,
                ColumnOption::Default(_) if said.notes_of(at).default.is_some() => {
                    let which = if said.notes_of(at).identity.is_some() { "both default and identity" } else { "multiple default values" };
                    return Err(SqlError::syntax(format!("{which} specified for column \"{name}\" of table \"{}\"", said.name)));
                }
                ColumnOption::Default(expr) => {
                    let text = printed(expr)?;
                    self.bind(|binder| binder.default_expression(&text, &data_type, &name))?;
                    said.notes_of(at).default = Some(text);
                }
                ColumnOption::PrimaryKey(key) => {
                    plain_key(key).and_then(|_| said.set_primary_key(constraint_name.map(identifier), vec![at]))?
                }
                ColumnOption::Unique(unique) => {
                    plain_unique(unique)?;
                    said.unique.push((constraint_name.map(identifier), vec![at]));
                }
                ColumnOption::Check(check) => said.add_check(constraint_name.or(check.name.as_ref()), plain_check(check)?)?,
                ColumnOption::Generated { generation_expr: None, .. } if said.notes_of(at).default.is_some() => {
                    return Err(SqlError::syntax(format!(
                        "both default and identity specified for column \"{name}\" of table \"{}\"",
                        said.name
                    )));
                }
                ColumnOption::Generated { generated_as, generation_expr: None, sequence_options, .. } => {
                    let always = *generated_as == ast::GeneratedAs::Always;
                    self.count(said, at, always, sequence_options.as_deref().unwrap_or(&[]))?;
                }
                ColumnOption::Generated { generation_expr: Some(expr), .. } => said.notes_of(at).generated = Some(printed(expr)?),
                ColumnOption::ForeignKey(key) => said.foreign_keys.push(of_column(key, option.name.as_ref(), &definition.name)),
                ColumnOption::Collation(name) if name.to_string().trim_matches('"').eq_ignore_ascii_case("C") => {}
                other => return Err(SqlError::unsupported(format!("the column option {other}")).at_span(definition.name.span)),
            }
        }
        Ok(())
    }

    /// Gives a column numbers of a sequence of its own.
    fn count(&mut self, said: &mut Said, column: usize, always: bool, options: &[ast::SequenceOptions]) -> SqlResult<()> {
        let own = &said.columns[column];
        let name = self.free_name(base_name(&said.name, &[&own.name], "seq"), |name| *name == said.name);
        let sequence = self.make_sequence(&name, &own.data_type, options)?;
        said.columns[column].nullable = false;
        let notes = said.notes_of(column);
        notes.default = Some(super::sequence::literal(&name));
        notes.identity = Some(Identity { sequence, always });
        Ok(())
    }

    /// Keys in the order in which they are made. One without a name takes none that an earlier one has.
    fn named_keys(&mut self, said: &Said, primary_key: Option<Key>) -> Vec<(String, Vec<usize>)> {
        let mut keys: Vec<(String, Vec<usize>)> = Vec::with_capacity(said.unique.len() + 1);
        let primary_key = primary_key.map(|(name, columns)| (name, columns, said.base_name(&[], "pkey")));
        let unique = said.unique.iter().map(|(name, columns)| (name.clone(), columns.clone(), said.base_name(columns, "key")));
        for (name, columns, base) in primary_key.into_iter().chain(unique) {
            let is_planned = |name: &String| *name == said.name || said.has_constraint(name) || keys.iter().any(|(own, _)| own == name);
            let name = name.unwrap_or_else(|| self.free_name(base, is_planned));
            keys.push((name, columns));
        }
        keys
    }

    /// Makes the table with the indexes of its keys.
    pub(super) fn make(&mut self, mut said: Said, options: &[(String, String)], division: Option<&Division<'_>>) -> SqlResult<()> {
        if said.columns.is_empty() {
            return Err(SqlError::new("42P16", "a table has at least one column"));
        }
        let primary_key = said.primary_key.take();
        for column in primary_key.iter().flat_map(|(_, columns)| columns) {
            said.columns[*column].nullable = false;
        }
        let schema = Schema::new(said.columns.clone()).map_err(|e| SqlError::new("42P16", format!("table \"{}\": {e}", said.name)))?;
        let mut attributes = TableAttributes::new(said.name.clone(), schema).with_page_bytes(PAGE_BYTES);
        attributes.method = Method::Page;
        let mut attributes = options::of_table(attributes, options)?;
        attributes.primary_key = primary_key.as_ref().map_or_else(Vec::new, |(_, columns)| columns.clone());
        let mut notes = Notes::default();
        said.notes.iter().try_for_each(|own| notes.set_column(own)).map_err(too_much)?;
        notes.set_constraints(&said.constraints).map_err(too_much)?;
        attributes.notes = notes;
        attributes.check()?;
        let keys = self.named_keys(&said, primary_key);
        keys.iter().try_for_each(|(name, _)| refuse_elsewhere(name, &said.name))?;
        let table = match division {
            None => Some(self.transaction.create_table(attributes).map_err(|error| taken(error, &said.name))?),
            Some(division) => {
                let columns = division.columns.iter().map(|name| said.column(name)).collect::<SqlResult<Vec<usize>>>()?;
                let partitions = self.partitions(division, &attributes, &columns)?;
                let made = self.transaction.create_partitioned_table(&attributes, &columns, &partitions);
                made.map_err(|error| taken(error, &said.name))?;
                None
            }
        };
        for (name, columns) in keys {
            let columns = columns.into_iter().map(|column| (column, Direction::Ascending)).collect();
            let index = IndexAttributes::new(name.clone(), columns, true).with_format(IndexFormat::Prefix, INDEX_PAGE_BYTES);
            let index = options::of_key(index, options)?;
            let made = match &table {
                Some(table) => self.transaction.create_index(table, index).map(drop),
                None => self.transaction.create_partitioned_index(&said.name, &index),
            };
            made.map_err(|error| taken(error, &name))?;
        }
        // What cannot be bound is refused before a row needs it.
        let found = TableRef::find(self.transaction, &said.name)?;
        self.bind(|binder| binder.row_rules(&found))?;
        said.foreign_keys.iter().try_for_each(|key| self.add_foreign_key(&said.name, key, false))
    }
}

/// REFERENCES behind a column.
pub(super) fn of_column(key: &ast::ForeignKeyConstraint, name: Option<&ast::Ident>, column: &ast::Ident) -> ast::ForeignKeyConstraint {
    ast::ForeignKeyConstraint { name: name.or(key.name.as_ref()).cloned(), columns: vec![column.clone()], ..key.clone() }
}

/// Refuses the name of a key's index that would lie in another schema than its table: a name with a point in it.
pub(super) fn refuse_elsewhere(name: &str, table: &str) -> SqlResult<()> {
    let schema = |name: &str| name.rsplit_once('.').map(|(schema, _)| schema.to_owned());
    match schema(name) {
        Some(own) if schema(table).is_none_or(|of_table| of_table != own) => {
            Err(SqlError::new("42602", format!("the name \"{name}\" has a point in it")))
        }
        _ => Ok(()),
    }
}

fn table_constraint(said: &mut Said, constraint: &TableConstraint) -> SqlResult<()> {
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            let columns = said.key_columns(&plain_key(key)?.columns)?;
            said.set_primary_key(key.name.as_ref().map(identifier), columns)
        }
        TableConstraint::Unique(unique) => {
            let columns = said.key_columns(&plain_unique(unique)?.columns)?;
            said.unique.push((unique.name.as_ref().map(identifier), columns));
            Ok(())
        }
        TableConstraint::Check(check) => said.add_check(check.name.as_ref(), plain_check(check)?),
        TableConstraint::ForeignKey(key) => {
            said.foreign_keys.push(key.clone());
            Ok(())
        }
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

fn refuse_other_clauses(create: &ast::CreateTable) -> SqlResult<()> {
    let unsupported = [
        (create.order_by.is_some() || create.cluster_by.is_some() || create.clustered_by.is_some(), "ORDER BY and CLUSTER BY of a table"),
        (create.comment.is_some(), "COMMENT in CREATE TABLE"),
        (create.or_replace, "OR REPLACE"),
        (create.external, "EXTERNAL"),
        (create.clone.is_some(), "CLONE"),
        (create.partition_of.is_some() && create.query.is_some(), "AS behind PARTITION OF"),
        (create.partition_of.is_some() && create.partition_by.is_some(), "partitions of a partition"),
        (
            create.partition_of.is_some() && !(create.columns.is_empty() && create.constraints.is_empty() && create.like.is_none()),
            "columns and constraints of one partition: all have those of the table",
        ),
        (create.inherits.is_some() && !super::table_as::is_without_data(create), "INHERITS"),
        (!matches!(create.on_commit, None | Some(ast::OnCommit::PreserveRows)), "ON COMMIT DROP and DELETE ROWS"),
        (!create.temporary && create.on_commit.is_some(), "ON COMMIT of what is no temporary table"),
        (create.without_rowid || create.strict, "a table as SQLite has it"),
    ];
    match unsupported.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(SqlError::unsupported(name)),
        None => Ok(()),
    }
}
