//! SQLite files by the command: estimated, loaded, compared, refused.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Place;
use rusqlite::Connection;

const APP: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, price NUMERIC(8,2), made DATE);
    CREATE UNIQUE INDEX item_name ON item (name);
    CREATE TABLE \"order line\" (\"order\" INTEGER, line INTEGER, item INTEGER REFERENCES item, PRIMARY KEY (\"order\", line)) WITHOUT ROWID;
    CREATE VIEW dear AS SELECT * FROM item WHERE price > 10;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        INSERT INTO item SELECT i, 'item number ' || i, i % 1000 / 4.0, date('2020-01-01', (i % 400) || ' days') FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
        INSERT INTO \"order line\" SELECT i / 3, i % 3, i % 4000 + 1 FROM n;";

fn place() -> Place {
    let place = Place::new();
    Connection::open(place.path("app.sqlite")).unwrap().execute_batch(APP).unwrap();
    place
}

#[test]
fn all_tables_come_with_keys_and_indexes() {
    let place = place();
    let estimated = place.run(&["estimate", "app.sqlite", "--json"]).ok().json();
    let done = place.run(&["load", "db", "app.sqlite", "--json"]).ok().json();
    assert_eq!(estimated["size_bytes"], done["size_bytes"], "estimated of all rows: to the byte");
    assert_eq!((done["rows"].as_u64(), done["tables"].as_array().unwrap().len()), (Some(13_000), 2));
    assert_eq!(done["tables"][0]["values_compared"], 16_000);
    assert_eq!(done["tables"][0]["indexes"], serde_json::json!(["item_name"]));
    let left_out = done["left_out"].to_string();
    assert!(left_out.contains("a foreign key") && left_out.contains("view"), "{left_out}");
    let row = place.run(&["get", "db", "item", "17", "--json"]).ok().json();
    assert_eq!((&row["row"]["price"], &row["row"]["made"]), (&4.25.into(), &"2020-01-18".into()));
    assert!(place.run(&["get", "db", "order line", "3", "1"]).ok().out.contains("11"));
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
    let text = place.run(&["load", "other", "app.sqlite"]).ok().out;
    assert!(text.contains("compared: 13,000 rows, 43,000 values and 17,000 index entries are the same"), "{text}");
    let text = place.run(&["estimate", "app.sqlite"]).ok().out;
    assert!(text.contains("in SQLite:") && text.contains("under page with prefix indexes"), "{text}");
}

#[test]
fn one_table_by_name() {
    let place = place();
    place.run(&["load", "db", "goods", "app.sqlite:item"]).ok();
    assert_eq!(place.run(&["scan", "db", "goods", "--index", "item_name", "--limit", "1", "--json"]).ok().json()["row_count"], 1);
    place.run(&["load", "db", "app.sqlite:order line", "--compress", "none", "--no-compare"]).ok();
    let report = place.run(&["report", "db", "--json"]).ok().json();
    let names: Vec<_> = report["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["goods", "order line"]);
    place.run(&["load", "all", "app.sqlite", "--tables", "item"]).ok();
    assert_eq!(place.run(&["estimate", "app.sqlite:item", "--json"]).ok().json()["tables"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_loaded_leaves_nothing() {
    let place = place();
    place.run(&["load", "db", "one", "app.sqlite"]).fails(2, &["several tables (item, order line)"]);
    place.run(&["load", "db", "app.sqlite", "--tables", "items"]).fails(1, &["no table \"items\"; there are: item, order line"]);
    place.run(&["load", "db", "t"]).fails(2, &["no FILE to load"]);
    place.run(&["load", "db", "app.sqlite", "--append"]).fails(2, &["--append"]);
    Connection::open(place.path("app.sqlite"))
        .unwrap()
        .execute_batch("PRAGMA foreign_keys = OFF; UPDATE \"order line\" SET item = 'what' WHERE \"order\" = 7;")
        .unwrap();
    place.run(&["load", "db", "app.sqlite"]).fails(1, &["table \"order line\", column \"item\"", "texts: 3, first in row 21"]);
    assert!(!place.path("db").exists());
    place.run(&["load", "db", "app.sqlite", "--mixed-as-text"]).ok();
    place
        .run(&["load", "db", "app.sqlite", "--mixed-as-text"])
        .fails(1, &["the database has item, item_pk, item_name, order line, order line_pk already"]);
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
    place.write("t.csv", "a\n1\n");
    place.run(&["load", "db", "t", "t.csv", "--no-compare"]).fails(2, &["are for SQLite files"]);
    place.run(&["estimate", "t.csv", "--tables", "a"]).fails(2, &["are for SQLite files"]);
    place.write("none.sqlite", "this is no database, but long enough to be taken for one");
    place.run(&["load", "db", "none.sqlite"]).fails(2, &["no SQLite file"]);
}
