//! Every rule says what it is for and is silent otherwise; decisions are the best there is, and stay.

use super::rules::cost_ratios;
use super::*;
use crate::choice::Cost;
use crate::sample::Interval;

const KB: u64 = 1024;

fn way(name: &'static str, page_kb: usize, size_kb: u64) -> Way {
    Way {
        name,
        page_bytes: page_kb * 1024,
        disk_page_bytes: page_kb * 1024,
        size_bytes: Interval::exact(size_kb * KB),
        memory_bytes: size_kb * KB,
        rows_per_page: 100.0,
        fold_ratio: None,
        buffer_unused: 0.0,
        cost: Some(Cost { read_ns: 100.0, write_ns: 1000.0 }),
        cpu_s: None,
        reads: None,
        time_s: None,
    }
}

fn dear(read: f64, write: f64, of: Way) -> Way {
    Way { cost: Some(Cost { read_ns: 100.0 * read, write_ns: 1000.0 * write }), ..of }
}

fn fold(page_kb: usize, size_kb: u64, ratio: f64) -> Way {
    let buffer_unused = crate::index::buffer_unused(ratio, page_kb * 1024);
    Way { fold_ratio: Some(ratio), buffer_unused, ..way("fold", page_kb, size_kb) }
}

fn subject(size_now_kb: u64) -> Subject {
    Subject { rows: 100_000, pctfree: 0, maxrows: None, base: 0, present: 0, size_now: size_now_kb * KB, load: Load::default() }
}

/// The rules that speak of a way.
fn said(subject: &Subject, ways: &[Way], way: usize) -> Vec<&'static str> {
    RULES.iter().filter(|rule| (rule.says)(subject, ways, way).is_some()).map(|rule| rule.name).collect()
}

#[test]
fn each_rule_speaks_where_it_should_and_not_elsewhere() {
    let plain = subject(1000);
    let memory = |memory_bound| Subject { load: Load { memory_bound: Some(memory_bound), ..Load::default() }, ..plain };
    let cpu = |hit_ratio| Subject { load: Load { cpu_bound: Some(true), hit_ratio: Some(hit_ratio), ..Load::default() }, ..plain };
    let base = way("none", 8, 1000);
    let against = |subject: Subject, other: Way| said(&subject, &[base.clone(), other], 1);
    let nothing: [&str; 0] = [];
    assert_eq!(against(plain, way("page", 8, 300)), nothing);
    assert_eq!(said(&subject(47), &[way("none", 8, 47), way("page", 8, 16)], 1), ["too_small"]);
    assert_eq!(said(&subject(48), &[way("none", 8, 48), way("page", 8, 16)], 1), nothing);
    assert_eq!(against(plain, way("row", 8, 960)), ["ratio_too_low"]);
    let unsure = Way { size_bytes: Interval { low: 800 * KB, value: 900 * KB, high: 960 * KB }, ..way("row", 8, 0) };
    assert_eq!(against(plain, unsure), ["ratio_too_low"]);
    assert_eq!(against(plain, way("row", 8, 940)), nothing);
    assert_eq!(against(plain, dear(2.1, 1.0, way("page", 8, 300))), ["too_dear"]);
    assert_eq!(against(plain, dear(1.9, 5.1, way("page", 8, 300))), ["too_dear"]);
    assert_eq!(against(plain, dear(1.9, 4.9, way("page", 8, 300))), nothing);
    // What is there may cost more, what would come in its place less.
    let both = [base.clone(), dear(2.2, 1.0, way("page", 8, 300)), dear(1.8, 1.0, way("fixed", 8, 200))];
    assert_eq!(said(&Subject { present: 1, ..plain }, &both, 1), nothing);
    assert_eq!(said(&Subject { present: 1, ..plain }, &both, 2), ["too_dear"]);
    // Less than 2:1 never more than 8 KB, more than 4:1 not less than 16 KB.
    assert_eq!(against(plain, fold(8, 600, 0.6)), nothing);
    assert_eq!(against(plain, fold(16, 600, 0.6)), ["fold_below_2_to_1", "buffer_wasted"]);
    assert_eq!(against(plain, fold(8, 500, 0.2)), ["fold_above_4_to_1"]);
    assert_eq!(against(plain, fold(16, 250, 0.24)), nothing);
    // At 3:1 a quarter of a buffer of 16 KB is unused: too much only where memory is short.
    assert_eq!(against(memory(false), fold(16, 340, 0.333)), nothing);
    assert_eq!(against(memory(true), fold(16, 340, 0.333)), ["buffer_wasted"]);
    assert_eq!(against(memory(false), fold(8, 650, 0.6)), nothing);
    assert_eq!(against(memory(true), fold(8, 650, 0.6)), ["fold_saves_too_little_memory"]);
    assert_eq!(against(memory(true), fold(8, 550, 0.55)), nothing);
    assert_eq!(against(cpu(0.7), fold(8, 500, 0.5)), ["fold_expands_too_often"]);
    assert_eq!(against(cpu(0.9), fold(8, 500, 0.5)), nothing);
    assert_eq!(against(cpu(0.7), way("prefix", 8, 500)), nothing);
    assert_eq!(against(Subject { pctfree: 40, ..plain }, way("page", 8, 600)), ["pctfree_eats_the_saving"]);
    assert_eq!(against(Subject { pctfree: 10, ..plain }, way("page", 8, 400)), nothing);
    assert_eq!(against(Subject { maxrows: Some(100), ..plain }, way("page", 8, 900)), ["maxrows_fills_pages"]);
    assert_eq!(against(Subject { maxrows: Some(200), ..plain }, way("page", 8, 900)), nothing);
    let few = |rows_per_page, size_kb| Way { rows_per_page, ..way("page", 4, size_kb) };
    let three = |four: Way| said(&plain, &[base.clone(), four, way("page", 32, 500)], 1);
    assert_eq!(three(few(1.5, 900)), ["few_rows_on_a_page"]);
    assert_eq!(three(few(1.5, 510)), nothing);
    assert_eq!(three(few(5.0, 900)), nothing);
}

