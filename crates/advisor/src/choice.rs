//! Which method, or which format and page size, to choose: one rule, for the advice of ESTIMATE and for what `auto` takes.
//!
//! What is considered is the table without compression, or the index with plain leaves (the *base*), and every alternative, each with its pages and with what it costs to read and to
//! write one row or key on this machine. Then:
//! 1. a base below 48 KB stays: there is nothing to save;
//! 2. an alternative must save a page and 5 % of the bytes, for sure: where sizes are known within an interval, at its worst against the base at its best;
//! 3. one that takes more than [`READ_MAX`] times as long to read, or [`WRITE_MAX`] times as long to write, is out;
//! 4. of the others the smallest is chosen. Of those at most 5 % larger: the page size nearest to the one in use, then the cheapest to read.
//!
//! Invariant: what is chosen is never larger than the base.

use crate::index::{IndexCandidate, IndexEstimate, LeafFormat};
use crate::sample::Interval;
use crate::table::TableEstimate;

/// Below this there is nothing to save.
const NOTHING_TO_SAVE_BYTES: u64 = 48 * 1024;
/// A part of the size that is not worth processor time.
const WORTH_SAVING: f64 = 0.05;
/// How much longer a look-up may take than in the base, all in memory.
pub const READ_MAX: f64 = 2.0;
/// How much longer writing may take: rows are read more often than they are written.
pub const WRITE_MAX: f64 = 5.0;

/// What an operation takes on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Nanoseconds to read two columns of a row by its key, or to find a key.
    pub read_ns: f64,
    /// Nanoseconds to insert a row, or a key.
    pub write_ns: f64,
}

/// One of those considered.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Method of a table, format of an index.
    pub name: &'static str,
    /// Page size: of leaves in memory.
    pub page_bytes: usize,
    /// Pages of all kinds.
    pub pages: Interval,
    /// Bytes of all pages.
    pub size_bytes: Interval,
    /// What it costs; `None`: nobody knows, and the base's is taken.
    pub cost: Option<Cost>,
}

/// What was chosen of what, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Everything that was considered.
    pub considered: Vec<Alternative>,
    /// The number of the one that was chosen.
    pub chosen: usize,
    /// Why, in one sentence.
    pub reason: String,
}

impl Choice {
    /// What was chosen.
    #[must_use]
    pub fn chosen(&self) -> &Alternative {
        &self.considered[self.chosen]
    }
}

fn size_text(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KB", bytes >> 10) } else { format!("{:.1} MB", bytes as f64 / f64::from(1 << 20)) }
}

/// Cost over that of the base: reading, writing. 1 where one of them is not known.
fn ratios(alternative: &Alternative, base: &Alternative) -> (f64, f64) {
    let (Some(cost), Some(of_base)) = (alternative.cost, base.cost) else { return (1.0, 1.0) };
    let ratio = |cost: f64, base: f64| if base > 0.0 { cost / base } else { 1.0 };
    (ratio(cost.read_ns, of_base.read_ns), ratio(cost.write_ns, of_base.write_ns))
}

/// What is too dear about it, if anything.
fn too_dear((read, write): (f64, f64)) -> Option<String> {
    match (read > READ_MAX, write > WRITE_MAX) {
        (true, _) => Some(format!("takes {read:.1} times as long to read")),
        (_, true) => Some(format!("takes {write:.1} times as long to write")),
        _ => None,
    }
}

/// Chooses one of `considered` by the rule above. `page_bytes` is the page size in use.
///
/// # Panics
/// When there is no such base.
#[must_use]
pub fn choose(considered: Vec<Alternative>, base: usize, page_bytes: usize) -> Choice {
    let (chosen, reason) = choose_number(&considered, base, page_bytes);
    Choice { considered, chosen, reason }
}

