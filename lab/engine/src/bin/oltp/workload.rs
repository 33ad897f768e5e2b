//! A workload: its tables, its statements, its transactions, and what has to hold afterwards.

use pagefold_lab_engine::random::Random;
use pagefold_lab_engine::sessions::{Access, Connection, Done, Failure, Query, number};
use pagefold_lab_engine::terminals::{self, Took};
use pagefold_types::Value;
use std::time::Duration;

/// Rows of a transaction of the load.
const LOAD_ROWS: i64 = 1000;

/// A workload.
pub(crate) trait Workload: Sync {
    /// What a transaction is drawn to do; tried again, it does the same.
    type Input;
    /// What a terminal knows.
    type Terminal;

    fn name(&self) -> String;
    /// The texts that make the tables; `with` stands behind each CREATE TABLE.
    fn definitions(&self, with: &str) -> Vec<String>;
    /// The statements, numbered.
    fn queries(&self) -> Vec<Query>;
    fn load(&self, connection: &mut dyn Connection) -> Done<()>;
    fn terminal(&self, number: usize) -> Self::Terminal;
    fn input(&self, terminal: &mut Self::Terminal, random: &mut Random) -> Self::Input;
    /// One transaction. What it gives is added up, and [`Self::check`] gets the sum.
    fn run(&self, connection: &mut dyn Connection, input: &Self::Input) -> Done<i64>;
    /// What has to hold after the transactions that were told of.
    fn check(&self, connection: &mut dyn Connection, told: i64) -> Done<()>;
}

/// How a run is driven.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) terminals: usize,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) is_loud: bool,
}

/// What runs came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    took: Took,
    seconds: f64,
    cpu_seconds: f64,
    /// The sum of what transactions gave.
    pub(crate) told: i64,
}

impl Measured {
    pub(crate) fn add(&mut self, other: Measured) {
        self.took.add(other.took);
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
        self.told += other.told;
    }

    pub(crate) fn count(&self) -> usize {
        self.took.latencies_us.len()
    }

    /// Transactions a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count() as f64 / self.seconds
    }

    /// Processor time of a transaction in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.count().max(1) as f64
    }

    pub(crate) fn print(&mut self, name: &str) {
        println!(
            "{name:<30} {:>10.0} {:>9.1} {:>9.3} {:>9.3} {:>9.3} {:>9.3}  {}",
            self.rate(),
            self.cpu_us(),
            self.took.within_ms(0.5),
            self.took.within_ms(0.95),
            self.took.within_ms(0.99),
            self.took.within_ms(1.0),
            self.took.retries_text()
        );
    }
}

/// Runs a workload for a time; each terminal has a connection.
pub(crate) fn run<W: Workload, C: Connection>(workload: &W, settings: &Settings, connect: impl Fn() -> Done<C> + Sync) -> Done<Measured> {
    let ran = terminals::drive(settings.terminals, settings.duration, settings.is_loud, |running, number| {
        let mut connection = connect()?;
        let mut terminal = workload.terminal(number);
        let mut random = Random::of(settings.seed, number as u64 + 1);
        let (mut took, mut told) = (Took::default(), 0);
        while running.goes_on() {
            let input = workload.input(&mut terminal, &mut random);
            let ended =
                running.transaction(number, &mut took, || workload.run(&mut connection, &input).inspect_err(|_| _ = connection.rollback()));
            told += ended?.unwrap_or(0);
        }
        Ok((took, told))
    })?;
    let mut measured = Measured { seconds: ran.seconds, cpu_seconds: ran.cpu_seconds, ..Measured::default() };
    for (took, told) in ran.each {
        measured.took.add(took);
        measured.told += told;
    }
    Ok(measured)
}

/// Inserts rows with numbers from `first` on, so many in a transaction.
pub(crate) fn insert_rows(
    connection: &mut dyn Connection,
    insert: Query,
    first: i64,
    count: i64,
    mut row: impl FnMut(i64) -> Vec<Value>,
) -> Done<()> {
    for from in (first..first + count).step_by(LOAD_ROWS as usize) {
        connection.begin(Access::Write)?;
        for number in from..(from + LOAD_ROWS).min(first + count) {
            connection.change(insert, &row(number))?;
        }
        connection.commit()?;
    }
    Ok(())
}

/// The one number that a query gives; NULL is 0.
pub(crate) fn figure(connection: &mut dyn Connection, text: &str) -> Done<i64> {
    let rows = connection.say(text, &[])?;
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Null) => Ok(0),
        Some(value) => number(value),
        None => Err(Failure::fatal(format!("no row of {text}"))),
    }
}

/// An error unless both are equal.
pub(crate) fn equal(what: &str, found: i64, wanted: i64) -> Done<()> {
    if found == wanted { Ok(()) } else { Err(Failure::fatal(format!("{what}: {found}, not {wanted}"))) }
}

/// So many letters.
pub(crate) fn letters(random: &mut Random, count: usize) -> String {
    (0..count).map(|_| char::from(b'a' + u8::try_from(random.below(26)).expect("a letter"))).collect()
}
