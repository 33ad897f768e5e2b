//! A table loaded with every method: compared with its source, then measured.

use super::outcome::{MethodOutcome, TableOutcome};
use super::subject::{NumberReader, Subject, TABLE_PAGE_BYTES, Truth, damaged};
use super::{inserts, look, median, timed, verify};
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::engine::index::Index;
use pagefold::engine::table::{Method, RowBuffer, Table};
use pagefold::engine::{CounterValues, Database, ScanRequest};
use pagefold::types::ValueRef;
use pagefold::utility::{self, LoadMode, LoadOptions, Progress, Unit, primary_key_index};
use std::sync::Arc;

/// Times that scan and seek are repeated.
const REPEATS: usize = 5;
const UPDATE_REPEATS: usize = 3;
/// Tables with more rows are loaded once.
const RELOADED_ROWS_MAX: u64 = 1_000_000;
const LOAD_REPEATS: usize = 3;
/// Rows updated in one go.
const UPDATES: usize = 50_000;

/// A loaded table.
struct Loaded {
    method: Method,
    table: Arc<Table>,
    key: Arc<Index>,
    load_s: f64,
}

/// Loads the table with every method and measures each.
pub(super) fn measure(session: &Session, database: &Database, subject: &mut Subject) -> Result<TableOutcome> {
    let loaded = load(session, database, subject)?;
    session.bars.start(&format!("comparing {} with its source", subject.spec.name), None, Unit::Rows);
    for one in &loaded {
        verify_rows(database, one, subject)?;
        look()?;
    }
    session.bars.start(&format!("scanning and seeking {}", subject.spec.name), None, Unit::Rows);
    let mut scans = vec![Vec::new(); loaded.len()];
    let mut seeks = vec![Vec::new(); loaded.len()];
    let mut reads = vec![[0u64; 2]; loaded.len()];
    for _ in 0..REPEATS {
        for (i, one) in loaded.iter().enumerate() {
            let before = pages_read(one);
            let (sums, scan_s) = timed(|| scan(database, one, subject))?;
            verify("the sums of a scan", &sums, &subject.truth.sums)?;
            scans[i].push(scan_s);
            let between = pages_read(one);
            let ((), seek_s) = timed(|| seek(one, subject))?;
            seeks[i].push(subject.probes.len() as f64 / seek_s);
            reads[i] = [between - before, pages_read(one) - between];
            look()?;
        }
    }
    let updates = update(session, database, &loaded, subject)?;
    let tables: Vec<&Arc<Table>> = loaded.iter().map(|one| &one.table).collect();
    let inserts = inserts::measure(session, database, &tables, subject)?;
    session.bars.finish();
    let methods = loaded.iter().enumerate().map(|(i, one)| {
        let estimate = subject.estimates.iter().find(|e| e.method == one.method.name());
        let pages: u64 = one.table.data_sets().map(|d| u64::from(d.page_count())).sum();
        let key = one.key.data_set();
        MethodOutcome {
            method: one.method.name(),
            page_size_bytes: TABLE_PAGE_BYTES as u64,
            pages,
            pages_estimated: estimate.map_or(0, |e| e.pages.value),
            size_bytes: pages * TABLE_PAGE_BYTES as u64,
            key_size_bytes: u64::from(key.page_count()) * key.page_bytes() as u64,
            dictionary: one.table.dictionary().is_some(),
            load_s: one.load_s,
            scan_s: median(std::mem::take(&mut scans[i])),
            seek_per_s: median(std::mem::take(&mut seeks[i])),
            update_per_s: updates[i],
            insert_per_s: inserts[i],
            scan_pages_read: reads[i][0],
            seek_pages_read: reads[i][1],
        }
    });
    Ok(TableOutcome {
        name: subject.spec.name,
        rows: subject.truth.rows,
        record_bytes: subject.truth.record_bytes,
        read: subject.spec.read,
        update: subject.spec.update,
        seeks: subject.probes.len() as u64,
        estimate_s: subject.estimate_s,
        methods: methods.collect(),
    })
}

