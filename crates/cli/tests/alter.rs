//! `pagefold alter`: columns that come, go, change their type and name, of tables of every method; attributes; partitioned tables; and what the other commands make of it.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Place;
use serde_json::json;

const METHODS: [&str; 5] = ["none", "row", "page", "fixed", "huffman"];

fn text(ids: std::ops::Range<u32>) -> String {
    let mut text = "id,day,shop,note\n".to_owned();
    // Long enough now and then to lie outside the page.
    let note = |id: u32| if id % 500 == 7 { "long ".repeat(3000) } else { format!("note {}", id % 50) };
    ids.for_each(|id| text += &format!("{id},2024-{:02}-{:02},shop {},{}\n", 1 + id % 12, 1 + (id / 12) % 28, id % 97, note(id)));
    text
}

fn check(place: &Place) {
    let checked = place.run(&["check", "db", "--json"]).ok().json();
    assert_eq!(checked["errors"], json!([]), "{checked}");
}

#[test]
fn columns_change_and_all_commands_follow() {
    for method in METHODS {
        let place = Place::new();
        std::fs::write(place.path("a.csv"), text(0..3000)).unwrap();
        place.run(&["load", "db", "sales", "a.csv", "--primary-key", "id", "--compress", method]).ok();
        place.run(&["create-index", "db", "by_day", "sales(day, id)"]).ok();
        let alter = |what: &[&str]| place.run(&[&["alter", "db", "sales"], what, &["--json"]].concat()).ok().json();
        let done = alter(&["add-column", "status VARCHAR(10) NOT NULL DEFAULT 'open'"]);
        assert_eq!((&done["kind"], &done["name"], &done["altered"]), (&json!("table"), &json!("sales"), &json!("add-column")));
        alter(&["add-column", "amount DECIMAL(9,2)"]);
        alter(&["drop-column", "note"]);
        alter(&["rename-column", "shop", "store"]);
        alter(&["set-type", "id", "DECIMAL(20,0)"]);
        check(&place);
        // Rows of both kinds, and some of the old ones changed.
        std::fs::write(place.path("b.csv"), "id,day,store,status,amount\n5,2025-01-01,shop x,shut,1.50\n3001,2025-01-02,shop y,new,\n")
            .unwrap();
        place.run(&["upsert", "db", "sales", "b.csv"]).ok();
        std::fs::write(place.path("c.csv"), "id,day,store,status,amount\n4000,2025-01-03,shop z,more,2\n").unwrap();
        place.run(&["load", "db", "sales", "c.csv", "--append"]).ok();
        let row = |id: &str| place.run(&["get", "db", "sales", id, "--json"]).ok().json()["row"].clone();
        assert_eq!(row("5"), json!({"id": 5, "day": "2025-01-01", "store": "shop x", "status": "shut", "amount": 1.5}), "{method}");
        assert_eq!(row("7")["status"], json!("open"), "{method}");
        assert!(row("7").get("note").is_none() && row("7")["amount"].is_null(), "{method}");
        let count = |condition: &str| {
            let found = place.run(&["scan", "db", "sales", "--where", condition, "--columns", "id", "--format", "csv"]).ok();
            found.out.lines().count() - 1
        };
        assert_eq!((count("status = 'open'"), count("amount IS NULL"), count("day >= '2025-01-01'")), (2999, 3000, 3), "{method}");
        check(&place);
        // Written anew it is the same; and exported, it has the columns of now.
        let before = place.run(&["scan", "db", "sales", "--index", "sales_pk", "--format", "csv"]).ok().out;
        place.run(&["runstats", "db", "sales"]).ok();
        place.run(&["estimate", "db", "sales", "--json"]).ok();
        place.run(&["report", "db", "sales", "--json"]).ok();
        alter(&["set", "compress=page,page-size=4K,pctfree=5"]);
        check(&place);
        assert_eq!(place.run(&["scan", "db", "sales", "--index", "sales_pk", "--format", "csv"]).ok().out, before, "{method}");
        place.run(&["export", "db", "sales", "out.parquet"]).ok();
        place.run(&["load", "db", "again", "out.parquet", "--primary-key", "id"]).ok();
        assert_eq!(place.run(&["scan", "db", "again", "--index", "again_pk", "--format", "csv"]).ok().out, before, "{method}");
        alter(&["rename", "orders"]);
        place.run(&["alter", "db", "by_day", "rename", "orders_by_day"]).ok();
        place.run(&["alter", "db", "orders_by_day", "set", "format=plain,pctfree=20"]).ok();
        let ordered = place.run(&["scan", "db", "orders", "--index", "orders_by_day", "--columns", "id", "--format", "csv"]).ok();
        assert_eq!(ordered.out.lines().count(), 3003, "{method}");
        check(&place);
    }
}

