//! How the rows of one table are come by.
//!
//! A **test** is a condition of one column that the engine answers on encoded values, and that may say which keys of an index are looked at
//! ([`pagefold_types::Condition`]). What it compares with has no column of the table, and is computed when the scan is opened.
//!
//! **Keys** are what an OR, such as `(a, b) IN ((1, 2), (3, 4))`, says of the first columns of an index: what they are equal to, and a range of the next one. The OR itself is asked of each row
//! nevertheless. `(a, b) > (1, 2)` is one: `a > 1`, or `a = 1` and `b > 2`.

use super::{Access, Keys, ScanPlan, together};
use crate::bind::{Relation, Source};
use crate::catalog::TableRef;
use crate::expression::{Comparison, Expr, SubqueryKind, function};
use pagefold_engine::btree::Direction;
use pagefold_types::{DataType, Value};
use std::sync::Arc;

/// A row by an index costs as much as so many rows of a scan by pages.
const ROW_BY_INDEX: f64 = 8.0;
/// Or as so many pairs of rows that are put together and asked.
pub(super) const ROW_BY_INDEX_OF_PAIRS: f64 = 2.5;

/// An OR of more alternatives is asked of all rows: so many ranges of an index are looked at, at most.
const KEYS_MAX: usize = 1_024;

/// A condition of one column.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) column: usize,
    pub(crate) kind: TestKind,
}

#[derive(Clone, Debug)]
pub(crate) enum TestKind {
    Compare {
        comparison: Comparison,
        value: Expr,
        data_type: DataType,
    },
    In {
        values: Vec<Expr>,
        data_type: DataType,
        negated: bool,
    },
    Null {
        negated: bool,
    },
    Like {
        pattern: Expr,
        escape: Option<Option<char>>,
        negated: bool,
    },
    /// A BOOLEAN column
    Truth {
        negated: bool,
    },
}

impl Test {
    /// What the column is compared with.
    pub(crate) fn values(&self) -> Vec<&Expr> {
        match &self.kind {
            TestKind::Compare { value, .. } => vec![value],
            TestKind::In { values, .. } => values.iter().collect(),
            TestKind::Like { pattern, .. } => vec![pattern],
            TestKind::Null { .. } | TestKind::Truth { .. } => Vec::new(),
        }
    }

    fn is_equality(&self) -> bool {
        matches!(self.kind, TestKind::Compare { comparison: Comparison::Equal, .. })
    }
}

/// What is known of the rows that are wanted of a table.
pub(crate) struct Wanted<'w> {
    pub(crate) table: &'w Arc<TableRef>,
    /// Its number as a relation.
    pub(crate) relation: usize,
    /// Columns that are needed, ascending.
    pub(crate) columns: Vec<usize>,
    /// Tests that there are already.
    pub(crate) tests: Vec<Test>,
    /// Conditions of its columns, and of what is known before it is read.
    pub(crate) conditions: Vec<Expr>,
    /// Those of the FROM that it is in.
    pub(crate) relations: &'w [Relation],
    /// Columns in whose order rows are best, with DESC.
    pub(crate) order: &'w [(usize, bool)],
    /// Few of the rows in this order will do.
    pub(crate) few: bool,
    /// They are wanted for each row of others, with all of whose rows they would be paired else.
    pub(crate) pairs: bool,
}

/// A scan, before its expressions are placed.
pub(crate) struct Chosen {
    pub(crate) tests: Vec<Test>,
    /// Conditions that are left.
    pub(crate) rest: Vec<Expr>,
    pub(crate) access: Access,
    pub(crate) keys: Option<Keys>,
    pub(crate) is_ordered: bool,
    /// Rows that it delivers, and rows that it looks at, by estimate.
    pub(crate) rows: f64,
    pub(crate) looked_at: f64,
}

