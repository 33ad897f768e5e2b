//! What must be there after a crash, and whether it is.
//!
//! What a commit makes is known only when its statement has ended. An image from within the statement shows what was there before it, or what is there behind it: the
//! latter is remembered until then.

use crate::statements::{CHILDREN, VIEWS};
use crate::world::{Dump, check, difference, dump, open, run};
use pagefold_engine::database::OpenMode;
use pagefold_io::{CrashPolicy, FaultStorage};
use pagefold_sql::{Database, SqlError};
use pagefold_types::Value;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was looked at, by all histories.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) images: HashSet<u64>,
    /// What came of statements, and what images showed.
    pub(crate) met: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, what: &str) {
        match self.met.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.met.insert(what.to_owned(), 1)),
        }
    }
}

/// What the images of one history are compared with.
#[derive(Default)]
struct Promise {
    /// What may be there: the last state that is durable, and those behind it, in order.
    allowed: Vec<Dump>,
    /// What images showed that is not among these, and where.
    ahead: Vec<(Dump, String)>,
    /// The greatest number of the sequence that a durable transaction has given.
    number: i64,
    /// The first thing that is wrong.
    fault: Option<String>,
    /// What is looked at is not the history.
    is_off: bool,
    step: usize,
}

/// Follows one history. A clone is the same one.
#[derive(Clone)]
pub(crate) struct Watch {
    promise: Arc<Mutex<Promise>>,
    tally: Arc<Mutex<Tally>>,
}

impl Watch {
    pub(crate) fn new(tally: &Arc<Mutex<Tally>>, first: Dump) -> Watch {
        let promise = Promise { allowed: vec![first], ..Promise::default() };
        Watch { promise: Arc::new(Mutex::new(promise)), tally: Arc::clone(tally) }
    }

    fn promise(&self) -> MutexGuard<'_, Promise> {
        self.promise.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self, what: &str) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).count(what);
    }

    pub(crate) fn at_step(&self, step: usize) {
        self.promise().step = step;
    }

    /// Without crashes meanwhile.
    pub(crate) fn aside<R>(&self, look: impl FnOnce() -> R) -> R {
        self.promise().is_off = true;
        let result = look();
        self.promise().is_off = false;
        result
    }

    /// Every so many-th call of the disk crashes.
    pub(crate) fn observe(&self, storage: &FaultStorage, every: u64) {
        let watch = self.clone();
        storage.set_observer(move |storage, call| {
            let is_off = { watch.promise().is_off || watch.promise().fault.is_some() };
            if !is_off && storage.calls().is_multiple_of(every) {
                for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls())] {
                    watch.crash(&storage.crash_image(policy), &format!("call {} ({call:?}), {policy:?}", storage.calls()));
                }
            }
        });
    }

    fn crash(&self, image: &FaultStorage, at: &str) {
        if !self.tally.lock().unwrap_or_else(PoisonError::into_inner).images.insert(image.content_hash()) {
            return;
        }
        let (allowed, number, step) = {
            let promise = self.promise();
            (promise.allowed.clone(), promise.number, promise.step)
        };
        let at = format!("step {step}, a crash before {at}");
        match guarded(|| look_at(image, number)) {
            Err(what) => drop(self.promise().fault.get_or_insert(format!("{at}: {what}"))),
            Ok(found) if allowed.contains(&found) => self.count("image: as before the statement"),
            Ok(found) => self.promise().ahead.push((found, at)),
        }
    }

    /// A statement has ended that had nothing to commit.
    pub(crate) fn expect_nothing_new(&self) -> Result<(), String> {
        let mut promise = self.promise();
        match std::mem::take(&mut promise.ahead).first() {
            Some((found, at)) => Err(format!("{at}: {}", difference(promise.last(), found))),
            None => promise.fault.take().map_or(Ok(()), Err),
        }
    }

    /// A transaction has ended, and this is there now.
    pub(crate) fn committed(&self, now: &Dump, is_durable: bool) -> Result<(), String> {
        let mut promise = self.promise();
        for (found, at) in std::mem::take(&mut promise.ahead) {
            if found != *now {
                return Err(format!("{at}: neither what was nor what is; to what is: {}", difference(now, &found)));
            }
            self.count("image: as behind the statement");
        }
        if promise.last() != now {
            if is_durable {
                promise.allowed.clear();
            }
            promise.allowed.push(Arc::clone(now));
        }
        promise.fault.take().map_or(Ok(()), Err)
    }

    /// A durable transaction has given this number.
    pub(crate) fn gave(&self, number: i64) {
        let mut promise = self.promise();
        promise.number = promise.number.max(number);
    }

    /// What is there now.
    pub(crate) fn last(&self) -> Dump {
        Arc::clone(self.promise().last())
    }

    /// A commit has failed. What images showed of it may be so, or not.
    pub(crate) fn forget_ahead(&self) {
        self.promise().ahead.clear();
    }

    /// The machine has stopped, and this is what is left. If a commit is in doubt, that may be among it: then it is what an image has shown, where there was one.
    pub(crate) fn stopped(&self, found: &Dump, is_in_doubt: bool) -> Result<(), String> {
        let mut promise = self.promise();
        let ahead = std::mem::take(&mut promise.ahead);
        let is_ahead = is_in_doubt && (ahead.is_empty() || ahead.iter().any(|(seen, _)| seen == found));
        if !promise.allowed.contains(found) && !is_ahead {
            return Err(format!("after a crash: {}", difference(promise.last(), found)));
        }
        promise.allowed = vec![Arc::clone(found)];
        Ok(())
    }
}

impl Promise {
    fn last(&self) -> &Dump {
        &self.allowed[self.allowed.len() - 1]
    }
}

/// A panic is a fault like others.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
        Err(format!("panic: {}", words.unwrap_or_default()))
    })
}

/// What an image shows. It is then worked with: rules hold, and numbers that were given do not come again.
fn look_at(image: &FaultStorage, number: i64) -> Result<Dump, String> {
    image.set_capacity(None);
    let database = open(image, OpenMode::Write).map_err(|e| format!("opening: {e}"))?;
    let found = dump(&database, &VIEWS)?;
    go_on(&database, number)?;
    drop(database);
    check(image)?;
    Ok(found)
}

fn go_on(database: &Database, number: i64) -> Result<(), String> {
    let mut session = database.session();
    let mut one = |sql: &str| {
        let rows = run(&mut session, sql)?;
        Ok::<i64, SqlError>(
            rows.first().and_then(|row| if let [Value::Int(number)] = row.as_slice() { Some(*number) } else { None }).unwrap_or(0),
        )
    };
    for name in CHILDREN {
        let Ok(greatest) = one(&format!("SELECT max(id) FROM {name}")) else { continue };
        match one(&format!("INSERT INTO {name} (a) VALUES (1) RETURNING id")) {
            Ok(id) if id <= greatest => return Err(format!("{name} gives number {id} again, {greatest} is there")),
            Err(error) if error.sqlstate() == "23505" && error.to_string().contains("_pkey") => {
                return Err(format!("{name} has given a number that is there: {error}"));
            }
            _ => {}
        }
    }
    let next = one("SELECT nextval('numbers')").map_err(|e| format!("the sequence: {e}"))?;
    if next <= number {
        return Err(format!("the sequence gives {next}, it had come to {number}"));
    }
    Ok(())
}
