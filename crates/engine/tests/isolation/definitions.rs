//! Several threads change and read rows at all levels while tables and indexes come, go and are replaced: against what must hold at any moment.
//!
//! Writers move amounts between the rows of `t` and put their count into a table of their own; so the sum over `t` never changes, whoever looks. `PAGEFOLD_DEFINITIONS_SECONDS`: how long, 3 by default.

use crate::world::{Form, Random, Scans, open};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{Database, Isolation, OpenMode, Transaction, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_engine::{Error, Silent};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Direction, Value, ValueRef};
use pagefold_utility::{IndexOptions, ReorgOptions, Setting, create_index, drop_object, reorg};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Serializable];
const ROWS: i64 = 400;
const AMOUNT: i64 = 1_000;
const WRITERS: u64 = 4;
const READERS: u64 = 4;

/// What may keep a transaction from its end: others, and what they have done to tables and indexes meanwhile.
fn is_expected(error: &Error) -> bool {
    matches!(
        error,
        Error::Lock(_)
            | Error::Conflict { .. }
            | Error::Serialization(_)
            | Error::Stale { .. }
            | Error::Parameter(_)
            | Error::Unknown { .. }
    )
}

fn begin(database: &Database, isolation: Isolation) -> Transaction<'_> {
    database.begin(TransactionOptions { isolation, lock_timeout: Duration::from_secs(60), ..TransactionOptions::default() })
}

fn value_of(values: &[Value], column: usize) -> i64 {
    match values[column] {
        Value::Int(value) => value,
        ref other => panic!("{other:?}"),
    }
}

/// Moves an amount from one row to another one, the lower number first, and counts that.
fn transfer(database: &Database, isolation: Isolation, random: &mut Random, writer: i64) -> Result<(), Error> {
    let mut transaction = begin(database, isolation);
    let (table, index) = (transaction.table("t")?, transaction.index("number")?);
    let first = random.below(ROWS as u64 - 1) as i64;
    let second = first + 1 + random.below((ROWS - first - 1) as u64) as i64;
    let amount = random.below(20) as i64 - 10;
    for (number, change) in [(first, -amount), (second, amount)] {
        let found = transaction.find(&table, &index, &[ValueRef::Int(number)])?;
        let [rid] = found[..] else { panic!("number {number} at {found:?}, {isolation:?}") };
        assert!(transaction.lock(&table, rid)?, "rows stay");
        let values = transaction.row(&table, rid)?.expect("rows stay");
        assert_eq!(value_of(&values, 0), number);
        let text = "x".repeat(random.below(40) as usize);
        let changes = [(1, ValueRef::Int(value_of(&values, 1) + change)), (2, ValueRef::Text(&text))];
        assert!(transaction.update(&table, rid, &changes)?);
    }
    let (counts, of_counts) = (transaction.table("counts")?, transaction.index("counts_number")?);
    let rid = transaction.find(&counts, &of_counts, &[ValueRef::Int(writer)])?[0];
    assert!(transaction.lock(&counts, rid)?);
    let values = transaction.row(&counts, rid)?.expect("rows stay");
    transaction.update(&counts, rid, &[(1, ValueRef::Int(value_of(&values, 1) + 1))])?;
    if random.below(10) == 0 { transaction.rollback().and(Err(Error::Parameter("rolled back".into()))) } else { transaction.commit() }
}

/// Looks at `t` in several ways.
fn look(database: &Database, isolation: Isolation) -> Result<(), Error> {
    let mut transaction = begin(database, isolation);
    for _ in 0..3 {
        let table = transaction.table("t")?;
        let (mut rows, mut sum) = (0, 0);
        for row in transaction.rows(&table)? {
            rows += 1;
            sum += value_of(&row?.1, 1);
        }
        assert_eq!((rows, sum), (ROWS, ROWS * AMOUNT), "{isolation:?}");
        for name in ["number", "value", "extra"] {
            // Not all of them are there all the time.
            let Ok(index) = transaction.index(name) else { continue };
            let (mut keys, mut sum) = (0, 0);
            let column = usize::from(name != "number");
            for key in transaction.keys_of(&table, &index, Way::Forward)? {
                keys += 1;
                sum += value_of(&key?.1, 0);
            }
            let expected = [ROWS * (ROWS - 1) / 2, ROWS * AMOUNT][column];
            assert_eq!((keys, sum), (ROWS, expected), "{isolation:?} by {name}");
        }
    }
    transaction.commit()
}

/// What comes and goes.
fn define(database: &Database, random: &mut Random, round: u64) -> Result<(), pagefold_utility::Error> {
    let format = [IndexFormat::Plain, IndexFormat::Prefix, IndexFormat::Fold][random.below(3) as usize];
    let page_bytes = Some(if format == IndexFormat::Fold { 8192 } else { 4096 });
    match random.below(6) {
        0 | 1 => {
            let method = Method::ALL[random.below(Method::ALL.len() as u64) as usize];
            let options = ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() };
            reorg(database, "t", &options, &Silent).map(drop)
        }
        2 => {
            let name = ["number", "value"][random.below(2) as usize];
            let options = ReorgOptions { format: Some(Setting::Given(format)), page_bytes, ..ReorgOptions::default() };
            reorg(database, name, &options, &Silent).map(drop)
        }
        3 if database.index("extra").is_ok() => drop_object(database, "extra").map(drop),
        3 => {
            let options = IndexOptions { format: Setting::Given(format), page_bytes, ..IndexOptions::default() };
            let columns = [("value".to_string(), Direction::Descending), ("number".to_string(), Direction::Ascending)];
            create_index(database, "extra", "t", &columns, &options, &Silent).map(drop)
        }
        4 if database.table("side").is_ok() => drop_object(database, "side").map(drop),
        4 => {
            let mut change = database.change();
            let attributes = database.table("counts")?.attributes().clone();
            let table = change.create_table(TableAttributes { name: "side".into(), ..attributes })?;
            for n in 0..random.below(300) as i64 {
                table.insert(&[ValueRef::Int(n), ValueRef::Int(n), ValueRef::Text("side")])?;
            }
            Ok(change.commit()?)
        }
        // One that is given up.
        _ => {
            let mut change = database.change();
            let old = change.drop_table("t")?;
            let table = change.create_table(old.attributes().clone())?;
            table.insert(&[ValueRef::Int(round as i64), ValueRef::Int(0), ValueRef::Text("")])?;
            Ok(())
        }
    }
}

