//! Partitioned tables by the command: loaded, read, changed, their partitions added, dropped, rotated, split and merged.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Place;
use serde_json::{Value as Json, json};
use std::fmt::Write;

const ROWS: u32 = 24_000;
const LIMITS: &str = "day: 2024-04-01, 2024-07-01, q3 = 2024-10-01, 2025-01-01";

fn row(i: u32) -> String {
    // Long enough now and then to lie outside the page.
    let note = if i % 1000 == 7 { "long ".repeat(3000) } else { format!("note {}", i % 50) };
    format!("{i},2024-{:02}-{:02},shop {},{note}\n", 1 + i % 12, 1 + (i / 12) % 28, i % 97)
}

fn place() -> Place {
    let place = Place::new();
    let mut text = "id,day,shop,note\n".to_owned();
    (0..ROWS).for_each(|i| text += &row(i));
    std::fs::write(place.path("sales.csv"), text).unwrap();
    place.run(&["load", "db", "sales", "sales.csv", "--primary-key", "day,id", "--partition-by", LIMITS]).ok();
    place
}

fn list(place: &Place) -> Vec<(String, u64)> {
    let listed = place.run(&["partition", "list", "db", "sales", "--json"]).ok().json();
    let line = |line: &Json| (line["name"].as_str().unwrap().to_owned(), line["rows"].as_u64().unwrap());
    listed["partitions"].as_array().unwrap().iter().map(line).collect()
}

fn names(place: &Place) -> Vec<String> {
    list(place).into_iter().map(|(name, _)| name).collect()
}