/// The name of the table under a method.
pub(super) fn table_name(subject: &Subject, method: Method) -> String {
    format!("{}_{}", subject.spec.name, method.name())
}

fn load(session: &Session, database: &Database, subject: &mut Subject) -> Result<Vec<Loaded>> {
    let repeats = if subject.truth.rows <= RELOADED_ROWS_MAX { LOAD_REPEATS } else { 1 };
    let mut times = vec![Vec::new(); Method::ALL.len()];
    for _ in 0..repeats {
        for (i, method) in Method::ALL.into_iter().enumerate() {
            let options = LoadOptions {
                mode: LoadMode::Replace,
                method: method.into(),
                page_bytes: TABLE_PAGE_BYTES,
                primary_key: subject.spec.primary_key.iter().map(|name| (*name).to_owned()).collect(),
                sort_bytes: session.sort_bytes(),
                ..LoadOptions::default()
            };
            let name = table_name(subject, method);
            let (_, load_s) = timed(|| Ok(utility::load_source(database, &name, &mut subject.source, &options, &session.bars)?))?;
            times[i].push(load_s);
        }
    }
    let mut loaded = Vec::new();
    for (method, times) in Method::ALL.into_iter().zip(times) {
        let table = database.table(&table_name(subject, method))?;
        let key = primary_key_index(&table)?;
        loaded.push(Loaded { method, table, key, load_s: median(times) });
    }
    Ok(loaded)
}

fn verify_rows(database: &Database, loaded: &Loaded, subject: &Subject) -> Result<()> {
    let mut found = Truth { sums: subject.truth.sums, ..Truth::default() };
    let mut rows = database.read_view().scan(&loaded.table, &ScanRequest::default())?.into_rows();
    while let Some((_, record)) = rows.next_record()? {
        found.add(record);
    }
    verify(&format!("the rows of table \"{}\"", loaded.table.name()), &found, &subject.truth)?;
    let entries = loaded.key.data_set().facts().rows;
    verify(&format!("the entries of index \"{}\"", loaded.key.name()), &entries, &subject.truth.rows)
}

fn columns(loaded: &Loaded, names: &[&str]) -> Result<Vec<usize>> {
    let schema = &loaded.table.attributes().schema;
    names.iter().map(|name| schema.index_of(name).map_err(|e| Failure::Failed(e.to_string()))).collect()
}

fn readers<'l>(loaded: &'l Loaded, subject: &Subject) -> Result<[NumberReader<'l>; 2]> {
    let numbers = columns(loaded, &subject.spec.read)?;
    Ok([NumberReader::new(loaded.table.layout(), numbers[0])?, NumberReader::new(loaded.table.layout(), numbers[1])?])
}

/// Pages read from disk, by whatever way.
pub(super) fn read_in(c: &CounterValues) -> u64 {
    c.synchronous_reads + c.sequential_prefetch_pages + c.dynamic_prefetch_pages + c.list_prefetch_pages
}

/// Pages of table and key read from disk so far.
fn pages_read(loaded: &Loaded) -> u64 {
    loaded.table.data_sets().map(|d| read_in(&d.counters())).sum::<u64>() + read_in(&loaded.key.data_set().counters())
}

/// Reads two columns of every row.
fn scan(database: &Database, loaded: &Loaded, subject: &Subject) -> Result<[i64; 2]> {
    let mut sums = [0i64; 2];
    let request = ScanRequest { columns: Some(columns(loaded, &subject.spec.read)?), ..ScanRequest::default() };
    let scan = database.read_view().scan(&loaded.table, &request)?;
    if loaded.method == Method::Page {
        for batch in scan {
            for (sum, column) in sums.iter_mut().zip(batch?.columns()) {
                *sum = column.ints().iter().fold(*sum, |sum, value| sum.wrapping_add(*value));
            }
        }
        return Ok(sums);
    }
    let [first, second] = readers(loaded, subject)?;
    let mut rows = scan.into_rows();
    while let Some((_, record)) = rows.next_record()? {
        sums[0] = sums[0].wrapping_add(first.read(record).map_err(damaged)?);
        sums[1] = sums[1].wrapping_add(second.read(record).map_err(damaged)?);
    }
    Ok(sums)
}

