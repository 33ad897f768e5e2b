//! Sequences: numbers that are given once.
//!
//! What a sequence is (start, step, bounds) is an object of the catalog. How far it has come is a row of the table [`TABLE`], by the object's number, which is never used
//! again. Numbers are taken from there in blocks, each in a transaction of its own that is committed before any of them is given: so none is given twice, and none comes back when whoever asked
//! takes back what he did. All sessions of a process share a block; what is left of it when the process ends is never given.
//!
//! SETVAL does the same with the number that it is given: it is not taken back, either. RESTART is: the sequence becomes another object, without a row, whose numbers begin anew. What a session was
//! given last is the session's own ([`Drawn`]).
//!
//! That commit waits for no sync. It is durable before the transaction that was given a number has ended well, also one that only read (`Session::settle`): what it was for may be elsewhere.
//!
//! Invariant: the row says a number behind all that were given since it was set.

pub(crate) mod statement;

use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{Database, Durability, Transaction, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_format::catalog::Sequence;
use pagefold_types::{Column, DataType, Direction, Rid, Schema, Value, ValueRef};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where it is kept how far sequences have come.
pub(crate) const TABLE: &str = "pagefold_sequences";
/// Numbers taken at once, at least.
const BLOCK: u64 = 32;
/// How often others may come in the way.
const TRIES: u32 = 100;

/// A sequence, as an expression has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SequenceRef {
    /// Its object's number.
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    pub(crate) numbers: Sequence,
}

/// What an expression asks of a sequence, or says to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SequenceCall {
    /// NEXTVAL
    Next(Arc<SequenceRef>),
    /// CURRVAL: the one that the session was given last.
    Current(Arc<SequenceRef>),
    /// LASTVAL: that of the sequence that gave it the last one.
    Last,
    /// SETVAL
    Set(Arc<SequenceRef>),
}

/// Numbers that a session was given.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    /// Up to where the log has to be durable for those to stay given that its transaction was given.
    taken: AtomicU64,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    /// The last one of each sequence.
    numbers: HashMap<u32, i64>,
    /// The sequence that gave the last one.
    last: Option<u32>,
}

impl Drawn {
    fn locked(&self) -> std::sync::MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn given(&self, sequence: &SequenceRef, number: i64, taken: u64) {
        let mut given = self.locked();
        given.last = Some(sequence.id);
        given.numbers.insert(sequence.id, number);
        self.taken.fetch_max(taken, Ordering::Relaxed);
    }

    /// A number was set; `None`: it is not given yet.
    pub(crate) fn set(&self, sequence: &SequenceRef, number: Option<i64>, taken: u64) {
        if let Some(number) = number {
            self.locked().numbers.insert(sequence.id, number);
        }
        self.taken.fetch_max(taken, Ordering::Relaxed);
    }

    /// A sequence has become another object.
    pub(crate) fn renumbered(&self, before: u32, now: u32) {
        let mut given = self.locked();
        if let Some(number) = given.numbers.get(&before).copied() {
            given.numbers.insert(now, number);
        }
        if given.last == Some(before) {
            given.last = Some(now);
        }
    }

    pub(crate) fn current(&self, sequence: &SequenceRef) -> SqlResult<i64> {
        let number = self.locked().numbers.get(&sequence.id).copied();
        number
            .ok_or_else(|| SqlError::new("55000", format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name)))
    }

    pub(crate) fn last(&self) -> SqlResult<i64> {
        let given = self.locked();
        let number = given.last.and_then(|last| given.numbers.get(&last).copied());
        number.ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))
    }

    /// Up to where the log has to be durable, for a transaction that ends.
    pub(crate) fn settled(&self) -> u64 {
        match self.taken.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.taken.swap(0, Ordering::Relaxed),
        }
    }
}

/// Numbers that were taken and not given yet.
#[derive(Debug)]
struct Block {
    /// What is said of the sequence.
    numbers: Sequence,
    next: i128,
    left: u64,
    /// Where the log ended when it had been taken.
    taken: u64,
}

/// The blocks of a process.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    blocks: Mutex<HashMap<u32, Block>>,
}

impl Sequences {
    /// The next number, and up to where the log has to be durable for it to stay given.
    pub(crate) fn next(&self, database: &Arc<Database>, sequence: &SequenceRef) -> SqlResult<(i64, u64)> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = match blocks.get_mut(&sequence.id).filter(|block| block.left > 0 && block.numbers == sequence.numbers) {
            Some(block) => block,
            None => {
                // Where something else is said of it now, it goes on behind the last number that was given.
                let other = blocks.get(&sequence.id).filter(|block| block.numbers != sequence.numbers);
                let from = other.map(|block| block.next - i128::from(block.numbers.increment) + i128::from(sequence.numbers.increment));
                let taken = retried(|| take(database, sequence, from))?;
                blocks.insert(sequence.id, taken);
                match blocks.get_mut(&sequence.id) {
                    Some(block) => block,
                    None => return Err(SqlError::new("XX000", "a block of numbers that is gone")),
                }
            }
        };
        let number = i64::try_from(block.next).map_err(|_| exhausted(sequence))?;
        block.left -= 1;
        block.next += i128::from(sequence.numbers.increment);
        Ok((number, block.taken))
    }

    /// The next number becomes this one, or the one behind it where this is given. Gives up to where the log has to be durable for it to stay so.
    pub(crate) fn set(&self, database: &Arc<Database>, sequence: &SequenceRef, number: i64, is_given: bool) -> SqlResult<u64> {
        let numbers = &sequence.numbers;
        if !(numbers.least..=numbers.greatest).contains(&number) {
            let bounds = format!("{}..{}", numbers.least, numbers.greatest);
            let message = format!("setval: value {number} is out of bounds for sequence \"{}\" ({bounds})", sequence.name);
            return Err(SqlError::new("22003", message));
        }
        let next = i128::from(number) + if is_given { i128::from(numbers.increment) } else { 0 };
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        // What is left of a block is not given any more.
        blocks.remove(&sequence.id);
        retried(|| Place::of(database, sequence)?.put(sequence, next))?;
        Ok(database.log_end())
    }
}

