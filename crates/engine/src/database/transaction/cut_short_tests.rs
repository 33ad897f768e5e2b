//! A change that is on its page when the log refuses it: nobody sees it, neither before the database is opened again nor after.

use super::*;
use crate::database::{OpenMode, ScanRequest, Settings};
use crate::pool::{By, PoolSettings};
use crate::table_space::{Method, TableAttributes};
use crate::transaction::Resource;
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, Value, ValueRef};
use std::path::Path;
use std::time::Duration;

const ROWS: i64 = 20;

fn open(storage: &FaultStorage, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

fn create(storage: &FaultStorage, method: Method) -> (Database, Vec<Rid>) {
    let database = open(storage, OpenMode::Create);
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
    let mut attributes = TableAttributes::new("t", Schema::new(columns).unwrap());
    attributes.method = method;
    let mut change = database.change();
    change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let table = database.table("t").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let rids = (0..ROWS).map(|n| t.insert(&table, &[ValueRef::Int(n), ValueRef::Text("before")]).unwrap()).collect();
    t.commit().unwrap();
    (database, rids)
}

fn seen(database: &Database) -> Vec<Vec<Value>> {
    let table = database.table("t").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let scan = t.read_view().unwrap().scan(&table, &ScanRequest::default()).unwrap();
    scan.into_rows().map(|row| row.unwrap().1).collect()
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Insert,
    UpdateFixed,
    Replace,
    ReplaceByLonger,
    Delete,
}

fn change(t: &mut Transaction<'_>, table: &Table, rid: Rid, kind: Kind) -> Result<()> {
    let state = Arc::clone(&t.state);
    let by = By::Transaction(&state);
    let text = if matches!(kind, Kind::ReplaceByLonger) { "after ".repeat(200) } else { "after".into() };
    match kind {
        Kind::Insert => {
            let mut record = Vec::new();
            table.build_record(by, &[ValueRef::Int(99), ValueRef::Text(&text)], &mut record)?;
            table.insert_record(by, &record).map(drop)
        }
        Kind::UpdateFixed => table.update_fixed(by, rid, &[(0, ValueRef::Int(99))]).map(|done| assert_eq!(done, Some(true))),
        Kind::Replace | Kind::ReplaceByLonger => {
            let mut record = Vec::new();
            table.build_record(by, &[ValueRef::Int(99), ValueRef::Text(&text)], &mut record)?;
            table.replace_record(by, rid, &record).map(|done| assert!(done))
        }
        Kind::Delete => table.mark_deleted(by, rid).map(|done| assert!(done)),
    }
}

#[test]
fn a_change_that_the_log_refuses_is_seen_by_nobody() {
    let methods = [Method::None, Method::Fixed, Method::Page];
    let kinds = [Kind::Insert, Kind::UpdateFixed, Kind::Replace, Kind::ReplaceByLonger, Kind::Delete];
    for (method, kind) in methods.into_iter().flat_map(|method| kinds.map(|kind| (method, kind))) {
        for (is_first, commits) in [(true, true), (true, false), (false, true), (false, false)] {
            let context = format!("{method:?} {kind:?}, the first change: {is_first}, commit: {commits}");
            let storage = FaultStorage::new(FaultOptions::default());
            let (database, rids) = create(&storage, method);
            let (table, before) = (database.table("t").unwrap(), seen(&database));
            let mut t = database.begin(TransactionOptions::default());
            if is_first {
                // As the first statement would.
                t.snapshot().unwrap();
            } else {
                t.update(&table, rids[3], &[(1, ValueRef::Text("also"))]).unwrap();
            }
            // The log fails after the statement has looked whether it can write: another one waits for its commit.
            let mut other = database.begin(TransactionOptions::default());
            other.update(&table, rids[9], &[(1, ValueRef::Text("other"))]).unwrap();
            storage.crash_at(storage.calls());
            let log = database.core.log().unwrap();
            assert!(log.make_durable(log.end()).is_err(), "{context}");

            let result = t.or_nothing(|t| {
                t.acquire(Resource::Row(table.object_id, rids[5]))?;
                change(t, &table, rids[5], kind)
            });
            assert!(result.is_err(), "{context}");
            assert_eq!(seen(&database), before, "{context}: while it runs");
            if commits {
                assert!(t.commit().is_err(), "{context}");
            } else {
                drop(t);
            }
            drop(other);
            assert_eq!(seen(&database), before, "{context}: after its end");
            let mut next = database.begin(TransactionOptions::default());
            assert!(matches!(next.delete(&table, rids[5]), Err(Error::Poisoned(_) | Error::Io(_))), "{context}");
            drop(next);
            drop((table, database));
            for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll] {
                let image = storage.crash_image(policy);
                assert_eq!(seen(&open(&image, OpenMode::Write)), before, "{context}: {policy:?}");
            }
        }
    }
}
