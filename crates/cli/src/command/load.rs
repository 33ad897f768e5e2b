//! `pagefold load`

use super::choice;
use crate::arguments::LoadArguments;
use crate::column_list;
use crate::failure::{Failure, Result};
use crate::session::{Session, check_files, page_bytes, remove_new_database};
use crate::size::{grouped, size_text};
use pagefold::engine::Extents;
use pagefold::interchange::{CsvOptions, OpenSource};
use pagefold::utility::{self, Costs, LoadMode, LoadOptions, LoadReport};
use serde_json::json;

/// From so many bytes of rows on their share is told.
const SHARE_BYTES_MIN: u64 = 256 * 1024;

pub(super) fn run(session: &Session, arguments: &LoadArguments) -> Result<()> {
    let options = options(session, arguments)?;
    check_files(&arguments.files)?;
    let (database, new) = session.open_or_create(&arguments.database)?;
    let outcome = utility::load(&database, &arguments.table, &arguments.files, &options, &session.bars);
    session.bars.clear();
    if outcome.is_err() && new {
        drop(database);
        remove_new_database(&arguments.database);
        outcome?;
        return Ok(());
    }
    let loaded = outcome?;
    let table = database.table(&arguments.table)?;
    let attributes = table.attributes();
    let (elapsed_s, cpu_s) = (session.elapsed_s(), session.cpu_s());
    if session.global.json {
        return session.print_json(&json!({
            "table": arguments.table,
            "method": attributes.method.name(),
            "page_size_bytes": attributes.page_bytes,
            "dictionary": loaded.dictionary,
            "reason": choice::reason(loaded.choice.as_ref()),
            "choice": choice::json(loaded.choice.as_ref()),
            "key_reason": choice::reason(loaded.key_choice.as_ref()),
            "key_choice": choice::json(loaded.key_choice.as_ref()),
            "rows": loaded.rows,
            "source_bytes": loaded.source_bytes,
            "record_bytes": loaded.record_bytes,
            "pages": loaded.pages,
            "size_bytes": loaded.size_bytes,
            "index_bytes": loaded.index_bytes,
            "elapsed_s": elapsed_s,
            "cpu_s": cpu_s,
        }));
    }
    let verb = if arguments.append { "added to" } else { "loaded into" };
    let mut text = format!(
        "{} rows {verb} table \"{}\" in {elapsed_s:.2} s ({cpu_s:.2} s of processor time)\n",
        grouped(loaded.rows),
        arguments.table
    );
    text += &format!(
        "  method {}{}, {} pages of {}: {}\n",
        attributes.method,
        if attributes.method.dictionary_type().is_some() && !loaded.dictionary {
            " (a dictionary would not pay: rows are as they are)"
        } else {
            ""
        },
        grouped(loaded.pages),
        size_text(attributes.page_bytes as u64),
        size_text(loaded.size_bytes)
    );
    text += &choice::text(loaded.choice.as_ref());
    text += &sizes(&loaded, arguments.append);
    text += &choice::text(loaded.key_choice.as_ref());
    session.print(&text)
}

fn sizes(loaded: &LoadReport, append: bool) -> String {
    let mut text = format!("  files {}, rows uncompressed {}", size_text(loaded.source_bytes), size_text(loaded.record_bytes));
    // Of a few rows the header and space map are most.
    if loaded.record_bytes >= SHARE_BYTES_MIN && !append {
        text += &format!(": the table is {:.1} % of the rows", 100.0 * loaded.size_bytes as f64 / loaded.record_bytes as f64);
    }
    text.push('\n');
    if loaded.index_bytes > 0 {
        text += &format!("  indexes {}\n", size_text(loaded.index_bytes));
    }
    text
}

fn options(session: &Session, arguments: &LoadArguments) -> Result<LoadOptions> {
    let schema = arguments.columns.as_deref().map(column_list::schema).transpose();
    let schema = schema.map_err(|e| Failure::Usage(format!("--columns: {e}")))?;
    let mode = match (arguments.replace, arguments.append) {
        (true, _) => LoadMode::Replace,
        (_, true) => LoadMode::Append,
        _ => LoadMode::Create,
    };
    Ok(LoadOptions {
        mode,
        method: arguments.compress,
        page_bytes: page_bytes(arguments.page_size),
        primary_key: arguments.primary_key.clone(),
        key_format: arguments.key_format,
        key_page_bytes: arguments.key_page_size.map(page_bytes),
        pctfree: arguments.pctfree,
        maxrows: arguments.maxrows,
        extents: Extents { first_bytes: arguments.first_extent.0, second_bytes: arguments.second_extent.0 },
        partition_bytes: Some(arguments.partition_size.0),
        rows_per_transaction: arguments.rows_per_transaction,
        keep_dictionary: arguments.keep_dictionary,
        costs: Costs::Measured,
        source: OpenSource { csv: CsvOptions { schema, ..arguments.text.options()? } },
        sort_bytes: session.sort_bytes(),
        encode_threads: 0,
    })
}
