//! The commands, one a file.

mod advise;
mod alter;
mod archive_log;
mod change_rows;
mod check;
mod choice;
mod copy;
mod create_index;
mod decided;
mod diff;
mod drop;
mod estimate;
mod export;
mod foreign;
mod get;
mod load;
mod output_file;
mod page_sizes;
mod partition;
mod print;
mod rebuild_index;
mod recover;
mod reorg;
mod report;
mod runstats;
mod salvage;
mod scan;
mod sql;
mod top;

use crate::arguments::Command;
use crate::failure::Result;
use crate::session::Session;

/// Runs a command.
pub(crate) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Demo(arguments) => crate::demo::run(session, &arguments),
        Command::Sql(arguments) => sql::run(session, &arguments),
        Command::Load(arguments) => load::run(session, &arguments),
        Command::Upsert(arguments) => change_rows::upsert(session, &arguments),
        Command::Delete(arguments) => change_rows::delete(session, &arguments),
        Command::Export(arguments) => export::run(session, &arguments),
        Command::Alter(arguments) => alter::run(session, &arguments),
        Command::CreateIndex(arguments) => create_index::run(session, &arguments),
        Command::Drop(arguments) => drop::run(session, &arguments),
        Command::Get(arguments) => get::run(session, &arguments),
        Command::Scan(arguments) => scan::run(session, &arguments),
        Command::Estimate(arguments) => estimate::run(session, &arguments),
        Command::PageSizes(arguments) => page_sizes::run(session, &arguments),
        Command::Advise(arguments) => advise::run(session, &arguments),
        Command::Report(arguments) => report::run(session, &arguments),
        Command::Runstats(arguments) => runstats::run(session, &arguments),
        Command::Check(arguments) => check::run(session, &arguments),
        Command::Print(arguments) => print::run(session, &arguments),
        Command::Partition(arguments) => partition::run(session, &arguments),
        Command::Reorg(arguments) => reorg::run(session, &arguments),
        Command::Copy(arguments) => copy::run(session, &arguments),
        Command::Recover(arguments) => recover::run(session, &arguments),
        Command::Diff(arguments) => diff::run(session, &arguments),
        Command::ArchiveLog(arguments) => archive_log::run(session, &arguments),
        Command::RebuildIndex(arguments) => rebuild_index::run(session, &arguments),
        Command::Top(arguments) => top::run(session, &arguments),
        Command::Salvage(arguments) => salvage::run(session, &arguments),
    }
}
