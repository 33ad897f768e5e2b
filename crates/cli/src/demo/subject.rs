//! The tables of the demo, and what is known of their rows before anything is stored.

use super::{look, timed};
use crate::failure::{Failure, Result};
use crate::tpch::{TpchSource, TpchTable};
use pagefold::advisor::{TableEstimate, TableEstimator, TableOptions};
use pagefold::interchange::{Packer, Source};
use pagefold::types::{ColumnReader, PackedRow, PackedRows, Physical, RecordError, RowLayout};
use pagefold::utility::{Progress, Unit, add_every_method, sample_source};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Page size of the tables.
pub(super) const TABLE_PAGE_BYTES: usize = 8192;
/// Rows looked up and updated.
const KEYS_MAX: usize = 100_000;

/// A table of the demo.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) tpch: TpchTable,
    pub(super) name: &'static str,
    pub(super) primary_key: &'static [&'static str],
    /// The two columns that scan and seek read: numbers.
    pub(super) read: [&'static str; 2],
    /// The column that is updated: a DECIMAL.
    pub(super) update: &'static str,
    /// Columns of further indexes.
    pub(super) indexes: &'static [&'static [&'static str]],
}

pub(super) const SPECS: [Spec; 2] = [
    Spec {
        tpch: TpchTable::Lineitem,
        name: "lineitem",
        primary_key: &["l_orderkey", "l_linenumber"],
        read: ["l_extendedprice", "l_discount"],
        update: "l_quantity",
        indexes: &[&["l_shipdate"], &["l_partkey", "l_suppkey"], &["l_shipmode", "l_shipinstruct", "l_orderkey"]],
    },
    Spec {
        tpch: TpchTable::Orders,
        name: "orders",
        primary_key: &["o_orderkey"],
        read: ["o_totalprice", "o_orderdate"],
        update: "o_totalprice",
        indexes: &[],
    },
];

/// A row to look up: its key, and what the two columns read hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probe {
    pub(super) key: Vec<i64>,
    pub(super) values: [i64; 2],
}

/// Facts that every way of storing the table has to reproduce.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Truth {
    pub(super) rows: u64,
    pub(super) record_bytes: u64,
    /// Over all records in order.
    pub(super) checksum: u64,
    pub(super) sums: [i64; 2],
}

impl Truth {
    /// Adds a record; the sums are added by whoever reads the columns.
    pub(super) fn add(&mut self, record: &[u8]) {
        self.rows += 1;
        self.record_bytes += record.len() as u64;
        self.checksum = xxh3_64_with_seed(record, self.checksum);
    }
}

/// Reads a number out of records.
#[derive(Clone, Copy)]
pub(super) struct NumberReader<'l> {
    reader: ColumnReader<'l>,
    decimal: bool,
}

impl<'l> NumberReader<'l> {
    pub(super) fn new(layout: &'l RowLayout, column: usize) -> Result<NumberReader<'l>> {
        let reader = layout.reader(column).map_err(damaged)?;
        Ok(NumberReader { decimal: matches!(reader.physical(), Physical::Decimal { .. }), reader })
    }

    /// NULL counts as 0.
    #[inline]
    pub(super) fn read(&self, record: &[u8]) -> std::result::Result<i64, RecordError> {
        Ok(if self.decimal { self.reader.decimal(record)?.unwrap_or(0) as i64 } else { self.reader.int(record)?.unwrap_or(0) })
    }
}

pub(super) fn damaged(error: RecordError) -> Failure {
    Failure::Failed(format!("a record is damaged: {error}"))
}

/// A table with everything known of it.
pub(super) struct Subject {
    pub(super) spec: &'static Spec,
    pub(super) source: TpchSource,
    pub(super) truth: Truth,
    pub(super) probes: Vec<Probe>,
    /// One for each of [`Method::ALL`](pagefold::engine::table::Method::ALL).
    pub(super) estimates: Vec<TableEstimate>,
    /// Seconds that reading the source and estimating took.
    pub(super) estimate_s: f64,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(n)) >> 64) as u64
    }
}

/// A uniform sample of a stream of unknown length, in random order (Vitter's algorithm R, then Fisher and Yates).
pub(super) struct Reservoir<T> {
    items: Vec<T>,
    seen: u64,
    max: usize,
    random: Random,
}

impl<T> Reservoir<T> {
    pub(super) fn new(max: usize, seed: u64) -> Reservoir<T> {
        Reservoir { items: Vec::new(), seen: 0, max, random: Random::new(seed) }
    }

    /// Offers an item that is only made when it is taken.
    pub(super) fn offer<E>(&mut self, make: impl FnOnce() -> std::result::Result<T, E>) -> std::result::Result<(), E> {
        self.seen += 1;
        if self.items.len() < self.max {
            self.items.push(make()?);
        } else {
            let at = self.random.below(self.seen) as usize;
            if at < self.max {
                self.items[at] = make()?;
            }
        }
        Ok(())
    }

