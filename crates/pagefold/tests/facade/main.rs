//! What a program meets that stores rows: keys, values, ranges, indexes, errors.

#![allow(clippy::unwrap_used, reason = "tests")]

mod intervals;
mod spans;

use pagefold::{
    DataType, Database, Error, IndexDefinition, IndexFormat, Isolation, Method, Options, Result, Row, Table, TableDefinition, Transaction,
    TransactionOptions, Value, column,
};
use std::ops::Bound;

fn orders() -> TableDefinition {
    TableDefinition::new()
        .column("customer", DataType::Varchar(None))
        .column("number", DataType::Integer)
        .nullable("note", DataType::Varchar(None))
        .column("price", DataType::Decimal { precision: 12, scale: 2 })
        .nullable("day", DataType::Date)
        .primary_key(["customer", "number"])
}

fn filled(definition: TableDefinition) -> Database {
    let database = Database::in_memory().unwrap();
    let t = database.begin();
    let table = t.create_table("orders", definition).unwrap();
    for customer in ["Ada", "Alan", "Grace"] {
        for number in 1..=20 {
            let note = (number % 3 != 0).then(|| format!("note {number}"));
            table.insert((customer, number, note, i64::from(number), "2026-11-24")).unwrap();
        }
    }
    t.commit().unwrap();
    database
}

fn keys(rows: impl Iterator<Item = Result<Row>>) -> Vec<(String, i32)> {
    rows.map(|row| row.unwrap().into().unwrap()).collect()
}

fn count(table: &Table<'_>) -> usize {
    table.scan().unwrap().count()
}

#[test]
fn rows_by_key_in_every_form() {
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        let database = filled(orders().method(method).page_bytes([4096, 16384][turn % 2]));
        let t = database.begin();
        let table = t.table("orders").unwrap();
        let row = table.get(("Alan", 4)).unwrap().unwrap();
        assert_eq!(row.get::<String>("note").unwrap(), "note 4");
        assert_eq!((row.get::<i128>("price").unwrap(), row.get::<i64>("day").unwrap()), (400, 20_781));
        assert_eq!(row.get::<Option<String>>("note").unwrap().as_deref(), Some("note 4"));
        assert!(table.get(("Alan", 21)).unwrap().is_none());
        // The first values of a key find the first such row.
        assert_eq!(table.get("Grace").unwrap().unwrap().get::<i32>("number").unwrap(), 1);
        assert_eq!(keys(table.range(("Alan", 19)..("Grace", 2)).unwrap()).len(), 3);
        assert_eq!(keys(table.range("Alan"..="Alan").unwrap()).len(), 20);
        assert_eq!(keys(table.range::<&str>(..).unwrap()).len(), 60);
        let from = (Bound::Excluded(("Alan", 18)), Bound::<(&str, i32)>::Unbounded);
        assert_eq!(keys(table.range(from).unwrap())[..2], [("Alan".to_string(), 19), ("Alan".to_string(), 20)]);
        let from = (Bound::Excluded("Alan"), Bound::<&str>::Unbounded);
        assert!(keys(table.range::<&str>(from).unwrap()).iter().all(|key| key.0 == "Grace"));
        assert_eq!(table.filter("number > 18 and note is not null").unwrap().count(), 6);
        let built = column("number").greater_than(18).and(column("note").is_not_null());
        assert_eq!(table.filter(&built).unwrap().count(), 6);
        assert!(table.update(("Ada", 3), [("note", "three")]).unwrap() && !table.update(("Ada", 33), [("note", "x")]).unwrap());
        assert!(table.update(("Ada", 3), [("note", None::<&str>)]).unwrap());
        assert!(table.delete(("Ada", 1)).unwrap() && !table.delete(("Ada", 1)).unwrap());
        assert!(table.upsert(("Ada", 1, "again", 5_i64, None::<&str>)).unwrap());
        assert!(!table.upsert(("Ada", 1, "and again", "7.25", "2026-01-01")).unwrap());
        let ada: (String, i32, Option<String>, i128) = table.get(("Ada", 1)).unwrap().unwrap().into().unwrap();
        assert_eq!(ada, ("Ada".into(), 1, Some("and again".into()), 725));
        assert!(table.lock(("Ada", 1)).unwrap() && !table.lock(("Ada", 99)).unwrap());
        assert_eq!(count(&table), 60);
        // A row that was read can be inserted elsewhere.
        let copy = t.create_table("copy", orders()).unwrap();
        table.scan().unwrap().for_each(|row| copy.insert(row.unwrap()).unwrap());
        assert_eq!(count(&copy), 60);
        t.commit().unwrap();
        database.close().unwrap();
    }
}

