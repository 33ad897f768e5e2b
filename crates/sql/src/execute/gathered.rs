//! Rows of a table that a subquery is run for again and again, each time for other values of the row around it, and that no index has by these values: they are gathered
//! once, as a table of hashes, and looked up from then on (SQLite's automatic indexes are of the same kind).
//!
//! Invariants:
//! - rows are those that the scan itself would give, in its order: of the view of the statement, which does not change while it runs;
//! - other tests that need the row around are asked of each of the rows that are found, one by one as they are wanted: who wants one row does not look at all;
//! - they are gathered when the table has been read twice in vain, or often enough that reading it once more is little beside that, and if the statement has the memory for
//!   them: else the table is read each time, as before.

use super::tests::{ask_tests, column_value};
use super::{Context, Tuple, bytes_of, encode_key};
use crate::expression::{Comparison, Expr};
use crate::plan::access::{Test, TestKind};
use crate::plan::{Access, ScanPlan};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::ScanRequest;
use pagefold_types::{Predicate, Value, ValueRef};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Complete reads of the table after which rows are gathered.
const READS: u32 = 2;
/// One read that was not complete stands for so many rows of it.
const ROWS_A_READ: u64 = 500;
const BEGUN_MIN: u64 = 16;

/// Rows, by the values of the columns that they are gathered by.
type RowsByKey = HashMap<Box<[u8]>, Arc<[Tuple]>>;

/// What is known of a scan.
enum Gathering {
    /// It was begun, and read to its end, so many times.
    Reading {
        begun: u64,
        complete: u32,
    },
    Rows(Arc<RowsByKey>),
    /// There is no memory for it.
    Never,
}

/// Of the scans of a statement, by their places in memory.
#[derive(Default)]
pub(super) struct GatheredRows(RefCell<HashMap<usize, Gathering>>);

/// Which of the statement's scans it is.
fn place(plan: &Arc<ScanPlan>) -> usize {
    Arc::as_ptr(plan).addr()
}

fn needs_outer(expr: &Expr) -> bool {
    expr.any(|part| matches!(part, Expr::Outer(_)))
}

/// Is this test an equality with something of the row around?
fn is_outer_equality(test: &Test) -> bool {
    matches!(&test.kind, TestKind::Compare { comparison: Comparison::Equal, value, .. } if needs_outer(value))
}

/// The tests of a scan.
struct Divided<'p> {
    /// Equalities that say which of the rows that are gathered are wanted.
    by: Vec<&'p Test>,
    /// Others that need the row around.
    around: Vec<&'p Test>,
    /// Those that are asked once.
    once: Vec<&'p Test>,
}

