//! What SQL says of a partitioned table holds whatever comes of its partitions: added, rotated, split, merged, exchanged, loaded anew.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Place, Run};

fn sql(place: &Place, statement: &str) -> Run {
    place.run(&["sql", "db", statement])
}

fn answer(place: &Place, query: &str) -> String {
    let run = place.run(&["sql", "db", query, "--format", "csv"]).ok();
    run.out.lines().skip(1).collect::<Vec<_>>().join(" ")
}

/// `s` in two partitions, with a default, a CHECK, a foreign key and comments.
fn place() -> Place {
    let place = Place::new();
    place.write("r.csv", "k,v,p\n1,1,1\n11,2,1\n");
    let columns = ["--columns", "k int not null, v int, p int", "--primary-key", "k"];
    place.run(&[&["load", "db", "s", "r.csv", "--partition-by", "k: q1 = 10, q2 = 20"], &columns[..]].concat()).ok();
    for statement in [
        "create table parent (id int primary key)",
        "insert into parent values (1)",
        "alter table s add constraint pos check (v > 0)",
        "alter table s add constraint of_parent foreign key (p) references parent (id)",
        "alter table s alter v set default 5",
        "comment on table s is 'what it is for'",
        "comment on column s.v is 'a value'",
    ] {
        sql(&place, statement).ok();
    }
    place
}

/// All that was said of `s` holds for rows with this key; nothing stays of them.
fn holds(place: &Place, key: i32) {
    sql(place, &format!("insert into s values ({key}, -1, 1)")).fails(1, &["violates check constraint \"pos\""]);
    sql(place, &format!("insert into s values ({key}, 1, 7)")).fails(1, &["violates foreign key constraint \"of_parent\""]);
    sql(place, &format!("insert into s (k) values ({key})")).ok();
    assert_eq!(answer(place, &format!("select v from s where k = {key}")), "5");
    sql(place, &format!("delete from s where k = {key}")).ok();
    let described = place.run(&["sql", "db", "\\d s"]).ok().out;
    assert!(described.contains("what it is for") && described.contains("a value"), "{described}");
}

#[test]
fn partitions_that_come_have_what_the_table_has() {
    let place = place();
    place.run(&["partition", "add", "db", "s", "q3 = 30"]).ok();
    holds(&place, 25);
    place.run(&["partition", "rotate", "db", "s", "40"]).ok();
    place.run(&["partition", "rotate", "db", "s", "50"]).ok();
    place.run(&["partition", "rotate", "db", "s", "60"]).ok();
    (25..60).step_by(10).filter(|key| *key > 30).for_each(|key| holds(&place, key));
    let names = place.run(&["partition", "list", "db", "s", "--json"]).ok().json();
    let first = names["partitions"][0]["name"].as_str().unwrap().to_owned();
    place.run(&["partition", "split", "db", "s", &first, "low = 35"]).ok();
    [33, 38, 45].iter().for_each(|key| holds(&place, *key));
    place.run(&["partition", "merge", "db", "s", "low", &first, "--into", "one"]).ok();
    [33, 38, 45].iter().for_each(|key| holds(&place, *key));
    // A statement drops it everywhere, too.
    sql(&place, "alter table s drop constraint pos").ok();
    sql(&place, "insert into s values (33, -1, 1)").ok();
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}

#[test]
fn rows_that_are_replaced_leave_the_table_as_it_was() {
    let place = place();
    place.run(&["load", "db", "s", "r.csv", "--replace"]).ok();
    [5, 15].iter().for_each(|key| holds(&place, *key));
    place.run(&["load", "db", "s/q1", "r1.csv", "--replace"]).fails(1, &["r1.csv"]);
    place.write("r1.csv", "k,v,p\n1,1,1\n");
    place.run(&["load", "db", "s/q1", "r1.csv", "--replace"]).ok();
    [5, 15].iter().for_each(|key| holds(&place, *key));
    // Divided otherwise, and with a column less in between, whose place the new table does not have.
    place.run(&["load", "db", "s", "r.csv", "--replace", "--partition-by", "k: all = MAXVALUE"]).ok();
    holds(&place, 100);
    sql(&place, "alter table s add column dropped int; alter table s add column w int default 9 check (w > 3)").ok();
    sql(&place, "alter table s drop column dropped").ok();
    place.write("r.csv", "k,v,p,w\n1,1,1,4\n");
    place.run(&["load", "db", "s", "r.csv", "--replace"]).ok();
    holds(&place, 100);
    sql(&place, "insert into s values (101, 1, 1, 3)").fails(1, &["s_w_check"]);
    sql(&place, "insert into s (k) values (101)").ok();
    assert_eq!(answer(&place, "select w from s where k = 101"), "9");
}

