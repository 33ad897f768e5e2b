//! Sequences: numbers that are given once.
//!
//! What a sequence is (start, step, bounds) is an object of the catalog. How far it has come is a row of the table [`TABLE`], by the object's number, which is never used
//! again. Numbers are taken from there in blocks, each in a transaction of its own that is committed before any of them is given: so none is given twice, and none comes back when whoever asked
//! takes back what he did. All sessions of a process share a block; what is left of it when the process ends is never given.
//!
//! That commit waits for no sync. It is durable before the transaction that was given a number has ended well, also one that only read (`Session::settle`): what it was for may be elsewhere.
//!
//! Invariant: the row says a number behind all that were given.

use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{Database, Durability, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::TableAttributes;
use pagefold_format::catalog::Sequence;
use pagefold_types::{Column, DataType, Direction, Schema, Value, ValueRef};
use std::collections::HashMap;
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

/// Numbers that were taken and not given yet.
#[derive(Debug)]
struct Block {
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
        let block = match blocks.get_mut(&sequence.id).filter(|block| block.left > 0) {
            Some(block) => block,
            None => {
                let taken = take(database, sequence)?;
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
}

fn exhausted(sequence: &SequenceRef) -> SqlError {
    let end = if sequence.numbers.increment > 0 { ("maximum", sequence.numbers.greatest) } else { ("minimum", sequence.numbers.least) };
    SqlError::new("2200H", format!("nextval: reached {} value of sequence \"{}\" ({})", end.0, sequence.name, end.1))
}

/// Takes a block.
fn take(database: &Arc<Database>, sequence: &SequenceRef) -> SqlResult<Block> {
    let mut tries = 0;
    loop {
        tries += 1;
        match take_once(database, sequence) {
            Err(error) if error.is_retryable() && tries < TRIES => {}
            // Somebody else has made the table meanwhile, or written it anew.
            Err(error) if matches!(error.engine(), Some(Error::Exists { .. } | Error::Stale { .. })) && tries < TRIES => {}
            done => return done,
        }
    }
}

fn take_once(database: &Arc<Database>, sequence: &SequenceRef) -> SqlResult<Block> {
    // Whoever is given a number of the block makes it durable when he ends.
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
    let found = transaction.get(&table, key, &[id], |rid, _| rid)?;
    let numbers = &sequence.numbers;
    let mut next = i128::from(numbers.start);
    if let Some(rid) = found {
        transaction.lock(&table, rid)?;
        match transaction.row(&table, rid)?.as_deref() {
            Some([_, Value::Decimal(number)]) => next = *number,
            _ => return Err(SqlError::new("40001", "the row of a sequence has changed")),
        }
    }
    let (least, greatest, step) = (i128::from(numbers.least), i128::from(numbers.greatest), i128::from(numbers.increment));
    if !(least..=greatest).contains(&next) {
        if !numbers.cycles {
            return Err(exhausted(sequence));
        }
        next = if step > 0 { least } else { greatest };
    }
    let room = if step > 0 { (greatest - next) / step } else { (next - least) / -step } + 1;
    let left = u64::try_from(room).unwrap_or(u64::MAX).min(BLOCK.max(u64::from(numbers.cache)));
    let behind = next + step * i128::from(left);
    match found {
        Some(rid) => drop(transaction.update(&table, rid, &[(1, ValueRef::Decimal(behind))])?),
        None => drop(transaction.insert(&table, &[id, ValueRef::Decimal(behind)])?),
    }
    transaction.commit()?;
    Ok(Block { next, left, taken: database.log_end() })
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
