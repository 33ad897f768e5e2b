//! Crash, I/O error and full disk at every call of LOAD, CREATE INDEX, ALTER, REORG (of an altered table, too) and DROP on the simulated disk: the database opens as before or as after, `check` finds
//! nothing, and no space is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod advice;

use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, TableChange, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, OpenOptions, Repeat, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Value, ValueRef};
use pagefold_utility::{
    Alteration, Error, IndexOptions, LoadMode, LoadOptions, ReorgOptions, Result, RowOrder, Silent, alter, check_files, create_index,
    drop_object, load, reorg,
};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DIRECTORY: &str = "db";

fn open(storage: &FaultStorage, mode: OpenMode) -> Result<Database> {
    // Without background threads the calls come in the same order each time.
    let pools = PoolSettings { memory_bytes: 1 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let log = LogSettings { segment_bytes: 64 << 10, ..LogSettings::default() };
    let settings = Settings { pools, log, double_write_bytes: 64 << 10, ..Settings::default() };
    Ok(Database::open(storage, clock, Path::new(DIRECTORY), mode, settings)?)
}

fn write_csv(storage: &FaultStorage, path: &str, rows: std::ops::Range<usize>) {
    let mut text = String::from("id,city,remark\n");
    for n in rows {
        let _ = writeln!(text, "{n},city {},{}", n % 7, "carefully final deposits ".repeat(n % 5));
    }
    let file = storage.open(Path::new(path), &OpenOptions::create()).unwrap();
    file.write_at(text.as_bytes(), 0).unwrap();
    file.sync().unwrap();
    storage.sync_directory(Path::new("")).unwrap();
}

/// What a user sees: tables with their rows, indexes with their entries.
fn contents(database: &Database) -> Vec<String> {
    let mut seen = Vec::new();
    for table in database.tables().unwrap() {
        let mut sum = 0u64;
        let mut rows = 0u64;
        let mut scan = database.read_view().scan(&table, &ScanRequest::default()).unwrap().into_rows();
        while let Some((_, record)) = scan.next_record().unwrap() {
            rows += 1;
            sum = sum.wrapping_mul(31).wrapping_add(record.iter().map(|b| u64::from(*b)).sum::<u64>());
        }
        let attributes = table.attributes();
        let column = |at: usize| {
            let column = &attributes.schema.columns()[at];
            format!("{} {}", column.name, column.data_type)
        };
        let columns = attributes.visible_columns().into_iter().map(column).collect::<Vec<_>>().join(", ");
        seen.push(format!("{} ({columns}) {} {} {rows} {sum}", table.name(), attributes.method, attributes.page_bytes));
    }
    for index in database.indexes().unwrap() {
        let attributes = index.attributes();
        let entries = index.data_set().facts().rows;
        seen.push(format!("{} {} {} {entries}", index.name(), attributes.format, attributes.page_bytes));
    }
    seen
}

fn state(storage: &FaultStorage, what: &str) -> Vec<String> {
    // Opening for writing removes what a crash has left.
    let database = open(storage, OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"));
    let seen = contents(&database);
    drop(database);
    let report = check_files(storage, Path::new(DIRECTORY), &Silent).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(report.errors.is_empty(), "{what}: {:?}", report.errors);
    let objects = open(storage, OpenMode::Read).unwrap();
    let named = 1 + objects.tables().unwrap().len() + objects.indexes().unwrap().len();
    let files = storage.list(&Path::new(DIRECTORY).join("data")).unwrap().len();
    assert_eq!(files, named, "{what}: space leaked");
    seen
}

/// A command, and which of the [`bases`] it finds.
struct Command {
    name: &'static str,
    finds: usize,
    run: fn(&Database) -> Result<()>,
}

/// Another column, one less, and another type for one that has an index, which is built anew.
fn alter_table(database: &Database) -> Result<()> {
    let note = TableChange::AddColumn { column: Column::new("note", DataType::Integer, false), value: Value::Int(5) };
    let wider = TableChange::SetType { column: "id".into(), data_type: "decimal(12)".parse().unwrap() };
    let changes = vec![note, TableChange::DropColumn("city".into()), wider];
    alter(database, "t", &Alteration::Table(changes), &Silent).map(drop)
}

fn commands() -> Vec<Command> {
    fn load_new(database: &Database) -> Result<()> {
        let options = LoadOptions { primary_key: vec!["id".into()], key_format: IndexFormat::Fold.into(), ..small() };
        load(database, "fresh", &["more.csv".into()], &options, &Silent).map(drop)
    }
    fn append(database: &Database) -> Result<()> {
        load(database, "t", &["more.csv".into()], &LoadOptions { mode: LoadMode::Append, ..small() }, &Silent).map(drop)
    }
    fn replace(database: &Database) -> Result<()> {
        let options = LoadOptions { mode: LoadMode::Replace, primary_key: vec!["id".into()], ..small() };
        load(database, "t", &["more.csv".into()], &options, &Silent).map(drop)
    }
    fn index(database: &Database) -> Result<()> {
        let columns = [("city".to_string(), Direction::Descending), ("id".to_string(), Direction::Ascending)];
        create_index(database, "by_city", "t", &columns, &IndexOptions::default(), &Silent).map(drop)
    }
    fn reorg_table(database: &Database) -> Result<()> {
        let options = ReorgOptions { method: Some(Method::Fixed.into()), page_bytes: Some(4096), ..ReorgOptions::default() };
        reorg(database, "t", &options, &Silent).map(drop)
    }
    fn reorg_in_order(database: &Database) -> Result<()> {
        let order = Some(RowOrder::Index("by_remark".into()));
        // The least memory: rows are sorted by way of a temporary file.
        let options = ReorgOptions { method: Some(Method::Row.into()), order, sort_bytes: Some(0), ..ReorgOptions::default() };
        reorg(database, "t", &options, &Silent).map(drop)
    }
    fn reorg_index(database: &Database) -> Result<()> {
        let options = ReorgOptions { format: Some(IndexFormat::Fold.into()), page_bytes: Some(16384), ..ReorgOptions::default() };
        reorg(database, "t_pk", &options, &Silent).map(drop)
    }
    fn drop_table(database: &Database) -> Result<()> {
        drop_object(database, "t").map(drop)
    }
    let command = |name, finds, run| Command { name, finds, run };
    vec![
        command("load", LOADED, load_new as fn(&Database) -> Result<()>),
        command("load --append", LOADED, append),
        command("load --replace", LOADED, replace),
        command("create-index", LOADED, index),
        command("alter", LOADED, alter_table),
        command("reorg table", LOADED, reorg_table),
        command("reorg table, altered", ALTERED, reorg_table),
        command("reorg table, in order", INDEXED, reorg_in_order),
        command("reorg index", LOADED, reorg_index),
        command("drop", LOADED, drop_table),
        command("drop, altered", ALTERED, drop_table),
    ]
}

fn small() -> LoadOptions {
    LoadOptions { method: Method::None.into(), sort_bytes: 1 << 20, ..LoadOptions::default() }
}

const LOADED: usize = 0;
const ALTERED: usize = 1;
const INDEXED: usize = 2;

/// The table as it was loaded; as it was altered since, with some rows of either layout; with an index by which its rows are in no order.
fn bases(sector_bytes: u32) -> [FaultStorage; 3] {
    let loaded = base(sector_bytes);
    let altered = loaded.crash_image(CrashPolicy::KeepAll);
    let database = open(&altered, OpenMode::Write).unwrap();
    alter_table(&database).unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    let (table, key) = (transaction.table("t").unwrap(), transaction.index("t_pk").unwrap());
    for id in (0..600).step_by(5) {
        let rid = transaction.find(&table, &key, &[ValueRef::Decimal(id)]).unwrap()[0];
        assert!(transaction.update(&table, rid, &[(3, ValueRef::Int(id as i64))]).unwrap());
    }
    transaction.commit().unwrap();
    drop(database);
    let indexed = loaded.crash_image(CrashPolicy::KeepAll);
    let columns = [("remark".to_string(), Direction::Descending), ("id".to_string(), Direction::Descending)];
    create_index(&open(&indexed, OpenMode::Write).unwrap(), "by_remark", "t", &columns, &IndexOptions::default(), &Silent).unwrap();
    [loaded, altered, indexed]
}

fn base(sector_bytes: u32) -> FaultStorage {
    let storage = FaultStorage::new(FaultOptions { seed: 7, sector_bytes, ..FaultOptions::default() });
    write_csv(&storage, "some.csv", 0..600);
    write_csv(&storage, "more.csv", 600..1000);
    let database = open(&storage, OpenMode::Create).unwrap();
    let options = LoadOptions { primary_key: vec!["id".into()], ..small() };
    load(&database, "t", &["some.csv".into()], &options, &Silent).unwrap();
    storage
}

#[test]
fn a_crash_at_any_call_leaves_before_or_after() {
    let mut states = 0;
    for sector_bytes in [512, 4096] {
        let bases = bases(sector_bytes);
        for Command { name, finds, run: command } in commands() {
            let base = &bases[finds];
            let before = state(&base.crash_image(CrashPolicy::KeepAll), "before");
            let done = base.crash_image(CrashPolicy::KeepAll);
            command(&open(&done, OpenMode::Write).unwrap()).unwrap();
            let after = state(&done, name);
            assert_ne!(before, after, "{name} does nothing");
            for call in 0.. {
                let run = base.crash_image(CrashPolicy::KeepAll);
                run.crash_at(run.calls() + call);
                let outcome = open(&run, OpenMode::Write).and_then(|database| command(&database));
                for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(call)] {
                    let what = format!("{name}, sectors of {sector_bytes}, crash at call {call}, {policy:?}");
                    let found = state(&run.crash_image(policy), &what);
                    assert!(found == before || found == after, "{what}: {found:?}");
                    assert!(outcome.is_err() || found == after, "{what}: an acknowledged command is lost");
                    states += 1;
                }
                if !run.is_crashed() {
                    break;
                }
            }
        }
    }
    assert!(states > 1000, "only {states} states");
}

#[test]
fn an_error_at_any_call_leaves_before_or_after() {
    let bases = bases(4096);
    for Command { name, finds, run: command } in commands() {
        let base = &bases[finds];
        let before = state(&base.crash_image(CrashPolicy::KeepAll), "before");
        for (failure, repeat) in [(Failure::Io, Repeat::Once), (Failure::NoSpace, Repeat::Forever)] {
            for call in 0.. {
                let run = base.crash_image(CrashPolicy::KeepAll);
                let at = run.calls() + call;
                run.error_at(at, failure, repeat);
                let outcome = open(&run, OpenMode::Write).and_then(|database| command(&database));
                let met = run.calls() > at;
                run.clear_faults();
                let what = format!("{name}, {failure:?} {repeat:?} at call {call}");
                let found = state(&run, &what);
                match outcome {
                    Ok(()) => assert_ne!(found, before, "{what}: an acknowledged command is lost"),
                    // Whether it happened is in doubt only when the control slot itself could not be synced.
                    Err(Error::Engine(_) | Error::Interchange(_)) => {}
                    Err(other) => panic!("{what}: {other}"),
                }
                if !met {
                    break;
                }
            }
        }
    }
}