#[test]
fn everybody_at_once() {
    let seconds = std::env::var("PAGEFOLD_DEFINITIONS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world =
        open(&storage, Form { memory_bytes: 8 << 20, background_threads: 2, page_bytes: 4096, ..Form::default() }, OpenMode::Create);
    world.fill((0..ROWS).map(|number| (number, AMOUNT)));
    let database = &world.database;
    let mut change = database.change();
    let counts = change.create_table(TableAttributes { name: "counts".into(), ..world.table.attributes().clone() }).unwrap();
    let key = pagefold_engine::index::IndexAttributes::new("counts_number", vec![(0, Direction::Ascending)], true);
    change.create_index(&counts, key).unwrap();
    change.commit().unwrap();
    let mut filler = begin(database, ReadCommitted);
    for writer in 0..WRITERS as i64 {
        filler.insert(&counts, &[ValueRef::Int(writer), ValueRef::Int(0), ValueRef::Text("")]).unwrap();
    }
    filler.commit().unwrap();
    let done = AtomicBool::new(false);
    let committed: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let looks = AtomicU64::new(0);
    let mut defined = BTreeMap::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (done, committed) = (&done, &committed);
            scope.spawn(move || {
                let mut random = Random(writer + 1);
                while !done.load(Ordering::Relaxed) {
                    let isolation = LEVELS[random.below(3) as usize];
                    match transfer(database, isolation, &mut random, writer as i64) {
                        Ok(()) => _ = committed[writer as usize].fetch_add(1, Ordering::Relaxed),
                        Err(error) => assert!(is_expected(&error), "writer, {isolation:?}: {error}"),
                    }
                }
            });
        }
        for reader in 0..READERS {
            let (done, looks) = (&done, &looks);
            scope.spawn(move || {
                let mut random = Random(reader + 100);
                while !done.load(Ordering::Relaxed) {
                    let isolation = LEVELS[random.below(3) as usize];
                    match look(database, isolation) {
                        Ok(()) => _ = looks.fetch_add(1, Ordering::Relaxed),
                        Err(error) => assert!(is_expected(&error), "reader, {isolation:?}: {error}"),
                    }
                }
            });
        }
        let (mut random, begun) = (Random(1000), Instant::now());
        for round in 0.. {
            let count = || (committed.iter().map(|c| c.load(Ordering::Relaxed)).sum::<u64>(), looks.load(Ordering::Relaxed));
            let (commits, seen) = count();
            match define(database, &mut random, round) {
                Ok(()) => *defined.entry("done").or_insert(0) += 1,
                Err(pagefold_utility::Error::Engine(error)) if is_expected(&error) => *defined.entry("refused").or_insert(0) += 1,
                Err(error) => panic!("{error}"),
            }
            if begun.elapsed() > Duration::from_secs(seconds) && round > 40 {
                break;
            }
            // However few processors there are, the others come to something, too.
            while (count().0 < commits + 4 || count().1 < seen + 1) && begun.elapsed() < Duration::from_secs(seconds + 60) {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    look(database, RepeatableRead).unwrap();
    let (table, index) = (database.table("counts").unwrap(), database.index("counts_number").unwrap());
    let mut transaction = begin(database, RepeatableRead);
    for (writer, committed) in committed.iter().enumerate() {
        let rid = transaction.find(&table, &index, &[ValueRef::Int(writer as i64)]).unwrap()[0];
        let values = transaction.row(&table, rid).unwrap().unwrap();
        assert_eq!(value_of(&values, 1) as u64, committed.load(Ordering::Relaxed), "commits of writer {writer}");
    }
    transaction.commit().unwrap();
    assert!(defined["done"] > 20 && looks.load(Ordering::Relaxed) > 20, "{defined:?}, {looks:?} looks");
    println!("{defined:?}, {committed:?} commits, {looks:?} looks");
    // What nobody has any more is gone.
    let world_table = Arc::clone(&world.table);
    drop((world_table, counts, table, index));
    let database = world.database;
    drop((world.table, world.by_number, world.by_value));
    database.remove_leftovers().unwrap();
    (0..2).for_each(|_| database.checkpoint().unwrap());
    let files = storage.list(Path::new("db/data")).unwrap().len();
    let expected =
        1 + database.tables().unwrap().iter().map(|table| table.data_sets().count()).sum::<usize>() + database.indexes().unwrap().len();
    assert!(files <= expected, "{files} files, {expected} data sets and a catalog");
    database.close().unwrap();
}
