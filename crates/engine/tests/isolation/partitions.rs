//! Partitioned tables: rows in their ranges, partitions that come and go in transactions, savepoints, beside older snapshots, and after crashes.

use pagefold_engine::Error;
use pagefold_engine::database::{
    Database, Isolation, OpenMode, PartitionSpec, PartitionedTable, Settings, Transaction, TransactionOptions, first_key, limit_key,
};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, KeyRange, Schema, Value, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn open(storage: &FaultStorage, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

/// `day` and `id` make the key; the table is divided by `day`.
pub(super) fn attributes() -> TableAttributes {
    let columns = vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("day", DataType::Integer, false),
        Column::new("text", DataType::Varchar(None), true),
    ];
    TableAttributes { primary_key: vec![1, 0], ..TableAttributes::new("sales", Schema::new(columns).unwrap()) }
}

fn limit(day: i64) -> Option<Vec<u8>> {
    limit_key(&attributes(), &[1], &[Some(ValueRef::Int(day))]).unwrap()
}

pub(super) fn spec(name: &str, day: Option<i64>) -> PartitionSpec {
    PartitionSpec { name: name.into(), limit: day.and_then(limit), ..PartitionSpec::default() }
}

pub(super) fn begin(database: &Database) -> Transaction<'_> {
    database.begin(TransactionOptions::default())
}

pub(super) fn snapshot(database: &Database) -> Transaction<'_> {
    database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() })
}

/// Days below 10, 20 and 30, and an index of the key.
pub(super) fn create(database: &Database) {
    let mut t = begin(database);
    let specs = [
        spec("a", Some(10)),
        PartitionSpec { method: Some(Method::Page), page_bytes: Some(16384), ..spec("b", Some(20)) },
        spec("c", Some(30)),
    ];
    t.create_partitioned_table(&attributes(), &[1], &specs).unwrap();
    t.create_partitioned_index(
        "sales",
        &IndexAttributes::new("sales_pk", vec![(1, Direction::Ascending), (0, Direction::Ascending)], true),
    )
    .unwrap();
    t.commit().unwrap();
}

/// A row of a day, in the partition that has it.
pub(super) fn insert(t: &mut Transaction<'_>, id: i64, day: i64) -> Result<(), Error> {
    let whole = t.partitioned_table("sales")?;
    let values = [ValueRef::Int(id), ValueRef::Int(day), ValueRef::Text("row")];
    let mut key = Vec::new();
    whole.key(&values, &mut key)?;
    let table = t.table_of_partition(&whole.partitions()[whole.find_for(&key)?])?;
    t.insert(&table, &values).map(drop)
}

fn names(whole: &PartitionedTable) -> Vec<&str> {
    whole.partitions().iter().map(|partition| partition.name()).collect()
}

/// All rows that a transaction sees, by day.
pub(super) fn days(t: &mut Transaction<'_>) -> Vec<i64> {
    let whole = t.partitioned_table("sales").unwrap();
    let mut days = Vec::new();
    for partition in whole.partitions() {
        let table = t.table_of_partition(partition).unwrap();
        let index = t.index_of_partition(partition, &table, "sales_pk").unwrap().unwrap();
        let view = t.read_view().unwrap();
        let all = KeyRange { start: Vec::new(), end: None };
        let keys: Vec<i64> = view
            .keys(&table, &index, all, pagefold_engine::btree::Direction::Forward)
            .unwrap()
            .map(|key| if let Value::Int(day) = key.unwrap().1[0] { day } else { panic!("a day") })
            .collect();
        let rows = view.scan(&table, &pagefold_engine::database::ScanRequest::default()).unwrap();
        assert_eq!(rows.map(|batch| batch.unwrap().len()).sum::<usize>(), keys.len(), "rows and entries of {}", partition.name());
        days.extend(keys);
    }
    days
}

/// What is committed is there after a crash now, and after the database was closed.
pub(super) fn everywhere(storage: &FaultStorage, look: impl Fn(&Database)) {
    for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll] {
        let image = storage.crash_image(policy);
        for _ in 0..2 {
            let again = open(&image, OpenMode::Write);
            look(&again);
            again.close().unwrap();
        }
    }
}