impl<'p> Divided<'p> {
    /// `None` when rows cannot be gathered.
    fn of(plan: &'p ScanPlan) -> Option<Divided<'p>> {
        let width = plan.table.schema.len();
        if plan.access != Access::Pages || plan.keys.is_some() || plan.columns.iter().any(|column| *column >= width) {
            return None;
        }
        let (by, others): (Vec<&Test>, Vec<&Test>) = plan.tests.iter().partition(|test| is_outer_equality(test));
        let (around, once) = others.into_iter().partition(|test| test.values().into_iter().any(needs_outer));
        (!by.is_empty()).then_some(Divided { by, around, once })
    }

    /// Columns of the rows that are gathered: those that the scan gives first.
    fn columns(&self, plan: &ScanPlan) -> Vec<usize> {
        let mut columns = plan.columns.clone();
        for test in &self.around {
            if !columns.contains(&test.column) {
                columns.push(test.column);
            }
        }
        columns
    }
}

/// The key of the rows that are wanted now. `None`: a value is not as the column has it. Within: `None` when something is NULL, and no row is wanted.
fn wanted_key(plan: &ScanPlan, by: &[&Test], context: &Context<'_>) -> SqlResult<Option<Option<Vec<u8>>>> {
    let mut key = Vec::new();
    for test in by {
        let TestKind::Compare { value, data_type, .. } = &test.kind else { return Ok(None) };
        let value = context.evaluate(value, &[])?;
        if value == Value::Null {
            return Ok(Some(None));
        }
        let Some(value) = column_value(&value, data_type, &plan.table.schema.columns()[test.column].data_type) else { return Ok(None) };
        encode_key(value.as_ref(), &mut key);
    }
    Ok(Some(Some(key)))
}

/// What is to be done for a scan that begins.
pub(super) enum Begun {
    /// It reads the table.
    Reads,
    /// The same; whether it comes to its end is [told](read_all).
    Watched,
    /// These are its rows, if there are any.
    Found(Option<Box<FoundRows>>),
}

/// Rows of one key, given one by one.
pub(super) struct FoundRows {
    rows: Arc<[Tuple]>,
    /// The next one.
    at: usize,
    /// What is asked of each, and its columns, of which so many are given.
    around: Option<Predicate>,
    columns: Vec<usize>,
    given: usize,
}

impl FoundRows {
    /// The next row. False without one.
    pub(super) fn next(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while let Some(next) = self.rows.get(self.at) {
            self.at += 1;
            if let Some(around) = &self.around {
                let place = |column: usize| self.columns.iter().position(|own| *own == column);
                let value = |column: usize| place(column).map_or(ValueRef::Null, |at| next[at].as_ref());
                if around.eval(|column| Ok::<_, SqlError>(value(column)))? != Some(true) {
                    context.execution.look()?;
                    continue;
                }
            }
            row.clear();
            row.extend_from_slice(&next[..self.given]);
            return Ok(true);
        }
        Ok(false)
    }
}

/// A scan begins: of a subquery perhaps. `row`: the one before, in a join.
pub(super) fn begin(plan: &Arc<ScanPlan>, context: &Context<'_>, row: &[Value]) -> SqlResult<Begun> {
    if context.outer.is_empty() || !row.is_empty() || plan.access != Access::Pages {
        return Ok(Begun::Reads);
    }
    let Some(divided) = Divided::of(plan) else { return Ok(Begun::Reads) };
    let known = &context.execution.gathered.0;
    let rows = match known.borrow_mut().entry(place(plan)).or_insert(Gathering::Reading { begun: 0, complete: 0 }) {
        Gathering::Never => return Ok(Begun::Reads),
        Gathering::Rows(rows) => Some(Arc::clone(rows)),
        Gathering::Reading { begun, complete } => {
            *begun += 1;
            if *complete < READS && *begun < BEGUN_MIN.max(plan.table.rows() / ROWS_A_READ) {
                return Ok(Begun::Watched);
            }
            None
        }
    };
    let Some(key) = wanted_key(plan, &divided.by, context)? else { return Ok(Begun::Reads) };
    let Some(key) = key else { return Ok(Begun::Found(None)) };
    let rows = match rows {
        Some(rows) => rows,
        None => match gather(plan, &divided, context)? {
            Some(rows) => {
                known.borrow_mut().insert(place(plan), Gathering::Rows(Arc::clone(&rows)));
                rows
            }
            None => {
                known.borrow_mut().insert(place(plan), Gathering::Never);
                return Ok(Begun::Reads);
            }
        },
    };
    let Some(rows) = rows.get(key.as_slice()).cloned() else { return Ok(Begun::Found(None)) };
    let around = match divided.around.is_empty() {
        true => None,
        false => match ask_tests(plan, divided.around.iter().copied(), context, &[])?.0 {
            // Something that it compares with is NULL: it is true of no row.
            None => return Ok(Begun::Found(None)),
            around => around,
        },
    };
    let found = FoundRows { rows, at: 0, around, columns: divided.columns(plan), given: plan.columns.len() };
    Ok(Begun::Found(Some(Box::new(found))))
}

/// A scan that was watched has come to its end.
pub(super) fn read_all(plan: &Arc<ScanPlan>, context: &Context<'_>) {
    if let Some(Gathering::Reading { complete, .. }) = context.execution.gathered.0.borrow_mut().get_mut(&place(plan)) {
        *complete += 1;
    }
}

/// All rows by the values of the columns of some tests. `None` when there is no memory for them.
fn gather(plan: &ScanPlan, divided: &Divided<'_>, context: &Context<'_>) -> SqlResult<Option<Arc<RowsByKey>>> {
    let execution = context.execution;
    let (asked, parts) = ask_tests(plan, divided.once.iter().copied(), context, &[])?;
    let mut columns = divided.columns(plan);
    let own = columns.len();
    columns.extend(divided.by.iter().map(|test| test.column));
    let mut gathered: HashMap<Box<[u8]>, Vec<Tuple>> = HashMap::new();
    let (mut taken, mut key) = (0, Vec::new());
    for part in parts {
        let table = &plan.table.parts[part].table;
        let request = ScanRequest { columns: Some(columns.clone()), condition: asked.clone(), limit: None, rids: false };
        for batch in execution.view.scan(table, &request)? {
            let batch = batch?;
            execution.limits.check()?;
            for at in 0..batch.len() {
                let mut row = Tuple::with_capacity(columns.len());
                batch.values_into(table, at, &mut row)?;
                if row[own..].contains(&Value::Null) {
                    continue;
                }
                key.clear();
                row[own..].iter().for_each(|value| encode_key(value.as_ref(), &mut key));
                row.truncate(own);
                row.shrink_to_fit();
                let mut bytes = bytes_of(&row);
                let list = match gathered.get_mut(key.as_slice()) {
                    Some(list) => list,
                    None => {
                        bytes += key.len() + 2 * size_of::<(Box<[u8]>, Vec<Tuple>)>();
                        gathered.entry(key.as_slice().into()).or_default()
                    }
                };
                list.push(row);
                if execution.budget.take(bytes).is_err() {
                    execution.budget.give_back(taken);
                    return Ok(None);
                }
                taken += bytes;
            }
        }
    }
    // They stay until the statement ends.
    execution.known.charge(taken);
    Ok(Some(Arc::new(gathered.into_iter().map(|(key, rows)| (key, rows.into())).collect())))
}
