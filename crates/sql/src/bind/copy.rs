//! COPY: the table, its columns and rules, or the query.
//!
//! Invariant: what comes out for COPY FROM is an INSERT whose rows are those of the input, so the table's rules are the same.

use super::change::{column_of, to_slots};
use super::insert::InsertPlan;
use super::scope::{Source, table_columns};
use super::{Binder, Output, TEXT};
use crate::catalog::{self, Found, TableRef};
use crate::copy::columnar::ColumnFormat;
use crate::copy::options::{Columns, CopyFormat, TextFormat, no_file};
use crate::copy::statement::{CopyEnd, CopySource, CopyStatement};
use crate::expression::{Expr, Typed, make};
use crate::parse::{At, identifier, object_name, parse_query, short_name};
use crate::plan::Plan;
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use pagefold_types::DataType;
use sqlparser::ast::{self, Ident, Spanned};
use std::sync::Arc;

/// COPY FROM.
#[derive(Debug)]
pub(crate) struct CopyFromPlan {
    /// What is done with a row of values, one for each of the columns that are copied. Its own source has none.
    pub(crate) insert: InsertPlan,
    /// These columns, by number.
    pub(crate) targets: Vec<usize>,
    /// Of a row with all columns of the table, before generated ones are computed.
    pub(crate) condition: Option<Expr>,
    pub(crate) input: CopyInput,
}

/// Where the rows come from.
#[derive(Debug)]
pub(crate) enum CopyInput {
    Text(TextInput),
    Columns { format: ColumnFormat, file: String },
}

#[derive(Debug)]
pub(crate) struct TextInput {
    pub(crate) format: TextFormat,
    /// For each column that is copied.
    pub(crate) fields: Vec<CopyField>,
    /// `None`: whoever runs it gives the text.
    pub(crate) file: Option<String>,
}

/// A text of each record, and the column it is for.
#[derive(Debug)]
pub(crate) struct CopyField {
    pub(crate) name: String,
    /// The value of the column, of the one text.
    pub(crate) value: Expr,
    pub(crate) force_not_null: bool,
    pub(crate) force_null: bool,
}

/// COPY TO.
#[derive(Debug)]
pub(crate) struct CopyToPlan {
    pub(crate) source: Plan,
    pub(crate) names: Vec<String>,
    pub(crate) types: Vec<DataType>,
    pub(crate) output: CopyOutput,
}

/// Where rows go.
#[derive(Debug)]
pub(crate) enum CopyOutput {
    Text(TextOutput),
    Columns { format: ColumnFormat, file: String },
}

#[derive(Debug)]
pub(crate) struct TextOutput {
    pub(crate) format: TextFormat,
    /// For each column: it is quoted whatever it has.
    pub(crate) quoted: Vec<bool>,
    /// `None`: whoever runs it takes the text.
    pub(crate) file: Option<String>,
}

