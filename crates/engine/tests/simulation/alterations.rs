//! Altered tables: which change of columns comes next, what it does to the rows of the model, and rows as an altered table has them.
//!
//! Invariant: places of columns stay. A row of the model has as many values as its table has columns, and NULL where one is dropped or is of a change that was taken back: so an alteration that is lost, or that comes without its commit, shows as rows of another length or other values.

use crate::player::{Player, Writer};
use crate::steps::{Alteration, Within};
use crate::values::{COLUMNS, Row, number};
use crate::world::TABLES;
use pagefold_engine::database::TableChange;
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_types::{Column, DataType, Value};
use std::sync::Arc;

/// Columns that may be dropped: those that came, and one of the first ones, whose values lie outside of their rows now and then.
const DATA: usize = 5;
/// May be NULL or not, and never is.
const TEXT: usize = 1;
/// An INTEGER of two indexes, until it is wider.
const M: usize = 2;
/// Layouts, of 32, behind which a change of columns may be refused.
const LAYOUTS_SURE: u8 = 30;

/// An alteration that a transaction has done.
#[derive(Clone, Debug)]
pub(crate) struct Altered {
    pub(crate) table: usize,
    change: TableChange,
    /// The table from then on.
    now: Arc<Table>,
}

impl Altered {
    /// A row of before as the table has it from then on.
    fn row(&self, row: &Row) -> Row {
        let columns = self.now.attributes().schema.len();
        let mut values = Vec::clone(row);
        // Columns of changes that were taken back are there, too, and nobody sees them.
        match &self.change {
            TableChange::RenameColumn { .. } => {}
            TableChange::AddColumn { value, .. } => {
                values.resize(columns - 1, Value::Null);
                values.push(value.clone());
            }
            _ => values.resize(columns, Value::Null),
        }
        Arc::new(as_seen(&self.now, values))
    }
}

/// A row that was there before some alterations, as it is after them.
pub(crate) fn as_altered(alterations: &[Altered], table: usize, row: &Row) -> Row {
    alterations.iter().filter(|altered| altered.table == table).fold(Arc::clone(row), |row, altered| altered.row(&row))
}

/// Values as a reader of this table sees them: nobody asks for what a dropped column had.
pub(crate) fn as_seen(table: &Table, mut values: Vec<Value>) -> Vec<Value> {
    let layouts = &table.attributes().layouts;
    values.iter_mut().enumerate().filter(|(at, _)| layouts.is_dropped(*at)).for_each(|(_, value)| *value = Value::Null);
    values
}

/// A row of the first columns as this table takes it: with values in the columns that came, and none in those that went.
pub(crate) fn fit(table: &Table, row: &Row) -> Row {
    if table.attributes().schema.len() == COLUMNS && !table.attributes().layouts.is_dropped(DATA) {
        return Arc::clone(row);
    }
    let mut values = Vec::clone(row);
    let seed = number(row);
    let columns = table.attributes().schema.columns().iter().enumerate().skip(values.len());
    values.extend(columns.map(|(at, column)| value_of(column, at as i64 * 7 + seed)));
    Arc::new(as_seen(table, values))
}

/// The changes of an update as this table takes them, and one more of a column that came, if there is one.
pub(crate) fn fit_changes(table: &Table, changes: &mut Vec<(usize, Value)>, seed: u64) {
    let layouts = &table.attributes().layouts;
    changes.retain(|(column, _)| !layouts.is_dropped(*column));
    let added: Vec<usize> = table.attributes().visible_columns().into_iter().filter(|at| *at >= COLUMNS).collect();
    if let Some(at) = added.get(seed as usize % (added.len() + 1)) {
        changes.push((*at, value_of(&table.attributes().schema.columns()[*at], seed as i64 % 1_000)));
    }
    if changes.is_empty() {
        changes.push((M, Value::Int(seed as i64 % 7)));
    }
}

/// A value of a column that came.
fn value_of(column: &Column, seed: i64) -> Value {
    match column.data_type {
        _ if column.nullable && seed % 3 == 0 => Value::Null,
        DataType::Integer | DataType::BigInt => Value::Int(seed),
        _ => Value::Text(format!("final {seed}")),
    }
}

