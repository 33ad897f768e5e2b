//! Indexes of a table in every format and page size: compared with one another, then measured.

use super::outcome::IndexOutcome;
use super::subject::{Reservoir, Subject};
use super::tables::{read_in, table_name};
use super::{look, median, timed, verify};
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::advisor::{IndexCandidate, IndexEstimate, IndexEstimator, IndexKeys, LeafFormat};
use pagefold::engine::Database;
use pagefold::engine::index::{CursorDirection, Index, IndexFormat};
use pagefold::engine::table::Method;
use pagefold::types::Direction;
use pagefold::utility::{self, IndexOptions, Progress, Unit};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const PLAIN_PAGE_BYTES: [usize; 4] = [4096, 8192, 16384, 32768];
const FOLD_PAGE_BYTES: [usize; 3] = [8192, 16384, 32768];
const PREFIX_PAGE_BYTES: [usize; 3] = [4096, 8192, 16384];
/// What the others are compared with.
pub(super) const BASE: IndexCandidate = IndexCandidate { format: LeafFormat::Plain, page_bytes: 8192, pctfree: 0 };
/// Keys looked up.
const KEYS_MAX: usize = 50_000;
const REPEATS: usize = 3;

/// What every form of an index has to hold.
#[derive(Debug, PartialEq)]
struct Entries {
    count: u64,
    /// Over all entries in order.
    checksum: u64,
}

/// Builds and measures the indexes of the table's last method.
pub(super) fn measure(session: &Session, database: &Database, subject: &Subject) -> Result<Vec<IndexOutcome>> {
    let mut outcomes = Vec::new();
    if subject.spec.indexes.is_empty() {
        return Ok(outcomes);
    }
    let table = table_name(subject, Method::Fixed);
    let keys = std::iter::once((subject.spec.primary_key, true)).chain(subject.spec.indexes.iter().map(|columns| (*columns, false)));
    for (columns, unique) in keys {
        outcomes.extend(measure_one(session, database, &table, columns, unique)?);
    }
    Ok(outcomes)
}

fn candidates() -> Vec<IndexCandidate> {
    // The base comes first: the estimates for all are made from its entries.
    let plain = PLAIN_PAGE_BYTES.map(IndexCandidate::plain).into_iter().filter(|c| *c != BASE);
    let compressed = FOLD_PAGE_BYTES.map(IndexCandidate::folded).into_iter().chain(PREFIX_PAGE_BYTES.map(IndexCandidate::prefix));
    std::iter::once(BASE).chain(plain).chain(compressed).collect()
}

fn index_name(table: &str, columns: &[&str], candidate: &IndexCandidate) -> String {
    let columns: Vec<&str> = columns.iter().map(|name| name.split_once('_').map_or(*name, |(_, rest)| rest)).collect();
    format!("{table}_{}_{}_{}k", columns.join("_"), candidate.format(), candidate.page_bytes / 1024)
}

fn build(
    session: &Session,
    database: &Database,
    name: &str,
    table: &str,
    columns: &[&str],
    unique: bool,
    c: &IndexCandidate,
) -> Result<Arc<Index>> {
    let columns: Vec<(String, Direction)> = columns.iter().map(|column| ((*column).to_owned(), Direction::Ascending)).collect();
    let options = IndexOptions {
        unique,
        format: match c.format {
            LeafFormat::Plain => IndexFormat::Plain,
            LeafFormat::Fold => IndexFormat::Fold,
            LeafFormat::Prefix => IndexFormat::Prefix,
        }
        .into(),
        page_bytes: Some(c.page_bytes),
        pctfree: c.pctfree,
        sort_bytes: session.sort_bytes(),
        ..IndexOptions::default()
    };
    utility::create_index(database, name, table, &columns, &options, &session.bars)?;
    Ok(database.index(name)?)
}

