//! What recording the keys of look-ups costs, and how well a trace of one in eight foretells what pools read.
//!
//! `cargo run --release -p pagefold-lab-engine --bin key_trace -- [--pools]`
//!
//! Cost: look-ups of the index alone, all of it in memory, on one thread, by its processor time. Two indexes of the same entries are asked the same, a few thousand look-ups in turn, so that
//! whatever else the machine does falls on both; first neither is recorded, then the one, then the other. A round has a million look-ups, sixteen windows of time; what is printed is the median
//! of the rounds, with the least and the greatest. So for a large index, of which spans are recorded, and for a small one, of which windows of time are.
//!
//! Pools: three traces of different skew, recorded in an index of plain leaves of 8 KB; then the index is built in each format and at each page size, with a pool of an eighth of its plain size, and
//! asked the same: the pages read for each request of the second half, beside those that were foretold.

use clap::Parser;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat, RecordOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_format::key_trace::KeyTrace;
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::random::Random;
use pagefold_types::{Column, DataType, Direction, Rid, Schema, ValueRef};
use pagefold_utility::{PageSizeOptions, Silent, drop_object, page_sizes};
use std::path::Path;
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// Entries of the index.
    #[arg(long, default_value_t = 2_000_000)]
    entries: u64,
    /// Entries of the small index.
    #[arg(long, default_value_t = 100_000)]
    small: u64,
    /// Look-ups of a round.
    #[arg(long, default_value_t = 1 << 20)]
    lookups: usize,
    /// Rounds.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Compare with pools instead.
    #[arg(long)]
    pools: bool,
    /// Requests of a trace, with --pools.
    #[arg(long, default_value_t = 1_000_000)]
    requests: usize,
    /// One of so many requests is kept.
    #[arg(long, default_value_t = 16)]
    one_in: u32,
}

/// Look-ups of a turn.
const TURN: usize = 4096;

/// Numbers that ascend and are not close together.
fn number(place: u64) -> i64 {
    (place * 1_000_003 + (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 45)) as i64
}

struct Lab {
    database: Database,
}

impl Lab {
    fn new(memory_bytes: usize) -> Outcome<Lab> {
        let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
        let database = Database::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("db"), OpenMode::Create, settings)?;
        let mut change = database.change();
        let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)])?;
        change.create_table(TableAttributes::new("t", schema))?;
        change.commit()?;
        Ok(Lab { database })
    }

    /// An index of so many entries, filled in order. Its rows are not there: nothing here asks for them.
    fn build(&self, name: &str, entries: u64, format: IndexFormat, page_bytes: usize) -> Outcome<Arc<Index>> {
        let mut change = self.database.change();
        let table = self.database.table("t")?;
        let attributes = IndexAttributes::new(name, vec![(0, Direction::Ascending)], true).with_format(format, page_bytes);
        let index = change.create_index(&table, attributes)?;
        let mut builder = index.build(127);
        let mut key = Vec::new();
        for place in 0..entries {
            key.clear();
            index.key_layout().encode(&[ValueRef::Int(number(place))], &mut key)?;
            // Rows lie in another order than keys.
            let row = place.wrapping_mul(0x9E37_79B1) % entries;
            builder.push(&key, Rid::new(0, 2 + (row / 128) as u32, (row % 128) as u16))?;
        }
        builder.finish()?;
        change.commit()?;
        Ok(self.database.index(name)?)
    }
}

fn keys_of(index: &Index, entries: u64) -> Outcome<Vec<Vec<u8>>> {
    let key = |place| {
        let mut key = Vec::new();
        index.key_layout().encode(&[ValueRef::Int(number(place))], &mut key)?;
        Ok(key)
    };
    (0..entries).map(key).collect()
}

fn ask(index: &Index, keys: &[Vec<u8>], requests: impl Iterator<Item = usize>) -> Outcome<()> {
    for place in requests {
        if index.tree().first_rid(&keys[place])?.is_none() {
            return Err("a key is missing".into());
        }
    }
    Ok(())
}

