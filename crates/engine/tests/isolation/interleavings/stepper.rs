//! Two transactions, step by step.
//!
//! Invariant: a step is sent when the one before it is done or waits for a lock. Only the end of a transaction ends the wait of the other.

use super::programs::{FIRST_ROWS, Op, Outcome};
use crate::world::{Scans, World, parts};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Isolation, Transaction};
use pagefold_engine::transaction::LockError;
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, ValueRef};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What happened, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A step began; it may have to wait.
    Begun(usize, Op),
    /// It waits for the other.
    Waits(usize),
    Ended(usize, Op, Outcome),
}

/// A thread that does the steps of one transaction after the other.
pub(super) fn serve(world: &World, who: usize, level: Isolation, steps: &Receiver<Op>, done: &Sender<(usize, Op, Outcome)>) {
    let mut running: Option<Transaction<'_>> = None;
    for op in steps {
        let mut t = running.take().unwrap_or_else(|| world.begin(level));
        let result = match op {
            Op::Commit => t.commit().map(|()| Outcome::Done),
            Op::Rollback => t.rollback().map(|()| Outcome::Done),
            op => {
                let result = step(world, &mut t, op);
                running = Some(t);
                result
            }
        };
        let outcome = outcome(result);
        if outcome.is_victim() {
            // Its locks go with it.
            running.take().map_or(Ok(()), Transaction::rollback).unwrap();
        }
        done.send((who, op, outcome)).unwrap();
    }
}

fn outcome(result: Result<Outcome>) -> Outcome {
    match result {
        Ok(outcome) => outcome,
        Err(Error::DuplicateKey { .. }) => Outcome::Duplicate,
        Err(Error::Lock(LockError::Deadlock { .. })) => Outcome::Deadlock,
        Err(Error::Conflict { .. }) => Outcome::Conflict,
        Err(Error::Serialization(_)) => Outcome::Serialization,
        Err(error) => panic!("{error}"),
    }
}

fn step(world: &World, t: &mut Transaction<'_>, op: Op) -> Result<Outcome> {
    let found = |found: bool| Ok(if found { Outcome::Done } else { Outcome::Absent });
    match op {
        Op::Read(number) => {
            let row = t.get(&world.table, &world.by_number, &[ValueRef::Int(number)], |_, record| world.table.values(record))?;
            Ok(Outcome::Rows(row.transpose()?.iter().map(|row| short(&parts(row))).collect()))
        }
        Op::ReadAll | Op::ReadByValue => {
            let index = if op == Op::ReadAll { &world.by_number } else { &world.by_value };
            let mut rows = Vec::new();
            for row in t.rows_by(&world.table, index, Direction::Forward)? {
                rows.push(short(&parts(&row?.1)));
            }
            assert!(rows.is_sorted_by_key(|row| if op == Op::ReadAll { row.0 } else { row.1 }), "{rows:?}");
            let mut keys = 0;
            for key in t.keys_of(&world.table, index, Direction::Forward)? {
                key?;
                keys += 1;
            }
            assert_eq!(keys, rows.len(), "keys without their rows");
            rows.sort_unstable();
            Ok(Outcome::Rows(rows))
        }
        Op::Scan => {
            let mut rows = Vec::new();
            for row in t.rows(&world.table)? {
                rows.push(short(&parts(&row?.1)));
            }
            rows.sort_unstable();
            Ok(Outcome::Rows(rows))
        }
        Op::Insert(number, value) => world.insert(t, number, value, "").map(|_| Outcome::Done),
        Op::Update(number, value) => match find(world, t, number)? {
            Some(rid) => found(t.update(&world.table, rid, &[(1, ValueRef::Int(value))])?),
            None => Ok(Outcome::Absent),
        },
        Op::Add(number, amount) => {
            let Some(rid) = find(world, t, number)? else { return Ok(Outcome::Absent) };
            let Some(row) = t.row(&world.table, rid)? else { return Ok(Outcome::Absent) };
            let value = parts(&row).1.0 + amount;
            found(t.update(&world.table, rid, &[(1, ValueRef::Int(value))])?)
        }
        Op::Renumber(from, to) => match find(world, t, from)? {
            Some(rid) => found(t.update(&world.table, rid, &[(0, ValueRef::Int(to))])?),
            None => Ok(Outcome::Absent),
        },
        Op::Delete(number) => match find(world, t, number)? {
            Some(rid) => found(t.delete(&world.table, rid)?),
            None => Ok(Outcome::Absent),
        },
        Op::Commit | Op::Rollback => unreachable!("ends are no statements"),
    }
}