/// Chooses tests and access.
pub(crate) fn choose(wanted: &Wanted<'_>) -> Chosen {
    let (mut tests, mut rest) = (wanted.tests.clone(), Vec::new());
    for condition in &wanted.conditions {
        match test_of(condition, wanted.relation, wanted.table) {
            Some(test) => tests.push(test),
            None => rest.push(condition.clone()),
        }
    }
    let all = wanted.table.rows() as f64;
    let selected: f64 =
        tests.iter().map(|test| selectivity(test, wanted)).product::<f64>() * 0.5_f64.powi(i32::try_from(rest.len()).unwrap_or(0).min(6));
    let rows = (all * selected).max(1.0);
    let alternatives = alternatives_of(wanted, &tests, &rest);
    let mut best = Chosen {
        tests: Vec::new(),
        rest: Vec::new(),
        access: Access::Pages,
        keys: None,
        is_ordered: wanted.order.is_empty(),
        rows,
        looked_at: all,
    };
    let mut best_cost = all + if wanted.order.is_empty() { 0.0 } else { sort_cost(rows) };
    for index in 0..wanted.table.index_count() {
        let Some(found) = by_index(wanted, index, &tests, &alternatives) else { continue };
        let cost = match &found.access {
            Access::Unique { .. } => 0.0,
            _ => {
                let looked_at = if found.is_ordered && wanted.few {
                    (all * found.part).min(100.0 + 1.0 / selected.max(1e-9))
                } else {
                    all * found.part
                };
                let by_index = if wanted.pairs { ROW_BY_INDEX_OF_PAIRS } else { ROW_BY_INDEX };
                let each = if found.keys_only { 0.8 } else { by_index };
                looked_at * each + if found.is_ordered { 0.0 } else { sort_cost(rows) }
            }
        };
        if cost < best_cost {
            best_cost = cost;
            let looked_at = (all * found.part).max(1.0);
            let rows = match &found.access {
                Access::Unique { .. } => 1.0,
                _ if found.keys.is_some() => rows.min(looked_at),
                _ => rows,
            };
            best = Chosen { access: found.access, keys: found.keys, is_ordered: found.is_ordered, rows, looked_at, ..best };
        }
    }
    Chosen { tests, rest, ..best }
}

fn sort_cost(rows: f64) -> f64 {
    rows * (rows.max(2.0)).log2() * 0.5
}

struct ByIndex {
    access: Access,
    keys: Option<Keys>,
    is_ordered: bool,
    /// Part of the entries that is looked at.
    part: f64,
    keys_only: bool,
}

/// What an index is good for; `None`: nothing.
fn by_index(wanted: &Wanted<'_>, index: usize, tests: &[Test], alternatives: &[Keys]) -> Option<ByIndex> {
    let table = wanted.table;
    let columns = table.index_columns(index);
    let mut part = 1.0;
    let mut equal = Vec::with_capacity(columns.len());
    let mut leading = 0;
    for (column, _) in columns {
        let own: Vec<usize> = (0..tests.len()).filter(|at| tests[*at].column == *column).collect();
        if let Some(at) = own.iter().find(|at| tests[**at].is_equality()) {
            part *= selectivity(&tests[*at], wanted);
            equal.push(*at);
            leading += 1;
            continue;
        }
        let range: Vec<&Test> = own.iter().map(|at| &tests[*at]).filter(|test| narrows(test)).collect();
        if !range.is_empty() {
            part *= range.iter().map(|test| selectivity(test, wanted)).product::<f64>();
            leading += 1;
        }
        // Behind a list of values the next column narrows, too; behind a range it does not.
        if !range.iter().any(|test| matches!(test.kind, TestKind::In { .. })) {
            break;
        }
    }
    if equal.len() == columns.len() && table.is_unique(index) {
        return Some(ByIndex { access: Access::Unique { index, tests: equal }, keys: None, is_ordered: true, part: 0.0, keys_only: false });
    }
    let keys = alternatives.iter().filter_map(|alternatives| keys_of(wanted, index, alternatives));
    let keys = keys.filter(|(own, _)| *own < part).min_by(|(a, _), (b, _)| a.total_cmp(b));
    let keys = keys.map(|(own, keys)| {
        part = own;
        keys
    });
    let order = if table.is_divided() { None } else { in_order(columns, wanted.order, tests) };
    let is_ordered = !wanted.order.is_empty() && order.is_some();
    let keys_only = !table.is_divided() && has_all(table, index, wanted, tests);
    if leading == 0 && keys.is_none() && !is_ordered && !keys_only {
        return None;
    }
    let direction = order.unwrap_or(Direction::Forward);
    let is_ordered = is_ordered || wanted.order.is_empty();
    Some(ByIndex { access: Access::Index { index, direction, keys_only }, keys, is_ordered, part, keys_only })
}