/// What a recorder that is on takes over one that is off.
fn cost(lab: &Lab, name: &str, entries: u64, options: &Options) -> Outcome<()> {
    let indexes = [
        lab.build(&format!("{name} a"), entries, IndexFormat::Prefix, 8192)?,
        lab.build(&format!("{name} b"), entries, IndexFormat::Prefix, 8192)?,
    ];
    let keys = keys_of(&indexes[0], entries)?;
    indexes.iter().try_for_each(|index| ask(index, &keys, 0..keys.len()))?;
    let mut random = Random(9);
    let record = RecordOptions { one_in: options.one_in, bytes_max: 64 << 20 };
    // By which of the two is recorded: neither, the first, the second.
    let mut medians = Vec::new();
    for recorded in [None, Some(0), Some(1)] {
        if let Some(recorded) = recorded {
            indexes[recorded].record_keys(&record)?;
        }
        let (mut ratios, mut per_s) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let mut seconds = [0.0; 2];
            for turn in 0..options.lookups / TURN {
                let requests: Vec<usize> = (0..TURN).map(|_| random.below(keys.len())).collect();
                for which in [turn % 2, 1 - turn % 2] {
                    let start = Clock::Thread.now_s();
                    ask(&indexes[which], &keys, requests.iter().copied())?;
                    seconds[which] += Clock::Thread.now_s() - start;
                }
            }
            ratios.push(seconds[0] / seconds[1]);
            per_s.push(options.lookups as f64 / seconds[1] / 1e3);
        }
        let (ratio, per_s) = (Spread::of(ratios), Spread::of(per_s).median);
        let kept = match recorded.and_then(|recorded| indexes[recorded].stop_recording_keys()) {
            Some(trace) => format!("{:.3} of the requests kept", trace.references.len() as f64 / trace.requests as f64),
            None => "nothing recorded".into(),
        };
        println!("{name}, {kept}: time of a over b {:.4} ({:.4}-{:.4}); b {per_s:.0} k/s", ratio.median, ratio.low, ratio.high);
        medians.push(ratio.median);
    }
    // Where the two lie in memory makes a difference, which comes once with each sign.
    println!("{name}: {entries} entries, time with recording on over off {:.4}", (medians[1] / medians[2]).sqrt());
    Ok(())
}

fn zipf(entries: u64, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut add = |rank: u64| {
        sum += (rank as f64).powf(-exponent);
        sum
    };
    (1..=entries).map(&mut add).collect()
}

/// Places in key order that are asked for.
fn requests(kind: &str, entries: u64, count: usize) -> Vec<usize> {
    let mut random = Random(3);
    let weights = zipf(entries, if kind == "zipf 0.9" { 0.9 } else { 1.2 });
    let sum = weights.last().copied().unwrap_or(1.0);
    let mut scan = 0;
    let mut one = || {
        if kind == "uniform" {
            return random.below(entries as usize) as u64;
        }
        if kind == "hot range and scan" && random.below(5) == 0 {
            scan += 17;
            return scan % entries;
        }
        let at = random.below(1 << 53) as f64 / (1u64 << 53) as f64 * sum;
        let rank = weights.partition_point(|weight| *weight < at) as u64;
        if kind == "zipf 0.9" { rank.wrapping_mul(0x9E37_79B1) % entries } else { (rank + entries / 3) % entries }
    };
    (0..count).map(|_| one() as usize).collect()
}