fn choose_number(considered: &[Alternative], base: usize, page_bytes: usize) -> (usize, String) {
    let plain = &considered[base];
    let one_page_size = considered.iter().all(|a| a.page_bytes == plain.page_bytes);
    let label = |a: &Alternative| if one_page_size { a.name.to_owned() } else { format!("{} of {} KB", a.name, a.page_bytes / 1024) };
    let size = |a: &Alternative| if one_page_size { format!("{} pages", a.pages.value) } else { size_text(a.size_bytes.value) };
    let instead = if one_page_size { plain.pages.value.to_string() } else { size_text(plain.size_bytes.value) };
    let stays = |why: String| (base, format!("{}: {why}.", label(plain)));
    if plain.size_bytes.value < NOTHING_TO_SAVE_BYTES {
        return stays(format!(
            "it takes {}, and below {} there is nothing to save",
            size_text(plain.size_bytes.value),
            size_text(NOTHING_TO_SAVE_BYTES)
        ));
    }
    let smallest_of = |numbers: &[usize]| numbers.iter().copied().min_by_key(|i| considered[*i].size_bytes.value);
    let others: Vec<usize> = (0..considered.len()).filter(|i| *i != base).collect();
    let saves = |i: &usize| {
        let most = considered[*i].size_bytes.high;
        most < plain.size_bytes.low && most as f64 <= plain.size_bytes.value as f64 * (1.0 - WORTH_SAVING)
    };
    let savers: Vec<usize> = others.iter().copied().filter(saves).collect();
    let Some(smallest) = smallest_of(&savers) else {
        return stays(match smallest_of(&others).map(|i| &considered[i]) {
            Some(other) => format!("the smallest other way, {}, would take {} instead of {instead}", label(other), size(other)),
            None => "there is no other way".to_owned(),
        });
    };
    let allowed: Vec<usize> = savers.iter().copied().filter(|i| too_dear(ratios(&considered[*i], plain)).is_none()).collect();
    let dear = too_dear(ratios(&considered[smallest], plain)).unwrap_or_default();
    let Some(least) = smallest_of(&allowed) else {
        let other = &considered[smallest];
        return stays(format!("{} would take {} instead of {instead}, but {dear}", label(other), size(other)));
    };
    let limit = considered[least].size_bytes.value as f64 * (1.0 + WORTH_SAVING);
    let away = |i: &usize| (considered[*i].page_bytes as f64 / page_bytes as f64).log2().abs();
    let read_ns = |i: &usize| considered[*i].cost.map_or(0.0, |cost| cost.read_ns);
    let near = allowed.iter().copied().filter(|i| considered[*i].size_bytes.value as f64 <= limit);
    let chosen = near.min_by(|a, b| (away(a), read_ns(a)).partial_cmp(&(away(b), read_ns(b))).unwrap_or(std::cmp::Ordering::Equal));
    let chosen = chosen.unwrap_or(least);
    let best = &considered[chosen];
    let saved = 100.0 * (1.0 - best.size_bytes.value as f64 / plain.size_bytes.value as f64);
    let mut reason = format!("{}: {} instead of {instead} ({saved:.0} % less)", label(best), size(best));
    if best.cost.is_some() && plain.cost.is_some() {
        let (read, write) = ratios(best, plain);
        reason += &format!(", {read:.1} times as long to read and {write:.1} times to write");
    }
    let other = label(&considered[smallest]);
    if !allowed.contains(&smallest) {
        reason += &format!("; {other} would take {}, but {dear}", size(&considered[smallest]));
    } else if chosen != least {
        let why = if best.page_bytes == considered[least].page_bytes {
            "faster to read than"
        } else {
            "with a page size nearer to the usual than"
        };
        reason += &format!("; {why} {}, which is at most 5 % smaller", label(&considered[least]));
    }
    (chosen, reason + ".")
}