impl Binder<'_> {
    pub(crate) fn copy_from(&mut self, copy: &CopyStatement) -> SqlResult<CopyFromPlan> {
        let CopySource::Table { name, columns } = &copy.source else { return Err(SqlError::syntax("COPY FROM of a query")) };
        let table = TableRef::find(self.transaction, &object_name(name)?).at_span(name.span())?;
        let targets = copied_columns(&table, columns)?;
        let input = match (&copy.format, &copy.end) {
            (CopyFormat::Text(format), end) => {
                CopyInput::Text(TextInput { format: format.clone(), fields: self.copy_fields(format, &table, &targets)?, file: file(end) })
            }
            (CopyFormat::Columns(format), CopyEnd::File(name)) => CopyInput::Columns { format: *format, file: name.clone() },
            (CopyFormat::Columns(format), CopyEnd::Client) => return Err(no_file(*format)),
        };
        let value_of = |binder: &mut Self, column| match targets.iter().position(|target| *target == column) {
            Some(at) => Ok(Expr::Slot(at)),
            None => binder.default_of(&table, column),
        };
        let exprs = (0..table.schema.len()).map(|column| value_of(self, column)).collect::<SqlResult<Vec<Expr>>>()?;
        let condition = copy.condition.as_ref().map(|condition| self.copy_condition(&table, &object_name(name)?, condition)).transpose()?;
        let insert = self.plain_insert(table, Plan::default(), exprs)?;
        Ok(CopyFromPlan { insert, targets, condition, input })
    }

    /// How each column comes of a text.
    fn copy_fields(&mut self, format: &TextFormat, table: &TableRef, targets: &[usize]) -> SqlResult<Vec<CopyField>> {
        let mut fields = Vec::with_capacity(targets.len());
        let names: Vec<String> = targets.iter().map(|column| table.schema.columns()[*column].name.clone()).collect();
        let not_null = forced(&format.force_not_null, "FORCE_NOT_NULL", &names)?;
        let null = forced(&format.force_null, "FORCE_NULL", &names)?;
        for (at, column) in targets.iter().enumerate() {
            let own = &table.schema.columns()[*column];
            let text = Typed::of(Expr::Slot(0), TEXT);
            // A text that is too long is no value of the column, where a cast would cut it.
            let value = match own.data_type.is_text() {
                true => make::assign(text, &own.data_type, &own.name, self.params)?,
                false => make::cast(text, own.data_type, self.params)?,
            };
            fields.push(CopyField { name: own.name.clone(), value: value.expr, force_not_null: not_null[at], force_null: null[at] });
        }
        Ok(fields)
    }

    /// WHERE: of the row as it is given.
    fn copy_condition(&mut self, table: &Arc<TableRef>, name: &str, condition: &ast::Expr) -> SqlResult<Expr> {
        let (scopes, subplans) = (std::mem::take(&mut self.scopes), self.subplans.len());
        self.scope().add(short_name(name).to_owned(), table_columns(table), Source::Given)?;
        let bound = self.without_aggregates("COPY FROM WHERE conditions", |binder| binder.condition(condition, "WHERE"));
        self.scopes = scopes;
        self.refuse_subqueries(subplans, "COPY FROM WHERE conditions")?;
        let mut bound = bound?;
        to_slots(&mut bound);
        let mut is_generated = false;
        bound.visit(&mut |part| {
            if let Expr::Slot(column) = part {
                is_generated |= table.rules.generated.get(*column).is_some_and(Option::is_some);
            }
        });
        match is_generated {
            true => Err(SqlError::new("42P10", "generated columns are not supported in COPY FROM WHERE conditions")),
            false => Ok(bound),
        }
    }

    pub(crate) fn copy_to(&mut self, copy: &CopyStatement) -> SqlResult<CopyToPlan> {
        let of_table;
        let query = match &copy.source {
            CopySource::Query(query) if query.locks.is_empty() => query,
            CopySource::Query(_) => return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE in COPY")),
            CopySource::Table { name, columns } => {
                of_table = self.table_query(name, columns).at_span(name.span())?;
                &of_table
            }
        };
        let planned = self.query(query)?;
        let (names, types): (Vec<String>, Vec<DataType>) =
            planned.outputs.into_iter().map(|Output { name, data_type }| (name, data_type)).unzip();
        let output = match (&copy.format, &copy.end) {
            (CopyFormat::Text(format), end) => {
                let quoted = forced(&format.force_quote, "FORCE_QUOTE", &names)?;
                CopyOutput::Text(TextOutput { format: format.clone(), quoted, file: file(end) })
            }
            (CopyFormat::Columns(format), CopyEnd::File(name)) => CopyOutput::Columns { format: *format, file: name.clone() },
            (CopyFormat::Columns(format), CopyEnd::Client) => return Err(no_file(*format)),
        };
        Ok(CopyToPlan { source: planned.plan, names, types, output })
    }

    /// The rows of a table as a query. Names go into it as they are: written as text some would be others.
    fn table_query(&mut self, name: &ast::ObjectName, columns: &[Ident]) -> SqlResult<Box<ast::Query>> {
        let wanted = object_name(name)?;
        let columns: Option<Vec<Ident>> = match SystemTable::named(&wanted) {
            Some(_) if columns.is_empty() => None,
            Some(_) => Some(columns.to_vec()),
            None => match catalog::find(self.transaction, &wanted)? {
                Found::Table(table) => {
                    let named = |column: usize| Ident::with_quote('"', &table.schema.columns()[column].name);
                    Some(copied_columns(&table, columns)?.into_iter().map(named).collect())
                }
                Found::View(_) => {
                    let error = SqlError::new("42809", format!("cannot copy from view \"{wanted}\""));
                    return Err(error.with_hint("Try the COPY (SELECT ...) TO variant."));
                }
            },
        };
        let mut query = parse_query("SELECT * FROM t")?;
        if let ast::SetExpr::Select(select) = &mut *query.body {
            if let Some(columns) = columns {
                select.projection = columns.into_iter().map(|column| ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(column))).collect();
            }
            if let Some(ast::TableWithJoins { relation: ast::TableFactor::Table { name: own, .. }, .. }) = select.from.first_mut() {
                own.clone_from(name);
            }
        }
        Ok(query)
    }
}

/// For each column that is copied: is it one that an option names?
fn forced(columns: &Columns, option: &str, names: &[String]) -> SqlResult<Vec<bool>> {
    let Columns::Named(wanted) = columns else { return Ok(vec![true; names.len()]) };
    let mut forced = vec![false; names.len()];
    for ident in wanted {
        let name = identifier(ident);
        let Some(at) = names.iter().position(|own| *own == name) else {
            let error = SqlError::new("42P10", format!("{option} column \"{name}\" not referenced by COPY"));
            return Err(error.at_span(ident.span));
        };
        forced[at] = true;
    }
    Ok(forced)
}

fn file(end: &CopyEnd) -> Option<String> {
    match end {
        CopyEnd::Client => None,
        CopyEnd::File(name) => Some(name.clone()),
    }
}

/// Columns by number: those that are named, or all but generated ones.
fn copied_columns(table: &TableRef, names: &[Ident]) -> SqlResult<Vec<usize>> {
    if names.is_empty() {
        let is_copied = |column: &usize| table.visible[*column] && table.rules.generated[*column].is_none();
        return Ok((0..table.schema.len()).filter(is_copied).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = column_of(table, name)?;
        if columns.contains(&column) {
            return Err(SqlError::new("42701", format!("column \"{}\" specified more than once", identifier(name))).at_span(name.span));
        }
        if table.rules.generated[column].is_some() {
            let error = SqlError::new("42P10", format!("column \"{}\" is a generated column", table.schema.columns()[column].name));
            return Err(error.with_detail("Generated columns cannot be used in COPY.").at_span(name.span));
        }
        columns.push(column);
    }
    Ok(columns)
}
