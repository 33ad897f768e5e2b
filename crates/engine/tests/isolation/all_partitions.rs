//! Keys that are unique over all partitions of a table: who waits for whom, what snapshots find, and many writers beside partitions that come, go and are written anew.

use crate::partitions::{attributes, begin, everywhere, insert, open, snapshot, spec};
use crate::world::{Random, is_retryable};
use pagefold_engine::database::{
    Database, Insertion, Isolation, OpenMode, PartitionSpec, ScanRequest, Settings, Transaction, TransactionOptions,
};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_engine::{Error, Silent};
use pagefold_io::{Clock, CrashPolicy, FaultOptions, FaultStorage, MemoryStorage, OsClock, Storage};
use pagefold_types::{Direction, KeyRange, Value, ValueRef};
use pagefold_utility::{
    IndexOptions, PartitionText, ReorgOptions, check, create_index, merge_partitions, rebuild_index, reorg, split_partition,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Days below 10, 20 and 30; numbers are unique, whatever the day.
fn create(database: &Database) {
    let mut t = begin(database);
    let specs = [spec("a", Some(10)), spec("b", Some(20)), spec("c", Some(30))];
    t.create_partitioned_table(&TableAttributes { primary_key: vec![0], ..attributes() }, &[1], &specs).unwrap();
    t.create_partitioned_index("sales", &by_id("sales_pk")).unwrap();
    t.commit().unwrap();
}

fn by_id(name: &str) -> IndexAttributes {
    IndexAttributes::new(name, vec![(0, Direction::Ascending)], true)
}

fn id_column() -> [(String, Direction); 1] {
    [("id".into(), Direction::Ascending)]
}

/// Deletes the row of a number on a day.
fn delete(t: &mut Transaction<'_>, id: i64, day: i64) -> Result<bool, Error> {
    let whole = t.partitioned_table("sales")?;
    let mut key = Vec::new();
    whole.key(&[ValueRef::Int(id), ValueRef::Int(day), ValueRef::Null], &mut key)?;
    let partition = &whole.partitions()[whole.find_for(&key)?];
    let table = t.table_of_partition(partition)?;
    let Some(index) = t.index_of_partition(partition, &table, "sales_pk")? else { return Ok(false) };
    let Some(rid) = t.find(&table, &index, &[ValueRef::Int(id)])?.first().copied() else { return Ok(false) };
    t.delete(&table, rid)
}

/// Numbers and days of all rows, in the order of numbers.
fn rows(t: &mut Transaction<'_>) -> Vec<(i64, i64)> {
    let whole = t.partitioned_table("sales").unwrap();
    let mut rows = Vec::new();
    let view = t.read_view().unwrap();
    for partition in whole.partitions() {
        let table = t.table_of_partition(partition).unwrap();
        for row in view.scan(&table, &ScanRequest::default()).unwrap().into_rows() {
            let [Value::Int(id), Value::Int(day), _] = row.unwrap().1[..] else { panic!("three values") };
            rows.push((id, day));
        }
    }
    rows.sort_unstable();
    rows
}

fn is_taken(result: Result<(), Error>) {
    assert!(matches!(result, Err(Error::DuplicateKey { .. })), "{result:?}");
}

#[test]
fn a_key_is_looked_for_in_all_partitions() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    insert(&mut t, 1, 5).unwrap();
    insert(&mut t, 2, 15).unwrap();
    is_taken(insert(&mut t, 1, 15));
    is_taken(insert(&mut t, 1, 5));
    is_taken(insert(&mut t, 2, 25));
    // Of rows that come together none comes.
    let c = t.table("sales/c").unwrap();
    let pushed = t.insert_rows(&c, |rows| (0..5).try_for_each(|id| rows.push(&[ValueRef::Int(id), ValueRef::Int(21), ValueRef::Null])));
    is_taken(pushed.map(drop));
    let row = [ValueRef::Int(2), ValueRef::Int(22), ValueRef::Null];
    let Insertion::Taken { elsewhere: Some(other), rid, .. } = t.insert_unless_taken(&c, &row).unwrap() else { panic!("it is taken") };
    assert_eq!((other.name(), t.row(&other, rid).unwrap().unwrap()[1].clone()), ("sales/b", Value::Int(15)));
    // What it has deleted is free, in any partition; what it takes back is not.
    let savepoint = t.savepoint();
    assert!(delete(&mut t, 1, 5).unwrap());
    insert(&mut t, 1, 25).unwrap();
    t.roll_back_to(savepoint).unwrap();
    is_taken(insert(&mut t, 1, 25));
    t.commit().unwrap();
    let mut t = begin(&database);
    let b = t.table("sales/b").unwrap();
    let index = t.index("sales_pk/b").unwrap();
    let rid = t.find(&b, &index, &[ValueRef::Int(2)]).unwrap()[0];
    is_taken(t.update(&b, rid, &[(0, ValueRef::Int(1))]).map(drop));
    assert!(t.update(&b, rid, &[(0, ValueRef::Int(3))]).unwrap());
    insert(&mut t, 2, 5).unwrap();
    t.commit().unwrap();
    everywhere(&storage, |database| {
        let mut t = begin(database);
        assert_eq!(rows(&mut t), [(1, 5), (2, 5), (3, 15)]);
        is_taken(insert(&mut t, 3, 25));
    });
}

