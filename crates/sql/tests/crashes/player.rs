//! One history: sessions that take turns, and what lies between their statements.

use crate::random::Random;
use crate::statements::{CHILDREN, Kind, PARENTS, VIEWS, create_table, statement};
use crate::watch::{Tally, Watch, guarded};
use crate::world::{Dump, check, difference, dump, line, open, run};
use pagefold_engine::Silent;
use pagefold_engine::database::OpenMode;
use pagefold_engine::table_space::Method;
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, Repeat};
use pagefold_sql::{Database, Session, TransactionState};
use pagefold_types::Value;
use pagefold_utility::{ReorgOptions, Setting};
use std::sync::{Arc, Mutex};

const STEPS: usize = 150;

/// A session, and what is known of its transaction.
struct Player {
    session: Session,
    is_durable: bool,
    /// Savepoints with what the transaction saw then, and how many others had committed.
    savepoints: Vec<(String, Option<Dump>, u64)>,
    /// The greatest number that its transaction was given.
    number: i64,
    /// READ COMMITTED.
    sees_others: bool,
}

struct World {
    storage: FaultStorage,
    database: Database,
    players: Vec<Player>,
    watch: Watch,
    random: Random,
    every: u64,
    /// Transactions that have committed something.
    commits: u64,
    /// A call of the disk may have failed: the database may have ended.
    has_failed: bool,
    /// The disk is full until this step, and has so many bytes.
    full_until: usize,
    capacity: Option<u64>,
}

/// Runs the history of a seed; what is wrong, in words.
pub(crate) fn play(seed: u64, every: u64, tally: &Arc<Mutex<Tally>>) -> Result<(), String> {
    let mut done = String::new();
    guarded(|| {
        let mut world = World::new(seed, every, tally)?;
        for step in 0..STEPS {
            world.watch.at_step(step);
            done = format!("step {step}");
            world.between(step)?;
            world.step(step, &mut done)?;
        }
        world.end()
    })
    .map_err(|what| format!("seed {seed}, {done}: {what}"))
}

impl World {
    fn new(seed: u64, every: u64, tally: &Arc<Mutex<Tally>>) -> Result<World, String> {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let sector_bytes = if seed.is_multiple_of(2) { 512 } else { 4096 };
        let storage = FaultStorage::new(FaultOptions { seed, sector_bytes, log_calls_max: 0, ..FaultOptions::default() });
        let database = open(&storage, OpenMode::Create).map_err(|e| e.to_string())?;
        let mut session = database.session();
        let tables = PARENTS.into_iter().chain(CHILDREN).map(|name| create_table(&mut random, name));
        for sql in std::iter::once("CREATE SEQUENCE numbers".to_owned()).chain(tables.collect::<Vec<_>>()) {
            run(&mut session, &sql).map_err(|e| format!("{sql}: {e}"))?;
        }
        let watch = Watch::new(tally, dump(&database, &VIEWS)?);
        watch.observe(&storage, every);
        let mut world = World {
            storage,
            database,
            players: Vec::new(),
            watch,
            random,
            every,
            commits: 0,
            has_failed: false,
            full_until: 0,
            capacity: None,
        };
        world.meet()?;
        Ok(world)
    }

    /// New sessions.
    fn meet(&mut self) -> Result<(), String> {
        self.players.clear();
        for _ in 0..1 + self.random.below(2) {
            let (is_durable, memory) = (self.random.percent(80), self.random.one(&["64MB", "2kB"]));
            let mut session = self.database.session();
            let commit = if is_durable { "on" } else { "off" };
            for sql in
                [format!("SET work_mem = '{memory}'"), format!("SET synchronous_commit = {commit}"), "SET lock_timeout = '1ms'".into()]
            {
                run(&mut session, &sql).map_err(|e| format!("{sql}: {e}"))?;
            }
            self.players.push(Player { session, is_durable, savepoints: Vec::new(), number: 0, sees_others: true });
        }
        Ok(())
    }

