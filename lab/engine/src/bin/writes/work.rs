//! The rows, and what is done with them.

use crate::engine::{Change, Engine};
use pagefold_lab::lineitem::values;
use pagefold_lab::measure::Clock;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::random::Random;
use pagefold_types::ValueRef;
use std::collections::BTreeMap;
use tpchgen::generators::LineItem;

/// A row of LINEITEM.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) key: (i64, i64),
    pub(crate) values: [ValueRef<'a>; 16],
}

impl<'a> Row<'a> {
    pub(crate) fn of(item: &'a LineItem<'a>) -> Row<'a> {
        Row { key: (item.l_orderkey, i64::from(item.l_linenumber)), values: values(item) }
    }
}

/// In which order rows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Random,
}

impl Order {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Ascending => "ascending",
            Order::Random => "random",
        }
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    changes: usize,
    seconds: f64,
    /// Of its transactions: seconds that passed, and those that this thread worked.
    pub(crate) slowest_s: (f64, f64),
}

impl Took {
    pub(crate) fn rate(self) -> f64 {
        self.changes as f64 / self.seconds
    }
}

/// What every engine does.
pub(crate) struct Work<'a> {
    inserts: Vec<Change<'a>>,
    mixed: Vec<Change<'a>>,
    /// What there is in the end, in key order.
    finally: Vec<Row<'a>>,
    /// Changes of a transaction.
    per_transaction: usize,
}

const QUANTITY: usize = 4;
const COMMENT: usize = 15;

impl<'a> Work<'a> {
    /// The first `count` rows are inserted, in this order; then come `mixed` changes, whose inserts are the rows behind them.
    pub(crate) fn new(rows: &'a [Row<'a>], (count, mixed): (usize, usize), order: Order, per_transaction: usize) -> Work<'a> {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut first: Vec<&Row<'a>> = rows.iter().collect();
        // Of a random order the rows that come later lie between the others.
        if order == Order::Random {
            for i in (1..first.len()).rev() {
                first.swap(i, random.below(i + 1));
            }
        }
        let (first, later) = first.split_at(count);
        let mut finally: BTreeMap<(i64, i64), Row<'a>> = first.iter().map(|row| (row.key, (*row).clone())).collect();
        let mut keys: Vec<(i64, i64)> = first.iter().map(|row| row.key).collect();
        let mut changes = Vec::with_capacity(mixed);
        let mut later = later.iter();
        for _ in 0..mixed {
            let change = match random.below(4) {
                0 => {
                    let key = keys[random.below(keys.len())];
                    let text = match &rows[random.below(rows.len())].values[COMMENT] {
                        ValueRef::Text(text) => *text,
                        _ => "",
                    };
                    let quantity = random.below(5000) as i64;
                    if let Some(row) = finally.get_mut(&key) {
                        row.values[QUANTITY] = ValueRef::Decimal(i128::from(quantity));
                        row.values[COMMENT] = ValueRef::Text(text);
                    }
                    Change::Update(key, quantity, text)
                }
                1 => {
                    let key = keys.swap_remove(random.below(keys.len()));
                    finally.remove(&key);
                    Change::Delete(key)
                }
                _ => {
                    let Some(row) = later.next() else { break };
                    keys.push(row.key);
                    finally.insert(row.key, (*row).clone());
                    Change::Insert(row)
                }
            };
            changes.push(change);
        }
        let inserts = first.iter().map(|row| Change::Insert(row)).collect();
        Work { inserts, mixed: changes, finally: finally.into_values().collect(), per_transaction }
    }

    pub(crate) fn insert(&self, engine: &mut dyn Engine) -> Outcome<Took> {
        run(engine, &self.inserts, self.per_transaction)
    }

    pub(crate) fn mix(&self, engine: &mut dyn Engine) -> Outcome<Took> {
        run(engine, &self.mixed, self.per_transaction)
    }

    /// Inserts what there is in the end, in key order.
    pub(crate) fn insert_final(&self, engine: &mut dyn Engine) -> Outcome<()> {
        let inserts: Vec<Change<'_>> = self.finally.iter().map(Change::Insert).collect();
        run(engine, &inserts, self.per_transaction).map(drop)
    }
}

fn run(engine: &mut dyn Engine, changes: &[Change<'_>], per_transaction: usize) -> Outcome<Took> {
    let now = || (Clock::Wall.now_s(), Clock::Thread.now_s());
    let start = now();
    let (mut before, mut slowest_s) = (start, (0.0, 0.0));
    for group in changes.chunks(per_transaction) {
        engine.transaction(group)?;
        let now = now();
        if now.0 - before.0 > slowest_s.0 {
            slowest_s = (now.0 - before.0, now.1 - before.1);
        }
        before = now;
    }
    Ok(Took { changes: changes.len(), seconds: before.0 - start.0, slowest_s })
}
