//! What is said of tables, indexes and what has no pages: in transactions, savepoints, beside others, after crashes, and with as many objects as make the catalog be written anew.

use pagefold_engine::Error;
use pagefold_engine::database::{Database, OpenMode, Settings, Transaction, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_format::catalog::{ColumnNotes, Constraint, ConstraintKind, DefinedKind, Notes, RangePartition, Sequence};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(storage: &FaultStorage, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

fn attributes(name: &str) -> TableAttributes {
    let columns = ["a", "b"].map(|name| Column::new(name, DataType::BigInt, false));
    TableAttributes::new(name, Schema::new(columns.to_vec()).unwrap())
}

fn said(text: &str) -> Notes {
    let mut notes = Notes::default();
    notes.set_comment(Some(text)).unwrap();
    notes.set_schema_id(text.len() as u32).unwrap();
    notes.set_column(&ColumnNotes { default: Some(format!("'{text}'")), ..ColumnNotes::new(1) }).unwrap();
    let check = Constraint { condition: Some(text.into()), ..Constraint::new(ConstraintKind::Check, text) };
    notes.set_constraints(&[check]).unwrap();
    notes
}

fn begin(database: &Database) -> Transaction<'_> {
    database.begin(TransactionOptions::default())
}

fn comment_of(database: &Database, table: &str) -> Option<String> {
    database.table(table).unwrap().notes().comment().map(str::to_owned)
}

fn insert(database: &Database, table: &str) {
    let table = database.table(table).unwrap();
    let mut t = begin(database);
    t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(2)]).unwrap();
    t.commit().unwrap();
}

/// What is committed is there after a crash now, and after the database was closed.
fn everywhere(database: Database, storage: &FaultStorage, look: impl Fn(&Database)) -> Database {
    look(&database);
    for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll] {
        let image = storage.crash_image(policy);
        for _ in 0..2 {
            let again = open(&image, OpenMode::Write);
            look(&again);
            again.close().unwrap();
        }
        look(&open(&image, OpenMode::Read));
    }
    database.checkpoint().unwrap();
    look(&open(&storage.crash_image(CrashPolicy::KeepAll), OpenMode::Write));
    database.close().unwrap();
    let database = open(storage, OpenMode::Write);
    look(&database);
    database
}

#[test]
fn what_is_said_goes_with_its_transaction() {
    let storage = FaultStorage::new(FaultOptions::default());
    let mut database = open(&storage, OpenMode::Create);
    let mut t = begin(&database);
    let table = t.create_table(TableAttributes { notes: said("made"), ..attributes("t") }).unwrap();
    t.create_index(&table, IndexAttributes::new("i", vec![(0, Direction::Ascending)], true)).unwrap();
    assert_eq!(t.notes_of_table(&table).comment(), Some("made"));
    t.commit().unwrap();
    insert(&database, "t");
    database = everywhere(database, &storage, |database| {
        assert_eq!(*database.table("t").unwrap().notes(), said("made"));
        assert!(database.index("i").unwrap().notes().is_empty());
    });

    let (table, index) = (database.table("t").unwrap(), database.index("i").unwrap());
    let mut t = begin(&database);
    t.alter_table(&table, said("first")).unwrap();
    let savepoint = t.savepoint();
    t.alter_table(&table, said("second")).unwrap();
    t.alter_index(&index, said("of the index")).unwrap();
    assert_eq!(t.notes_of_table(&table).comment(), Some("second"));
    assert_eq!(t.notes_of_index(&index).comment(), Some("of the index"));
    assert_eq!(comment_of(&database, "t").as_deref(), Some("made"), "others do not see it");
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(t.notes_of_table(&table).comment(), Some("first"));
    assert!(t.notes_of_index(&index).is_empty());
    // A checkpoint has what is not committed beside what is.
    database.checkpoint().unwrap();
    let crashed = open(&storage.crash_image(CrashPolicy::KeepAll), OpenMode::Write);
    assert_eq!(comment_of(&crashed, "t").as_deref(), Some("made"));
    drop(crashed);
    t.commit().unwrap();
    let mut t = begin(&database);
    t.alter_table(&table, said("not for long")).unwrap();
    t.rollback().unwrap();
    let mut t = begin(&database);
    t.alter_index(&index, said("key")).unwrap();
    let other = t.create_table(attributes("u")).unwrap();
    t.alter_table(&other, said("altered where it was made")).unwrap();
    t.commit().unwrap();
    drop((table, index, other));
    database = everywhere(database, &storage, |database| {
        assert_eq!(*database.table("t").unwrap().notes(), said("first"));
        assert_eq!(*database.index("i").unwrap().notes(), said("key"));
        assert_eq!(*database.table("u").unwrap().notes(), said("altered where it was made"));
        assert_eq!(database.table("t").unwrap().row_count(), 1);
    });

    // Who replaces a table takes along what is said of it.
    let mut change = database.change();
    let table = change.fork_table("t").unwrap();
    change.fork_index("i", &table).unwrap();
    change.commit().unwrap();
    drop(table);
    let database = everywhere(database, &storage, |database| {
        assert_eq!(*database.table("t").unwrap().notes(), said("first"));
        assert_eq!(*database.index("i").unwrap().notes(), said("key"));
    });
    let table = database.table("t").unwrap();
    let mut t = begin(&database);
    let mut ranges = Notes::default();
    ranges.set_ranges(&[0], &[RangePartition::default()]).unwrap();
    assert!(matches!(t.alter_table(&table, ranges.clone()), Err(Error::Parameter(_))));
    assert!(matches!(t.create_table(TableAttributes { notes: ranges, ..attributes("ranges") }), Err(Error::Parameter(_))));
    t.drop_table("t").unwrap();
    assert!(matches!(t.alter_table(&table, said("gone")), Err(Error::Stale { .. })));
    t.commit().unwrap();
}