#[test]
fn who_comes_second_waits_for_the_first() {
    for commits in [true, false] {
        let storage = FaultStorage::new(FaultOptions::default());
        let database = open(&storage, OpenMode::Create);
        create(&database);
        let mut first = begin(&database);
        insert(&mut first, 7, 5).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let mut t = begin(&database);
                let inserted = insert(&mut t, 7, 15);
                match inserted {
                    Ok(()) => t.commit().map(|()| true),
                    Err(Error::DuplicateKey { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            });
            while database.lock_waits().0 == 0 {
                std::thread::yield_now();
            }
            if commits {
                first.commit().unwrap()
            } else {
                first.rollback().unwrap()
            }
            assert_eq!(second.join().unwrap().unwrap(), !commits);
        });
        assert_eq!(rows(&mut begin(&database)), [(7, if commits { 5 } else { 15 })]);
    }
}

#[test]
fn an_older_snapshot_does_not_see_a_key_twice() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    insert(&mut t, 1, 5).unwrap();
    insert(&mut t, 2, 5).unwrap();
    insert(&mut t, 3, 15).unwrap();
    t.commit().unwrap();
    // Its row was deleted since; its partition went since; its partition was written anew since.
    let look = |prepare: &dyn Fn(&Database), id: i64| {
        let mut old = snapshot(&database);
        rows(&mut old);
        prepare(&database);
        let inserted = insert(&mut old, id, 25);
        assert!(matches!(inserted, Err(Error::Conflict { .. })), "{inserted:?}");
    };
    look(
        &|database| {
            let mut t = begin(database);
            assert!(delete(&mut t, 1, 5).unwrap());
            t.commit().unwrap();
        },
        1,
    );
    look(
        &|database| {
            reorg(database, "sales/a", &ReorgOptions::default(), &Silent).unwrap();
            let mut t = begin(database);
            assert!(delete(&mut t, 2, 5).unwrap());
            t.commit().unwrap();
        },
        2,
    );
    look(
        &|database| {
            let mut t = begin(database);
            t.drop_partition("sales", "b").unwrap();
            t.commit().unwrap();
        },
        3,
    );
    let mut t = begin(&database);
    (1..4).for_each(|id| insert(&mut t, id, 25).unwrap());
    t.commit().unwrap();
}

#[test]
fn who_has_very_many_keys_takes_all_of_them() {
    let storage: Arc<dyn Storage> = Arc::new(FaultStorage::new(FaultOptions::default()));
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, row_locks_max: 200, ..Settings::default() };
    let database = Database::open(storage, Arc::new(OsClock), Path::new("db"), OpenMode::Create, settings).unwrap();
    create(&database);
    let mut many = begin(&database);
    (0..2000).for_each(|id| insert(&mut many, id, id % 30).unwrap());
    is_taken(insert(&mut many, 1999, 3));
    let held = database.locks_held(many.id());
    assert!(held < 1000, "{held} locks of 2,000 rows");
    // Others wait for it, whichever key they give to a row.
    let mut other = database.begin(TransactionOptions { lock_timeout: Duration::from_millis(5), ..TransactionOptions::default() });
    assert!(matches!(insert(&mut other, 5000, 25), Err(Error::Lock(_))));
    drop(other);
    many.commit().unwrap();
    let mut t = begin(&database);
    is_taken(insert(&mut t, 1000, 3));
    insert(&mut t, 5000, 25).unwrap();
}