/// What each OR among these conditions, and each comparison of rows, says of columns that are compared with something constant. None, where something is compared with a row around or
/// before: the scan is opened for each of these, which would make all keys again.
fn alternatives_of(wanted: &Wanted<'_>, tests: &[Test], conditions: &[Expr]) -> Vec<Keys> {
    let is_open = |test: &Test| match &test.kind {
        TestKind::Compare { value, .. } => !is_constant(value),
        TestKind::In { values, .. } => !values.iter().all(is_constant),
        _ => false,
    };
    if tests.iter().any(is_open) {
        return Vec::new();
    }
    let is_never = |one: &&Expr| matches!(one, Expr::Literal(Value::Null | Value::Boolean(false)));
    let alternatives = conditions.iter().filter_map(|condition| match condition {
        Expr::Or(all) if all.len() <= KEYS_MAX => {
            let alternatives = all.iter().filter(|one| !is_never(one)).map(|one| match one {
                Expr::And(terms) => comparisons_of(wanted, terms),
                term => comparisons_of(wanted, std::slice::from_ref(term)),
            });
            Some(alternatives.collect())
        }
        Expr::Compare { comparison, left, .. } => {
            let alternatives = rows_apart(*comparison, function::compared_rows(left)?)?;
            Some(alternatives.iter().map(|terms| comparisons_of(wanted, terms)).collect())
        }
        _ => None,
    });
    alternatives.collect()
}

/// What a comparison of rows says, each alternative as comparisons of all of which it is made. `None`: they are too many.
fn rows_apart(comparison: Comparison, pairs: &[Expr]) -> Option<Vec<Vec<Expr>>> {
    /// So many comparisons come of columns that keys may have.
    const COLUMNS_MAX: usize = 32;
    if pairs.len() > 2 * COLUMNS_MAX {
        return None;
    }
    let strict = match comparison {
        Comparison::GreaterOrEqual => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::Less,
        other => other,
    };
    let compare =
        |comparison, pair: &[Expr]| Expr::Compare { comparison, left: Box::new(pair[0].clone()), right: Box::new(pair[1].clone()) };
    let (mut equal, mut alternatives) = (Vec::new(), Vec::new());
    let mut pairs = pairs.chunks_exact(2).peekable();
    while let Some(pair) = pairs.next() {
        let mut terms: Vec<Expr> = equal.clone();
        terms.push(compare(if pairs.peek().is_some() { strict } else { comparison }, pair));
        alternatives.push(terms);
        equal.push(compare(Comparison::Equal, pair));
    }
    Some(alternatives)
}

/// Comparisons of columns with something constant that are true where all of these are.
fn comparisons_of(wanted: &Wanted<'_>, terms: &[Expr]) -> Vec<Test> {
    let tests = terms.iter().filter_map(|term| test_of(term, wanted.relation, wanted.table));
    tests.filter(|test| narrows(test) && matches!(&test.kind, TestKind::Compare { value, .. } if is_constant(value))).collect()
}

/// The alternatives as keys of an index, and which part of its entries these are. `None`: one of them says nothing of its first column.
fn keys_of(wanted: &Wanted<'_>, index: usize, alternatives: &[Vec<Test>]) -> Option<(f64, Keys)> {
    let columns = wanted.table.index_columns(index);
    let (mut part, mut keys) = (0.0, Vec::with_capacity(alternatives.len()));
    for tests in alternatives {
        let mut key: Vec<Test> = Vec::new();
        for (column, _) in columns {
            let own = tests.iter().filter(|test| test.column == *column);
            match own.clone().find(|test| test.is_equality()) {
                Some(equal) => key.push(equal.clone()),
                // Behind a range no column narrows.
                None => {
                    key.extend(own.cloned());
                    break;
                }
            }
        }
        if key.is_empty() {
            return None;
        }
        let is_whole = key.len() == columns.len() && key.iter().all(Test::is_equality);
        part += match is_whole && wanted.table.is_unique(index) {
            true => 1.0 / (wanted.table.rows() as f64).max(1.0),
            false => key.iter().map(|test| selectivity(test, wanted)).product(),
        };
        keys.push(key);
    }
    Some((part, keys))
}

/// Is it the same for all rows, also those around and before?
fn is_constant(expr: &Expr) -> bool {
    let depends = |part: &Expr| matches!(part, Expr::Column { .. } | Expr::Slot(_) | Expr::Outer(_) | Expr::Subquery { .. });
    !expr.any(|part| depends(part) || part.is_volatile())
}

