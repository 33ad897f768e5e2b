//! Parquet and Arrow files for COPY, by [`pagefold_interchange`].

use pagefold_interchange::{ColumnView, FileFormat, Inputs, InterchangeError, OpenSource, ParquetOptions, RowSink, TableSchema};
use pagefold_io::Storage;
use pagefold_sql::{ColumnFiles, ColumnFormat, FileColumn, RowTaker, SqlError, SqlResult};
use pagefold_types::{Column, Schema, Value};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

impl ColumnFiles for super::utilities::AllUtilities {
    fn read(&self, storage: &Arc<dyn Storage>, path: &Path, format: ColumnFormat, rows: &mut dyn RowTaker) -> SqlResult<()> {
        let inputs = Inputs::open(storage.as_ref(), &[path.to_owned()]).map_err(failed)?;
        let found = inputs.format().unwrap_or_default();
        if !found.eq_ignore_ascii_case(format.name()) {
            let message = format!("\"{}\" is no file in format \"{}\"", path.display(), format.name());
            return Err(SqlError::new("22P04", message).with_detail(format!("It seems to be {found}.")));
        }
        let mut source = inputs.source(storage.as_ref(), &OpenSource::default()).map_err(failed)?;
        let schema = source.table().schema().clone();
        let columns = schema.columns();
        let named = |column: &Column| FileColumn { name: column.name.clone(), data_type: column.data_type };
        rows.columns(&columns.iter().map(named).collect::<Vec<FileColumn>>())?;
        for batch in source.batches().map_err(failed)? {
            let batch = batch.map_err(failed)?;
            let views = ColumnView::of_batch(&batch, columns).map_err(failed)?;
            for row in 0..batch.num_rows() {
                rows.row(views.iter().map(|view| view.value(row).to_owned()).collect())?;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        output: &mut (dyn Write + Send),
        format: ColumnFormat,
        columns: &[FileColumn],
        next: &mut dyn FnMut() -> SqlResult<Option<Vec<Value>>>,
    ) -> SqlResult<()> {
        let columns = columns.iter().map(|column| Column::new(column.name.clone(), column.data_type, true));
        let schema = Schema::new(columns.collect()).map_err(|error| SqlError::new("42611", error.to_string()))?;
        let table = TableSchema::from_schema(schema);
        let format = match format {
            ColumnFormat::Parquet => FileFormat::Parquet(ParquetOptions::default()),
            ColumnFormat::Arrow => FileFormat::Arrow,
        };
        let sink = format.sink(output, &table, None).map_err(failed)?;
        let mut rows = RowSink::new(sink, &table).map_err(|error| SqlError::new("54011", error.to_string()))?;
        while let Some(row) = next()? {
            rows.push(row).map_err(failed)?;
        }
        rows.finish().map_err(failed)
    }
}

/// An error with the SQLSTATE of its kind.
fn failed(error: InterchangeError) -> SqlError {
    let sqlstate = match &error {
        InterchangeError::Io(error) => SqlError::sqlstate_of_io(error),
        InterchangeError::Unsupported { .. } => "0A000",
        _ => "22P04",
    };
    SqlError::new(sqlstate, error.to_string())
}
