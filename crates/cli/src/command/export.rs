//! `pagefold export`

use crate::arguments::{ExportArguments, OutputFormat};
use crate::failure::{Failure, Result};
use crate::session::{Session, stdout};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::interchange::{CsvOptions, FileFormat, FileSink, ParquetOptions};
use pagefold::utility;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// A format with its options.
pub(super) fn file_format(format: OutputFormat, csv: CsvOptions) -> FileFormat {
    match format {
        OutputFormat::Table => FileFormat::Table,
        OutputFormat::Csv => FileFormat::Csv(csv),
        OutputFormat::Json => FileFormat::JsonLines,
        OutputFormat::Parquet => FileFormat::Parquet(ParquetOptions::default()),
    }
}

pub(super) fn run(session: &Session, arguments: &ExportArguments) -> Result<()> {
    let to_stdout = arguments.file == Path::new("-");
    if to_stdout && session.global.json {
        return Err(Failure::Usage("--json and `-`: both want standard output; export to a file, or use scan --json".into()));
    }
    let csv = arguments.text.options()?;
    let format = match (arguments.format, FileFormat::of(&arguments.file)) {
        (Some(format), _) => file_format(format, csv),
        (None, Some(FileFormat::Csv(_))) => FileFormat::Csv(csv),
        (None, Some(format)) => format,
        (None, None) if to_stdout => FileFormat::Csv(csv),
        (None, None) => {
            let file = arguments.file.display();
            return Err(Failure::Usage(format!(
                "{file}: the name says no format; end it in .parquet, .csv, .tbl or .jsonl, or give --format"
            )));
        }
    };
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let schema = utility::table_schema(database.table(&arguments.table)?.as_ref())?;
    if to_stdout {
        let mut sink = format.sink(stdout(), &schema, None)?;
        utility::export(&database, &arguments.table, sink.as_mut(), &session.bars)?;
        return Ok(());
    }
    let mut sink = FileSink::create(Arc::clone(database.outside()), &arguments.file, &format, &schema)?;
    let rows = utility::export(&database, &arguments.table, &mut sink, &session.bars)?;
    session.bars.clear();
    let written = database.outside().open(&arguments.file, &pagefold::io::OpenOptions::read_only())?.len()?;
    if session.global.json {
        return session.print_json(&json!({
            "table": arguments.table,
            "file": arguments.file.display().to_string(),
            "rows": rows,
            "size_bytes": written,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        }));
    }
    let file = arguments.file.display();
    session.print(&format!("{} rows written to {file} ({}) in {:.2} s", grouped(rows), size_text(written), session.elapsed_s()))
}
