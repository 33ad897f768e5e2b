//! What EXPLAIN ANALYZE sees of a plan that runs: of each of its nodes how many rows it gave, how often it was begun, and how long it took with all that is below it.
//!
//! Invariants:
//! - nothing of this is in the way of a statement that nobody watches: its operators are the same ones without a wrapper;
//! - a node is known by where it lies: the plan lives as long as what is seen of it.

use super::{Context, Operator, Tuple, open_node};
use crate::SqlResult;
use crate::plan::Plan;
use pagefold_engine::CounterValues;
use pagefold_engine::database::Database;
use pagefold_io::Clock;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is seen of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rows: u64,
    loops: u64,
    time: Duration,
}

/// What is seen of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Observed(Mutex<HashMap<usize, Seen>>);

fn place<T>(node: *const T) -> usize {
    node.cast::<()>() as usize
}

impl Observed {
    fn all(&self) -> MutexGuard<'_, HashMap<usize, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node that no operator is opened for has given rows.
    pub(crate) fn gave<T>(&self, node: *const T, rows: u64, begun: bool) {
        self.took(place(node), rows, begun.into(), Duration::ZERO);
    }

    fn took(&self, node: usize, rows: u64, loops: u64, time: Duration) {
        let mut all = self.all();
        let seen = all.entry(node).or_default();
        *seen = Seen { rows: seen.rows + rows, loops: seen.loops + loops, time: seen.time + time };
    }

    /// As it is shown behind the line of a node.
    pub(crate) fn text<T>(&self, node: *const T) -> String {
        let Some(seen) = self.all().get(&place(node)).copied() else { return "  (never begun)".into() };
        let mut text = format!("  (actual rows={}", seen.rows);
        if seen.loops > 1 {
            let _ = write!(text, " loops={}", seen.loops);
        }
        if !seen.time.is_zero() {
            let _ = write!(text, " time={:.3} ms", seen.time.as_secs_f64() * 1000.0);
        }
        text + ")"
    }
}

/// An operator, and what is seen of it.
struct Watched {
    inner: Box<dyn Operator>,
    node: usize,
    rows: u64,
    time: Duration,
    clock: Arc<dyn Clock>,
    observed: Arc<Observed>,
}

/// Opens a node that is watched.
pub(super) fn open(plan: &Plan, context: &Context<'_>, observed: &Arc<Observed>) -> SqlResult<Box<dyn Operator>> {
    let clock = Arc::clone(&context.execution.limits.clock);
    let began = clock.monotonic();
    let inner = open_node(plan, context)?;
    let node = place(std::ptr::from_ref(plan));
    observed.took(node, 0, 1, clock.monotonic().saturating_sub(began));
    Ok(Box::new(Watched { inner, node, rows: 0, time: Duration::ZERO, clock, observed: Arc::clone(observed) }))
}

impl Operator for Watched {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let began = self.clock.monotonic();
        let filled = self.inner.fill(context, row);
        self.time += self.clock.monotonic().saturating_sub(began);
        self.rows += u64::from(matches!(filled, Ok(true)));
        filled
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.observed.took(self.node, self.rows, 0, self.time);
    }
}

/// What a database was asked for so far, by all who use it.
pub(crate) struct Counted(CounterValues);

impl Counted {
    pub(crate) fn of(database: &Database) -> Counted {
        let mut sum = CounterValues::default();
        database.pool_activity().iter().for_each(|pool| sum += pool.counters);
        Counted(sum)
    }

    /// Lines on what was asked for since then.
    pub(crate) fn lines_since(&self, before: &Counted) -> Vec<String> {
        let since = |of: fn(&CounterValues) -> u64| of(&self.0).saturating_sub(of(&before.0));
        let ahead = |all: &CounterValues| all.sequential_prefetch_pages + all.dynamic_prefetch_pages + all.list_prefetch_pages;
        vec![
            format!(
                "Getpages: {}, read one by one: {}, read ahead: {}, leaves expanded: {}",
                since(|all| all.getpages),
                since(|all| all.synchronous_reads),
                since(ahead),
                since(|all| all.expansions)
            ),
            format!(
                "Rows scanned: {}, looked up: {}, values taken out: {}",
                since(|all| all.rows_scanned),
                since(|all| all.lookups + all.snapshot_lookups),
                since(|all| all.values_scanned + all.values_read)
            ),
        ]
    }
}
