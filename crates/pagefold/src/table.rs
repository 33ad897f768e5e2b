//! Rows of a table, by their keys.
//!
//! A table may be written anew while a transaction has it (REORG), and an index too. Under READ COMMITTED what is called then goes on with
//! the new one, which has the same rows: nothing of the call has happened before, as it is refused before it does something.
//!
//! A partitioned table goes by its partitions, each of which is a table.

use crate::partitions::{Partitions, Whole};
use crate::row::{AsValue, Fitted, IntoValues, Row, fit};
use crate::select::Rows;
use crate::transaction::Transaction;
use crate::{Error, IntoCondition, Result};
use pagefold_engine::database::{Isolation, ReadView, split_partition_name};
use pagefold_engine::index::Index;
use pagefold_engine::table_space as space;
use pagefold_types::{KeyRange, Rid, Schema, Value, ValueRef, prefix_end};
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;
use std::sync::Arc;

/// A table, in a transaction.
#[derive(Clone, Debug)]
pub struct Table<'t> {
    transaction: &'t Transaction,
    table: Arc<space::Table>,
    /// Its columns by place, those among them that were dropped.
    stored: Arc<Schema>,
    /// Its columns, and the place of each.
    schema: Arc<Schema>,
    places: Rc<[usize]>,
    /// That of the primary key.
    primary: Option<Arc<Index>>,
    /// Of a partitioned table. Its first partition is then `table`, and stands for the columns and indexes of all.
    whole: Option<Rc<Whole<'t>>>,
}

/// An index of a table, in a transaction: another way to the same rows.
#[derive(Clone, Debug)]
pub struct ByIndex<'t> {
    table: Table<'t>,
    index: Arc<Index>,
    /// Of a partitioned table: its name. Then `index` is that of the first partition.
    of_whole: Option<String>,
}

