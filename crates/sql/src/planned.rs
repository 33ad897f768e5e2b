//! Statements that are planned, and plans that are kept.
//!
//! Invariant: plans that are kept were made at one version of the catalog, and are given only to who is at that version, for statements whose parameters have the same types. At another version they
//! go: they have tables that may be gone, whose files would stay.

use crate::bind::change::ChangePlan;
use crate::bind::copy::{CopyFromPlan, CopyToPlan};
use crate::bind::foreign_key::References;
use crate::bind::insert::InsertPlan;
use crate::bind::merge::MergePlan;
use crate::bind::{Binder, Changing, Limit, Output, Turn};
use crate::catalog::TableRef;
use crate::copy::statement::{CopyStatement, Direction};
use crate::execute::direct::DirectInsert;
use crate::expression::Expr;
use crate::expression::ParamTypes;
use crate::parse::Syntax;
use crate::plan::{Access, Plan, ScanPlan, Told};
use crate::session::Statement;
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, text};
use sqlparser::ast::{SetExpr, Statement as Node};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Statements of which a session keeps the plan, or what was read.
const KEPT_MAX: usize = 256;
/// Bytes of their texts, of each and of all: what is made of a text takes some twenty times as much.
const TEXT_BYTES_MAX: usize = 128 << 10;
const TEXTS_BYTES_MAX: usize = 1 << 20;

/// A statement that is planned.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) action: Action,
    /// Statements of WITH that change rows, and in which order all is run: none, where there are none.
    pub(crate) changes: Vec<Changing>,
    pub(crate) order: Vec<Turn>,
    pub(crate) outputs: Arc<[Output]>,
    pub(crate) subplans: Arc<[Plan]>,
    /// Tables of the database's own that it names.
    pub(crate) system: Vec<&'static SystemTable>,
    params: Vec<DataType>,
    /// Parameters, decimal numbers, whose scale nothing in the statement says.
    chosen_scales: Vec<usize>,
    /// `SELECT`, `INSERT 0`, `UPDATE`, `DELETE`, `MERGE`, `COPY`: the number of rows follows.
    pub(crate) tag: &'static str,
}

#[derive(Debug)]
pub(crate) enum Action {
    Query(Plan),
    Point(PointPlan),
    Locking(LockingPlan),
    Insert { plan: InsertPlan, direct: Option<DirectInsert> },
    Change(ChangePlan),
    Merge(MergePlan),
    CopyFrom(Box<CopyFromPlan>),
    CopyTo(CopyToPlan),
}

/// At most one row, by all columns of a unique index: the transaction is asked for it at once, without a view and without operators.
#[derive(Debug)]
pub(crate) struct PointPlan {
    pub(crate) scan: Arc<ScanPlan>,
    /// Number of the index, and its tests in the order of its columns.
    pub(crate) index: usize,
    pub(crate) tests: Vec<usize>,
    /// Of the columns of the scan; `None`: those.
    pub(crate) exprs: Option<Vec<Expr>>,
    /// The same as any other plan, for values that are not as the columns have them.
    pub(crate) plan: Plan,
}

impl PointPlan {
    fn of(plan: Plan) -> Result<PointPlan, Plan> {
        let (scan, exprs) = match &plan {
            Plan::Scan(scan) => (Arc::clone(scan), None),
            Plan::Project(project) => match &project.input {
                Plan::Scan(scan) => (Arc::clone(scan), Some(project.exprs.clone())),
                _ => return Err(plan),
            },
            _ => return Err(plan),
        };
        match &scan.access {
            Access::Unique { index, tests } if !scan.table.is_divided() && tests.len() == scan.tests.len() => {
                let (index, tests) = (*index, tests.clone());
                Ok(PointPlan { scan, index, tests, exprs, plan })
            }
            _ => Err(plan),
        }
    }
}