/// Does a test say which keys are looked at?
fn narrows(test: &Test) -> bool {
    match &test.kind {
        TestKind::Compare { comparison, .. } => *comparison != Comparison::NotEqual,
        TestKind::In { negated, .. } => !negated,
        TestKind::Null { .. } => true,
        TestKind::Like { negated, pattern, .. } => {
            !negated && !matches!(pattern, Expr::Literal(Value::Text(text)) if text.starts_with(['%', '_']))
        }
        TestKind::Truth { .. } => true,
    }
}

/// Does the order of the index give what is wanted? Columns that are equal to something do not count.
fn in_order(columns: &[(usize, pagefold_types::Direction)], order: &[(usize, bool)], tests: &[Test]) -> Option<Direction> {
    let is_equal = |column: usize| tests.iter().any(|test| test.column == column && test.is_equality());
    let mut own = columns.iter().filter(|(column, _)| !is_equal(*column));
    let mut direction = None;
    for (column, descending) in order.iter().filter(|(column, _)| !is_equal(*column)) {
        let (indexed, sorted) = own.next()?;
        if indexed != column {
            return None;
        }
        let backward = (*sorted == pagefold_types::Direction::Descending) != *descending;
        let needed = if backward { Direction::Backward } else { Direction::Forward };
        if *direction.get_or_insert(needed) != needed {
            return None;
        }
    }
    Some(direction.unwrap_or(Direction::Forward))
}

/// Has the index all that is asked of a row, and as it is in the row?
fn has_all(table: &TableRef, index: usize, wanted: &Wanted<'_>, tests: &[Test]) -> bool {
    let columns = table.index_columns(index);
    let layout = table.first().indexes[index].key_layout();
    let has = |column: usize| columns.iter().position(|(own, _)| *own == column).is_some_and(|at| layout.decodes_exactly(at));
    wanted.columns.iter().all(|column| has(*column)) && tests.iter().all(|test| has(test.column))
}