/// All rows, in the order of an index, or sorted.
fn rows(place: &Place, table: &str, more: &[&str]) -> Vec<String> {
    let run = place.run(&[&["scan", "db", table, "--format", "csv"], more].concat()).ok();
    run.out.lines().skip(1).map(str::to_owned).collect()
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

fn check(place: &Place) {
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}

#[test]
fn the_same_rows_as_a_table_that_is_not_divided() {
    let place = place();
    place.run(&["load", "db", "one", "sales.csv", "--primary-key", "day,id"]).ok();
    for (name, table) in [("by_shop", "sales"), ("one_by_shop", "one")] {
        place.run(&["create-index", "db", name, &format!("{table}(shop, id)")]).ok();
    }
    assert_eq!(list(&place), ["p1", "p2", "q3", "p4"].map(|name| (name.to_owned(), u64::from(ROWS / 4))));
    let both = |more: &[&str]| (rows(&place, "sales", more), rows(&place, "one", more));
    let (many, one) = both(&[]);
    assert_eq!((many.len(), sorted(many) == sorted(one)), (ROWS as usize, true));
    for condition in
        ["day = '2024-05-17'", "id < 100 and day >= '2024-06-01'", "shop = 'shop 5'", "day < '2020-01-01'", "note like 'long%'"]
    {
        let (many, one) = both(&["--where", condition]);
        assert_eq!(sorted(many), sorted(one), "{condition}");
    }
    // An index goes across the partitions, in its order.
    let of =
        |table, index| rows(&place, table, &["--index", index, "--where", "shop < 'shop 3'", "--columns", "shop,id", "--limit", "2000"]);
    assert_eq!(of("sales", "by_shop"), of("one", "one_by_shop"));
    let row = |table| place.run(&["get", "db", table, "2024-05-01", "28", "--json"]);
    assert_eq!(row("sales").code, row("one").code);
    assert!(place.run(&["get", "db", "sales", "2024-05-01", "4"]).ok().out.contains("shop 4"));
    check(&place);
}

#[test]
fn partitions_come_and_go() {
    let place = place();
    place.run(&["create-index", "db", "by_shop", "sales(shop)", "--format", "prefix"]).ok();
    place.run(&["partition", "add", "db", "sales", "2025-04-01", "--compress", "fixed"]).ok();
    assert_eq!(names(&place), ["p1", "p2", "q3", "p4", "p5"]);
    let rotated = place.run(&["partition", "rotate", "db", "sales", "last = MAXVALUE", "--json"]).ok().json();
    assert_eq!(rotated["added"], "last");
    assert_eq!(names(&place), ["p2", "q3", "p4", "p5", "last"]);
    let before = sorted(rows(&place, "sales", &[]));
    place.run(&["partition", "split", "db", "sales", "q3", "q3a = 2024-08-15"]).ok();
    place.run(&["partition", "split", "db", "sales", "last", "2026-01-01"]).ok();
    assert_eq!(names(&place), ["p2", "q3a", "q3", "p4", "p5", "p7", "last"]);
    let merged = place.run(&["partition", "merge", "db", "sales", "p2", "q3a", "--into", "summer", "--json"]).ok().json();
    assert_eq!(merged["partitions"][0]["name"], "summer");
    place.run(&["reorg", "db", "sales/q3", "--compress", "huffman", "--page-size", "4K"]).ok();
    place.run(&["reorg", "db", "by_shop", "--format", "plain"]).ok();
    assert_eq!(sorted(rows(&place, "sales", &[])), before);
    check(&place);
    place.run(&["reorg", "db", "sales/q3", "--order", "by_shop"]).ok();
    place.run(&["reorg", "db", "sales", "--compress", "row", "--order", "by_shop"]).ok();
    check(&place);
    assert_eq!(sorted(rows(&place, "sales", &[])), before);
    // Rows go to partitions that have come since, and are found there.
    let mut more = "id,day,shop,note\n".to_owned();
    for (id, day) in [(1, "2025-02-03"), (2, "2025-12-31"), (3, "2030-01-01"), (4, "2024-08-16")] {
        writeln!(more, "{id},{day},new shop,n").unwrap();
    }
    std::fs::write(place.path("more.csv"), more).unwrap();
    place.run(&["load", "db", "sales", "more.csv", "--append"]).ok();
    let changed = place.run(&["upsert", "db", "sales", "more.csv", "--json"]).ok().json();
    assert_eq!((&changed["unchanged"], &changed["inserted"]), (&4.into(), &0.into()));
    assert_eq!(rows(&place, "sales", &["--where", "shop = 'new shop'", "--columns", "id"]).len(), 4);
    let rows_of = |name: &str| list(&place).iter().find(|(own, _)| own == name).map(|(_, rows)| *rows);
    assert_eq!((rows_of("p5"), rows_of("p7"), rows_of("last")), (Some(1), Some(1), Some(1)));
    let gone = place.run(&["delete", "db", "sales", "more.csv", "--json"]).ok().json();
    assert_eq!(gone["deleted"], 4);
    place.run(&["partition", "drop", "db", "sales", "p4"]).ok();
    let listed = place.run(&["partition", "list", "db", "sales"]).ok().out;
    assert!(listed.contains("no partition has the keys from the limit above up to (2025-01-01)"), "{listed}");
    check(&place);
    // With the same partitions.
    place.run(&["partition", "drop", "db", "sales", "summer"]).ok();
    place.run(&["load", "db", "sales", "sales.csv", "--replace"]).ok();
    assert_eq!((names(&place), rows(&place, "sales", &[]).len()), (["q3", "p5", "p7", "last"].map(str::to_owned).to_vec(), ROWS as usize));
    let dropped = place.run(&["drop", "db", "by_shop", "--json"]).ok().json();
    assert_eq!(dropped["kind"], "partitioned index");
    assert_eq!(place.run(&["drop", "db", "sales", "--json"]).ok().json()["indexes"], json!(["sales_pk"]));
    let report = place.run(&["report", "db", "--json"]).ok().json();
    assert_eq!((report["tables"].as_array().unwrap().len(), report["indexes"].as_array().unwrap().len()), (0, 0));
    check(&place);
}

#[test]
fn what_is_refused_says_why_and_changes_nothing() {
    let place = place();
    let (before, listed) = (sorted(rows(&place, "sales", &[])), list(&place));
    std::fs::write(place.path("late.csv"), "id,day,shop,note\n1,2024-02-30x,a,b\n").unwrap();
    std::fs::write(place.path("outside.csv"), "id,day,shop,note\n1,2024-12-31,a,n\n2,2025-01-01,a,n\n").unwrap();
    let refused: [(&[&str], &str); 18] = [
        (&["load", "db", "sales", "sales.csv"], "already exists"),
        (
            &["load", "db", "sales", "outside.csv", "--append"],
            "line 3: partitioned table \"sales\": the key (2025-01-01) belongs in no partition",
        ),
        (&["upsert", "db", "sales", "outside.csv"], "belongs in no partition"),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: 2024-04-01"], "belongs in no partition"),
        (&["load", "db", "new", "sales.csv", "--partition-by", "when: 2024-04-01"], "unknown column \"when\""),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: 2024-13-01"], "column \"day\""),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: MAXVALUE, 2024-01-01"], "comes behind one without a limit"),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: 2024-05-01, 2024-05-01"], "is not above that of the one before"),
        (&["load", "db", "new", "sales.csv", "--partition-by", LIMITS, "--primary-key", "shop"], "duplicate key"),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: (2024-05-01, 3)"], "a limit has 2 values"),
        (&["partition", "add", "db", "sales", "2024-12-01"], "is not above that of the last one"),
        (&["partition", "drop", "db", "sales", "q9"], "there are: p1, p2, q3, p4"),
        (&["partition", "split", "db", "sales", "q3", "2024-10-01"], "is not within the range"),
        (&["partition", "merge", "db", "sales", "p1", "q3"], "follow each other"),
        (&["partition", "list", "db", "one"], "no partitioned table \"one\""),
        (&["create-index", "db", "i", "sales(shop)", "--unique"], "duplicate key"),
        (&["drop", "db", "sales/p1"], "`pagefold partition drop` drops it"),
        (&["reorg", "db", "sales", "--compress", "auto"], "may want different methods"),
    ];
    for (arguments, says) in refused {
        let run = place.run(arguments);
        assert!(run.code != Some(0) && run.err.contains(says), "{arguments:?}: {run:?}");
    }
    assert_eq!((sorted(rows(&place, "sales", &[])), list(&place)), (before, listed));
    assert_eq!(place.run(&["report", "db", "--json"]).ok().json()["tables"].as_array().unwrap().len(), 4);
    check(&place);
}

