//! Foreign keys between sessions: nobody leaves an orphan, whoever comes first, however it ends, at whatever isolation.

use super::{database, fails, number, run};
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, OsClock};
use pagefold_sql::{Database, Session};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

const ORPHANS: &str = "SELECT count(*) FROM c LEFT JOIN p ON c.pid = p.id WHERE c.pid IS NOT NULL AND p.id IS NULL";

fn tables(session: &mut Session, actions: &str, index: bool) {
    run(session, "CREATE TABLE p (id INTEGER PRIMARY KEY, x INTEGER)");
    run(session, &format!("CREATE TABLE c (id INTEGER PRIMARY KEY, pid INTEGER DEFAULT 1 REFERENCES p {actions}, x INTEGER)"));
    if index {
        run(session, "CREATE INDEX c_pid ON c (pid)");
    }
    run(session, "INSERT INTO p SELECT generate_series, 0 FROM generate_series(1, 9)");
    run(session, "INSERT INTO c VALUES (1, 1, 0)");
}

/// What becomes of a statement, or of the commit behind it.
fn outcome(session: &mut Session, sql: &str) -> &'static str {
    match session.execute(sql, &[]).map(drop) {
        Ok(()) => "ok",
        Err(error) => error.sqlstate(),
    }
}

const CHANGES: [(&str, &str); 7] = [
    ("child comes", "INSERT INTO c VALUES (#, 5, 0)"),
    ("child refers", "UPDATE c SET pid = 5 WHERE id = 1"),
    ("child goes", "DELETE FROM c WHERE id = 1"),
    ("parent goes", "DELETE FROM p WHERE id = 5"),
    ("key changes", "UPDATE p SET id = 50 + # WHERE id = 5"),
    ("other column", "UPDATE p SET x = x + 1 WHERE id = 5"),
    ("parent comes again", "DELETE FROM p WHERE id = 5; INSERT INTO p VALUES (5, #)"),
];

fn change(session: &mut Session, statements: &str, number: u32) -> &'static str {
    for part in statements.replace('#', &number.to_string()).split("; ") {
        let done = outcome(session, part);
        if done != "ok" {
            return done;
        }
    }
    "ok"
}

#[test]
fn all_pairs_leave_no_orphan() {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut waited = 0;
    for (actions, index) in [("", true), ("ON DELETE CASCADE ON UPDATE CASCADE", false), ("ON DELETE SET NULL ON UPDATE SET DEFAULT", true)]
    {
        let database = database();
        let mut looks = database.session();
        tables(&mut looks, actions, index);
        for level in LEVELS {
            for (first_name, first) in CHANGES {
                for (second_name, second) in CHANGES {
                    // How the first one ends says nothing more of actions.
                    let ends = if actions.is_empty() { &["COMMIT", "ROLLBACK", "ROLLBACK TO s"][..] } else { &["COMMIT"] };
                    for end in ends.iter().copied() {
                        run(&mut looks, "DELETE FROM c");
                        run(&mut looks, "DELETE FROM p");
                        run(&mut looks, "INSERT INTO p VALUES (1, 0), (5, 0)");
                        run(&mut looks, "INSERT INTO c VALUES (1, 1, 0)");
                        let (mut one, mut two) = (database.session(), database.session());
                        for session in [&mut one, &mut two] {
                            run(session, &format!("BEGIN ISOLATION LEVEL {level}"));
                            number(session, "SELECT count(*) FROM p, c");
                        }
                        run(&mut one, "SAVEPOINT s");
                        let did = change(&mut one, first, 2);
                        assert_eq!(did, "ok", "{level}: {}", first_name);
                        let other = thread::spawn(move || {
                            let did = change(&mut two, second, 3);
                            let end = outcome(&mut two, if did == "ok" { "COMMIT" } else { "ROLLBACK" });
                            if did == "ok" { end } else { did }
                        });
                        // It is done, or waits for what the first one has.
                        while !other.is_finished() && database.engine().waiting_transactions() == 0 {
                            thread::sleep(Duration::from_micros(100));
                        }
                        waited += u32::from(!other.is_finished());
                        let mut own = outcome(&mut one, end);
                        if end.ends_with('s') {
                            own = outcome(&mut one, "COMMIT");
                        }
                        let did = other.join().unwrap();
                        let what = format!("{actions}, {level}: {}, {end}, {}: {own}, {did}", first_name, second_name);
                        assert_eq!(number(&mut looks, ORPHANS), 0, "{what}");
                        assert!(["ok", "23503", "40001", "23505"].contains(&did), "{what}");
                        if end == "COMMIT" {
                            let key = format!("{} {level} {}/{}", actions.len(), first_name, second_name);
                            seen.insert(format!("{key} {did}"), 1);
                        } else if level == "READ COMMITTED" {
                            assert_eq!(did, "ok", "{what}");
                        }
                    }
                }
            }
        }
    }
    let has = |text: &str| assert!(seen.contains_key(text), "{text}: {seen:#?}");
    // NO ACTION
    for (level, came, gone) in
        [("READ COMMITTED", "23503", "23503"), ("REPEATABLE READ", "23503", "40001"), ("SERIALIZABLE", "40001", "40001")]
    {
        has(&format!("0 {level} child comes/parent goes {came}"));
        has(&format!("0 {level} child comes/key changes {came}"));
        has(&format!("0 {level} child refers/parent goes {came}"));
        has(&format!("0 {level} parent goes/child comes {gone}"));
        has(&format!("0 {level} key changes/child refers {gone}"));
        has(&format!("0 {level} other column/child comes ok"));
        has(&format!("0 {level} child comes/other column ok"));
        has(&format!("0 {level} child comes/child refers ok"));
    }
    has("0 READ COMMITTED parent comes again/child comes ok");
    // CASCADE
    has("35 READ COMMITTED child comes/parent goes ok");
    has("35 READ COMMITTED child refers/parent goes ok");
    has("35 REPEATABLE READ child comes/parent goes 40001");
    has("35 SERIALIZABLE child comes/key changes 40001");
    println!("{waited} waited");
    assert!(waited > 100, "{waited}");
}

