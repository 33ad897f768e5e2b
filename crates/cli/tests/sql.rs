//! `pagefold sql`, by the program: scripts, statements as arguments, formats, errors with their places, `.import`, `.schema`, signals.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "sql/copy.rs"]
mod copy;
#[path = "sql/utilities.rs"]
mod utilities;

use common::{Place, Run};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SHIPS: &str = "create table ship (id integer primary key, name varchar(20) not null, price decimal(9,2), built date);
insert into ship values (1, 'Fram', 12.50, '1892-10-26'), (2, 'Vega', null, '1872-01-01'), (3, 'a,\"b\"', -0.05, null);";

/// A script from standard input.
fn script(place: &Place, arguments: &[&str], text: &str) -> Run {
    let mut all = vec!["sql", "db"];
    all.extend(arguments);
    let mut child = place.command(&all).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    // A program that has ended reads no more.
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

fn ships() -> Place {
    let place = Place::new();
    script(&place, &[], SHIPS).ok();
    place
}

fn query(place: &Place, statement: &str, format: &str) -> String {
    place.run(&["sql", "db", statement, "--format", format]).ok().out
}

#[test]
fn each_format() {
    let place = ships();
    let all = "select * from ship order by id";
    assert_eq!(
        query(&place, all, "box"),
        "\
┌────┬───────┬───────┬────────────┐
│ id │ name  │ price │ built      │
├────┼───────┼───────┼────────────┤
│  1 │ Fram  │ 12.50 │ 1892-10-26 │
│  2 │ Vega  │       │ 1872-01-01 │
│  3 │ a,\"b\" │ -0.05 │            │
└────┴───────┴───────┴────────────┘
(3 rows)
"
    );
    assert_eq!(query(&place, all, "csv"), "id,name,price,built\n1,Fram,12.50,1892-10-26\n2,Vega,,1872-01-01\n3,\"a,\"\"b\"\"\",-0.05,\n");
    assert_eq!(
        query(&place, all, "json"),
        "[{\"id\":1,\"name\":\"Fram\",\"price\":12.50,\"built\":\"1892-10-26\"},\n{\"id\":2,\"name\":\"Vega\",\"price\":null,\"built\":\"1872-01-01\"},\n\
         {\"id\":3,\"name\":\"a,\\\"b\\\"\",\"price\":-0.05,\"built\":null}]\n"
    );
    assert_eq!(query(&place, "select id from ship order by id", "jsonlines"), "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    assert_eq!(
        query(&place, "select id, name from ship where id < 3 order by id", "markdown"),
        "| id | name |\n|---:|---|\n| 1 | Fram |\n| 2 | Vega |\n"
    );
    assert_eq!(query(&place, "select id, name from ship where id < 3 order by id", "list"), "id|name\n1|Fram\n2|Vega\n");
    // Without rows.
    assert_eq!(query(&place, "select id from ship where id > 9", "csv"), "id\n");
    assert_eq!(query(&place, "select id from ship where id > 9", "json"), "[]\n");
    assert_eq!(query(&place, "select id from ship where id > 9", "box"), "┌────┐\n│ id │\n├────┤\n└────┘\n(0 rows)\n");
    // With --json each statement gives a document.
    let run = place.run(&["sql", "db", "--json", "select count(*) as n from ship"]).ok();
    assert_eq!(run.json(), serde_json::json!([{ "n": 3 }]));
    let run = place.run(&["sql", "db", "--json", "delete from ship where id = 3"]).ok();
    assert_eq!(run.json(), serde_json::json!({ "tag": "DELETE 1", "rows": 1 }));
}

#[test]
fn parquet_comes_back_as_it_was() {
    let place = ships();
    place.run(&["sql", "db", "select * from ship order by id", "--output", "ships.parquet"]).ok();
    let script_text =
        ".import ships.parquet again --primary-key id\nselect * from ship except select * from again;\nselect count(*) from again;";
    let run = script(&place, &["--format", "list"], script_text).ok();
    assert_eq!(run.out, "id|name|price|built\ncount\n3\n");
    // A second result, and none at all.
    place.run(&["sql", "db", "select 1; select 2", "--output", "x.parquet"]).fails(1, &["has one result"]);
    place.run(&["sql", "db", "select 1", "--format", "parquet"]).fails(1, &["needs a name"]);
    place.run(&["sql", "db", "select 1 / 0", "--output", "none.parquet"]).fails(1, &["22012"]);
    assert!(!place.path("none.parquet").exists());
    // Not over a file of the database.
    place.run(&["sql", "db", "select 1 as a", "--output", "db/x.parquet"]).fails(1, &["directory of the database"]);
    place.run(&["sql", "db", "select 1 as a", "--output", "db/x.csv"]).fails(1, &["directory of the database"]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let place = ships();
    let text = "select 1;\n-- a comment; with a semicolon\nselect\n  nam from ship;\nselect 'not run';\n";
    let run = script(&place, &["--format", "list"], text).fails(1, &["stdin:4: 42703 "]);
    assert!(!run.out.contains("not run"), "{run:?}");
    let run = script(&place, &["--format", "list", "--keep-going"], text).fails(1, &["stdin:4: 42703 "]);
    assert!(run.out.contains("not run"), "{run:?}");
    place.write("a.sql", "select 1;\nselect * from shp;\n");
    script(&place, &[], "\n.read a.sql\nselect 2;").fails(1, &["a.sql:2: 42P01 ", "\nHINT: "]);
    place.run(&["sql", "db", "select 1", "insert into ship (id, name) values (1, 'x')"]).fails(1, &["argument 2:1: 23505 "]);
    script(&place, &[], "select 'open").fails(1, &["stdin:1: 42601 "]);
    script(&place, &[], ".nothing").fails(1, &["stdin:1: ", ".help"]);
    script(&place, &[], ".read nowhere.sql").fails(1, &["nowhere.sql"]);
    let run = place.run(&["sql", "db", "--json", "select nam from ship"]).fails(1, &["42703"]);
    assert_eq!(run.json()["sqlstate"], "42703");
    // Also one that shows only when rows are asked for is all that is written.
    let run = place.run(&["sql", "db", "--json", "select 1 / 0"]).fails(1, &["22012"]);
    assert_eq!(run.json()["sqlstate"], "22012");
    place.run(&["sql", "db", "--format", "nonsense"]).fails(2, &["nonsense"]);
    // Rows that came before an error are whole, and what was begun is closed.
    let run =
        place.run(&["sql", "db", "--format", "json", "select 10 / (3 - i) as x from generate_series(1, 5) as g(i)"]).fails(1, &["22012"]);
    assert_eq!(run.json(), serde_json::json!([{ "x": 5 }, { "x": 10 }]));
}

#[test]
fn a_script_is_cut_as_it_comes() {
    let place = Place::new();
    let mut child = place
        .command(&["sql", "db", "--format", "list"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    // An answer comes before the script has ended.
    stdin.write_all(b".headers off\nselect ';' || $$;$$ /* ; */ || ';'; select 2").unwrap();
    stdin.flush().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), ";;;");
    stdin.write_all(b" + 1").unwrap();
    drop(stdin);
    assert_eq!(lines.next().unwrap().unwrap(), "3");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn transactions_go_over_statements() {
    let place = ships();
    let count = || query(&place, "select count(*) from ship", "csv");
    script(&place, &[], "begin; delete from ship; rollback;").ok();
    assert_eq!(count(), "count\n3\n");
    script(&place, &[], "begin; delete from ship where id = 1; savepoint s; delete from ship; rollback to s; commit;").ok();
    assert_eq!(count(), "count\n2\n");
    // What is open at the end is rolled back, and that is said.
    let run = script(&place, &[], "begin; delete from ship;");
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("WARNING") && run.err.contains("rolled back"), "{run:?}");
    assert_eq!(count(), "count\n2\n");
    // After an error within a transaction nothing counts.
    let run = script(&place, &["--keep-going"], "begin; delete from ship; select nothing; select 1; commit;").fails(1, &["42703", "25P02"]);
    assert!(!run.err.contains("WARNING"), "{run:?}");
    assert_eq!(count(), "count\n2\n");
    // Definitions of the transaction are seen by the shell's commands, and others are not.
    let text = "begin; create table own (a integer); create view seen as select 1 as one;\n.mode list\n.tables\ndrop table ship;\n.tables\nrollback;\n.tables\n";
    let run = script(&place, &[], text).ok();
    assert_eq!(
        run.out,
        "name|kind|rows|compression|comment\nown|table|0|page|\nseen|view|||\nship|table|2|page|\n\
         name|kind|rows|compression|comment\nown|table|0|page|\nseen|view|||\n\
         name|kind|rows|compression|comment\nship|table|2|page|\n"
    );
}

#[test]
fn a_database_is_made_unless_it_is_only_read() {
    let place = Place::new();
    place.run(&["sql", "db", "--read-only", "select 1"]).fails(1, &[]);
    assert!(!place.path("db").exists());
    place.run(&["sql", "db", "select 1"]).ok();
    script(&place, &[], SHIPS).ok();
    assert_eq!(place.run(&["sql", "db", "--read-only", "--format", "csv", "select count(*) from ship"]).ok().out, "count\n3\n");
    place.run(&["sql", "db", "--read-only", "delete from ship"]).fails(1, &["argument 1:1: 25006 "]);
    // Beside a process that writes.
    let mut child = place.command(&["sql", "db"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    stdin.write_all(b"begin; delete from ship;\n.print ready\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert_eq!(place.run(&["sql", "db", "--read-only", "--format", "csv", "select count(*) from ship"]).ok().out, "count\n3\n");
    place.run(&["sql", "db", "select 1"]).fails(1, &[]);
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn definitions_run_again_give_the_same() {
    let place = Place::new();
    let text = "
create schema yard;
create sequence tickets increment by 5 start with 100 cache 10;
create table yard.\"Dock\" (no smallint primary key, \"order\" text default 'it''s', length double precision check (length > 0));
create table ship (
    id integer generated always as identity (increment by 2 start with 10) primary key,
    name varchar(20) not null default 'none',
    price decimal(9,2), built timestamp(3) with time zone, mark char(3), key bytea, code uuid, fast boolean default true,
    twice decimal(12,2) generated always as (price * 2) stored,
    ticket bigint default nextval('tickets'),
    unique (name, built),
    constraint sane check (price is null or price >= 0)
) with (compress = 'huffman', page_size = '4K', pctfree = 10, key_format = 'fold', key_page_size = '16K', key_pctfree = 3);
create table small (a bigserial, b integer) with (compress = 'none', page_size = '32K');
create index by_price on ship (price desc, name) with (format = 'fold', page_size = '16K');
create unique index by_code on ship (code);
create view zz_all as select * from ship;
create view a_cheap as select name, price from zz_all where price < 10 with local check option;
create view b_cheap (called) as select name from a_cheap with check option;
comment on table ship is 'all of them; isn''t it';
comment on column ship.name is 'as painted';
";
    script(&place, &[], text).ok();
    let schema = script(&place, &[], ".schema").ok().out;
    for part in [
        "GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 2)",
        "compress = 'huffman', page_size = '4K', pctfree = 10, key_format = 'fold', key_page_size = '16K', key_pctfree = 3",
        "by_price",
        "format = 'fold', page_size = '16K'",
        "yard.\"Dock\"",
        "CREATE VIEW a_cheap WITH (check_option = 'local') AS SELECT",
        "CREATE VIEW b_cheap WITH (check_option = 'cascaded') AS SELECT",
    ] {
        assert!(schema.contains(part), "{part} is not in {schema}");
    }
    let again = Place::new();
    script(&again, &[], &schema).ok();
    assert_eq!(script(&again, &[], ".schema").ok().out, schema);
    // It does the same, too.
    let rows = "insert into ship (name, price) values ('Fram', 4); select id, name, twice, fast, ticket from ship;";
    assert_eq!(script(&again, &["--format", "list"], rows).ok().out, "id|name|twice|fast|ticket\n10|Fram|8.00|true|100\n");
    script(&again, &[], "insert into ship (name, price) values ('x', -1);").fails(1, &["23514", "sane"]);
    let one = script(&place, &[], ".schema yard.\"Dock\"").ok().out;
    assert!(schema.contains(one.trim_end()), "{one}");
    script(&place, &[], ".schema nothing").fails(1, &["nothing"]);
    // Every method and format.
    let place = Place::new();
    let mut text = String::new();
    for (number, method) in ["none", "row", "page", "fixed", "huffman"].iter().enumerate() {
        text += &format!("create table t{number} (a integer primary key, b text) with (compress = '{method}', page_size = '8K');\n");
        for format in ["plain", "fold", "prefix"] {
            text += &format!("create index t{number}_{format} on t{number} (b desc, a) with (format = '{format}', page_size = '8K');\n");
        }
    }
    script(&place, &[], &text).ok();
    let schema = script(&place, &[], ".schema").ok().out;
    let again = Place::new();
    script(&again, &[], &schema).ok();
    assert_eq!(script(&again, &[], ".schema").ok().out, schema);
    let lines = script(&again, &["--format", "list"], ".indexes t4").ok().out;
    assert!(lines.contains("t4_fold (b DESC, a) WITH (format = 'fold', page_size = '8K')"), "{lines}");
}

#[test]
fn what_one_partition_has_of_its_own_is_defined_again() {
    let place = Place::new();
    let text = "
create schema yard;
create table yard.berths (k numeric(5, 2), v integer, t text, primary key (k)) partition by range (k) (
    partition \"Low\" values less than (-1.5), partition mid values less than (10) with (compress = 'none', page_size = '4K'),
    partition high values less than (maxvalue)) with (compress = 'row', page_size = '8K', pctfree = 5, maxrows = 100);
create index by_v on yard.berths (v);
alter table yard.\"berths/mid\" set (pctfree = 20, maxrows = 50);
alter table yard.\"berths/high\" set (maxrows = 7, pool = 'own');
reorg index \"by_v/high\" with (format = 'fold', page_size = '16K', pctfree = 3);
reorg index yard.\"berths_pkey/mid\" with (format = 'plain', page_size = '4K');
create unique index of_mid on yard.\"berths/mid\" (t desc, v) with (page_size = '4K');
";
    script(&place, &[], text).ok();
    let schema = script(&place, &[], ".schema").ok().out;
    for part in [
        "ALTER TABLE yard.\"berths/mid\" SET (pctfree = 20, maxrows = 50);",
        "ALTER TABLE yard.\"berths/high\" SET (maxrows = 7, pool = 'own');",
        "REORG INDEX \"by_v/high\" WITH (format = 'fold', page_size = '16K', pctfree = 3);",
        "REORG INDEX yard.\"berths_pkey/mid\" WITH (format = 'plain', page_size = '4K',",
        "CREATE UNIQUE INDEX of_mid ON yard.\"berths/mid\" (t DESC, v) WITH (format = 'prefix', page_size = '4K'",
    ] {
        assert!(schema.contains(part), "{part} is not in {schema}");
    }
    let indexes = script(&place, &["--format", "list"], ".indexes").ok().out;
    assert!(indexes.contains("of_mid unique, of \"yard.berths/mid\" alone (t DESC, v)"), "{indexes}");
    let again = Place::new();
    script(&again, &[], &schema).ok();
    assert_eq!(script(&again, &[], ".schema").ok().out, schema);
    // Tables of a session are none of the database's.
    assert_eq!(script(&again, &[], "create temp table now (a integer primary key);\n.schema").ok().out, schema);
    let stored = "select * from pagefold_indexes order by 1, 2; select * from pagefold_partitions order by 1, 2;";
    let both = [&place, &again].map(|place| script(place, &["--format", "csv"], stored).ok().out);
    assert_eq!(both[0], both[1]);
    script(&again, &[], "insert into yard.berths select g - 5, g, 'x' from generate_series(1, 30) g;").ok();
    assert!(again.run(&["check", "db"]).ok().out.contains("no errors"));
}

#[test]
fn partitions_with_both_bounds_are_defined_again() {
    let place = Place::new();
    let text = "
create schema yard;
create table yard.berths (k numeric(5, 2), v integer, t text, primary key (k, v)) partition by range (k, v)
    with (compress = 'row', page_size = '8K', pctfree = 5);
create index by_t on yard.berths (t);
create table yard.mid partition of yard.berths for values from (-1.5, 3) to (10, maxvalue) with (compress = 'none', page_size = '4K');
create table yard.low partition of yard.berths for values from (minvalue, minvalue) to (-20, minvalue);
create table yard.\"High\" partition of yard.berths for values from (20, 0) to (maxvalue, maxvalue);
create table empty (a integer) partition by range (a);
";
    script(&place, &[], text).ok();
    let schema = script(&place, &[], ".schema").ok().out;
    // Behind all keys that begin with 10.00 is what is before those with 10.01.
    for part in [
        "CREATE TABLE yard.low PARTITION OF yard.berths FOR VALUES FROM (MINVALUE, MINVALUE) TO ('-20.00', MINVALUE);",
        "CREATE TABLE yard.mid PARTITION OF yard.berths FOR VALUES FROM ('-1.50', '3') TO ('10.01', MINVALUE) WITH (compress = 'none', page_size = '4K');",
        "CREATE TABLE yard.\"High\" PARTITION OF yard.berths FOR VALUES FROM ('20.00', '0') TO (MAXVALUE, MAXVALUE);",
        "PARTITION BY RANGE (a) WITH",
    ] {
        assert!(schema.contains(part), "{part} is not in {schema}");
    }
    assert!(!schema.contains("template") && !schema.contains("gaps"), "{schema}");
    let again = Place::new();
    script(&again, &[], &schema).ok();
    assert_eq!(script(&again, &[], ".schema").ok().out, schema);
    let stored = "select * from pagefold_indexes order by 1, 2; select * from pagefold_partitions order by 1, 2;";
    let both = [&place, &again].map(|place| script(place, &["--format", "csv"], stored).ok().out);
    assert_eq!(both[0], both[1]);
    script(&again, &[], "insert into yard.berths select g, g, 'x' from generate_series(20, 50) g;").ok();
    let described = script(&again, &[], "\\d yard.berths\n\\d empty\n\\d yard.\"High\"").ok().out;
    for part in ["divided by ranges of (k, v): low, mid, High", "divided by ranges of (a): no partition yet", "yard.berths_pkey/High"] {
        assert!(described.contains(part), "{part} is not in {described}");
    }
    // Commands that know tables by the engine's names, and those that are of all of them.
    let listed = again.run(&["partition", "list", "db", "yard.berths"]).ok().out;
    assert!(listed.contains("High") && !listed.contains("template"), "{listed}");
    for command in [&["advise", "db"][..], &["runstats", "db"], &["reorg", "db", "yard.berths"], &["reorg", "db", "empty"]] {
        again.run(command).ok();
    }
    // Gaps stay when it is loaded anew.
    std::fs::write(again.path("rows.csv"), "k,v,t\n1,1,a\n25,2,b\n").unwrap();
    again.run(&["load", "db", "yard.berths", "rows.csv", "--replace"]).ok();
    assert_eq!(script(&again, &["--format", "csv"], "select count(*) from yard.\"High\"").ok().out.lines().nth(1), Some("1"));
    script(&again, &[], "insert into yard.berths values (15, 1, 'in a gap')").fails(1, &["23514"]);
    assert!(again.run(&["check", "db"]).ok().out.contains("no errors"));
}

#[test]
fn what_there_is_is_described() {
    let place = ships();
    let run = script(&place, &[], "create index by_name on ship (name);\n\\d ship\n\\d\n\\di\n\\l\n\\dt s%\n\\dt x*\n").ok();
    for part in [
        "│ column │ type         │ null     │",
        "│ id     │ INTEGER      │ not null │",
        "ship_pkey primary key, (id)",
        "by_name (name)",
        "WITH (compress = 'page', page_size = '16K')",
        "│ ship │ table │    3 │ page ",
        "(0 rows)",
    ] {
        assert!(run.out.contains(part), "{part} is not in {}", run.out);
    }
    script(&place, &[], "\\d nothing").fails(1, &["nothing"]);
    // A table that is divided is one table.
    let place = Place::new();
    place.write("t.csv", "id,day\n1,2024-01-01\n2,2024-08-01\n");
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id,day", "--partition-by", "day: a = 2024-07-01, b = MAXVALUE"]).ok();
    let run = script(&place, &["--format", "list"], ".tables\n.schema\n").ok();
    assert!(
        run.out.contains("\nt|partitioned table|2|page|\n")
            && run.out.contains("\n) PARTITION BY RANGE (day) (\n    PARTITION a VALUES LESS THAN ('2024-07-01'),"),
        "{}",
        run.out
    );
    assert_eq!(run.out.matches("CREATE TABLE").count(), 1, "{}", run.out);
    // What is printed makes the same again, whatever the limits are.
    let text = "CREATE TABLE two (a INTEGER, \"B c\" TEXT, d DECIMAL(8, 2)) PARTITION BY RANGE (a, \"B c\", d) \
                (PARTITION p0 VALUES LESS THAN (-7, 'it''s', 1.50) WITH (compress = 'huffman'), \
                PARTITION \"P 1\" VALUES LESS THAN (-7, MAXVALUE), PARTITION p2 VALUES LESS THAN (5)) WITH (compress = 'row', page_size = '4K');\n\
                ALTER TABLE two ADD PARTITION p3 VALUES LESS THAN MAXVALUE WITH (page_size = '8K');\n.schema two\n";
    let first = script(&place, &["--format", "list"], text).ok();
    let other = Place::new();
    let schema = first.out.split_once("CREATE TABLE").unwrap().1;
    assert!(schema.contains("LESS THAN ('-7', 'it''s', '1.50'),"), "{schema}");
    let again = script(&other, &["--format", "list"], &format!("CREATE TABLE{schema}.schema two\n")).ok();
    assert_eq!(again.out.split_once("CREATE TABLE").unwrap().1, schema);
}

#[test]
fn files_are_imported() {
    let place = Place::new();
    let rows: String = (0..5000).map(|i| format!("{i},\"name; {i}\",{}.25\n", i * 3)).collect();
    place.write("rows.csv", &format!("id,name,price\n{rows}"));
    let text = ".import rows.csv stock --primary-key id --compress fixed\nselect count(*), sum(price), min(name) from stock;\n.import rows.csv stock\n";
    let run = script(&place, &["--format", "list"], text).fails(1, &["stdin:3: "]);
    assert_eq!(run.out, "count|sum|min\n5000|37493750.00|name; 0\n", "{run:?}");
    place.write("more.csv", "id,name,price\n5000,new,1.00\n");
    let run = script(&place, &["--format", "list"], ".import more.csv stock\nselect count(*) from stock;").ok();
    assert_eq!(run.out, "count\n5001\n");
    script(&place, &[], "begin;\n.import more.csv stock\n").fails(1, &["stdin:2: ", "COMMIT"]);
    script(&place, &[], ".import nowhere.csv stock\n").fails(1, &["nowhere.csv"]);
    script(&place, &[], ".import more.csv stock --nonsense\n").fails(1, &["nonsense"]);
    place.run(&["check", "db"]).ok();
    // Text that goes to files, and comes back.
    let text = ".mode csv\n.once once.csv\nselect id, name from stock where id < 2 order by id;\n.output all.csv\nselect 1 as a;\n.headers off\nselect 2;\n.output\n.print \"done it\"\n.nullvalue NULL\nselect null;";
    assert_eq!(script(&place, &[], text).ok().out, "done it\nNULL\n");
    assert_eq!(std::fs::read_to_string(place.path("once.csv")).unwrap(), "id,name\n0,name; 0\n1,name; 1\n");
    assert_eq!(std::fs::read_to_string(place.path("all.csv")).unwrap(), "a\n1\n2\n");
}

#[test]
fn real_data_is_imported() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/airports.csv");
    if !data.exists() {
        println!("skipped: {} is not there", data.display());
        return;
    }
    let place = Place::new();
    let text = format!(".import '{}' airport --header no --null '\\N'\nselect count(*) as airports from airport;", data.display());
    assert_eq!(script(&place, &["--format", "list"], &text).ok().out, "airports\n7698\n");
}

/// Kilobytes that a process has had at most.
fn peak_kb(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[test]
fn large_results_and_scripts_take_no_more_memory() {
    let place = Place::new();
    place.run(&["sql", "db", "select 1"]).ok();
    for format in ["box", "json", "csv"] {
        let statement = "select i, repeat('x', 100) as filler from generate_series(1, 300000) as g(i)";
        let mut child = place
            .command(&["sql", "db", "--memory", "8M", "--format", format, statement])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (mut bytes, mut peak, mut buffer) = (0_usize, 0, vec![0; 1 << 20]);
        loop {
            let read = std::io::Read::read(&mut out, &mut buffer).unwrap();
            peak = peak_kb(&child).unwrap_or(0).max(peak);
            if read == 0 {
                break;
            }
            bytes += read;
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(bytes > 20_000_000, "{format}: {bytes}");
        assert!(peak > 0 && peak < 60_000, "{format}: {peak} KB");
    }
    // A script of 10 MB.
    let mut child =
        place.command(&["sql", "db", "--memory", "8M", "--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut peak = 0;
    for i in 0..100 {
        let block: String = (0..1000).map(|k| format!("select {i} + {k}; -- {}\n", "x".repeat(80))).collect();
        stdin.write_all(block.as_bytes()).unwrap();
        peak = peak_kb(&child).unwrap_or(0).max(peak);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(peak > 0 && peak < 60_000, "{peak} KB");
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn an_interrupt_cancels_the_statement() {
    let place = ships();
    let long = "select count(*) from generate_series(1, 100000000000)";
    for name in ["-INT", "-TERM"] {
        // The statement changes rows before: a transaction of its own stays, the open one goes.
        let text = format!("delete from ship where id = 3;\nbegin; delete from ship;\n.print ready\n{long};\nselect 'not run';\n");
        let mut child = place.command(&["sql", "db"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        signal(&child, name);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        let run: Run = child.wait_with_output().unwrap().into();
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.err.contains("stdin:4: 57014"), "{run:?}");
        assert!(!rest.contains("not run"), "{rest}");
        drop(stdin);
        assert_eq!(query(&place, "select count(*) from ship", "csv"), "count\n2\n");
    }
    // While it waits for its script.
    let mut child = place.command(&["sql", "db"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"begin; delete from ship;\n.print ready\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(query(&place, "select count(*) from ship", "csv"), "count\n2\n");
    place.run(&["check", "db"]).ok();
}

#[test]
fn what_was_committed_survives_a_kill() {
    let place = Place::new();
    place.run(&["sql", "db", "create table t (id integer primary key, name text)"]).ok();
    let mut next = 0;
    for round in 0..4 {
        let mut child = place
            .command(&["sql", "db", "--format", "list"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let from = next;
        let writer = std::thread::spawn(move || {
            for id in from..from + 100_000 {
                // Each second one is said to be there when it is committed.
                if stdin.write_all(format!("insert into t values ({id}, 'name {id}') returning id;\n").as_bytes()).is_err() {
                    return;
                }
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 100 + round * 37;
        let mut told = Vec::new();
        while told.len() < wanted {
            let line = lines.next().unwrap().unwrap();
            told.extend(line.parse::<u32>());
        }
        child.kill().unwrap();
        // What had been told when it was killed counts, too.
        told.extend(lines.map_while(Result::ok).filter_map(|line| line.parse::<u32>().ok()));
        child.wait().unwrap();
        writer.join().unwrap();
        // A row is told before its transaction is committed: the last one may lack.
        let told = told.len() as u32;
        let rows: u32 = query(&place, "select count(*) from t", "csv").lines().nth(1).unwrap().parse().unwrap();
        assert!(rows - from >= told - 1, "{rows} rows, {from} before, {told} told");
        assert_eq!(query(&place, "select max(id) + 1 - count(*) as gap from t", "csv"), "gap\n0\n");
        next = rows;
    }
    place.run(&["check", "db"]).ok();
}

/// What a program has written so far.
#[derive(Clone, Default)]
struct Seen(std::sync::Arc<std::sync::Mutex<String>>);

impl Seen {
    /// Waits for this text behind what was seen before.
    #[track_caller]
    fn wait_for(&self, text: &str, from: usize) -> usize {
        let began = Instant::now();
        loop {
            let seen = self.0.lock().unwrap().clone();
            if let Some(at) = seen[from..].find(text) {
                return from + at + text.len();
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{text:?} does not come: {seen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[test]
fn the_prompt_and_the_keys() {
    let place = ships();
    // The shell that `script` starts gives its place to the program: Ctrl-C would end one that waits.
    let command = format!("exec {} sql db", common::PROGRAM);
    let child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(place.directory.path())
        .env("PAGEFOLD_HISTORY", place.path("history"))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("PAGER", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        println!("skipped: there is no `script`");
        return;
    };
    let mut child = Ended(child);
    let child = &mut child.0;
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let seen = Seen::default();
    let all = seen.clone();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read) = std::io::Read::read(&mut stdout, &mut buffer)
            && read > 0
        {
            all.0.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    });
    // What is waited for, and what is typed then.
    let steps = [
        ("pagefold=> ", "select name\r"),
        ("pagefold-> ", "from ship where id = 1;\r"),
        ("Fram", ""),
        ("(1 row)", ""),
        ("pagefold=> ", "begin;\r"),
        ("BEGIN", ""),
        ("pagefold=*> ", "select nothing;\r"),
        ("ERROR 42703", ""),
        ("LINE 1: select nothing", ""),
        ("pagefold=!> ", "rollback;\r"),
        ("ROLLBACK", ""),
        // Ctrl-C clears what was typed, and cancels what runs.
        ("pagefold=> ", "select 'unfinished\u{3}"),
        ("pagefold=> ", "select count(*) from generate_series(1, 100000000000);\r"),
        ("100000000000);", ""),
    ];
    let mut at = 0;
    for (text, keys) in steps {
        at = seen.wait_for(text, at);
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    stdin.write_all(b"\x03").unwrap();
    for (text, keys) in [("57014", ""), ("pagefold=> ", "begin;\r"), ("pagefold=*> ", "\u{4}"), ("WARNING", "")] {
        at = seen.wait_for(text, at);
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap();
    let history = std::fs::read_to_string(place.path("history")).unwrap();
    assert!(history.contains("select name\\nfrom ship where id = 1;"), "a statement is one entry: {history}");
    assert!(!history.contains("unfinished"), "{history}");
}

#[test]
fn temporary_tables_are_shown_by_their_short_names() {
    let place = Place::new();
    let made = "create table t (a integer);
create temp table t (id integer generated by default as identity (start with 7 increment by -2 maxvalue 9) primary key, b text default 'x');
create index by_b on t (b);
";
    let shown = script(&place, &["--format", "list"], &format!("{made}\\d t\n\\d public.t\n\\d pg_temp.t\n")).ok().out;
    assert_eq!(shown.matches("b|VARCHAR||'x'|").count(), 2, "{shown}");
    assert_eq!(shown.matches("a|INTEGER").count(), 1, "{shown}");
    let schema = script(&place, &[], &format!("drop table t;\n{made}.schema t\n")).ok().out;
    assert!(schema.starts_with("CREATE TEMPORARY TABLE pg_temp.t ("), "{schema}");
    assert!(schema.contains("(START WITH 7 INCREMENT BY -2 MAXVALUE 9)"), "{schema}");
    assert!(!schema.contains("pg_temp_"), "{schema}");
    // It is read again as what it was.
    let again = Place::new();
    assert_eq!(script(&again, &[], &format!("{schema}\n.schema t\n")).ok().out, schema);
    // A sequence is found that has the name of before.
    let renamed = script(&place, &[], &format!("drop table t;\n{made}alter table pg_temp.t rename to u;\n.schema u\n")).ok().out;
    assert!(renamed.contains("(START WITH 7 INCREMENT BY -2 MAXVALUE 9)"), "{renamed}");
    script(&place, &[], "create temp table u (a integer);\n.schema pg_temp.u\n.schema t\n").ok();
    script(&place, &[], "create temp table u (a integer);\n.schema nothing\n").fails(1, &["nothing"]);
}
