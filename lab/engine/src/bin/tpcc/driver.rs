//! Terminals: threads that run one transaction after the other, without think times and keying
//! times.
//!
//! A transaction that others came in the way of is tried again with the same input, until it
//! commits; its latency is that of all tries. Any other error ends the run. One that takes longer
//! than [`PATIENCE`] ends the process: it may never come back.

use crate::acknowledged::Change;
use crate::connection::{Connection, Done, Failure};
use crate::input::{Deck, KINDS, Kind, Terminal};
use crate::random::{Constants, Draw};
use crate::schema::{DISTRICTS, Scale};
use crate::transactions::{End, run};
use pagefold_lab::measure::Clock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a transaction may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Microseconds between moments of a terminal: each terminal has others.
const MOMENTS: i64 = 1024;

/// What a run is to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scale: Scale,
    pub(crate) terminals: usize,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) constants: Constants,
    /// Acknowledgements are written to files here, too.
    pub(crate) told_to: Option<PathBuf>,
    /// How it goes is said now and then.
    pub(crate) is_loud: bool,
}

/// What a kind of transaction came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Took {
    /// Microseconds of each that ended.
    pub(crate) latencies_us: Vec<u32>,
    pub(crate) rolled_back: u64,
    /// By SQLSTATE.
    pub(crate) retries: BTreeMap<&'static str, u64>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// Processor time of the process.
    pub(crate) cpu_seconds: f64,
    pub(crate) took: [Took; KINDS.len()],
    pub(crate) changes: Vec<Change>,
    /// New-Orders in each tenth of the time.
    pub(crate) tenths: [u64; 10],
}

impl Measured {
    fn add(&mut self, other: Measured) {
        for (own, other) in self.took.iter_mut().zip(other.took) {
            own.latencies_us.extend(other.latencies_us);
            own.rolled_back += other.rolled_back;
            for (state, count) in other.retries {
                *own.retries.entry(state).or_default() += count;
            }
        }
        self.changes.extend(other.changes);
        for (own, other) in self.tenths.iter_mut().zip(other.tenths) {
            *own += other;
        }
    }
}

/// What all terminals share.
struct Shared<'a> {
    plan: &'a Plan,
    began: Instant,
    stop: AtomicBool,
    failure: Mutex<Option<String>>,
    /// Milliseconds since the beginning at which the transaction of each terminal began; 0: none.
    open_since_ms: Vec<AtomicU64>,
    ended: AtomicU64,
}

impl Shared<'_> {
    fn fail(&self, text: String) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().expect("nobody panics with it").get_or_insert(text);
    }
}

/// A moment that no other transaction has.
struct Moments {
    terminal: i64,
    last: i64,
}

impl Moments {
    fn next(&mut self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
        let now = i64::try_from(now).expect("before the year 292,000") / MOMENTS;
        self.last = now.max(self.last + 1);
        self.last * MOMENTS + self.terminal
    }
}

/// Runs terminals, each with a connection of its own.
pub(crate) fn drive(plan: &Plan, connect: &(dyn Fn() -> Done<Box<dyn Connection>> + Sync)) -> Done<Measured> {
    let shared = Shared {
        plan,
        began: Instant::now(),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        open_since_ms: (0..plan.terminals).map(|_| AtomicU64::new(0)).collect(),
        ended: AtomicU64::new(0),
    };
    let mut all = Measured::default();
    let cpu_began = Clock::Process.now_s();
    std::thread::scope(|scope| {
        let run_one = |number| match connect().and_then(|mut connection| terminal(&shared, number, connection.as_mut())) {
            Ok(measured) => measured,
            Err(failure) => {
                shared.fail(format!("terminal {number}: {failure}"));
                Measured::default()
            }
        };
        let threads: Vec<_> = (0..plan.terminals).map(|number| scope.spawn(move || run_one(number))).collect();
        watch(&shared);
        for thread in threads {
            match thread.join() {
                Ok(measured) => all.add(measured),
                Err(_) => shared.fail("a terminal panicked".into()),
            }
        }
    });
    all.cpu_seconds = Clock::Process.now_s() - cpu_began;
    all.seconds = shared.began.elapsed().as_secs_f64();
    match shared.failure.into_inner().expect("nobody panics with it") {
        Some(text) => Err(Failure::Fatal(text)),
        None => Ok(all),
    }
}