#[test]
fn an_index_comes_only_when_no_key_is_there_twice() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    t.drop_partitioned_index("sales_pk").unwrap();
    (0..40).for_each(|id| insert(&mut t, id, id % 30).unwrap());
    insert(&mut t, 39, 25).unwrap();
    t.commit().unwrap();
    let mut t = begin(&database);
    is_taken(t.create_partitioned_index("sales", &by_id("by_id")));
    t.rollback().unwrap();
    let options = IndexOptions { unique: true, ..IndexOptions::default() };
    let refused = create_index(&database, "by_id", "sales", &id_column(), &options, &Silent).unwrap_err();
    assert!(refused.to_string().contains("(39)"), "{refused}");
    assert!(database.index_names().is_empty(), "{:?}", database.index_names());
    let mut t = begin(&database);
    let c = t.table("sales/c").unwrap();
    let view = t.read_view().unwrap();
    let last = view.scan(&c, &ScanRequest { rids: true, ..ScanRequest::default() }).unwrap().into_rows();
    let last = last.map(Result::unwrap).find(|(_, values)| values[..2] == [Value::Int(39), Value::Int(25)]).unwrap().0;
    assert!(t.delete(&c, last).unwrap());
    t.commit().unwrap();
    drop(view);
    create_index(&database, "by_id", "sales", &id_column(), &options, &Silent).unwrap();
    is_taken(insert(&mut begin(&database), 39, 25));
}

/// Changes definitions, again when others were in the way.
fn define(database: &Database, commits: bool, change: impl Fn(&mut Transaction<'_>) -> Result<(), Error>) {
    loop {
        let mut t = begin(database);
        let changed = change(&mut t).and_then(|()| if commits { t.commit() } else { t.rollback() });
        match changed {
            Ok(()) => return,
            Err(error) => assert!(is_retryable(&Err::<(), _>(error.clone())) || matches!(error, Error::DuplicateKey { .. }), "{error}"),
        }
    }
}

/// What nobody makes: rows of two partitions with one key, in an index whose keys are unique over all.
#[test]
fn check_finds_a_key_of_two_partitions() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    t.drop_partitioned_index("sales_pk").unwrap();
    (0..300).for_each(|id| insert(&mut t, id, id % 30).unwrap());
    insert(&mut t, 77, 5).unwrap();
    for name in ["a", "b", "c"] {
        let table = t.table(&format!("sales/{name}")).unwrap();
        t.create_index(&table, by_id(&format!("sales_pk/{name}"))).unwrap();
    }
    t.commit().unwrap();
    let errors = |storage: &FaultStorage| {
        let (storage, clock) = (Arc::new(storage.clone()) as Arc<dyn Storage>, Arc::new(OsClock) as Arc<dyn Clock>);
        let settings = Settings { pools: PoolSettings { memory_bytes: 16 << 20, ..PoolSettings::default() }, ..Settings::default() };
        let report = check(&storage, &clock, Path::new("db"), settings, &Silent).unwrap();
        report.errors.iter().map(|error| format!("{}: {}", error.object, error.reason)).collect::<Vec<_>>()
    };
    assert_eq!(errors(&storage.crash_image(CrashPolicy::KeepAll)), Vec::<String>::new(), "an index of each by itself");
    let mut change = database.change();
    assert!(change.complete_partitioned_index("sales", &by_id("sales_pk")).unwrap().is_empty());
    change.commit().unwrap();
    database.close().unwrap();
    let [found] = &errors(&storage)[..] else { panic!("one error") };
    assert!(found.contains("key (77) of row") && found.contains("unique over all partitions"), "{found}");
}