#[test]
fn a_change_of_other_columns_does_not_wait() {
    for level in LEVELS {
        let database = database();
        let (mut one, mut two) = (database.session(), database.session());
        tables(&mut one, "", true);
        run(&mut two, "SET lock_timeout = '20ms'");
        for session in [&mut one, &mut two] {
            run(session, &format!("BEGIN ISOLATION LEVEL {level}"));
        }
        run(&mut one, "INSERT INTO c VALUES (2, 5, 0)");
        run(&mut two, "UPDATE p SET x = 1 WHERE id = 5");
        run(&mut two, "UPDATE p SET id = id WHERE id = 5");
        run(&mut two, "INSERT INTO p VALUES (20, 0) ON CONFLICT DO NOTHING");
        run(&mut two, "INSERT INTO c VALUES (3, 5, 0)");
        run(&mut one, "INSERT INTO c VALUES (4, 5, 0)");
        assert_eq!(fails(&mut two, "DELETE FROM p WHERE id = 5"), "55P03");
        run(&mut two, "ROLLBACK");
        run(&mut one, "COMMIT");
    }
}

#[test]
fn two_that_refer_and_take_away_crosswise_are_a_deadlock() {
    let database = database();
    let (mut one, mut two) = (database.session(), database.session());
    tables(&mut one, "ON DELETE CASCADE", false);
    for session in [&mut one, &mut two] {
        run(session, "BEGIN");
    }
    run(&mut one, "INSERT INTO c VALUES (2, 5, 0)");
    run(&mut two, "INSERT INTO c VALUES (3, 6, 0)");
    let other = thread::spawn(move || {
        let done = outcome(&mut two, "DELETE FROM p WHERE id = 5");
        outcome(&mut two, if done == "ok" { "COMMIT" } else { "ROLLBACK" });
        done
    });
    thread::sleep(Duration::from_millis(30));
    let own = outcome(&mut one, "DELETE FROM p WHERE id = 6");
    outcome(&mut one, if own == "ok" { "COMMIT" } else { "ROLLBACK" });
    let mut both = [own, other.join().unwrap()];
    both.sort_unstable();
    assert_eq!(both, ["40P01", "ok"]);
    assert_eq!(number(&mut one, ORPHANS), 0);
}

