//! What methods cost: tables with their primary keys.

use super::in_turn::InTurn;
use super::{KEY_PAGE_BYTES, READ_ROUNDS, ROUNDS, ascending, shuffled};
use crate::estimate::dictionary::Trained;
use crate::{Error, Progress, Result};
use pagefold_advisor::Cost;
use pagefold_engine::database::{Database, Durability, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_types::{Column, DataType, Direction, Rid, SLOT_MAX, Schema, Value, ValueRef};
use std::hint::black_box;
use std::sync::Arc;

/// Rows of a transaction, and look-ups between two looks at the clock.
const PIECE: usize = 100;

/// A table and what its rows are found by: the index of the primary key, if it has one.
struct Contender {
    table: Arc<Table>,
    key: Option<Arc<Index>>,
    rids: Vec<Rid>,
}

fn unsynced() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

/// Of each method: time to read two columns of a row by its key, and to insert one. Without a primary key rows are found by their numbers.
pub(super) fn costs(
    database: &Database,
    (schema, primary_key): (&Schema, &[usize]),
    rows: &[Vec<Value>],
    trained: &[Trained],
    page_bytes: usize,
    progress: &dyn Progress,
) -> Result<Vec<Cost>> {
    let rows: Vec<Vec<ValueRef<'_>>> = rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
    let groups: Vec<&[Vec<ValueRef<'_>>]> = rows.chunks(PIECE).collect();
    let order = shuffled((0..rows.len()).collect());
    let order: Vec<&[usize]> = order.chunks(PIECE).collect();
    let (mut writes, mut reads) = (InTurn::new(Method::ALL.len(), groups.len()), InTurn::new(Method::ALL.len(), order.len()));
    for round in 0..ROUNDS {
        let mut contenders = Vec::new();
        for method in Method::ALL {
            let attributes = TableAttributes {
                method,
                primary_key: primary_key.to_vec(),
                ..TableAttributes::new(format!("{method} {round}"), schema.clone()).with_page_bytes(page_bytes)
            };
            let dictionary = trained.iter().find(|t| t.method == method && t.page_sizes.contains(&page_bytes));
            contenders.push(Contender::new(database, attributes, dictionary)?);
        }
        writes.round(progress, |contender, group| contenders[contender].insert(database, groups[group]))?;
        let numbers = contenders.iter().map(|c| c.key.is_none().then(|| c.numbers(database)).transpose()).collect::<Result<Vec<_>>>()?;
        // One in front and one further behind.
        let columns = [0, schema.len() / 2];
        let mut buffers: Vec<RowBuffer> = contenders.iter().map(|c| RowBuffer::for_columns(&c.table, &columns)).collect();
        for _ in 0..READ_ROUNDS {
            reads.round(progress, |contender, piece| {
                let (Contender { table, key, .. }, buffer) = (&contenders[contender], &mut buffers[contender]);
                let mut transaction = database.begin(unsynced());
                let mut values = Vec::new();
                for number in order[piece] {
                    values.clear();
                    if let Some(key) = key {
                        values.extend(primary_key.iter().map(|column| rows[*number][*column]));
                        transaction.get_with(table, key, &values, buffer, |_, record| black_box(record).len())?;
                    } else if let Some(numbers) = &numbers[contender] {
                        values.push(ValueRef::Int(*number as i64));
                        if let Some(rid) = numbers.tree().first_rid(&encoded(numbers, &values)?)? {
                            transaction.read(table, rid, buffer, |record| black_box(record).len())?;
                        }
                    }
                }
                Ok(())
            })?;
        }
    }
    let costs = reads.each_ns(rows.len()).zip(writes.each_ns(rows.len()));
    Ok(costs.map(|(read_ns, write_ns)| Cost { read_ns, write_ns }).collect())
}

impl Contender {
    fn new(database: &Database, attributes: TableAttributes, dictionary: Option<&Trained>) -> Result<Contender> {
        let key = attributes.primary_key.clone();
        let name = format!("key of {}", attributes.name);
        let mut change = database.change();
        let table = change.create_table(attributes)?;
        let key =
            match key.is_empty() {
                true => None,
                false => Some(change.create_index(
                    &table,
                    IndexAttributes::new(name, ascending(&key), true).with_format(IndexFormat::Plain, KEY_PAGE_BYTES),
                )?),
            };
        if let Some(trained) = dictionary {
            table.set_dictionary(trained.dictionary.clone())?;
        }
        change.commit()?;
        Ok(Contender { table, key, rids: Vec::new() })
    }

    fn insert(&mut self, database: &Database, rows: &[Vec<ValueRef<'_>>]) -> Result<()> {
        let mut transaction = database.begin(unsynced());
        for row in rows {
            self.rids.push(transaction.insert(&self.table, row)?);
        }
        Ok(transaction.commit()?)
    }

    /// A unique index of the numbers of the rows.
    fn numbers(&self, database: &Database) -> Result<Arc<Index>> {
        let schema = Schema::new(vec![Column::new("number", DataType::BigInt, false)]).map_err(|e| Error::Data(e.to_string()))?;
        let name = format!("numbers of {}", self.table.name());
        let mut change = database.change();
        let table = change.create_table(TableAttributes::new(&name, schema))?;
        let columns = vec![(0, Direction::Ascending)];
        let index = change.create_index(&table, IndexAttributes::new(format!("key of {name}"), columns, true))?;
        let mut builder = index.build(SLOT_MAX);
        for (number, rid) in self.rids.iter().enumerate() {
            builder.push(&encoded(&index, &[ValueRef::Int(number as i64)])?, *rid)?;
        }
        builder.finish()?;
        change.commit()?;
        Ok(index)
    }
}

fn encoded(index: &Index, key: &[ValueRef<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    index.key_layout().encode(key, &mut bytes).map(|_| bytes).map_err(|e| Error::Data(e.to_string()))
}