/// SELECT ... FOR UPDATE or FOR SHARE of one table.
#[derive(Debug)]
pub(crate) struct LockingPlan {
    pub(crate) table: Arc<TableRef>,
    /// What comes out, and behind it part and RID.
    pub(crate) source: Plan,
    pub(crate) columns: usize,
    pub(crate) limit: Limit,
    pub(crate) lock: pagefold_engine::database::RowLock,
    pub(crate) wait: pagefold_engine::database::LockWait,
}

impl Action {
    /// What a change of rows has to look at in other tables.
    pub(crate) fn references(&self) -> Option<&References> {
        match self {
            Action::Insert { plan, .. } => Some(&plan.references),
            Action::Change(plan) => Some(&plan.references),
            Action::Merge(plan) => Some(&plan.references),
            Action::CopyFrom(plan) => Some(&plan.insert.references),
            Action::Query(_) | Action::Point(_) | Action::Locking(_) | Action::CopyTo(_) => None,
        }
    }

    /// The table whose rows it changes.
    fn table(&self) -> Option<&Arc<TableRef>> {
        match self {
            Action::Insert { plan, .. } => Some(&plan.table),
            Action::Change(plan) => Some(&plan.table),
            Action::Merge(plan) => Some(&plan.table),
            Action::CopyFrom(plan) => Some(&plan.insert.table),
            Action::Query(_) | Action::Point(_) | Action::Locking(_) | Action::CopyTo(_) => None,
        }
    }

    pub(crate) fn changed_table(&self) -> Option<&str> {
        self.table().map(|table| table.name.as_str())
    }

    /// Has a change of rows RETURNING?
    pub(crate) fn returns(&self) -> bool {
        match self {
            Action::Insert { plan, .. } => plan.returning.is_some(),
            Action::Change(plan) => plan.returning.is_some(),
            Action::Merge(plan) => plan.returning.is_some(),
            _ => false,
        }
    }

    /// Where its rows come from.
    pub(crate) fn source(&self) -> Option<&Plan> {
        Some(match self {
            Action::Query(plan) | Action::Point(PointPlan { plan, .. }) => plan,
            Action::Locking(plan) => &plan.source,
            Action::Insert { plan, .. } => &plan.source,
            Action::Change(plan) => &plan.source,
            Action::Merge(plan) => &plan.source,
            Action::CopyFrom(plan) => &plan.insert.source,
            Action::CopyTo(plan) => &plan.source,
        })
    }

    fn explain(&self, told: Told<'_>) -> Vec<String> {
        let under = |name: String, plan: &Plan| {
            let mut lines = vec![name];
            lines.extend(plan.explain(told).into_iter().map(|line| format!("  {line}")));
            lines
        };
        let mut lines = match self {
            Action::Query(plan) | Action::Point(PointPlan { plan, .. }) => plan.explain(told),
            Action::Locking(plan) => under("Lock rows".into(), &plan.source),
            Action::Insert { plan, .. } => under(format!("Insert into {}", plan.table.name), &plan.source),
            Action::Change(plan) if plan.is_delete => under(format!("Delete from {}", plan.table.name), &plan.source),
            Action::Change(plan) => under(format!("Update {}", plan.table.name), &plan.source),
            Action::Merge(plan) => under(format!("Merge into {}", plan.table.name), &plan.source),
            Action::CopyFrom(plan) => under(format!("Copy into {}", plan.insert.table.name), &plan.insert.source),
            Action::CopyTo(plan) => under("Copy".into(), &plan.source),
        };
        if let Some(references) = self.references() {
            lines.extend(references.explain());
        }
        lines
    }
}

impl Planned {
    pub(crate) fn new(syntax: &Syntax, mut binder: Binder<'_>, types: &ParamTypes) -> SqlResult<Planned> {
        let (action, outputs, tag) = match syntax {
            Syntax::Sql(node) => Planned::action(node, &mut binder)?,
            Syntax::Copy(copy) => (Planned::copy(copy, &mut binder)?, Vec::new(), "COPY"),
            Syntax::Cursor(_) | Syntax::Utility(_) | Syntax::Sequence(_) => {
                return Err(SqlError::new("XX000", "a statement that is not planned"));
            }
        };
        let subplans: Arc<[Plan]> = std::mem::take(&mut binder.subplans).into();
        let changes = std::mem::take(&mut binder.changes);
        let order = if changes.is_empty() { Vec::new() } else { crate::bind::order(&changes, &action, &subplans)? };
        Ok(Planned {
            action,
            changes,
            order,
            outputs: outputs.into(),
            subplans,
            system: binder.system,
            params: types.all(),
            chosen_scales: types.of_chosen_scale(),
            tag,
        })
    }