#[test]
fn what_cannot_be_says_why() {
    let place = Place::new();
    std::fs::write(place.path("a.csv"), "id,word,n\n1,abc,5\n2,defghi,\n").unwrap();
    place.run(&["load", "db", "t", "a.csv", "--primary-key", "id"]).ok();
    place.run(&["create-index", "db", "by_word", "t(word)"]).ok();
    let refused = |code: i32, arguments: &[&str], says: &str| {
        place.run(&[&["alter", "db"], arguments].concat()).fails(code, &[says]);
    };
    refused(1, &["t", "set-not-null", "n"], "the row with primary key (2): column \"n\" is NULL");
    refused(1, &["t", "set-type", "word", "varchar(4)"], "\"defghi\" is no VARCHAR(4)");
    refused(2, &["t", "drop-column", "word"], "index \"by_word\"");
    refused(2, &["t", "drop-column", "id"], "primary key");
    refused(1, &["t", "rename", "by_word"], "by_word");
    refused(1, &["none", "rename", "x"], "no table or index \"none\"");
    refused(2, &["t", "add-column", "x integer NOT NULL"], "needs a DEFAULT");
    refused(2, &["t", "set", "colour=red"], "no attribute");
    refused(2, &["t", "set-type", "word", "colour"], "colour");
    check(&place);
}

#[test]
fn partitions_change_together() {
    let place = Place::new();
    std::fs::write(place.path("a.csv"), text(0..3000)).unwrap();
    let limits = "day: q1 = 2024-04-01, q2 = 2024-07-01, rest = MAXVALUE";
    place.run(&["load", "db", "sales", "a.csv", "--primary-key", "day,id", "--partition-by", limits]).ok();
    let alter = |what: &[&str]| place.run(&[&["alter", "db", "sales"], what].concat()).ok();
    alter(&["add-column", "status VARCHAR(10) DEFAULT 'open'"]);
    alter(&["drop-column", "note"]);
    alter(&["rename-column", "shop", "store"]);
    alter(&["set", "pctfree=7"]);
    check(&place);
    std::fs::write(place.path("b.csv"), "id,day,store,status\n5,2025-01-01,shop x,shut\n9000,2024-01-02,shop y,new\n").unwrap();
    place.run(&["upsert", "db", "sales", "b.csv"]).ok();
    let found = place.run(&["scan", "db", "sales", "--where", "status = 'open'", "--format", "csv"]).ok().out;
    assert_eq!((found.lines().count(), found.lines().next()), (3001, Some("id,day,store,status")));
    place.run(&["reorg", "db", "sales"]).ok();
    place.run(&["partition", "split", "db", "sales", "rest", "q3 = 2024-10-01"]).ok();
    check(&place);
    place.run(&["alter", "db", "sales/q1", "drop-column", "store"]).fails(2, &["is a partition"]);
    let found = place.run(&["scan", "db", "sales", "--format", "csv"]).ok().out;
    assert_eq!(found.lines().count(), 3003);
}

/// What SQL refuses, as a rule or a foreign key would mean nothing then, the commands refuse as well; and what the database keeps for itself is not shown.
#[test]
fn rules_of_sql_are_kept() {
    let place = Place::new();
    let sql = "CREATE TABLE p (id INTEGER PRIMARY KEY, x INTEGER CHECK (x > 0), y INTEGER GENERATED ALWAYS AS (x + 1) STORED);
        CREATE TABLE c (id SERIAL PRIMARY KEY, p INTEGER REFERENCES p, z INTEGER);
        INSERT INTO p VALUES (1, 5); INSERT INTO c (p) VALUES (1);";
    place.run(&["sql", "db", sql]).ok();
    let refused: [&[&str]; 6] = [
        &["alter", "db", "c", "drop-column", "p"],
        &["alter", "db", "p", "rename-column", "x", "w"],
        &["alter", "db", "p", "drop-column", "x"],
        &["alter", "db", "p", "set-type", "id", "DECIMAL(20,0)"],
        &["drop", "db", "p"],
        &["drop", "db", "p_pkey"],
    ];
    for command in refused {
        let error = place.run(command).fails(1, &[]).err;
        assert!(error.contains("2BP01") || error.contains("42804"), "{command:?}: {error}");
    }
    place.run(&["alter", "db", "c", "drop-column", "z"]).ok();
    let shown = place.run(&["sql", "db", ".schema"]).ok().out;
    assert!(shown.contains("CREATE TABLE p") && !shown.contains("pagefold_"), "{shown}");
    place.run(&["sql", "db", "INSERT INTO c (p) VALUES (1); DELETE FROM c; DELETE FROM p"]).ok();
    place.run(&["drop", "db", "c"]).ok();
    place.run(&["drop", "db", "p"]).ok();
    check(&place);
}
