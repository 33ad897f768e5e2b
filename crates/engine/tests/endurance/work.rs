//! What the process does until it is killed: eight threads that transfer money, others that audit, write checkpoints and renew dictionaries, and a disk that is full now and then.
//!
//! Each line that it writes is a word of [`SAID`]; behind `commit` stand writer, number of the commit, and whether the end of the process must leave it.

use crate::bank::{ACCOUNTS, Bank, COUNTERS, Content, KEPT, Row, WRITERS, history_number};
use crate::full_disk::Disk;
use crate::world::{Random, is_retryable};
use pagefold_engine::database::{Durability, Isolation, Transaction, TransactionOptions};
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, ValueRef};
use std::io::Write;
use std::time::Duration;

pub(crate) const SAID: [&str; 8] = ["commit", "rollback", "savepoint", "duplicate", "again", "full", "audit", "checkpoint"];

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // In one piece, so that no line is cut off.
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull)
}

/// An error that is met in the ordinary course of things: the transaction is to be rolled back and tried again.
fn expect_passing(error: Error) {
    match &error {
        error if is_full(error) => say("full"),
        error if is_retryable::<()>(&Err(error.clone())) => say("again"),
        error => panic!("{error}"),
    }
}

/// Works until the process is killed.
pub(crate) fn work(bank: &Bank, disk: &Disk, seed: u64) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write(bank, writer, Random(seed * 100 + writer as u64)));
        }
        scope.spawn(|| audit(bank, Random(seed * 100 + 50)));
        if seed.is_multiple_of(3) {
            scope.spawn(|| maintain(bank));
        }
        if seed.is_multiple_of(2) {
            scope.spawn(|| fill_disk(disk, Random(seed * 100 + 60)));
        }
    });
}

/// The disk is full for moments.
fn fill_disk(disk: &Disk, mut random: Random) {
    for full in [true, false].into_iter().cycle() {
        std::thread::sleep(Duration::from_micros(random.below(100_000)));
        disk.set_full(full);
    }
}