#[test]
fn indexes_are_other_ways_to_rows() {
    for format in IndexFormat::ALL {
        let database = filled(orders());
        let t = database.begin();
        let by_number = IndexDefinition::new(["number"]).descending("customer").format(format, 8192);
        t.create_index("by_number", "orders", by_number).unwrap();
        let table = t.table("orders").unwrap();
        table.insert(("Zoe", 5, "late", 1_i64, None::<&str>)).unwrap();
        let index = table.by("by_number").unwrap();
        let of_five: Vec<String> = index.range(5..=5).unwrap().map(|row| row.unwrap().get("customer").unwrap()).collect();
        assert_eq!(of_five, ["Zoe", "Grace", "Alan", "Ada"]);
        let backward: Vec<i32> = index.range_backward(19..).unwrap().map(|row| row.unwrap().get("number").unwrap()).collect();
        assert_eq!(backward, [20, 20, 20, 19, 19, 19]);
        assert_eq!(index.get((5, "Alan")).unwrap().unwrap().get::<String>("customer").unwrap(), "Alan");
        let unique = t.create_index("unique", "orders", IndexDefinition::new(["number"]).unique());
        assert!(matches!(unique, Err(Error::DuplicateKey { .. })));
        assert_eq!(unique.unwrap_err().sqlstate(), "23505");
        let other = t.create_table("other", TableDefinition::new().column("n", DataType::BigInt)).unwrap();
        assert!(matches!(other.by("by_number"), Err(Error::Parameter(_))));
        assert!(matches!(other.get(1), Err(Error::Parameter(_))));
        other.insert(1).unwrap();
        t.drop_index("by_number").unwrap();
        assert!(table.by("by_number").is_err());
        t.commit().unwrap();
        assert_eq!(count(&database.begin_read().table("other").unwrap()), 1);
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let database = filled(orders());
    let t = database.begin();
    let table = t.table("orders").unwrap();
    let is_value = |result: Result<()>| matches!(result, Err(Error::Value(_)));
    assert!(matches!(table.insert(("Ada", 1, "", 1_i64, "2026-01-01")), Err(Error::DuplicateKey { .. })));
    assert!(is_value(table.insert(("Ada", 50))));
    assert!(is_value(table.insert((None::<&str>, 50, "", 1_i64, None::<&str>))));
    assert!(is_value(table.insert(("Ada", "fifty", "", 1_i64, None::<&str>))));
    assert!(is_value(table.insert(("Ada", 1_i64 << 40, "", 1_i64, None::<&str>))));
    assert!(is_value(table.insert(("Ada", 50, "", i64::MAX, None::<&str>))));
    assert!(is_value(table.insert(("Ada", 50, "", 1_i64, "yesterday"))));
    assert!(is_value(table.update(("Ada", 1), [("nothing", 1)]).map(drop)));
    assert!(is_value(table.get(("Ada", 1, 1)).map(drop)));
    let row = table.get(("Ada", 3)).unwrap().unwrap();
    assert!(is_value(row.get::<String>("note").map(drop)) && row.get::<Option<String>>("note").unwrap().is_none());
    assert!(is_value(row.get::<bool>("number").map(drop)) && is_value(row.get::<i64>("nothing").map(drop)));
    assert!(is_value(row.clone().into::<(String, String)>().map(drop)));
    assert_eq!(row.values()[1], Value::Int(3));
    assert!(matches!(table.filter("number >"), Err(Error::Parameter(_))));
    assert!(matches!(table.filter(column("nothing").is_null()), Err(Error::Parameter(_))));
    assert!(matches!(t.table("order"), Err(Error::Unknown { .. })));
    assert!(matches!(t.create_table("orders", orders()), Err(Error::Exists { .. })));
    assert!(matches!(t.create_table("bad", orders().primary_key(["no such"])), Err(Error::Parameter(_))));
    assert!(matches!(t.create_table("bad", orders().page_bytes(5_000)), Err(Error::Parameter(_))));
    assert!(matches!(t.create_index("bad", "orders", IndexDefinition::new(["no such"])), Err(Error::Parameter(_))));
    // None of it has done anything, and the transaction goes on.
    assert_eq!(count(&table), 60);
    assert!(t.table("bad").is_err());
    table.insert(("Ada", 50, "", 1_i64, None::<&str>)).unwrap();
    t.commit().unwrap();
    let reader = database.begin_read();
    let table = reader.table("orders").unwrap();
    assert_eq!(table.insert(("Ada", 51, "", 1_i64, None::<&str>)).unwrap_err().sqlstate(), "25006");
    assert_eq!(count(&table), 61);
    assert!(matches!(database.close(), Err(Error::Busy(_))));
}

#[test]
fn savepoints_and_rollback() {
    let database = filled(orders());
    let t = database.begin();
    let table = t.table("orders").unwrap();
    table.delete(("Ada", 1)).unwrap();
    let savepoint = t.savepoint();
    t.drop_table("orders").unwrap();
    assert!(t.table("orders").is_err());
    t.create_table("orders", TableDefinition::new().column("n", DataType::BigInt)).unwrap();
    assert!(database.begin().savepoint() != savepoint);
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(count(&t.table("orders").unwrap()), 59);
    drop(table);
    drop(t);
    assert_eq!(count(&database.begin_read().table("orders").unwrap()), 60);
}

#[test]
fn a_transaction_that_was_in_the_way_of_others_is_begun_again() {
    let database = filled(orders());
    let threads = 4;
    let add_one = |t: &Transaction| {
        let table = t.table("orders")?;
        table.lock(("Ada", 1))?;
        let price = table.get(("Ada", 1))?.unwrap().get::<i128>("price")?;
        table.update(("Ada", 1), [("price", price + 1)])
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..50).for_each(|_| assert!(database.write(add_one).unwrap())));
        }
    });
    let t = database.begin();
    assert_eq!(t.table("orders").unwrap().get(("Ada", 1)).unwrap().unwrap().get::<i128>("price").unwrap(), 100 + threads * 50);
    // Without a lock, a snapshot that is too old is a conflict.
    let options = TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() };
    let late = database.begin_with(options);
    let table = late.table("orders").unwrap();
    table.get(("Ada", 1)).unwrap();
    assert!(database.write(add_one).unwrap());
    let refused = table.update(("Ada", 1), [("price", 1_i64)]).unwrap_err();
    assert!(refused.is_retryable() && refused.sqlstate() == "40001" && late.is_retryable());
}

