//! One way of all.
//!
//! By size (the default): of the ways that no rule speaks against the smallest is best; of those at most 3 % larger the page size nearest to the one in use, then the cheapest to read. By time: the
//! one with which the workload is predicted to take least; of those at most 3 % slower the smallest.
//!
//! What there is stays, unless something else is better by more than 5 % and by an extent. So advice that was carried out is not given again, nor taken back for what a measurement or a sample is
//! off by.
//!
//! Invariant: by size, what is chosen is never larger than the base.

use super::figures::{Subject, Way};
use super::rules::{Finding, NOTHING_TO_SAVE_BYTES, RULES, Verdict, WORTH_SAVING, cost_ratios, size_text};

/// Ways that differ by less are as good. Less than [`WORTH_SAVING`]: what was chosen as nearly the best is still good enough when both are estimated once more.
const AS_GOOD: f64 = 0.03;

/// What is to be least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Bytes on disk.
    #[default]
    Size,
    /// Time of the workload.
    Time,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Number of the way that is best.
    pub best: usize,
    /// Is it to be written anew in that way? False: it stays as it is, which may be the best way already, or as good.
    pub change: bool,
    /// Why, in one sentence.
    pub reason: String,
    /// What rules said: of all ways against which they spoke, and notes on the best.
    pub findings: Vec<Finding>,
}

/// Seconds of a way that has none: never the least.
fn time(way: &Way) -> f64 {
    way.time_s.unwrap_or(f64::INFINITY)
}

/// Decides. `ways` has the base and the present one.
///
/// # Panics
/// When there is no base or no present one of these numbers.
#[must_use]
pub fn decide(subject: &Subject, ways: &[Way], goal: Goal) -> Decision {
    let mut findings = Vec::new();
    for way in 0..ways.len() {
        let against = RULES.iter().filter(|rule| rule.verdict == Verdict::Against);
        let said = against.filter_map(|rule| Some((rule, (rule.says)(subject, ways, way)?))).next();
        if let Some((rule, reason)) = said {
            findings.push(Finding { rule: rule.name, verdict: rule.verdict, way, reason });
        }
    }
    // What saves little is no reason to write anew what there is.
    let is_kept = |finding: &Finding| finding.way == subject.present && finding.rule == "ratio_too_low";
    let is_out = |way: usize| findings.iter().any(|finding| finding.way == way && !is_kept(finding));
    let is_small = findings.iter().any(|finding| finding.rule == "too_small");
    let (best, change, reason) = match goal {
        _ if is_small => {
            let size = size_text(subject.size_now);
            let why = format!("it takes {size}, and below {} there is nothing to save", size_text(NOTHING_TO_SAVE_BYTES));
            (subject.present, false, format!("{}: {why}.", ways[subject.present].label()))
        }
        Goal::Size => by_size(subject, ways, is_out),
        Goal::Time => by_time(subject, ways),
    };
    for rule in RULES.iter().filter(|rule| rule.verdict == Verdict::Note && !is_small) {
        if let Some(reason) = (rule.says)(subject, ways, best) {
            findings.push(Finding { rule: rule.name, verdict: rule.verdict, way: best, reason });
        }
    }
    Decision { best, change, reason, findings }
}

fn size(way: &Way) -> u64 {
    way.size_bytes.value
}

/// Is it large enough to save anything?
#[must_use]
pub fn is_large(size_bytes: u64) -> bool {
    size_bytes >= NOTHING_TO_SAVE_BYTES
}

/// Is it worth it to write an object of so many bytes anew, to get it down to so many?
#[must_use]
pub fn is_worth(from: u64, to: u64) -> bool {
    to as f64 <= from as f64 * (1.0 - WORTH_SAVING) && from.saturating_sub(to) >= NOTHING_TO_SAVE_BYTES
}

