//! `pagefold salvage`

use super::export::format_of;
use super::output_file::write_file;
use crate::arguments::ExportArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, stdout};
use crate::size::grouped;
use pagefold::interchange::Sink;
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility::{SalvageReport, Salvaged};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &ExportArguments) -> Result<()> {
    let to_stdout = arguments.file == Path::new("-");
    let format = format_of(session, arguments)?;
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let salvaged = Salvaged::open(&storage, &clock, &arguments.database, &arguments.table, session.settings()?)?;
    let report = if to_stdout {
        session.bars.hide_beside_output();
        let mut sink = format.sink(stdout(), salvaged.schema(), None)?;
        salvaged.run(&arguments.database, sink.as_mut(), &session.bars)?
    } else {
        let run = |sink: &mut dyn Sink| Ok(salvaged.run(&arguments.database, sink, &session.bars)?);
        write_file(&storage, (&arguments.database, &arguments.file), &format, salvaged.schema(), run)?.0
    };
    session.bars.clear();
    if to_stdout {
        // Rows have standard output for themselves.
        if !report.is_whole() {
            return Err(Failure::Failed(text(&report).trim_end().into()));
        }
        return Ok(());
    }
    if session.global.json {
        let damage = report.damage.iter().map(|e| json!({ "object": e.object, "page": e.page, "reason": e.reason }));
        let lost = report.lost.iter().map(|lost| {
            let (partition, page) = lost.page;
            json!({
                "partition": partition,
                "page": page,
                "rows": lost.rows,
                "index": lost.index,
                "first_key": lost.first,
                "last_key": lost.last,
            })
        });
        session.print_json(&json!({
            "table": arguments.table,
            "file": arguments.file.display().to_string(),
            "rows": report.rows,
            "pages": report.pages,
            "log_applied": report.log_applied,
            "damage": damage.collect::<Vec<_>>(),
            "lost": lost.collect::<Vec<_>>(),
            "values": report.values.iter().map(|value| json!({ "row": value.row, "column": value.column })).collect::<Vec<_>>(),
            "elapsed_s": session.elapsed_s(),
        }))?;
    } else {
        let file = arguments.file.display();
        session.print(&format!("{}{} rows written to {file} in {:.2} s", text(&report), grouped(report.rows), session.elapsed_s()))?;
    }
    if report.is_whole() { Ok(()) } else { Err(Failure::Reported) }
}

/// What lacks, a line each.
fn text(report: &SalvageReport) -> String {
    let mut out = String::new();
    if !report.log_applied {
        out += "the log could not be applied: what was committed since the last checkpoint may lack\n";
    }
    for e in &report.damage {
        out += &format!("{}, page {}: {}\n", e.object, e.page, e.reason);
    }
    for lost in &report.lost {
        let (partition, page) = lost.page;
        let (rows, index) = (grouped(lost.rows), &lost.index);
        out +=
            &format!("partition {partition}, page {page}: {rows} rows lack, with keys from {} to {} of {index}\n", lost.first, lost.last);
    }
    for value in &report.values {
        out += &format!("row {}: the value of column \"{}\" is not whole\n", value.row, value.column);
    }
    out
}