/// Until the time is over, or something failed.
fn watch(shared: &Shared<'_>) {
    let (mut said, mut ended) = (Instant::now(), 0);
    while !shared.stop.load(Ordering::Relaxed) {
        let left = shared.plan.duration.saturating_sub(shared.began.elapsed());
        if left.is_zero() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(left.min(Duration::from_millis(200)));
        look_for_hangs(shared);
        if shared.plan.is_loud && said.elapsed() > Duration::from_secs(30) {
            let now = shared.ended.load(Ordering::Relaxed);
            println!(
                "  {:>5.0} s: {:.0} transactions/s",
                shared.began.elapsed().as_secs_f64(),
                (now - ended) as f64 / said.elapsed().as_secs_f64()
            );
            (said, ended) = (Instant::now(), now);
        }
    }
    while shared.open_since_ms.iter().any(|since| since.load(Ordering::Relaxed) > 0) {
        std::thread::sleep(Duration::from_millis(1));
        look_for_hangs(shared);
    }
}

fn look_for_hangs(shared: &Shared<'_>) {
    let now = shared.began.elapsed();
    for (number, since) in shared.open_since_ms.iter().enumerate() {
        let since = since.load(Ordering::Relaxed);
        if since > 0 && now.saturating_sub(Duration::from_millis(since)) > PATIENCE {
            eprintln!("terminal {number} has been in one transaction for more than {PATIENCE:?}: it hangs");
            std::process::exit(3);
        }
    }
}

/// What one terminal does until the end.
fn terminal(shared: &Shared<'_>, number: usize, connection: &mut dyn Connection) -> Done<Measured> {
    let plan = shared.plan;
    let at = i64::try_from(number).expect("few terminals");
    let (warehouse, district) = (at % plan.scale.warehouses + 1, at / plan.scale.warehouses % DISTRICTS + 1);
    let home = Terminal { warehouse, district, scale: plan.scale, constants: plan.constants };
    let mut draw = Draw::new(plan.seed, number as u64 + 1);
    let mut moments = Moments { terminal: at, last: 0 };
    let mut deck = Deck::default();
    let mut measured = Measured::default();
    let io = |error: std::io::Error| Failure::fatal(error.to_string());
    let mut told_to = match &plan.told_to {
        Some(directory) => Some(File::create(directory.join(format!("{number}"))).map_err(io)?),
        None => None,
    };
    while !shared.stop.load(Ordering::Relaxed) {
        let kind = deck.next(&mut draw);
        let input = home.input(kind, &mut draw);
        let began = Instant::now();
        shared.open_since_ms[number].store((began - shared.began).as_millis() as u64 + 1, Ordering::Relaxed);
        let took = &mut measured.took[KINDS.iter().position(|own| *own == kind).expect("one of them")];
        let ended = loop {
            match run(connection, &input, moments.next()) {
                Ok(end) => break Ok(end),
                // At the end of a run nothing is tried again.
                Err(Failure::Retry(state)) => {
                    *took.retries.entry(state).or_default() += 1;
                    if shared.stop.load(Ordering::Relaxed) {
                        break Ok(End::Committed(Vec::new()));
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        shared.open_since_ms[number].store(0, Ordering::Relaxed);
        let latency = began.elapsed();
        match ended? {
            End::RolledBack => took.rolled_back += 1,
            End::Committed(changes) => {
                if let Some(file) = &mut told_to {
                    let lines: String = changes.iter().map(Change::line).collect();
                    file.write_all(lines.as_bytes()).map_err(io)?;
                }
                measured.changes.extend(changes);
                if kind == Kind::NewOrder {
                    let tenth = (began - shared.began).as_secs_f64() / plan.duration.as_secs_f64() * 10.0;
                    measured.tenths[(tenth as usize).min(9)] += 1;
                }
            }
        }
        took.latencies_us.push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
        shared.ended.fetch_add(1, Ordering::Relaxed);
    }
    Ok(measured)
}
