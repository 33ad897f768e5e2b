//! All contenders in turn, each index.
//!
//! Before anything is printed, every index is read from end to end: number of entries and all keys in order must be the same everywhere.

use super::pagefold::{self, Pagefold};
use pagefold_engine::index::IndexFormat;
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_types::{Direction, KeyLayout};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::rc::Rc;

/// The indexes that others have published sizes of.
const INDEXES: [&[&str]; 3] = [&["l_shipdate"], &["l_partkey", "l_suppkey"], &["l_shipmode", "l_shipinstruct", "l_orderkey"]];
const FORMATS: [(IndexFormat, usize); 4] =
    [(IndexFormat::Plain, 8192), (IndexFormat::Fold, 8192), (IndexFormat::Fold, 16384), (IndexFormat::Fold, 32768)];

/// Columns of an index, and its keys as pagefold writes them.
pub(super) struct IndexKeys {
    pub(super) columns: &'static [&'static str],
    /// Their positions in the table.
    #[cfg_attr(not(feature = "rivals"), expect(dead_code, reason = "rivals make keys of their own"))]
    pub(super) positions: Vec<usize>,
    #[cfg_attr(not(feature = "rivals"), expect(dead_code, reason = "rivals make keys of their own"))]
    pub(super) layout: KeyLayout,
}

/// What a contender has built.
pub(super) struct Built {
    pub(super) size_bytes: u64,
    /// Folds: leaf pages, and how many there must be at least.
    pub(super) leaf_pages_and_allowed: Option<(u64, u64)>,
}

/// Number of entries, and a hash of all keys in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Digest {
    entries: u64,
    hasher: DefaultHasher,
}

impl Digest {
    pub(super) fn see(&mut self, key: &[u8]) {
        self.entries += 1;
        self.hasher.write_usize(key.len());
        self.hasher.write(key);
    }

    fn value(&self) -> (u64, u64) {
        (self.entries, self.hasher.finish())
    }
}

/// An engine that can hold a secondary index.
pub(super) trait Contender {
    fn name(&self) -> String;
    /// Builds it; what this takes is measured.
    fn build(&mut self, index: &IndexKeys) -> Outcome<Built>;
    /// Reads it from end to end.
    fn digest(&mut self, index: &IndexKeys) -> Outcome<Digest>;
    /// Removes it.
    fn remove(&mut self) -> Outcome<()>;
}

/// Settings of a run.
pub(crate) struct Settings {
    pub(crate) memory_bytes: usize,
    pub(crate) rounds: usize,
}

struct Measured {
    name: String,
    built: Built,
    wall_s: Vec<f64>,
    cpu_s: Vec<f64>,
}

/// Builds every index under every contender.
pub(crate) fn run(folder: &Path, data: &Lineitem, settings: &Settings) -> Outcome<()> {
    let schema = data.table.schema();
    let database = pagefold::table(&folder.join("pagefold"), data, settings.memory_bytes)?;
    // Memory for sorting does not run out anywhere.
    let sort_bytes = 1 << 30;
    let ours = FORMATS.map(|(format, page_bytes)| Pagefold { database: Rc::clone(&database), format, page_bytes, sort_bytes });
    let mut contenders: Vec<Box<dyn Contender>> = ours.into_iter().map(|c| Box::new(c) as Box<dyn Contender>).collect();
    #[cfg(feature = "rivals")]
    contenders.extend(super::rivals::contenders(folder, data, &INDEXES.concat())?);
    for columns in INDEXES {
        let positions = columns.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let key: Vec<(usize, Direction)> = positions.iter().map(|column| (*column, Direction::Ascending)).collect();
        let index = IndexKeys { columns, positions, layout: KeyLayout::new(schema, &key) };
        let mut measured: Vec<Measured> = Vec::new();
        let mut first = None;
        for round in 0..settings.rounds.max(1) {
            for (i, contender) in contenders.iter_mut().enumerate() {
                let (wall, cpu) = (Clock::Wall.now_s(), Clock::Thread.now_s());
                let built = contender.build(&index)?;
                let (wall, cpu) = (Clock::Wall.now_s() - wall, Clock::Thread.now_s() - cpu);
                if round == 0 {
                    let digest = contender.digest(&index)?.value();
                    if *first.get_or_insert(digest) != digest {
                        return Err(
                            format!("{}: the index on {columns:?} has other entries: {digest:?}, {first:?}", contender.name()).into()
                        );
                    }
                    measured.push(Measured { name: contender.name(), built, wall_s: Vec::new(), cpu_s: Vec::new() });
                }
                measured[i].wall_s.push(wall);
                measured[i].cpu_s.push(cpu);
                contender.remove()?;
            }
        }
        print(columns, first.map_or(0, |(entries, _)| entries), &measured);
    }
    Ok(())
}

fn print(columns: &[&str], entries: u64, measured: &[Measured]) {
    println!("({}): {entries} entries, the same keys in the same order everywhere", columns.join(", "));
    println!(
        "{:34} {:>9} {:>10} {:>10} {:>7} {:>24} {:>10}",
        "", "size [MB]", "leaf pages", "allowed", "ratio", "build [s] (spread)", "CPU [s]"
    );
    for m in measured {
        let (wall, cpu) = (Spread::of(m.wall_s.iter().copied()), Spread::of(m.cpu_s.iter().copied()));
        let (leaves, allowed, ratio) = match m.built.leaf_pages_and_allowed {
            Some((leaves, allowed)) => (leaves.to_string(), allowed.to_string(), format!("{:.3}", leaves as f64 / allowed.max(1) as f64)),
            None => Default::default(),
        };
        println!(
            "{:34} {:>9.1} {leaves:>10} {allowed:>10} {ratio:>7} {:>8.2} ({:>6.2}-{:>6.2}) {:>10.2}",
            m.name,
            m.built.size_bytes as f64 / 1e6,
            wall.median,
            wall.low,
            wall.high,
            cpu.median
        );
    }
    println!();
}
