//! `pagefold runstats`

use crate::arguments::RunstatsArguments;
use crate::failure::Result;
use crate::session::Session;
use pagefold::engine::OpenMode;
use pagefold::utility::{self, RunstatsOptions, Sample};
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &RunstatsArguments) -> Result<()> {
    let report = if arguments.print {
        let database = session.open(&arguments.database, OpenMode::Read)?;
        utility::kept_statistics(&database, &arguments.tables)?
    } else {
        let sample = match (arguments.sample, arguments.pages) {
            (Some(percent), _) => Sample::Percent(percent),
            (None, Some(pages)) => Sample::Pages(pages.get()),
            (None, None) => Sample::All,
        };
        let options = RunstatsOptions { sample, seed: arguments.seed, ..RunstatsOptions::default() };
        let database = session.open(&arguments.database, OpenMode::Write)?;
        let report = utility::runstats(&database, &arguments.tables, &options, &session.bars)?;
        database.close()?;
        report
    };
    session.bars.clear();
    if session.global.json {
        let mut document = report.to_json();
        document["elapsed_s"] = json!(session.elapsed_s());
        document["cpu_s"] = json!(session.cpu_s());
        return session.told(session.print_json(&document));
    }
    let took = if arguments.print { String::new() } else { format!("\n{:.2} s\n", session.elapsed_s()) };
    session.told(session.print(&format!("{}{took}", report.to_text())))
}
