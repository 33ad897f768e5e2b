//! One history on one disk: the database is made, the steps are taken, and before each call of the disk the machine stops in three ways.

use crate::coverage::Coverage;
use crate::images::{Tally, guarded, try_contents, verify, verify_new, verify_older_slot};
use crate::model::{Left, Promise};
use crate::player::{Halt, Player, Trouble, killed};
use crate::steps::Step;
use crate::world::{Shape, create, open};
use pagefold_engine::database::OpenMode;
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, Repeat};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Everything that a history follows from.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) shape: Shape,
    pub(crate) sector_bytes: u32,
    pub(crate) steps: Vec<Step>,
    pub(crate) images: Images,
}

/// Which calls of the disk crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Images {
    /// All, those of making the database too.
    All,
    /// Each so many-th, once the database is made: so many histories share the images. While tables and indexes change, more of them.
    Each(u64),
    /// Each so many-th, once the database is made; and at one call the disk becomes full, for some steps.
    FullAt { call: u64, steps: usize, every: u64 },
}

/// What a run leaves to its observer.
struct Watch {
    promise: Arc<Mutex<Promise>>,
    trouble: Arc<Trouble>,
    tally: Arc<Mutex<Tally>>,
    labels: Vec<String>,
    /// The first thing that is wrong.
    fault: Mutex<Option<String>>,
    step: AtomicUsize,
    /// The step changes tables and indexes.
    defining: AtomicBool,
    /// Old versions lie in their file.
    versions_in_file: AtomicBool,
    seed: u64,
}

/// Each so many-th call of steps that change tables and indexes, which are few.
const EVERY_DEFINING: u64 = 3;

impl Watch {
    fn note(&self, what: String) {
        self.fault.lock().get_or_insert(what);
    }

    fn is_broken(&self) -> bool {
        self.fault.lock().is_some()
    }

    /// The images of a crash before this call.
    fn crash(&self, storage: &FaultStorage, call: &str) {
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls() ^ self.seed)] {
            if self.is_broken() {
                return;
            }
            if let Err(what) = self.look_at(storage, policy) {
                let step = self.step.load(Ordering::Relaxed);
                self.note(format!("step {step}, a crash before call {} ({call}), {policy:?}: {what}", storage.calls()));
            }
        }
    }

    fn look_at(&self, storage: &FaultStorage, policy: CrashPolicy) -> Result<(), String> {
        let image = storage.crash_image(policy);
        if !self.tally.lock().is_new(&image) {
            return Ok(());
        }
        let left = if policy == CrashPolicy::KeepAll { Left::Written } else { Left::Durable };
        let (promise, calls) = (self.promise.lock().clone(), storage.calls());
        let versions_in_file = self.versions_in_file.load(Ordering::Relaxed);
        self.tally.lock().add(&Coverage::of(&image).with_versions_in_file(versions_in_file), &self.labels);
        // Sometimes the recovery crashes too.
        if calls.is_multiple_of(5) {
            let stop = calls % 40;
            image.set_capacity(None);
            image.crash_at(image.calls() + stop);
            drop(open(&image, OpenMode::Write));
            let second = image.crash_image(CrashPolicy::Random(stop));
            if self.tally.lock().is_new(&second) {
                self.tally.lock().add(&Coverage::of(&second).in_recovery(), &self.labels);
                verify(&second, &promise, left).map_err(|e| format!("and after {stop} calls of recovery: {e}"))?;
            }
        } else if calls % 5 == 1 {
            // Or fails: the next open finds everything to be done still.
            image.set_capacity(None);
            let trial = image.crash_image(CrashPolicy::KeepAll);
            let opened = open(&trial, OpenMode::Write);
            let failing = calls.wrapping_mul(0x9E37_79B9) % (trial.calls() + 1);
            drop(opened);
            image.error_at(image.calls() + failing, Failure::Io, Repeat::Once);
            let failed = open(&image, OpenMode::Write).is_err();
            image.clear_faults();
            if failed {
                self.tally.lock().add(&Coverage::of(&image).after_failure(), &self.labels);
            }
            verify(&image, &promise, left).map_err(|e| format!("opened again after an error at call {failing} of opening: {e}"))?;
        } else {
            verify(&image, &promise, left)?;
        }
        if calls % 7 == 3 {
            self.tally.lock().states += 1;
            verify_older_slot(&storage.crash_image(policy), &promise, left)?;
        }
        Ok(())
    }
}