impl<'t> Table<'t> {
    pub(crate) fn new(transaction: &'t Transaction, table: Arc<space::Table>) -> Result<Table<'t>> {
        let attributes = table.attributes();
        let is_primary = |index: &Arc<Index>| index.attributes().is_of_key(&attributes.primary_key);
        // That of the transaction's snapshot: the present one may have been built later.
        let primary = transaction.with(|t| t.indexes(&table))?.into_iter().find(is_primary);
        let stored = Arc::new(attributes.schema.clone());
        let places: Rc<[usize]> = attributes.visible_columns().into();
        let schema = if places.len() == stored.len() { Arc::clone(&stored) } else { of_places(&stored, &places)? };
        Ok(Table { transaction, table, stored, schema, places, primary, whole: None })
    }

    /// A partitioned table.
    pub(crate) fn of_partitions(transaction: &'t Transaction, name: &str) -> Result<Table<'t>> {
        let whole = Rc::new(Whole::new(transaction, name));
        let first = whole.run(|partitions| partitions.table(0).cloned())?;
        Ok(Table { whole: Some(whole), ..first })
    }

    /// Its partitions, if it is divided.
    pub(crate) fn whole(&self) -> Option<&Rc<Whole<'t>>> {
        self.whole.as_ref()
    }

    /// Names of its partitions, in the order of their keys; none of a table that is not divided. The rows of each are also found as those of the
    /// table `<table>/<partition>`.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn partitions(&self) -> Result<Vec<String>> {
        let Some(whole) = &self.whole else { return Ok(Vec::new()) };
        Ok(whole.now()?.whole.own_partitions().iter().map(|partition| partition.name().to_owned()).collect())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.whole.as_ref().map_or_else(|| self.table.name(), |whole| whole.name())
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The same by place.
    pub(crate) fn stored(&self) -> &Schema {
        &self.stored
    }

    /// The places of its columns.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }

    /// The columns at these places.
    pub(crate) fn columns_at(&self, places: &[usize]) -> Result<Arc<Schema>> {
        if places == &*self.places { Ok(Arc::clone(&self.schema)) } else { of_places(&self.stored, places) }
    }

    /// A row of values by place.
    pub(crate) fn row(&self, mut values: Vec<Value>) -> Row {
        if self.places.len() < values.len() {
            values = self.places.iter().map(|place| std::mem::replace(&mut values[*place], Value::Null)).collect();
        }
        Row::new(&self.schema, values)
    }

    /// The engine's table.
    pub(crate) fn inner(&self) -> &Arc<space::Table> {
        &self.table
    }

    /// Runs a call, again with the table that has come in the place of this one, if that was in the way.
    pub(crate) fn following<R>(&self, run: impl Fn(&Table<'t>) -> Result<R>) -> Result<R> {
        match run(self) {
            Err(stale @ Error::Stale { .. }) => self.successor().map_or(Err(stale), |table| table.following(run)),
            other => other,
        }
    }

    /// The table that has come in the place of this one, or the same with another index of its primary key. It has the same columns, and as a partition the same range: a row that was to be in this one is in
    /// no other.
    fn successor(&self) -> Option<Table<'t>> {
        if self.transaction.isolation() != Isolation::ReadCommitted || self.whole.is_some() {
            return None;
        }
        let found = self.transaction.table(self.name()).ok()?;
        let (own, other) = (self.table.attributes(), found.table.attributes());
        let index = |table: &Table<'_>| table.primary.as_ref().map(|index| Arc::as_ptr(index).addr());
        let is_other = !Arc::ptr_eq(&found.table, &self.table) || index(&found) != index(self);
        let is_alike = (&own.schema, &own.primary_key, &own.range) == (&other.schema, &other.primary_key, &other.range);
        (is_other && is_alike).then_some(found)
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn transaction(&self) -> &'t Transaction {
        self.transaction
    }

    /// What a statement sees that begins now.
    pub(crate) fn read_view(&self) -> Result<ReadView> {
        self.transaction.with(pagefold_engine::database::Transaction::read_view)
    }

    pub(crate) fn primary(&self) -> Result<ByIndex<'t>> {
        match &self.primary {
            Some(index) => Ok(self.by_first(index)),
            None => {
                let key = &self.table.attributes().primary_key;
                let damaged = self.table.damaged_indexes();
                damaged.iter().filter(|index| index.attributes().is_of_key(key)).try_for_each(|index| index.check_usable())?;
                Err(Error::Parameter(format!("table \"{}\" has no primary key", self.name())))
            }
        }
    }

