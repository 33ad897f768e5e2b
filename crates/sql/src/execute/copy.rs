//! COPY that runs.
//!
//! Rows that are read come into the table some at once, as those of an INSERT. Where some of them are refused, they come one by one, so that the error says which line it was.
//!
//! Invariants:
//! - no more than [`BATCH_BYTES`] of rows, and a record, are kept of an input of whatever size;
//! - an error of a row says table and line, that of a value its column, too ([`SqlError::context`]).

use super::change::{Changed, follow, given_row, insert_all, insert_one};
use super::foreign_key::Keeper;
use super::{Context, Execution, Operator, Tuple, bytes_of};
use crate::bind::copy::{CopyFromPlan, CopyToPlan};
use crate::copy::options::Header;
use crate::copy::record::{Fields, Records};
use crate::copy::write::RecordWriter;
use crate::expression::Expr;
use crate::parse::short_name;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::Transaction;
use pagefold_types::Value;
use std::io::{BufRead, Write};

/// Rows that come into a table together.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 256 << 10;

/// Characters of the input that are told.
const EXCERPT: usize = 100;

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Rows that wait, with their lines.
#[derive(Default)]
struct Batch {
    rows: Vec<Tuple>,
    lines: Vec<u64>,
    bytes: usize,
}

/// Runs COPY FROM.
pub(crate) fn copy_from(
    plan: &CopyFromPlan,
    input: &mut dyn BufRead,
    transaction: &mut Transaction<'static>,
    execution: &Execution,
) -> SqlResult<Changed> {
    let context = execution.context();
    let table = short_name(&plan.insert.table.name);
    let mut records = Records::new(input, &plan.format);
    let mut keeper = Keeper::new(&plan.insert.references);
    let (mut fields, mut batch, mut changed) = (Fields::default(), Batch::default(), Changed::default());
    let mut is_header = plan.format.header != Header::None;
    // What waits is kept beside all else.
    let bytes_max = BATCH_BYTES.min(execution.budget.most() / 4);
    loop {
        let line = |records: &Records<'_>| format!("COPY {table}, line {}", records.line());
        let is_there = records.next(&execution.limits).map_err(|error| error.in_context(|| line(&records)))?;
        if !is_there {
            break;
        }
        let in_line = |error: SqlError| error.in_context(|| format!("{}: \"{}\"", line(&records), excerpt(records.text())));
        if std::mem::take(&mut is_header) {
            check_header(plan, &records, &mut fields).map_err(in_line)?;
            continue;
        }
        records.split(&mut fields, plan.fields.len()).map_err(in_line)?;
        let in_column = |error: SqlError, column: &str, text: Option<&str>| {
            error.in_context(|| match text {
                Some(text) => format!("{}, column {column}: \"{}\"", line(&records), excerpt(text)),
                None => format!("{}, column {column}: null input", line(&records)),
            })
        };
        let values = values(plan, &context, &fields, &in_column).map_err(in_line)?;
        if let Some(row) = new_row(plan, &context, &values).map_err(in_line)? {
            batch.bytes += bytes_of(&row);
            batch.rows.push(row);
            batch.lines.push(records.line());
        }
        if batch.rows.len() >= BATCH_ROWS || batch.bytes >= bytes_max {
            changed.rows += batch.insert(plan, transaction, execution, &mut keeper)?;
        }
        execution.look()?;
    }
    changed.rows += batch.insert(plan, transaction, execution, &mut keeper)?;
    keeper.finish(transaction, execution)?;
    Ok(changed)
}

/// The first line, if its names are to be those of the columns.
fn check_header(plan: &CopyFromPlan, records: &Records<'_>, fields: &mut Fields) -> SqlResult<()> {
    if plan.format.header != Header::Match {
        return Ok(());
    }
    records.split(fields, plan.fields.len())?;
    let wrong = |message: String| Err(SqlError::new("22P04", message));
    if fields.count() != plan.fields.len() {
        return wrong(format!("wrong number of fields in header line: got {}, expected {}", fields.count(), plan.fields.len()));
    }
    for (at, field) in plan.fields.iter().enumerate() {
        let number = at + 1;
        match fields.get(at) {
            Some(name) if name == field.name => {}
            Some(name) => {
                let name = excerpt(name);
                return wrong(format!("column name mismatch in header line field {number}: got \"{name}\", expected \"{}\"", field.name));
            }
            None => {
                let null = &plan.format.null;
                return wrong(format!(
                    "column name mismatch in header line field {number}: got null value (\"{null}\"), expected \"{}\"",
                    field.name
                ));
            }
        }
    }
    Ok(())
}

