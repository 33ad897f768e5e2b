//! Statements with a plan: how they come by it, and run.
//!
//! Invariants:
//! - a plan is used only with the version of the catalog that it was made with;
//! - a statement that fails within a transaction is taken back before its error is told.

use super::{Done, Ran, Session, Statement, is_planned};
use crate::analytics::{Chooser, Mode, When};
use crate::bind::Binder;
use crate::execute::{Counted, Execution, Limits, Observed, Run, change, direct};
use crate::expression::{Env, ParamTypes, Subqueries};
use crate::plan::Told;
use crate::planned::{Action, Planned, PointPlan};
use crate::sequences::{Drawn, SequenceCall, SequenceRef};
use crate::settings::text_of;
use crate::{Database, SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation;
use pagefold_io::Clock;
use pagefold_types::{DataType, Value, ValueRef};
use sqlparser::ast::{self, Statement as Node};
use std::sync::Arc;

/// How often a statement is planned anew because tables were written anew meanwhile.
pub(super) const PLANS_MAX: u32 = 100;

impl Session {
    /// Plans and runs a query or a change of rows.
    pub(super) fn plan_and_run(&mut self, statement: &Statement, params: &[Value]) -> SqlResult<Ran> {
        let limits = self.limits();
        let mut tries = 0;
        loop {
            tries += 1;
            self.begin();
            match self.run_once(statement, params, &limits, None) {
                // A table was written anew between the plan and its use.
                Err(error) if is_stale(&error) && tries < PLANS_MAX && self.can_follow() => self.forget(&statement.text),
                // A plan of before the snapshot: from here on the transaction has its own.
                Err(error) if is_stale(&error) && self.open.as_ref().is_some_and(|open| open.finds_newest) && !self.has_failed() => {
                    if let Some(open) = &mut self.open {
                        open.finds_newest = false;
                    }
                }
                done => return done,
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.transaction.failure().is_some())
    }

    pub(super) fn can_follow(&self) -> bool {
        let is_read_committed = self.open.as_ref().is_some_and(|open| open.transaction.isolation() == Isolation::ReadCommitted);
        is_read_committed && !self.has_failed()
    }

    pub(super) fn forget(&mut self, text: &str) {
        self.plans.forget(text);
        if let Some(open) = &mut self.open {
            open.plans.forget(text);
        }
    }

    /// `observed`: somebody wants to see how the plan runs, so nothing goes past it.
    pub(super) fn run_once(
        &mut self,
        statement: &Statement,
        params: &[Value],
        limits: &Limits,
        observed: Option<&Arc<Observed>>,
    ) -> SqlResult<Ran> {
        let planned = self.kept(statement)?;
        let params = planned.params(params)?;
        let memory = self.settings.work_mem;
        let Some(open) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
        open.has_run = true;
        if planned.changes_rows() {
            open.settle_cursors(limits)?;
        }
        if let (Action::Point(point), None) = (&planned.action, observed) {
            let outside = Outside(&self.database, &self.drawn, self.clock.as_ref());
            let env = Env { row: &[], outer: &[], params: &params, now: open.now(self.statement_began), subqueries: &outside };
            if let Some(row) = crate::execute::point(point, &mut open.transaction, &env)? {
                return Ok(Ran::Row { planned, row });
            }
        }
        if observed.is_none()
            && let Action::Insert { plan, direct: Some(direct) } = &planned.action
            && open.transaction.isolation() == Isolation::ReadCommitted
        {
            limits.check()?;
            let outside = Outside(&self.database, &self.drawn, self.clock.as_ref());
            let env = Env { row: &[], outer: &[], params: &params, now: open.now(self.statement_began), subqueries: &outside };
            direct::insert(direct, plan, &mut open.transaction, &env)?;
            return Ok(Ran::Changed { planned, changed: change::Changed { rows: 1, ..change::Changed::default() } });
        }
        let savepoint = open.transaction.savepoint();
        loop {
            limits.check()?;
            let view = open.transaction.read_view()?;
            let run =
                Run { database: &self.database, now: open.now(self.statement_began), memory, limits: limits.clone(), drawn: &self.drawn };
            let mut execution = Execution::new(&run, view, params.to_vec(), Arc::clone(&planned.subplans));
            execution.observed = observed.cloned();
            // What changes rows sees them while it does; a transaction that is SERIALIZABLE notes what it reads where that is.
            if planned.changes.is_empty() && matches!(planned.action, Action::Query(_)) && self.database.analytics().is_some() {
                execution.analytics = self.settings.analytics;
            }
            execution.look_at(&planned.system, &mut open.transaction)?;
            let done = match &planned.action {
                _ if !planned.changes.is_empty() => super::parts::run(&planned, &mut open.transaction, &execution),
                Action::Query(plan) | Action::Point(PointPlan { plan, .. }) => {
                    let operator = crate::execute::open(plan, &execution.context())?;
                    return Ok(Ran::Rows { planned, operator, execution: Box::new(execution) });
                }
                action => super::parts::change(action, &mut open.transaction, &execution),
            };
            match done {
                Ok(change::Outcome::Done(changed)) => {
                    let spilled = execution.spill.written();
                    return Ok(Ran::Changed { planned, changed: change::Changed { spilled, ..changed } });
                }
                Ok(change::Outcome::Again) => open.transaction.roll_back_to(savepoint)?,
                Err(error) => {
                    if open.transaction.failure().is_none() {
                        open.transaction.roll_back_to(savepoint)?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// The plan of a statement, and nobody alters the tables whose rows it changes, nor those of their foreign keys, before the transaction ends: what was altered until that was so is in the plan.
    pub(super) fn kept(&mut self, statement: &Statement) -> SqlResult<Arc<Planned>> {
        loop {
            let Some(open) = &self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
            let version = open.transaction.definitions_version();
            let planned = self.planned(statement)?;
            let Some(open) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
            // Also where no row would change.
            if open.options.read_only && planned.changes_rows() {
                let what = planned.tag.trim_end_matches(" 0");
                return Err(SqlError::new("25006", format!("cannot execute {what} in a read-only transaction")));
            }
            let mut is_new = false;
            for table in planned.kept_tables() {
                is_new |= open.transaction.keep_definition(table)?;
            }
            if !is_new || open.transaction.definitions_version() == version {
                return Ok(planned);
            }
        }
    }

    /// The plan of a statement: a known one, if the catalog is as it was.
    pub(super) fn planned(&mut self, statement: &Statement) -> SqlResult<Arc<Planned>> {
        let Some(open) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
        let is_shared = open.finds_newest && open.transaction.finds_newest_definitions()?;
        let version = open.transaction.definitions_version();
        let plans = if is_shared { &mut self.plans } else { &mut open.plans };
        if let Some(planned) = plans.get(statement, version) {
            return Ok(planned);
        }
        let types = ParamTypes::default();
        *types.0.borrow_mut() = statement.types.iter().map(|data_type| Some(*data_type)).collect();
        let binder = Binder::new(&mut open.transaction, &types);
        let planned = Arc::new(Planned::new(&statement.syntax, binder, &types)?);
        plans.put(statement, version, Arc::clone(&planned));
        Ok(planned)
    }

    pub(super) fn prepared(
        &mut self,
        name: &ast::ObjectName,
        arguments: &[ast::Expr],
        params: &[Value],
    ) -> SqlResult<(Statement, Vec<Value>)> {
        let wanted = crate::parse::object_name(name)?;
        let Some(statement) = self.prepared.get(&wanted).cloned() else {
            return Err(SqlError::new("26000", format!("prepared statement \"{wanted}\" does not exist")));
        };
        self.begin();
        let planned = self.planned(&statement)?;
        let expected = planned.param_types().len();
        if arguments.len() != expected {
            let error = SqlError::syntax(format!("wrong number of parameters for prepared statement \"{wanted}\""));
            return Err(error.with_detail(format!("Expected {expected} parameters but got {}.", arguments.len())));
        }
        let mut types = planned.param_types().to_vec();
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, data_type) in arguments.iter().zip(&mut types) {
            values.push(self.argument(argument, data_type, params)?);
        }
        let statement = if types == planned.param_types() { statement } else { statement.with_types(&types) };
        Ok((statement, values))
    }

    /// The value of an expression without columns, for a parameter of this type. A decimal number keeps the digits that it has, whatever the parameter has been compared with: it is the parameter's type that becomes another.
    fn argument(&mut self, expr: &ast::Expr, to: &mut DataType, params: &[Value]) -> SqlResult<Value> {
        let limits = self.limits();
        let memory = self.settings.work_mem;
        self.begin();
        let Some(open) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
        let types = ParamTypes::default();
        let mut binder = Binder::new(&mut open.transaction, &types);
        let typed = binder.expression(expr)?;
        let typed = crate::expression::make::argument(typed, to, &types)?;
        let (expr, _) = crate::bind::settled(typed, &types)?;
        let (subplans, system): (Arc<[crate::plan::Plan]>, _) = (binder.subplans.into(), binder.system);
        let params = crate::planned::fit_params(params, &types.all(), &types.of_chosen_scale())?;
        let run = Run { database: &self.database, now: open.now(self.statement_began), memory, limits, drawn: &self.drawn };
        let mut execution = Execution::new(&run, open.transaction.read_view()?, params, subplans);
        execution.look_at(&system, &mut open.transaction)?;
        execution.context().evaluate(&expr, &[])
    }

    pub(super) fn explain(&mut self, node: &Node, params: &[Value]) -> SqlResult<Done> {
        let Node::Explain { analyze, statement: inner, format: None, options, estimate: false, .. } = node else {
            return Err(SqlError::unsupported("this form of EXPLAIN"));
        };
        let analyze = *analyze || explain_options(options.as_deref().unwrap_or_default())?;
        if !is_planned(inner) {
            return Err(SqlError::unsupported("EXPLAIN of this statement"));
        }
        self.begin();
        let lines = self.explained(&Statement::of((**inner).clone(), &[]), params, analyze)?;
        self.end_statement()?;
        Ok(Done::lines("EXPLAIN", "QUERY PLAN", lines))
    }

    pub(super) fn explained(&mut self, inner: &Statement, params: &[Value], analyze: bool) -> SqlResult<Vec<String>> {
        let planned = self.planned(inner)?;
        let when = if self.database.analytics().is_some() { self.settings.analytics } else { When::Off };
        let told = |planned: &Planned, observed: Option<&Observed>| {
            planned.explain(Told { observed, chooser: Some(Chooser::new(&planned.subplans, when, Mode::Told)) })
        };
        if !analyze {
            return Ok(told(&planned, None));
        }
        let limits = self.limits();
        let (observed, before) = (Arc::new(Observed::default()), Counted::of(self.database.engine()));
        let began = self.clock.monotonic();
        let (mut rows, mut spilled) = (0_u64, 0);
        // The plan that is run, should it be another one by then.
        let ran = match self.run_once(inner, params, &limits, Some(&observed))? {
            Ran::Rows { planned, mut operator, execution } => {
                let (context, mut row) = (execution.context(), Vec::new());
                while operator.fill(&context, &mut row)? {
                    rows += 1;
                }
                spilled = execution.spill.written();
                drop(operator);
                planned
            }
            Ran::Row { planned, row } => {
                rows = row.is_some().into();
                planned
            }
            Ran::Changed { planned, changed } => {
                (rows, spilled) = (changed.rows, changed.spilled);
                planned
            }
        };
        let elapsed = self.clock.monotonic().saturating_sub(began);
        let mut lines = told(&ran, Some(&observed));
        lines.extend(Counted::of(self.database.engine()).lines_since(&before));
        lines.push(format!("Rows: {rows}, time: {:.3} ms", elapsed.as_secs_f64() * 1000.0));
        if spilled > 0 {
            lines.push(format!("Written to a scratch file: {spilled} bytes"));
        }
        Ok(lines)
    }
}

/// The options of EXPLAIN; is ANALYZE among them? What is shown is the same with all others.
fn explain_options(options: &[ast::UtilityOption]) -> SqlResult<bool> {
    const OTHERS: [&str; 8] = ["verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "generic_plan"];
    let mut analyze = false;
    for option in options {
        let name = option.name.value.to_lowercase();
        let value = option.arg.as_ref().map(|value| text_of(value).to_lowercase());
        if name == "format" {
            match value.as_deref() {
                Some("text") => continue,
                _ => return Err(SqlError::unsupported("EXPLAIN in another format than text")),
            }
        }
        let is_analyze = matches!(name.as_str(), "analyze" | "analyse");
        if !is_analyze && !OTHERS.contains(&name.as_str()) {
            return Err(SqlError::syntax(format!("unrecognized EXPLAIN option \"{name}\"")));
        }
        let is_on = match value.as_deref() {
            None | Some("true" | "on" | "1") => true,
            Some("false" | "off" | "0") => false,
            Some(_) => return Err(SqlError::syntax(format!("{name} requires a Boolean value"))),
        };
        if is_analyze {
            analyze = is_on;
        }
    }
    Ok(analyze)
}

/// What expressions ask for that stand in no plan with subqueries.
struct Outside<'d>(&'d Database, &'d Drawn, &'d dyn Clock);

impl Subqueries for Outside<'_> {
    fn number(&self, call: &SequenceCall) -> SqlResult<i64> {
        self.0.number(call, self.1)
    }

    fn set_number(&self, sequence: &SequenceRef, number: i64, is_given: bool) -> SqlResult<()> {
        self.0.set_number(sequence, number, is_given, self.1)
    }

    fn clock(&self) -> SqlResult<i64> {
        Ok(super::unix_micros(self.2))
    }

    fn run(&self, _: usize, _: &[Value], _: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        Err(SqlError::new("XX000", "a subquery where there is none"))
    }

    fn is_among(&self, _: usize, _: &[ValueRef<'_>]) -> SqlResult<Option<bool>> {
        Err(SqlError::new("XX000", "a subquery where there is none"))
    }
}

pub(super) fn is_stale(error: &SqlError) -> bool {
    matches!(error.engine(), Some(Error::Stale { .. }))
}
