//! How long each statement takes, of all terminals together.

use crate::statements::{COUNT, TEXTS};
use pagefold_lab_engine::sessions::{Access, Connection, Done, Query, Rows};
use pagefold_types::Value;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// BEGIN, COMMIT and ROLLBACK stand behind the statements.
const OTHERS: [&str; 3] = ["BEGIN", "COMMIT", "ROLLBACK"];

/// How often, and for how long.
type Times = [(u64, Duration); COUNT + OTHERS.len()];

static ALL: Mutex<Times> = Mutex::new([(0, Duration::ZERO); COUNT + OTHERS.len()]);

/// A connection whose statements are timed.
pub(crate) struct Timed<C> {
    connection: C,
    times: Times,
}

impl<C> Timed<C> {
    pub(crate) fn new(connection: C) -> Timed<C> {
        Timed { connection, times: [(0, Duration::ZERO); COUNT + OTHERS.len()] }
    }

    fn time<R>(&mut self, at: usize, run: impl FnOnce(&mut C) -> R) -> R {
        let began = Instant::now();
        let ran = run(&mut self.connection);
        self.times[at].0 += 1;
        self.times[at].1 += began.elapsed();
        ran
    }
}

impl<C> Drop for Timed<C> {
    fn drop(&mut self) {
        let mut all = ALL.lock().expect("nobody panics with it");
        for (all, own) in all.iter_mut().zip(self.times) {
            *all = (all.0 + own.0, all.1 + own.1);
        }
    }
}

impl<C: Connection> Connection for Timed<C> {
    fn begin(&mut self, access: Access) -> Done<()> {
        self.time(COUNT, |connection| connection.begin(access))
    }

    fn rows(&mut self, query: Query, params: &[Value]) -> Done<Rows> {
        self.time(query.number, |connection| connection.rows(query, params))
    }

    fn change(&mut self, query: Query, params: &[Value]) -> Done<u64> {
        self.time(query.number, |connection| connection.change(query, params))
    }

    fn commit(&mut self) -> Done<()> {
        self.time(COUNT + 1, Connection::commit)
    }

    fn rollback(&mut self) -> Done<()> {
        self.time(COUNT + 2, Connection::rollback)
    }

    fn say(&mut self, text: &str, params: &[Value]) -> Done<Rows> {
        self.connection.say(text, params)
    }
}

/// Says what was measured since the last time, what took longest first.
pub(crate) fn print() {
    let all = std::mem::replace(&mut *ALL.lock().expect("nobody panics with it"), [(0, Duration::ZERO); COUNT + OTHERS.len()]);
    let mut lines: Vec<(Duration, u64, &str)> = Vec::new();
    for (at, (count, took)) in all.into_iter().enumerate() {
        let text = OTHERS.get(at.wrapping_sub(COUNT)).copied().unwrap_or_else(|| TEXTS[at]);
        if count > 0 {
            lines.push((took, count, text));
        }
    }
    lines.sort_unstable();
    let total: f64 = lines.iter().map(|line| line.0.as_secs_f64()).sum();
    println!("  {:>6} {:>9} {:>9}  statement", "share", "count", "mean us");
    for (took, count, text) in lines.iter().rev() {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(110).collect();
        let mean = took.as_secs_f64() * 1e6 / *count as f64;
        println!("  {:>5.1}% {count:>9} {mean:>9.1}  {text}", took.as_secs_f64() / total * 100.0);
    }
}