struct StopAtEnd<'s>(&'s AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Threads that insert and delete numbers on any day, while partitions come, go and are written anew, and the index is built: each number is there once at most, and as whoever has committed last left it.
#[test]
fn many_writers_beside_partitions_that_change() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let database =
        Database::open(storage, Arc::new(OsClock), Path::new("db"), OpenMode::Create, Settings { pools, ..Settings::default() }).unwrap();
    create(&database);
    let (stop, pause) = (AtomicBool::new(false), AtomicBool::new(false));
    let (refused, inserted) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (database, stop, pause, refused, inserted) = (&database, &stop, &pause, &refused, &inserted);
            scope.spawn(move || {
                let mut random = Random(seed + 1);
                while !stop.load(Ordering::Relaxed) {
                    if pause.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                        continue;
                    }
                    let isolation =
                        [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][random.below(3) as usize];
                    let mut t = database.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
                    let mut changed = Ok(());
                    for _ in 0..1 + random.below(4) {
                        let (id, day) = (random.below(60) as i64, random.below(30) as i64);
                        changed = match random.below(3) {
                            0 => delete(&mut t, id, day).map(drop),
                            _ => match insert(&mut t, id, day) {
                                Err(Error::DuplicateKey { .. }) => {
                                    refused.fetch_add(1, Ordering::Relaxed);
                                    Ok(())
                                }
                                done => done.inspect(|()| _ = inserted.fetch_add(1, Ordering::Relaxed)),
                            },
                        };
                        if changed.is_err() {
                            break;
                        }
                    }
                    match changed.and_then(|()| if random.below(5) == 0 { t.rollback() } else { t.commit() }) {
                        Ok(()) => {}
                        // A partition was dropped, or written anew, since it was found.
                        Err(Error::Stale { .. } | Error::OutOfRange { .. }) => {}
                        Err(error) => assert!(is_retryable(&Err::<(), _>(error.clone())), "{error}"),
                    }
                }
            });
        }
        // Whatever fails, the others end.
        let _stop = StopAtEnd(&stop);
        let seen_once = |database: &Database| {
            let mut t = snapshot(database);
            let found = rows(&mut t);
            let ids: BTreeSet<i64> = found.iter().map(|row| row.0).collect();
            assert_eq!(ids.len(), found.len(), "{found:?}");
        };
        let unique = IndexOptions { unique: true, ..IndexOptions::default() };
        let mut twice = 0;
        for round in 0..12 {
            let options = ReorgOptions { patience: Some(Duration::from_secs(20)), ..ReorgOptions::default() };
            reorg(&database, "sales/b", &options, &Silent).unwrap();
            let low = PartitionText { name: Some("low".into()), limit: vec![Some("4".into())], ..PartitionText::default() };
            split_partition(&database, "sales", "a", &low, None, &Silent).unwrap();
            seen_once(&database);
            merge_partitions(&database, "sales", &["low".to_owned(), "a".to_owned()], "a", &Silent).unwrap();
            rebuild_index(&database, "sales_pk/c", 1 << 20, &Silent).unwrap();
            seen_once(&database);
            let rotated = PartitionSpec { name: format!("r{round}"), ..spec("", Some(31 + round)) };
            define(&database, false, |t| t.rotate_partition("sales", &rotated).map(drop));
            define(&database, false, |t| t.drop_partitioned_index("sales_pk"));
            // Another one comes while nobody looks for that of the primary key.
            define(&database, true, |t| t.drop_partitioned_index("sales_pk"));
            let again = create_index(&database, "again", "sales", &id_column(), &unique, &Silent);
            twice += u64::from(again.is_err());
            // Without an index numbers come twice faster than anybody deletes them.
            pause.store(true, Ordering::Relaxed);
            define(&database, true, |t| {
                let whole = t.partitioned_table("sales")?;
                for partition in whole.partitions() {
                    let table = t.table_of_partition(partition)?;
                    let view = t.read_view()?;
                    let request = ScanRequest { rids: true, ..ScanRequest::default() };
                    for row in view.scan(&table, &request)?.into_rows() {
                        t.delete(&table, row?.0)?;
                    }
                }
                if again.is_ok() {
                    t.drop_partitioned_index("again")?;
                }
                t.create_partitioned_index("sales", &by_id("sales_pk"))
            });
            pause.store(false, Ordering::Relaxed);
            seen_once(&database);
        }
        println!("{twice} of 12 times numbers were there twice when the index was to come");
    });
    assert!(refused.load(Ordering::Relaxed) > 100 && inserted.load(Ordering::Relaxed) > 100, "{refused:?} {inserted:?}");
}