    pub(super) fn into_vec(mut self) -> Vec<T> {
        for i in (1..self.items.len()).rev() {
            self.items.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        self.items
    }
}

impl Subject {
    /// Generates the table, counts it, adds it up, and estimates what each method will take.
    pub(super) fn prepare(spec: &'static Spec, scale_factor: f64, keep: bool, progress: &dyn Progress) -> Result<Subject> {
        progress.start(&format!("generating {}", spec.name), None, Unit::Rows);
        let mut source = TpchSource::new(spec.tpch, scale_factor, keep, |rows| {
            progress.advance(rows);
            look()
        })?;
        progress.finish();
        progress.start(&format!("estimating {}", spec.name), Some(source.rows()), Unit::Rows);
        let ((truth, probes, estimates), estimate_s) = timed(|| survey(spec, &mut source, progress))?;
        progress.finish();
        Ok(Subject { spec, source, truth, probes, estimates, estimate_s })
    }
}

/// One pass over the source.
fn survey(spec: &Spec, source: &mut TpchSource, progress: &dyn Progress) -> Result<(Truth, Vec<Probe>, Vec<TableEstimate>)> {
    let schema = source.table().clone();
    let column = |name: &&str| schema.schema().index_of(name).map_err(|e| Failure::Failed(format!("{}: {e}", spec.name)));
    let layout = RowLayout::new(schema.schema()).map_err(|e| Failure::Failed(format!("{}: {e}", spec.name)))?;
    let key_columns = spec.primary_key.iter().map(column).collect::<Result<Vec<usize>>>()?;
    let key_readers = key_columns.iter().map(|c| NumberReader::new(&layout, *c)).collect::<Result<Vec<_>>>()?;
    let [first, second] = [NumberReader::new(&layout, column(&spec.read[0])?)?, NumberReader::new(&layout, column(&spec.read[1])?)?];

    let options = TableOptions::new(TABLE_PAGE_BYTES);
    let limit = options.record_bytes_max();
    let mut estimator = TableEstimator::new(&layout, &key_columns);
    // The sample and the decision of LOAD.
    let sample = sample_source(source, &schema, &layout, limit)?.into_sample();
    add_every_method(&mut estimator, &layout, &sample, source.rows(), options);

    let mut truth = Truth::default();
    let mut probes = Reservoir::new(KEYS_MAX, 0x5EED);
    let packer = Packer::new(&schema, &layout, (0..layout.column_count()).collect(), limit);
    let mut rows = PackedRows::default();
    for batch in source.batches()? {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        for row in rows.iter() {
            let PackedRow::Record(record) = row else {
                return Err(Failure::Failed(format!("{}: a row is wider than a page", spec.name)));
            };
            truth.add(record);
            let values = [first.read(record).map_err(damaged)?, second.read(record).map_err(damaged)?];
            truth.sums = [truth.sums[0].wrapping_add(values[0]), truth.sums[1].wrapping_add(values[1])];
            probes.offer(|| {
                let key = key_readers.iter().map(|reader| reader.read(record)).collect::<std::result::Result<_, _>>();
                Ok::<_, Failure>(Probe { key: key.map_err(damaged)?, values })
            })?;
            estimator.push(record).map_err(|e| Failure::Failed(e.to_string()))?;
        }
        progress.advance(rows.len() as u64);
        look()?;
    }
    Ok((truth, probes.into_vec(), estimator.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold::engine::table::Method;
    use pagefold::utility::Silent;

    #[test]
    fn a_survey_is_repeatable_and_sees_every_change() {
        let truth = |scale_factor| Subject::prepare(&SPECS[1], scale_factor, true, &Silent).unwrap();
        let (a, b, c) = (truth(0.001), truth(0.001), truth(0.002));
        assert_eq!((&a.truth, &a.probes), (&b.truth, &b.probes));
        assert_eq!(a.truth.rows, 1_500);
        assert_ne!(a.truth.checksum, c.truth.checksum);
        assert_eq!(a.estimates.len(), Method::ALL.len());
        let (mut one, mut other) = (Truth::default(), Truth::default());
        one.add(b"ab");
        one.add(b"c");
        other.add(b"a");
        other.add(b"bc");
        assert_ne!(one.checksum, other.checksum);
    }

    #[test]
    fn a_reservoir_is_uniform() {
        let mut counts = [0u32; 20];
        for seed in 0..4000 {
            let mut reservoir = Reservoir::new(5, seed);
            (0..20usize).for_each(|i| reservoir.offer(|| Ok::<_, ()>(i)).unwrap());
            let taken = reservoir.into_vec();
            assert_eq!(taken.len(), 5);
            taken.into_iter().for_each(|i| counts[i] += 1);
        }
        // 1,000 expected, standard deviation 27.
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