#[test]
fn an_exchange_leaves_what_is_said_with_the_names() {
    let place = Place::new();
    place.write("r.csv", "k,v\n1,1\n11,2\n");
    let columns = ["--columns", "k int not null, v int", "--primary-key", "k"];
    place.run(&[&["load", "db", "s", "r.csv", "--partition-by", "k: q1 = 10, q2 = 20"], &columns[..]].concat()).ok();
    sql(&place, "alter table s alter v set default 5; alter table s add constraint pos check (v > 0)").ok();
    // Only names differ.
    sql(&place, "create table n (k serial primary key, v int default 77, constraint other check (v > 0))").ok();
    sql(&place, "insert into n (v) values (2)").ok();
    place.run(&["partition", "exchange", "db", "s", "q1", "n"]).ok();
    sql(&place, "insert into s (k) values (5), (15)").ok();
    assert_eq!(answer(&place, "select v from s where k in (5, 15)"), "5 5");
    sql(&place, "insert into s (v) values (1)").fails(1, &["null value in column \"k\""]);
    sql(&place, "insert into n values (default, default)").ok();
    sql(&place, "insert into n values (default, -1)").fails(1, &["\"other\""]);
    assert_eq!(answer(&place, "select v from n order by v"), "1 77");
    sql(&place, "alter table s drop constraint pos; alter table n drop constraint other").ok();
    sql(&place, "insert into s values (6, -1), (16, -1); insert into n values (8, -1)").ok();
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}

#[test]
fn a_partition_alone_has_no_definitions_of_its_own() {
    let place = place();
    for operation in [
        "add constraint big check (v > 100)",
        "add constraint v_key unique (v)",
        "add constraint again foreign key (v) references parent (id)",
        "drop constraint pos",
        "alter v set default 6",
        "alter v drop default",
        "alter v set not null",
        "alter k drop not null",
        "alter v type bigint",
        "add column w int",
        "drop column v",
        "rename column v to w",
        "rename to other",
    ] {
        sql(&place, &format!("alter table \"s/q2\" {operation}")).fails(1, &["partition \"s/q2\" alone is not supported"]);
        sql(&place, &format!("alter table \"s/q1\" {operation}")).fails(1, &["Its columns and constraints are those of \"s\""]);
    }
    sql(&place, "comment on table \"s/q1\" is 'other'").fails(1, &["partition \"s/q1\""]);
    sql(&place, "comment on column \"s/q1\".v is 'other'").fails(1, &["partition \"s/q1\""]);
    sql(&place, "alter table \"s/q2\" set (pctfree = 20)").ok();
    [5, 15].iter().for_each(|key| holds(&place, *key));
}

