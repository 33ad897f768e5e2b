//! `pagefold load`

use super::output_file::text_file;
use super::{choice, decided, foreign};
use crate::arguments::LoadArguments;
use crate::column_list;
use crate::failure::{Failure, Result};
use crate::session::{Session, find_files, page_bytes, remove_new_database};
use crate::size::{grouped, size_text};
use pagefold::engine::Extents;
use pagefold::engine::table::Method;
use pagefold::interchange::{CsvOptions, Inputs, OpenSource, Rejects, STANDARD_INPUT};
use pagefold::io::{OsStorage, Storage};
use pagefold::sql::is_system_relation;
use pagefold::utility::{self, Costs, LoadMode, LoadOptions, LoadReport, Setting};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// From so many bytes of rows on their share is told.
const SHARE_BYTES_MIN: u64 = 256 * 1024;

pub(super) fn run(session: &Session, arguments: &LoadArguments) -> Result<()> {
    let mut options = options(session, arguments)?;
    if let Some(from) = foreign::of_load(arguments)? {
        return foreign::load(session, arguments, &from, &options);
    }
    if !arguments.tables.is_empty() || arguments.mixed_as_text || arguments.no_compare {
        return Err(foreign::not_for_files("--tables, --mixed-as-text and --no-compare"));
    }
    if is_system_relation(&arguments.table) {
        return Err(Failure::Failed(format!("table \"{}\": names that begin like this are the database's own", arguments.table)));
    }
    // Read before the database is opened: who waits for standard input keeps no other waiting.
    let files = find_files(&arguments.files)?;
    let inputs = Inputs::open(&OsStorage, &files)?;
    let (database, new) = session.open_or_create(&arguments.database)?;
    // Opened before anything is loaded: what cannot be written is known while nothing has happened.
    let reject_file = arguments.reject.as_ref().map(|path| reject_file(&arguments.database, path, &files)).transpose();
    let mut reject_file = match reject_file {
        Ok(file) => file,
        Err(error) => {
            drop(database);
            if new {
                remove_new_database(&arguments.database);
            }
            return Err(error);
        }
    };
    if let (None, true, Ok(table)) = (arguments.compress, arguments.replace, utility::first_table(&database, &arguments.table)) {
        options.method = Setting::Given(table.attributes().method);
        options.keep_methods = true;
    }
    let outcome = utility::load_inputs(&database, &arguments.table, &inputs, &options, &session.bars);
    session.bars.clear();
    let rejects = options.source.csv.rejects.as_ref();
    // The rows that did not fit, whatever became of the others.
    if let (Some(file), Some(rejects), Some(path)) = (&mut reject_file, rejects, &arguments.reject) {
        let written = file.write_all(rejects.report().as_bytes()).and_then(|()| file.flush());
        let done = if outcome.is_ok() { "the other rows are loaded" } else { "nothing is loaded" };
        written
            .map_err(|error| Failure::Failed(format!("{}: rows that did not fit could not be written: {error}; {done}", path.display())))?;
    }
    if outcome.is_err() && new {
        drop(database);
        remove_new_database(&arguments.database);
        outcome?;
        return Ok(());
    }
    let loaded = outcome?;
    let rejected = rejects.map(Rejects::rows);
    let table = utility::first_table(&database, &arguments.table)?;
    let attributes = table.attributes();
    let (elapsed_s, cpu_s) = (session.elapsed_s(), session.cpu_s());
    if session.global.json {
        return session.told(session.print_json(&json!({
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
            "decided": decided::json(&loaded.decided),
            "primary_key_kept": loaded.primary_key_kept,
            "rejected_rows": rejected,
            "elapsed_s": elapsed_s,
            "cpu_s": cpu_s,
        })));
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
    if !loaded.primary_key_kept.is_empty() {
        text += &format!("  the primary key is still ({})\n", loaded.primary_key_kept.join(", "));
    }
    if let (Some(path), Some(rows)) = (&arguments.reject, rejected) {
        text += &format!("  {} rows did not fit and are in {}\n", grouped(rows), path.display());
    }
    text += &decided::text(&loaded.decided);
    session.told(session.print(&text))
}

/// The file for rows that do not fit: neither one of those that are loaded, nor one of the database.
fn reject_file(database: &Path, path: &Path, inputs: &[PathBuf]) -> Result<Box<dyn Write>> {
    // Whatever it is called: links are followed, and standard input is what it was redirected from.
    let of = |path: &Path| std::fs::metadata(path).ok().filter(|found| found.is_file()).map(|found| (found.dev(), found.ino()));
    let target = of(path);
    let named = |input: &PathBuf| if input == Path::new(STANDARD_INPUT) { of(Path::new("/dev/stdin")) } else { of(input) };
    let is_same = |input: &PathBuf| target.is_some() && named(input) == target;
    if inputs.iter().any(is_same) {
        return Err(Failure::Failed(format!("{}: it is loaded; choose another file for rows that do not fit", path.display())));
    }
    // Whatever it is that has another name, too: what is written here would be there.
    if std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.nlink() > 1) {
        return Err(Failure::Failed(format!(
            "{}: it has other names (hard links); choose another file for rows that do not fit",
            path.display()
        )));
    }
    text_file(&(Arc::new(OsStorage) as Arc<dyn Storage>), database, path)
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

pub(super) fn options(session: &Session, arguments: &LoadArguments) -> Result<LoadOptions> {
    let schema = arguments.columns.as_deref().map(column_list::schema).transpose();
    let schema = schema.map_err(|e| Failure::Usage(format!("--columns: {e}")))?;
    let mut types = Vec::new();
    for given in &arguments.types {
        types.extend(column_list::types(given).map_err(|e| Failure::Usage(format!("--type: {e}")))?);
    }
    let rejects = arguments.reject.as_ref().map(|_| Rejects::new(arguments.reject_limit));
    let primary_key = arguments.primary_key.as_deref().map(column_list::column_names).transpose();
    let primary_key = primary_key.map_err(|e| Failure::Usage(format!("--primary-key: {e}")))?.unwrap_or_default();
    let mode = match (arguments.replace, arguments.append) {
        (true, _) => LoadMode::Replace,
        (_, true) => LoadMode::Append,
        _ => LoadMode::Create,
    };
    Ok(LoadOptions {
        mode,
        method: arguments.compress.unwrap_or(Setting::Given(Method::Page)),
        page_bytes: page_bytes(arguments.page_size),
        primary_key,
        key_format: arguments.key_format,
        key_page_bytes: arguments.key_page_size.map(page_bytes),
        pctfree: arguments.pctfree,
        maxrows: arguments.maxrows,
        extents: Extents { first_bytes: arguments.first_extent.0, second_bytes: arguments.second_extent.0 },
        partition_bytes: Some(arguments.partition_size.0),
        division: arguments.partition_by.clone(),
        rows_per_transaction: arguments.rows_per_transaction,
        keep_dictionary: arguments.keep_dictionary,
        keep_methods: false,
        costs: Costs::Measured,
        source: OpenSource { csv: CsvOptions { schema, types, rejects, ..arguments.text.options()? } },
        sort_bytes: session.sort_bytes(),
        encode_threads: 0,
    })
}
