//! What an open database does, as text in the Prometheus format: for a program's own HTTP server, for `top`, and for whoever looks on from another process (`live`).
//!
//! What there is is listed in `docs/live-view.md`.
//!
//! Invariants:
//! - nothing is counted for this: what is there anyway is read, while everything goes on;
//! - the text is bounded, whatever there is: of objects, transactions, waits and utilities so many are in it, those that are used most or are the oldest.

use super::activity::ObjectActivity;
use super::open::DatabaseState;
use crate::transaction::Resource;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

const OBJECTS_MAX: usize = 64;
const TRANSACTIONS_MAX: usize = 32;
const WAITS_MAX: usize = 32;
/// Of a name or a phase so many characters are shown.
const LABEL_CHARACTERS_MAX: usize = 200;

/// Lines, and which names have had their head.
struct Lines {
    out: String,
    heads: BTreeSet<String>,
}

impl Lines {
    fn line(&mut self, (name, kind, help): (&str, &str, &str), labels: &[(&str, &str)], value: impl std::fmt::Display) {
        if self.heads.insert(name.to_owned()) {
            let _ = write!(self.out, "# HELP pagefold_{name} {help}\n# TYPE pagefold_{name} {kind}\n");
        }
        let _ = write!(self.out, "pagefold_{name}");
        for (i, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.out, "{}{label}=\"{}\"", if i == 0 { '{' } else { ',' }, escaped(value));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.line((name, "gauge", help), labels, value);
    }

    fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.line((name, "counter", help), labels, value);
    }
}

/// A label's value between its quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().take(LABEL_CHARACTERS_MAX) {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

