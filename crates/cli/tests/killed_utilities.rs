//! Every utility is killed, or interrupted, at any moment, again and again, on the same database. Afterwards `check` finds nothing, the tables are as they were before or as
//! they are after it, and run again it comes to its end.
//!
//! What it comes to is known from a copy of the database, on which it runs undisturbed.
//!
//! The long run: `PAGEFOLD_KILLS=1000 cargo test --release -p pagefold-cli --test killed_utilities -- --nocapture`
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::changes::Random;
use common::{Place, Run};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rows of the tables at the beginning.
const ROWS: u32 = 12_000;
/// The database begins anew after so many kills: many lie behind it by then.
const KILLS_A_DATABASE: u32 = 25;

const METHODS: [&str; 5] = ["none", "row", "page", "fixed", "huffman"];
const FORMATS: [&str; 3] = ["plain", "fold", "prefix"];

/// What a utility may leave when it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// All of it is done, or nothing.
    AllOrNothing,
    /// Rows stay as they are, and objects may have been written anew one by one.
    SameRows,
    /// Tables that come one by one, each with its rows, and its indexes one by one: when it is killed, this one may be there. It is dropped before another try.
    Table(&'static str),
    /// What it makes lies beside the database: it is removed before another try.
    Beside(&'static str),
}

struct Utility {
    name: &'static str,
    arguments: Vec<String>,
    leaves: Leaves,
}

fn utility(name: &'static str, arguments: &[&str], leaves: Leaves) -> Utility {
    Utility { name, arguments: arguments.iter().map(ToString::to_string).collect(), leaves }
}

/// How many of them there are.
const UTILITIES: u32 = 36;

/// One of them, with options of any kind. In a database whose tables it does not fit it fails, and another one is drawn.
fn any(random: &mut Random, number: u32) -> Utility {
    let mut one_of = |of: &[&'static str]| of[random.below(of.len() as u32) as usize];
    let (method, other) = (one_of(&METHODS), one_of(&METHODS));
    let format = one_of(&FORMATS);
    let size = one_of(&["2K", "4K", "8K", "16K"]);
    // Folded leaves have 8 KB and more.
    let index_size = one_of(if format == "fold" { &["8K", "16K"] } else { &["2K", "4K", "8K"] });
    let partition = one_of(&["a", "b", "c"]);
    let table = one_of(&["t", "p"]);
    let all = Leaves::AllOrNothing;
    match number {
        0 => utility("reorg", &["reorg", "db", "t", "--compress", method, "--page-size", size], all),
        1 => utility("reorg in the order of an index", &["reorg", "db", "t", "--order", "t_name"], all),
        2 => utility("reorg of an index", &["reorg", "db", "t_name", "--format", format, "--page-size", index_size], all),
        3 => utility("reorg of a partition", &["reorg", "db", &format!("p/{partition}"), "--compress", method], all),
        4 => utility("reorg of a partitioned table", &["reorg", "db", "p", "--compress", method], Leaves::SameRows),
        5 => utility(
            "create-index",
            &["create-index", "db", "more", &format!("{table}(amount, id)"), "--format", format, "--page-size", index_size],
            all,
        ),
        6 => utility("rebuild-index", &["rebuild-index", "db", "t_name"], all),
        7 => utility("runstats", &["runstats", "db"], all),
        8 => utility("alter set", &["alter", "db", "t", "set", &format!("compress={method},pctfree=7")], all),
        9 => utility("alter add-column", &["alter", "db", "t", "add-column", "more VARCHAR(10) NOT NULL DEFAULT 'new'"], all),
        10 => utility("alter drop-column", &["alter", "db", "t", "drop-column", "more"], all),
        11 => utility("alter set-type", &["alter", "db", "t", "set-type", "amount", "BIGINT"], all),
        12 => utility("load", &["load", "db", "loaded", "t.csv", "--primary-key", "id", "--compress", method], all),
        13 => utility("load --append", &["load", "db", "t", "more.csv", "--append"], all),
        14 => utility("load --replace", &["load", "db", "t", "t.csv", "--replace"], all),
        15 => utility("load of a SQLite file", &["load", "db", "music.sqlite"], Leaves::Table("song")),
        16 => utility("drop of a table", &["drop", "db", "loaded"], all),
        17 => utility("drop of an index", &["drop", "db", "more"], all),
        18 => utility("partition split", &["partition", "split", "db", "p", "c", "d = 10000"], all),
        19 => utility("partition merge", &["partition", "merge", "db", "p", "a", "b", "--into", "a"], all),
        20 => utility("partition rotate", &["partition", "rotate", "db", "p", "z = MAXVALUE"], all),
        21 => utility("partition drop", &["partition", "drop", "db", "p", partition], all),
        22 => utility("partition exchange", &["partition", "exchange", "db", "p", partition, "beside"], all),
        23 => utility(
            "CREATE TABLE AS",
            &["sql", "db", &format!("CREATE TABLE made WITH (compress = '{other}') AS SELECT * FROM {table}")],
            all,
        ),
        24 => {
            utility("UPDATE", &["sql", "db", &format!("UPDATE {table} SET amount = amount + 1, name = name || '.' WHERE id % 3 = 0")], all)
        }
        25 => utility("DELETE", &["sql", "db", &format!("DELETE FROM {table} WHERE id % 7 = 1")], all),
        26 => utility("TRUNCATE", &["sql", "db", "TRUNCATE beside"], all),
        27 => utility(
            "ALTER of a type and a default",
            &["sql", "db", "ALTER TABLE t ALTER COLUMN name TYPE TEXT, ALTER COLUMN amount SET DEFAULT 3"],
            all,
        ),
        28 => utility("DROP TABLE", &["sql", "db", "DROP TABLE made"], all),
        29 => utility("advise --apply", &["advise", "db", "--apply"], Leaves::SameRows),
        30 => utility("copy", &["copy", "db", "copy.pfc"], Leaves::Beside("copy.pfc")),
        31 => utility("copy into a new database", &["copy", "db", "other"], Leaves::Beside("other")),
        32 => utility("copy --incremental", &["copy", "db", "later.pfc", "--incremental", "first.pfc"], Leaves::Beside("later.pfc")),
        33 => utility("recover", &["recover", "other", "first.pfc", "--log", "db"], Leaves::Beside("other")),
        34 => utility("recover --table", &["recover", "db", "first.pfc", "--table", "t", "--replace"], all),
        35 => utility("export", &["export", "db", "t", "out.parquet"], Leaves::Beside("out.parquet")),
        _ => unreachable!("{number} is no utility"),
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_all(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn remove(path: &Path) {
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else if path.exists() {
        std::fs::remove_file(path).unwrap();
    }
}

/// What the database says it has: definitions, and the rows of each table in an order.
#[derive(Clone, PartialEq, Eq)]
struct State {
    schema: String,
    rows: BTreeMap<String, String>,
}

impl State {
    fn of(place: &Place) -> State {
        let tables =
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = 'public' ORDER BY 1";
        let listed = place.run(&["sql", "db", "--read-only", "--format", "list", tables, ".schema"]).ok().out;
        let mut lines = listed.lines().skip(1);
        let names: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("CREATE")).map(str::to_owned).collect();
        let schema = listed[listed.find("CREATE").unwrap_or(listed.len())..].to_owned();
        let rows = names.into_iter().map(|name| {
            let text = place.run(&["sql", "db", "--read-only", "--format", "csv", &format!("SELECT * FROM \"{name}\"")]).ok().out;
            let mut lines: Vec<&str> = text.lines().collect();
            lines[1..].sort_unstable();
            (name, lines.join("\n"))
        });
        let state = State { rows: rows.collect(), schema };
        assert!(state.rows.contains_key("t"), "{listed}");
        state
    }

    /// Where two differ, in short.
    fn difference(&self, other: &State) -> String {
        let mut text = String::new();
        if self.schema != other.schema {
            text += &format!("definitions:\n{}\n\nand\n{}\n", self.schema, other.schema);
        }
        for name in self.rows.keys().chain(other.rows.keys()) {
            let (own, others) = (self.rows.get(name), other.rows.get(name));
            if own != others {
                let lines = |rows: Option<&String>| rows.map_or("not there".into(), |rows| format!("{} lines", rows.lines().count()));
                text += &format!("table {name}: {} and {}\n", lines(own), lines(others));
            }
        }
        text
    }
}

fn source(ids: std::ops::Range<u32>) -> String {
    let mut text = "id,name,amount\n".to_owned();
    for id in ids {
        let name = ["oak", "elm tree", "a weeping willow by the water", ""][id as usize % 4];
        text += &format!("{id},{name} {},{}\n", id % 500, id / 3);
    }
    text
}

/// A database with a table, one in partitions, and one like a partition of that; and the sources of LOAD.
fn begin() -> Place {
    let place = Place::new();
    place.write("t.csv", &source(0..ROWS));
    place.write("more.csv", &source(ROWS..ROWS * 3 / 2));
    place.write("beside.csv", &source(4000..5000));
    let music = rusqlite::Connection::open(place.path("music.sqlite")).unwrap();
    let made = "CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT NOT NULL, seconds INTEGER); CREATE INDEX song_title ON song (title);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO song SELECT i, 'song ' || i % 311, i % 600 FROM n";
    music.execute_batch(made).unwrap();
    drop(music);
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "page", "--page-size", "4K"]).ok();
    place.run(&["create-index", "db", "t_name", "t(name, id)", "--format", "prefix"]).ok();
    let columns = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount BIGINT";
    let partitioned = format!(
        "CREATE TABLE p ({columns}) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (4000), PARTITION b VALUES LESS THAN (8000), PARTITION c VALUES LESS THAN (MAXVALUE))"
    );
    place.run(&["sql", "db", &partitioned, &format!("CREATE TABLE beside ({columns})")]).ok();
    place.run(&["load", "db", "p", "t.csv", "--append"]).ok();
    place.run(&["load", "db", "beside", "beside.csv", "--append"]).ok();
    place.run(&["copy", "db", "first.pfc"]).ok();
    place
}

/// How often what was done with a utility.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    stopped: u32,
    /// Stopped, and it was done all the same.
    done: u32,
    ended: u32,
}

/// Stops one at some moment; what it was like before is in `before`, and is brought up to date. `None`: it does not fit the database.
fn stop_once(place: &Place, twin: &Place, utility: &Utility, random: &mut Random, before: &mut State) -> Option<Count> {
    let arguments: Vec<&str> = utility.arguments.iter().map(String::as_str).collect();
    for name in ["copy.pfc", "later.pfc", "other", "out.parquet"] {
        remove(&place.path(name));
        remove(&twin.path(name));
    }
    remove(&twin.path("db"));
    copy_all(&place.path("db"), &twin.path("db"));
    let began = Instant::now();
    let undisturbed = twin.run(&arguments);
    let took = began.elapsed();
    assert!(!undisturbed.err.contains("panicked"), "{}: {undisturbed:?}", utility.name);
    if undisturbed.code != Some(0) {
        return None;
    }
    let after = State::of(twin);

    let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let moment = u64::from(random.below(u32::try_from(took.as_micros() * 11 / 10).unwrap().max(1)));
    std::thread::sleep(Duration::from_micros(moment));
    let is_killed = random.below(4) > 0;
    if is_killed {
        child.kill().unwrap();
    } else {
        // One that has ended by now cannot be told.
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    }
    let run = Run::from(child.wait_with_output().unwrap());
    let told = || {
        format!(
            "{}, {arguments:?}, {} after {moment} us of {took:?}: {run:?}",
            utility.name,
            if is_killed { "killed" } else { "interrupted" }
        )
    };
    assert!(run.code.is_none_or(|code| code == 0 || !is_killed && code == 1) && !run.err.contains("panicked"), "{}", told());

    place.run(&["check", "db"]).ok();
    let found = State::of(place);
    let is_done = found == after;
    let fits = match utility.leaves {
        Leaves::AllOrNothing => found == *before || is_done,
        Leaves::SameRows => found.rows == before.rows,
        Leaves::Table(name) => {
            let mut without = found.clone();
            let table = without.rows.remove(name);
            is_done || without.rows == before.rows && table.is_none_or(|rows| after.rows.get(name) == Some(&rows))
        }
        Leaves::Beside(_) => found == *before,
    };
    assert!(fits, "{}\nbefore and now: {}\nafter and now: {}", told(), before.difference(&found), after.difference(&found));
    assert!(run.code != Some(0) || is_done || utility.leaves == Leaves::SameRows, "{}: it ended, but not all is there", told());

    let had_effect = *before != after;
    let count = match run.code {
        Some(0) => Count { ended: 1, ..Count::default() },
        _ => Count { stopped: 1, done: u32::from(is_done && had_effect), ..Count::default() },
    };
    *before = found;
    if run.code != Some(0) && !(is_done && had_effect) {
        match utility.leaves {
            Leaves::Beside(name) => remove(&place.path(name)),
            Leaves::Table(name) if before.rows.contains_key(name) => drop(place.run(&["drop", "db", name]).ok()),
            _ => {}
        }
        let again = place.run(&arguments);
        assert_eq!(again.code, Some(0), "run again, {}: {again:?}", told());
        place.run(&["check", "db"]).ok();
        *before = State::of(place);
        let is_same = *before == after || utility.leaves == Leaves::SameRows && before.rows == after.rows;
        assert!(is_same, "run again, {}\n{}", told(), after.difference(before));
    }
    Some(count)
}

#[test]
fn killed_at_any_moment_a_utility_has_done_all_or_nothing() {
    let kills: u32 = std::env::var("PAGEFOLD_KILLS").map_or(18, |kills| kills.parse().unwrap());
    let mut random = Random(std::env::var("PAGEFOLD_KILLS_SEED").map_or(1, |seed| seed.parse().unwrap()));
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let (mut stopped, mut number, mut misfits) = (0, random.below(UTILITIES), 0);
    while stopped < kills {
        let place = begin();
        let twin = Place::new();
        for name in ["t.csv", "more.csv", "music.sqlite", "first.pfc"] {
            std::fs::copy(place.path(name), twin.path(name)).unwrap();
        }
        let mut before = State::of(&place);
        let end = kills.min(stopped + KILLS_A_DATABASE);
        while stopped < end {
            // All in turn, from any of them on: each is reached.
            number = (number + 1) % UTILITIES;
            let utility = any(&mut random, number);
            let Some(count) = stop_once(&place, &twin, &utility, &mut random, &mut before) else {
                misfits += 1;
                continue;
            };
            let sum = counts.entry(utility.name).or_default();
            *sum = Count { stopped: sum.stopped + count.stopped, done: sum.done + count.done, ended: sum.ended + count.ended };
            stopped += count.stopped;
            if count.stopped > 0 && stopped % 100 == 0 {
                println!("{stopped} stopped");
            }
        }
    }
    for (name, count) in &counts {
        println!("{name}: stopped {}, of these done all the same {}; ended before {}", count.stopped, count.done, count.ended);
    }
    println!("{stopped} stopped; {misfits} did not fit the database");
    // In a long run none is left out.
    assert!(kills < 500 || counts.values().filter(|count| count.stopped > 0).count() == UTILITIES as usize, "{counts:?}");
}