fn find(world: &World, t: &mut Transaction<'_>, number: i64) -> Result<Option<Rid>> {
    Ok(t.find(&world.table, &world.by_number, &[ValueRef::Int(number)])?.first().copied())
}

fn short(row: &(i64, (i64, String))) -> (i64, i64) {
    (row.0, row.1.0)
}

/// Sends steps to two threads.
pub(super) struct Stepper<'w> {
    world: &'w World,
    steps: [Sender<Op>; 2],
    done: Receiver<(usize, Op, Outcome)>,
}

impl<'w> Stepper<'w> {
    /// Starts the threads.
    pub(super) fn start<'s>(world: &'w World, level: Isolation, scope: &'s std::thread::Scope<'s, '_>) -> Stepper<'w>
    where
        'w: 's,
    {
        let (to, done) = channel();
        let steps = [0, 1].map(|who| {
            let (steps, of) = channel();
            let to = to.clone();
            scope.spawn(move || serve(world, who, level, &of, &to));
            steps
        });
        Stepper { world, steps, done }
    }

    /// Puts the rows back to what they are at first.
    pub(super) fn reset(&self) {
        let mut t = self.world.begin(Isolation::ReadCommitted);
        for row in t.rows(&self.world.table).unwrap() {
            assert!(t.delete(&self.world.table, row.unwrap().0).unwrap());
        }
        for (number, value) in FIRST_ROWS {
            self.world.insert(&mut t, number, value, "").unwrap();
        }
        t.commit().unwrap();
    }

    /// Runs two programs in an order. Steps of a victim are left out, those of one that waits come when it goes on.
    pub(super) fn run(&self, programs: [&[Op]; 2], order: &[usize]) -> Vec<Event> {
        let mut run = Run {
            stepper: self,
            programs: programs.map(<[Op]>::to_vec),
            next: [0; 2],
            waiting: [false; 2],
            due: [0; 2],
            events: Vec::new(),
        };
        for &who in order {
            run.due[who] += 1;
            run.go_on();
        }
        assert!(run.waiting == [false; 2], "both wait: {:?}", run.events);
        run.events
    }

    /// What is committed.
    pub(super) fn rows(&self) -> Vec<(i64, i64)> {
        let mut t = self.world.begin(Isolation::ReadCommitted);
        match step(self.world, &mut t, Op::ReadAll).unwrap() {
            Outcome::Rows(rows) => rows,
            other => panic!("{other:?}"),
        }
    }
}

struct Run<'s, 'w> {
    stepper: &'s Stepper<'w>,
    programs: [Vec<Op>; 2],
    next: [usize; 2],
    waiting: [bool; 2],
    /// Steps whose turn has come.
    due: [usize; 2],
    events: Vec<Event>,
}

impl Run<'_, '_> {
    /// Does the steps that are due, of those that do not wait.
    fn go_on(&mut self) {
        while let Some(who) = (0..2).find(|&who| self.due[who] > 0 && !self.waiting[who]) {
            self.due[who] -= 1;
            let Some(&op) = self.programs[who].get(self.next[who]) else { continue };
            self.next[who] += 1;
            self.events.push(Event::Begun(who, op));
            self.stepper.steps[who].send(op).unwrap();
            self.wait_for(who);
        }
    }

    /// Until a step is done or waits; and whoever waited for it is done, too. That one may be heard of first, and comes second.
    fn wait_for(&mut self, who: usize) {
        let other = 1 - who;
        let (mut open, mut later) = (true, None);
        while open || (self.waiting[other] && self.is_over(who)) {
            if let Ok((ended, op, outcome)) = self.stepper.done.try_recv() {
                self.waiting[ended] = false;
                if outcome.is_victim() {
                    self.next[ended] = self.programs[ended].len();
                }
                let comes_later = ended == other && open && outcome != Outcome::Deadlock;
                let event = Event::Ended(ended, op, outcome);
                if comes_later {
                    later = Some(event);
                } else {
                    self.events.push(event);
                }
                open &= ended != who;
            } else if open && !self.waiting[other] && !self.is_over(other) && self.stepper.world.database.waiting_transactions() == 1 {
                self.waiting[who] = true;
                self.events.push(Event::Waits(who));
                open = false;
            } else {
                std::thread::yield_now();
            }
        }
        self.events.extend(later);
    }

    /// It has ended: nothing waits for it any more.
    fn is_over(&self, who: usize) -> bool {
        self.next[who] == self.programs[who].len() && !self.waiting[who]
    }
}
