//! Rows of a table that a subquery is run for again and again, each time for other values of the row around it, and that no index has by these values: they are gathered
//! once, as a table of hashes, and looked up from then on (SQLite's automatic indexes are of the same kind).
//!
//! Invariants:
//! - rows are those that the scan itself would give, in its order: of the view of the statement, which does not change while it runs;
//! - they are gathered when the table has been read twice in vain, or often enough that reading it once more is little beside that, and if the statement has the memory for
//!   them: else the table is read each time, as before.

use super::tests::{ask_tests, column_value};
use super::{Context, Tuple, bytes_of, encode_key};
use crate::SqlResult;
use crate::expression::{Comparison, Expr};
use crate::plan::access::{Test, TestKind};
use crate::plan::{Access, ScanPlan};
use pagefold_engine::database::ScanRequest;
use pagefold_types::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Complete reads of the table after which rows are gathered.
const READS: u32 = 2;
/// One read that was not complete stands for so many rows of it.
const ROWS_A_READ: u64 = 500;
const BEGUN_MIN: u64 = 16;

/// Rows, without the columns that they are gathered by, by the values of these.
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

/// The tests that say which rows are wanted of those that are gathered, and all others; `None` when it cannot be done so.
fn divided(plan: &ScanPlan) -> Option<(Vec<&Test>, Vec<&Test>)> {
    let width = plan.table.schema.len();
    if plan.access != Access::Pages || plan.keys.is_some() || plan.columns.iter().any(|column| *column >= width) {
        return None;
    }
    let (by, others): (Vec<&Test>, Vec<&Test>) = plan.tests.iter().partition(|test| is_outer_equality(test));
    let others_need = others.iter().any(|test| match &test.kind {
        TestKind::Compare { value, .. } => needs_outer(value),
        TestKind::In { values, .. } => values.iter().any(needs_outer),
        TestKind::Like { pattern, .. } => needs_outer(pattern),
        TestKind::Null { .. } | TestKind::Truth { .. } => false,
    });
    (!by.is_empty() && !others_need).then_some((by, others))
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
    /// These are its rows.
    Found(Option<Arc<[Tuple]>>),
}

/// A scan begins: of a subquery perhaps. `row`: the one before, in a join.
pub(super) fn begin(plan: &Arc<ScanPlan>, context: &Context<'_>, row: &[Value]) -> SqlResult<Begun> {
    if context.outer.is_empty() || !row.is_empty() || plan.access != Access::Pages {
        return Ok(Begun::Reads);
    }
    let Some((by, others)) = divided(plan) else { return Ok(Begun::Reads) };
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
    let Some(key) = wanted_key(plan, &by, context)? else { return Ok(Begun::Reads) };
    let Some(key) = key else { return Ok(Begun::Found(None)) };
    let rows = match rows {
        Some(rows) => rows,
        None => match gather(plan, &by, &others, context)? {
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
    Ok(Begun::Found(rows.get(key.as_slice()).cloned()))
}

/// A scan that was watched has come to its end.
pub(super) fn read_all(plan: &Arc<ScanPlan>, context: &Context<'_>) {
    if let Some(Gathering::Reading { complete, .. }) = context.execution.gathered.0.borrow_mut().get_mut(&place(plan)) {
        *complete += 1;
    }
}

/// All rows by the values of the columns of some tests. `None` when there is no memory for them.
fn gather(plan: &ScanPlan, by: &[&Test], others: &[&Test], context: &Context<'_>) -> SqlResult<Option<Arc<RowsByKey>>> {
    let execution = context.execution;
    let (asked, parts) = ask_tests(plan, others.iter().copied(), context, &[])?;
    let mut columns = plan.columns.clone();
    columns.extend(by.iter().map(|test| test.column));
    let own = plan.columns.len();
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