/// Numbers come in no order, so each is between those of every other partition: soon filters tell that it is not there. Whether a number is refused is held against a map, whichever way rows come and
/// go; and each number is found by a look at all partitions.
#[test]
fn filters_deny_no_key_that_is_there() {
    const PARTITIONS: i64 = 8;
    const IDS: u64 = 30_000;
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let mut t = begin(&database);
    let specs: Vec<PartitionSpec> = (0..PARTITIONS).map(|part| spec(&format!("p{part}"), Some((part + 1) * 10))).collect();
    let attributes = TableAttributes { primary_key: vec![0], ..attributes() }.with_page_bytes(2048);
    t.create_partitioned_table(&attributes, &[1], &specs).unwrap();
    t.create_partitioned_index("sales", &by_id("sales_pk")).unwrap();
    t.commit().unwrap();
    let mut random = Random(7);
    let mut there: BTreeMap<i64, i64> = BTreeMap::new();
    let (mut refused, mut most) = (0, 0);
    for round in 0..300 {
        let mut t = begin(&database);
        let before = there.clone();
        for _ in 0..8 {
            let (id, day) = (random.below(IDS) as i64, random.below(PARTITIONS as u64 * 10) as i64);
            match random.below(8) {
                0 | 1 => {
                    let some: Vec<(i64, i64)> = there.range(id..).take(300).map(|(id, day)| (*id, *day)).collect();
                    for (id, day) in some {
                        assert!(delete(&mut t, id, day).unwrap());
                        there.remove(&id);
                    }
                }
                // Rows that are given together, to one partition: some pages of them. All are new, or one is not.
                2 => {
                    let taken = there.range(id..).next().filter(|_| random.below(3) == 0).map(|(id, _)| *id);
                    let new = (id..IDS as i64).filter(|id| !there.contains_key(id)).take(700);
                    let ids: BTreeSet<i64> = new.chain(taken).collect();
                    let table = t.table(&format!("sales/p{}", day / 10)).unwrap();
                    let row = |id: &i64| [ValueRef::Int(*id), ValueRef::Int(day), ValueRef::Null];
                    let given = t.insert_rows(&table, |rows| ids.iter().try_for_each(|id| rows.push(&row(id))));
                    assert_eq!(given.is_ok(), taken.is_none(), "round {round}: {given:?}");
                    if taken.is_none() {
                        there.extend(ids.iter().map(|id| (*id, day)));
                    }
                }
                _ if there.contains_key(&id) => {
                    is_taken(insert(&mut t, id, day));
                    refused += 1;
                }
                _ => {
                    insert(&mut t, id, day).unwrap();
                    there.insert(id, day);
                }
            }
        }
        if random.below(4) == 0 {
            t.rollback().unwrap();
            there = before;
        } else {
            t.commit().unwrap();
        }
        most = most.max(database.key_filter_bytes());
    }
    assert!(refused > 100, "{refused}");
    assert!(database.metrics().contains("batch_inserts_total{object=\"index sales_pk/"), "entries came in runs");
    assert!(most >= 8 * 1024 * 12 / 8, "{most} bytes of filters: those of all partitions");
    // By a look at all partitions: those that the index denies have no row of the number.
    let mut t = begin(&database);
    assert_eq!(rows(&mut t), there.iter().map(|(id, day)| (*id, *day)).collect::<Vec<_>>());
    let whole = t.partitioned_table("sales").unwrap();
    let view = t.read_view().unwrap();
    let (mut denied, mut asked) = (0, 0);
    for partition in whole.partitions() {
        let table = t.table_of_partition(partition).unwrap();
        let index = t.index_of_partition(partition, &table, "sales_pk").unwrap().unwrap();
        for id in 0..IDS as i64 {
            let mut start = Vec::new();
            index.key_layout().encode(&[ValueRef::Int(id)], &mut start).unwrap();
            let mut end = start.clone();
            let end = pagefold_types::prefix_end(&mut end).then_some(end);
            let may_have = view.may_have(&index, &[KeyRange { start, end }]).unwrap();
            let is_here = there.get(&id).is_some_and(|day| format!("sales/p{}", day / 10) == table.name());
            assert!(may_have || !is_here, "{id} of {}", table.name());
            denied += u64::from(!may_have);
            asked += 1;
        }
    }
    // Entries of deleted rows may be left, and some keys are taken for others.
    assert!(denied * 10 > (asked - there.len() as u64) * 9, "{denied} of {asked}");
    drop(view);
    drop(t);
    database.close().unwrap();
    let database = open(&storage, OpenMode::Write);
    assert_eq!(database.key_filter_bytes(), 0);
    is_taken(insert(&mut begin(&database), *there.keys().next().unwrap(), 5));
}