    /// By an index, of which a partitioned table's first partition has this one.
    fn by_first(&self, index: &Arc<Index>) -> ByIndex<'t> {
        let name = self.whole.as_ref().and_then(|_| split_partition_name(index.name())).map(|(name, _)| name.to_owned());
        ByIndex { table: self.clone(), index: Arc::clone(index), of_whole: name }
    }

    /// The same rows by an index of the table.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is none of this name, [`Error::Parameter`] when it is one of another table.
    pub fn by(&self, index: &str) -> Result<ByIndex<'t>> {
        self.following(|table| table.by_now(index))
    }

    fn by_now(&self, index: &str) -> Result<ByIndex<'t>> {
        if let Some(whole) = &self.whole {
            return Ok(self.by_first(&whole.run(|partitions| partitions.index(0, index))?));
        }
        let found = self.transaction.with(|t| t.indexes(&self.table))?.into_iter().find(|own| own.name() == index);
        let Some(index) = found else {
            let index = self.transaction.with(|t| t.index(index))?;
            return Err(Error::Parameter(format!("index \"{}\" is none of table \"{}\"", index.name(), self.name())));
        };
        Ok(ByIndex { table: self.clone(), index, of_whole: None })
    }

    /// Inserts a row: values for all columns, in their order.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Value`] when a value does not fit its column; those of locks.
    pub fn insert(&self, row: impl IntoValues) -> Result<()> {
        let values = row.values();
        let values = self.fitted(&values)?;
        self.in_place_of(&values, |table| table.insert_values(&values))
    }

    /// Runs a call with the table that has rows of these values: this one, or a partition.
    fn in_place_of<R>(&self, values: &[Fitted<'_>], run: impl Fn(&Table<'t>) -> Result<R>) -> Result<R> {
        match &self.whole {
            Some(whole) => whole.run(|partitions| partitions.table(partitions.place_of(values)?)?.following(&run)),
            None => self.following(run),
        }
    }

    fn fitted<'v>(&self, values: &[ValueRef<'v>]) -> Result<Vec<Fitted<'v>>> {
        let columns = self.schema.columns();
        if values.len() != columns.len() {
            return Err(Error::Value(format!(
                "table \"{}\" has {} columns, {} values were given",
                self.name(),
                columns.len(),
                values.len()
            )));
        }
        let mut fitted: Vec<Fitted<'v>> = self.stored.columns().iter().map(|_| Fitted::AsItIs(ValueRef::Null)).collect();
        for ((value, column), place) in values.iter().zip(columns).zip(&*self.places) {
            fitted[*place] = fit(*value, column)?;
        }
        Ok(fitted)
    }

    fn insert_values(&self, values: &[Fitted<'_>]) -> Result<()> {
        let values: Vec<ValueRef<'_>> = values.iter().map(Fitted::as_ref).collect();
        self.transaction.with(|t| t.insert(&self.table, &values)).map(drop)
    }

    /// Inserts a row, or gives all columns of the row with its primary key these values. True when it was inserted.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); when there is no primary key.
    pub fn upsert(&self, row: impl IntoValues) -> Result<bool> {
        let values = row.values();
        let values = self.fitted(&values)?;
        self.in_place_of(&values, |table| table.upsert_values(&values))
    }

    fn upsert_values(&self, values: &[Fitted<'_>]) -> Result<bool> {
        let primary = self.primary()?;
        let columns = &self.table.attributes().primary_key;
        let key: Vec<ValueRef<'_>> = columns.iter().map(|column| values[*column].as_ref()).collect();
        let Some(rid) = primary.rid(&key)? else { return self.insert_values(values).map(|()| true) };
        let changes = values.iter().map(Fitted::as_ref).enumerate().filter(|(column, _)| !columns.contains(column));
        let changes: Vec<(usize, ValueRef<'_>)> = changes.collect();
        if changes.is_empty() || self.transaction.with(|t| t.update(&self.table, rid, &changes))? {
            return Ok(false);
        }
        // Somebody has deleted it meanwhile.
        self.insert_values(values).map(|()| true)
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// When there is no primary key, or a value is none of its columns.
    pub fn get(&self, key: impl IntoValues) -> Result<Option<Row>> {
        self.following(Table::primary)?.get(key)
    }

    /// Changes some columns of the row with this primary key. False when there is none.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); when there is no primary key, or no such column.
    pub fn update<'v, V: AsValue + 'v>(&self, key: impl IntoValues, changes: impl IntoIterator<Item = (&'v str, V)>) -> Result<bool> {
        let changes: Vec<(&str, V)> = changes.into_iter().collect();
        let place = |name: &str| self.stored.index_of(name).map_err(|e| Error::Value(format!("table \"{}\": {e}", self.name())));
        let fitted = changes.iter().map(|(name, value)| {
            let column = place(name)?;
            Ok((column, fit(value.as_value(), &self.stored.columns()[column])?))
        });
        let fitted = fitted.collect::<Result<Vec<_>>>()?;
        let changes: Vec<(usize, ValueRef<'_>)> = fitted.iter().map(|(column, value)| (*column, value.as_ref())).collect();
        if let Some(whole) = &self.whole
            && whole.now().is_ok_and(|now| changes.iter().any(|(column, _)| now.whole.columns().contains(column)))
        {
            return self.move_row(whole, &key.values(), &changes);
        }
        self.with_row(&key.values(), |t, table, rid| t.update(table, rid, &changes))
    }

    /// Does something to the row with a primary key; false when there is none.
    fn with_row(
        &self,
        key: &[ValueRef<'_>],
        run: impl Fn(&mut pagefold_engine::database::Transaction<'static>, &space::Table, Rid) -> Result<bool>,
    ) -> Result<bool> {
        let run = |table: &Table<'t>| match table.primary()?.rid(key)? {
            Some(rid) => table.transaction.with(|t| run(t, &table.table, rid)),
            None => Ok(false),
        };
        let Some(whole) = &self.whole else { return self.following(run) };
        let key = self.primary()?.fitted_key(key)?;
        whole.run(|partitions| match self.partition_with_key(partitions, &key)? {
            Some(at) => partitions.table(at)?.following(run),
            None => Ok(false),
        })
    }

    /// Which partition has the rows of a primary key.
    fn partition_with_key(&self, partitions: &Partitions<'t>, key: &[Fitted<'_>]) -> Result<Option<usize>> {
        let (primary, values) = (self.primary()?, key.iter().map(Fitted::as_ref).collect::<Vec<ValueRef<'_>>>());
        let columns = &primary.index.attributes().columns;
        let found = partitions.whole.key_from(columns, &values)?;
        let found = found.ok_or_else(|| Error::Value(format!("table \"{}\": a row is named by its whole primary key", self.name())))?;
        Ok(partitions.whole.find(&found))
    }

    /// Changes a row, and moves it to another partition if its key is in the range of that.
    fn move_row(&self, whole: &Whole<'t>, key: &[ValueRef<'_>], changes: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        let key = self.primary()?.fitted_key(key)?;
        whole.run(|partitions| {
            let Some(from) = self.partition_with_key(partitions, &key)? else { return Ok(false) };
            let key: Vec<ValueRef<'_>> = key.iter().map(Fitted::as_ref).collect();
            partitions.table(from)?.following(|table| {
                let Some(rid) = table.primary()?.rid(&key)? else { return Ok(false) };
                self.transaction.with(|t| {
                    // It stays as it is from here on.
                    if !t.lock(&table.table, rid)? {
                        return Ok(false);
                    }
                    let Some(mut row) = t.row(&table.table, rid)? else { return Ok(false) };
                    for (column, value) in changes {
                        row[*column] = value.to_owned();
                    }
                    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                    let mut place = Vec::new();
                    partitions.whole.key(&values, &mut place)?;
                    let to = partitions.whole.find_for(&place)?;
                    if to == from {
                        return t.update(&table.table, rid, changes);
                    }
                    let other = t.table_of_partition(&partitions.whole.partitions()[to])?;
                    let savepoint = t.savepoint();
                    let moved = t.delete(&table.table, rid).and_then(|_| t.insert(&other, &values));
                    // Where only rollback is left, that takes it back, too.
                    moved.inspect_err(|_| drop(t.roll_back_to(savepoint))).map(|_| true)
                })
            })
        })
    }

    /// Deletes the row with this primary key. False when there is none.
    ///
    /// # Errors
    /// When there is no primary key; those of locks.
    pub fn delete(&self, key: impl IntoValues) -> Result<bool> {
        self.with_row(&key.values(), |t, table, rid| t.delete(table, rid))
    }

    /// Locks the row with this primary key against changes by others until the transaction ends. False when there is none.
    ///
    /// # Errors
    /// When there is no primary key; those of locks.
    pub fn lock(&self, key: impl IntoValues) -> Result<bool> {
        self.with_row(&key.values(), |t, table, rid| t.lock(table, rid))
    }

    /// The rows whose primary keys are in a range, in the order of the keys. A bound may have the first values of a key only.
    ///
    /// # Errors
    /// When there is no primary key, or a value is none of its columns.
    pub fn range<K: IntoValues>(&self, range: impl RangeBounds<K>) -> Result<Rows> {
        self.following(Table::primary)?.range(range)
    }

    /// All rows, as they lie. [`select`](Self::select) reads some columns.
    ///
    /// # Errors
    /// When the table does not count for the transaction any more.
    pub fn scan(&self) -> Result<Rows> {
        self.all().rows()
    }

    /// The rows for which a condition is true: a text such as `built < 1900 and name like 'F%'`, or one that was built,
    /// `column("built").less_than(1900).and(column("name").like("F%"))`.
    ///
    /// # Errors
    /// When the condition cannot be understood, with the place; when a column is unknown, or a value cannot be compared with it.
    pub fn filter(&self, condition: impl IntoCondition) -> Result<Rows> {
        self.all().filter(condition)?.rows()
    }
}

impl<'t> ByIndex<'t> {
    pub(crate) fn table(&self) -> &Table<'t> {
        &self.table
    }

    /// The engine's index.
    pub(crate) fn inner(&self) -> &Arc<Index> {
        &self.index
    }

    /// Runs a call, again with the index, or table, that has come in the place of this one, if that was in the way.
    pub(crate) fn following<R>(&self, run: impl Fn(&ByIndex<'t>) -> Result<R>) -> Result<R> {
        match run(self) {
            Err(stale @ Error::Stale { .. }) => self.successor().map_or(Err(stale), |by| by.following(run)),
            other => other,
        }
    }

    /// The index that has come in the place of this one, of the same columns.
    fn successor(&self) -> Option<ByIndex<'t>> {
        let table = self.table.successor().unwrap_or_else(|| self.table.clone());
        if table.transaction.isolation() != Isolation::ReadCommitted || self.of_whole.is_some() {
            return None;
        }
        let own = self.index.attributes();
        let indexes = table.transaction.with(|t| t.indexes(&table.table)).ok()?;
        let index = indexes.into_iter().find(|index| index.name() == self.index.name() && index.attributes().columns == own.columns)?;
        (!Arc::ptr_eq(&index, &self.index)).then_some(ByIndex { table, index, of_whole: None })
    }

    /// The first row that has this key, or these first values of a key.
    ///
    /// # Errors
    /// When a value is none of its column.
    pub fn get(&self, key: impl IntoValues) -> Result<Option<Row>> {
        let values = key.values();
        if let (Some(whole), Some(name)) = (&self.table.whole, &self.of_whole) {
            return self.get_in_partitions(whole, name, &values);
        }
        let found = self.following(|by| {
            let table = &by.table.table;
            by.with_key(&values, |t, key| t.get(table, &by.index, key, |_, record| table.values(record)))
        })?;
        found.transpose().map(|values| values.map(|values| self.table.row(values)))
    }

    fn get_in_partitions(&self, whole: &Whole<'t>, name: &str, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        let fitted = self.fitted_key(key)?;
        let values: Vec<ValueRef<'_>> = fitted.iter().map(Fitted::as_ref).collect();
        let found = whole.run(|partitions| {
            let Some(key) = partitions.whole.key_from(&self.index.attributes().columns, &values)? else { return Ok(None) };
            let Some(at) = partitions.whole.find(&key) else { return Ok(Some(None)) };
            let (table, index) = (partitions.table(at)?.clone(), partitions.index(at, name)?);
            ByIndex { table, index, of_whole: None }.get(values.iter().map(|value| value.to_owned()).collect::<Vec<Value>>()).map(Some)
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        // The first one of all partitions.
        let all: Vec<Value> = values.iter().map(|value| value.to_owned()).collect();
        self.ordered(self.table.all()).range(all.clone()..=all)?.limit(1).rows()?.next().transpose()
    }

    /// The values of a key as the columns of the index have them.
    fn fitted_key<'v>(&self, values: &[ValueRef<'v>]) -> Result<Vec<Fitted<'v>>> {
        let columns = &self.index.attributes().columns;
        if values.is_empty() || values.len() > columns.len() {
            let (name, most) = (self.name(), columns.len());
            return Err(Error::Value(format!("index \"{name}\": a key has 1 to {most} values, {} were given", values.len())));
        }
        let schema = self.table.stored.columns();
        values.iter().zip(columns).map(|(value, (column, _))| fit(*value, &schema[*column])).collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.of_whole.as_deref().unwrap_or_else(|| self.index.name())
    }

    /// Its name, if it is one of a partitioned table.
    pub(crate) fn of_whole(&self) -> Option<&str> {
        self.of_whole.as_deref()
    }

    /// The rows whose keys are in a range, in the order of the keys. A bound may have the first values of a key only: `("Fram",)..=("Fram",)` are all that begin so.
    ///
    /// # Errors
    /// When a value is none of its column.
    pub fn range<K: IntoValues>(&self, range: impl RangeBounds<K>) -> Result<Rows> {
        self.ordered(self.table.all()).range(range)?.rows()
    }

    /// The same, from the last to the first.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn range_backward<K: IntoValues>(&self, range: impl RangeBounds<K>) -> Result<Rows> {
        self.ordered(self.table.all()).range(range)?.backward()?.rows()
    }

    /// The keys of a range.
    pub(crate) fn key_range<K: IntoValues>(&self, range: impl RangeBounds<K>) -> Result<KeyRange> {
        Ok(KeyRange {
            start: match range.start_bound() {
                Bound::Included(key) => self.encoded(key)?,
                // A key behind which there is none.
                Bound::Excluded(key) => match self.behind(key)? {
                    Some(start) => start,
                    None => return Ok(KeyRange { start: vec![0], end: Some(vec![0]) }),
                },
                Bound::Unbounded => Vec::new(),
            },
            end: match range.end_bound() {
                Bound::Included(key) => self.behind(key)?,
                Bound::Excluded(key) => Some(self.encoded(key)?),
                Bound::Unbounded => None,
            },
        })
    }

    /// What all keys begin with that have these first values.
    fn encoded(&self, key: &impl IntoValues) -> Result<Vec<u8>> {
        let mut encoded = Vec::new();
        self.with_key(&key.values(), |_, key| {
            let done = self.index.key_layout().encode(key, &mut encoded);
            done.map(drop).map_err(|e| Error::Value(format!("index \"{}\": {e}", self.index.name())))
        })?;
        Ok(encoded)
    }

    /// The least key behind all with these first values.
    fn behind(&self, key: &impl IntoValues) -> Result<Option<Vec<u8>>> {
        let mut encoded = self.encoded(key)?;
        Ok(prefix_end(&mut encoded).then_some(encoded))
    }

    fn rid(&self, key: &[ValueRef<'_>]) -> Result<Option<Rid>> {
        self.with_key(key, |t, key| t.get(&self.table.table, &self.index, key, |rid, _| rid))
    }

    /// Runs something with a key as the columns of the index have it.
    fn with_key<T>(
        &self,
        values: &[ValueRef<'_>],
        run: impl FnOnce(&mut pagefold_engine::database::Transaction<'static>, &[ValueRef<'_>]) -> Result<T>,
    ) -> Result<T> {
        let fitted = self.fitted_key(values)?;
        let values: Vec<ValueRef<'_>> = fitted.iter().map(Fitted::as_ref).collect();
        self.table.transaction.with(|t| run(t, &values))
    }
}

/// The columns at some places.
fn of_places(stored: &Schema, places: &[usize]) -> Result<Arc<Schema>> {
    let columns = places.iter().map(|place| stored.columns()[*place].clone()).collect();
    Ok(Arc::new(Schema::new(columns).map_err(|e| Error::Value(e.to_string()))?))
}
