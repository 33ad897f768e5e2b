//! `pagefold scan`

use super::export::file_format;
use crate::arguments::{OutputFormat, ScanArguments};
use crate::column_list::column_names;
use crate::failure::{Failure, Result};
use crate::json_rows::ArrayOfLines;
use crate::session::{Session, stdout};
use pagefold::engine::OpenMode;
use pagefold::interchange::{CsvOptions, JsonLinesSink};
use pagefold::utility::{Scan, ScanOptions};
use serde_json::json;
use std::io::{IsTerminal, Write};

/// Names of columns as they are given on the command line.
pub(super) fn columns(list: Option<&str>) -> Result<Option<Vec<String>>> {
    list.map(column_names).transpose().map_err(|e| Failure::Usage(format!("--columns: {e}")))
}

pub(super) fn run(session: &Session, arguments: &ScanArguments) -> Result<()> {
    session.bars.hide_beside_output();
    let is_binary = matches!(arguments.format, OutputFormat::Parquet | OutputFormat::Arrow);
    if !session.global.json && is_binary && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("Parquet and Arrow are not for a terminal; send the output to a file".into()));
    }
    let options = ScanOptions {
        columns: columns(arguments.columns.as_deref())?,
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
    let index = serde_json::Value::from(scan.index_name());
    let columns =
        output.schema().columns().iter().map(|c| json!({ "name": c.name, "type": c.data_type.to_string(), "nullable": c.nullable }));
    let columns = serde_json::Value::from(columns.collect::<Vec<_>>());
    writeln!(out, "\n],\"row_count\":{rows},\"columns\":{columns},\"index\":{index},\"elapsed_s\":{:.6}}}", session.elapsed_s())?;
    Ok(out.flush()?)
}