fn measure_one(session: &Session, database: &Database, table: &str, columns: &[&str], unique: bool) -> Result<Vec<IndexOutcome>> {
    let candidates = candidates();
    let mut built: Vec<(Arc<Index>, f64)> = Vec::new();
    for candidate in &candidates {
        let name = index_name(table, columns, candidate);
        built.push(timed(|| build(session, database, &name, table, columns, unique, candidate))?);
        look()?;
    }
    let columns_text = columns.join(", ");
    session.bars.start(&format!("measuring ({columns_text})"), None, Unit::Rows);
    let (entries, keys, slot_max) = survey(&built[0].0)?;
    let estimates = estimate(&built[0].0, unique, slot_max, &candidates)?;
    for (index, _) in &built {
        verify(&format!("the entries of index \"{}\"", index.name()), &read_all(index)?, &entries)?;
    }
    let mut scans = vec![Vec::new(); built.len()];
    let mut seeks = vec![Vec::new(); built.len()];
    let mut reads = vec![0; built.len()];
    for _ in 0..REPEATS {
        for (i, (index, _)) in built.iter().enumerate() {
            let before = read_in(&index.data_set().counters());
            let (count, scan_s) = timed(|| count_all(index))?;
            verify("the entries of an index scan", &count, &entries.count)?;
            scans[i].push(scan_s);
            let ((), seek_s) = timed(|| seek(index, &keys))?;
            seeks[i].push(keys.len() as f64 / seek_s);
            reads[i] = read_in(&index.data_set().counters()) - before;
            look()?;
        }
    }
    let outcomes: Vec<IndexOutcome> = candidates
        .iter()
        .zip(&built)
        .zip(estimates)
        .enumerate()
        .map(|(i, ((candidate, (index, build_s)), estimate))| {
            let data_set = index.data_set();
            let facts = data_set.facts().clone();
            let size_bytes = u64::from(data_set.page_count()) * data_set.page_bytes() as u64;
            IndexOutcome {
                table: table.to_owned(),
                columns: columns_text.clone(),
                unique,
                format: candidate.format(),
                page_size_bytes: candidate.page_bytes as u64,
                entries: facts.rows,
                keys: facts.keys,
                levels: u64::from(facts.levels),
                leaf_pages: u64::from(facts.data_pages),
                pages: u64::from(data_set.page_count()),
                pages_estimated: estimate.pages.value,
                size_bytes,
                build_s: *build_s,
                scan_s: median(std::mem::take(&mut scans[i])),
                seek_per_s: median(std::mem::take(&mut seeks[i])),
                pages_read: reads[i],
            }
        })
        .collect();
    session.bars.finish();
    drop_all_but_smallest(database, &built, &outcomes)?;
    Ok(outcomes)
}

/// The smallest form stays in the database, for whoever wants to look at it.
fn drop_all_but_smallest(database: &Database, built: &[(Arc<Index>, f64)], outcomes: &[IndexOutcome]) -> Result<()> {
    let smallest = outcomes.iter().enumerate().min_by_key(|(_, o)| o.size_bytes).map_or(0, |(i, _)| i);
    let mut change = database.change();
    for (i, (index, _)) in built.iter().enumerate() {
        if i != smallest {
            change.drop_index(index.name())?;
        }
    }
    Ok(change.commit()?)
}

fn read_all(index: &Index) -> Result<Entries> {
    let mut cursor = index.tree().all(CursorDirection::Forward);
    let mut entries = Entries { count: 0, checksum: 0 };
    while let Some((key, rid)) = cursor.next()? {
        entries.count += 1;
        entries.checksum = xxh3_64_with_seed(key, entries.checksum ^ rid.to_u64());
    }
    Ok(entries)
}

/// All entries added up, keys to look for, and the largest slot.
fn survey(index: &Index) -> Result<(Entries, Vec<Vec<u8>>, u16)> {
    let mut cursor = index.tree().all(CursorDirection::Forward);
    let mut keys = Reservoir::new(KEYS_MAX, 0x5EED);
    let mut slot_max = 0;
    while let Some((key, rid)) = cursor.next()? {
        keys.offer(|| Ok::<_, Failure>(key.to_vec()))?;
        slot_max = slot_max.max(rid.slot());
    }
    Ok((read_all(index)?, keys.into_vec(), slot_max))
}

/// What every form will take, from the entries of one.
fn estimate(index: &Index, unique: bool, slot_max: u16, candidates: &[IndexCandidate]) -> Result<Vec<IndexEstimate>> {
    let failed = |e: pagefold::advisor::AdvisorError| Failure::Failed(e.to_string());
    let keys = IndexKeys { unique, fixed_key_bytes: index.key_layout().fixed_len(), slot_max };
    let mut estimator = IndexEstimator::new(keys, candidates);
    let mut cursor = index.tree().all(CursorDirection::Forward);
    while let Some((key, rid)) = cursor.next()? {
        estimator.push(key, rid).map_err(failed)?;
    }
    estimator.finish().map_err(failed)
}

/// An index-only scan: every key and RID is looked at.
fn count_all(index: &Index) -> Result<u64> {
    let mut cursor = index.tree().all(CursorDirection::Forward);
    let (mut count, mut seen) = (0u64, 0u64);
    while let Some((key, rid)) = cursor.next()? {
        count += 1;
        seen = seen.wrapping_add(rid.to_u64()).wrapping_add(u64::from(key.last().copied().unwrap_or(0)));
    }
    std::hint::black_box(seen);
    Ok(count)
}

fn seek(index: &Index, keys: &[Vec<u8>]) -> Result<()> {
    let tree = index.tree();
    for key in keys {
        if tree.first_rid(key)?.is_none() {
            return Err(Failure::Failed(format!("index \"{}\" has lost key {}", index.name(), index.key_layout().describe(key))));
        }
    }
    Ok(())
}
