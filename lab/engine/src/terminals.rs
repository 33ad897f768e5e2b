//! Terminals: threads that run one transaction after the other until the time is over, without think times and keying
//! times.
//!
//! A transaction that others came in the way of is tried again, until it commits; its latency is that of all tries. Any
//! other error ends the run. One that takes longer than two minutes ends the process: it may never come back.

use crate::sessions::{Done, Failure};
use pagefold_lab::measure::Clock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a transaction may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a kind of transaction came to.
#[derive(Clone, Debug, Default)]
pub struct Took {
    /// Microseconds of each that ended.
    pub latencies_us: Vec<u32>,
    /// By SQLSTATE.
    pub retries: BTreeMap<&'static str, u64>,
}

impl Took {
    /// Adds what another terminal's came to.
    pub fn add(&mut self, other: Took) {
        self.latencies_us.extend(other.latencies_us);
        for (state, count) in other.retries {
            *self.retries.entry(state).or_default() += count;
        }
    }

    /// Milliseconds within which this share of them ended. What was added before is sorted.
    pub fn within_ms(&mut self, share: f64) -> f64 {
        self.latencies_us.sort_unstable();
        let count = self.latencies_us.len();
        let place = ((count as f64 * share) as usize).min(count.saturating_sub(1));
        f64::from(self.latencies_us.get(place).copied().unwrap_or(0)) / 1000.0
    }

    /// What was tried again, as text.
    #[must_use]
    pub fn retries_text(&self) -> String {
        let retries: Vec<String> = self.retries.iter().map(|(state, count)| format!("{state} {count}")).collect();
        retries.join(", ")
    }
}

/// What all terminals of a run share.
#[derive(Debug)]
pub struct Running {
    began: Instant,
    duration: Duration,
    stop: AtomicBool,
    failure: Mutex<Option<String>>,
    /// Milliseconds since the beginning at which the transaction of each terminal began; 0: none.
    open_since_ms: Vec<AtomicU64>,
    ended: AtomicU64,
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran<T> {
    /// What each terminal came to.
    pub each: Vec<T>,
    /// How long it took.
    pub seconds: f64,
    /// Processor time of the process.
    pub cpu_seconds: f64,
}

impl Running {
    /// Whether there is time left for another transaction.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// In which part of the time something was, from 0 to 1.
    #[must_use]
    pub fn share_at(&self, moment: Instant) -> f64 {
        (moment - self.began).as_secs_f64() / self.duration.as_secs_f64()
    }

    fn fail(&self, text: String) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().expect("nobody panics with it").get_or_insert(text);
    }

    /// One transaction of a terminal, tried again until it ends; `None` when it was to be tried again as the time was over.
    ///
    /// # Errors
    /// What no retry would mend.
    pub fn transaction<R>(&self, terminal: usize, took: &mut Took, mut run: impl FnMut() -> Done<R>) -> Done<Option<R>> {
        let began = Instant::now();
        self.open_since_ms[terminal].store((began - self.began).as_millis() as u64 + 1, Ordering::Relaxed);
        let ended = loop {
            match run() {
                Ok(end) => break Ok(Some(end)),
                // At the end of a run nothing is tried again.
                Err(Failure::Retry(state)) => {
                    *took.retries.entry(state).or_default() += 1;
                    if !self.goes_on() {
                        break Ok(None);
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        self.open_since_ms[terminal].store(0, Ordering::Relaxed);
        if matches!(ended, Ok(Some(_))) {
            took.latencies_us.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        ended
    }

    /// Until the time is over, or something failed.
    fn watch(&self, is_loud: bool) {
        let (mut said, mut ended) = (Instant::now(), 0);
        while self.goes_on() {
            let left = self.duration.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                self.stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(left.min(Duration::from_millis(200)));
            self.look_for_hangs();
            if is_loud && said.elapsed() > Duration::from_secs(30) {
                let now = self.ended.load(Ordering::Relaxed);
                let rate = (now - ended) as f64 / said.elapsed().as_secs_f64();
                println!("  {:>5.0} s: {rate:.0} transactions/s", self.began.elapsed().as_secs_f64());
                (said, ended) = (Instant::now(), now);
            }
        }
        while self.open_since_ms.iter().any(|since| since.load(Ordering::Relaxed) > 0) {
            std::thread::sleep(Duration::from_millis(1));
            self.look_for_hangs();
        }
    }

    fn look_for_hangs(&self) {
        let now = self.began.elapsed();
        for (number, since) in self.open_since_ms.iter().enumerate() {
            let since = since.load(Ordering::Relaxed);
            if since > 0 && now.saturating_sub(Duration::from_millis(since)) > PATIENCE {
                eprintln!("terminal {number} has been in one transaction for more than {PATIENCE:?}: it hangs");
                std::process::exit(3);
            }
        }
    }
}

/// Runs so many terminals for a time, each by `terminal` with its number; how it goes is said now and then if it `is_loud`.
///
/// # Errors
/// The first failure of a terminal.
pub fn drive<T: Send>(
    terminals: usize,
    duration: Duration,
    is_loud: bool,
    terminal: impl Fn(&Running, usize) -> Done<T> + Sync,
) -> Done<Ran<T>> {
    let running = Running {
        began: Instant::now(),
        duration,
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        open_since_ms: (0..terminals).map(|_| AtomicU64::new(0)).collect(),
        ended: AtomicU64::new(0),
    };
    let mut each = Vec::with_capacity(terminals);
    let cpu_began = Clock::Process.now_s();
    std::thread::scope(|scope| {
        let (running, terminal) = (&running, &terminal);
        let run_one = move |number| {
            let ran = terminal(running, number);
            ran.inspect_err(|failure| running.fail(format!("terminal {number}: {failure}"))).ok()
        };
        let threads: Vec<_> = (0..terminals).map(|number| scope.spawn(move || run_one(number))).collect();
        running.watch(is_loud);
        for thread in threads {
            match thread.join() {
                Ok(ran) => each.extend(ran),
                Err(_) => running.fail("a terminal panicked".into()),
            }
        }
    });
    let cpu_seconds = Clock::Process.now_s() - cpu_began;
    let seconds = running.began.elapsed().as_secs_f64();
    match running.failure.into_inner().expect("nobody panics with it") {
        Some(text) => Err(Failure::Fatal(text)),
        None => Ok(Ran { each, seconds, cpu_seconds }),
    }
}