    fn copy(copy: &CopyStatement, binder: &mut Binder<'_>) -> SqlResult<Action> {
        match copy.direction {
            Direction::From => binder.copy_from(copy).map(Box::new).map(Action::CopyFrom),
            Direction::To => binder.copy_to(copy).map(Action::CopyTo),
        }
    }

    /// What is done, what comes out, and the tag.
    pub(crate) fn action(node: &Node, binder: &mut Binder<'_>) -> SqlResult<(Action, Vec<Output>, &'static str)> {
        let returned = |returning: &Option<crate::bind::change::Returning>| {
            returning.as_ref().map_or_else(Vec::new, |returning| returning.outputs.clone())
        };
        if let Node::Query(query) = node
            && let SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) | SetExpr::Merge(change) = &*query.body
        {
            // WITH stands before a change of rows, and nothing behind it: its queries are seen everywhere in that.
            binder.with_queries(query.with.as_ref(), true)?;
            return Planned::action(change, binder);
        }
        Ok(match node {
            Node::Query(query) if query.locks.is_empty() => {
                // The parts of WITH that change rows are those of the statement.
                let mut own;
                let query = match &query.with {
                    Some(with) if binder.is_whole() => {
                        binder.with_queries(Some(with), true)?;
                        own = query.clone();
                        own.with = None;
                        &own
                    }
                    _ => query,
                };
                let planned = binder.query(query)?;
                let action = match binder.subplans.is_empty() && binder.changes.is_empty() {
                    true => PointPlan::of(planned.plan).map_or_else(Action::Query, Action::Point),
                    false => Action::Query(planned.plan),
                };
                (action, planned.outputs, "SELECT")
            }
            Node::Query(query) => {
                let (locking, outputs) = binder.locking_query(query)?;
                (Action::Locking(locking), outputs, "SELECT")
            }
            Node::Insert(insert) => {
                let plan = binder.insert(insert)?;
                let outputs = returned(&plan.returning);
                let direct = if binder.subplans.is_empty() && binder.system.is_empty() && binder.changes.is_empty() {
                    DirectInsert::of(&plan)
                } else {
                    None
                };
                (Action::Insert { plan, direct }, outputs, "INSERT 0")
            }
            Node::Update(update) => {
                let plan = binder.update(update)?;
                let outputs = returned(&plan.returning);
                (Action::Change(plan), outputs, "UPDATE")
            }
            Node::Delete(delete) => {
                let plan = binder.delete(delete)?;
                let outputs = returned(&plan.returning);
                (Action::Change(plan), outputs, "DELETE")
            }
            Node::Merge(merge) => {
                let plan = binder.merge(merge)?;
                let outputs = returned(&plan.returning);
                (Action::Merge(plan), outputs, "MERGE")
            }
            other => return Err(SqlError::unsupported(format!("{other}"))),
        })
    }

    /// Does it change rows?
    pub(crate) fn changes_rows(&self) -> bool {
        !self.changes.is_empty()
            || matches!(self.action, Action::Insert { .. } | Action::Change(_) | Action::Merge(_) | Action::CopyFrom(_))
    }

    /// What is done, with all parts of WITH that change rows.
    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.changes.iter().map(|change| &change.action).chain([&self.action])
    }

    /// Refuses parameters, of which the statement can have none.
    pub(crate) fn refuse_params(&self) -> SqlResult<()> {
        if self.params.is_empty() { Ok(()) } else { Err(SqlError::new("42P02", "there is no parameter $1: COPY has none")) }
    }

    /// Tables whose definitions it relies on while it changes rows; the first part of one stands for all of them.
    pub(crate) fn kept_tables(&self) -> impl Iterator<Item = &pagefold_engine::table_space::Table> {
        let own = self.actions().filter_map(Action::table);
        let others = self.actions().filter_map(Action::references).flat_map(|references| &references.tables).map(|node| &node.table);
        own.chain(others).map(|table| &*table.first().table)
    }

    /// The types of its parameters.
    pub(crate) fn param_types(&self) -> &[DataType] {
        &self.params
    }

    /// Values of parameters, of the types that the statement has given them: mostly those that are given.
    pub(crate) fn params<'v>(&self, given: &'v [Value]) -> SqlResult<Cow<'v, [Value]>> {
        match self.chosen_scales.is_empty()
            && given.len() == self.params.len()
            && given.iter().zip(&self.params).all(|(value, data_type)| value.as_ref().check(data_type, "").is_ok())
        {
            true => Ok(Cow::Borrowed(given)),
            false => fit_params(given, &self.params, &self.chosen_scales).map(Cow::Owned),
        }
    }

    /// `told.observed`: what was seen of it, when it has run.
    pub(crate) fn explain(&self, told: Told<'_>) -> Vec<String> {
        // Only queries are run by batches.
        let told = match self.changes.is_empty() && matches!(self.action, Action::Query(_) | Action::CopyTo(_)) {
            true => told,
            false => Told { chooser: None, ..told },
        };
        let mut lines = self.action.explain(told);
        for change in &self.changes {
            lines.push("With".into());
            lines.extend(change.action.explain(told).into_iter().map(|line| format!("  {line}")));
        }
        // One that has become a join is empty.
        for (number, plan) in self.subplans.iter().enumerate().filter(|(_, plan)| !plan.is_empty()) {
            lines.push(format!("Subquery {}", number + 1));
            lines.extend(plan.explain(told).into_iter().map(|line| format!("  {line}")));
        }
        lines
    }
}

