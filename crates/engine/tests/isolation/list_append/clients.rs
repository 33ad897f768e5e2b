//! Threads that append to lists and read them.
//!
//! A key is retired when its list is long, and another takes its place, so that lists stay short and there are always some that are new.

use super::history::{History, Outcome, Step, Transaction};
use crate::world::{Random, Scans, World, is_retryable, parts};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{self, Isolation, ScanRequest, TransactionOptions};
use pagefold_engine::table_space::RowBuffer;
use pagefold_engine::{Error, Result};
use pagefold_types::{KeyRange, ValueRef};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How a list is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// As the text of one row.
    Texts,
    /// As rows numbered (key, position).
    Rows,
}

/// Positions of a list of rows.
const POSITIONS: u64 = 1 << 12;
/// Lists that are appended to at a time.
const SLOTS: usize = 24;

/// What all threads share, over all crashes.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) lists: Lists,
    pub(super) isolation: Isolation,
    /// The keys in use.
    slots: Vec<AtomicU64>,
    next_key: AtomicU64,
    next_element: AtomicU64,
    clock: AtomicU64,
}

/// A transaction that did not commit.
enum Stop {
    /// Chosen by the client or by the database; the next one may fare better.
    Aborted,
    /// The commit was cut off.
    InDoubt(Error),
    /// The database is gone.
    Gone(Error),
}

impl Clients {
    pub(super) fn new(lists: Lists, isolation: Isolation) -> Clients {
        Clients {
            lists,
            isolation,
            slots: (0..SLOTS as u64).map(AtomicU64::new).collect(),
            next_key: AtomicU64::new(SLOTS as u64),
            next_element: AtomicU64::new(1),
            clock: AtomicU64::new(1),
        }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs transactions until so many are committed or the database fails.
    pub(super) fn work(&self, world: &World, random: &mut Random, commits: usize) -> (History, Option<Error>) {
        let (mut history, mut done) = (History::new(), 0);
        while done < commits {
            let begun = self.now();
            let (mut steps, mut taken_back) = (Vec::new(), Vec::new());
            let end = self.transaction(world, random, &mut steps, &mut taken_back);
            let ended = self.now();
            let (outcome, error) = match end {
                Ok(()) => (Outcome::Committed, None),
                Err(Stop::Aborted) => (Outcome::Aborted, None),
                Err(Stop::InDoubt(error)) => (Outcome::InDoubt, Some(error)),
                Err(Stop::Gone(error)) => (Outcome::Aborted, Some(error)),
            };
            done += usize::from(outcome == Outcome::Committed);
            history.push(Transaction { steps, outcome, begun, ended });
            if !taken_back.is_empty() {
                history.push(Transaction { steps: taken_back, outcome: Outcome::Aborted, begun, ended });
            }
            if error.is_some() {
                return (history, error);
            }
        }
        (history, None)
    }

    fn transaction(
        &self,
        world: &World,
        random: &mut Random,
        steps: &mut Vec<Step>,
        taken_back: &mut Vec<Step>,
    ) -> std::result::Result<(), Stop> {
        let options =
            TransactionOptions { isolation: self.isolation, lock_timeout: Duration::from_secs(2), ..TransactionOptions::default() };
        let mut t = world.database.begin(options);
        let stop = |error: Error| match error {
            Error::DuplicateKey { .. } => Stop::Aborted,
            error if is_retryable::<()>(&Err(error.clone())) => Stop::Aborted,
            error => Stop::Gone(error),
        };
        for _ in 0..=random.below(4) {
            self.step(world, &mut t, random, steps).map_err(stop)?;
            if random.below(12) == 0 {
                let (savepoint, before) = (t.savepoint(), steps.len());
                self.step(world, &mut t, random, steps).map_err(stop)?;
                t.roll_back_to(savepoint).map_err(stop)?;
                taken_back.extend(steps.drain(before..).filter(|step| matches!(step, Step::Append(..))));
            }
        }
        if random.below(20) == 0 {
            t.rollback().map_err(Stop::Gone)?;
            return Err(Stop::Aborted);
        }
        t.commit().map_err(|error| if is_retryable::<()>(&Err(error.clone())) { Stop::Aborted } else { Stop::InDoubt(error) })
    }

    fn step(&self, world: &World, t: &mut database::Transaction<'_>, random: &mut Random, steps: &mut Vec<Step>) -> Result<()> {
        let slot = &self.slots[random.below(SLOTS as u64) as usize];
        let key = slot.load(Ordering::Relaxed);
        match random.below(2_000) {
            0..1_000 => {
                let list = self.read(world, t, key)?;
                // Some get much longer than a page.
                let long = if key.is_multiple_of(16) { 700 } else { 24 };
                if list.len() >= long {
                    let fresh = self.next_key.fetch_add(1, Ordering::Relaxed);
                    let _ = slot.compare_exchange(key, fresh, Ordering::Relaxed, Ordering::Relaxed);
                }
                steps.push(Step::Read(key, list));
            }
            1_000..1_997 => {
                let element = self.next_element.fetch_add(1, Ordering::Relaxed);
                // Noted first: when it fails, the element must not be seen.
                steps.push(Step::Append(key, element));
                self.append(world, t, key, element)?;
            }
            how => {
                let keys: Vec<u64> = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).collect();
                let first = keys.iter().min().copied().unwrap_or(0);
                let mut lists = if how < 1_999 { self.read_from(world, t, first)? } else { self.scan(world, t)? };
                steps.extend(keys.into_iter().map(|key| Step::Read(key, lists.remove(&key).unwrap_or_default())));
            }
        }
        Ok(())
    }

