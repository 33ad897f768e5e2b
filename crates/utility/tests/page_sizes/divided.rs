//! One memory for two indexes: the division that is named against all divisions, really measured.

use crate::data::{build, database};
use crate::random::Rng;
use pagefold_advisor::IndexCandidate;
use pagefold_engine::database::Database;
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat, RecordOptions};
use pagefold_types::ValueRef;
use pagefold_utility::{IndexOptions, PageSizeOptions, PageSizeReport, Silent, divide_memory, drop_object, page_sizes};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: u64 = 200_000;
const CHUNK_BYTES: usize = 256 << 10;
/// Memory, in chunks.
const CHUNKS: usize = 5;
const CANDIDATES: [(IndexFormat, usize); 6] = [
    (IndexFormat::Plain, 2048),
    (IndexFormat::Plain, 8192),
    (IndexFormat::Plain, 32768),
    (IndexFormat::Prefix, 2048),
    (IndexFormat::Prefix, 8192),
    (IndexFormat::Prefix, 32768),
];

fn key(index: &Index, column: &str, row: u64) -> Vec<u8> {
    let scattered = (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8) as i64;
    let value = ValueRef::Int(if column == "up" { row as i64 * 5 } else { scattered });
    let mut key = Vec::new();
    index.key_layout().encode(&[value], &mut key).unwrap();
    key
}

/// Rows asked for: of one index all alike, of the other mostly some neighbours.
fn requests(column: &str) -> Vec<u64> {
    let mut random = Rng(21);
    let mut one = || match column {
        "random" => random.below(ROWS),
        _ if random.below(10) < 8 => ROWS / 2 + random.below(ROWS / 6),
        _ => random.below(ROWS),
    };
    (0..if column == "random" { 40_000 } else { 80_000 }).map(|_| one()).collect()
}

fn ask(index: &Index, column: &str, requests: &[u64]) {
    for row in requests {
        assert!(index.tree().first_rid(&key(index, column, *row)).unwrap().is_some());
    }
}

/// The index "i" again, with a pool of its own.
fn copy(database: &Database, (format, page_bytes): (IndexFormat, usize), chunks: usize) -> Arc<Index> {
    let of = database.index("i").unwrap();
    let name = format!("{format} {page_bytes} {chunks}");
    // Made by whoever comes first.
    let _ = of.manager().create_pool(&name, page_bytes, chunks * CHUNK_BYTES);
    let mut change = database.change();
    let table = database.table("t").unwrap();
    let attributes = IndexAttributes::new("copy", of.attributes().columns.clone(), true).with_format(format, page_bytes);
    let copy = change.create_index(&table, IndexAttributes { pool: name, ..attributes }).unwrap();
    let mut builder = copy.build(4095);
    let mut cursor = of.tree().all(pagefold_engine::btree::Direction::Forward);
    while let Some((key, rid)) = cursor.next().unwrap() {
        builder.push(key, rid).unwrap();
    }
    builder.finish().unwrap();
    change.commit().unwrap();
    database.index("copy").unwrap()
}

#[test]
fn no_other_division_reads_much_less() {
    let database = database(ROWS, 64 << 20);
    let mut reports: Vec<PageSizeReport> = Vec::new();
    let mut measured: Vec<BTreeMap<(&str, usize, usize), f64>> = Vec::new();
    for column in ["up", "random"] {
        let index = build(&database, &[column], &IndexOptions { unique: true, ..IndexOptions::default() });
        let requests = requests(column);
        index.record_keys(&RecordOptions { one_in: 1, ..RecordOptions::default() }).unwrap();
        ask(&index, column, &requests);
        let trace = index.stop_recording_keys();
        assert!(trace.as_ref().is_some_and(|trace| trace.references.len() == requests.len()));
        let mut report = page_sizes(&database, "i", &PageSizeOptions { trace, ..PageSizeOptions::default() }, &Silent).unwrap();
        let is_measured =
            |c: &IndexCandidate| CANDIDATES.iter().any(|(format, bytes)| format.name() == c.format() && *bytes == c.page_bytes);
        let present = report.lines[report.present].estimate.candidate;
        report.lines.retain(|line| is_measured(&line.estimate.candidate));
        report.present = report.lines.iter().position(|line| line.estimate.candidate == present).unwrap();
        reports.push(report);
        let mut reads_of = BTreeMap::new();
        for candidate in CANDIDATES {
            for chunks in 1..CHUNKS {
                let copy = copy(&database, candidate, chunks);
                ask(&copy, column, &requests);
                let before = copy.data_set().counters().synchronous_reads;
                ask(&copy, column, &requests);
                let reads = (copy.data_set().counters().synchronous_reads - before) as f64;
                reads_of.insert((candidate.0.name(), candidate.1, chunks), reads);
                drop((drop_object(&database, "copy").unwrap(), copy));
            }
        }
        measured.push(reads_of);
        drop((drop_object(&database, "i").unwrap(), index));
    }
    let division = divide_memory(&reports, (CHUNKS * CHUNK_BYTES) as u64).unwrap();
    let mut really = 0.0;
    for (own, measured) in division.iter().zip(&measured) {
        let chunks = own.pool_bytes as usize / CHUNK_BYTES;
        really += measured[&(own.candidate.format(), own.candidate.page_bytes, chunks.clamp(1, CHUNKS - 1))];
    }
    let least_with = |measured: &BTreeMap<(&str, usize, usize), f64>, chunks: usize| {
        measured.iter().filter(|(key, _)| key.2 == chunks).map(|(_, reads)| *reads).fold(f64::INFINITY, f64::min)
    };
    let all: Vec<f64> = (1..CHUNKS).map(|chunks| least_with(&measured[0], chunks) + least_with(&measured[1], CHUNKS - chunks)).collect();
    let best = all.iter().copied().fold(f64::INFINITY, f64::min);
    let foretold: f64 = division.iter().map(|own| own.reads).sum();
    // What it would be with half of the memory each, as the indexes are.
    let as_now: f64 = measured.iter().map(|measured| measured[&("plain", 8192, CHUNKS / 2)]).sum();
    println!(
        "{division:?}\nforetold {foretold:.0}, measured {really:.0}, best of all divisions measured {best:.0}, plain with halves {as_now:.0}"
    );
    assert!(division.iter().map(|own| own.pool_bytes).sum::<u64>() <= (CHUNKS * CHUNK_BYTES) as u64);
    assert!(best > 1_000.0 && best < 0.8 * as_now, "there is something to choose");
    assert!(really <= 1.05 * best, "{really} {best}");
    assert!((foretold - really).abs() <= 0.1 * really.max(1.0) + 2_000.0, "{foretold} {really}");
}