/// `chosen`: those whose scale the statement does not say.
pub(crate) fn fit_params(given: &[Value], types: &[DataType], chosen: &[usize]) -> SqlResult<Vec<Value>> {
    if given.len() < types.len() {
        return Err(SqlError::new("08P01", format!("the statement has {} parameters, {} values were given", types.len(), given.len())));
    }
    let fitted = given.iter().zip(types).enumerate().map(|(at, (value, data_type))| fit(value, data_type, chosen.contains(&at), at));
    fitted.collect()
}

/// A value as its parameter's type has it: a whole number also for decimal and floating-point ones, a text for whatever can be read from it.
fn fit(value: &Value, data_type: &DataType, has_chosen_scale: bool, at: usize) -> SqlResult<Value> {
    let wrong = || SqlError::new("22023", format!("parameter ${} is {data_type}: {} is none", at + 1, value.as_ref().kind()));
    let read = |written: &str| text::parse(written, data_type).map_err(|e| SqlError::new("22P02", format!("parameter ${}: {e}", at + 1)));
    let fitted = match (value, data_type) {
        (Value::Null, _) => return Ok(Value::Null),
        // A number without a scale: nothing in the statement says which one it has.
        (Value::Decimal(_), _) if has_chosen_scale => {
            let error =
                SqlError::new("22023", format!("parameter ${} is a decimal number whose scale the statement does not tell", at + 1));
            return Err(error.with_hint("Cast it (CAST(? AS DECIMAL(12,2))), or give it as a text."));
        }
        (Value::Text(written), data_type) if !data_type.is_text() => return read(written),
        (Value::Int(number), DataType::Decimal { .. }) => return read(&number.to_string()),
        (Value::Double(number), DataType::Decimal { .. }) => return read(&number.to_string()),
        (Value::Int(number), DataType::Double) => Value::Double(*number as f64),
        (Value::Int(number), DataType::Real) => Value::Real(*number as f32),
        (Value::Real(number), DataType::Double) => Value::Double((*number).into()),
        (Value::Double(number), DataType::Real) => Value::Real(*number as f32),
        (Value::Int(number), data_type) if data_type.is_text() => Value::Text(number.to_string()),
        (Value::Double(number), data_type) if data_type.is_text() => Value::Text(number.to_string()),
        (Value::Boolean(truth), data_type) if data_type.is_text() => Value::Text(truth.to_string()),
        (other, _) => other.clone(),
    };
    match fitted.as_ref().check(data_type, "") {
        Ok(()) => Ok(fitted),
        Err(_) if matches!(fitted, Value::Int(_)) && data_type.int_range().is_some() => {
            Err(SqlError::out_of_range(crate::expression::type_name(data_type)))
        }
        Err(_) => Err(wrong()),
    }
}

