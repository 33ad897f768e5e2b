//! `pagefold export`

use super::output_file::write_file;
use super::scan::columns;
use crate::arguments::{ExportArguments, OutputFormat};
use crate::failure::{Failure, Result};
use crate::session::{Session, stdout};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::interchange::{CsvOptions, FileFormat, ParquetOptions, Sink};
use pagefold::utility::{Scan, ScanOptions};
use serde_json::json;
use std::path::Path;

/// A format with its options.
pub(super) fn file_format(format: OutputFormat, csv: CsvOptions) -> FileFormat {
    match format {
        OutputFormat::Table => FileFormat::Table,
        OutputFormat::Csv => FileFormat::Csv(csv),
        OutputFormat::Json => FileFormat::JsonLines,
        OutputFormat::Arrow => FileFormat::Arrow,
        OutputFormat::Parquet => FileFormat::Parquet(ParquetOptions::default()),
    }
}

/// The format to write.
pub(super) fn format_of(session: &Session, arguments: &ExportArguments) -> Result<FileFormat> {
    let to_stdout = arguments.file == Path::new("-");
    if to_stdout && session.global.json {
        return Err(Failure::Usage("--json and `-`: both want standard output; export to a file, or use scan --json".into()));
    }
    let csv = arguments.text.options()?;
    match (arguments.format, FileFormat::of(&arguments.file)) {
        (Some(format), _) => Ok(file_format(format, csv)),
        (None, Some(FileFormat::Csv(_))) => Ok(FileFormat::Csv(csv)),
        (None, Some(format)) => Ok(format),
        (None, None) if to_stdout => Ok(FileFormat::Csv(csv)),
        (None, None) => {
            let file = arguments.file.display();
            Err(Failure::Usage(format!(
                "{file}: the name says no format; end it in .parquet, .arrow, .csv, .tbl or .jsonl, or give --format"
            )))
        }
    }
}

pub(super) fn run(session: &Session, arguments: &ExportArguments) -> Result<()> {
    let to_stdout = arguments.file == Path::new("-");
    let format = format_of(session, arguments)?;
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let options =
        ScanOptions { columns: columns(arguments.columns.as_deref())?, condition: arguments.condition.clone(), ..ScanOptions::default() };
    let scan = Scan::new(&database, &arguments.table, &options)?;
    let schema = scan.output()?;
    if to_stdout {
        session.bars.hide_beside_output();
        let mut sink = format.sink(stdout(), &schema, None)?;
        scan.run(sink.as_mut(), &session.bars)?;
        return Ok(());
    }
    let run = |sink: &mut dyn Sink| Ok(scan.run(sink, &session.bars)?);
    let (rows, written) = write_file(database.outside(), (&arguments.database, &arguments.file), &format, &schema, run)?;
    session.bars.clear();
    if session.global.json {
        return session.told(session.print_json(&json!({
            "table": arguments.table,
            "file": arguments.file.display().to_string(),
            "rows": rows,
            "size_bytes": written,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        })));
    }
    let file = arguments.file.display();
    let (rows, size, elapsed_s) = (grouped(rows), size_text(written), session.elapsed_s());
    session.told(session.print(&format!("{rows} rows written to {file} ({size}) in {elapsed_s:.2} s")))
}