/// What is to be changed, as the table is now.
fn change_of(attributes: &TableAttributes, alteration: Alteration, seed: u64) -> TableChange {
    let columns = attributes.schema.columns();
    let mut visible = attributes.visible_columns();
    visible.retain(|at| *at >= COLUMNS || *at == DATA);
    let picked = (!visible.is_empty()).then(|| &columns[visible[seed as usize % visible.len()]]);
    let name = format!("x{}", columns.len());
    match (alteration, picked) {
        (Alteration::Drop, Some(column)) => TableChange::DropColumn(column.name.clone()),
        (Alteration::Rename, Some(column)) => {
            TableChange::RenameColumn { column: column.name.clone(), to: format!("{}_", &column.name[..1]) + &seed.to_string() }
        }
        (Alteration::Widen, _) if columns[M].data_type == DataType::Integer && seed.is_multiple_of(3) => {
            TableChange::SetType { column: columns[M].name.clone(), data_type: DataType::BigInt }
        }
        (Alteration::Widen, Some(column)) if column.data_type == DataType::Integer => {
            TableChange::SetType { column: column.name.clone(), data_type: DataType::BigInt }
        }
        (Alteration::Widen, Some(Column { name, data_type: DataType::Varchar(Some(n)), .. })) => {
            TableChange::SetType { column: name.clone(), data_type: DataType::Varchar(Some(n + 5)) }
        }
        (Alteration::Null, _) if columns[TEXT].nullable => TableChange::SetNotNull(columns[TEXT].name.clone()),
        (Alteration::Null, _) => TableChange::DropNotNull(columns[TEXT].name.clone()),
        _ if seed.is_multiple_of(2) => TableChange::AddColumn {
            column: Column::new(name, DataType::Integer, seed.is_multiple_of(4)),
            value: Value::Int(seed as i64 % 100),
        },
        _ => {
            let column = Column::new(name, DataType::Varchar(Some(40)), true);
            let value = if seed % 5 == 1 { Value::Null } else { Value::Text("as it was".into()) };
            TableChange::AddColumn { column, value }
        }
    }
}

/// Alters a table in a transaction.
pub(crate) fn alter_in(w: &mut Writer<'_>, table: usize, alteration: Alteration, seed: u64) -> Result<()> {
    let t = &mut w.transaction;
    let object = t.table(TABLES[table])?;
    let change = change_of(object.attributes(), alteration, seed);
    let altered = t.change_table(TABLES[table], std::slice::from_ref(&change));
    match altered {
        // There are no further layouts.
        Err(Error::Parameter(_)) if object.attributes_now().layouts.number() >= LAYOUTS_SURE => Ok(()),
        Err(error) => Err(error),
        Ok(altered) => {
            for index in t.indexes(&altered)? {
                w.made.push(Arc::clone(index.data_set()));
            }
            w.altered = Some(Altered { table, change, now: altered });
            Ok(())
        }
    }
}

impl Player<'_> {
    /// Rows of the model are as the alteration that was just done says.
    pub(crate) fn altered(&self, w: &mut Writer<'_>, within: Within) {
        let (Within::Alter { table, .. }, Some(altered)) = (within, w.altered.take()) else { return };
        self.trouble.meet(match &altered.change {
            TableChange::AddColumn { .. } => "altered: a column comes",
            TableChange::DropColumn(_) => "altered: a column goes",
            TableChange::SetType { .. } => "altered: a column of another type",
            TableChange::RenameColumn { .. } => "altered: a column of another name",
            _ => "altered: a column that may be NULL or not",
        });
        if altered.now.attributes().layouts.number() > 1 {
            self.trouble.meet("altered: again");
        }
        if !w.savepoints.is_empty() {
            self.trouble.meet("altered: behind a savepoint");
        }
        if !w.overlay.is_empty() {
            self.trouble.meet("altered: behind changes of its own");
        }
        for (_, row) in w.overlay.range_mut((table, i64::MIN)..(table + 1, i64::MIN)) {
            row.iter_mut().for_each(|row| *row = altered.row(row));
        }
        w.alterations.push(altered);
    }
}