/// A statement that was planned before a constraint came meets it.
#[test]
fn a_constraint_that_comes_meanwhile_counts() {
    for (add, change, error) in [
        ("ALTER TABLE d ADD CONSTRAINT k FOREIGN KEY (pid) REFERENCES p", "INSERT INTO d VALUES (2, 77)", "23503"),
        ("ALTER TABLE d ADD CONSTRAINT k FOREIGN KEY (pid) REFERENCES p", "DELETE FROM p WHERE id = 5", "23503"),
        ("CREATE TABLE e (pid INTEGER REFERENCES p); INSERT INTO e VALUES (5)", "DELETE FROM p WHERE id = 5", "23503"),
        ("ALTER TABLE d ADD CONSTRAINT k CHECK (pid < 70)", "INSERT INTO d VALUES (2, 77)", "23514"),
    ] {
        let database = database();
        let (mut one, mut two) = (database.session(), database.session());
        tables(&mut one, "", true);
        run(&mut one, "CREATE TABLE d (id INTEGER PRIMARY KEY, pid INTEGER)");
        run(&mut one, "INSERT INTO d VALUES (1, 5)");
        run(&mut two, "BEGIN");
        run(&mut two, change);
        run(&mut two, "ROLLBACK");
        run(&mut one, "BEGIN");
        add.split("; ").for_each(|part| drop(run(&mut one, part)));
        let change = change.to_owned();
        let other = thread::spawn(move || outcome(&mut two, &change));
        thread::sleep(Duration::from_millis(30));
        assert!(!other.is_finished(), "{add}");
        run(&mut one, "COMMIT");
        assert_eq!(other.join().unwrap(), error, "{add}");
    }
}

#[test]
fn many_threads_leave_no_orphan() {
    let counts: Mutex<BTreeMap<&str, u32>> = Mutex::default();
    let are_met = || ["ok", "23503", "40001"].iter().all(|state| counts.lock().unwrap().get(state).is_some_and(|count| *count > 20));
    let all = ["", "ON DELETE CASCADE ON UPDATE CASCADE", "ON DELETE SET NULL ON UPDATE SET NULL"];
    // Where threads seldom run at the same time, conflicts take longer to come.
    for (round, actions) in all.into_iter().cycle().take(30 * all.len()).enumerate() {
        if round >= all.len() && are_met() {
            break;
        }
        let database = database();
        let mut looks = database.session();
        tables(&mut looks, actions, true);
        thread::scope(|scope| {
            for number in 0..4_u64 {
                let (database, counts) = (&database, &counts);
                scope.spawn(move || {
                    let mut session = database.session();
                    let mut random = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(number + 1 + 4 * round as u64) | 1;
                    let mut below = |end: u64| {
                        random ^= random >> 12;
                        random ^= random << 25;
                        random ^= random >> 27;
                        (random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20) % end
                    };
                    for turn in 0..120 {
                        run(&mut session, &format!("BEGIN ISOLATION LEVEL {}", LEVELS[usize::try_from(below(3)).unwrap()]));
                        let mut done = "ok";
                        for _ in 0..=below(3) {
                            let (parent, other, child) = (below(6), below(6), number * 100_000 + turn * 10 + below(10) + 10);
                            let sql = match below(7) {
                                0 | 1 => {
                                    format!("INSERT INTO c VALUES ({child}, {parent}, 0) ON CONFLICT (id) DO UPDATE SET pid = {other}")
                                }
                                2 => format!("UPDATE c SET pid = {parent} WHERE pid = {other}"),
                                3 => format!("DELETE FROM p WHERE id = {parent}"),
                                4 => format!("UPDATE p SET id = {parent} WHERE id = {other}"),
                                5 => format!("INSERT INTO p VALUES ({parent}, 0) ON CONFLICT DO NOTHING"),
                                _ => format!("DELETE FROM c WHERE pid = {parent}"),
                            };
                            done = outcome(&mut session, &sql);
                            *counts.lock().unwrap().entry(done).or_default() += 1;
                            if done != "ok" {
                                break;
                            }
                        }
                        outcome(&mut session, if done == "ok" { "COMMIT" } else { "ROLLBACK" });
                    }
                });
            }
        });
        assert_eq!(number(&mut looks, ORPHANS), 0, "{actions}");
        assert_eq!(fails(&mut looks, "INSERT INTO c VALUES (-1, 99, 0)"), "23503");
    }
    assert!(are_met(), "{:?}", counts.lock().unwrap());
}