#[test]
fn the_base_is_never_ruled_out() {
    let all = Load { memory_bound: Some(true), cpu_bound: Some(true), hit_ratio: Some(0.1) };
    let ways = [dear(9.0, 9.0, way("none", 8, 10)), way("page", 8, 5)];
    for rule in RULES.iter().filter(|rule| rule.verdict == Verdict::Against) {
        let subject = Subject { load: all, present: 1, ..subject(10) };
        assert_eq!((rule.says)(&subject, &ways, 0), None, "{}", rule.name);
    }
}

#[test]
fn the_smallest_that_no_rule_speaks_against() {
    let ways =
        [way("none", 8, 1000), dear(3.0, 1.0, way("huffman", 8, 300)), way("page", 8, 410), way("page", 32, 400), way("row", 8, 700)];
    let decision = decide(&subject(1000), &ways, Goal::Size);
    assert!(decision.change && decision.best == 2, "of two as good the page size in use: {decision:?}");
    assert!(decision.reason.starts_with("page of 8 KB: 410 KB instead of 1000 KB (59 % less), 1.0 times"), "{}", decision.reason);
    assert!(decision.reason.contains("huffman of 8 KB would take 300 KB, but a rule speaks against it"), "{}", decision.reason);
    assert!(decision.findings.iter().any(|f| f.way == 1 && f.rule == "too_dear" && f.reason.contains("3.0 times")), "{decision:?}");
    // Stays: nearly as good as the best; small; nothing to save.
    let stays = |subject: Subject, ways: &[Way]| {
        let decision = decide(&subject, ways, Goal::Size);
        assert!(!decision.change && decision.best == subject.present, "{decision:?}");
        decision.reason
    };
    assert!(stays(Subject { present: 2, ..subject(410) }, &ways).contains("page of 32 KB would take 400 KB, which is not worth"));
    assert!(stays(subject(40), &[way("none", 8, 40), way("page", 8, 8)]).contains("nothing to save"));
    assert!(stays(subject(100), &[way("none", 8, 100), way("page", 8, 60)]).contains("not worth"), "less than an extent");
    assert!(stays(subject(1000), &[way("none", 8, 1000), way("page", 8, 990)]).contains("no other way that is allowed is smaller"));
    // A method that saves little stays, one that is too dear goes.
    stays(Subject { present: 1, ..subject(980) }, &[way("none", 8, 1000), way("row", 8, 980)]);
    let goes = decide(&Subject { present: 1, ..subject(300) }, &ways, Goal::Size);
    assert!(goes.change && goes.best == 2, "{goes:?}");
    // Disorganized.
    let anew = decide(&Subject { present: 2, ..subject(900) }, &ways, Goal::Size);
    assert!(anew.change && anew.best == 2 && anew.reason.contains("written anew: 410 KB instead of 900 KB"), "{anew:?}");
}

