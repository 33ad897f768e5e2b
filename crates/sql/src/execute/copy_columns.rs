//! COPY with a file of columns that have names and types.
//!
//! Invariants:
//! - columns of the file are found by their names, and each is the value of its column as in an INSERT: what may not be assigned is refused before the first row;
//! - an error of a row says which one it was.

use super::change::Changed;
use super::copy::{Incoming, new_row, place};
use super::{Execution, Operator, Tuple};
use crate::bind::copy::{CopyFromPlan, CopyToPlan};
use crate::copy::columnar::{ColumnFiles, ColumnFormat, FileColumn, RowTaker};
use crate::copy::file::{CopyFile, path_to_read};
use crate::expression::{Expr, ParamTypes, Typed, make};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::Transaction;
use pagefold_types::Value;

/// What takes the rows of a file into the table.
struct Taker<'a> {
    plan: &'a CopyFromPlan,
    transaction: &'a mut Transaction<'static>,
    execution: &'a Execution,
    incoming: Incoming<'a>,
    /// For each column that is copied, its value of a row of the file.
    values: Vec<Expr>,
    row: u64,
}

impl RowTaker for Taker<'_> {
    fn columns(&mut self, columns: &[FileColumn]) -> SqlResult<()> {
        let schema = &self.plan.insert.table.schema;
        let wrong = |message: String| SqlError::new("22P04", message);
        let names: Vec<&str> = self.plan.targets.iter().map(|target| schema.columns()[*target].name.as_str()).collect();
        if let Some(other) = columns.iter().find(|column| !names.contains(&column.name.as_str())) {
            let hint = format!("COPY takes these: {}.", names.join(", "));
            return Err(wrong(format!("the file has a column \"{}\", which is not copied", other.name)).with_hint(hint));
        }
        for target in &self.plan.targets {
            let own = &schema.columns()[*target];
            let Some(at) = columns.iter().position(|column| column.name == own.name) else {
                let error = wrong(format!("the file has no column \"{}\"", own.name));
                return Err(error.with_hint("Columns that a file does not have are left out of the list behind the name of the table."));
            };
            let given = Typed::of(Expr::Slot(at), columns[at].data_type);
            self.values.push(make::assign(given, &own.data_type, &own.name, &ParamTypes::default())?.expr);
        }
        Ok(())
    }

    fn row(&mut self, given: Vec<Value>) -> SqlResult<()> {
        self.row += 1;
        let (context, number) = (self.execution.context(), self.row);
        let values =
            no_nul(&given).and_then(|()| self.values.iter().map(|value| context.evaluate(value, &given)).collect::<SqlResult<Tuple>>());
        let row = values.and_then(|values| new_row(self.plan, &context, &values));
        let row = row.map_err(|error| error.in_context(|| place(self.plan, "row", number)))?;
        self.incoming.take(row, number, self.transaction, self.execution)
    }
}

/// A text of SQL has no NUL character; one of a file may.
fn no_nul(given: &[Value]) -> SqlResult<()> {
    match given.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0'))) {
        true => Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00")),
        false => Ok(()),
    }
}

/// Runs COPY FROM.
pub(crate) fn copy_from(
    plan: &CopyFromPlan,
    (files, format, name): (&dyn ColumnFiles, ColumnFormat, &str),
    transaction: &mut Transaction<'static>,
    execution: &Execution,
) -> SqlResult<Changed> {
    let path = path_to_read(execution.database.engine(), name)?;
    let incoming = Incoming::new(plan, "row", execution);
    let mut taker = Taker { plan, transaction, execution, incoming, values: Vec::new(), row: 0 };
    files.read(execution.database.engine().outside(), &path, format, &mut taker)?;
    let Taker { incoming, transaction, .. } = taker;
    incoming.finish(transaction, execution)
}

/// Runs COPY TO; how many rows were written.
pub(crate) fn copy_to(
    plan: &CopyToPlan,
    (files, format, name): (&dyn ColumnFiles, ColumnFormat, &str),
    source: &mut dyn Operator,
    execution: &Execution,
) -> SqlResult<u64> {
    let context = execution.context();
    let columns: Vec<FileColumn> =
        plan.names.iter().zip(&plan.types).map(|(name, data_type)| FileColumn { name: name.clone(), data_type: *data_type }).collect();
    if let Some((_, twice)) = columns.iter().enumerate().find(|(at, column)| columns[..*at].iter().any(|other| other.name == column.name)) {
        return Err(SqlError::new("42701", format!("column \"{}\" comes twice, and in a file each has a name of its own", twice.name)));
    }
    let mut file = CopyFile::create(execution.database.engine(), name)?;
    let mut rows = 0;
    files.write(&mut file, format, &columns, &mut || {
        execution.look()?;
        let mut row = Tuple::new();
        let is_there = source.fill(&context, &mut row)?;
        rows += u64::from(is_there);
        Ok(is_there.then_some(row))
    })?;
    file.finish()?;
    Ok(rows)
}
