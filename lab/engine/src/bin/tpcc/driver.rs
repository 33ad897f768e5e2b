//! What the terminals do: one transaction after the other, with the input of the specification.

use crate::acknowledged::Change;
use crate::input::{Deck, KINDS, Kind, Terminal};
use crate::random::{Constants, Draw};
use crate::schema::{DISTRICTS, Scale};
use crate::transactions::{End, run};
use pagefold_lab_engine::sessions::{Connection, Done, Failure};
use pagefold_lab_engine::terminals::{self, Running, Took};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
pub(crate) struct OfKind {
    pub(crate) took: Took,
    pub(crate) rolled_back: u64,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// Processor time of the process.
    pub(crate) cpu_seconds: f64,
    pub(crate) kinds: [OfKind; KINDS.len()],
    pub(crate) changes: Vec<Change>,
    /// New-Orders in each tenth of the time.
    pub(crate) tenths: [u64; 10],
}

impl Measured {
    fn add(&mut self, other: Measured) {
        for (own, other) in self.kinds.iter_mut().zip(other.kinds) {
            own.took.add(other.took);
            own.rolled_back += other.rolled_back;
        }
        self.changes.extend(other.changes);
        for (own, other) in self.tenths.iter_mut().zip(other.tenths) {
            *own += other;
        }
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
    let ran = terminals::drive(plan.terminals, plan.duration, plan.is_loud, |running, number| {
        terminal(plan, running, number, connect()?.as_mut())
    })?;
    let mut all = Measured { seconds: ran.seconds, cpu_seconds: ran.cpu_seconds, ..Measured::default() };
    ran.each.into_iter().for_each(|measured| all.add(measured));
    Ok(all)
}

/// What one terminal does until the end.
fn terminal(plan: &Plan, running: &Running, number: usize, connection: &mut dyn Connection) -> Done<Measured> {
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
    while running.goes_on() {
        let kind = deck.next(&mut draw);
        let input = home.input(kind, &mut draw);
        let of_kind = &mut measured.kinds[KINDS.iter().position(|own| *own == kind).expect("one of them")];
        let began = Instant::now();
        match running.transaction(number, &mut of_kind.took, || run(connection, &input, moments.next()))? {
            None => {}
            Some(End::RolledBack) => of_kind.rolled_back += 1,
            Some(End::Committed(changes)) => {
                if let Some(file) = &mut told_to {
                    let lines: String = changes.iter().map(Change::line).collect();
                    file.write_all(lines.as_bytes()).map_err(io)?;
                }
                measured.changes.extend(changes);
                if kind == Kind::NewOrder {
                    let tenth = running.share_at(began) * 10.0;
                    measured.tenths[(tenth as usize).min(9)] += 1;
                }
            }
        }
    }
    Ok(measured)
}