/// Runs a history; what is wrong, in words.
pub(crate) fn run(history: &History, tally: &Arc<Mutex<Tally>>) -> Result<u64, String> {
    let History { seed, sector_bytes, .. } = *history;
    let storage = FaultStorage::new(FaultOptions { seed, sector_bytes, log_calls_max: 0, ..FaultOptions::default() });
    let labels = [history.shape.labels(), vec![format!("shape: sectors of {sector_bytes}")]].concat();
    let watch = Arc::new(Watch {
        promise: Arc::default(),
        trouble: Arc::default(),
        tally: Arc::clone(tally),
        labels,
        fault: Mutex::new(None),
        step: AtomicUsize::new(0),
        defining: AtomicBool::new(false),
        versions_in_file: AtomicBool::new(false),
        seed,
    });
    if history.images == Images::All {
        watch_making(&storage, &watch);
    }
    create(&storage, history.shape).map_err(|e| format!("making it: {e}"))?;
    storage.clear_observer();
    let made = storage.calls();
    let observer = Arc::clone(&watch);
    let images = history.images;
    storage.set_observer(move |storage, call| match images {
        Images::All => observer.crash(storage, &format!("{call:?}")),
        Images::Each(every) => {
            let every = if observer.defining.load(Ordering::Relaxed) { EVERY_DEFINING } else { every };
            if (storage.calls() + observer.seed).is_multiple_of(every) {
                observer.crash(storage, &format!("{call:?}"));
            }
        }
        Images::FullAt { call: full_at, every, .. } => {
            let calls = storage.calls() - made;
            if calls == full_at {
                storage.set_capacity(Some(storage.taken_bytes()));
                observer.trouble.full.store(true, Ordering::Relaxed);
            }
            if calls.is_multiple_of(every) {
                observer.crash(storage, &format!("{call:?}"));
            }
        }
    });
    let done = guarded(|| play(&storage, history, &watch));
    storage.clear_observer();
    let calls = storage.calls() - made;
    for (what, count) in watch.trouble.met.lock().iter() {
        *tally.lock().met.entry(what).or_default() += count;
    }
    match (watch.fault.lock().take(), done) {
        (Some(fault), _) | (None, Err(fault)) => Err(fault),
        (None, Ok(())) => {
            let promise = watch.promise.lock().clone();
            verify(&storage, &promise, Left::Written).map_err(|e| format!("at the end: {e}")).map(|()| calls)
        }
    }
}

fn watch_making(storage: &FaultStorage, watch: &Arc<Watch>) {
    let watch = Arc::clone(watch);
    storage.set_observer(move |storage, call| {
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls() ^ watch.seed)] {
            let image = storage.crash_image(policy);
            if !watch.is_broken() && watch.tally.lock().is_new(&image) {
                watch.tally.lock().add(&Coverage::of(&image), &watch.labels);
                if let Err(what) = verify_new(&image) {
                    watch.note(format!("before call {} ({call:?}) of making it, {policy:?}: {what}", storage.calls()));
                }
            }
        }
    });
}

/// All steps, through as many processes as it takes.
fn play(storage: &FaultStorage, history: &History, watch: &Arc<Watch>) -> Result<(), String> {
    let mut next = 0;
    loop {
        let database = match open(storage, OpenMode::Write) {
            Ok(database) => database,
            Err(_) if watch.trouble.full.swap(false, Ordering::Relaxed) => {
                // With room it must open.
                storage.set_capacity(None);
                continue;
            }
            Err(error) => return Err(format!("step {next}: opening it again: {error}")),
        };
        if watch.trouble.full.swap(false, Ordering::Relaxed) {
            // What recovery had no room to remove goes now.
            storage.set_capacity(None);
            database.remove_leftovers().map_err(|e| format!("step {next}: opened on a full disk, then with room: {e}"))?;
        }
        let found = try_contents(&database)?;
        let in_words = |halt: Halt| match halt {
            Halt::Fault(what) => what,
            Halt::Killed => "it was not to end".into(),
        };
        killed(&watch.promise, found, Left::Written).map_err(|halt| format!("step {next}: {}", in_words(halt)))?;
        let mut player = Player::new(&database, &watch.promise, &watch.trouble).on(storage);
        let halt = steps(&mut player, history, watch, &mut next);
        match halt {
            Ok(()) => {
                player.make_room();
                player.end_all().map_err(|halt| format!("at the end: {}", in_words(halt)))?;
                // Entries of what is gone stay for as long as somebody may need them.
                database.remove_leftovers().map_err(|e| format!("at the end: {e}"))?;
                let found = try_contents(&database)?;
                if found != player.committed.state {
                    return Err(format!("at the end: {}", watch.promise.lock().difference(&found)));
                }
                drop(player);
                return database.close().map_err(|e| format!("closing: {e}"));
            }
            Err(Halt::Killed) => {
                drop(player);
                drop(database);
                storage.clear_faults();
                watch.trouble.killed.store(false, Ordering::Relaxed);
            }
            Err(Halt::Fault(what)) => return Err(format!("step {}: {what}", next - 1)),
        }
        if watch.is_broken() {
            return Ok(());
        }
    }
}

fn steps(player: &mut Player<'_>, history: &History, watch: &Watch, next: &mut usize) -> Result<(), Halt> {
    let mut full_for = 0;
    while *next < history.steps.len() && !watch.is_broken() {
        let at = *next;
        *next += 1;
        watch.step.store(at, Ordering::Relaxed);
        watch.defining.store(matches!(history.steps[at], Step::Define(_) | Step::Beside { .. }), Ordering::Relaxed);
        player.step(&history.steps[at])?;
        watch.versions_in_file.store(player.database.version_file_bytes() > 0, Ordering::Relaxed);
        if let Images::FullAt { steps, .. } = history.images
            && watch.trouble.full.load(Ordering::Relaxed)
        {
            full_for += 1;
            if full_for >= steps {
                player.make_room();
            }
        }
    }
    // A process that was to be killed and made no call any more.
    if watch.trouble.killed.load(Ordering::Relaxed) { Err(Halt::Killed) } else { Ok(()) }
}