impl DatabaseState {
    /// What it does, as text in the Prometheus format: buffer pools and objects, transactions, locks and who waits for whom, the log, utilities with their progress. Of many objects and long names it is more than the live view takes, which then lacks the last lines.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut lines = Lines { out: String::with_capacity(16 << 10), heads: BTreeSet::new() };
        self.pools(&mut lines);
        self.transactions(&mut lines);
        self.locks(&mut lines);
        self.log_and_versions(&mut lines);
        self.utilities(&mut lines);
        self.objects_used(&mut lines);
        lines.out
    }

    fn pools(&self, lines: &mut Lines) {
        let pools = self.pool_activity();
        // Samples of one name stand together.
        for pool in &pools {
            lines.gauge("pool_frame_bytes", "Bytes of a page in memory.", &[("pool", &pool.name)], pool.frame_bytes);
        }
        for pool in &pools {
            lines.gauge("pool_limit_bytes", "Bytes that the pool may take.", &[("pool", &pool.name)], pool.limit_bytes);
        }
        for pool in &pools {
            lines.gauge("pool_used_bytes", "Bytes that the pool has taken.", &[("pool", &pool.name)], pool.used_bytes);
        }
        let help = "Memory of filters that tell which keys an index does not have.";
        lines.gauge("key_filter_bytes", help, &[], self.key_filter_bytes());
        let help = "Bytes of free pages that went back to the file system since the database was opened.";
        lines.counter("given_back_bytes_total", help, &[], self.given_back_bytes());
        let counted: Vec<_> = pools.iter().map(|pool| (pool, pool.counters.fields())).collect();
        for at in 0..counted.first().map_or(0, |(_, fields)| fields.len()) {
            for (pool, fields) in &counted {
                let (name, value) = fields[at];
                let help = "Of the objects in the pool, since the database was opened.";
                lines.counter(&format!("pool_{name}_total"), help, &[("pool", &pool.name)], value);
            }
        }
    }

    /// Those with most getpages. What nobody has used has no counters.
    fn objects_used(&self, lines: &mut Lines) {
        let named =
            |object: ObjectActivity| (format!("{} {}", if object.is_index { "index" } else { "table" }, object.name), object.counters);
        let mut counted: Vec<_> = self.object_activity().into_iter().map(named).collect();
        counted.sort_by(|(a, x), (b, y)| (Reverse(x.getpages), a).cmp(&(Reverse(y.getpages), b)));
        lines.gauge("objects_left_out", "Objects that were used and are not listed.", &[], counted.len().saturating_sub(OBJECTS_MAX));
        counted.truncate(OBJECTS_MAX);
        let counted: Vec<_> = counted.into_iter().map(|(name, counters)| (name, counters.fields())).collect();
        for at in 0..counted.first().map_or(0, |(_, fields)| fields.len()) {
            for (object, fields) in counted.iter().filter(|(_, fields)| fields[at].1 > 0) {
                let (name, value) = fields[at];
                lines.counter(
                    &format!("object_{name}_total"),
                    "Of a table or index, since the database was opened.",
                    &[("object", object)],
                    value,
                );
            }
        }
    }

    fn transactions(&self, lines: &mut Lines) {
        let transactions = &self.core.transactions;
        let active = self.transaction_activity();
        lines.gauge("transactions_active", "Transactions that have not ended.", &[], active.len());
        lines.counter(
            "transactions_begun_total",
            "Transactions that were begun, those before the database was opened included.",
            &[],
            transactions.next_id() - 1,
        );
        lines.counter("commits_total", "Commits that changed something.", &[], transactions.last_commit());
        for transaction in active.iter().take(TRANSACTIONS_MAX) {
            let id = transaction.id.to_string();
            lines.gauge("transaction_age_seconds", "Since it began, to a second.", &[("transaction", &id)], seconds(transaction.age));
        }
        for transaction in active.iter().take(TRANSACTIONS_MAX) {
            let id = transaction.id.to_string();
            lines.gauge("transaction_locks", "Rows, keys and tables that it has locked.", &[("transaction", &id)], transaction.locks);
        }
        let log = self.log_activity();
        let age = seconds(log.oldest_snapshot_age);
        lines.gauge("oldest_snapshot_age_seconds", "Since the oldest snapshot in use was taken; 0 without one.", &[], age);
        lines.gauge("oldest_snapshot_commits", "Commits since then.", &[], log.oldest_snapshot_commits);
    }

    fn locks(&self, lines: &mut Lines) {
        let locks = &self.core.locks;
        let (waits, _) = locks.waits();
        lines.gauge("locks_waiting", "Transactions that wait for a lock.", &[], locks.waiting());
        lines.counter("lock_waits_total", "How often a transaction has waited for a lock.", &[], waits);
        lines.counter("deadlocks_total", "Transactions that gave way in a deadlock.", &[], locks.deadlocks());
        for wait in locks.waits_now(WAITS_MAX) {
            let (waiter, holder) = (wait.waiter.to_string(), wait.holder.to_string());
            let resource = self.resource_text(wait.resource);
            let labels = [("transaction", waiter.as_str()), ("resource", resource.as_str()), ("for", holder.as_str())];
            lines.gauge("lock_wait", "This transaction waits for that one.", &labels, 1);
        }
    }

    /// With the name of the table or index, where there is one.
    fn resource_text(&self, resource: Resource) -> String {
        let name = |(object, is_index): (Option<String>, bool)| Some(format!("{} {}", if is_index { "index" } else { "table" }, object?));
        let named = self.locked_object(resource).and_then(name);
        match (named, resource) {
            (None, other) => other.to_string(),
            (Some(name), Resource::Row(_, rid)) => format!("row {rid} of {name}"),
            (Some(name), Resource::Key(..)) => format!("a key of {name}"),
            (Some(name), Resource::Reference(..)) => format!("references to a key of {name}"),
            (Some(name), _) => name,
        }
    }

    fn log_and_versions(&self, lines: &mut Lines) {
        let log = self.log_activity();
        lines.gauge("version_bytes", "Memory of old versions of rows.", &[], log.version_bytes);
        lines.gauge("version_file_bytes", "Bytes of the file for those that find no room in memory.", &[], log.version_file_bytes);
        lines.counter("log_end_bytes", "Position of the end of the log.", &[], log.end_bytes);
        lines.gauge("log_since_checkpoint_bytes", "Log that a crash would have to be redone.", &[], log.since_checkpoint_bytes);
        lines.gauge("log_checkpoint_bytes", "When there is so much, a checkpoint is written.", &[], log.checkpoint_bytes);
        lines.counter("checkpoints_total", "Since the database was opened.", &[], log.checkpoints);
        lines.gauge("open_files", "Files of tables and indexes that are open.", &[], log.open_files);
    }

    fn utilities(&self, lines: &mut Lines) {
        let running = self.utility_activity();
        for utility in &running {
            let labels = [("utility", utility.name.as_str()), ("phase", utility.phase.as_str()), ("unit", utility.unit)];
            lines.gauge("utility_done", "What of the phase is done.", &labels, utility.done);
        }
        for utility in &running {
            let labels = [("utility", utility.name.as_str()), ("phase", utility.phase.as_str()), ("unit", utility.unit)];
            if let Some(total) = utility.total {
                lines.gauge("utility_total", "What the phase has to do.", &labels, total);
            }
        }
        for utility in &running {
            let labels = [("utility", utility.name.as_str())];
            lines.gauge("utility_seconds", "Since it began.", &labels, seconds(utility.elapsed));
        }
    }
}
