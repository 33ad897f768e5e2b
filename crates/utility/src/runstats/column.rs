//! Statistics of one column, from the pages that were read.
//!
//! NULLs, lengths, the least and the greatest value are taken of every row that is read. What takes memory for each value, histogram, frequent values, correlation, and of a sample the number
//! of distinct values, is taken of a **run** of each page's rows, as many as the budget gives it: neighbours, so that what they have in common stays.
//!
//! Distinct values of a sample. What is counted is on how many of the pages that were read a value is seen: that values come in clusters on their pages must not make them look frequent. With
//! a part `q` of the rows looked at, `d` values seen and `f` of them on one page only, no fewer than `d` are there; and of the values that were not seen there are at most f (1 - q) / q, in expectation,
//! whatever their distribution: each unseen value on k pages is seen on just one of them k q / (1 - q) times as often as on none (the upper bound of Charikar, Chaudhuri, Motwani and Narasayya, PODS 2000, with
//! pages in the place of rows). `f` is taken at its upper end, by its variance from page to page. The guess between the two is the first-order jackknife of Haas and Stokes (1998).

use super::bounds::{RatioSums, unseen_part};
use super::hyperloglog::HyperLogLog;
use super::values::{Held, KEPT_BYTES, Shape, ValueTable, hash_of_bytes, hash_of_int};
use pagefold_engine::table_space::{BatchColumn, BatchValues};
use pagefold_format::catalog::{ColumnStatistics, Figure, figure};
use pagefold_types::{DataType, LargeValueRef};
use std::ops::Range;

/// Steps of a histogram.
const STEPS: usize = 64;
/// Frequent values that are kept at most.
const FREQUENT_MAX: usize = 16;
/// A value of a sample that was seen less often than this, or on fewer pages, is not called frequent.
const FREQUENT_ROWS_MIN: u32 = 10;
const FREQUENT_PAGES_MIN: u32 = 3;
/// More often than the average value by so much: else it is not worth to be kept (PostgreSQL's rule).
const FREQUENT_RATIO: f64 = 1.25;
/// The 95 % point of the greatest difference of two distribution functions (Kolmogorov), over half of the standard error in the middle.
const KOLMOGOROV: f64 = 1.358 / 0.5;
/// Expected number of events above which nobody has seen none, with 95 %.
const RULE_OF_THREE: f64 = 3.0;
/// Fewer rows are no sum that varies like a normal one.
const FEW_ROWS: f64 = 50.0;
/// In the place of the number of a value.
const NULL: u32 = u32::MAX;

/// What was read, of how much.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// The part of the pages that was not read.
    pub(super) left_pages: f64,
    /// The part of the rows that is in no run.
    pub(super) left_rows: f64,
    /// Rows of the table.
    pub(super) rows: f64,
    /// Where the runs of the pages end, among the rows of all runs.
    pub(super) run_ends: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rows: u32,
    pages: u32,
    /// The last run it was seen in, from 1.
    last_run: u32,
}

/// Gathers statistics of a column.
#[derive(Debug)]
pub(super) struct ColumnCollector {
    column: usize,
    data_type: DataType,
    shape: Shape,
    /// Sums of the page that is being read: rows that are NULL, and bytes of the others.
    page_nulls: u64,
    page_bytes: u64,
    nulls: RatioSums,
    bytes: RatioSums,
    least: Option<Held>,
    greatest: Option<Held>,
    /// A value lies outside its row: what there is to compare is not there.
    has_large: bool,
    /// Where everything is read: distinct values of all rows.
    sketch: Option<HyperLogLog>,
    table: ValueTable,
    seen: Vec<Seen>,
    /// Of each row of the runs.
    numbers: Vec<u32>,
    scratch: Vec<u8>,
}

