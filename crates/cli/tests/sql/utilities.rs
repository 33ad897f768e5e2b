//! Utilities as statements: ANALYZE, REORG, REINDEX, CHECK, ESTIMATE, ADVISE, BACKUP, SPLIT and MERGE of partitions.

use super::common::Place;
use super::{query, script, signal};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A table of 20,000 rows with an index, one that is divided, and a view.
fn filled() -> Place {
    let place = Place::new();
    let text =
        "create table sale (id integer primary key, shop varchar(20) not null, amount decimal(9,2), note text) with (compress = 'none');
insert into sale select n, 'shop ' || n % 50, n * 0.25, 'nothing to say of number ' || n % 7 from generate_series(1, 20000) s(n);
create index sale_shop on sale (shop) with (format = 'plain');
create table part (day integer, id integer, primary key (day, id)) partition by range (day) (
    partition a values less than (100), partition \"B\" values less than (maxvalue)) with (compress = 'none');
insert into part select n, n from generate_series(1, 300) s(n);
create index part_id on part (id);
create view v as select id from sale;";
    script(&place, &[], text).ok();
    place
}

/// Rows of a statement, as lists of texts.
fn rows(place: &Place, statement: &str) -> Vec<Vec<String>> {
    let out = query(place, statement, "list");
    out.lines().skip(1).map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_table_becomes_as_small_as_was_said() {
    let place = filled();
    let said = rows(&place, "estimate table sale with (sample = all)");
    assert_eq!(said.len(), 25, "five methods, five page sizes");
    let now: Vec<_> = said.iter().filter(|row| row[7] == "true").collect();
    assert_eq!((now.len(), now[0][0].as_str(), now[0][1].as_str()), (1, "none", "16384"));
    // To the page, for each method that is tried.
    for (method, size) in [("page", "16384"), ("huffman", "4096"), ("fixed", "8192")] {
        let line = said.iter().find(|row| row[0] == method && row[1] == size).unwrap();
        let done = rows(&place, &format!("reorg table sale with (compress = '{method}', page_size = {size})"));
        assert_eq!(done.len(), 1);
        assert_eq!((done[0][0].as_str(), number(&done[0][1])), ("sale", 20_000));
        assert_eq!((&done[0][4], &done[0][5]), (&line[2], &line[5]), "{method}");
    }
    let chosen = rows(&place, "reorg table sale with (compress = auto)");
    assert!(chosen[0][6].contains("page") || chosen[0][6].contains("fixed") || chosen[0][6].contains("huffman"), "{chosen:?}");
    assert_eq!(
        query(&place, "select count(*), sum(amount), count(distinct note) from sale", "csv"),
        "count,sum,count\n20000,50002500.00,7\n"
    );
    place.run(&["check", "db"]).ok();
}

#[test]
fn an_index_is_estimated_before_it_is_there_and_written_anew() {
    let place = filled();
    let said = rows(&place, "estimate unique index on sale (shop, id desc) with (sample = all)");
    let line = said.iter().find(|row| row[1] == "prefix" && row[2] == "4096").unwrap().clone();
    script(&place, &[], "create unique index fresh on sale (shop, id desc) with (format = 'prefix', page_size = '4K')").ok();
    let now = rows(&place, "reorg index fresh");
    assert_eq!((number(&now[0][1]), &now[0][5]), (20_000, &line[7]), "{now:?} {line:?}");
    assert!(
        rows(&place, "estimate unique index on sale (shop) with (sample = all)")
            .iter()
            .all(|row| row[10].starts_with("it would be refused"))
    );
    let there = rows(&place, "estimate index sale_shop with (sample_pages = 5)");
    assert!(there.iter().any(|row| row[1] == "plain" && row[9] == "true"), "{there:?}");
    let fold = rows(&place, "reorg index sale_shop with (format = fold, page_size = '32K')");
    assert!(number(&fold[0][5]) < number(&fold[0][3]), "{fold:?}");
    assert_eq!(rows(&place, "reindex table sale").len(), 3);
    assert_eq!(rows(&place, "reindex index part_id").len(), 2, "of both partitions");
    assert_eq!(number(&rows(&place, "reindex index sale_shop")[0][1]), 20_000);
    assert_eq!(query(&place, "select count(*) from sale where shop = 'shop 7'", "csv"), "count\n400\n");
    place.run(&["check", "db"]).ok();
}

#[test]
fn partitions_statistics_advice_and_checks() {
    let place = filled();
    let one = rows(&place, "reorg table part partition \"B\" with (compress = 'page')");
    assert_eq!((one[0][0].as_str(), number(&one[0][1])), ("part/B", 201));
    let stored = query(&place, "select partition_name, method from pagefold_partitions order by 1", "list");
    assert!(stored.contains("B|page") && stored.contains("a|none"), "{stored}");
    assert_eq!(number(&rows(&place, "reorg table part")[0][1]), 300);
    // Without VERBOSE nothing is said.
    assert_eq!(place.run(&["sql", "db", "analyze"]).ok().out, "");
    let figures = rows(&place, "analyze verbose sale, part with (sample = '50%')");
    let of = |object: &str, column: &str, figure: &str| {
        let found = figures.iter().find(|row| row[0] == object && row[1] == column && row[2] == figure);
        found.map(|row| row[3..6].iter().map(|text| text.parse().unwrap()).collect::<Vec<f64>>())
    };
    let shops = of("sale", "shop", "distinct_values").unwrap();
    assert!(shops[1] <= 50.0 && 50.0 <= shops[2], "{shops:?}");
    assert_eq!(of("sale", "", "rows").unwrap()[0], 20_000.0);
    assert!(of("sale_shop", "", "levels").is_some() && of("part/a", "day", "null_share").is_some());
    let advice = rows(&place, "advise sale with (sample_pages = 100)");
    assert_eq!(advice.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["sale", "sale_pkey", "sale_shop"]);
    assert_eq!(rows(&place, "check"), Vec::<Vec<String>>::new());
    // What is advised can be run as it stands.
    let out = query(&place, "advise", "json");
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    let mut advised = 0;
    for row in all.as_array().unwrap() {
        if let Some(statement) = row["statement"].as_str() {
            advised += 1;
            let done = query(&place, statement, "json");
            let done: serde_json::Value = serde_json::from_str(&done).unwrap();
            assert_eq!(
                done[0]["bytes"].as_u64().unwrap().abs_diff(row["bytes_then"].as_u64().unwrap()) * 20 / row["bytes_then"].as_u64().unwrap(),
                0
            );
        }
    }
    assert!(advised > 0, "{out}");
    assert_eq!(rows(&place, "check"), Vec::<Vec<String>>::new());
}

#[test]
fn partitions_are_divided_and_become_one() {
    let place = filled();
    script(
        &place,
        &[],
        "create table owner (day integer, id integer, foreign key (day, id) references part (day, id));
insert into owner values (7, 7), (250, 250);
comment on table part is 'by days';
alter table part split partition \"B\" at (150 + 50) into (partition b1, partition \"B 2\");
alter table part split partition a at (50) into (a, a2);",
    )
    .ok();
    let partitions = "select partition_name, less_than, rows from pagefold_partitions order by rows, 1";
    assert_eq!(rows(&place, partitions), [["a", "50", "49"], ["a2", "100", "50"], ["b1", "200", "100"], ["B 2", "MAXVALUE", "101"]]);
    let all = "select count(*), sum(id), min(day), max(day) from part where id > 0";
    assert_eq!(query(&place, all, "csv"), "count,sum,min,max\n300,45150,1,300\n");
    script(
        &place,
        &[],
        "alter table part merge partitions a2, b1, \"B 2\" into partition rest;
insert into part values (1000, 1);
delete from owner where id = 7;
delete from part where id = 7;",
    )
    .ok();
    assert_eq!(rows(&place, partitions), [["a", "50", "48"], ["rest", "MAXVALUE", "252"]]);
    // The foreign key is there still.
    script(&place, &[], "delete from part where id = 250;").fails(1, &["23503"]);
    assert_eq!(rows(&place, "select count(*) from part where id between 1 and 300"), [["300"]], "by the index of all partitions");
    place.run(&["check", "db"]).ok();
    for (statement, sqlstate) in [
        ("alter table part split partition x at (10) into (p, q)", "42P01"),
        ("alter table part split partition a at (50) into (p, q)", "22023"),
        ("alter table part split partition a at (null) into (p, q)", "42P16"),
        ("alter table part split partition a at (10, 20, 30) into (p, q)", "42P16"),
        ("alter table part split partition a at ('x') into (p, q)", "22P02"),
        ("alter table part split partition a at (10) into (rest, q)", "42P07"),
        ("alter table part split partition a at (10) into (p, p)", "42P07"),
        ("alter table part merge partitions rest, a into x", "22023"),
        ("alter table part merge partitions a into x", "22023"),
        ("alter table sale split partition a at (10) into (p, q)", "42809"),
        ("begin; alter table part merge partitions a, rest into x", "25001"),
        ("set default_transaction_read_only = on; alter table part merge partitions a, rest into x", "25006"),
        ("alter table part split partition a at 10 into (p, q)", "42601"),
    ] {
        let run = script(&place, &[], &format!("{statement};"));
        assert!(run.code == Some(1) && run.err.contains(sqlstate), "{statement}: {run:?}");
    }
    assert_eq!(rows(&place, partitions).len(), 2, "nothing of that has happened");
    place.run(&["check", "db"]).ok();
}

/// Of what the database says of itself.
#[test]
fn relations_of_the_database_are_described() {
    let place = Place::new();
    let out = script(&place, &["--format", "csv"], "\\d pagefold_log\n\\d information_schema.schemata\n").ok().out;
    assert!(out.contains("checkpoints,bigint\n") && out.contains("schema_name,varchar\n"), "{out}");
    let granted = query(&place, "select count(*) from pagefold_locks where is_granted", "csv");
    assert_eq!(granted, "count\n0\n");
}

#[test]
fn a_backup_becomes_a_database() {
    let place = filled();
    place.run(&["sql", "db", "backup to 'full.pfc'"]).ok();
    script(&place, &[], "delete from sale where id > 100").ok();
    place.run(&["sql", "db", "backup to 'then.pfc' with (base = 'full.pfc')"]).ok();
    place.run(&["sql", "db", "backup table part to 'part.pfc'"]).ok();
    place.run(&["check", "full.pfc"]).ok();
    place.run(&["check", "part.pfc"]).ok();
    place.run(&["recover", "again", "full.pfc", "then.pfc"]).ok();
    let told = place.run(&["recover", "db", "part.pfc", "--table", "part", "--replace"]);
    assert!(told.code == Some(0) && !told.out.contains("are gone"), "{told:?}");
    assert_eq!(place.run(&["sql", "again", "select count(*) from sale", "--format", "csv"]).ok().out, "count\n100\n");
    for (statement, code) in [
        ("backup to 'full.pfc'", "58P02"),
        ("backup to 'db/x'", "42501"),
        ("backup to 'nowhere/x'", "58P01"),
        ("backup to 'y' with (base = 'nothing')", "58P01"),
        ("backup to 'y' with (base = 'db/control')", "22023"),
        ("backup to 'y' with (base = null)", "42601"),
        ("backup to 'y' with (speed = 9)", "22023"),
        ("backup table v to 'y'", "42809"),
        ("backup", "42601"),
    ] {
        place.run(&["sql", "db", statement]).fails(1, &[code]);
        assert!(!place.path("y").exists() && !place.path("y.partial").exists());
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let place = filled();
    let refused = [
        ("begin; reorg table sale", "25001"),
        ("begin; check", "25001"),
        ("reorg table nothing", "42P01"),
        ("reorg table v", "42809"),
        ("reorg table sale_shop", "42809"),
        ("analyze sale_shop", "42809"),
        ("reorg table part with (compress = auto)", "0A000"),
        ("estimate table part", "0A000"),
        ("estimate index on part (id)", "0A000"),
        ("estimate index part_id", "0A000"),
        ("estimate table sale with (sample = all, sample_pages = 3)", "42601"),
        ("estimate table sale with (sample = null)", "42601"),
        ("reorg table sale partition a", "42P01"),
        ("reorg table part partition c", "42P01"),
        ("reorg index sale", "42809"),
        ("reorg index nothing", "42704"),
        ("reorg sale", "42601"),
        ("reorg table sale with (compress = 'zip')", "22023"),
        ("reorg table sale with (compress = 'page', compress = 'row')", "42601"),
        ("reorg table sale with (page_size = 3000)", "22023"),
        ("reorg table sale with (format = 'fold')", "22023"),
        ("reorg index sale_shop with (compress = 'page')", "22023"),
        ("reorg table sale with (order = 'nothing')", "22023"),
        ("reorg table sale with (compress = auto, keep_dictionary)", "22023"),
        ("reorg table sale with (pctfree = 100)", "22023"),
        ("reorg table sale with (incremental, compress = 'row')", "22023"),
        ("reorg table sale with (max_rows = 5)", "22023"),
        ("reorg table sale with (incremental, max_rows = 0)", "22023"),
        ("reorg index sale_shop with (incremental)", "22023"),
        ("reindex index sale", "42809"),
        ("check sale", "42601"),
        ("check with (sample = 1)", "42601"),
        ("analyze sale (shop)", "0A000"),
        ("analyze sale with (sample = 0)", "22023"),
        ("analyze nothing", "42P01"),
        ("estimate table sale with (sample_pages = -1)", "22023"),
        ("estimate index on sale (nothing)", "42703"),
        ("estimate index on v (id)", "42809"),
        ("advise sale with (sample = 10)", "22023"),
        ("set default_transaction_read_only = on; reorg table sale", "25006"),
        ("set default_transaction_read_only = on; analyze", "25006"),
        ("explain reorg table sale", "42601"),
        ("prepare p as analyze", "42601"),
    ];
    for (statement, code) in refused {
        let run = script(&place, &[], &format!("{statement};"));
        assert!(run.code == Some(1) && run.err.contains(code), "{statement}: {run:?}");
    }
    // Where it stands, and what would help.
    script(&place, &[], "select 1;\nreorg table\n  nothing;").fails(1, &["stdin:3: 42P01"]);
    script(&place, &[], "estimate table part;").fails(1, &["HINT: Name one: TABLE part PARTITION a."]);
    script(&place, &[], "reorg table sale with (compress = 'zip');").fails(1, &["There are none, row, page, fixed, huffman and auto."]);
    for statement in ["estimate table sale", "estimate table part partition a", "estimate index \"part_id/a\"", "check", "advise"] {
        place.run(&["sql", "db", "--read-only", statement]).ok();
    }
    place.run(&["sql", "db", "--read-only", "analyze"]).fails(1, &[]);
    assert_eq!(query(&place, "select count(*) from sale", "csv"), "count\n20000\n");
}

/// Kept plans have tables: those of before a REORG or DROP go, and with them files.
#[test]
fn files_of_what_is_gone_do_not_stay() {
    let place = filled();
    let files = || std::fs::read_dir(place.path("db/data")).unwrap().count();
    let before = files();
    let mut text = String::new();
    for round in 0..5 {
        text +=
            &format!("reorg table sale; select {round}, max(note) from sale; reorg index sale_shop; select max(id) - {round} from sale;\n");
        text += &format!("create table z as select id from sale where id < 50; select {round}, max(id) from z; drop table z;\n");
    }
    script(&place, &[], &text).ok();
    assert_eq!(files(), before);
    place.run(&["check", "db"]).ok();
}

/// A statement that takes long ends with Ctrl-C, and by its time; the table is as it was.
#[test]
fn a_reorg_is_stopped() {
    let place = filled();
    script(&place, &[], "insert into sale select n, 'shop ' || n % 5000, n, repeat('x' || n, 10) from generate_series(20001, 150000) s(n)")
        .ok();
    let before = query(&place, "select method from pagefold_tables where table_name = 'sale'", "csv");
    script(&place, &[], "set statement_timeout = 1; reorg table sale with (compress = 'huffman');").fails(1, &["57014", "timeout"]);
    let began = Instant::now();
    let child = place
        .command(&["sql", "db", "reorg table sale with (compress = 'huffman')"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    // A machine may be so fast that it was done.
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("57014"), "{told}");
        assert_eq!(query(&place, "select method from pagefold_tables where table_name = 'sale'", "csv"), before);
    }
    assert!(began.elapsed() < Duration::from_secs(120));
    place.run(&["check", "db"]).ok();
    assert_eq!(query(&place, "select count(*) from sale", "csv"), "count\n150000\n");
}

#[test]
fn thin_pages_are_emptied_where_the_table_lies() {
    let place = filled();
    script(&place, &[], "delete from sale where id % 5 <> 0; delete from part where day % 3 <> 0;").ok();
    let sum = "select count(*), sum(amount), count(distinct note) from sale";
    let before = query(&place, sum, "csv");
    let done = rows(&place, "reorg table sale with (incremental = true, max_rows = 50)");
    assert_eq!((done[0][0].as_str(), number(&done[0][1])), ("sale", 4_000));
    assert!(number(&done[0][4]) * 10 <= number(&done[0][2]) * 3, "a fifth of the rows is left: {done:?}");
    let again = place.run(&["reorg", "db", "sale", "--incremental"]).ok().out;
    assert!(again.contains("\"sale\": 0 rows moved") && again.contains(" 0 pages free"), "{again}");
    assert_eq!(number(&rows(&place, "reorg table part with (incremental)")[0][1]), 100);
    assert_eq!(query(&place, sum, "csv"), before);
    assert_eq!(query(&place, "select count(*) from sale where shop = 'shop 5'", "csv"), "count\n400\n");
    place.run(&["check", "db"]).ok();
}