    /// The list under a key.
    fn read(&self, world: &World, t: &mut database::Transaction<'_>, key: u64) -> Result<Vec<u64>> {
        match self.lists {
            Lists::Texts => {
                let rids = t.find(&world.table, &world.by_number, &[ValueRef::Int(key as i64)])?;
                assert!(rids.len() <= 1, "list {key} at {rids:?}");
                let Some(rid) = rids.first() else { return Ok(Vec::new()) };
                let row = t.row(&world.table, *rid)?;
                Ok(row.map_or(Vec::new(), |row| elements(&parts(&row).1.1)))
            }
            Lists::Rows => {
                let range = KeyRange { start: bytes_of(world, key * POSITIONS)?, end: Some(bytes_of(world, (key + 1) * POSITIONS)?) };
                Ok(self.collect(world, t, range)?.remove(&key).unwrap_or_default())
            }
        }
    }

    /// All lists from a key on.
    fn read_from(&self, world: &World, t: &mut database::Transaction<'_>, key: u64) -> Result<BTreeMap<u64, Vec<u64>>> {
        let first = if self.lists == Lists::Rows { key * POSITIONS } else { key };
        self.collect(world, t, KeyRange { start: bytes_of(world, first)?, end: None })
    }

    fn collect(&self, world: &World, t: &mut database::Transaction<'_>, range: KeyRange) -> Result<BTreeMap<u64, Vec<u64>>> {
        let scan = t.read_view()?.range(&world.table, &world.by_number, range, Direction::Forward, &ScanRequest::default())?;
        let rows = scan.into_rows().map(|row| row.map(|(_, row)| parts(&row))).collect::<Result<_>>()?;
        Ok(self.lists_of(rows))
    }

    /// All lists, by a scan of the table.
    pub(super) fn scan(&self, world: &World, t: &mut database::Transaction<'_>) -> Result<BTreeMap<u64, Vec<u64>>> {
        let mut rows = t.rows(&world.table)?.map(|row| row.map(|(_, row)| parts(&row))).collect::<Result<Vec<_>>>()?;
        rows.sort_unstable();
        Ok(self.lists_of(rows))
    }

    /// From rows in order of their numbers.
    fn lists_of(&self, rows: Vec<(i64, (i64, String))>) -> BTreeMap<u64, Vec<u64>> {
        let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (number, (value, text)) in rows {
            match self.lists {
                Lists::Texts => assert!(lists.insert(number as u64, elements(&text)).is_none(), "list {number} twice"),
                Lists::Rows => {
                    let list = lists.entry(number as u64 / POSITIONS).or_default();
                    assert_eq!(list.len() as u64, number as u64 % POSITIONS, "a position is missing, or there twice");
                    list.push(value as u64);
                }
            }
        }
        lists
    }

    fn append(&self, world: &World, t: &mut database::Transaction<'_>, key: u64, element: u64) -> Result<()> {
        let value = element as i64;
        if self.lists == Lists::Rows {
            let position = self.read(world, t, key)?.len() as u64;
            return world.insert(t, (key * POSITIONS + position) as i64, value, "").map(drop);
        }
        let rids = t.find(&world.table, &world.by_number, &[ValueRef::Int(key as i64)])?;
        let Some(rid) = rids.first() else {
            return world.insert(t, key as i64, value, &element.to_string()).map(drop);
        };
        assert!(t.lock(&world.table, *rid)?, "lists are not deleted");
        let text = t.read(&world.table, *rid, &mut RowBuffer::default(), |record| world.table.values(record))?.transpose()?;
        let text = text.map(|row| parts(&row).1.1).unwrap_or_default();
        assert!(t.update(&world.table, *rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&format!("{text} {element}")))])?);
        Ok(())
    }

    /// Reads everything that is committed.
    pub(super) fn read_all(&self, world: &World) -> Transaction {
        let begun = self.now();
        let mut t = world.begin(Isolation::RepeatableRead);
        let mut lists = self.scan(world, &mut t).unwrap();
        t.commit().unwrap();
        let keys = 0..self.next_key.load(Ordering::Relaxed);
        let steps = keys.map(|key| Step::Read(key, lists.remove(&key).unwrap_or_default())).collect();
        assert!(lists.is_empty(), "lists that nobody made: {lists:?}");
        Transaction { steps, outcome: Outcome::Committed, begun, ended: self.now() }
    }
}

fn elements(text: &str) -> Vec<u64> {
    text.split(' ').map(|word| word.parse().unwrap()).collect()
}

fn bytes_of(world: &World, number: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoded = world.by_number.key_layout().encode(&[ValueRef::Int(number as i64)], &mut bytes);
    encoded.map_err(|e| Error::Value(e.to_string()))?;
    Ok(bytes)
}