impl ColumnCollector {
    /// `counts_all`: everything is read, and distinct values are to be counted by a sketch.
    pub(super) fn new(column: usize, data_type: DataType, counts_all: bool) -> ColumnCollector {
        let shape = Shape::new(data_type);
        ColumnCollector {
            column,
            data_type,
            table: if shape.is_int() { ValueTable::of_ints() } else { ValueTable::of_bytes() },
            shape,
            page_nulls: 0,
            page_bytes: 0,
            nulls: RatioSums::default(),
            bytes: RatioSums::default(),
            least: None,
            greatest: None,
            has_large: false,
            sketch: counts_all.then(HyperLogLog::default),
            seen: Vec::new(),
            numbers: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Rows of the page that is being read; those of `run` are in run number `run_number`, from 1. Gives the bytes that they take behind the fixed part of their records.
    pub(super) fn push(&mut self, batch: &BatchColumn, rows: usize, run: Range<usize>, run_number: u32) -> u64 {
        self.page_nulls += batch.null_count() as u64;
        let there = (rows - batch.null_count()) as u64;
        let width = self.data_type.fixed_width();
        self.page_bytes += width.unwrap_or(0) as u64 * there;
        match batch.values() {
            BatchValues::Ints(ints) => {
                self.push_ints(ints, batch, run, run_number);
                0
            }
            BatchValues::Bytes { bytes, ends, large } => {
                self.has_large |= !large.is_zero();
                let value = |row: usize| &bytes[row.checked_sub(1).map_or(0, |before| ends[before] as usize)..ends[row] as usize];
                self.push_bytes(rows, batch, run, run_number, |row| (value(row), large.get(row)));
                if width.is_some() { 0 } else { bytes.len() as u64 }
            }
        }
    }

    fn push_ints(&mut self, ints: &[i64], batch: &BatchColumn, run: Range<usize>, run_number: u32) {
        let (validity, has_nulls) = (batch.validity(), batch.null_count() > 0);
        let is_there = |row: usize| !has_nulls || validity.get(row);
        let ends = if has_nulls || self.shape.is_float() {
            let ordered = (0..ints.len()).filter(|row| is_there(*row)).map(|row| self.shape.ordered(ints[row]));
            ordered.fold(None, |ends: Option<(i64, i64)>, int| Some(ends.map_or((int, int), |(low, high)| (low.min(int), high.max(int)))))
        } else {
            ints.iter().min().copied().zip(ints.iter().max().copied())
        };
        if let Some((least, greatest)) = ends {
            self.see_ends(Held::Int(least), Held::Int(greatest));
        }
        if let Some(sketch) = &mut self.sketch {
            (0..ints.len()).filter(|row| is_there(*row)).for_each(|row| sketch.push(hash_of_int(self.shape.ordered(ints[row]))));
        }
        for row in run {
            let number = if is_there(row) { self.table.of_int(self.shape.ordered(ints[row])) } else { NULL };
            self.see(number, run_number);
        }
    }

    fn push_bytes<'b>(
        &mut self,
        rows: usize,
        batch: &BatchColumn,
        run: Range<usize>,
        run_number: u32,
        value: impl Fn(usize) -> (&'b [u8], bool),
    ) {
        let (validity, has_nulls) = (batch.validity(), batch.null_count() > 0);
        let is_fixed = self.data_type.fixed_width().is_some();
        let (mut least, mut greatest): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        for row in 0..rows {
            if has_nulls && !validity.get(row) {
                if run.contains(&row) {
                    self.see(NULL, run_number);
                }
                continue;
            }
            let (bytes, is_large) = value(row);
            let bytes = self.shape.significant(bytes);
            if !is_fixed {
                let of_large = LargeValueRef::from_bytes(bytes).filter(|_| is_large).map(|large| u64::from(large.raw_bytes));
                self.page_bytes += of_large.unwrap_or(bytes.len() as u64);
            }
            // Little-endian numbers do not compare as bytes.
            if !is_fixed && !is_large {
                least = Some(least.map_or(bytes, |least| least.min(bytes)));
                greatest = Some(greatest.map_or(bytes, |greatest| greatest.max(bytes)));
            }
            let compared = self.shape.compared(bytes);
            let bytes = compared.as_ref().map_or(bytes, |compared| compared.as_slice());
            let in_run = run.contains(&row);
            if !in_run && self.sketch.is_none() && !is_fixed {
                continue;
            }
            // The reference to a large value has a hash of what it is, and where it lies, which does not count.
            let hash = match LargeValueRef::from_bytes(bytes).filter(|_| is_large) {
                Some(large) => hash_of_int(large.tag as i64 ^ i64::from(large.raw_bytes) << 32),
                None => hash_of_bytes(bytes),
            };
            self.sketch.iter_mut().for_each(|sketch| sketch.push(hash));
            if is_fixed {
                self.shape.kept(bytes, &mut self.scratch);
                let held = Held::Bytes(self.scratch.clone());
                self.see_ends(held.clone(), held);
            }
            if in_run {
                let scratch = &mut self.scratch;
                let number = self.table.of_kept(hash, |out| {
                    self.shape.kept(bytes, scratch);
                    out.extend_from_slice(scratch);
                });
                self.see(number, run_number);
            }
        }
        if let (Some(least), Some(greatest)) = (least, greatest) {
            let cut = |bytes: &[u8]| Held::Bytes(bytes[..bytes.len().min(KEPT_BYTES)].to_vec());
            self.see_ends(cut(least), cut(greatest));
        }
    }

    fn see_ends(&mut self, least: Held, greatest: Held) {
        if self.least.as_ref().is_none_or(|known| least < *known) {
            self.least = Some(least);
        }
        if self.greatest.as_ref().is_none_or(|known| greatest > *known) {
            self.greatest = Some(greatest);
        }
    }

    #[inline]
    fn see(&mut self, number: u32, run_number: u32) {
        self.numbers.push(number);
        if number == NULL {
            return;
        }
        if number as usize == self.seen.len() {
            self.seen.push(Seen::default());
        }
        let seen = &mut self.seen[number as usize];
        seen.rows += 1;
        seen.pages += u32::from(seen.last_run != run_number);
        seen.last_run = run_number;
    }

    /// The page had so many rows.
    pub(super) fn end_page(&mut self, rows: u64) {
        let nulls = std::mem::take(&mut self.page_nulls);
        self.nulls.push(rows as f64, nulls as f64);
        self.bytes.push((rows - nulls) as f64, std::mem::take(&mut self.page_bytes) as f64);
    }

    /// The statistics.
    pub(super) fn finish(self, reading: &Reading) -> ColumnStatistics {
        let mut out = ColumnStatistics { column: self.column as u32, ..ColumnStatistics::default() };
        let null_share = self.nulls.share(reading.left_pages);
        out.figures.set(figure::NULL_SHARE, null_share);
        let of_values = match self.data_type.fixed_width() {
            Some(width) => Figure::exact(width as f64),
            None => self.bytes.mean(reading.left_pages),
        };
        out.figures.set(figure::VALUE_BYTES, of_values);
        out.figures.set(figure::DISTINCT, self.distinct(reading, reading.rows * (1.0 - null_share.low)));
        if self.has_large {
            return out;
        }
        out.least = self.least.as_ref().and_then(|held| self.shape.key(held));
        out.greatest = self.greatest.as_ref().and_then(|held| self.shape.key(held));
        out.figures.set(figure::BEYOND_SHARE, Figure::within(0.0, 0.0, unseen_part(self.nulls.clusters(), reading.left_pages)));
        let Some(shares) = Shares::new(&self) else { return out };
        self.histogram(reading, &shares, &mut out);
        out.frequent = self.frequent(reading);
        out.figures.set(figure::CORRELATION, self.correlation(reading, &shares));
        out
    }

    /// Numbers of the rows of each run.
    fn runs<'a>(&'a self, reading: &'a Reading) -> impl Iterator<Item = &'a [u32]> {
        let mut start = 0;
        reading.run_ends.iter().map(move |end| &self.numbers[std::mem::replace(&mut start, *end)..*end])
    }

    fn distinct(&self, reading: &Reading, values_max: f64) -> Figure {
        let found = self.table.len() as f64;
        if reading.left_rows <= 0.0 {
            return Figure::exact(found);
        }
        if let Some(sketch) = &self.sketch {
            return sketch.count();
        }
        let (left, part) = (reading.left_rows, 1.0 - reading.left_rows);
        let most = if self.data_type == DataType::Boolean { 2.0 } else { values_max.max(found) };
        if part <= 0.0 {
            return Figure::within(found, found, most);
        }
        let mut singles = vec![0u32; reading.run_ends.len()];
        self.seen.iter().filter(|seen| seen.pages == 1).for_each(|seen| singles[seen.last_run as usize - 1] += 1);
        let mut sums = RatioSums::default();
        singles.iter().for_each(|count| sums.push(1.0, f64::from(*count)));
        let (once, runs) = (sums.y(), sums.x().max(1.0));
        let places: f64 = self.seen.iter().map(|seen| f64::from(seen.pages)).sum();
        // By the variance from page to page; where few pages have any, by how many those may be.
        let by_variance = once + sums.t() * sums.standard_error(left) * runs;
        let with_some = singles.iter().filter(|count| **count > 0).count() as f64;
        let each = if with_some > 0.0 { once / with_some } else { places / runs };
        let by_pages = (with_some + 2.0 * with_some.sqrt() + RULE_OF_THREE) * each;
        let high = (found + left / part * by_variance.max(by_pages)).min(most);
        let guess = if places > 0.0 { found * places / (places - once * left).max(1.0) } else { 0.0 };
        Figure::within(guess.clamp(found, high), found, high)
    }

    fn histogram(&self, reading: &Reading, shares: &Shares, out: &mut ColumnStatistics) {
        let order = &shares.order;
        let steps = STEPS.min(shares.values as usize);
        let mut at = 0;
        for step in 0..=steps {
            // The value up to which, and not before which, a part of the values lies.
            let wanted = step as f64 / steps as f64 * shares.values;
            while at + 1 < order.len() && shares.until(order[at]) < wanted {
                at += 1;
            }
            out.bounds.extend(self.shape.key(&self.table.held(order[at])));
        }
        // A bound that was cut within a character may be less than the one before.
        out.bounds.sort_unstable();
        let mut quarters = [RatioSums::default(); 3];
        for run in self.runs(reading) {
            let mut below = [0u32; 3];
            let mut rows = 0u32;
            for number in run.iter().filter(|number| **number != NULL) {
                rows += 1;
                let until = shares.until(*number) / shares.values;
                [0.25, 0.5, 0.75].iter().zip(&mut below).for_each(|(quarter, count)| *count += u32::from(until <= *quarter));
            }
            quarters.iter_mut().zip(below).for_each(|(sums, count)| sums.push(f64::from(rows), f64::from(count)));
        }
        // Where a value takes up more than a quarter, no share lies at one: then as if rows were independent, as in the middle.
        let independent = 0.5 * (reading.left_rows / shares.values).sqrt();
        let error = quarters.iter().map(|sums| sums.standard_error(reading.left_rows)).fold(independent, f64::max);
        let wider = quarters[1].t() / 1.96;
        let error = if reading.left_rows > 0.0 { (KOLMOGOROV * wider * error + 1.0 / shares.values).min(1.0) } else { 0.0 };
        out.figures.set(figure::HISTOGRAM_ERROR, Figure::exact(error));
    }

    fn frequent(&self, reading: &Reading) -> Vec<(Vec<u8>, Figure)> {
        let is_whole = reading.left_rows <= 0.0;
        let values: f64 = self.seen.iter().map(|seen| f64::from(seen.rows)).sum();
        let average = values / self.seen.len().max(1) as f64;
        let is_frequent = |seen: &Seen| {
            let stands_out = f64::from(seen.rows) > FREQUENT_RATIO * average || self.seen.len() <= FREQUENT_MAX;
            stands_out && (is_whole || seen.rows >= FREQUENT_ROWS_MIN && seen.pages >= FREQUENT_PAGES_MIN)
        };
        let mut candidates: Vec<u32> = (0..self.seen.len() as u32).filter(|number| is_frequent(&self.seen[*number as usize])).collect();
        candidates.sort_unstable_by_key(|number| (std::cmp::Reverse(self.seen[*number as usize].rows), *number));
        candidates.truncate(FREQUENT_MAX);
        let mut place_of = vec![u8::MAX; self.seen.len()];
        candidates.iter().zip(0..).for_each(|(number, place)| place_of[*number as usize] = place);
        let mut sums = vec![RatioSums::default(); candidates.len()];
        for run in self.runs(reading) {
            let mut counts = [0u32; FREQUENT_MAX];
            for number in run.iter().filter(|number| **number != NULL) {
                if let Some(count) = counts.get_mut(usize::from(place_of[*number as usize])) {
                    *count += 1;
                }
            }
            sums.iter_mut().zip(counts).for_each(|(sums, count)| sums.push(run.len() as f64, f64::from(count)));
        }
        // They were chosen because there were many of them: the intervals are to hold for all that could have been. What may be no more frequent than others is left out.
        let share = |sums: &RatioSums| sums.share_among(reading.left_rows, self.seen.len().max(FREQUENT_MAX));
        let average = average / self.numbers.len().max(1) as f64;
        let stands_out = |share: &Figure| is_whole || self.seen.len() <= FREQUENT_MAX || share.low > average;
        let all = candidates.iter().zip(&sums).map(|(number, sums)| (*number, share(sums)));
        let kept = all.filter(|(_, share)| stands_out(share));
        kept.filter_map(|(number, share)| Some((self.shape.key(&self.table.held(number))?, share))).collect()
    }

    /// Spearman's: of the ranks of the values, those of equal ones in the middle, and the order of the rows. NULLs do not count.
    ///
    /// Its variance is that of its projection (Hajek): what each row adds to the mean product of the ranks, by its own ranks and by being counted in those of others; summed over pages.
    fn correlation(&self, reading: &Reading, shares: &Shares) -> Figure {
        let n = shares.values;
        let there = || self.numbers.iter().copied().filter(|number| *number != NULL);
        // Both from 0 to 1, 1/2 in the middle.
        let place = |at: usize| (at as f64 + 0.5) / n;
        let rank = |number: u32| shares.middle(number) / n;
        let (mut product, mut square) = (0.0, 0.0);
        // Of each value: the places of its rows, summed.
        let mut places_of = vec![0.0; self.seen.len()];
        for (at, number) in there().enumerate() {
            let (x, y) = (place(at), rank(number));
            product += x * y;
            square += y * y;
            places_of[number as usize] += x;
        }
        let place_variance = (1.0 - 1.0 / (n * n)) / 12.0;
        let (covariance, rank_variance) = (product / n - 0.25, square / n - 0.25);
        if n < 2.0 || rank_variance <= 1e-12 {
            // One value, or one row: no order.
            return if reading.left_rows > 0.0 { Figure::within(0.0, -1.0, 1.0) } else { Figure::exact(0.0) };
        }
        let r = (covariance / (place_variance * rank_variance).sqrt()).clamp(-1.0, 1.0);
        if reading.left_rows <= 0.0 {
            return Figure::exact(r);
        }
        // Of each value: sums of places, and of ranks, over all rows of greater ones and half of its own.
        let mut above = vec![(0.0, 0.0); self.seen.len()];
        let (mut places, mut ranks) = (0.0, 0.0);
        for number in shares.order.iter().rev() {
            let (own_places, own_ranks) = (places_of[*number as usize], f64::from(self.seen[*number as usize].rows) * rank(*number));
            above[*number as usize] = ((places + own_places / 2.0) / n, (ranks + own_ranks / 2.0) / n);
            (places, ranks) = (places + own_places, ranks + own_ranks);
        }
        let scale = 1.0 / (place_variance * rank_variance).sqrt();
        let mut ranks_before = 0.0;
        let mut at = 0;
        let mut sums = RatioSums::default();
        for run in self.runs(reading) {
            let (mut rows, mut sum) = (0.0, 0.0);
            for number in run.iter().filter(|number| **number != NULL) {
                let (x, y) = (place(at), rank(*number));
                // Rows behind this one, and half of it.
                let ranks_behind = 0.5 - (ranks_before + y / 2.0) / n;
                let (places_above, ranks_above) = above[*number as usize];
                let of_product = x * y + ranks_behind + places_above;
                let of_square = y * y + 2.0 * ranks_above;
                sum += scale * of_product - 0.5 * r / rank_variance * of_square;
                rows += 1.0;
                ranks_before += y;
                at += 1;
            }
            sums.push(rows, sum);
        }
        // The mean of what rows add is a constant; how it varies from page to page is not.
        let error = sums.standard_error(reading.left_rows);
        let slope = (1.0 - r * r).max(1e-9);
        // So few say less than they seem to: no less than that of as many independent rows is their error.
        let few = if n < FEW_ROWS { 1.0 / (n - 3.0).max(0.5).sqrt() } else { 0.0 };
        let half = sums.t() * (error / slope).max(few);
        let middle = r.clamp(-0.999_999_999, 0.999_999_999).atanh();
        let (low, high) = ((middle - half).tanh(), (middle + half).tanh());
        // Where rows lie in order on all pages that were read, some may not on others: a part of the rows moves the coefficient by six times as much at most.
        let unseen = 6.0 * unseen_part(reading.run_ends.len() as u64, reading.left_rows);
        let is_ordered = r.abs() > 0.999 && high - low < 0.001;
        let (less, more) =
            if is_ordered { (if r > 0.0 { unseen } else { 0.001 }, if r > 0.0 { 0.001 } else { unseen }) } else { (0.0, 0.0) };
        Figure::within(r, (low - less).max(-1.0), (high + more).min(1.0))
    }
}

/// How many values of the runs come before each one, in order.
struct Shares {
    /// By number: rows with smaller values, and with this one.
    places: Vec<(u32, u32)>,
    /// Numbers, in order.
    order: Vec<u32>,
    values: f64,
}

impl Shares {
    fn new(collector: &ColumnCollector) -> Option<Shares> {
        let order = collector.table.in_order();
        let (mut places, mut before) = (vec![(0, 0); order.len()], 0);
        for number in &order {
            let rows = collector.seen[*number as usize].rows;
            places[*number as usize] = (before, rows);
            before += rows;
        }
        (before > 0).then_some(Shares { places, order, values: f64::from(before) })
    }

    /// Rows with values up to this one.
    fn until(&self, number: u32) -> f64 {
        let (before, rows) = self.places[number as usize];
        f64::from(before + rows)
    }

    /// The rank of this value: in the middle of those that are equal.
    fn middle(&self, number: u32) -> f64 {
        let (before, rows) = self.places[number as usize];
        f64::from(before) + f64::from(rows) / 2.0
    }
}