    fn are_all_idle(&self) -> bool {
        self.players.iter().all(|player| player.session.transaction_state() == TransactionState::None)
    }

    /// What the engine does beside statements, and what happens to the machine.
    fn between(&mut self, step: usize) -> Result<(), String> {
        if step == self.full_until {
            self.set_capacity(None);
        }
        let is_full = step < self.full_until;
        match self.random.below(60) {
            0..=2 => {
                let done = self.database.engine().checkpoint();
                self.allow(done.map_err(|e| e.to_string()), is_full, "a checkpoint")?;
            }
            3 => {
                let done = self.database.engine().remove_leftovers();
                self.allow(done.map_err(|e| e.to_string()), is_full, "removing leftovers")?;
            }
            4..=5 if !is_full => {
                self.full_until = step + 1 + self.random.below(8);
                let room = self.random.below(2) as u64 * 30_000;
                self.set_capacity(Some(self.storage.taken_bytes() + room));
                self.watch.count("between: the disk is full");
            }
            6 if self.are_all_idle() => {
                let table = self.random.one(&["t0", "t1", "u0", "u1", "w"]);
                let method = Method::ALL[self.random.below(Method::ALL.len())];
                let options = ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() };
                match pagefold_utility::reorg(self.database.engine(), table, &options, &Silent) {
                    Ok(_) => self.watch.count("between: REORG"),
                    Err(pagefold_utility::Error::Data(_)) => self.watch.count("between: REORG of no table"),
                    Err(error) => self.allow(Err(error.to_string()), is_full, "REORG on a full disk")?,
                }
            }
            7 if self.random.percent(50) => {
                let policy = [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(step as u64)][self.random.below(3)];
                return self.crash(policy, false);
            }
            _ => return Ok(()),
        }
        self.watch.expect_nothing_new()
    }

    fn allow(&mut self, done: Result<(), String>, is_full: bool, what: &str) -> Result<(), String> {
        match done {
            Err(error) if self.has_failed && error.contains("open the database again") => self.crash(CrashPolicy::KeepAll, false),
            Err(error) if !is_full => Err(format!("{what}: {error}")),
            _ => {
                self.watch.count(&format!("between: {what}"));
                Ok(())
            }
        }
    }

    /// The machine stops, and the history goes on with what is left. In doubt is whether the last commit is among that.
    fn crash(&mut self, policy: CrashPolicy, is_in_doubt: bool) -> Result<(), String> {
        let image = self.storage.crash_image(policy);
        self.storage.clear_observer();
        self.players.clear();
        (self.storage, self.full_until, self.has_failed) = (image, 0, false);
        self.set_capacity(None);
        self.database = open(&self.storage, OpenMode::Write).map_err(|e| format!("opening after a crash: {e}"))?;
        self.watch.stopped(&dump(&self.database, &VIEWS)?, is_in_doubt)?;
        self.watch.count("between: a crash");
        self.watch.observe(&self.storage, self.every);
        self.meet()
    }

    fn step(&mut self, step: usize, done: &mut String) -> Result<(), String> {
        let at = self.random.below(self.players.len());
        let state = self.players[at].session.transaction_state();
        let (was_open, had_failed) = (state != TransactionState::None, state == TransactionState::Failed);
        let savepoints: Vec<&str> = self.players[at].savepoints.iter().map(|(name, ..)| &**name).collect();
        let (kind, sql) = statement(&mut self.random, was_open, had_failed, &savepoints);
        done.push_str(&format!(", session {at}: {}", &sql[..sql.len().min(300)]));
        if kind == Kind::Begin {
            self.players[at].sees_others = sql.ends_with("COMMITTED");
        }
        let sees_last = kind == Kind::Commit && self.players[at].sees_others;
        let own = if sees_last { self.own_rows(at)? } else { None };
        if self.random.below(25) == 0 {
            self.has_failed = true;
            self.storage.error_at(self.storage.calls() + self.random.below(12) as u64, Failure::Io, Repeat::Once);
        }
        let result = run(&mut self.players[at].session, &sql);
        self.storage.clear_faults();
        let is_full = step < self.full_until;
        let outcome = result.as_ref().map_or_else(|error| error.sqlstate(), |_| "done");
        self.watch.count(&format!("{kind:?}: {outcome}{}", if is_full { " on a full disk" } else { "" }));
        if self.has_failed && matches!(outcome, "58030" | "57P01") {
            return self.failed(!was_open || kind == Kind::Commit);
        }
        if matches!(outcome, "XX000" | "XX001" | "58030") || (outcome == "53100" && !is_full) {
            return Err(format!("it ends with {outcome}: {}", result.err().map(|e| e.to_string()).unwrap_or_default()));
        }
        if let (Kind::Number, Some([Value::Int(number)])) = (kind, result.as_ref().ok().and_then(|rows| rows.first()).map(Vec::as_slice)) {
            self.players[at].number = self.players[at].number.max(*number);
        }
        if matches!(kind, Kind::Commit | Kind::Rollback) || !was_open {
            self.ended(at, kind, result.is_ok() && !had_failed, own)?;
        } else {
            self.watch.expect_nothing_new()?;
            self.within(at, kind, &sql, result.is_ok())?;
        }
        Ok(())
    }

    /// A call of the disk has failed, and with it a statement. Either that was taken back, or the database ends, and is opened again.
    fn failed(&mut self, is_commit: bool) -> Result<(), String> {
        let database = self.database.clone();
        let idle = self.are_all_idle();
        // What can be read need not be a database that goes on.
        let seen = self.aside(|| dump(&database, &VIEWS));
        let goes_on = self.aside(|| database.engine().checkpoint().is_ok());
        match seen {
            Ok(now) if goes_on => {
                let last = self.watch.last();
                if now != last {
                    return Err(format!("a call failed, and the statement is not taken back: {}", difference(&last, &now)));
                }
                self.watch.count("disk: a call fails, and the statement alone");
                // What a commit had written before it failed may be found by a crash.
                if is_commit {
                    self.watch.forget_ahead()
                } else {
                    self.watch.expect_nothing_new()?
                }
                if idle {
                    self.players.iter_mut().for_each(|player| player.savepoints.clear());
                }
                Ok(())
            }
            _ => {
                self.watch.count("disk: a call fails, and the database ends");
                let policy = [CrashPolicy::DropAll, CrashPolicy::KeepAll][self.random.below(2)];
                self.crash(policy, is_commit)
            }
        }
    }

    /// A transaction has ended, well or not.
    fn ended(&mut self, at: usize, kind: Kind, is_well: bool, own: Option<Vec<String>>) -> Result<(), String> {
        if self.players[at].session.transaction_state() != TransactionState::None {
            // BEGIN.
            return self.watch.expect_nothing_new();
        }
        let (watch, database) = (self.watch.clone(), self.database.clone());
        let now = self.aside(|| dump(&database, &VIEWS))?;
        let last = watch.last();
        if (!is_well || kind == Kind::Rollback) && now != last {
            return Err(format!("it is not taken back: {}", difference(&last, &now)));
        }
        self.commits += u64::from(now != last);
        let player = &mut self.players[at];
        watch.committed(&now, player.is_durable)?;
        let number = std::mem::take(&mut player.number);
        if is_well && kind != Kind::Rollback && player.is_durable {
            watch.gave(number);
        }
        (player.savepoints, player.sees_others) = (Vec::new(), true);
        if let Some(own) = own.filter(|_| is_well) {
            let all = self.aside(|| rows_of(&mut database.session()))?;
            if own != all {
                return Err(format!("committed is not what was seen: {}", difference(&Arc::new(own), &Arc::new(all))));
            }
            watch.count("seen: the same before and behind COMMIT");
        }
        Ok(())
    }

    /// A statement within a transaction.
    fn within(&mut self, at: usize, kind: Kind, sql: &str, is_well: bool) -> Result<(), String> {
        let name = sql.rsplit(' ').next().unwrap_or_default().to_owned();
        match kind {
            Kind::Savepoint if is_well => {
                let own = self.own_rows(at)?.map(Arc::new);
                let commits = self.commits;
                self.players[at].savepoints.push((name, own, commits));
            }
            Kind::RollbackTo if is_well => {
                let savepoints = &mut self.players[at].savepoints;
                let Some(found) = savepoints.iter().rposition(|(known, ..)| *known == name) else {
                    return Err("there is no such savepoint".into());
                };
                savepoints.truncate(found + 1);
                let (_, then, commits) = savepoints[found].clone();
                let own = self.own_rows(at)?.map(Arc::new);
                if let (Some(then), Some(own), true) = (then, own, commits == self.commits) {
                    if own != then {
                        return Err(format!("it is not taken back to the savepoint: {}", difference(&then, &own)));
                    }
                    self.watch.count("seen: the same at and behind a savepoint");
                }
            }
            _ => {}
        }
        // What is not committed nobody sees.
        if self.random.below(8) == 0 {
            let database = self.database.clone();
            let now = self.aside(|| dump(&database, &VIEWS))?;
            let last = self.watch.last();
            if now != last {
                return Err(format!("others see what is not committed: {}", difference(&last, &now)));
            }
        }
        Ok(())
    }

    /// Rows of all tables, as a session's transaction sees them. Nothing of one that has failed, or that cannot be serialized any more.
    fn own_rows(&mut self, at: usize) -> Result<Option<Vec<String>>, String> {
        if self.players[at].session.transaction_state() != TransactionState::Open {
            return Ok(None);
        }
        self.storage.set_capacity(None);
        let rows = self.watch.aside(|| rows_of(&mut self.players[at].session));
        self.storage.set_capacity(self.capacity);
        match rows {
            Err(what) if what.contains("cannot be serialized") => Ok(None),
            rows => rows.map(Some),
        }
    }

    /// The end: all that is open is taken back, and the database is closed and opened once more.
    fn end(mut self) -> Result<(), String> {
        self.set_capacity(None);
        self.players.clear();
        self.watch.expect_nothing_new()?;
        let last = self.watch.last();
        let database = self.database.clone();
        let now = self.aside(|| dump(&database, &VIEWS))?;
        if now != last {
            return Err(format!("at the end: {}", difference(&last, &now)));
        }
        self.storage.clear_observer();
        drop((self.database, database));
        check(&self.storage)?;
        let database = open(&self.storage, OpenMode::Write).map_err(|e| format!("opening it once more: {e}"))?;
        let found = dump(&database, &VIEWS)?;
        if found != last {
            return Err(format!("opened once more: {}", difference(&last, &found)));
        }
        Ok(())
    }

    fn set_capacity(&mut self, capacity: Option<u64>) {
        self.capacity = capacity;
        self.storage.set_capacity(capacity);
    }

    /// Looks with room on the disk and without crashes.
    fn aside<R>(&self, look: impl FnOnce() -> R) -> R {
        self.storage.set_capacity(None);
        let result = self.watch.aside(look);
        self.storage.set_capacity(self.capacity);
        result
    }
}

/// Rows of all tables of the transaction, sorted.
fn rows_of(session: &mut Session) -> Result<Vec<String>, String> {
    // Some have been made by others since its snapshot.
    let names = session.look(|transaction| {
        let mut names = transaction.table_names();
        names.retain(|name| transaction.table(name).is_ok());
        names
    });
    let names = names.map_err(|e| e.to_string())?;
    let mut lines = Vec::new();
    for name in names.iter().filter(|name| !name.starts_with("pagefold_")) {
        let mut answer = session.execute(&format!("SELECT * FROM \"{name}\""), &[]).map_err(|e| format!("rows of {name}: {e}"))?;
        lines.push(format!("{name} {:?}", answer.columns().map(|column| (column.name.to_owned(), column.data_type)).collect::<Vec<_>>()));
        while let Some(row) = answer.next_row().map_err(|e| format!("rows of {name}: {e}"))? {
            lines.push(line(name, &row));
        }
    }
    lines.sort_unstable();
    Ok(lines)
}
