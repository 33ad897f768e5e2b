//! The partitions of a partitioned table, in a transaction.
//!
//! Invariants:
//! - under READ COMMITTED each call goes by the partitions that there are when it begins: what was found out of them is found out again when definitions have changed;
//! - a call that a partition refuses since it has gone meanwhile has done nothing, and is done again with those that there are then.

use crate::row::Fitted;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::{Error, Result};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Isolation, Part, PartOrder, PartitionedTable};
use pagefold_engine::index::Index;
use pagefold_types::{KeyRange, Predicate, ValueRef};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A partitioned table, in a transaction.
#[derive(Debug)]
pub(crate) struct Whole<'t> {
    transaction: &'t Transaction,
    name: String,
    now: RefCell<Option<Rc<Partitions<'t>>>>,
}

/// Its partitions, as they are.
#[derive(Debug)]
pub(crate) struct Partitions<'t> {
    transaction: &'t Transaction,
    version: (u64, usize),
    pub(crate) whole: Arc<PartitionedTable>,
    tables: Vec<OnceCell<Table<'t>>>,
}

impl<'t> Whole<'t> {
    pub(crate) fn new(transaction: &'t Transaction, name: &str) -> Whole<'t> {
        Whole { transaction, name: name.into(), now: RefCell::new(None) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// As they are now.
    pub(crate) fn now(&self) -> Result<Rc<Partitions<'t>>> {
        let version = self.transaction.with(|t| t.definitions_version());
        if let Some(now) = &*self.now.borrow()
            && now.version == version
        {
            return Ok(Rc::clone(now));
        }
        let whole = self.transaction.with(|t| t.partitioned_table(&self.name))?;
        let tables = whole.partitions().iter().map(|_| OnceCell::new()).collect();
        let now = Rc::new(Partitions { transaction: self.transaction, version, whole, tables });
        *self.now.borrow_mut() = Some(Rc::clone(&now));
        Ok(now)
    }

    /// Runs a call, again if a partition has gone meanwhile.
    pub(crate) fn run<R>(&self, run: impl Fn(&Partitions<'t>) -> Result<R>) -> Result<R> {
        loop {
            let now = self.now()?;
            match run(&now) {
                Err(stale @ Error::Stale { .. }) => {
                    let changed = self.transaction.with(|t| t.definitions_version()) != now.version;
                    if !changed || self.transaction.isolation() != Isolation::ReadCommitted {
                        return Err(stale);
                    }
                }
                other => return other,
            }
        }
    }
}

impl<'t> Partitions<'t> {
    /// The table of a partition, by its number in the list.
    pub(crate) fn table(&self, at: usize) -> Result<&Table<'t>> {
        let cell = &self.tables[at];
        if let Some(table) = cell.get() {
            return Ok(table);
        }
        let partition = &self.whole.partitions()[at];
        let table = Table::new(self.transaction, self.transaction.with(|t| t.table_of_partition(partition))?)?;
        Ok(cell.get_or_init(|| table))
    }

    /// Where a row of these values belongs, by its number in the list.
    pub(crate) fn place_of(&self, values: &[Fitted<'_>]) -> Result<usize> {
        let values: Vec<ValueRef<'_>> = values.iter().map(Fitted::as_ref).collect();
        self.place_of_values(&values)
    }

    pub(crate) fn place_of_values(&self, values: &[ValueRef<'_>]) -> Result<usize> {
        let mut key = Vec::with_capacity(32);
        self.whole.key(values, &mut key)?;
        self.whole.find_for(&key)
    }

    /// The index of a partition that belongs to an index of the whole.
    pub(crate) fn index(&self, at: usize, index: &str) -> Result<Arc<Index>> {
        let table = self.table(at)?;
        let found = self.transaction.with(|t| t.index_of_partition(&self.whole.partitions()[at], table.inner(), index))?;
        found.ok_or_else(|| {
            let name = PartitionedTable::index_name(index, &self.whole.partitions()[at]);
            Error::Unknown { kind: "index", name, hint: format!("; \"{}\" lacks it, or it is damaged", table.name()) }
        })
    }

    /// What is to be read for a condition, as rows lie.
    pub(crate) fn all_parts(&self, condition: Option<&Predicate>) -> Result<(Vec<Part>, PartOrder)> {
        let parts = self
            .whole
            .find_for_condition(condition)
            .into_iter()
            .map(|at| Ok(Part { table: Arc::clone(self.table(at)?.inner()), by: None }));
        Ok((parts.collect::<Result<_>>()?, PartOrder::Parts(Direction::Forward)))
    }

    /// What is to be read by an index of the whole, in these ranges.
    pub(crate) fn index_parts(
        &self,
        index: &str,
        like: &Index,
        ranges: &[KeyRange],
        direction: Direction,
        condition: Option<&Predicate>,
    ) -> Result<(Vec<Part>, PartOrder)> {
        let chosen = self.whole.find_for_condition(condition);
        let part = |at: usize, ranges: Vec<KeyRange>| {
            Ok(Part { table: Arc::clone(self.table(at)?.inner()), by: Some((self.index(at, index)?, ranges)) })
        };
        let (parts, is_in_order) = self.whole.plan(&like.attributes().columns, ranges, &chosen, direction == Direction::Backward);
        let parts = parts.into_iter().map(|(at, ranges)| part(at, ranges)).collect::<Result<_>>()?;
        Ok((parts, if is_in_order { PartOrder::Parts(direction) } else { PartOrder::Keys(direction) }))
    }
}