#[test]
fn each_row_is_in_the_partition_of_its_key() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    for (id, day) in [(1, -5), (2, 9), (3, 10), (4, 19), (5, 20), (6, 29)] {
        insert(&mut t, id, day).unwrap();
    }
    let refused = insert(&mut t, 7, 30).unwrap_err();
    assert_eq!((refused.sqlstate(), refused.to_string().contains("belongs in no partition")), ("23514", true), "{refused}");
    // Whoever goes to a partition by itself is held to its range: one row, many, and changes.
    let b = t.table("sales/b").unwrap();
    assert_eq!((b.attributes().method, b.attributes().page_bytes), (Method::Page, 16384));
    let row = |day| [ValueRef::Int(8), ValueRef::Int(day), ValueRef::Null];
    assert!(matches!(t.insert(&b, &row(20)), Err(Error::OutOfRange { .. })));
    assert!(matches!(t.insert_rows(&b, |rows| rows.push(&row(9))), Err(Error::OutOfRange { .. })));
    let rid = t.insert(&b, &row(15)).unwrap();
    assert!(matches!(t.update(&b, rid, &[(1, ValueRef::Int(20))]), Err(Error::OutOfRange { .. })));
    assert!(t.update(&b, rid, &[(1, ValueRef::Int(11))]).unwrap());
    t.commit().unwrap();
    let whole = database.partitioned_table("sales").unwrap();
    assert_eq!(names(&whole), ["a", "b", "c"]);
    let rows = |name: &str| database.table(name).unwrap().row_count();
    assert_eq!((rows("sales/a"), rows("sales/b"), rows("sales/c")), (2, 3, 2));
    everywhere(&storage, |database| {
        assert_eq!(days(&mut begin(database)), [-5, 9, 10, 11, 19, 20, 29]);
        assert_eq!(database.partitioned_indexes_of(&database.partitioned_table("sales").unwrap()), ["sales_pk"]);
    });
}

#[test]
fn partitions_come_and_go_in_transactions() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    (1..29).for_each(|day| insert(&mut t, day, day).unwrap());
    t.commit().unwrap();
    let mut old = snapshot(&database);
    assert_eq!(days(&mut old).len(), 28);
    // A window that goes on; a savepoint takes it back.
    let mut t = begin(&database);
    let savepoint = t.savepoint();
    assert_eq!(t.rotate_partition("sales", &spec("d", Some(40))).unwrap(), "a");
    insert(&mut t, 35, 35).unwrap();
    assert_eq!(names(&t.partitioned_table("sales").unwrap()), ["b", "c", "d"]);
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(names(&t.partitioned_table("sales").unwrap()), ["a", "b", "c"]);
    assert!(matches!(insert(&mut t, 35, 35), Err(Error::OutOfRange { .. })));
    t.rotate_partition("sales", &spec("d", Some(40))).unwrap();
    // Others see it with the commit, the older snapshot never.
    assert_eq!(names(&database.partitioned_table("sales").unwrap()), ["a", "b", "c"]);
    insert(&mut t, 35, 35).unwrap();
    t.commit().unwrap();
    assert_eq!(names(&database.partitioned_table("sales").unwrap()), ["b", "c", "d"]);
    assert_eq!((days(&mut old).len(), names(&old.partitioned_table("sales").unwrap())), (28, vec!["a", "b", "c"]));
    drop(old);
    let now: Vec<i64> = (10..29).chain([35]).collect();
    assert_eq!(days(&mut begin(&database)), now);
    everywhere(&storage, |database| {
        assert_eq!(days(&mut begin(database)), now);
        // What was made is like what was there, with its index; numbers of partitions are not given twice.
        let whole = database.partitioned_table("sales").unwrap();
        let numbers: Vec<u16> = whole.partitions().iter().map(|partition| partition.number()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let mut t = begin(database);
        assert!(matches!(insert(&mut t, 35, 35), Err(Error::DuplicateKey { .. })));
    });
    let mut t = begin(&database);
    t.drop_partition("sales", "c").unwrap();
    assert!(matches!(insert(&mut t, 25, 25), Err(Error::OutOfRange { .. })), "no partition takes its keys");
    t.commit().unwrap();
    let mut t = begin(&database);
    t.drop_partitioned_table("sales").unwrap();
    t.commit().unwrap();
    everywhere(&storage, |database| {
        assert!(database.table_names().is_empty() && database.index_names().is_empty() && database.partitioned_names().is_empty());
    });
    create(&database);
}