/// Part of the rows for which a test is true, by what is known without statistics.
fn selectivity(test: &Test, wanted: &Wanted<'_>) -> f64 {
    let rows = (wanted.table.rows() as f64).max(1.0);
    let own = wanted.table.is_key(test.column).then_some(rows);
    let equal = own.map_or_else(|| (10.0 / rows).clamp(0.005, 0.1), |rows| 1.0 / rows);
    match &test.kind {
        TestKind::Compare { comparison: Comparison::Equal, value, .. } => {
            // What is compared with the key of another table has its values.
            let values = own.unwrap_or(0.0).max(key_values(value, wanted.relations).unwrap_or(0.0));
            if values > 0.0 { 1.0 / values } else { equal }
        }
        TestKind::Compare { comparison: Comparison::NotEqual, .. } => 0.9,
        TestKind::Compare { .. } => 0.3,
        TestKind::In { values, negated: false, .. } => (equal * values.len() as f64).min(0.5),
        TestKind::In { .. } => 0.8,
        TestKind::Null { negated } => {
            if *negated {
                0.95
            } else {
                0.05
            }
        }
        TestKind::Like { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        TestKind::Truth { .. } => 0.5,
    }
}

/// How many values there are of a column that is the key of its table.
fn key_values(expr: &Expr, relations: &[Relation]) -> Option<f64> {
    match expr {
        Expr::Cast { of, .. } => key_values(of, relations),
        Expr::Column { relation, column } => match &relations.get(*relation)?.source {
            Source::Table(table) => table.is_key(*column).then(|| (table.rows() as f64).max(1.0)),
            _ => None,
        },
        _ => None,
    }
}

/// A condition as a test of a column of a relation.
pub(crate) fn test_of(condition: &Expr, relation: usize, table: &TableRef) -> Option<Test> {
    let own = |expr: &Expr| own_column(expr, relation);
    let is_free = |expr: &Expr| is_free_of(expr, relation);
    match condition {
        Expr::Compare { comparison, left, right } => {
            let (column, value, comparison, over) = match (own(left), own(right)) {
                (Some((column, over)), None) if is_free(right) => (column, right, *comparison, over),
                (None, Some((column, over))) if is_free(left) => (column, left, comparison.mirrored(), over),
                _ => return None,
            };
            let data_type = over.unwrap_or(table.schema.columns()[column].data_type);
            Some(Test { column, kind: TestKind::Compare { comparison, value: (**value).clone(), data_type } })
        }
        Expr::In { of, list, negated, .. } => {
            let (column, over) = own(of)?;
            let data_type = over.unwrap_or(table.schema.columns()[column].data_type);
            let own = table.schema.columns()[column].data_type;
            // A value that lies between two of the column's would be taken for one of them.
            let fits = !matches!((own, data_type), (DataType::Date, DataType::Timestamp { .. }) | (DataType::Real, DataType::Double));
            (fits && list.iter().all(is_free))
                .then(|| Test { column, kind: TestKind::In { values: list.clone(), data_type, negated: *negated } })
        }
        Expr::IsNull { of, negated } => {
            let Expr::Column { relation: r, column } = **of else { return None };
            (r == relation).then_some(Test { column, kind: TestKind::Null { negated: *negated } })
        }
        Expr::Like { of, pattern, escape, ignores_case: false, negated } if *escape != Some(None) => {
            let Expr::Column { relation: r, column } = **of else { return None };
            let is_text = || matches!(table.schema.columns()[column].data_type, DataType::Varchar(_));
            (r == relation && is_text() && is_free(pattern))
                .then(|| Test { column, kind: TestKind::Like { pattern: (**pattern).clone(), escape: *escape, negated: *negated } })
        }
        Expr::Column { relation: r, column } if *r == relation => Some(Test { column: *column, kind: TestKind::Truth { negated: false } }),
        Expr::Not(of) => match **of {
            Expr::Column { relation: r, column } if r == relation => Some(Test { column, kind: TestKind::Truth { negated: true } }),
            _ => None,
        },
        _ => None,
    }
}

/// A column of the relation, also under a cast that keeps order and loses nothing; the type it is cast to.
fn own_column(expr: &Expr, relation: usize) -> Option<(usize, Option<DataType>)> {
    match expr {
        Expr::Column { relation: r, column } if *r == relation => Some((*column, None)),
        Expr::Cast { of, from, to } => {
            let Expr::Column { relation: r, column } = **of else { return None };
            (r == relation && keeps_order(from, to)).then_some((column, Some(*to)))
        }
        _ => None,
    }
}

/// Does a cast keep the order, lose nothing, and never fail?
pub(super) fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType::{BigInt, Date, Decimal, Double, Integer, Real, SmallInt, Timestamp, Varchar};
    match (from, to) {
        (SmallInt, Integer | BigInt) | (Integer, BigInt) | (SmallInt | Integer | BigInt, Decimal { .. }) => true,
        (Decimal { scale: a, .. }, Decimal { scale: b, .. }) => a <= b,
        (SmallInt | Integer, Double) | (SmallInt, Real) | (Real, Double) => true,
        (Date, Timestamp { with_zone: false, .. }) => true,
        (Varchar(_), Varchar(None)) => true,
        _ => false,
    }
}

fn is_free_of(expr: &Expr, relation: usize) -> bool {
    !expr.any(|part| matches!(part, Expr::Column { relation: r, .. } if *r == relation) || needs_row(part))
}

/// Is it a subquery that is asked of each row? One that needs nothing of the row has one value, which is computed when the scan is opened.
pub(crate) fn needs_row(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery { kind: SubqueryKind::Scalar, outer, .. } => !outer.is_empty(),
        Expr::Subquery { .. } => true,
        _ => false,
    }
}

impl Chosen {
    /// The scan, with its expressions placed: `before` those of tests, `own` those of its own rows.
    pub(crate) fn scan(self, wanted: &Wanted<'_>, before: &mut dyn FnMut(&mut Expr), own: &mut dyn FnMut(&mut Expr)) -> ScanPlan {
        let Chosen { mut tests, mut rest, access, keys, rows, is_ordered, .. } = self;
        let in_order = is_ordered && !wanted.order.is_empty();
        for test in &mut tests {
            match &mut test.kind {
                TestKind::Compare { value, .. } => before(value),
                TestKind::In { values, .. } => values.iter_mut().for_each(&mut *before),
                TestKind::Like { pattern, .. } => before(pattern),
                TestKind::Null { .. } | TestKind::Truth { .. } => {}
            }
        }
        rest.iter_mut().for_each(&mut *own);
        ScanPlan {
            table: Arc::clone(wanted.table),
            columns: wanted.columns.clone(),
            tests,
            residual: together(rest),
            access,
            keys,
            in_order,
            rows,
        }
    }
}
