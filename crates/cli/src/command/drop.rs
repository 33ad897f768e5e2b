//! `pagefold drop`

use crate::arguments::DropArguments;
use crate::failure::Result;
use crate::session::Session;
use crate::size::size_text;
use pagefold::Database;
use pagefold::engine::OpenMode;
use pagefold::utility;
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &DropArguments) -> Result<()> {
    let database = match session.try_to_open(&arguments.database, OpenMode::Write)? {
        Ok(database) => database,
        // The log has something for tables that are too damaged to get it: without them the others are there again.
        Err(refused) if refused.is_damage() => match session.open_giving_up(&arguments.database, &arguments.objects)? {
            Some(database) => database,
            None => return Err(refused.into()),
        },
        Err(refused) => return Err(refused.into()),
    };
    let gone: Vec<String> = database.given_up().iter().map(|gone| gone.table.clone()).collect();
    let database = Database::from(database);
    for object in &arguments.objects {
        let dropped = if gone.contains(object) {
            utility::DropReport { kind: "table", ..utility::DropReport::default() }
        } else {
            database.session().check_drop(object)?;
            utility::drop_object(database.engine(), object)?
        };
        tell(session, object, dropped)?;
    }
    Ok(())
}

fn tell(session: &Session, object: &str, dropped: utility::DropReport) -> Result<()> {
    if session.global.json {
        return session.told(session.print_json(&json!({
            "kind": dropped.kind,
            "name": object,
            "indexes": dropped.indexes,
            "freed_bytes": dropped.freed_bytes,
            "table_without_key": dropped.without_key,
            "elapsed_s": session.elapsed_s(),
        })));
    }
    let with = if dropped.indexes.is_empty() { String::new() } else { format!(" with its indexes {}", dropped.indexes.join(", ")) };
    let without = dropped.without_key.map_or_else(String::new, |table| {
        format!("\n  it was the index of the primary key: get, upsert and delete no longer find rows of table \"{table}\"; a unique index on the same columns brings that back")
    });
    let freed = dropped.freed_bytes.map_or_else(String::new, |bytes| format!(": {} freed", size_text(bytes)));
    session.told(session.print(&format!("Dropped {} \"{object}\"{with}{freed}{without}", dropped.kind)))
}