/// The method for a table with pages of `page_bytes`; `None` when no estimate is for those. `cost` knows what methods cost.
#[must_use]
pub fn choose_method(estimates: &[TableEstimate], page_bytes: usize, cost: impl Fn(&'static str) -> Option<Cost>) -> Option<Choice> {
    let estimates = estimates.iter().filter(|e| e.options.page_bytes == page_bytes);
    let alternative = |e: &TableEstimate| Alternative {
        name: e.method,
        page_bytes,
        pages: e.pages,
        size_bytes: e.pages.map(|pages| pages * page_bytes as u64),
        cost: cost(e.method),
    };
    let considered: Vec<Alternative> = estimates.map(alternative).collect();
    let base = considered.iter().position(|a| a.name == "none")?;
    Some(choose(considered, base, page_bytes))
}

/// The format and page size for an index, those nearest to `page_bytes` where that makes no difference; `None` when its keys are too long for all.
#[must_use]
pub fn choose_format(estimates: &[IndexEstimate], page_bytes: usize, cost: impl Fn(&IndexCandidate) -> Option<Cost>) -> Option<Choice> {
    let estimates: Vec<&IndexEstimate> = estimates.iter().filter(|e| e.key_too_long.is_none()).collect();
    let alternative = |e: &&IndexEstimate| Alternative {
        name: e.candidate.format(),
        page_bytes: e.candidate.page_bytes,
        pages: e.pages,
        size_bytes: e.pages.map(|pages| pages * e.candidate.disk_bytes() as u64),
        cost: cost(&e.candidate),
    };
    let away = |e: &IndexEstimate| e.candidate.page_bytes.abs_diff(page_bytes);
    let plain = estimates.iter().enumerate().filter(|(_, e)| e.candidate.format == LeafFormat::Plain);
    let base = plain.min_by_key(|(_, e)| away(e)).map(|(i, _)| i)?;
    Some(choose(estimates.iter().map(alternative).collect(), base, page_bytes))
}

/// Advice on a table: what would be chosen, and whether another page size would save more.
#[must_use]
pub fn table_advice(choice: &Choice, estimates: &[TableEstimate]) -> String {
    let chosen = choice.chosen();
    let same = estimates.iter().filter(|e| e.method == chosen.name);
    let Some(best) = same.min_by_key(|e| e.size_bytes()) else { return choice.reason.clone() };
    let saved = 1.0 - best.size_bytes() as f64 / chosen.size_bytes.value.max(1) as f64;
    if saved <= WORTH_SAVING || chosen.size_bytes.value == 0 {
        return choice.reason.clone();
    }
    let kb = |bytes: usize| bytes / 1024;
    let (to, from) = (kb(best.options.page_bytes), kb(chosen.page_bytes));
    format!("{} Pages of {to} KB instead of {from} KB would take {:.0} % less.", choice.reason, 100.0 * saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 8 KB, and nanoseconds to read and write.
    fn alternative(name: &'static str, pages: u64, read_ns: f64, write_ns: f64) -> Alternative {
        let pages = Interval::exact(pages);
        Alternative { name, page_bytes: 8192, pages, size_bytes: pages.map(|p| p * 8192), cost: Some(Cost { read_ns, write_ns }) }
    }

    fn chosen(considered: Vec<Alternative>) -> (&'static str, String) {
        let choice = choose(considered, 0, 8192);
        assert!(choice.reason.starts_with(choice.chosen().name) && choice.reason.ends_with('.'), "{}", choice.reason);
        assert!(choice.chosen().size_bytes.high <= choice.considered[0].size_bytes.high);
        (choice.chosen().name, choice.reason)
    }

    #[test]
    fn the_smallest_that_is_not_too_dear() {
        let none = alternative("none", 1000, 200.0, 1000.0);
        let (name, reason) = chosen(vec![none.clone(), alternative("row", 700, 220.0, 1100.0), alternative("page", 300, 250.0, 3000.0)]);
        assert_eq!(name, "page");
        assert_eq!(reason, "page: 300 pages instead of 1000 (70 % less), 1.2 times as long to read and 3.0 times to write.");
        let (name, reason) = chosen(vec![none.clone(), alternative("row", 700, 220.0, 1100.0), alternative("page", 300, 700.0, 3000.0)]);
        assert_eq!(name, "row");
        assert!(reason.ends_with("; page would take 300 pages, but takes 3.5 times as long to read."), "{reason}");
        let (name, reason) = chosen(vec![none.clone(), alternative("page", 300, 250.0, 9000.0)]);
        assert_eq!(name, "none");
        assert_eq!(reason, "none: page would take 300 pages instead of 1000, but takes 9.0 times as long to write.");
        // Nearly as small, and faster.
        let (name, reason) = chosen(vec![none, alternative("fixed", 312, 210.0, 2000.0), alternative("huffman", 300, 300.0, 2000.0)]);
        assert_eq!(name, "fixed");
        assert!(reason.ends_with("; faster to read than huffman, which is at most 5 % smaller."), "{reason}");
    }

    #[test]
    fn what_saves_nothing_for_sure_is_not_chosen() {
        let (name, reason) = chosen(vec![alternative("none", 5, 1.0, 1.0), alternative("page", 1, 1.0, 1.0)]);
        assert_eq!((name, reason.as_str()), ("none", "none: it takes 40 KB, and below 48 KB there is nothing to save."));
        let (name, reason) = chosen(vec![alternative("none", 1000, 1.0, 1.0), alternative("page", 980, 1.0, 1.0)]);
        assert_eq!((name, reason.as_str()), ("none", "none: the smallest other way, page, would take 980 pages instead of 1000."));
        assert_eq!(chosen(vec![alternative("none", 1000, 1.0, 1.0)]).0, "none");
        let mut unsure = alternative("page", 900, 1.0, 1.0);
        unsure.size_bytes.high = 1010 * 8192;
        assert_eq!(chosen(vec![alternative("none", 1000, 1.0, 1.0), unsure]).0, "none");
    }

    #[test]
    fn of_page_sizes_the_usual_one_unless_another_saves() {
        let of = |name, page_bytes: usize, bytes: u64| {
            let pages = Interval::exact(bytes / page_bytes as u64);
            let size_bytes = pages.map(|p| p * page_bytes as u64);
            Alternative { name, page_bytes, pages, size_bytes, cost: None }
        };
        let plain = of("plain", 8192, 1 << 20);
        let near = vec![plain.clone(), of("prefix", 8192, 500_000), of("prefix", 32768, 491_520), of("prefix", 2048, 480_000)];
        let choice = choose(near, 0, 8192);
        assert_eq!((choice.chosen().name, choice.chosen().page_bytes), ("prefix", 8192));
        let better = vec![plain, of("fold", 8192, 524_288), of("fold", 32768, 131_072), of("fold", 16384, 262_144)];
        let choice = choose(better, 0, 8192);
        assert_eq!((choice.chosen().name, choice.chosen().page_bytes), ("fold", 32768));
        assert_eq!(choice.reason, "fold of 32 KB: 128 KB instead of 1.0 MB (88 % less).");
    }

    /// Whatever is considered: nothing larger, nothing too dear, and nothing allowed that is much smaller.
    #[test]
    fn the_rule_holds() {
        let mut state = 5u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..20_000 {
            let considered: Vec<Alternative> = ["none", "row", "page", "fixed", "huffman"]
                .into_iter()
                .map(|name| {
                    let mut it = alternative(name, 1 + below(400), (1 + below(100)) as f64, (1 + below(200)) as f64);
                    it.size_bytes.high += below(40) * 8192;
                    it
                })
                .collect();
            let choice = choose(considered, 0, 8192);
            let (base, best) = (&choice.considered[0], choice.chosen());
            let saves = |a: &Alternative| {
                a.size_bytes.high < base.size_bytes.low && a.size_bytes.high as f64 <= 0.95 * base.size_bytes.value as f64
            };
            let allowed =
                |a: &Alternative| saves(a) && too_dear(ratios(a, base)).is_none() && base.size_bytes.value >= NOTHING_TO_SAVE_BYTES;
            assert!(choice.chosen == 0 || allowed(best));
            assert!(
                choice.considered.iter().filter(|a| allowed(a)).all(|a| best.size_bytes.value as f64 <= 1.05 * a.size_bytes.value as f64)
            );
        }
    }
}