#[test]
fn what_belongs_together_stays_together() {
    let place = place();
    place.run(&["create-index", "db", "by_shop", "sales(shop)"]).ok();
    std::fs::write(place.path("p1.csv"), format!("id,day,shop,note\n{}", row(12))).unwrap();
    let refused: [(&[&str], &str); 5] = [
        (&["load", "db", "sales/p1", "p1.csv", "--replace", "--primary-key", "id,day"], "the primary key of the others"),
        (&["load", "db", "sales/p1", "p1.csv", "--replace", "--partition-by", "day: MAXVALUE"], "it is not divided once more"),
        (&["drop", "db", "by_shop/p2"], "that goes as a whole"),
        (&["drop", "db", "sales_pk/p1"], "that goes as a whole"),
        (&["load", "db", "new", "sales.csv", "--partition-by", "day: p = 2024-03-01, p = 2025-01-01"], "two partitions are called \"p\""),
    ];
    for (arguments, says) in refused {
        let run = place.run(arguments);
        assert!(run.code != Some(0) && run.err.contains(says), "{arguments:?}: {run:?}");
    }
    // A partition whose rows are replaced keeps its shares of all indexes.
    place.run(&["load", "db", "sales/p1", "p1.csv", "--replace", "--primary-key", "day,id"]).ok();
    assert_eq!(rows(&place, "sales", &["--index", "by_shop"]).len(), 1 + ROWS as usize / 4 * 3);
    assert!(place.run(&["get", "db", "sales", "2024-01-02", "12"]).ok().out.contains("shop 12"));
    check(&place);
    // With another key all have another one; each keeps its method.
    place.run(&["reorg", "db", "sales/p2", "--compress", "none"]).ok();
    place.run(&["load", "db", "sales", "sales.csv", "--replace", "--primary-key", "id,day"]).ok();
    let listed = place.run(&["partition", "list", "db", "sales", "--json"]).ok().json();
    let methods: Vec<_> = listed["partitions"].as_array().unwrap().iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["page", "none", "page", "page"]);
    assert!(place.run(&["get", "db", "sales", "28", "2024-05-03"]).ok().out.contains("shop 28"));
    check(&place);
}

#[test]
fn an_index_that_cannot_be_built_leaves_nothing() {
    let place = place();
    std::fs::write(place.path("twice.csv"), "id,day,shop,note\n100001,2024-11-11,x,same\n100002,2024-11-11,x,same\n").unwrap();
    place.run(&["load", "db", "sales", "twice.csv", "--append"]).ok();
    let before = place.run(&["report", "db", "--json"]).ok().json()["indexes"].as_array().unwrap().len();
    let refused = place.run(&["create-index", "db", "one", "sales(day, shop)", "--unique"]);
    assert!(refused.code == Some(1) && refused.err.contains("duplicate key"), "{refused:?}");
    assert_eq!(place.run(&["report", "db", "--json"]).ok().json()["indexes"].as_array().unwrap().len(), before);
    check(&place);
}