/// The values of a record's texts.
fn values(
    plan: &CopyFromPlan,
    context: &Context<'_>,
    fields: &Fields,
    in_column: &dyn Fn(SqlError, &str, Option<&str>) -> SqlError,
) -> SqlResult<Tuple> {
    if fields.count() > plan.fields.len() {
        return Err(SqlError::new("22P04", "extra data after last expected column"));
    }
    let mut values = Tuple::with_capacity(plan.fields.len());
    for (at, field) in plan.fields.iter().enumerate() {
        if at >= fields.count() {
            return Err(SqlError::new("22P04", format!("missing data for column \"{}\"", field.name)));
        }
        let text = match fields.get(at) {
            None if field.force_not_null => Some(plan.format.null.as_str()),
            Some(text) if field.force_null && text == plan.format.null => None,
            text => text,
        };
        let given = text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
        let value = match &field.value {
            Expr::Slot(_) => given,
            expr => context.evaluate(expr, &[given]).map_err(|error| in_column(error, &field.name, text))?,
        };
        values.push(value);
    }
    Ok(values)
}

/// The row that these values are in the table; `None` where WHERE is not true of it.
fn new_row(plan: &CopyFromPlan, context: &Context<'_>, values: &[Value]) -> SqlResult<Option<Tuple>> {
    let mut row = given_row(&plan.insert, context, values)?;
    if let Some(condition) = &plan.condition
        && !context.is_true(condition, &row)?
    {
        return Ok(None);
    }
    follow(&plan.insert.table, &plan.insert.rules, context, &mut row)?;
    Ok(Some(row))
}

impl Batch {
    /// Inserts what waits; how many rows that were.
    fn insert(
        &mut self,
        plan: &CopyFromPlan,
        transaction: &mut Transaction<'static>,
        execution: &Execution,
        keeper: &mut Keeper<'_>,
    ) -> SqlResult<u64> {
        let table = &plan.insert.table;
        let in_line = |error: SqlError, line: u64| error.in_context(|| format!("COPY {}, line {line}", short_name(&table.name)));
        // All come, or none does; then the one that is refused is looked for.
        let are_in = match table.is_divided() {
            true => false,
            false => match insert_all(table, transaction, &self.rows) {
                Ok(()) => true,
                Err(error) if is_of_row(&error) && transaction.failure().is_none() => false,
                Err(error) => return Err(in_line(error, self.lines.first().copied().unwrap_or(0))),
            },
        };
        for (row, line) in self.rows.iter().zip(&self.lines) {
            execution.look()?;
            if !are_in {
                insert_one(table, transaction, row).map_err(|error| in_line(error, *line))?;
            }
            if !keeper.is_idle() {
                keeper.came(transaction, execution, 0, None, row).map_err(|error| in_line(error, *line))?;
            }
        }
        let rows = self.rows.len() as u64;
        *self = Batch { rows: std::mem::take(&mut self.rows), lines: std::mem::take(&mut self.lines), bytes: 0 };
        self.rows.clear();
        self.lines.clear();
        Ok(rows)
    }
}

/// Is an error about one of the rows, and nothing else?
fn is_of_row(error: &SqlError) -> bool {
    matches!(error.engine(), Some(Error::DuplicateKey { .. } | Error::OutOfRange { .. } | Error::Value(_)))
}

/// Runs COPY TO; how many rows were written.
pub(crate) fn copy_to(plan: &CopyToPlan, source: &mut dyn Operator, output: &mut dyn Write, execution: &Execution) -> SqlResult<u64> {
    let context = execution.context();
    let mut writer = RecordWriter::new(&plan.format, &plan.quoted);
    if plan.format.header != Header::None {
        writer.names(plan.names.iter().map(String::as_str))?;
    }
    let (mut row, mut rows) = (Tuple::new(), 0);
    while source.fill(&context, &mut row)? {
        execution.look()?;
        writer.row(&row, &plan.types)?;
        rows += 1;
        if writer.is_full() {
            output.write_all(writer.bytes()).map_err(not_written)?;
            writer.clear();
        }
    }
    output.write_all(writer.bytes()).and_then(|()| output.flush()).map_err(not_written)?;
    Ok(rows)
}

fn not_written(error: std::io::Error) -> SqlError {
    let sqlstate = if error.kind() == std::io::ErrorKind::StorageFull { "53100" } else { "58030" };
    SqlError::new(sqlstate, format!("could not write what was copied: {error}"))
}