/// The row of a key.
fn find(key: &Index, values: &[i64], encoded: &mut Vec<u8>) -> Result<pagefold::types::Rid> {
    let refs: Vec<ValueRef<'_>> = values.iter().map(|v| ValueRef::Int(*v)).collect();
    encoded.clear();
    key.key_layout().encode(&refs, encoded).map_err(|e| Failure::Failed(e.to_string()))?;
    key.tree().first_rid(encoded)?.ok_or_else(|| Failure::Failed(format!("index \"{}\" has no key {values:?}", key.name())))
}

/// Looks up every probe by primary key and compares two columns of its row.
fn seek(loaded: &Loaded, subject: &Subject) -> Result<()> {
    let [first, second] = readers(loaded, subject)?;
    let wanted = columns(loaded, &subject.spec.read)?;
    let (mut encoded, mut buffer) = (Vec::new(), RowBuffer::for_columns(&loaded.table, &wanted));
    for probe in &subject.probes {
        let rid = find(&loaded.key, &probe.key, &mut encoded)?;
        let read = loaded.table.read(rid, &mut buffer, |record| Ok([first.read(record)?, second.read(record)?]))?;
        let found = read.transpose().map_err(damaged)?;
        if found != Some(probe.values) {
            verify(&format!("the row with key {:?} of table \"{}\"", probe.key, loaded.table.name()), &found, &Some(probe.values))?;
        }
    }
    Ok(())
}

/// Updates one column of many rows, each in a mini-transaction of its own; on copies of the tables, which are thrown away. Rows per second, by method.
fn update(session: &Session, database: &Database, loaded: &[Loaded], subject: &Subject) -> Result<Vec<f64>> {
    session.bars.start(&format!("updating {}", subject.spec.name), None, Unit::Rows);
    let mut change = database.change();
    let mut copies = Vec::new();
    for one in loaded {
        copies.push(change.fork_table(one.table.name())?);
    }
    let probes = &subject.probes[..subject.probes.len().min(UPDATES)];
    let mut rates = vec![Vec::new(); loaded.len()];
    // The first round brings the copies into memory and is not counted.
    for round in 0..=UPDATE_REPEATS {
        for (i, (one, copy)) in loaded.iter().zip(&copies).enumerate() {
            let column = columns(one, &[subject.spec.update])?[0];
            let mut encoded = Vec::new();
            let ((), update_s) = timed(|| {
                for (n, probe) in probes.iter().enumerate() {
                    let rid = find(&one.key, &probe.key, &mut encoded)?;
                    let found = copy.update(rid, &[(column, ValueRef::Decimal(new_value(n, round)))])?;
                    if !found {
                        return Err(Failure::Failed(format!("the row with key {:?} is missing", probe.key)));
                    }
                }
                Ok(())
            })?;
            if round > 0 {
                rates[i].push(probes.len() as f64 / update_s);
            }
            verify_updates(one, copy, subject, column, round)?;
            look()?;
        }
    }
    Ok(rates.into_iter().map(median).collect())
}

/// Values as LINEITEM's quantities are: 1.00 to 50.00, each row another one in each round.
fn new_value(row: usize, round: usize) -> i128 {
    ((row * 7 + round) % 50 + 1) as i128 * 100
}

fn verify_updates(loaded: &Loaded, copy: &Table, subject: &Subject, column: usize, round: usize) -> Result<()> {
    let reader = NumberReader::new(copy.layout(), column)?;
    let (mut encoded, mut buffer) = (Vec::new(), RowBuffer::default());
    for (n, probe) in subject.probes.iter().take(UPDATES).enumerate() {
        let rid = find(&loaded.key, &probe.key, &mut encoded)?;
        let found = copy.read(rid, &mut buffer, |record| reader.read(record))?.transpose().map_err(damaged)?;
        if found != Some(new_value(n, round) as i64) {
            verify("the value after an update", &found, &Some(new_value(n, round) as i64))?;
        }
    }
    verify("the rows after updates", &copy.row_count(), &subject.truth.rows)
}