/// The table is divided by another column than that of its primary key.
#[test]
fn keys_are_unique_over_all_partitions() {
    let place = Place::new();
    let mut text = "id,day,shop,note\n".to_owned();
    (0..ROWS).for_each(|i| text += &row(i));
    std::fs::write(place.path("sales.csv"), &text).unwrap();
    std::fs::write(place.path("twice.csv"), text + &row(11)[..2] + ",2024-02-02,shop,same number\n").unwrap();
    let divided = ["--primary-key", "id", "--partition-by", LIMITS];
    let load = |file, more: &[&str]| place.run(&[&["load", "db", "sales", file], &divided[..], more].concat());
    let refused = load("twice.csv", &[]);
    assert!(refused.code == Some(1) && refused.err.contains("duplicate key (11)"), "{refused:?}");
    load("sales.csv", &[]).ok();
    let before = sorted(rows(&place, "sales", &[]));
    let get = |id: &str| place.run(&["get", "db", "sales", id]).ok().out;
    assert!(get("7").contains("2024-08-01") && get("24").contains("2024-01-03"));
    assert!(place.run(&["get", "db", "sales", "999999"]).code == Some(1));
    place.run(&["copy", "db", "then.pfc"]).ok();
    // Row 7 goes from q3 to p1; a new one comes.
    std::fs::write(place.path("new.csv"), "id,day,shop,note\n7,2024-01-01,shop,moved\n500000,2024-12-12,shop,new\n").unwrap();
    assert!(place.run(&["upsert", "db", "sales", "new.csv"]).ok().out.contains("1"));
    assert!(get("7").contains("moved"));
    let refused: [(&[&str], &str); 3] = [
        (&["load", "db", "sales", "new.csv", "--append"], "duplicate key"),
        (&["load", "db", "sales/q3", "q3.csv", "--replace"], "duplicate key (7)"),
        // It had row 7 then.
        (&["recover", "db", "then.pfc", "--table", "sales/q3"], "duplicate key (7)"),
    ];
    std::fs::write(place.path("q3.csv"), "id,day,shop,note\n7,2024-08-01,shop,back\n").unwrap();
    for (arguments, says) in refused {
        let run = place.run(arguments);
        assert!(run.code != Some(0) && run.err.contains(says), "{arguments:?}: {run:?}");
    }
    check(&place);
    std::fs::write(place.path("gone.csv"), "id\n7\n500000\n").unwrap();
    place.run(&["delete", "db", "sales", "gone.csv"]).ok();
    place.run(&["recover", "db", "then.pfc", "--table", "sales/q3"]).ok();
    assert_eq!(sorted(rows(&place, "sales", &[])), before);
    check(&place);
}

/// A partition whose header is damaged is in the way of none of the others, and can be dropped.
#[test]
fn one_damaged_partition_is_one_damaged_partition() {
    let place = place();
    place.run(&["load", "db", "other", "sales.csv", "--primary-key", "day,id", "--partition-by", LIMITS]).ok();
    place.run(&["create-index", "db", "by_shop", "other(shop)"]).ok();
    for (partition, day) in [("p1", "2024-05-01"), ("p2", "2024-08-01")] {
        let printed = place.run(&["print", "db", &format!("sales/{partition}")]).ok().out;
        let file = printed.lines().find_map(|line| line.strip_prefix("file")).unwrap().trim().to_owned();
        let path = place.path("db").join("data").join(format!("{file}.pfd"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[200..260].fill(0xAA);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(rows(&place, "sales", &["--where", &format!("day = '{day}'")]).len(), (ROWS as usize / 12).div_ceil(28));
        assert_ne!(place.run(&["scan", "db", "sales", "--limit", "100000", "--format", "csv"]).code, Some(0));
        assert!(place.run(&["partition", "list", "db", "other"]).ok().out.contains("q3"));
        place.run(&["reorg", "db", "by_shop", "--format", "prefix"]).ok();
        // By SQL likewise: who needs the partition meets the error, which names it.
        let sql = |text: &str| place.run(&["sql", "db", text]);
        let of_day = format!("WHERE day = '{day}'");
        assert!(sql(&format!("SELECT count(*) FROM sales {of_day}")).ok().out.contains(&(ROWS as usize / 12).div_ceil(28).to_string()));
        sql(&format!("INSERT INTO sales (id, day, shop, note) VALUES (900000, '{day}', 'new', 'none')")).ok();
        sql(&format!("UPDATE sales SET shop = 'changed' {of_day} AND id = 900000")).ok();
        sql(&format!("DELETE FROM sales {of_day} AND id = 900000")).ok();
        let refused = ["SELECT count(*) FROM sales WHERE id = 3", "SELECT sum(id) FROM sales", "UPDATE sales SET shop = 'x' WHERE id = 3"];
        refused.iter().for_each(|text| _ = sql(text).fails(1, &[&format!("sales/{partition}"), "page 0"]));
        if partition == "p1" {
            place.run(&["partition", "drop", "db", "sales", partition]).ok();
        } else {
            sql(&format!("ALTER TABLE sales DROP PARTITION {partition}")).ok();
        }
        check(&place);
    }
    assert_eq!(names(&place), ["q3", "p4"]);
}
