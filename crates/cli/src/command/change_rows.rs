//! `pagefold upsert` and `pagefold delete`

use crate::arguments::ChangeRowsArguments;
use crate::failure::Result;
use crate::session::{Session, find_files};
use crate::size::grouped;
use pagefold::engine::OpenMode;
use pagefold::interchange::{Inputs, OpenSource};
use pagefold::io::OsStorage;
use pagefold::utility::{self, ChangeRowsOptions};
use serde_json::json;

pub(super) fn upsert(session: &Session, arguments: &ChangeRowsArguments) -> Result<()> {
    let options = options(arguments)?;
    let inputs = Inputs::open(&OsStorage, &find_files(&arguments.files)?)?;
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let done = utility::upsert_inputs(&database, &arguments.table, &inputs, &options, &session.bars)?;
    close(session, database);
    if session.global.json {
        return session.told(session.print_json(&json!({
            "table": arguments.table,
            "rows": done.rows,
            "inserted": done.inserted,
            "updated": done.updated,
            "unchanged": done.unchanged,
            "transactions": done.transactions,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        })));
    }
    session.told(session.print(&format!(
        "{} rows into table \"{}\": {} inserted, {} updated, {} unchanged, in {:.2} s",
        grouped(done.rows),
        arguments.table,
        grouped(done.inserted),
        grouped(done.updated),
        grouped(done.unchanged),
        session.elapsed_s()
    )))
}

pub(super) fn delete(session: &Session, arguments: &ChangeRowsArguments) -> Result<()> {
    let options = options(arguments)?;
    let inputs = Inputs::open(&OsStorage, &find_files(&arguments.files)?)?;
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let done = utility::delete_inputs(&database, &arguments.table, &inputs, &options, &session.bars)?;
    close(session, database);
    if session.global.json {
        return session.told(session.print_json(&json!({
            "table": arguments.table,
            "rows": done.rows,
            "deleted": done.deleted,
            "not_found": done.not_found,
            "transactions": done.transactions,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        })));
    }
    session.told(session.print(&format!(
        "{} keys, {} rows deleted from table \"{}\", {} not found, in {:.2} s",
        grouped(done.rows),
        grouped(done.deleted),
        arguments.table,
        grouped(done.not_found),
        session.elapsed_s()
    )))
}

/// Closes the database before the end is told: then whoever is told finds it in order.
fn close(session: &Session, database: pagefold::engine::Database) {
    drop(database);
    session.bars.clear();
}

fn options(arguments: &ChangeRowsArguments) -> Result<ChangeRowsOptions> {
    Ok(ChangeRowsOptions { source: OpenSource { csv: arguments.text.options()? }, rows_per_transaction: arguments.rows_per_transaction })
}
