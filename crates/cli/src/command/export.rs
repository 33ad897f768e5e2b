//! `pagefold export`

use super::scan::columns;
use crate::arguments::{ExportArguments, OutputFormat};
use crate::failure::{Failure, Result};
use crate::progress;
use crate::session::{Session, stdout};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::interchange::{CsvOptions, FileFormat, FileSink, ParquetOptions};
use pagefold::utility::{Scan, ScanOptions};
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// What a name stands for.
enum Target {
    /// A file, which appears when it is complete; where a link leads to.
    File(PathBuf),
    /// A pipe, a terminal, a device: it is written as rows come, and stays what it is.
    Device,
}

fn target(path: &Path) -> Result<Target> {
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Failure::Failed(format!("{}: it is a directory", path.display()))),
        Ok(found) if found.is_file() => Ok(Target::File(path.canonicalize().map_err(failed)?)),
        Ok(_) => Ok(Target::Device),
        Err(_) => Ok(Target::File(match path.read_link() {
            // A link that leads to nothing yet.
            Ok(to) => path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => path.to_owned(),
        })),
    }
}

fn device(path: &Path) -> Result<std::fs::File> {
    let opened = std::fs::OpenOptions::new().write(true).open(path);
    opened.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

/// Counts what goes through.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
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
    let (rows, written) = match target(&arguments.file)? {
        Target::Device => {
            let mut written = Counted { out: BufWriter::with_capacity(1 << 20, device(&arguments.file)?), bytes: 0 };
            let mut sink = format.sink(&mut written, &schema, Some(&arguments.file))?;
            let rows = scan.run(sink.as_mut(), &session.bars)?;
            drop(sink);
            written.flush().map_err(|error| Failure::Failed(format!("{}: {error}", arguments.file.display())))?;
            (rows, written.bytes)
        }
        Target::File(path) => {
            progress::begin_changes();
            let mut sink = FileSink::create(Arc::clone(database.outside()), &path, &format, &schema)?;
            let rows = scan.run(&mut sink, &session.bars)?;
            (rows, database.outside().open(&path, &pagefold::io::OpenOptions::read_only())?.len()?)
        }
    };
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