#[test]
fn what_has_no_pages() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let mut view = Notes::default();
    view.set_text(Some("select a from t")).unwrap();
    let mut numbers = Notes::default();
    numbers.set_sequence(Some(&Sequence { start: 10, ..Sequence::default() })).unwrap();
    let mut t = begin(&database);
    t.create_object(DefinedKind::View, "v", view.clone()).unwrap();
    t.create_object(DefinedKind::Sequence, "s", numbers.clone()).unwrap();
    let schema = t.create_object(DefinedKind::Schema, "sales", Notes::default()).unwrap();
    let savepoint = t.savepoint();
    t.create_object(DefinedKind::View, "not_for_long", view.clone()).unwrap();
    t.drop_object(DefinedKind::View, "v").unwrap();
    assert!(t.object(DefinedKind::View, "v").is_err());
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(t.object(DefinedKind::View, "v").unwrap().notes, view);
    assert!(matches!(t.create_object(DefinedKind::View, "s", view.clone()), Err(Error::Exists { .. })), "one name for all kinds");
    assert!(matches!(t.create_table(attributes("v")), Err(Error::Exists { .. })));
    assert!(matches!(t.object(DefinedKind::View, "s"), Err(Error::Unknown { .. })));
    assert!(begin(&database).object(DefinedKind::View, "v").is_err(), "others do not see it");
    t.commit().unwrap();
    let database = everywhere(database, &storage, |database| {
        let t = begin(database);
        assert_eq!(t.object(DefinedKind::View, "v").unwrap().notes, view);
        assert_eq!(t.object(DefinedKind::Sequence, "s").unwrap().notes.sequence().unwrap().start, 10);
        assert_eq!(t.object(DefinedKind::Schema, "sales").unwrap().object_id, schema.object_id);
        assert!(t.object(DefinedKind::View, "not_for_long").is_err());
    });
    let mut t = begin(&database);
    t.alter_object(DefinedKind::View, "v", said("altered")).unwrap();
    t.drop_object(DefinedKind::Sequence, "s").unwrap();
    let sequence = t.create_object(DefinedKind::Sequence, "s", Notes::default()).unwrap();
    assert_eq!(t.object(DefinedKind::View, "v").unwrap().notes, said("altered"));
    t.commit().unwrap();
    drop(everywhere(database, &storage, |database| {
        let t = begin(database);
        assert_eq!(t.object(DefinedKind::View, "v").unwrap().notes, said("altered"));
        assert_eq!(t.object(DefinedKind::Sequence, "s").unwrap().object_id, sequence.object_id);
    }));
}

/// Few changes are named by the checkpoint, beside the catalog; many make a catalog be written, that names them.
#[test]
fn a_catalog_is_written_when_much_has_changed() {
    let storage = FaultStorage::new(FaultOptions::default());
    let mut database = open(&storage, OpenMode::Create);
    let mut expected = Vec::new();
    let mut catalogs = vec![database.catalog().file_id()];
    for round in 0..30 {
        for i in 0..7 {
            let name = format!("t{round:02}_{i}");
            let mut t = begin(&database);
            t.create_table(TableAttributes { notes: said(&name), ..attributes(&name) }).unwrap();
            t.commit().unwrap();
            expected.push(name);
        }
        let dropped = expected.remove(round);
        insert(&database, &expected[round * 3]);
        let mut t = begin(&database);
        t.drop_table(&dropped).unwrap();
        t.commit().unwrap();
        if round % 15 == 14 {
            database.close().unwrap();
            database = open(&storage, OpenMode::Write);
        } else {
            database.checkpoint().unwrap();
        }
        catalogs.push(database.catalog().file_id());
        let image = storage.crash_image(CrashPolicy::KeepAll);
        let again = open(&image, OpenMode::Write);
        let mut names = expected.clone();
        names.sort_unstable();
        assert_eq!(again.table_names(), names);
        let table = again.table(&expected[round * 3]).unwrap();
        assert_eq!((table.row_count(), table.notes().comment()), (1, Some(expected[round * 3].as_str())));
        assert_eq!(again.tables().unwrap().iter().filter(|table| table.row_count() == 1).count(), round + 1);
    }
    catalogs.dedup();
    // Twice 120 objects came and went: a catalog is written for more than 64 of them, and when the database is closed.
    assert_eq!(catalogs.len(), 1 + 2 * 2, "{catalogs:?}");
}