fn exhausted(sequence: &SequenceRef) -> SqlError {
    let end = if sequence.numbers.increment > 0 { ("maximum", sequence.numbers.greatest) } else { ("minimum", sequence.numbers.least) };
    SqlError::new("2200H", format!("nextval: reached {} value of sequence \"{}\" ({})", end.0, sequence.name, end.1))
}

/// Does something again as long as others come in its way.
fn retried<R>(mut run: impl FnMut() -> SqlResult<R>) -> SqlResult<R> {
    let mut tries = 0;
    loop {
        tries += 1;
        match run() {
            Err(error) if error.is_retryable() && tries < TRIES => {}
            // Somebody else has made the table meanwhile, or written it anew.
            Err(error) if matches!(error.engine(), Some(Error::Exists { .. } | Error::Stale { .. })) && tries < TRIES => {}
            done => return done,
        }
    }
}

/// The row of a sequence, in a transaction of its own.
struct Place {
    transaction: Transaction<'static>,
    table: Arc<Table>,
    row: Option<Rid>,
    /// What it says.
    next: Option<i128>,
}

impl Place {
    fn of(database: &Arc<Database>, sequence: &SequenceRef) -> SqlResult<Place> {
        // Whoever is given a number makes it durable when he ends.
        let options = TransactionOptions { durability: Durability::Relaxed, ..TransactionOptions::default() };
        let mut transaction = database.begin_owned(options);
        let table = match transaction.table(TABLE) {
            Err(Error::Unknown { .. }) => {
                make_table(database)?;
                transaction.table(TABLE)?
            }
            found => found?,
        };
        let indexes = transaction.indexes(&table)?;
        let key = indexes.iter().find(|index| index.attributes().is_of_key(&table.attributes().primary_key));
        let key = key.ok_or_else(|| SqlError::new("XX001", format!("table \"{TABLE}\" has lost its key")))?;
        let id = ValueRef::Int(i64::from(sequence.id));
        let row = transaction.get(&table, key, &[id], |rid, _| rid)?;
        let mut next = None;
        if let Some(rid) = row {
            transaction.lock(&table, rid)?;
            match transaction.row(&table, rid)?.as_deref() {
                Some([_, Value::Decimal(number)]) => next = Some(*number),
                _ => return Err(SqlError::new("40001", "the row of a sequence has changed")),
            }
        }
        Ok(Place { transaction, table, row, next })
    }

    /// Says what the next number is.
    fn put(mut self, sequence: &SequenceRef, next: i128) -> SqlResult<()> {
        let id = ValueRef::Int(i64::from(sequence.id));
        match self.row {
            Some(rid) => drop(self.transaction.update(&self.table, rid, &[(1, ValueRef::Decimal(next))])?),
            None => drop(self.transaction.insert(&self.table, &[id, ValueRef::Decimal(next)])?),
        }
        Ok(self.transaction.commit()?)
    }
}

/// Takes a block, from a number on if it is said, else from where the sequence has come to.
fn take(database: &Arc<Database>, sequence: &SequenceRef, from: Option<i128>) -> SqlResult<Block> {
    let place = Place::of(database, sequence)?;
    let numbers = &sequence.numbers;
    let mut next = from.or(place.next).unwrap_or_else(|| i128::from(numbers.start));
    let (least, greatest, step) = (i128::from(numbers.least), i128::from(numbers.greatest), i128::from(numbers.increment));
    if !(least..=greatest).contains(&next) {
        if !numbers.cycles {
            return Err(exhausted(sequence));
        }
        next = if step > 0 { least } else { greatest };
    }
    let room = if step > 0 { (greatest - next) / step } else { (next - least) / -step } + 1;
    let left = u64::try_from(room).unwrap_or(u64::MAX).min(BLOCK.max(u64::from(numbers.cache)));
    place.put(sequence, next + step * i128::from(left))?;
    Ok(Block { numbers: numbers.clone(), next, left, taken: database.log_end() })
}

fn make_table(database: &Arc<Database>) -> SqlResult<()> {
    let mut transaction = database.begin_owned(TransactionOptions::default());
    // One digit more than numbers have: what is behind the last one.
    let behind = DataType::Decimal { precision: 20, scale: 0 };
    let columns = vec![Column::new("sequence_id", DataType::BigInt, false), Column::new("next_number", behind, false)];
    let schema = Schema::new(columns).map_err(|e| SqlError::new("XX000", e.to_string()))?;
    let mut attributes = TableAttributes::new(TABLE, schema).with_page_bytes(4096);
    attributes.primary_key = vec![0];
    let table = transaction.create_table(attributes)?;
    let key = IndexAttributes::new(format!("{TABLE}_pkey"), vec![(0, Direction::Ascending)], true).with_format(IndexFormat::Plain, 4096);
    transaction.create_index(&table, key)?;
    Ok(transaction.commit()?)
}