fn pools(options: &Options) -> Outcome<()> {
    const PAGE_SIZES: [usize; 5] = [2048, 4096, 8192, 16384, 32768];
    const CHUNK_BYTES: u64 = 256 << 10;
    let entries = options.entries;
    let lab = Lab::new(512 << 20)?;
    let pool_bytes = entries * 22 / 8 / CHUNK_BYTES * CHUNK_BYTES;
    let first = lab.build("first", 1, IndexFormat::Plain, 6144)?;
    for bytes in PAGE_SIZES {
        first.manager().create_pool(&format!("I{}K", bytes / 1024), bytes, pool_bytes as usize)?;
    }
    for kind in ["uniform", "zipf 0.9", "hot range and scan"] {
        let index = lab.build("i", entries, IndexFormat::Plain, 8192)?;
        let keys = keys_of(&index, entries)?;
        let requests = requests(kind, entries, options.requests);
        index.record_keys(&RecordOptions { bytes_max: 64 << 20, one_in: options.one_in })?;
        ask(&index, &keys, requests.iter().copied())?;
        let trace = index.stop_recording_keys().ok_or("nothing was recorded")?;
        let file = trace.encode();
        let trace = KeyTrace::decode(&file)?;
        println!(
            "{kind}: {} of {} requests kept ({} counted), {} spans, a file of {} KB, a pool of {} KB",
            trace.references.len(),
            requests.len(),
            trace.requests,
            trace.spans.len(),
            file.len() / 1024,
            pool_bytes / 1024
        );
        let report = |pool_bytes| {
            let options = PageSizeOptions { trace: Some(trace.clone()), pool_bytes, ..PageSizeOptions::default() };
            page_sizes(&lab.database, "i", &options, &Silent)
        };
        let lines = report(pool_bytes)?.lines;
        drop(index);
        drop_object(&lab.database, "i")?;
        let (mut farthest, half) = (0.0f64, requests.len() / 2);
        for line in lines.iter().filter(|line| PAGE_SIZES.contains(&line.estimate.candidate.page_bytes)) {
            let candidate = line.estimate.candidate;
            let format: IndexFormat = candidate.format().parse()?;
            let index = lab.build("i", entries, format, candidate.page_bytes)?;
            let folded_upper = line.estimate.non_leaf_pages * 4096;
            let mut forecast = line.forecast.clone().ok_or("nothing is foretold")?;
            if candidate.folds() {
                // Pages above folded leaves have a pool of their own here, beside that of the leaves.
                let upper = folded_upper.div_ceil(CHUNK_BYTES) * CHUNK_BYTES;
                let beside = report_of(&lab, &trace, &candidate, pool_bytes + upper)?;
                forecast = beside.unwrap_or(forecast);
            }
            ask(&index, &keys, requests[..half].iter().copied())?;
            let before = index.data_set().counters().synchronous_reads;
            ask(&index, &keys, requests[half..].iter().copied())?;
            let reads = (index.data_set().counters().synchronous_reads - before) as f64 / half as f64;
            let off = forecast.reads_per_request - reads;
            println!(
                "  {:>6} {:>2} KB: {reads:.4} pages read for a request, foretold {:.4} ({off:+.4}) from {} of {} leaves{}",
                candidate.format(),
                candidate.page_bytes / 1024,
                forecast.reads_per_request,
                forecast.leaves_sampled,
                line.estimate.leaf_pages.value,
                if forecast.is_warm { "" } else { ", not warm" },
            );
            farthest = farthest.max(off.abs());
            drop(index);
            drop_object(&lab.database, "i")?;
        }
        println!("  off by {:.2} points at most", farthest * 100.0);
    }
    Ok(())
}

/// The forecast of one candidate, from the index as it is built now.
fn report_of(
    lab: &Lab,
    trace: &KeyTrace,
    candidate: &pagefold_advisor::IndexCandidate,
    pool_bytes: u64,
) -> Outcome<Option<pagefold_utility::PoolForecast>> {
    let options = PageSizeOptions { trace: Some(trace.clone()), pool_bytes, ..PageSizeOptions::default() };
    let lines = page_sizes(&lab.database, "i", &options, &Silent)?.lines;
    Ok(lines.into_iter().find(|line| line.estimate.candidate == *candidate).and_then(|line| line.forecast))
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    if options.pools {
        return pools(&options);
    }
    let lab = Lab::new(512 << 20)?;
    cost(&lab, "large", options.entries, &options)?;
    cost(&lab, "small", options.small, &options)
}
