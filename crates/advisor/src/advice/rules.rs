//! What to compress and what not.
//!
//! Each rule is a function of figures: it says nothing, or what is wrong with a way, with the figures that say so. Rules that speak `Against` a way rule it out; those that only tell (`Note`) say why
//! less is saved than could be, and what would help.
//!
//! Invariant: no rule speaks against the base.

use super::figures::{Subject, Way};
use crate::choice::{READ_MAX, WRITE_MAX};

/// One extent of an index, or of a small table: below it there is nothing to save.
pub(super) const NOTHING_TO_SAVE_BYTES: u64 = 48 * 1024;
/// A part of the size that is not worth processor time.
pub(super) const WORTH_SAVING: f64 = 0.05;
/// What a fold must save where memory is short: its leaves are expanded there.
const FOLD_SAVING_MEMORY_BOUND: f64 = 0.4;
/// Below this hit ratio leaves are read, and expanded, often.
const HIT_RATIO_POOR: f64 = 0.8;
/// More of a buffer than this is not to be left unused.
const UNUSED_MAX: f64 = 0.25;
/// Rows on a page so few that a shorter row may save no page.
const ROWS_FEW: f64 = 4.0;
/// Costs are measured, and a measurement is not the same twice. So that advice does not go to and fro, what there is already may cost more than what is allowed to take its place, and what takes
/// its place less.
const COST_SLACK: f64 = 1.2;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The way is ruled out.
    Against,
    /// It is as it is; this is why.
    Note,
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// What follows.
    pub verdict: Verdict,
    /// Number of the way.
    pub way: usize,
    /// Why, with figures.
    pub reason: String,
}

/// A rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What follows where it says something.
    pub verdict: Verdict,
    /// Says what is wrong with a way, if anything: of the object, all ways, the number of one.
    pub says: fn(&Subject, &[Way], usize) -> Option<String>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them, in the order in which they are asked.
pub const RULES: &[Rule] = &[
    Rule { name: "too_small", verdict: Verdict::Against, says: too_small },
    Rule { name: "ratio_too_low", verdict: Verdict::Against, says: ratio_too_low },
    Rule { name: "too_dear", verdict: Verdict::Against, says: too_dear },
    Rule { name: "fold_below_2_to_1", verdict: Verdict::Against, says: fold_below_2_to_1 },
    Rule { name: "fold_above_4_to_1", verdict: Verdict::Against, says: fold_above_4_to_1 },
    Rule { name: "buffer_wasted", verdict: Verdict::Against, says: buffer_wasted },
    Rule { name: "fold_saves_too_little_memory", verdict: Verdict::Against, says: fold_saves_too_little_memory },
    Rule { name: "fold_expands_too_often", verdict: Verdict::Against, says: fold_expands_too_often },
    Rule { name: "pctfree_eats_the_saving", verdict: Verdict::Note, says: pctfree_eats_the_saving },
    Rule { name: "maxrows_fills_pages", verdict: Verdict::Note, says: maxrows_fills_pages },
    Rule { name: "few_rows_on_a_page", verdict: Verdict::Note, says: few_rows_on_a_page },
];

