//! Rows put one by one into an empty table, with every method.

use super::subject::Subject;
use super::tables::table_name;
use super::{look, median, timed, verify};
use crate::failure::Result;
use crate::session::Session;
use pagefold::engine::index::IndexAttributes;
use pagefold::engine::table::{Table, TableAttributes};
use pagefold::engine::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold::types::{Value, ValueRef};
use pagefold::utility::{Progress, Unit, primary_key_index};
use std::sync::Arc;

/// Rows put into each table, if it has so many.
const ROWS: usize = 30_000;
const PER_TRANSACTION: usize = 100;
const REPEATS: usize = 3;

/// Inserts the first rows of a table that is loaded, in the order of the primary key, into empty ones with the attributes of `like`, which are dropped again. Rows a second, by method.
pub(super) fn measure(session: &Session, database: &Database, like: &[&Arc<Table>], subject: &Subject) -> Result<Vec<f64>> {
    session.bars.start(&format!("inserting into {}", subject.spec.name), None, Unit::Rows);
    let Some(first) = like.first() else { return Ok(Vec::new()) };
    let rows = first_rows(database, first)?;
    let mut rates = vec![Vec::new(); like.len()];
    for _ in 0..REPEATS {
        for (table, rates) in like.iter().zip(&mut rates) {
            let name = format!("{}_inserted", table_name(subject, table.attributes().method));
            create(database, table, &name)?;
            let ((), insert_s) = timed(|| insert(database, &name, &rows))?;
            verify(&format!("the rows of table \"{name}\""), &database.table(&name)?.row_count(), &(rows.len() as u64))?;
            let mut change = database.change();
            change.drop_table(&name)?;
            change.commit()?;
            rates.push(rows.len() as f64 / insert_s);
            look()?;
        }
    }
    Ok(rates.into_iter().map(median).collect())
}

fn first_rows(database: &Database, table: &Arc<Table>) -> Result<Vec<Vec<Value>>> {
    let rows = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    rows.take(ROWS).map(|row| Ok(row?.1)).collect()
}

fn create(database: &Database, like: &Table, name: &str) -> Result<()> {
    let mut change = database.change();
    let table = change.create_table(TableAttributes { name: name.into(), ..like.attributes().clone() })?;
    let key = primary_key_index(like)?.attributes_now();
    change.create_index(&table, IndexAttributes { name: format!("{name}_pk"), ..key })?;
    change.commit()?;
    Ok(())
}

/// Nobody waits for the disk.
fn insert(database: &Database, name: &str, rows: &[Vec<Value>]) -> Result<()> {
    let table = database.table(name)?;
    let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let mut values: Vec<ValueRef<'_>> = Vec::new();
    for rows in rows.chunks(PER_TRANSACTION) {
        let mut transaction = database.begin(options);
        for row in rows {
            values.clear();
            values.extend(row.iter().map(Value::as_ref));
            transaction.insert(&table, &values)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
