//! `pagefold scan`

use super::export::file_format;
use crate::arguments::{OutputFormat, ScanArguments};
use crate::failure::{Failure, Result};
use crate::json_rows::ArrayOfLines;
use crate::session::{Session, stdout};
use pagefold::engine::OpenMode;
use pagefold::interchange::{CsvOptions, JsonLinesSink};
use pagefold::utility::{Scan, ScanOptions};
use std::io::{IsTerminal, Write};

pub(super) fn run(session: &Session, arguments: &ScanArguments) -> Result<()> {
    session.bars.hide_beside_output();
    if !session.global.json && arguments.format == OutputFormat::Parquet && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("Parquet is not for a terminal; send the output to a file".into()));
    }
    let options = ScanOptions {
        columns: arguments.columns.clone(),
        condition: arguments.condition.clone(),
        index: arguments.index.clone(),
        limit: arguments.limit,
    };
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let scan = Scan::new(&database, &arguments.table, &options)?;
    let output = scan.output()?;
    if !session.global.json {
        let mut sink = file_format(arguments.format, CsvOptions::default()).sink(stdout(), &output, None)?;
        scan.run(sink.as_mut(), &session.bars)?;
        return Ok(());
    }
    let mut out = stdout();
    let table = serde_json::Value::from(arguments.table.as_str());
    writeln!(out, "{{\"table\":{table},\"rows\":[")?;
    let mut sink = JsonLinesSink::new(ArrayOfLines::new(&mut out), &output);
    let rows = scan.run(&mut sink, &session.bars)?;
    drop(sink);
    writeln!(out, "\n],\"row_count\":{rows},\"elapsed_s\":{:.6}}}", session.elapsed_s())?;
    Ok(out.flush()?)
}
