//! What the process that writes a database does, as `top` shows it: from the metrics that it publishes, and how they have changed since the view before.

use crate::print::columns::{Align, Grid, count, size};
use pagefold_format::metrics_text::{Sample, parse_metrics};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Counters of a pool or object, by name.
pub type Counters = BTreeMap<String, f64>;

/// A transaction that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveTransaction {
    /// Its number.
    pub id: String,
    /// Since it began.
    pub age_s: f64,
    /// What it has locked.
    pub locks: u64,
}

/// A wait for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWait {
    /// The transaction that waits.
    pub transaction: String,
    /// For what.
    pub resource: String,
    /// The transaction that has it.
    pub holder: String,
}

/// A utility that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveUtility {
    /// Its name.
    pub name: String,
    /// What it does just now.
    pub phase: String,
    /// What it counts in.
    pub unit: String,
    /// What of the phase is done.
    pub done: u64,
    /// What the phase has to do, if that is known.
    pub total: Option<u64>,
    /// Since it began.
    pub elapsed_s: f64,
}

/// What is done at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveFrame {
    /// Seconds since 1970.
    pub time_s: f64,
    /// What has no labels.
    pub figures: Counters,
    /// Buffer pools, by name.
    pub pools: BTreeMap<String, Counters>,
    /// Tables and indexes that were used.
    pub objects: BTreeMap<String, Counters>,
    /// The oldest transactions.
    pub transactions: Vec<LiveTransaction>,
    /// Who waits for whom.
    pub waits: Vec<LiveWait>,
    /// What runs.
    pub utilities: Vec<LiveUtility>,
}

/// Objects that are shown.
const OBJECTS_SHOWN: usize = 12;

impl LiveFrame {
    /// From a text of metrics.
    #[must_use]
    pub fn of(text: &str, time_s: f64) -> LiveFrame {
        let mut frame = LiveFrame { time_s, ..LiveFrame::default() };
        for sample in parse_metrics(text) {
            let Some(name) = sample.name.strip_prefix("pagefold_") else { continue };
            let whole = sample.value.max(0.0) as u64;
            if let Some(counter) = name.strip_prefix("pool_") {
                let counters = frame.pools.entry(sample.label("pool").to_owned()).or_default();
                counters.insert(counter.trim_end_matches("_total").to_owned(), sample.value);
            } else if let Some(counter) = name.strip_prefix("object_") {
                let counters = frame.objects.entry(sample.label("object").to_owned()).or_default();
                counters.insert(counter.trim_end_matches("_total").to_owned(), sample.value);
            } else if let Some(what) = name.strip_prefix("transaction_") {
                let id = sample.label("transaction");
                let at = frame.transactions.iter().position(|transaction| transaction.id == id).unwrap_or_else(|| {
                    frame.transactions.push(LiveTransaction { id: id.to_owned(), ..LiveTransaction::default() });
                    frame.transactions.len() - 1
                });
                match what {
                    "age_seconds" => frame.transactions[at].age_s = sample.value,
                    _ => frame.transactions[at].locks = whole,
                }
            } else if name == "lock_wait" {
                let of = |label: &str| sample.label(label).to_owned();
                frame.waits.push(LiveWait { transaction: of("transaction"), resource: of("resource"), holder: of("for") });
            } else if let Some(what) = name.strip_prefix("utility_") {
                frame.utility(what, &sample);
            } else {
                frame.figures.insert(name.trim_end_matches("_total").to_owned(), sample.value);
            }
        }
        frame
    }

    fn utility(&mut self, what: &str, sample: &Sample) {
        let (name, phase) = (sample.label("utility"), sample.label("phase"));
        let is_it = |utility: &LiveUtility| utility.name == name && (phase.is_empty() || utility.phase == phase);
        let at = self.utilities.iter().position(is_it).unwrap_or_else(|| {
            let unit = sample.label("unit").to_owned();
            self.utilities.push(LiveUtility { name: name.to_owned(), phase: phase.to_owned(), unit, ..LiveUtility::default() });
            self.utilities.len() - 1
        });
        let utility = &mut self.utilities[at];
        match what {
            "done" => utility.done = sample.value.max(0.0) as u64,
            "total" => utility.total = Some(sample.value.max(0.0) as u64),
            _ => utility.elapsed_s = sample.value,
        }
    }

    fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or_default()
    }

    /// How much a figure has grown in a second since the frame before; `None` without one.
    fn rate(&self, name: &str, before: Option<&LiveFrame>) -> Option<f64> {
        per_second(self.figure(name), before.map(|before| (before.figure(name), self.time_s - before.time_s)))
    }

    /// As `--json` prints it: what is counted, and by the second since the frame before.
    #[must_use]
    pub fn to_json(&self, before: Option<&LiveFrame>) -> Json {
        let counted = |all: &BTreeMap<String, Counters>, of_before: Option<&BTreeMap<String, Counters>>| -> Vec<Json> {
            let seconds = before.map_or(0.0, |before| self.time_s - before.time_s);
            let one = |(name, counters): (&String, &Counters)| {
                let mut map = Map::new();
                map.insert("name".into(), json!(name));
                map.extend(counters.iter().map(|(counter, value)| (counter.clone(), json!(value))));
                map.insert("hit_ratio".into(), json!(hit_ratio(counters, None)));
                if let Some(then) = of_before.and_then(|all| all.get(name)) {
                    let rates = counters.keys().filter(|counter| !counter.ends_with("_bytes"));
                    let rates = rates.map(|counter| {
                        (counter.clone(), json!(per_second(value(counters, counter), Some((value(then, counter), seconds)))))
                    });
                    map.insert("per_second".into(), Json::Object(rates.collect()));
                    map.insert("hit_ratio_now".into(), json!(hit_ratio(counters, Some(then))));
                }
                Json::Object(map)
            };
            all.iter().map(one).collect()
        };
        json!({
            "time_s": self.time_s,
            "figures": self.figures,
            "commits_per_second": self.rate("commits", before),
            "log_bytes_per_second": self.rate("log_end_bytes", before),
            "pools": counted(&self.pools, before.map(|before| &before.pools)),
            "objects": counted(&self.objects, before.map(|before| &before.objects)),
            "transactions": self.transactions.iter().map(|t| json!({ "transaction": t.id, "age_s": t.age_s, "locks": t.locks })).collect::<Vec<_>>(),
            "waits": self.waits.iter().map(|w| json!({ "transaction": w.transaction, "resource": w.resource, "for": w.holder })).collect::<Vec<_>>(),
            "utilities": self.utilities.iter().map(|u| json!({
                "name": u.name, "phase": u.phase, "unit": u.unit, "done": u.done, "total": u.total, "elapsed_s": u.elapsed_s,
            })).collect::<Vec<_>>(),
        })
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self, before: Option<&LiveFrame>) -> String {
        let n = |name: &str| count(self.figure(name) as u64);
        let bytes = |name: &str| size(self.figure(name) as u64);
        let rate = |name: &str| self.rate(name, before).map_or("-".into(), |rate| count(rate as u64));
        let mut out = format!(
            "transactions  {} active, {} commits/s; oldest snapshot {:.1} s and {} commits behind\n",
            n("transactions_active"),
            rate("commits"),
            self.figure("oldest_snapshot_age_seconds"),
            n("oldest_snapshot_commits")
        );
        out += &format!("locks         {} waiting, {} waits, {} deadlocks\n", n("locks_waiting"), n("lock_waits"), n("deadlocks"));
        let log_rate = self.rate("log_end_bytes", before).map_or("-".into(), |rate| size(rate as u64));
        out += &format!(
            "log           {log_rate}/s; {} since the last checkpoint, the next one at {}; {} checkpoints\n",
            bytes("log_since_checkpoint_bytes"),
            bytes("log_checkpoint_bytes"),
            n("checkpoints")
        );
        out += &format!(
            "versions      {} in memory, {} in a file; {} files open\n\n",
            bytes("version_bytes"),
            bytes("version_file_bytes"),
            n("open_files")
        );
        let mut pools = Grid::new(
            &["POOL", "PAGE", "USED", "LIMIT", "GETPAGES/s", "HIT", "READS/s", "PREFETCHED/s", "WRITTEN/s", "EXPANDED/s"],
            &[Align::Left],
        );
        for (name, counters) in &self.pools {
            let of = |counter: &str| size(value(counters, counter) as u64);
            let mut row = vec![name.clone(), of("frame_bytes"), of("used_bytes"), of("limit_bytes")];
            row.extend(self.rates(counters, before.map(|before| (before, before.pools.get(name)))));
            pools.row(row);
        }
        out += &pools.to_string();
        if !self.objects.is_empty() {
            let head = ["OBJECT", "GETPAGES", "GETPAGES/s", "HIT", "READS/s", "PREFETCHED/s", "WRITTEN/s", "EXPANDED/s"];
            let mut objects = Grid::new(&head, &[Align::Left]);
            let mut all: Vec<_> = self.objects.iter().collect();
            let grown = |(name, counters): &(&String, &Counters)| {
                let then = before.and_then(|before| before.objects.get(*name)).map_or(0.0, |then| value(then, "getpages"));
                (value(counters, "getpages") - then).max(0.0)
            };
            all.sort_by(|a, b| grown(b).total_cmp(&grown(a)).then(value(b.1, "getpages").total_cmp(&value(a.1, "getpages"))));
            for (name, counters) in all.iter().take(OBJECTS_SHOWN) {
                let mut row = vec![(*name).clone(), count(value(counters, "getpages") as u64)];
                row.extend(self.rates(counters, before.map(|before| (before, before.objects.get(*name)))));
                objects.row(row);
            }
            out += &format!("\n{objects}");
            let more = all.len().saturating_sub(OBJECTS_SHOWN) as u64 + self.figure("objects_left_out") as u64;
            if more > 0 {
                out += &format!("and {} more\n", count(more));
            }
        }
        if !self.transactions.is_empty() {
            let mut grid = Grid::new(
                &["TRANSACTION", "AGE", "LOCKS", "WAITS FOR", "HAS LOCKED"],
                &[Align::Left, Align::Right, Align::Right, Align::Left, Align::Left],
            );
            for transaction in &self.transactions {
                let wait = self.waits.iter().find(|wait| wait.transaction == transaction.id);
                grid.row(vec![
                    transaction.id.clone(),
                    format!("{:.0} s", transaction.age_s),
                    count(transaction.locks),
                    wait.map_or_else(String::new, |wait| format!("transaction {}", wait.holder)),
                    wait.map_or_else(String::new, |wait| wait.resource.clone()),
                ]);
            }
            out += &format!("\n{grid}");
        }
        if !self.utilities.is_empty() {
            let mut grid = Grid::new(
                &["UTILITY", "PHASE", "DONE", "OF", "", "SINCE"],
                &[Align::Left, Align::Left, Align::Right, Align::Right, Align::Left],
            );
            for utility in &self.utilities {
                let amount = |n: u64| if utility.unit == "bytes" { size(n) } else { count(n) };
                let unit = if utility.unit == "bytes" { String::new() } else { utility.unit.clone() };
                grid.row(vec![
                    utility.name.clone(),
                    utility.phase.clone(),
                    amount(utility.done),
                    utility.total.map_or("-".into(), amount),
                    unit,
                    format!("{:.0} s", utility.elapsed_s),
                ]);
            }
            out += &format!("\n{grid}");
        }
        out
    }

    /// The columns from getpages on.
    fn rates(&self, counters: &Counters, before: Option<(&LiveFrame, Option<&Counters>)>) -> Vec<String> {
        let none = Counters::new();
        let then = before.map(|(_, then)| then.unwrap_or(&none));
        let seconds = before.map_or(0.0, |(frame, _)| self.time_s - frame.time_s);
        let rate = |names: &[&str]| {
            let sum = |counters: &Counters| names.iter().map(|name| value(counters, name)).sum();
            per_second(sum(counters), then.map(|then| (sum(then), seconds))).map_or("-".into(), |rate| count(rate as u64))
        };
        let hits = hit_ratio(counters, then).map_or("-".into(), |ratio| format!("{:.1} %", ratio * 100.0));
        vec![
            rate(&["getpages"]),
            hits,
            rate(&["synchronous_reads"]),
            rate(&["sequential_prefetch_pages", "dynamic_prefetch_pages", "list_prefetch_pages"]),
            rate(&["pages_written"]),
            rate(&["expansions"]),
        ]
    }
}

