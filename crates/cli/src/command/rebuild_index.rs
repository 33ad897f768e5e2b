//! `pagefold rebuild-index`

use crate::arguments::RebuildIndexArguments;
use crate::failure::Result;
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::utility;
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &RebuildIndexArguments) -> Result<()> {
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let built = utility::rebuild_index(&database, &arguments.index, session.sort_bytes(), &session.bars)?;
    database.close()?;
    session.bars.clear();
    if session.global.json {
        return session.print_json(&json!({
            "index": arguments.index,
            "rids": built.rids,
            "keys": built.keys,
            "pages": built.pages,
            "size_bytes": built.size_bytes,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        }));
    }
    let (rows, keys, size) = (grouped(built.rids), grouped(built.keys), size_text(built.size_bytes));
    session.print(&format!("Index \"{}\" built anew: {rows} rows, {keys} keys, {size} in {:.2} s", arguments.index, session.elapsed_s()))
}