#[test]
fn by_time_what_takes_least() {
    let timed = |time_s, way| Way { time_s: Some(time_s), ..way };
    let ways = [
        timed(2.0, way("none", 8, 1000)),
        timed(1.02, way("page", 8, 400)),
        timed(1.0, way("row", 8, 700)),
        timed(3.0, way("fixed", 8, 200)),
    ];
    let decision = decide(&subject(1000), &ways, Goal::Time);
    assert!(decision.change && decision.best == 1, "as good, and smaller: {decision:?}");
    assert!(decision.reason.contains("1.020 s for the workload instead of 2.000 s (49 % less)"), "{}", decision.reason);
    let stays = decide(&Subject { present: 2, ..subject(700) }, &ways, Goal::Time);
    assert!(!stays.change, "{stays:?}");
    let unknown = decide(&subject(1000), &[way("none", 8, 1000), way("page", 8, 10)], Goal::Time);
    assert!(!unknown.change && unknown.reason.contains("no operations"), "{unknown:?}");
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn around(&mut self, value: f64, off: f64) -> f64 {
        value * (1.0 - off + 2.0 * off * self.below(1001) as f64 / 1000.0)
    }
}

/// What was advised and carried out is not advised again, nor anything else, although costs are measured again and sizes estimated again: up to 8 % and 0.9 % off.
#[test]
fn advice_that_was_followed_is_not_changed() {
    let mut random = Random(11);
    let mut changes = 0;
    for round in 0..20_000 {
        let names = ["none", "row", "page", "fixed", "huffman"];
        let mut ways: Vec<Way> = (0..2 + random.below(9) as usize)
            .map(|at| {
                let of = way(names[at % 5], [8, 4, 16, 32][at / 5], 30 + random.below(4000));
                dear(random.around(1.5, 0.6), random.around(3.0, 0.9), of)
            })
            .collect();
        let mut subject = Subject { present: random.below(ways.len() as u64) as usize, ..subject(0) };
        subject.size_now = (ways[subject.present].size_bytes.value as f64 * [1.0, 1.5][random.below(2) as usize]) as u64;
        let first = decide(&subject, &ways, Goal::Size);
        assert!(ways[first.best].size_bytes.value <= ways[subject.base].size_bytes.value.max(ways[subject.present].size_bytes.value));
        if !first.change {
            assert_eq!(first.best, subject.present);
            continue;
        }
        changes += 1;
        let was_chosen = subject.present == subject.base && first.best != subject.base;
        subject.present = first.best;
        subject.size_now = ways[first.best].size_bytes.value;
        let base = ways[subject.base].clone();
        for (at, way) in ways.iter_mut().enumerate() {
            if at != subject.base {
                way.size_bytes = Interval::exact(random.around(way.size_bytes.value as f64, 0.009) as u64);
            }
            // Only what takes the place of the base has a margin then. Elsewhere nothing remembers what was a hair too dear: costs have to be the same then, as they are where a calibration is kept.
            let off = if was_chosen { 0.04 } else { 0.0 };
            let cost = way.cost.unwrap();
            way.cost = Some(Cost { read_ns: random.around(cost.read_ns, off), write_ns: random.around(cost.write_ns, off) });
        }
        let again = decide(&subject, &ways, Goal::Size);
        let was_near = ways.iter().any(|way| (way.size_bytes.value as f64 / (base.size_bytes.value as f64 * 0.95) - 1.0).abs() < 0.01);
        assert!(!again.change || was_near, "round {round}: {first:?} {again:?} {:?}", cost_ratios(&ways[again.best], &ways[0]));
    }
    assert!(changes > 5_000, "{changes}");
}
