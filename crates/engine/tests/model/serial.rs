//! Is there an order in which committed transactions, one after the other, would have seen and done what they did? All orders are tried, commits first.

use crate::model::{Changes, Done, Model, Row, State, canonical, key, overlay};
use crate::read::answer;
use crate::shape::Shape;
use crate::values::{same_row, stored};
use pagefold_types::{Rid, Value};
use std::sync::Arc;

/// Steps of the search after which it is given up.
const TRIES: usize = 20_000;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Found,
    None,
    GivenUp,
}

/// Looks for an order that leads from one state to another.
pub(crate) fn order_of(shape: &Shape, from: &State, transactions: &[Vec<Done>], to: &State) -> Order {
    let mut left: Vec<usize> = (0..transactions.len()).collect();
    let mut tries = TRIES;
    if search(shape, from, transactions, &mut left, to, &mut tries) {
        Order::Found
    } else if tries == 0 {
        Order::GivenUp
    } else {
        Order::None
    }
}

fn search(shape: &Shape, from: &State, transactions: &[Vec<Done>], left: &mut Vec<usize>, to: &State, tries: &mut usize) -> bool {
    if left.is_empty() {
        return same_state(from, to);
    }
    for at in 0..left.len() {
        if *tries == 0 {
            return false;
        }
        *tries -= 1;
        let next = left.remove(at);
        if let Some(state) = run_alone(shape, from, &transactions[next])
            && search(shape, &state, transactions, left, to, tries)
        {
            return true;
        }
        left.insert(at, next);
    }
    false
}

fn same_state(a: &State, b: &State) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| Arc::ptr_eq(a, b) || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.0 == b.0 && same_row(a.1, b.1))))
}

/// The state after a transaction that runs alone; `None` when it would see something else than it has seen.
///
/// The RID of a row that it took back was free for others before it ended: in this order there may be a row of theirs. Its own has another name then, and what it reads before it is taken back is not
/// looked at.
fn run_alone(shape: &Shape, from: &State, transaction: &[Done]) -> Option<State> {
    let mut changes = Changes::new();
    let mut savepoints: Vec<Changes> = Vec::new();
    let mut renamed: Vec<(usize, Rid)> = Vec::new();
    let row_of = |changes: &Changes, table: usize, rid| -> Option<Row> {
        changes.get(&(table, rid)).map_or_else(|| from[table].get(&rid).cloned(), Clone::clone)
    };
    for (at, done) in transaction.iter().enumerate() {
        match done {
            Done::Read { table, .. } if renamed.iter().any(|(renamed, _)| renamed == table) => {}
            Done::Read { table, read, said } => {
                let mut rows = (*from[*table]).clone();
                overlay(&mut rows, *table, &changes);
                if answer(read, &shape.tables[*table], &rows) != *said {
                    return None;
                }
            }
            Done::Insert { table, row, rid } => {
                let taken = is_taken(shape, from, &changes, *table, None, row);
                match rid {
                    Some(rid) if !taken && row_of(&changes, *table, *rid).is_some() && !changes.contains_key(&(*table, *rid)) => {
                        if !is_taken_back(&transaction[at + 1..], savepoints.len()) {
                            return None;
                        }
                        renamed.push((*table, *rid));
                        changes.insert((*table, other_name(*rid)), Some(row.clone()));
                    }
                    Some(rid) if !taken && row_of(&changes, *table, *rid).is_none() => {
                        changes.insert((*table, *rid), Some(row.clone()));
                    }
                    None if taken => {}
                    _ => return None,
                }
            }
            Done::Update { table, rid, changes: columns, found } => {
                let rid = &if renamed.contains(&(*table, *rid)) { other_name(*rid) } else { *rid };
                let before = row_of(&changes, *table, *rid);
                let after = before.map(|row| Model::changed_row(&shape.tables[*table], &row, columns));
                let taken = after.as_ref().is_some_and(|after| is_taken(shape, from, &changes, *table, Some(*rid), after));
                match found {
                    Some(true) if !taken && after.is_some() => {
                        changes.insert((*table, *rid), after);
                    }
                    Some(false) if after.is_none() => {}
                    None if taken => {}
                    _ => return None,
                }
            }
            Done::Delete { table, rid, found } => {
                let rid = &if renamed.contains(&(*table, *rid)) { other_name(*rid) } else { *rid };
                if row_of(&changes, *table, *rid).is_some() != *found {
                    return None;
                }
                if *found {
                    changes.insert((*table, *rid), None);
                }
            }
            Done::Savepoint => savepoints.push(changes.clone()),
            Done::RollBackTo(savepoint) => {
                savepoints.truncate(savepoint + 1);
                changes.clone_from(&savepoints[*savepoint]);
                renamed.retain(|(table, rid)| changes.contains_key(&(*table, other_name(*rid))));
            }
        }
    }
    let mut state = from.clone();
    for ((table, rid), row) in changes {
        let rows = Arc::make_mut(&mut state[table]);
        match row {
            Some(row) => rows.insert(rid, row),
            None => rows.remove(&rid),
        };
    }
    Some(state)
}

/// Do later steps take back what comes when there are so many savepoints?
fn is_taken_back(later: &[Done], savepoints: usize) -> bool {
    later.iter().any(|done| matches!(done, Done::RollBackTo(savepoint) if *savepoint < savepoints))
}

/// A RID that no row has.
fn other_name(rid: Rid) -> Rid {
    Rid::new(rid.partition() + 1_000, rid.page(), rid.slot())
}

/// Has another row a key that this one would get?
fn is_taken(shape: &Shape, from: &State, changes: &Changes, table: usize, rid: Option<Rid>, row: &[Value]) -> bool {
    let table_shape = &shape.tables[table];
    let row: Vec<Value> = row.iter().zip(&table_shape.columns).map(|(value, column)| stored(value, column.data_type)).collect();
    let mut rows = None;
    table_shape.indexes.iter().filter(|index| index.unique).any(|index| {
        let wanted = key(index, &row);
        if wanted.iter().any(|value| matches!(value, Value::Null)) {
            return false;
        }
        let wanted = canonical(&wanted);
        let rows = rows.get_or_insert_with(|| {
            let mut rows = (*from[table]).clone();
            overlay(&mut rows, table, changes);
            rows
        });
        rows.iter().any(|(other, row)| Some(*other) != rid && canonical(&key(index, row)) == wanted)
    })
}