/// What is kept of statements, by their texts. Where there is no room for another one all go at once: which of them are used most is not counted.
#[derive(Debug)]
pub(crate) struct ByText<T> {
    kept: HashMap<Arc<str>, T>,
    /// Of the texts.
    bytes: usize,
}

impl<T> Default for ByText<T> {
    fn default() -> ByText<T> {
        ByText { kept: HashMap::new(), bytes: 0 }
    }
}

impl<T> ByText<T> {
    pub(crate) fn get(&self, text: &str) -> Option<&T> {
        self.kept.get(text)
    }

    /// Keeps this, unless the text is too long.
    pub(crate) fn put(&mut self, text: &Arc<str>, of_it: T) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.kept.len() >= KEPT_MAX || self.bytes + text.len() > TEXTS_BYTES_MAX {
            self.clear();
        }
        if self.kept.insert(Arc::clone(text), of_it).is_none() {
            self.bytes += text.len();
        }
    }

    pub(crate) fn remove(&mut self, text: &str) {
        if self.kept.remove(text).is_some() {
            self.bytes -= text.len();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }
}

/// Plans by the texts of their statements.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    kept: ByText<Kept>,
    version: (u64, usize),
}

#[derive(Debug)]
struct Kept {
    statement: Statement,
    planned: Arc<Planned>,
}

impl Plans {
    /// A plan that was made at this version.
    pub(crate) fn get(&mut self, statement: &Statement, version: (u64, usize)) -> Option<Arc<Planned>> {
        if self.version != version {
            self.forget_all();
            self.version = version;
        }
        let kept = self.kept.get(statement.text())?;
        (kept.statement.types() == statement.types()).then(|| Arc::clone(&kept.planned))
    }

    pub(crate) fn put(&mut self, statement: &Statement, version: (u64, usize), planned: Arc<Planned>) {
        if self.version != version {
            self.forget_all();
            self.version = version;
        }
        self.kept.put(statement.shared_text(), Kept { statement: statement.clone(), planned });
    }

    /// Files of tables that are gone stay as long as a plan has them.
    pub(crate) fn forget_all(&mut self) {
        self.kept.clear();
    }

    pub(crate) fn forget(&mut self, text: &str) {
        self.kept.remove(text);
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn what_is_kept_by_texts_is_bounded() {
        let mut kept = ByText::default();
        let long: Arc<str> = "x".repeat(TEXT_BYTES_MAX + 1).into();
        kept.put(&long, 0);
        assert!(kept.get(&long).is_none());
        for round in 0..3 * KEPT_MAX {
            let text: Arc<str> = format!("{round}{}", "y".repeat(10_000)).into();
            kept.put(&text, round);
            kept.put(&text, round);
            assert_eq!(kept.get(&text), Some(&round));
            assert!(kept.bytes <= TEXTS_BYTES_MAX && kept.kept.len() <= KEPT_MAX);
            assert_eq!(kept.bytes, kept.kept.keys().map(|text| text.len()).sum::<usize>());
            if round % 7 == 0 {
                kept.remove(&text);
                assert_eq!(kept.get(&text), None);
            }
        }
        for number in 0..3 * KEPT_MAX {
            kept.put(&format!("{number}").into(), number);
            assert!(kept.kept.len() <= KEPT_MAX);
        }
    }
}