fn value(counters: &Counters, name: &str) -> f64 {
    counters.get(name).copied().unwrap_or_default()
}

fn per_second(now: f64, before: Option<(f64, f64)>) -> Option<f64> {
    let (then, seconds) = before?;
    // A database that was opened again begins with 0.
    (seconds > 0.0).then(|| (now - then).max(0.0) / seconds)
}

/// Getpages that found their page in memory; since the frame before, if there is one and something was asked for.
fn hit_ratio(counters: &Counters, before: Option<&Counters>) -> Option<f64> {
    let grown = |name: &str| (value(counters, name) - before.map_or(0.0, |before| value(before, name))).max(0.0);
    let getpages = grown("getpages");
    (getpages > 0.0).then(|| (1.0 - grown("synchronous_reads") / getpages).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "pagefold_pool_frame_bytes{pool=\"P8K\"} 8192\npagefold_pool_getpages_total{pool=\"P8K\"} 1000\npagefold_pool_synchronous_reads_total{pool=\"P8K\"} 500\npagefold_commits_total 10\npagefold_log_end_bytes 5000\n";
    const NOW: &str = "pagefold_pool_frame_bytes{pool=\"P8K\"} 8192\npagefold_pool_getpages_total{pool=\"P8K\"} 3000\npagefold_pool_synchronous_reads_total{pool=\"P8K\"} 700\npagefold_commits_total 30\npagefold_log_end_bytes 9096\npagefold_object_getpages_total{object=\"table t\"} 1234\npagefold_transaction_age_seconds{transaction=\"7\"} 12.000\npagefold_transaction_locks{transaction=\"7\"} 3\npagefold_lock_wait{transaction=\"7\",resource=\"row 0.2.1 of table t\",for=\"5\"} 1\npagefold_utility_done{utility=\"reorg t\",phase=\"reading\",unit=\"rows\"} 40\npagefold_utility_total{utility=\"reorg t\",phase=\"reading\",unit=\"rows\"} 100\npagefold_utility_seconds{utility=\"reorg t\"} 2.500\n";

    #[test]
    fn a_frame_says_what_was_done_since_the_one_before() {
        let (then, now) = (LiveFrame::of(THEN, 100.0), LiveFrame::of(NOW, 102.0));
        let json = now.to_json(Some(&then));
        assert_eq!((json["commits_per_second"].as_f64(), json["log_bytes_per_second"].as_f64()), (Some(10.0), Some(2048.0)));
        let pool = &json["pools"][0];
        assert_eq!((pool["name"].as_str(), pool["per_second"]["getpages"].as_f64()), (Some("P8K"), Some(1000.0)));
        assert_eq!((pool["hit_ratio_now"].as_f64(), pool["getpages"].as_f64()), (Some(0.9), Some(3000.0)));
        assert_eq!(json["waits"][0]["for"].as_str(), Some("5"));
        let utility = &json["utilities"][0];
        assert_eq!((utility["done"].as_u64(), utility["total"].as_u64(), utility["elapsed_s"].as_f64()), (Some(40), Some(100), Some(2.5)));
        let text = now.to_text(Some(&then));
        for part in ["10 commits/s", "2 KB/s", "1,000", "90.0 %", "table t", "transaction 5", "row 0.2.1 of table t", "reorg t", "12 s"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        // The first frame has no rates.
        assert!(now.to_json(None)["commits_per_second"].is_null() && now.to_text(None).contains("- commits/s"));
        // No time has passed, or the clock was set back.
        let rates = &then.to_json(Some(&now))["pools"][0]["per_second"];
        assert!(rates.as_object().is_some_and(|rates| !rates.is_empty() && rates.values().all(Json::is_null)), "{rates}");
    }
}
