//! Debit and credit by many threads, on a pool that is smaller than the data.

use crate::world::{Form, Random, Scans, World, is_retryable, open, parts};
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::OpenMode;
use pagefold_engine::database::Transaction;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::ValueRef;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const THREADS: usize = 16;
const TRANSFERS: usize = 300;
const ACCOUNTS: i64 = 6_000;
const MONEY: i64 = ACCOUNTS * 100;

/// Moves some money; now and then one of the accounts is closed and opened again, with another text.
fn transfer(world: &World, t: &mut Transaction<'_>, random: &mut Random) -> Result<()> {
    // Mostly among few, so that transactions meet.
    let among = if random.below(3) == 0 { ACCOUNTS as u64 } else { 300 };
    let (from, to) = (random.below(among) as i64, random.below(among) as i64);
    let amount = random.below(20) as i64;
    if from == to {
        return Ok(());
    }
    for (number, change) in [(from, -amount), (to, amount)] {
        let Some(&rid) = t.find(&world.table, &world.by_number, &[ValueRef::Int(number)])?.first() else { return Err(Error::Interrupted) };
        // At READ COMMITTED the row may change or go between the two.
        if !t.lock(&world.table, rid)? {
            return Err(Error::Interrupted);
        }
        let Some(row) = t.row(&world.table, rid)? else { return Err(Error::Interrupted) };
        let (found, (value, _)) = parts(&row);
        assert_eq!(found, number);
        match random.below(8) {
            0 => {
                assert!(t.delete(&world.table, rid)?);
                world.insert(t, number, value + change, &random.text(40))?;
            }
            1 => {
                let words = if random.below(10) == 0 { 400 } else { 60 };
                let text = random.text(words);
                assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value + change)), (2, ValueRef::Text(&text))])?);
            }
            _ => assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value + change))])?),
        }
    }
    Ok(())
}

/// All money and accounts, by scan and by both indexes.
fn audit(world: &World, t: &mut Transaction<'_>) -> Result<()> {
    let (mut money, mut accounts) = (0, 0);
    for row in t.rows(&world.table)? {
        money += parts(&row?.1).1.0;
        accounts += 1;
    }
    assert_eq!((money, accounts), (MONEY, ACCOUNTS), "by scan");
    for index in [&world.by_value, &world.by_number] {
        let rows = world.through(t, index, pagefold_engine::btree::Direction::Forward);
        let money: i64 = rows.iter().map(|row| row.2).sum();
        assert_eq!((money, rows.len()), (MONEY, ACCOUNTS as usize), "by {}", index.name());
    }
    Ok(())
}

/// A writer, until it ends or fails.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn debit_and_credit(form: Form, isolations: &[Isolation]) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let mut random = Random(5);
    let mut t = world.begin(ReadCommitted);
    for number in 0..ACCOUNTS {
        world.insert(&mut t, number, 100, &random.text(30)).unwrap();
    }
    t.commit().unwrap();
    let (commits, retries, writers) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(THREADS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, commits, retries, writers) = (&world, &commits, &retries, &writers);
            let isolation = isolations[thread % isolations.len()];
            scope.spawn(move || {
                let _running = Running(writers);
                let mut random = Random(100 + thread as u64);
                for _ in 0..TRANSFERS {
                    let mut t = world.begin(isolation);
                    match transfer(world, &mut t, &mut random).and_then(|()| if random.below(10) == 0 { t.rollback() } else { t.commit() })
                    {
                        Ok(()) => commits.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Interrupted) => retries.fetch_add(1, Ordering::Relaxed),
                        // The row that was found is gone, and somebody has opened the account again before this transaction did.
                        Err(Error::DuplicateKey { .. }) if isolation == ReadCommitted => retries.fetch_add(1, Ordering::Relaxed),
                        error => {
                            assert!(is_retryable(&error), "{error:?}");
                            retries.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            });
        }
        scope.spawn(|| {
            while writers.load(Ordering::Acquire) > 0 {
                let mut t = world.begin(RepeatableRead);
                audit(&world, &mut t).unwrap();
                audit(&world, &mut t).unwrap();
                t.commit().unwrap();
            }
        });
        scope.spawn(|| {
            while writers.load(Ordering::Acquire) > 0 {
                world.database.checkpoint().unwrap();
                std::thread::yield_now();
            }
        });
    });
    let (commits, retries) = (commits.into_inner(), retries.into_inner());
    let counters = world.database.manager().counters();
    println!("{form:?}, {isolations:?}: {commits} commits, {retries} others; pages: {}", shown(&counters.fields()));
    assert!(commits as usize > THREADS * TRANSFERS / 4, "{commits} commits, {retries} to be tried again");
    let rows = world.check();
    audit(&world, &mut world.begin(RepeatableRead)).unwrap();
    drop(world);
    let world = open(&storage, form, OpenMode::Write);
    assert!(world.check() == rows, "not the same after it was opened again");
}

fn shown(fields: &[(&str, u64)]) -> String {
    fields.iter().map(|(name, count)| format!("{count} {name} ")).collect()
}

/// A pool that holds a part of the data.
fn small(method: Method, format: IndexFormat) -> Form {
    let chunks = if (method, format) == (Method::Fixed, IndexFormat::Plain) { 3 } else { 4 };
    Form {
        method,
        format,
        memory_bytes: chunks * (256 << 10),
        background_threads: 2,
        page_bytes: 2048,
        small_partitions: None,
        small_extents: false,
    }
}

#[test]
fn of_rows_as_they_are() {
    debit_and_credit(small(Method::None, IndexFormat::Plain), &[ReadCommitted, RepeatableRead]);
}

#[test]
fn of_rows_as_they_are_with_folded_indexes() {
    debit_and_credit(small(Method::None, IndexFormat::Fold), &[RepeatableRead, ReadCommitted]);
}

#[test]
fn of_coded_rows() {
    debit_and_credit(small(Method::Fixed, IndexFormat::Plain), &[ReadCommitted, RepeatableRead]);
}

#[test]
fn of_coded_rows_with_folded_indexes() {
    debit_and_credit(small(Method::Fixed, IndexFormat::Fold), &[RepeatableRead, ReadCommitted]);
}

#[test]
fn of_rows_as_they_are_with_prefix_indexes() {
    debit_and_credit(small(Method::None, IndexFormat::Prefix), &[ReadCommitted, RepeatableRead]);
}

#[test]
fn one_after_the_other() {
    debit_and_credit(small(Method::None, IndexFormat::Fold), &[Serializable]);
}