#[test]
fn a_database_on_disk_is_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    assert!(matches!(Database::open(&path), Err(Error::NotADatabase(_))));
    {
        let database = Options::default().memory_bytes(8 << 20).create(&path).unwrap();
        let t = database.begin();
        t.create_table("orders", orders()).unwrap().insert(("Ada", 1, None::<&str>, 1_i64, None::<&str>)).unwrap();
        t.commit().unwrap();
        assert!(matches!(Database::open(&path), Err(Error::Locked(..))));
        // What a transaction has is not closed under it.
        let t = database.begin();
        drop(database);
        assert_eq!(count(&t.table("orders").unwrap()), 1);
    }
    let reader = Database::options().open_read_only(&path).unwrap();
    assert_eq!(count(&reader.begin_read().table("orders").unwrap()), 1);
    assert_eq!(reader.begin().create_table("t", orders()).unwrap_err().sqlstate(), "25006");
    reader.close().unwrap();
    Database::open(&path).unwrap().close().unwrap();
}

#[test]
fn some_columns_of_some_rows() {
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        let database = filled(orders().method(method).page_bytes([4096, 16384][turn % 2]));
        let t = database.begin();
        t.create_index("by_number", "orders", IndexDefinition::new(["number"])).unwrap();
        let table = t.table("orders").unwrap();
        let found = table.select(["number", "customer"]).unwrap().filter("number > 18").unwrap();
        let rows: Vec<Row> = found.clone().rows().unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(rows.len(), 6);
        assert_eq!(rows[0].values().len(), 2);
        assert_eq!(rows[0].clone().into::<(i32, String)>().unwrap(), (19, "Ada".to_string()));
        assert!(rows[0].get::<String>("note").is_err(), "it was not asked for");
        // Two conditions are both meant; a range is one of the primary key; a limit counts what is delivered.
        let last = found.clone().filter(column("number").less_than(20)).unwrap().range("Alan"..).unwrap().backward().unwrap();
        let names = |select: pagefold::Select<'_>| -> Vec<String> {
            select.rows().unwrap().map(|row| row.unwrap().get("customer").unwrap()).collect()
        };
        assert_eq!(names(last.clone()), ["Grace", "Alan"]);
        assert_eq!(names(last.limit(1)), ["Grace"]);
        assert_eq!(names(found.clone().limit(0)), Vec::<String>::new());
        // By another index.
        let by_number = table.by("by_number").unwrap().select(["customer", "number"]).unwrap();
        let tens = by_number.range(10..12).unwrap().filter("customer <> 'Alan'").unwrap();
        let tens: Vec<(String, i32)> = keys(tens.rows().unwrap());
        let expected = [("Ada", 10), ("Grace", 10), ("Ada", 11), ("Grace", 11)].map(|(name, number)| (name.to_string(), number));
        assert_eq!(tens, expected);
        // What cannot be is said where it was asked for.
        for (columns, what) in [(vec!["nothing"], "nothing"), (vec!["note", "note"], "twice")] {
            let error = table.select(columns).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("orders"), "{error}");
        }
        assert!(found.filter("customer > 5").is_err());
    }
}

