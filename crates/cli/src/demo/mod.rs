//! `pagefold demo`: the main job on data it generates itself.
//!
//! * `subject`: the tables, and what is known of their rows before anything is stored
//! * `tables`: load each way, compare every row with the source, measure
//! * `indexes`: build each way, compare every entry, measure
//! * `outcome`: what came out, as JSON
//! * `text`: as one table; `page`, `chart`: as one HTML page
//!
//! Invariants:
//! - nothing is reported that was not compared with the source first: row count, a checksum over all records in order, the sums of the scanned columns, the rows found by
//!   key, the values after updates; and for indexes a checksum over all entries;
//! - what is compared with one another is measured in turn, several times, and the median is reported.

mod chart;
mod indexes;
mod inserts;
mod outcome;
mod page;
mod subject;
mod tables;
mod text;

use crate::arguments::DemoArguments;
use crate::failure::{Failure, Result};
use crate::progress::interrupted;
use crate::session::Session;
use crate::size::ByteSize;
use outcome::Outcome;
use pagefold::engine::Database;
use pagefold::io::{Clock, FileWriter, OpenOptions, OsClock, OsStorage, Storage};
use std::io::Write;
use std::path::Path;
use subject::Subject;

/// Generated rows stay in memory up to this scale factor; above it they are generated again for each load, and the load's time includes that.
const KEPT_SCALE_FACTOR_MAX: f64 = 0.5;

/// Memory for pages unless the user says otherwise: all tables and indexes at once, within reason.
pub(crate) fn memory(scale_factor: f64) -> ByteSize {
    const OF_SCALE_FACTOR_1: f64 = (6u64 << 30) as f64;
    ByteSize(((OF_SCALE_FACTOR_1 * scale_factor) as u64).clamp(256 << 20, 2 << 30))
}

pub(crate) fn run(session: &Session, arguments: &DemoArguments) -> Result<()> {
    let directory = &arguments.dir;
    if !OsStorage.exists(directory)? {
        OsStorage.create_directory(directory)?;
    }
    let (database, _) = session.open_or_create(&directory.join("database"))?;
    clear(&database)?;
    let mut outcome = Outcome {
        scale_factor: arguments.scale_factor,
        memory_bytes: session.memory_bytes(),
        database: directory.join("database").display().to_string(),
        page: directory.join("demo.html").display().to_string(),
        ..Outcome::default()
    };
    let started = OsClock.monotonic();
    for spec in &subject::SPECS {
        let keep = arguments.scale_factor <= KEPT_SCALE_FACTOR_MAX;
        let mut subject = Subject::prepare(spec, arguments.scale_factor, keep, &session.bars)?;
        outcome.kept = subject.source.is_kept();
        outcome.tables.push(tables::measure(session, &database, &mut subject)?);
        outcome.indexes.extend(indexes::measure(session, &database, &subject)?);
    }
    session.bars.clear();
    outcome.elapsed_s = (OsClock.monotonic() - started).as_secs_f64();
    write_file(&directory.join("demo.html"), page::html(&outcome).as_bytes())?;
    if session.global.json { session.print_json(&outcome.to_json()) } else { session.print(&text::report(&outcome)) }
}

/// Takes away what an earlier demo left; refuses a database with anything else in it.
fn clear(database: &Database) -> Result<()> {
    let names = database.table_names();
    let ours = |name: &String| subject::SPECS.iter().any(|spec| name.starts_with(&format!("{}_", spec.name)));
    if let Some(foreign) = names.iter().find(|name| !ours(name)) {
        let directory = database.directory().display();
        return Err(Failure::Failed(format!("{directory} holds table \"{foreign}\", which is not of a demo; give another --dir")));
    }
    let mut change = database.change();
    for name in &names {
        change.drop_table(name)?;
    }
    if !names.is_empty() {
        change.commit()?;
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = OsStorage.open(path, &OpenOptions::create())?;
    file.set_len(0)?;
    let mut writer = FileWriter::at(file, 0);
    writer.write_all(bytes)?;
    Ok(writer.flush()?)
}

/// Ends the demo when the user wants that.
fn look() -> Result<()> {
    if interrupted() { Err(Failure::Failed("interrupted; the database holds what was loaded so far".into())) } else { Ok(()) }
}

/// Seconds that `work` takes.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = OsClock.monotonic();
    let value = work()?;
    Ok((value, (OsClock.monotonic() - start).as_secs_f64()))
}

/// The middle one; the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// What should be equal is not: the demo must not report anything.
fn verify<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Failed(format!("{what}: found {found:?}, expected {expected:?}; please report this as a bug")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![3.0]), 3.0);
        assert_eq!(median(vec![3.0, 1.0]), 2.0);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
    }
}