fn maintain(bank: &Bank) {
    for round in 0.. {
        let table = ["accounts", "history"][round % 2];
        match bank.database.checkpoint().and_then(|()| bank.database.renew_dictionaries(table)) {
            Ok(_) => say("checkpoint"),
            Err(error) => expect_passing(error),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Looks at snapshots.
fn audit(bank: &Bank, mut random: Random) {
    loop {
        let isolation = if random.below(4) == 0 { Isolation::Serializable } else { Isolation::RepeatableRead };
        let mut t = bank.database.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
        match bank.audit(&mut t).and_then(|_| t.commit()) {
            Ok(()) => say("audit"),
            Err(error) => expect_passing(error),
        }
    }
}

fn write(bank: &Bank, writer: i64, mut random: Random) {
    loop {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][random.below(3) as usize];
        let durability = [Durability::Durable, Durability::Durable, Durability::Relaxed, Durability::Off][random.below(4) as usize];
        let options =
            TransactionOptions { isolation, durability, lock_timeout: Duration::from_millis(300), ..TransactionOptions::default() };
        let mut teller = Teller { bank, t: bank.database.begin(options), random: &mut random, writer };
        let outcome = teller.run();
        let t = teller.t;
        match outcome {
            // A rollback never fails, whatever went before.
            Ok(_) if random.below(8) == 0 => {
                t.rollback().unwrap();
                say("rollback");
            }
            Ok(count) => match t.commit() {
                Ok(()) => say(&format!("commit {writer} {count} {}", durability != Durability::Off)),
                Err(error) => {
                    assert!(!is_full(&error), "a commit without room: {error}");
                    expect_passing(error);
                }
            },
            Err(error) => {
                t.rollback().unwrap();
                expect_passing(error);
            }
        }
    }
}

/// A transaction of a writer.
struct Teller<'b, 'r> {
    bank: &'b Bank,
    t: Transaction<'b>,
    random: &'r mut Random,
    writer: i64,
}

impl Teller<'_, '_> {
    /// The number that the commit will have.
    fn run(&mut self) -> Result<i64> {
        self.taken_back()?;
        let mut amount = 0;
        for _ in 0..=self.random.below(2) {
            amount = self.transfer()?;
            self.refused()?;
        }
        let count = self.count()?;
        self.taken_back()?;
        self.bank.history.insert(&mut self.t, Row { number: history_number(self.writer, count), value: amount, version: count % 7 })?;
        if count > KEPT {
            let oldest = self.bank.history.find(&mut self.t, history_number(self.writer, count - KEPT))?;
            assert!(self.t.delete(&self.bank.history.table, oldest.expect("the oldest transfer"))?);
        }
        self.taken_back()?;
        Ok(count)
    }

    fn account(&mut self) -> Result<(i64, Rid)> {
        let number = self.random.below(ACCOUNTS as u64) as i64;
        let rid = self.bank.accounts.find(&mut self.t, number)?;
        Ok((number, rid.unwrap_or_else(|| panic!("account {number} is not there"))))
    }

    fn transfer(&mut self) -> Result<i64> {
        let ((from, from_rid), (to, to_rid)) = (self.account()?, self.account()?);
        if from == to {
            return Ok(0);
        }
        let amount = self.random.below(100) as i64;
        for (number, rid, change) in [(from, from_rid, -amount), (to, to_rid, amount)] {
            // Under READ COMMITTED only who has locked a row knows what he changes.
            if self.t.isolation() == Isolation::ReadCommitted || self.random.below(2) == 0 {
                assert!(self.t.lock(&self.bank.accounts.table, rid)?, "account {number} cannot be locked");
            }
            let row = self.bank.accounts.row(&mut self.t, rid)?.expect("an account");
            assert_eq!(row.number, number, "at {rid}");
            let value = row.value + change;
            let changed = if self.random.below(3) == 0 {
                self.t.update(&self.bank.accounts.table, rid, &[(1, ValueRef::Int(value))])?
            } else {
                self.bank.accounts.update(&mut self.t, rid, Row { value, version: row.version + 1, ..row })?
            };
            assert!(changed, "account {number} cannot be changed");
        }
        Ok(amount)
    }

    /// Counts the commit; now and then the row is another one from then on.
    fn count(&mut self) -> Result<i64> {
        let accounts = &self.bank.accounts;
        let rid = accounts.find(&mut self.t, COUNTERS + self.writer)?.expect("the counter");
        let row = accounts.row(&mut self.t, rid)?.expect("the counter's row");
        let count = row.value + 1;
        let row = Row { value: count, version: count, ..row };
        if self.random.below(4) == 0 {
            assert!(self.t.delete(&accounts.table, rid)?);
            accounts.insert(&mut self.t, row)?;
        } else {
            assert!(accounts.update(&mut self.t, rid, row)?);
        }
        Ok(count)
    }

    /// Statements that must fail on a duplicate key, after their large values were written.
    fn refused(&mut self) -> Result<()> {
        let accounts = &self.bank.accounts;
        let outcome = match self.random.below(6) {
            0 => {
                let (number, _) = self.account()?;
                let version = self.random.below(1000) as i64;
                accounts.insert(&mut self.t, Row { number, value: 1, version }).map(drop)
            }
            1 => {
                let ((number, rid), (other, _)) = (self.account()?, self.account()?);
                if number == other {
                    return Ok(());
                }
                let content = Content::of(other, self.random.below(1000) as i64);
                self.t.update(&accounts.table, rid, &[[(0, ValueRef::Int(other))].as_slice(), &content.changes()].concat()).map(drop)
            }
            _ => return Ok(()),
        };
        match outcome {
            Err(Error::DuplicateKey { .. }) => say("duplicate"),
            Err(error) => return Err(error),
            Ok(()) => panic!("a number twice"),
        }
        Ok(())
    }

    /// Changes of every kind, taken back to a savepoint.
    fn taken_back(&mut self) -> Result<()> {
        if self.random.below(3) > 0 {
            return Ok(());
        }
        let savepoint = self.t.savepoint();
        for _ in 0..=self.random.below(4) {
            let (accounts, history) = (&self.bank.accounts, &self.bank.history);
            let version = self.random.below(1000) as i64;
            let number = history_number(self.writer, 900_000_000 + version);
            match self.random.below(5) {
                0 | 1 => {
                    let (number, rid) = self.account()?;
                    accounts.update(&mut self.t, rid, Row { number, value: version, version })?;
                }
                2 => {
                    let (_, rid) = self.account()?;
                    self.t.delete(&accounts.table, rid)?;
                    // It may be one that is deleted here that would be asked for next.
                    break;
                }
                _ => {
                    if let Some(rid) = history.find(&mut self.t, number)? {
                        self.t.delete(&history.table, rid)?;
                    }
                    history.insert(&mut self.t, Row { number, value: version, version })?;
                }
            }
            self.refused()?;
        }
        self.t.roll_back_to(savepoint)?;
        say("savepoint");
        Ok(())
    }
}
