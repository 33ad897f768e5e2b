//! `pagefold create-index`

use super::choice;
use crate::arguments::CreateIndexArguments;
use crate::column_list::table_and_columns;
use crate::failure::{Failure, Result};
use crate::session::{Session, page_bytes};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::utility::{self, Costs, IndexOptions};
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &CreateIndexArguments) -> Result<()> {
    let (table, columns) = table_and_columns(&arguments.on).map_err(Failure::Usage)?;
    let options = IndexOptions {
        unique: arguments.unique,
        format: arguments.format,
        page_bytes: arguments.page_size.map(page_bytes),
        pctfree: arguments.pctfree,
        sort_bytes: session.sort_bytes(),
        costs: Costs::Measured,
        ..IndexOptions::default()
    };
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let built = utility::create_index(&database, &arguments.name, &table, &columns, &options, &session.bars)?;
    session.bars.clear();
    // Of a partitioned table: the index of its first partition.
    let index = match database.partitioned_index(&arguments.name)? {
        Some((whole, _)) => database.index_of_partition(whole.first(), &arguments.name)?,
        None => database.index(&arguments.name)?,
    };
    let facts = index.data_set().facts().clone();
    let attributes = index.attributes();
    let (levels, leaf_pages) = (facts.levels, facts.data_pages);
    let elapsed_s = session.elapsed_s();
    if session.global.json {
        return session.told(session.print_json(&json!({
            "index": arguments.name,
            "table": table,
            "format": attributes.format.name(),
            "page_size_bytes": attributes.page_bytes,
            "reason": choice::reason(built.choice.as_ref()),
            "choice": choice::json(built.choice.as_ref()),
            "unique": arguments.unique,
            "keys": built.keys,
            "rids": built.rids,
            "levels": levels,
            "leaf_pages": leaf_pages,
            "pages": built.pages,
            "size_bytes": built.size_bytes,
            "elapsed_s": elapsed_s,
            "cpu_s": session.cpu_s(),
        })));
    }
    session.told(session.print(&format!(
        "Index \"{}\" on {} built in {elapsed_s:.2} s\n{}  {}, pages of {}: {} keys, {} rows, {levels} levels, {} leaf pages, {} in all",
        arguments.name,
        arguments.on.trim(),
        choice::text(built.choice.as_ref()),
        attributes.format,
        size_text(attributes.page_bytes as u64),
        grouped(built.keys),
        grouped(built.rids),
        grouped(u64::from(leaf_pages)),
        size_text(built.size_bytes)
    )))
}