#[test]
fn what_cannot_be() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    let refused = |result: Result<(), Error>, says: &str| {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    };
    let other = TableAttributes { name: "other".into(), ..attributes() };
    let specs = |limits: &[Option<i64>]| limits.iter().enumerate().map(|(at, day)| spec(&format!("p{at}"), *day)).collect::<Vec<_>>();
    refused(t.create_partitioned_table(&other, &[1], &specs(&[Some(5), Some(5)])).map(drop), "is not above that of the one before");
    refused(t.create_partitioned_table(&other, &[1], &specs(&[None, Some(5)])).map(drop), "comes behind one without a limit");
    refused(t.create_partitioned_table(&other, &[1], &[]).map(drop), "0 partitions");
    refused(t.create_partitioned_table(&other, &[7], &specs(&[None])).map(drop), "columns of its range");
    refused(t.add_partition("sales", &spec("d", Some(30))).map(drop), "is not above that of the last one");
    refused(t.add_partition("sales", &spec("d/e", Some(50))).map(drop), "is no name for a partition");
    refused(t.drop_table("sales/a"), "is a partition");
    refused(t.drop_partition("sales", "z"), "no partition \"z\" of \"sales\"; there are: a, b, c");
    refused(t.create_partitioned_table(&attributes(), &[1], &specs(&[None])).map(drop), "already exists");
    // One that overlaps, whoever makes it.
    let mut range = t.table("sales/b").unwrap().range().unwrap().clone();
    range.keys.start = limit(15).unwrap();
    let overlapping = TableAttributes { name: "x".into(), range: Some(range.clone()), ..attributes() };
    refused(t.create_table(overlapping.clone()).map(drop), "overlaps that of \"sales/b\"");
    range.table = 9999;
    refused(t.create_table(TableAttributes { range: Some(range), ..overlapping }).map(drop), "a table that is not there");
    // Nothing is left of what was refused.
    assert_eq!(names(&t.partitioned_table("sales").unwrap()), ["a", "b", "c"]);
    t.add_partition("sales", &spec("d", None)).unwrap();
    refused(t.add_partition("sales", &spec("e", None)).map(drop), "has no limit: split it");
    t.commit().unwrap();
    assert_eq!((database.table_names().len(), database.index_names().len()), (4, 4));
    everywhere(&storage, |database| assert_eq!(names(&database.partitioned_table("sales").unwrap()), ["a", "b", "c", "d"]));
}

#[test]
fn limits_of_several_columns() {
    let attributes = attributes();
    let key = |values: &[Option<i64>]| {
        let values: Vec<Option<ValueRef<'_>>> = values.iter().map(|value| value.map(ValueRef::Int)).collect();
        limit_key(&attributes, &[1, 0], &values)
    };
    let [plain, first, second, above] =
        [&[Some(5)][..], &[Some(5), Some(1)], &[Some(5), None], &[Some(6)]].map(|values| key(values).unwrap().unwrap());
    assert!(plain < first && first < second && second <= above, "{plain:?} {first:?} {second:?} {above:?}");
    assert_eq!((key(&[None]).unwrap(), key(&[None, Some(5)]).unwrap()), (None, None));
    assert!(key(&[]).is_err() && key(&[Some(1), Some(2), Some(3)]).is_err() && key(&[Some(1 << 40)]).is_err());
}

/// Days of a table that is not divided.
fn days_of(t: &mut Transaction<'_>, name: &str) -> Vec<i64> {
    let table = t.table(name).unwrap();
    let view = t.read_view().unwrap();
    let rows = view.scan(&table, &pagefold_engine::database::ScanRequest::default()).unwrap().into_rows();
    let mut days: Vec<i64> = rows.map(|row| if let Value::Int(day) = row.unwrap().1[1] { day } else { panic!("a day") }).collect();
    days.sort_unstable();
    days
}