#[test]
#[cfg(feature = "arrow")]
fn record_batches_out_and_in() {
    let long = "a long note ".repeat(2000);
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        let database = filled(orders().method(method).page_bytes([4096, 16384][turn % 2]));
        let t = database.begin();
        t.table("orders").unwrap().update(("Alan", 7), [("note", long.as_str())]).unwrap();
        t.create_table("copies", orders()).unwrap();
        let (table, copies) = (t.table("orders").unwrap(), t.table("copies").unwrap());
        let mut rows = 0;
        let names: Vec<&str> = table.schema().columns().iter().rev().map(|column| column.name.as_str()).collect();
        // Columns stand in another order; rows come in that of the key.
        let batches = table.select(names.iter().copied()).unwrap().range::<&str>(..).unwrap().record_batches().unwrap();
        assert_eq!(batches.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), names);
        for batch in batches {
            rows += copies.insert_batch(&batch.unwrap()).unwrap();
        }
        assert_eq!(rows, 60);
        let all = |table: &Table<'_>| table.range::<&str>(..).unwrap().collect::<Result<Vec<Row>>>().unwrap();
        let [originals, copied] =
            [&table, &copies].map(|table| all(table).into_iter().map(|row| row.values().to_vec()).collect::<Vec<_>>());
        assert_eq!(originals, copied);
        assert_eq!(table.get(("Alan", 7)).unwrap().unwrap().get::<String>("note").unwrap(), long);
        // All or none: one key of the batch is taken.
        copies.delete(("Ada", 3)).unwrap();
        let batch = table.select(names).unwrap().record_batches().unwrap().next().unwrap().unwrap();
        assert!(matches!(copies.insert_batch(&batch).unwrap_err(), Error::DuplicateKey { .. }));
        assert_eq!(count(&copies), 59);
        // A batch that lacks a column is refused by name.
        let few = table.select(["customer"]).unwrap().record_batches().unwrap().next().unwrap().unwrap();
        let error = copies.insert_batch(&few).unwrap_err().to_string();
        assert!(error.contains("copies"), "{error}");
        // In parts for threads each row comes once; a limit counts.
        let parts = table.select(["number"]).unwrap().record_batches().unwrap().split(3);
        let counted: usize = parts
            .into_iter()
            .map(|part| std::thread::spawn(|| part.map(|batch| batch.unwrap().num_rows()).sum::<usize>()).join().unwrap())
            .sum();
        assert_eq!(counted, 60);
        let limited = table.select(["number"]).unwrap().limit(17).record_batches().unwrap();
        assert_eq!(limited.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 17);
    }
}

/// An index of a key that is damaged is not as if there were none.
#[test]
fn a_damaged_primary_key_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders");
    let database = Database::create(&path).unwrap();
    let t = database.begin();
    let table = t.create_table("orders", orders()).unwrap();
    table.insert(("Ada", 1, "note", 1_i64, "2026-11-24")).unwrap();
    t.commit().unwrap();
    database.close().unwrap();
    // Opened once more, so that the double-write file does not have the page.
    let database = Database::open(&path).unwrap();
    let index = database.engine().index("orders_pk").unwrap();
    let file = index.data_set().path().to_path_buf();
    drop(index);
    database.close().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let database = Database::open(&path).unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    assert_eq!(count(&table), 1);
    let error = table.get(("Ada", 1)).unwrap_err();
    assert!(matches!(error, Error::DamagedIndex { .. }), "{error}");
}