/// The machine stops at any call: no orphan is left, and a constraint is there with all that it refers to, or not at all.
#[test]
fn no_crash_leaves_an_orphan() {
    let storage = FaultStorage::new(FaultOptions::default());
    let open = |storage: &FaultStorage, mode| {
        let engine = Engine::open(Arc::new(storage.clone()), Arc::new(OsClock), Path::new("disk"), mode, Settings::default()).unwrap();
        Database::new(Arc::new(engine))
    };
    let database = open(&storage, OpenMode::Create);
    let mut session = database.session();
    let images: Arc<Mutex<Vec<FaultStorage>>> = Arc::default();
    let taken = Arc::clone(&images);
    let calls = AtomicU64::new(0);
    tables(&mut session, "ON DELETE CASCADE ON UPDATE CASCADE", true);
    storage.set_observer(move |storage, call| {
        if call.kind.changes_disk() {
            let number = calls.fetch_add(1, Ordering::Relaxed);
            let policy = [CrashPolicy::KeepAll, CrashPolicy::DropAll, CrashPolicy::Random(number)][usize::try_from(number % 3).unwrap()];
            taken.lock().unwrap().push(storage.crash_image(policy));
        }
    });
    for turn in 0..16 {
        run(&mut session, "BEGIN");
        run(&mut session, &format!("INSERT INTO p VALUES ({}, 0)", 100 + turn));
        run(&mut session, &format!("INSERT INTO c SELECT {turn} * 100 + generate_series, {}, 0 FROM generate_series(10, 40)", 100 + turn));
        run(&mut session, if turn % 3 == 2 { "ROLLBACK" } else { "COMMIT" });
        run(&mut session, &format!("UPDATE p SET id = id + 1000 WHERE id = {}", 100 + turn));
        if turn % 2 == 0 {
            run(&mut session, &format!("DELETE FROM p WHERE id = {}", 1100 + turn));
        }
    }
    run(&mut session, "ALTER TABLE p RENAME TO parent");
    run(&mut session, "CREATE TABLE g (id INTEGER PRIMARY KEY, cid INTEGER REFERENCES c ON DELETE SET NULL)");
    run(&mut session, "INSERT INTO g SELECT id, id FROM c");
    run(&mut session, "DELETE FROM parent WHERE id > 1100");
    run(&mut session, "ALTER TABLE c DROP CONSTRAINT c_pid_fkey");
    run(&mut session, "ALTER TABLE c ADD CONSTRAINT again FOREIGN KEY (pid) REFERENCES parent");
    run(&mut session, "TRUNCATE parent CASCADE");
    storage.clear_observer();
    drop(session);
    let images = std::mem::take(&mut *images.lock().unwrap());
    let (mut constraints, mut rows) = (0, 0);
    for (number_of, image) in images.iter().enumerate() {
        let database = open(image, OpenMode::Write);
        let mut session = database.session();
        let parent = if number(&mut session, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'parent'") == 1 {
            "parent"
        } else {
            "p"
        };
        let there = number(
            &mut session,
            "SELECT count(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY' AND table_name = 'c'",
        );
        let orphans = format!("SELECT count(*) FROM c LEFT JOIN {parent} AS p ON c.pid = p.id WHERE c.pid IS NOT NULL AND p.id IS NULL");
        assert_eq!(number(&mut session, &orphans), 0, "image {number_of}");
        if there == 1 {
            assert_eq!(fails(&mut session, "INSERT INTO c VALUES (-1, 99999, 0)"), "23503", "image {number_of}");
        }
        constraints += there;
        rows += number(&mut session, "SELECT count(*) FROM c");
    }
    println!("{} crashes, {constraints} with the constraint, {rows} rows", images.len());
    assert!(images.len() > 60 && constraints > 40 && rows > 500);
}
