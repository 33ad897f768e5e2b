//! What operations on rows cost under each method.
//!
//! Each method has two tables: one without indexes, into which rows are put, changed, scanned and deleted; and one with a plain index of the primary key, by which rows are found. What a row takes by
//! itself is what finding it takes less the descent.

use super::WayCosts;
use crate::estimate::{InTurn, shuffled};
use crate::{Error, Progress, Result};
use pagefold_advisor::{Cost, OperationCosts};
use pagefold_codec::row::RowDictionary;
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_types::{Direction, KeyLayout, Rid, Schema, Value, ValueRef, key_bytes_max};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;

const METHODS: usize = Method::ALL.len();
/// Rows of a transaction, and look-ups between two looks at the clock.
const PIECE: usize = 100;
/// Rows that are inserted together.
const BATCH: usize = 1000;
const ROUNDS: usize = 2;
const READ_ROUNDS: usize = 2;
const KEY_PAGE_BYTES: usize = 8192;

/// Rows, and the table that they are of.
pub(super) struct RowsOf<'r> {
    pub(super) schema: &'r Schema,
    pub(super) key: &'r [usize],
    pub(super) page_bytes: usize,
    pub(super) rows: &'r [Vec<Value>],
}

/// The tables of one method.
struct Contender {
    bare: Arc<Table>,
    rids: Vec<Rid>,
    /// With the index of the primary key, where rows have one.
    keyed: Option<(Arc<Table>, Arc<Index>)>,
    keyed_rids: Vec<Rid>,
}

fn unsynced() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

impl RowsOf<'_> {
    /// The keys of all rows; of a table without a primary key there are none.
    fn encoded_keys(&self) -> Result<Vec<Vec<u8>>> {
        if self.key.is_empty() {
            return Ok(Vec::new());
        }
        let columns: Vec<(usize, Direction)> = self.key.iter().map(|column| (*column, Direction::Ascending)).collect();
        let layout = KeyLayout::new(self.schema, &columns);
        let encode = |row: &Vec<Value>| {
            let values: Vec<ValueRef<'_>> = self.key.iter().map(|column| row[*column].as_ref()).collect();
            let mut bytes = Vec::new();
            layout.encode(&values, &mut bytes).map_err(|e| Error::Data(e.to_string())).map(|_| bytes)
        };
        self.rows.iter().map(encode).collect()
    }

    /// Has every row a key that an index takes and no other row has?
    fn has_keys(&self) -> bool {
        let Ok(keys) = self.encoded_keys() else { return false };
        let is_short = keys.iter().all(|key| key.len() <= key_bytes_max(KEY_PAGE_BYTES));
        !self.key.is_empty() && is_short && keys.iter().collect::<BTreeSet<_>>().len() == keys.len()
    }

    /// A column to change: the first that is not in the key and holds no texts, else the first that is not in the key.
    fn changed_column(&self) -> Option<usize> {
        let is_text =
            |column: &usize| self.rows.iter().take(PIECE).any(|row| matches!(row[*column], Value::Text(_) | Value::Bytes(_) | Value::Null));
        let others = || (0..self.schema.len()).filter(|column| !self.key.contains(column));
        others().find(|column| !is_text(column)).or_else(|| others().next())
    }
}

impl Contender {
    fn new(database: &Database, of: &RowsOf<'_>, method: Method, dictionary: Option<&RowDictionary>, round: usize) -> Result<Contender> {
        let attributes =
            |name: String| TableAttributes { method, ..TableAttributes::new(name, of.schema.clone()).with_page_bytes(of.page_bytes) };
        let mut change = database.change();
        let bare = change.create_table(attributes(format!("{method} {round}")))?;
        let keyed = match of.has_keys() {
            false => None,
            true => {
                let name = format!("{method} {round} with key");
                let table = change.create_table(TableAttributes { primary_key: of.key.to_vec(), ..attributes(name.clone()) })?;
                let columns = of.key.iter().map(|column| (*column, Direction::Ascending)).collect();
                let key = IndexAttributes::new(format!("key of {name}"), columns, true).with_format(IndexFormat::Plain, KEY_PAGE_BYTES);
                let key = change.create_index(&table, key)?;
                Some((table, key))
            }
        };
        for table in std::iter::once(&bare).chain(keyed.iter().map(|(table, _)| table)) {
            if let Some(dictionary) = dictionary {
                table.set_dictionary(dictionary.clone())?;
            }
        }
        change.commit()?;
        Ok(Contender { bare, rids: Vec::new(), keyed, keyed_rids: Vec::new() })
    }
}