/// A table and its indexes are written anew while a transaction has them: it goes on with the new ones, as long as it sees what is
/// committed; under a snapshot it goes on to read the old ones.
#[test]
#[cfg(feature = "arrow")]
fn handles_go_on_with_a_table_that_was_written_anew() {
    use pagefold::utility::{ReorgOptions, Setting, Silent, reorg};
    let database = filled(orders());
    let t = database.begin();
    t.create_index("by_price", "orders", IndexDefinition::new(["price"])).unwrap();
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    let by_price = table.by("by_price").unwrap();
    assert_eq!((count(&table), by_price.get(7).unwrap().is_some()), (60, true));
    let old = database.begin_with(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
    let old_table = old.table("orders").unwrap();
    let old_by_price = old_table.by("by_price").unwrap();
    assert_eq!(count(&old_table), 60);
    let anew = |method, object: &str| {
        let method = (object == "orders").then_some(Setting::Given(method));
        reorg(database.engine(), object, &ReorgOptions { method, ..ReorgOptions::default() }, &Silent).unwrap();
    };
    anew(Method::Page, "orders");
    assert_eq!(table.get(("Alan", 4)).unwrap().unwrap().get::<String>("note").unwrap(), "note 4");
    assert_eq!((count(&table), keys(table.range("Alan"..="Alan").unwrap()).len()), (60, 20));
    assert_eq!(table.filter("price > 18").unwrap().count(), 6);
    assert_eq!(by_price.range(3..=4).unwrap().count(), 6);
    assert_eq!(by_price.select(["price"]).unwrap().record_batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 60);
    assert_eq!(table.select(["number"]).unwrap().keys([("Ada", 3), ("Grace", 9)]).unwrap().rows().unwrap().count(), 2);
    table.insert(("Barbara", 1, Some("first"), 1_i64, "2026-11-24")).unwrap();
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    anew(Method::None, "orders");
    assert!(table.update(("Alan", 4), [("price", 9)]).unwrap());
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    anew(Method::Fixed, "orders");
    assert!(!table.upsert(("Alan", 5, Some("again"), 9_i64, "2026-11-24")).unwrap());
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    anew(Method::Row, "orders");
    assert!(table.lock(("Alan", 6)).unwrap() && table.delete(("Alan", 6)).unwrap());
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    let first = table.select(["customer", "number", "note", "price", "day"]).unwrap().limit(1);
    let batch = first.record_batches().unwrap().next().unwrap().unwrap();
    assert!(table.delete(("Ada", 1)).unwrap());
    t.commit().unwrap();
    let t = database.begin();
    let table = t.table("orders").unwrap();
    anew(Method::Huffman, "orders");
    assert_eq!(table.insert_batch(&batch).unwrap(), 1);
    t.commit().unwrap();
    let t = database.begin();
    let (table, by_price) = (t.table("orders").unwrap(), t.table("orders").unwrap().by("by_price").unwrap());
    anew(Method::Huffman, "orders_pk");
    anew(Method::Huffman, "by_price");
    assert!(table.get(("Ada", 1)).unwrap().is_some() && table.get(("Alan", 6)).unwrap().is_none());
    assert_eq!(by_price.range(9..=9).unwrap().count(), 5);
    t.commit().unwrap();
    // Old rows, and none to be changed.
    assert_eq!((count(&old_table), keys(old_table.range("Alan"..="Alan").unwrap()).len()), (60, 20));
    assert_eq!(old_by_price.range(9..=9).unwrap().count(), 3);
    assert!(matches!(old_table.update(("Alan", 4), [("price", 1)]), Err(Error::Stale { .. })));
    assert_eq!(database.begin().table("orders").unwrap().scan().unwrap().count(), 60);
}

#[test]
fn metrics_name_what_is_used_and_who_is_there() {
    let database = filled(orders());
    let t = database.begin();
    assert!(t.table("orders").unwrap().delete(("Ada", 1)).unwrap());
    let text = database.metrics();
    for line in
        ["pagefold_object_getpages_total{object=\"table orders\"} ", "pagefold_transactions_active 1\n", "pagefold_locks_waiting 0\n"]
    {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    t.commit().unwrap();
    assert!(database.metrics().contains("pagefold_transactions_active 0\n"));
}