/// A table like the partitions, in another form, with these days.
pub(super) fn create_staged(t: &mut Transaction<'_>, name: &str, days: &[i64]) {
    let like = TableAttributes { name: name.into(), method: Method::Row, ..attributes() }.with_page_bytes(4096);
    let table = t.create_table(like).unwrap();
    let key = vec![(1, Direction::Ascending), (0, Direction::Ascending)];
    t.create_index(&table, IndexAttributes::new(format!("{name}_pk"), key, true)).unwrap();
    for day in days {
        // Longer than a page: it lies in pages of its own.
        let text = if day % 2 == 0 { "long ".repeat(5000) } else { "row".into() };
        t.insert(&table, &[ValueRef::Int(1000 + day), ValueRef::Int(*day), ValueRef::Text(&text)]).unwrap();
    }
}

#[test]
fn a_table_and_a_partition_change_places() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    (1..29).for_each(|day| insert(&mut t, day, day).unwrap());
    create_staged(&mut t, "staged", &[11, 12, 13]);
    t.commit().unwrap();
    let mut old = snapshot(&database);
    let all: Vec<i64> = (1..29).collect();
    let (others, b): (Vec<i64>, Vec<i64>) = all.iter().partition(|day| !(10..20).contains(*day));
    assert_eq!((days(&mut old), days_of(&mut old, "staged")), (all.clone(), vec![11, 12, 13]));
    let mut serializable = database.begin(TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() });
    assert_eq!(days(&mut serializable), all);
    let exchanged: Vec<i64> = others
        .iter()
        .filter(|day| **day < 10)
        .copied()
        .chain([11, 12, 13])
        .chain(others.iter().filter(|day| **day >= 20).copied())
        .collect();
    let mut t = begin(&database);
    let savepoint = t.savepoint();
    t.exchange_partition("sales", "b", "staged").unwrap();
    assert_eq!((days(&mut t), days_of(&mut t, "staged")), (exchanged.clone(), b.clone()), "its own");
    t.roll_back_to(savepoint).unwrap();
    assert_eq!((days(&mut t), days_of(&mut t, "staged")), (all.clone(), vec![11, 12, 13]), "taken back");
    t.exchange_partition("sales", "b", "staged").unwrap();
    insert(&mut t, 14, 14).unwrap();
    let mut others_see = begin(&database);
    assert_eq!(days(&mut others_see), all, "before the commit");
    drop(others_see);
    t.commit().unwrap();
    assert_eq!((days(&mut old), days_of(&mut old, "staged")), (all, vec![11, 12, 13]), "an older snapshot");
    // It would have to come before, and nobody knows whether it can.
    let late = insert(&mut serializable, 5000, 5).and_then(|()| serializable.commit());
    assert!(matches!(late, Err(Error::Serialization(_))), "{late:?}");
    drop(old);
    let with =
        |day: i64| exchanged.iter().copied().chain([day]).collect::<std::collections::BTreeSet<i64>>().into_iter().collect::<Vec<_>>();
    everywhere(&storage, |database| {
        let mut t = begin(database);
        assert_eq!((days(&mut t), days_of(&mut t, "staged")), (with(14), b.clone()));
        let (member, table) = (t.table("sales/b").unwrap(), t.table("staged").unwrap());
        assert_eq!((member.attributes().method, member.attributes().page_bytes), (Method::Row, 4096));
        assert_eq!((table.attributes().method, table.attributes().page_bytes), (Method::Page, 16384));
        assert!(table.range().is_none() && database.index("staged_pk").is_ok());
        // The range is kept by what is the partition now, and by nothing else.
        assert!(matches!(t.insert(&member, &[ValueRef::Int(1), ValueRef::Int(25), ValueRef::Null]), Err(Error::OutOfRange { .. })));
        assert!(matches!(insert(&mut t, 14, 14), Err(Error::DuplicateKey { .. })));
        t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(25), ValueRef::Null]).unwrap();
    });
    // In one transaction the table that was a partition can go, and what is one now only as such.
    let mut t = begin(&database);
    t.exchange_partition("sales", "b", "staged").unwrap();
    assert!(t.drop_table("sales/b").unwrap_err().to_string().contains("is a partition"));
    t.drop_table("staged").unwrap();
    assert_eq!(days(&mut t).len(), 28);
    t.rollback().unwrap();
    // There and back, and as a partition like any other.
    let mut t = begin(&database);
    t.exchange_partition("sales", "b", "staged").unwrap();
    t.exchange_partition("sales", "b", "staged").unwrap();
    t.drop_partition("sales", "b").unwrap();
    t.commit().unwrap();
    let left: Vec<i64> = others;
    everywhere(&storage, |database| {
        assert_eq!((days(&mut begin(database)), days_of(&mut begin(database), "staged")), (left.clone(), b.clone()))
    });
}