/// Nanoseconds of an operation by method.
type Each = Vec<f64>;

/// The same of two numbers of columns: a part for the row and one for each value.
fn in_parts(few: f64, all: f64, (few_columns, all_columns): (usize, usize)) -> (f64, f64) {
    let value = if all_columns > few_columns { ((all - few) / (all_columns - few_columns) as f64).max(0.0) } else { 0.0 };
    ((few - value * few_columns as f64).max(0.0), value)
}

/// Costs of each method; dictionaries by method.
pub(super) fn costs(
    database: &Database,
    of: &RowsOf<'_>,
    dictionaries: &[Option<RowDictionary>; METHODS],
    progress: &dyn Progress,
) -> Result<Vec<WayCosts>> {
    let rows: Vec<Vec<ValueRef<'_>>> = of.rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
    let groups: Vec<&[Vec<ValueRef<'_>>]> = rows.chunks(PIECE).collect();
    let batches: Vec<&[Vec<ValueRef<'_>>]> = rows.chunks(BATCH).collect();
    let keys: Vec<Vec<ValueRef<'_>>> = rows.iter().map(|row| of.key.iter().map(|column| row[*column]).collect()).collect();
    let has_keys = of.has_keys();
    let encoded = if has_keys { of.encoded_keys()? } else { Vec::new() };
    let order = shuffled((0..rows.len()).collect());
    let order: Vec<&[usize]> = order.chunks(PIECE).collect();
    let all = of.schema.len();
    let few: Vec<usize> = if all > 1 { vec![0, all / 2] } else { vec![0] };
    let counts = (few.len(), all);
    let turns = |pieces: usize| InTurn::new(METHODS, pieces);
    let (mut inserts, mut keyed_inserts, mut batch_inserts) = (turns(groups.len()), turns(groups.len()), turns(batches.len()));
    let (mut searches, mut updates, mut deletes) = (turns(order.len()), turns(order.len()), turns(order.len()));
    let mut reads = [turns(order.len()), turns(order.len())];
    let (mut changes, mut changes_and_reads) = (turns(order.len()), turns(order.len()));
    let mut scans = [turns(1), turns(1)];
    let changed = of.changed_column();
    for round in 0..ROUNDS {
        let contenders = Method::ALL.iter().zip(dictionaries);
        let mut contenders: Vec<Contender> = contenders
            .map(|(method, dictionary)| Contender::new(database, of, *method, dictionary.as_ref(), round))
            .collect::<Result<_>>()?;
        inserts.round(progress, |at, group| {
            let mut transaction = database.begin(unsynced());
            let Contender { bare, rids, .. } = &mut contenders[at];
            for row in groups[group] {
                rids.push(transaction.insert(bare, row)?);
            }
            Ok(transaction.commit()?)
        })?;
        keyed_inserts.round(progress, |at, group| {
            let Contender { keyed, keyed_rids, .. } = &mut contenders[at];
            let Some((table, _)) = keyed else { return Ok(()) };
            let mut transaction = database.begin(unsynced());
            for row in groups[group] {
                keyed_rids.push(transaction.insert(table, row)?);
            }
            Ok(transaction.commit()?)
        })?;
        for _ in 0..READ_ROUNDS {
            searches.round(progress, |at, piece| {
                let Some((_, key)) = &contenders[at].keyed else { return Ok(()) };
                for number in order[piece] {
                    black_box(key.tree().first_rid(&encoded[*number])?);
                }
                Ok(())
            })?;
            for (reads, columns) in reads.iter_mut().zip([Some(&few), None]) {
                reads.round(progress, |at, piece| {
                    let Contender { bare, rids, keyed, .. } = &contenders[at];
                    let table = keyed.as_ref().map_or(bare, |(table, _)| table);
                    let mut buffer = columns.map_or_else(RowBuffer::default, |columns| RowBuffer::for_columns(table, columns));
                    let mut transaction = database.begin(unsynced());
                    for number in order[piece] {
                        match keyed {
                            Some((table, key)) => {
                                transaction.get_with(table, key, &keys[*number], &mut buffer, |_, record| black_box(record).len())?;
                            }
                            None => {
                                transaction.read(bare, rids[*number], &mut buffer, |record| black_box(record).len())?;
                            }
                        }
                    }
                    Ok(())
                })?;
            }
            for (scans, columns) in scans.iter_mut().zip([Some(few.clone()), None]) {
                scans.round(progress, |at, _| {
                    let request = ScanRequest { columns: columns.clone(), ..ScanRequest::default() };
                    let mut scan = database.read_view().scan(&contenders[at].bare, &request)?.into_rows();
                    while let Some((_, record)) = scan.next_record()? {
                        black_box(record);
                    }
                    Ok(())
                })?;
            }
        }
        if let Some(column) = changed {
            updates.round(progress, |at, piece| {
                let Contender { bare, rids, .. } = &contenders[at];
                let mut transaction = database.begin(unsynced());
                for number in order[piece] {
                    let value = rows[(*number + 1) % rows.len()][column];
                    transaction.update(bare, rids[*number], &[(column, value)])?;
                }
                Ok(transaction.commit()?)
            })?;
        }
        // Changes, with and without look-ups of the same rows behind them: versions of these have to be asked.
        for (turns, looks_up) in [(&mut changes, false), (&mut changes_and_reads, true)] {
            turns.round(progress, |at, piece| {
                let Contender { keyed, keyed_rids, .. } = &contenders[at];
                let (Some((table, key)), Some(column)) = (keyed, changed) else { return Ok(()) };
                let mut transaction = database.begin(unsynced());
                for number in order[piece] {
                    let value = rows[(*number + 1) % rows.len()][column];
                    transaction.update(table, keyed_rids[*number], &[(column, value)])?;
                }
                let mut buffer = RowBuffer::for_columns(table, &few);
                for number in order[piece].iter().filter(|_| looks_up) {
                    transaction.get_with(table, key, &keys[*number], &mut buffer, |_, record| black_box(record).len())?;
                }
                Ok(transaction.commit()?)
            })?;
        }
        deletes.round(progress, |at, piece| {
            let Contender { bare, rids, .. } = &contenders[at];
            let mut transaction = database.begin(unsynced());
            for number in order[piece] {
                transaction.delete(bare, rids[*number])?;
            }
            transaction.commit()?;
            Ok(database.remove_leftovers()?)
        })?;
        // Pages without a row are filled again.
        batch_inserts.round(progress, |at, batch| {
            let mut transaction = database.begin(unsynced());
            transaction.insert_rows(&contenders[at].bare, |to_come| batches[batch].iter().try_for_each(|row| to_come.push(row)))?;
            Ok(transaction.commit()?)
        })?;
    }
    let each = |turns: &InTurn| -> Each { turns.each_ns(rows.len()).collect() };
    let (searches, inserts, keyed, batch) = (each(&searches), each(&inserts), each(&keyed_inserts), each(&batch_inserts));
    let (updates, deletes) = (each(&updates), each(&deletes));
    let (changes, changes_and_reads) = (each(&changes), each(&changes_and_reads));
    let (few_read, all_read) = (each(&reads[0]), each(&reads[1]));
    let (few_scanned, all_scanned) = (each(&scans[0]), each(&scans[1]));
    let of_method = |at: usize| {
        let descent = if has_keys { searches[at] } else { 0.0 };
        let (lookup_ns, value_ns) = in_parts((few_read[at] - descent).max(0.0), (all_read[at] - descent).max(0.0), counts);
        let (scan_ns, scan_value_ns) = in_parts(few_scanned[at], all_scanned[at], counts);
        let operations = OperationCosts {
            lookup_ns,
            // It is found out by a first look, after a first descent. Of rows that have no keys all look-ups are of this kind.
            snapshot_lookup_ns: match has_keys && changed.is_some() {
                true => (changes_and_reads[at] - changes[at] - 2.0 * descent - value_ns * few.len() as f64).max(lookup_ns),
                false => lookup_ns,
            },
            value_ns,
            scan_ns,
            scan_value_ns,
            insert_ns: inserts[at],
            batch_insert_ns: batch[at],
            update_ns: if changed.is_some() { updates[at] } else { inserts[at] },
            delete_ns: deletes[at],
        };
        WayCosts { operations, cost: Cost { read_ns: few_read[at], write_ns: if has_keys { keyed[at] } else { inserts[at] } } }
    };
    Ok((0..METHODS).map(of_method).collect())
}
