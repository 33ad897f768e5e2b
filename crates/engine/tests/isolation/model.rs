//! Transactions interleaved by a scheduler, against a model that keeps every committed state.
//!
//! A step that would have to wait fails at once, and its transaction is rolled back; the model knows who locks what well enough to say when that may happen.

use crate::world::{Form, Random, Rows, World, is_retryable};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead};
use pagefold_engine::database::{Savepoint, Transaction};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_types::ValueRef;
use std::collections::BTreeMap;

/// What a transaction has done: the row by number, `None` when it is deleted.
type Changes = BTreeMap<i64, Option<(i64, String)>>;

/// What is committed, and which commit was the last that changed a number.
#[derive(Clone, Default)]
struct Committed {
    rows: Rows,
    by: BTreeMap<i64, u64>,
}

struct Open<'w> {
    transaction: Transaction<'w>,
    isolation: Isolation,
    /// What was committed when its first statement began.
    base: Option<Committed>,
    changes: Changes,
    savepoints: Vec<(Savepoint, Changes)>,
}

impl Open<'_> {
    /// What it sees now, at the beginning of a statement.
    fn sees(&mut self, committed: &Committed) -> Rows {
        let base = match self.isolation {
            ReadCommitted => committed,
            _ => self.base.get_or_insert_with(|| committed.clone()),
        };
        with(&base.rows, &self.changes)
    }
}

fn with(rows: &Rows, changes: &Changes) -> Rows {
    let mut rows = rows.clone();
    for (number, row) in changes {
        match row {
            Some(row) => rows.insert(*number, row.clone()),
            None => rows.remove(number),
        };
    }
    rows
}

/// A statement that changes something. True when the transaction goes on.
fn change(world: &World, at: usize, open: &mut [Open<'_>], committed: &Committed, random: &mut Random) -> bool {
    let number = random.below(60) as i64;
    let (value, text) = (random.below(10) as i64, if random.below(15) == 0 { random.text(150) } else { random.text(8) });
    let others: Vec<usize> = (0..open.len()).filter(|other| *other != at).collect();
    // Others hold their locks also when they have taken their changes back.
    let free = others.iter().all(|other| !open[*other].changes.contains_key(&number) && open[*other].savepoints.is_empty());
    let current = &mut open[at];
    let seen = current.sees(committed);
    let newest = with(&committed.rows, &current.changes);
    let stale = current.base.as_ref().is_some_and(|base| base.by.get(&number) != committed.by.get(&number));
    let found = world.find(&mut current.transaction, number);
    assert_eq!(found.is_some(), seen.contains_key(&number), "number {number}");
    let done = match (found, random.below(3)) {
        (None, _) => world.insert(&mut current.transaction, number, value, &text).map(|_| Some((value, text))),
        (Some(rid), 0) => current.transaction.delete(&world.table, rid).map(|found| {
            assert!(found);
            None
        }),
        (Some(rid), 1) => current.transaction.update(&world.table, rid, &[(1, ValueRef::Int(value))]).map(|found| {
            assert!(found);
            Some((value, seen[&number].1.clone()))
        }),
        (Some(rid), _) => {
            let changes = [(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))];
            current.transaction.update(&world.table, rid, &changes).map(|found| {
                assert!(found);
                Some((value, text))
            })
        }
    };
    match done {
        Ok(row) => {
            assert!(!stale || found.is_none(), "number {number} was changed since the snapshot, and is again");
            current.changes.insert(number, row);
            true
        }
        Err(Error::DuplicateKey { .. }) => {
            // Only its own snapshot does not have the row.
            assert!(found.is_none() && (newest.contains_key(&number) || !free), "number {number} is not there");
            true
        }
        Err(Error::Conflict { .. }) => {
            assert!(stale, "number {number} was not changed since the snapshot");
            false
        }
        error => {
            assert!(is_retryable(&error), "{error:?}");
            assert!(!free, "number {number}: {error:?}, though nobody has it");
            false
        }
    }
}

fn run(form: Form, seed: u64, steps: usize) {
    let world = World::with(form);
    let mut random = Random(seed);
    let mut committed = Committed::default();
    let mut open: Vec<Open<'_>> = Vec::new();
    let (mut commits, mut failures) = (0, 0);
    for _ in 0..steps {
        if open.len() < 5 && random.below(3) == 0 {
            let isolation = if random.below(2) == 0 { ReadCommitted } else { RepeatableRead };
            let transaction = world.begin_impatient(isolation);
            open.push(Open { transaction, isolation, base: None, changes: Changes::new(), savepoints: Vec::new() });
        }
        if open.is_empty() {
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        match random.below(12) {
            0..6 => {
                if !change(&world, at, &mut open, &committed, &mut random) {
                    failures += 1;
                    let failed = open.swap_remove(at);
                    failed.transaction.rollback().unwrap();
                }
            }
            6 | 7 => {
                let seen = open[at].sees(&committed);
                assert!(world.see(&mut open[at].transaction) == seen, "seed {seed}: what {:?} sees", open[at].isolation);
            }
            8 => {
                let Open { transaction, changes, savepoints, .. } = &mut open[at];
                savepoints.push((transaction.savepoint(), changes.clone()));
            }
            9 => {
                if let Some((savepoint, changes)) = open[at].savepoints.last().cloned() {
                    open[at].transaction.roll_back_to(savepoint).unwrap();
                    open[at].changes = changes;
                }
            }
            10 => {
                let done = open.swap_remove(at);
                done.transaction.commit().unwrap();
                commits += 1;
                committed.rows = with(&committed.rows, &done.changes);
                committed.by.extend(done.changes.keys().map(|number| (*number, commits)));
            }
            _ if random.below(3) == 0 => open.swap_remove(at).transaction.rollback().unwrap(),
            _ => world.database.remove_leftovers().unwrap(),
        }
    }
    drop(open);
    assert!(world.check() == committed.rows, "seed {seed}");
    assert!(commits > steps as u64 / 30 && failures > 0, "{commits} commits, {failures} failures");
}

fn all_seeds(method: Method, format: IndexFormat) {
    for seed in 0..12 {
        run(Form { method, format, ..Form::default() }, seed, 1_500);
    }
}

#[test]
fn rows_as_they_are_with_plain_indexes() {
    all_seeds(Method::None, IndexFormat::Plain);
}

#[test]
fn rows_as_they_are_with_folded_indexes() {
    all_seeds(Method::None, IndexFormat::Fold);
}

#[test]
fn coded_rows_with_plain_indexes() {
    all_seeds(Method::Fixed, IndexFormat::Plain);
}

#[test]
fn coded_rows_with_folded_indexes() {
    all_seeds(Method::Fixed, IndexFormat::Fold);
}

#[test]
fn compact_rows_with_plain_indexes() {
    all_seeds(Method::Row, IndexFormat::Plain);
}

#[test]
fn rows_of_huffman_codes_with_folded_indexes() {
    all_seeds(Method::Huffman, IndexFormat::Fold);
}

#[test]
fn rows_as_they_are_with_prefix_indexes() {
    all_seeds(Method::None, IndexFormat::Prefix);
}

#[test]
fn compact_rows_with_prefix_indexes() {
    all_seeds(Method::Row, IndexFormat::Prefix);
}

#[test]
fn rows_by_column_with_plain_indexes() {
    all_seeds(Method::Page, IndexFormat::Plain);
}