#[test]
fn what_cannot_change_places() {
    use pagefold_engine::database::TableChange;
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    (1..29).for_each(|day| insert(&mut t, day, day).unwrap());
    create_staged(&mut t, "outside", &[12, 13, 20]);
    create_staged(&mut t, "below", &[9, 13]);
    create_staged(&mut t, "fits", &[11, 12]);
    let make = |t: &mut Transaction<'_>, name: &str, columns: Vec<Column>, primary_key: Vec<usize>| {
        let schema = Schema::new(columns).unwrap();
        t.create_table(TableAttributes { primary_key, ..TableAttributes::new(name, schema) }).unwrap()
    };
    let columns = attributes().schema.columns().to_vec();
    make(&mut t, "narrow", columns[..2].to_vec(), vec![1, 0]);
    let other = Column::new("text", DataType::Varchar(Some(20)), true);
    make(&mut t, "typed", [&columns[..2], &[other]].concat(), vec![1, 0]);
    make(&mut t, "keyless", columns.clone(), Vec::new());
    let bare = make(&mut t, "bare", columns, vec![1, 0]);
    let refused = |t: &mut Transaction<'_>, partition: &str, with: &str, says: &str| {
        let error = t.exchange_partition("sales", partition, with).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    };
    refused(&mut t, "b", "outside", "20");
    refused(&mut t, "b", "below", "belongs in another partition");
    refused(&mut t, "b", "narrow", "column 3 is none in the table and text VARCHAR in the partition");
    refused(&mut t, "b", "typed", "column 3 is text VARCHAR(20) in the table");
    refused(&mut t, "b", "keyless", "the primary key is (none) in the table and (day, id) in the partition");
    refused(&mut t, "b", "bare", "the table lacks a unique index of (day, id), as \"sales_pk/b\" is");
    refused(&mut t, "b", "sales/a", "is a partition itself");
    refused(&mut t, "b", "nothing", "nothing");
    refused(&mut t, "z", "fits", "no partition \"z\"");
    // All rows are looked at where no index is in the order of the ranges.
    t.insert(&bare, &[ValueRef::Int(1), ValueRef::Int(30), ValueRef::Null]).unwrap();
    refused(&mut t, "b", "bare", "belongs in another partition");
    let fits = t.table("fits").unwrap();
    t.create_index(&fits, IndexAttributes::new("more", vec![(0, Direction::Ascending)], false)).unwrap();
    refused(&mut t, "b", "fits", "has no index like \"more\"");
    t.drop_index("more").unwrap();
    assert_eq!(days(&mut t), (1..29).collect::<Vec<_>>(), "nothing has happened");
    t.commit().unwrap();
    // A column more in both, each in its layouts; one that is dropped of the partition alone.
    let mut t = begin(&database);
    let note = || [TableChange::AddColumn { column: Column::new("note", DataType::Integer, true), value: Value::Int(5) }];
    t.change_partitioned_table("sales", &note()).unwrap();
    refused(&mut t, "b", "fits", "column 4 is none in the table");
    t.change_table("fits", &note()).unwrap();
    t.exchange_partition("sales", "b", "fits").unwrap();
    assert_eq!(days(&mut t).len(), 20);
    t.change_partitioned_table("sales", &[TableChange::DropColumn("note".into())]).unwrap();
    refused(&mut t, "b", "fits", "(dropped");
    t.commit().unwrap();
    everywhere(&storage, |database| {
        assert_eq!(days(&mut begin(database)).len(), 20);
        assert_eq!(days_of(&mut begin(database), "fits"), (10..20).collect::<Vec<_>>());
    });
}