#[test]
fn a_key_that_is_there_is_the_only_one() {
    let place = Place::new();
    sql(&place, "create table t (id int primary key, v int); create table u (id int, constraint named primary key (id))").ok();
    sql(&place, "create unique index a_first on t (id)").ok();
    place.write("t.csv", "id,v\n1,1\n2,2\n");
    place.write("u.csv", "id\n1\n");
    let indexes = |table: &str| {
        let report = place.run(&["report", "db", "--json"]).ok().json();
        let of_table = report["indexes"].as_array().unwrap().iter().filter(|index| index["table"] == table);
        let mut names: Vec<String> = of_table.map(|index| index["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    place.run(&["load", "db", "t", "t.csv", "--replace"]).ok();
    assert_eq!(indexes("t"), ["a_first", "t_pkey"]);
    place.run(&["load", "db", "t", "t.csv", "--replace", "--primary-key", "id"]).ok();
    assert_eq!(indexes("t"), ["a_first", "t_pkey"]);
    place.run(&["load", "db", "u", "u.csv", "--replace"]).ok();
    assert_eq!(indexes("u"), ["named"]);
    // A table that becomes a divided one, and is loaded again.
    for _ in 0..2 {
        place.run(&["load", "db", "u", "u.csv", "--replace", "--partition-by", "id: p = MAXVALUE"]).ok();
        assert_eq!(indexes("u/p"), ["named/p"]);
    }
    place.run(&["load", "db", "new", "u.csv", "--primary-key", "id"]).ok();
    assert_eq!(indexes("new"), ["new_pk"]);
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}

/// Which rows a partition has, and whether others refer to these, no command looks at: so none goes as long as somebody may.
#[test]
fn no_partition_goes_that_a_foreign_key_may_refer_to() {
    let place = place();
    sql(&place, "create table child (k int references s (k))").ok();
    sql(&place, "insert into child values (1)").ok();
    place.run(&["load", "db", "other", "r.csv", "--columns", "k int not null, v int, p int", "--primary-key", "k"]).ok();
    let why = ["a foreign key of table \"child\" refers to table \"s\""];
    place.run(&["partition", "drop", "db", "s", "q1"]).fails(2, &why);
    place.run(&["partition", "rotate", "db", "s", "30"]).fails(2, &why);
    place.run(&["partition", "exchange", "db", "s", "q1", "other"]).fails(2, &why);
    assert_eq!(answer(&place, "select count(*) from s where k = 1"), "1");
    // Where rows stay, partitions come and go.
    place.run(&["partition", "split", "db", "s", "q1", "low = 5"]).ok();
    place.run(&["partition", "merge", "db", "s", "low", "q1"]).ok();
    sql(&place, "insert into child values (2)").fails(1, &["violates foreign key constraint"]);
    sql(&place, "drop table child").ok();
    place.run(&["partition", "drop", "db", "s", "q2"]).ok();
}

/// A limit may be negative, and needs no `--` before it; SQL and the commands refuse the same ones.
#[test]
fn limits_are_taken_as_they_are() {
    let place = Place::new();
    place.write("r.csv", "n,v\n-9.50,1\n-1.50,2\n3.00,3\n");
    let columns = ["--columns", "n decimal(5,2) not null, v int", "--primary-key", "n"];
    place.run(&[&["load", "db", "r", "r.csv", "--partition-by", "n: low = -5, mid = 10"], &columns[..]].concat()).ok();
    place.run(&["partition", "split", "db", "r", "mid", "-1.5"]).ok();
    place.run(&["partition", "split", "db", "r", "--json", "low", "-7.25"]).ok();
    place.run(&["partition", "rotate", "db", "r", "-1"]).fails(2, &["not above"]);
    place.run(&["partition", "add", "db", "r", "-20", "--compress", "row"]).fails(2, &["not above"]);
    let listed = place.run(&["partition", "list", "db", "r", "--json"]).ok().json();
    let limits: Vec<&str> = listed["partitions"].as_array().unwrap().iter().map(|line| line["limit"].as_str().unwrap()).collect();
    assert_eq!(limits, ["(-7.25)", "(-5.00)", "(-1.50)", "(10.00)"]);
    place.run(&["partition", "add", "db", "r", "20.005"]).fails(2, &["column \"n\""]);
    sql(&place, "alter table r add partition p values less than (20.005)").fails(1, &["22023", "20.005", "column \"n\""]);
    sql(&place, "alter table r split partition mid at (2.005) into (partition a, partition b)")
        .fails(1, &["22023", "2.005", "column \"n\""]);
    sql(&place, "alter table r split partition mid at (-0.5) into (partition a, partition b)").ok();
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}

/// An index of all partitions is renamed in each of them, also by the command.
#[test]
fn an_index_of_the_whole_gets_another_name() {
    let place = place();
    place.run(&["create-index", "db", "by_v", "s(v)"]).ok();
    place.run(&["alter", "db", "by_v", "rename", "by_value"]).ok();
    place.run(&["alter", "db", "by_v", "rename", "other"]).fails(1, &["by_v"]);
    place.run(&["alter", "db", "by_value/q1", "rename", "other"]).fails(2, &["by_value"]);
    place.run(&["scan", "db", "s", "--index", "by_value"]).ok();
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
    place.run(&["drop", "db", "by_value"]).ok();
    assert!(place.run(&["check", "db"]).ok().out.contains("no errors"));
}