fn by_size(subject: &Subject, ways: &[Way], is_out: impl Fn(usize) -> bool) -> (usize, bool, String) {
    let base = &ways[subject.base];
    let allowed: Vec<usize> = (0..ways.len()).filter(|way| *way == subject.base || !is_out(*way)).collect();
    let least = allowed.iter().map(|way| size(&ways[*way])).min().unwrap_or_else(|| size(base));
    let limit = least as f64 * (1.0 + AS_GOOD);
    let page_bytes = ways[subject.present].page_bytes as f64;
    let away = |way: &usize| (ways[*way].page_bytes as f64 / page_bytes).log2().abs();
    let read_ns = |way: &usize| ways[*way].cost.map_or(0.0, |cost| cost.read_ns);
    let near = allowed.iter().copied().filter(|way| size(&ways[*way]) as f64 <= limit);
    let best = near.min_by(|a, b| away(a).total_cmp(&away(b)).then(read_ns(a).total_cmp(&read_ns(b)))).unwrap_or(subject.base);
    let present = &ways[subject.present];
    // The best of those allowed, or as good.
    if allowed.contains(&subject.present) && !is_worth(size(present), least) {
        let other = allowed.iter().copied().find(|way| size(&ways[*way]) == least).unwrap_or(best);
        // Written anew as it is, it would be smaller: it is disorganized.
        if is_worth(subject.size_now, size(present)) {
            let reason = format!("{}, written anew: {}", present.label(), instead(present, subject.size_now));
            return (subject.present, true, reason + ".");
        }
        let why = match other == subject.present {
            true => "no other way that is allowed is smaller".to_owned(),
            false => format!("{} would take {}, which is not worth writing it anew", ways[other].label(), size_text(least)),
        };
        return (subject.present, false, format!("{}: it takes {}; {why}.", present.label(), size_text(size(present))));
    }
    let way = &ways[best];
    let mut reason = format!("{}: {}", way.label(), instead(way, subject.size_now));
    if let Some((read, write)) = cost_ratios(way, base).filter(|_| best != subject.base) {
        reason += &format!(", {read:.1} times as long to read and {write:.1} times to write as {}", base.label());
    }
    let smallest = (0..ways.len()).min_by_key(|way| size(&ways[*way])).filter(|way| is_out(*way) && size(&ways[*way]) < least);
    if let Some(smallest) = smallest {
        reason += &format!("; {} would take {}, but a rule speaks against it", ways[smallest].label(), size_text(size(&ways[smallest])));
    }
    // One that breaks a rule goes, even where nothing is saved.
    let must_go = !allowed.contains(&subject.present);
    if !must_go && !is_worth(subject.size_now, size(way)) {
        return (subject.present, false, format!("{}: {} would not save an extent and 5 %.", present.label(), way.label()));
    }
    (best, best != subject.present, reason + ".")
}

fn instead(way: &Way, now: u64) -> String {
    let percent = 100.0 * (1.0 - size(way) as f64 / now.max(1) as f64);
    let change = if percent >= 0.0 { format!("{percent:.0} % less") } else { format!("{:.0} % more", -percent) };
    format!("{} instead of {} ({change})", size_text(size(way)), size_text(now))
}

fn by_time(subject: &Subject, ways: &[Way]) -> (usize, bool, String) {
    let present = &ways[subject.present];
    let least = ways.iter().map(time).fold(f64::INFINITY, f64::min);
    if !least.is_finite() || !time(present).is_finite() {
        return (subject.present, false, format!("{}: no operations of it were counted, and no time is predicted.", present.label()));
    }
    let limit = least * (1.0 + AS_GOOD);
    if time(present) <= least * (1.0 + WORTH_SAVING) {
        return (subject.present, false, format!("{}: {:.3} s, and no other way is more than 5 % faster.", present.label(), time(present)));
    }
    let near = (0..ways.len()).filter(|way| time(&ways[*way]) <= limit);
    let best = near.min_by_key(|way| size(&ways[*way])).unwrap_or(subject.present);
    let way = &ways[best];
    let reason = format!(
        "{}: {:.3} s for the workload instead of {:.3} s ({:.0} % less), {}.",
        way.label(),
        time(way),
        time(present),
        100.0 * (1.0 - time(way) / time(present)),
        instead(way, subject.size_now)
    );
    (best, best != subject.present, reason)
}