pub(super) fn size_text(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KB", bytes >> 10) } else { format!("{:.1} MB", bytes as f64 / f64::from(1 << 20)) }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// One extent and less: there is nothing to save.
fn too_small(subject: &Subject, _: &[Way], way: usize) -> Option<String> {
    let size = subject.size_now;
    (way != subject.base && size < NOTHING_TO_SAVE_BYTES)
        .then(|| format!("it takes {}, and below {} there is nothing to save", size_text(size), size_text(NOTHING_TO_SAVE_BYTES)))
}

/// It must save a page and some percent, for sure: at its worst against the base at its best. Plain pages of another size are no compression and cost nothing.
fn ratio_too_low(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let (base, own) = (&ways[subject.base], &ways[way]);
    let most = own.size_bytes.high;
    let saves = most < base.size_bytes.low && most as f64 <= base.size_bytes.value as f64 * (1.0 - WORTH_SAVING);
    (way != subject.base && !saves).then(|| {
        format!(
            "it would take {} where {} takes {}: not {} less for sure",
            size_text(own.size_bytes.value),
            base.label(),
            size_text(base.size_bytes.value),
            percent(WORTH_SAVING)
        )
    })
}

/// Cost over that of the base: reading, writing.
pub(super) fn cost_ratios(way: &Way, base: &Way) -> Option<(f64, f64)> {
    let (cost, of_base) = (way.cost?, base.cost?);
    (of_base.read_ns > 0.0 && of_base.write_ns > 0.0).then(|| (cost.read_ns / of_base.read_ns, cost.write_ns / of_base.write_ns))
}

/// It takes the processors too long.
fn too_dear(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let ratios = |way: usize| if way == subject.base { None } else { cost_ratios(&ways[way], &ways[subject.base]) };
    let is_dear = |(read, write): (f64, f64), slack: f64| read > READ_MAX * slack || write > WRITE_MAX * slack;
    let is_settled = ways[subject.present].saving(&ways[subject.base]) > WORTH_SAVING
        && !ratios(subject.present).is_some_and(|ratios| is_dear(ratios, COST_SLACK));
    let slack = match () {
        () if way == subject.present => COST_SLACK,
        // Something stays that was chosen before: to take its place is worth it only for sure.
        () if is_settled => 1.0 / COST_SLACK,
        () => 1.0,
    };
    let (read, write) = ratios(way).filter(|ratios| is_dear(*ratios, slack))?;
    Some(match read > READ_MAX * slack {
        true => format!("it takes {read:.1} times as long to read; allowed are {:.1}", READ_MAX * slack),
        false => format!("it takes {write:.1} times as long to write; allowed are {:.1}", WRITE_MAX * slack),
    })
}

/// Less than 2:1: a buffer of more than 8 KB is never full.
fn fold_below_2_to_1(_: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let ratio = ways[way].fold_ratio?;
    (ratio > 0.5 && ways[way].page_bytes > 8192).then(|| format!("it folds {:.1}:1, and with less than 2:1 leaves have 8 KB", 1.0 / ratio))
}

/// More than 4:1: leaves of 8 KB leave half of each page on disk empty.
fn fold_above_4_to_1(_: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let ratio = ways[way].fold_ratio?;
    (ratio < 0.25 && ways[way].page_bytes < 16384)
        .then(|| format!("it folds {:.1}:1, and with more than 4:1 leaves have 16 KB at least", 1.0 / ratio))
}

/// A buffer of which much stays unused takes memory from other pages.
fn buffer_wasted(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let own = &ways[way];
    let limit = if subject.load.memory_bound == Some(true) { 0.0 } else { UNUSED_MAX };
    (own.buffer_unused > limit + 0.005 && own.page_bytes > 8192)
        .then(|| format!("{} of each buffer would stay unused", percent(own.buffer_unused)))
}

/// In memory a folded leaf is as long as a plain one: where memory is short, what it saves on disk must be much.
fn fold_saves_too_little_memory(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let own = &ways[way];
    own.fold_ratio?;
    let saving = own.saving(&ways[subject.base]);
    (subject.load.memory_bound == Some(true) && saving < FOLD_SAVING_MEMORY_BOUND).then(|| {
        format!(
            "memory is short, where folds are as long as plain leaves, and it saves {} on disk: less than {}",
            percent(saving),
            percent(FOLD_SAVING_MEMORY_BOUND)
        )
    })
}

/// Each leaf that is read is expanded.
fn fold_expands_too_often(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    ways[way].fold_ratio?;
    let hit_ratio = subject.load.hit_ratio.filter(|ratio| *ratio < HIT_RATIO_POOR)?;
    (subject.load.cpu_bound == Some(true)).then(|| {
        format!(
            "its leaves are found in memory for {} of the requests only, and expanding the others takes processors that are busy",
            percent(hit_ratio)
        )
    })
}

/// Space that is left free is left free in compressed pages, too.
fn pctfree_eats_the_saving(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let (own, base) = (&ways[way], &ways[subject.base]);
    let free = own.size_bytes.value * u64::from(subject.pctfree) / 100;
    let saved = base.size_bytes.value.saturating_sub(own.size_bytes.value);
    (way != subject.base && free > 0 && free >= saved / 2)
        .then(|| format!("PCTFREE {} leaves {} free, where compression saves {}", subject.pctfree, size_text(free), size_text(saved)))
}

/// Pages are full by number, not by bytes.
fn maxrows_fills_pages(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let limit = f64::from(subject.maxrows?);
    let own = &ways[way];
    (way != subject.base && own.rows_per_page > 0.98 * limit)
        .then(|| format!("its pages have the {limit:.0} rows that MAXROWS allows: shorter rows save no page"))
}

/// Where a page has few rows, a shorter row leaves a longer gap, and saves nothing.
fn few_rows_on_a_page(subject: &Subject, ways: &[Way], way: usize) -> Option<String> {
    let own = &ways[way];
    let largest = ways.iter().filter(|other| other.name == own.name).max_by_key(|other| other.page_bytes)?;
    let less = 1.0 - largest.size_bytes.value as f64 / own.size_bytes.value.max(1) as f64;
    (subject.rows > 0 && own.rows_per_page < ROWS_FEW && less > WORTH_SAVING).then(|| {
        format!(
            "{:.1} rows are on a page: a shorter row may save none; pages of {} KB would take {} less",
            own.rows_per_page,
            largest.page_bytes / 1024,
            percent(less)
        )
    })
}
