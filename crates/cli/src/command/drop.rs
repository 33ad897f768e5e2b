//! `pagefold drop`

use crate::arguments::DropArguments;
use crate::failure::Result;
use crate::session::Session;
use crate::size::size_text;
use pagefold::engine::OpenMode;
use pagefold::utility;
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &DropArguments) -> Result<()> {
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let dropped = utility::drop_object(&database, &arguments.object)?;
    if session.global.json {
        return session.print_json(&json!({
            "kind": dropped.kind,
            "name": arguments.object,
            "indexes": dropped.indexes,
            "freed_bytes": dropped.freed_bytes,
            "elapsed_s": session.elapsed_s(),
        }));
    }
    let with = if dropped.indexes.is_empty() { String::new() } else { format!(" with its indexes {}", dropped.indexes.join(", ")) };
    session.print(&format!("Dropped {} \"{}\"{with}: {} freed", dropped.kind, arguments.object, size_text(dropped.freed_bytes)))
}