/// A partition with both of its bounds.
fn between(name: &str, from: i64, to: Option<i64>) -> PartitionSpec {
    PartitionSpec { start: limit(from), ..spec(name, to) }
}

#[test]
fn a_table_is_made_before_its_partitions() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let mut t = begin(&database);
    t.create_partitioned_table(&attributes(), &[1], &[PartitionSpec::template()]).unwrap();
    let key = IndexAttributes::new("sales_pk", vec![(1, Direction::Ascending), (0, Direction::Ascending)], true);
    t.create_partitioned_index("sales", &key).unwrap();
    assert!(insert(&mut t, 1, 5).is_err(), "no partition has the row");
    t.commit().unwrap();

    let own = |t: &mut Transaction<'_>| -> Vec<String> {
        let whole = t.partitioned_table("sales").unwrap();
        assert!(whole.is_open());
        whole.own_partitions().iter().map(|partition| partition.name().to_owned()).collect()
    };
    let mut t = begin(&database);
    let mut before = snapshot(&database);
    assert_eq!(days(&mut before), [0_i64; 0]);
    // In any order, each where no other one is.
    t.add_partition("sales", &between("late", 30, None)).unwrap();
    t.add_partition("sales", &between("early", 10, Some(20))).unwrap();
    let least = PartitionSpec { start: Some(first_key()), ..spec("least", Some(0)) };
    t.add_partition("sales", &least).unwrap();
    for bad in [between("x", 19, Some(25)), between("x", 5, Some(11)), between("x", 25, Some(25)), between("x", 40, Some(50)), least] {
        assert!(t.add_partition("sales", &bad).is_err(), "{bad:?}");
    }
    let savepoint = t.savepoint();
    t.add_partition("sales", &between("gone", 20, Some(30))).unwrap();
    insert(&mut t, 9, 25).unwrap();
    t.roll_back_to(savepoint).unwrap();
    for (id, day) in [(1, -7), (2, 10), (3, 19), (4, 1000)] {
        insert(&mut t, id, day).unwrap();
    }
    for day in [0, 9, 20, 29] {
        assert_eq!(insert(&mut t, 8, day).unwrap_err().sqlstate(), "23514", "{day}");
    }
    t.commit().unwrap();
    assert_eq!(days(&mut before), [0_i64; 0]);
    before.rollback().unwrap();
    everywhere(&storage, |database| {
        let mut t = begin(database);
        assert_eq!((own(&mut t).join(" "), days(&mut t)), ("least early late".into(), vec![-7, 10, 19, 1000]));
        let whole = t.partitioned_table("sales").unwrap();
        let texts: Vec<_> = whole.own_partitions().iter().map(|own| (whole.start_texts(own), whole.limit_texts(own))).collect();
        let value = |day: &str| vec![Some(day.to_owned())];
        assert_eq!(texts, [(vec![], value("0")), (value("10"), value("20")), (value("30"), vec![None])]);
    });

    // The template is no partition that one could name; all others may go.
    let mut t = begin(&database);
    assert!(t.drop_partition("sales", "pagefold_template").is_err());
    for name in ["least", "early", "late"] {
        t.drop_partition("sales", name).unwrap();
    }
    assert!(t.rotate_partition("sales", &spec("next", Some(5))).is_err(), "nothing is there to go");
    t.add_partition("sales", &spec("next", Some(5))).unwrap();
    insert(&mut t, 1, 4).unwrap();
    assert_eq!(t.rotate_partition("sales", &spec("then", Some(7))).unwrap(), "next");
    insert(&mut t, 1, 6).unwrap();
    t.commit().unwrap();
    everywhere(&storage, |database| {
        let mut t = begin(database);
        assert_eq!((own(&mut t).join(" "), days(&mut t)), ("then".into(), vec![6]));
    });
}
