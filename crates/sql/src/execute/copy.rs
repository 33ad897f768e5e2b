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
use crate::bind::copy::{CopyFromPlan, CopyToPlan, TextInput, TextOutput};
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

/// Rows on their way into a table.
pub(super) struct Incoming<'p> {
    plan: &'p CopyFromPlan,
    /// What is counted: lines, or rows.
    unit: &'static str,
    batch: Batch,
    keeper: Keeper<'p>,
    changed: Changed,
    /// What waits is kept beside all else.
    bytes_max: usize,
}

/// Rows that wait, with their lines.
#[derive(Default)]
struct Batch {
    rows: Vec<Tuple>,
    lines: Vec<u64>,
    bytes: usize,
}

impl<'p> Incoming<'p> {
    pub(super) fn new(plan: &'p CopyFromPlan, unit: &'static str, execution: &Execution) -> Incoming<'p> {
        let bytes_max = BATCH_BYTES.min(execution.budget.most() / 4);
        let keeper = Keeper::new(&plan.insert.references);
        Incoming { plan, unit, batch: Batch::default(), keeper, changed: Changed::default(), bytes_max }
    }

    /// Takes a row, which was in this line; `None` where WHERE is not true of it.
    pub(super) fn take(
        &mut self,
        row: Option<Tuple>,
        number: u64,
        transaction: &mut Transaction<'static>,
        execution: &Execution,
    ) -> SqlResult<()> {
        if let Some(row) = row {
            self.batch.bytes += bytes_of(&row);
            self.batch.rows.push(row);
            self.batch.lines.push(number);
        }
        if self.batch.rows.len() >= BATCH_ROWS || self.batch.bytes >= self.bytes_max {
            self.insert(transaction, execution)?;
        }
        execution.look()
    }

    /// All have come.
    pub(super) fn finish(mut self, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Changed> {
        self.insert(transaction, execution)?;
        self.keeper.finish(transaction, execution)?;
        Ok(self.changed)
    }

    /// Inserts what waits.
    fn insert(&mut self, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<()> {
        let table = &self.plan.insert.table;
        let in_line = |error: SqlError, line: u64| error.in_context(|| place(self.plan, self.unit, line));
        // All come, or none does; then the one that is refused is looked for.
        let are_in = match table.is_divided() {
            true => false,
            false => match insert_all(table, transaction, &self.batch.rows) {
                Ok(()) => true,
                Err(error) if is_of_row(&error) && transaction.failure().is_none() => false,
                Err(error) => return Err(in_line(error, self.batch.lines.first().copied().unwrap_or(0))),
            },
        };
        for (row, line) in self.batch.rows.iter().zip(&self.batch.lines) {
            execution.look()?;
            if !are_in {
                insert_one(table, transaction, row).map_err(|error| in_line(error, *line))?;
            }
            if !self.keeper.is_idle() {
                self.keeper.came(transaction, execution, 0, None, row).map_err(|error| in_line(error, *line))?;
            }
        }
        self.changed.rows += self.batch.rows.len() as u64;
        self.batch.rows.clear();
        self.batch.lines.clear();
        self.batch.bytes = 0;
        Ok(())
    }
}

/// Where a row is.
pub(super) fn place(plan: &CopyFromPlan, unit: &str, number: u64) -> String {
    format!("COPY {}, {unit} {number}", short_name(&plan.insert.table.name))
}

/// Runs COPY FROM with a text.
pub(crate) fn copy_from(
    plan: &CopyFromPlan,
    text: &TextInput,
    input: &mut dyn BufRead,
    transaction: &mut Transaction<'static>,
    execution: &Execution,
) -> SqlResult<Changed> {
    let context = execution.context();
    let mut records = Records::new(input, &text.format);
    let mut incoming = Incoming::new(plan, "line", execution);
    let mut fields = Fields::default();
    let mut is_header = text.format.header != Header::None;
    loop {
        let line = |records: &Records<'_>| place(plan, "line", records.line());
        let is_there = records.next(&execution.limits).map_err(|error| error.in_context(|| line(&records)))?;
        if !is_there {
            break;
        }
        let in_line = |error: SqlError| error.in_context(|| format!("{}: \"{}\"", line(&records), excerpt(records.text())));
        if std::mem::take(&mut is_header) {
            check_header(text, &records, &mut fields).map_err(in_line)?;
            continue;
        }
        records.split(&mut fields, text.fields.len()).map_err(in_line)?;
        let in_column = |error: SqlError, column: &str, text: Option<&str>| {
            error.in_context(|| match text {
                Some(text) => format!("{}, column {column}: \"{}\"", line(&records), excerpt(text)),
                None => format!("{}, column {column}: null input", line(&records)),
            })
        };
        let values = values(text, &context, &fields, &in_column).map_err(in_line)?;
        let row = new_row(plan, &context, &values).map_err(in_line)?;
        incoming.take(row, records.line(), transaction, execution)?;
    }
    incoming.finish(transaction, execution)
}

/// The first line, if its names are to be those of the columns.
fn check_header(plan: &TextInput, records: &Records<'_>, fields: &mut Fields) -> SqlResult<()> {
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
    plan: &TextInput,
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
pub(super) fn new_row(plan: &CopyFromPlan, context: &Context<'_>, values: &[Value]) -> SqlResult<Option<Tuple>> {
    let mut row = given_row(&plan.insert, context, values)?;
    if let Some(condition) = &plan.condition
        && !context.is_true(condition, &row)?
    {
        return Ok(None);
    }
    follow(&plan.insert.table, &plan.insert.rules, context, &mut row)?;
    Ok(Some(row))
}

/// Is an error about one of the rows, and nothing else?
fn is_of_row(error: &SqlError) -> bool {
    matches!(error.engine(), Some(Error::DuplicateKey { .. } | Error::OutOfRange { .. } | Error::Value(_)))
}

/// Runs COPY TO with a text; how many rows were written.
pub(crate) fn copy_to(
    plan: &CopyToPlan,
    text: &TextOutput,
    source: &mut dyn Operator,
    output: &mut dyn Write,
    execution: &Execution,
) -> SqlResult<u64> {
    let context = execution.context();
    let mut writer = RecordWriter::new(&text.format, &text.quoted);
    if text.format.header != Header::None {
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
