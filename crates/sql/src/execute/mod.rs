//! Plans that run: rows are pulled, one after the other.
//!
//! * `scan`: rows of a table
//! * `tests`: what the engine is asked, from tests and the values of the moment
//! * `look_up`, `hash_join`, `lateral`: joins by an index; by hashes, and of all pairs; with a query for each row
//! * `aggregate`: groups; `column_aggregate`: of a whole table, column by column
//! * `window`: window functions; `frame`: the rows that they look at; `running`: those that only look back
//! * `order`: sorting, limits; `set`: distinct rows, set operations
//! * `recursive`: queries that ask themselves; `kept`: rows of WITH that are kept
//! * `budget`: the memory of a statement; `spill`: rows that do not fit it
//! * `observed`: what EXPLAIN ANALYZE sees of a plan that runs
//! * `key`: values as bytes that are equal when they are
//! * `direct`: INSERT of one row; `change`: rows that are inserted, changed, deleted; `merge`: all of that in one statement; `copy`: rows that are read and written; `foreign_key`: what that means for rows of other tables
//!
//! Invariants:
//! - what runs owns all that it needs, so that a program may pull as slowly as it likes;
//! - memory that grows with rows is charged to the statement ([`Budget`]); what does not fit is written to a file (`spill`), or the statement fails before it takes more than it may;
//! - each loop over rows asks from time to time whether the statement was cancelled, or its time is over.

mod aggregate;
mod budget;
pub(crate) mod change;
mod column_aggregate;
pub(crate) mod copy;
pub(crate) mod copy_columns;
pub(crate) mod direct;
pub(crate) mod foreign_key;
mod frame;
mod gathered;
mod hash_join;
mod kept;
mod key;
mod known;
mod lateral;
mod look_up;
pub(crate) mod merge;
mod observed;
mod order;
mod recursive;
mod repeated;
mod running;
mod scan;
mod set;
pub(crate) mod spill;
mod tests;
mod window;

pub(crate) use budget::{Budget, bytes_of};
pub(crate) use column_aggregate::count as count_rows;
pub(crate) use key::encode as encode_key;
pub(crate) use observed::{Counted, Observed};
pub(crate) use order::bounds;
pub(crate) use scan::point;
pub(crate) use tests::ask;

use crate::Database;
use crate::analytics::{Analytics, When};
use crate::expression::{Env, Expr, Now, Subqueries};
use crate::plan::{Plan, ScanPlan};
use crate::sequences::{Drawn, SequenceCall, SequenceRef};
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use known::Known;
use pagefold_engine::database::{ReadView, Transaction};
use pagefold_io::Clock;
use pagefold_types::{Value, ValueRef};
use spill::Spill;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Rows between two looks at the clock.
const ROWS_PER_LOOK: u32 = 256;

/// A row.
pub(crate) type Tuple = Vec<Value>;

/// What gives rows. It is kept by sessions, which go from thread to thread.
pub(crate) trait Operator: Send {
    /// Puts the next row in the place of another one, whose memory it uses again. False at the end: the row means nothing then. After an error nothing more is asked.
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool>;

    /// The next row, to be kept.
    fn next(&mut self, context: &Context<'_>) -> SqlResult<Option<Tuple>> {
        let mut row = Tuple::new();
        Ok(self.fill(context, &mut row)?.then_some(row))
    }
}

/// A row that is there already, as [`Operator::fill`] gives it.
pub(crate) fn given(from: Option<Tuple>, row: &mut Tuple) -> bool {
    match from {
        Some(given) => {
            *row = given;
            true
        }
        None => false,
    }
}

/// A statement that runs.
pub(crate) struct Execution {
    pub(crate) database: Database,
    pub(crate) view: ReadView,
    pub(crate) params: Vec<Value>,
    pub(crate) now: Now,
    pub(crate) subplans: Arc<[Plan]>,
    pub(crate) budget: Budget,
    pub(crate) limits: Limits,
    /// Numbers of sequences that the session was given.
    drawn: Arc<Drawn>,
    /// Rows of the tables of the database's own that the statement names.
    system: Vec<(&'static SystemTable, Vec<Tuple>)>,
    /// Where rows go that do not fit.
    pub(crate) spill: Arc<Spill>,
    known: Known,
    gathered: gathered::GatheredRows,
    kept: kept::KeptRows,
    repeated: repeated::Repeated,
    steps: recursive::Steps,
    looks: Cell<u32>,
    /// Of EXPLAIN ANALYZE.
    pub(crate) observed: Option<Arc<Observed>>,
    /// When its parts are run by batches, where they can be.
    pub(crate) analytics: When,
    /// They are not now: whoever opens them wants few of their rows, or has no memory for more.
    by_rows: Cell<bool>,
    /// It was counted among those that were.
    is_counted: Cell<bool>,
}

/// What all statements of a session are run with.
#[derive(Debug)]
pub(crate) struct Run<'r> {
    pub(crate) database: &'r Database,
    pub(crate) now: Now,
    /// Bytes that a statement may take for rows that it keeps.
    pub(crate) memory: usize,
    pub(crate) limits: Limits,
    pub(crate) drawn: &'r Arc<Drawn>,
}

/// When a statement ends, done or not.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) clock: Arc<dyn Clock>,
    /// On the monotonic clock.
    pub(crate) deadline: Option<Duration>,
}

/// What an operator is run with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c> {
    pub(crate) execution: &'c Execution,
    /// The row around the subquery that it is of.
    pub(crate) outer: &'c [Value],
}

impl<'c> Context<'c> {
    pub(crate) fn env<'e>(&'e self, row: &'e [Value]) -> Env<'e>
    where
        'c: 'e,
    {
        Env { row, outer: self.outer, params: &self.execution.params, now: self.execution.now, subqueries: self.execution }
    }

    pub(crate) fn evaluate(&self, expr: &Expr, row: &[Value]) -> SqlResult<Value> {
        expr.evaluate(&self.env(row))
    }

    pub(crate) fn is_true(&self, expr: &Expr, row: &[Value]) -> SqlResult<bool> {
        expr.is_true(&self.env(row))
    }
}

impl Execution {
    pub(crate) fn new(run: &Run<'_>, view: ReadView, params: Vec<Value>, subplans: Arc<[Plan]>) -> Execution {
        let (budget, known, steps, looks) = (Budget::new(run.memory), Known::default(), recursive::Steps::default(), Cell::new(0));
        let (database, now, limits, drawn) = (run.database.clone(), run.now, run.limits.clone(), Arc::clone(run.drawn));
        Execution {
            database,
            view,
            params,
            now,
            subplans,
            budget,
            limits,
            drawn,
            system: Vec::new(),
            spill: Arc::default(),
            known,
            gathered: gathered::GatheredRows::default(),
            kept: kept::KeptRows::default(),
            repeated: repeated::Repeated::default(),
            steps,
            looks,
            observed: None,
            analytics: When::Off,
            by_rows: Cell::new(false),
            is_counted: Cell::new(false),
        }
    }

    /// Who runs plans by batches, and when.
    pub(crate) fn analytics(&self) -> Option<(&Arc<dyn Analytics>, When)> {
        let analytics = self.database.analytics()?;
        (self.analytics != When::Off && !self.by_rows.get()).then_some((analytics, self.analytics))
    }

    /// Something of it is run by batches.
    pub(crate) fn count_analytics(&self) {
        if !self.is_counted.replace(true) {
            self.database.count_analytics();
        }
    }

    /// Looks at what tables of the database's own say now.
    pub(crate) fn look_at(&mut self, tables: &[&'static SystemTable], transaction: &mut Transaction<'static>) -> SqlResult<()> {
        let clock = self.limits.clock.monotonic();
        let rows = |table: &&'static SystemTable| Ok((*table, table.rows(&self.database, transaction, clock)?));
        self.system = tables.iter().map(rows).collect::<SqlResult<_>>()?;
        Ok(())
    }

    fn rows_of(&self, table: &'static SystemTable) -> SqlResult<Vec<Tuple>> {
        let found = self.system.iter().find(|(own, _)| *own == table).map(|(_, rows)| rows.clone());
        found.ok_or_else(|| SqlError::new("XX000", format!("nobody has looked what {} says", table.name())))
    }

    /// A table of a join was looked at (`begun`), or has given rows.
    #[inline]
    fn saw(&self, scan: &Arc<ScanPlan>, rows: u64, begun: bool) {
        if let Some(observed) = &self.observed {
            observed.gave(Arc::as_ptr(scan), rows, begun);
        }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context { execution: self, outer: &[] }
    }

    /// Has it to end?
    pub(crate) fn look(&self) -> SqlResult<()> {
        let looks = self.looks.get();
        self.looks.set(looks.wrapping_add(1));
        if !looks.is_multiple_of(ROWS_PER_LOOK) {
            return Ok(());
        }
        self.limits.check()
    }
}

impl Limits {
    pub(crate) fn check(&self) -> SqlResult<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(SqlError::new("57014", "canceling statement due to user request"));
        }
        match self.deadline {
            Some(deadline) if self.clock.monotonic() > deadline => {
                Err(SqlError::new("57014", "canceling statement due to statement timeout"))
            }
            _ => Ok(()),
        }
    }
}

impl Subqueries for Execution {
    fn number(&self, call: &SequenceCall) -> SqlResult<i64> {
        self.database.number(call, &self.drawn)
    }

    fn set_number(&self, sequence: &SequenceRef, number: i64, is_given: bool) -> SqlResult<()> {
        self.database.set_number(sequence, number, is_given, &self.drawn)
    }

    fn clock(&self) -> SqlResult<i64> {
        Ok(crate::session::unix_micros(self.limits.clock.as_ref()))
    }

    fn run(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        self.given_back(|| self.visit_rows(number, outer, visit))
    }

    fn is_among(&self, number: usize, of: &[ValueRef<'_>]) -> SqlResult<Option<bool>> {
        self.given_back(|| self.is_among_known(number, of))
    }
}

impl Execution {
    /// Runs a subquery. What it kept while it ran is gone then; only what is known from now on stays.
    fn given_back<R>(&self, run: impl FnOnce() -> SqlResult<R>) -> SqlResult<R> {
        let (before, known) = (self.budget.clone(), self.known.bytes());
        let done = run();
        self.budget.go_back_to(&before, self.known.bytes() - known);
        done
    }
}

/// Opens a plan.
#[inline]
pub(crate) fn open(plan: &Plan, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    match &context.execution.observed {
        None => open_node(plan, context),
        Some(observed) => observed::open(plan, context, observed),
    }
}

/// The same of a plan that is not watched itself. It is called for each plan within, so what single ones need is not on its own stack.
fn open_node(plan: &Plan, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    if context.execution.analytics != When::Off
        && context.outer.is_empty()
        && let Some(batches) = crate::analytics::open(plan, context)?
    {
        return Ok(batches);
    }
    if !context.outer.is_empty() {
        // Within a subquery that needs the row around it.
        match plan {
            Plan::Aggregate(own) => {
                return repeated::open_rows(plan, Arc::as_ptr(own).addr(), context, || aggregate::open_aggregate(own, context));
            }
            Plan::Sort(own) => {
                return repeated::open_rows(plan, Arc::as_ptr(own).addr(), context, || boxed(|| order::Sort::open(own, context)));
            }
            _ => {}
        }
    }
    match plan {
        Plan::Values(rows) => boxed(|| Ok(Rows { rows: Arc::clone(rows), at: 0 })),
        Plan::Series(bounds) => boxed(|| Series::open(bounds, context)),
        Plan::System(table) => boxed(|| Ok(Kept { rows: context.execution.rows_of(table)?.into_iter() })),
        Plan::Scan(scan) => boxed(|| scan::Scan::open(scan, context, &[])),
        Plan::Filter(plan) => boxed(|| Ok(Filter { input: open(&plan.input, context)?, plan: Arc::clone(plan) })),
        Plan::Project(plan) => boxed(|| Ok(Project { input: open(&plan.input, context)?, from: Tuple::new(), plan: Arc::clone(plan) })),
        Plan::Within(plan) => boxed(|| {
            let outer = plan.outer.iter().map(|expr| context.evaluate(expr, &[])).collect::<SqlResult<Vec<Value>>>()?;
            let input = open(&plan.input, &Context { execution: context.execution, outer: &outer })?;
            Ok(Within { outer, input })
        }),
        Plan::LookUp(plan) => boxed(|| look_up::LookUp::open(plan, context)),
        Plan::Hash(plan) => boxed(|| hash_join::Hash::open(plan, context)),
        Plan::Lateral(plan) => boxed(|| lateral::Lateral::open(plan, context)),
        Plan::Expand(plan) => boxed(|| aggregate::Expand::open(plan, context)),
        Plan::Aggregate(plan) => aggregate::open_aggregate(plan, context),
        Plan::Window(plan) => boxed(|| window::Windows::open(plan, context)),
        Plan::Count(plan) => boxed(|| Ok(Kept { rows: vec![column_aggregate::count(plan, context)?].into_iter() })),
        Plan::Distinct(input) => boxed(|| set::Distinct::open(input, context)),
        Plan::FirstOfEach(plan) => boxed(|| set::FirstOfEach::open(plan, context)),
        Plan::Sort(plan) => boxed(|| order::Sort::open(plan, context)),
        Plan::Cut(plan) => boxed(|| Ok(Cut { input: open(&plan.input, context)?, columns: plan.columns })),
        Plan::Limit(plan) => boxed(|| order::LimitRows::open(plan, context)),
        Plan::Set(plan) => set::open_set(plan, context),
        Plan::Recursive(plan) => boxed(|| recursive::Recursive::open(plan, context)),
        Plan::Shared(plan) => kept::open_shared(plan, context),
        Plan::Kept(number) => boxed(|| kept::Again::open(*number, context)),
        Plan::Step(number) => boxed(|| recursive::Step::open(*number, context)),
    }
}

/// Opens a plan whose rows come one by one from here on, as those of the whole statement do.
pub(crate) fn open_by_rows(plan: &Plan, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    context.execution.by_rows.set(true);
    open_node(plan, context)
}

/// Opens a plan of which perhaps few rows are wanted: no more of it than that is done.
fn open_for_few(plan: &Plan, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    if crate::analytics::ends_with_all(plan) {
        return open(plan, context);
    }
    let before = context.execution.by_rows.replace(true);
    let opened = open(plan, context);
    context.execution.by_rows.set(before);
    opened
}

#[inline(never)]
fn boxed<O: Operator + 'static>(open: impl FnOnce() -> SqlResult<O>) -> SqlResult<Box<dyn Operator>> {
    Ok(Box::new(open()?))
}

/// Puts the values of expressions in the place of a row.
fn evaluate_all(exprs: &[Expr], env: &Env<'_>, row: &mut Tuple) -> SqlResult<()> {
    row.clear();
    for expr in exprs {
        row.push(expr.evaluate(env)?);
    }
    Ok(())
}

struct Rows {
    rows: Arc<Vec<Vec<Expr>>>,
    at: usize,
}

impl Operator for Rows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let Some(exprs) = self.rows.get(self.at) else { return Ok(false) };
        self.at += 1;
        evaluate_all(exprs, &context.env(&[]), row)?;
        Ok(true)
    }
}

/// Rows that are there already.
pub(crate) struct Kept {
    pub(crate) rows: std::vec::IntoIter<Tuple>,
}

impl Operator for Kept {
    fn fill(&mut self, _: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        Ok(given(self.rows.next(), row))
    }
}

struct Series {
    next: Option<i64>,
    last: i64,
    step: i64,
}

impl Series {
    fn open(bounds: &[Expr], context: &Context<'_>) -> SqlResult<Series> {
        let mut numbers = [0, 0, 1];
        for (at, bound) in bounds.iter().enumerate() {
            match context.evaluate(bound, &[])? {
                Value::Int(number) => numbers[at] = number,
                _ => return Ok(Series { next: None, last: 0, step: 1 }),
            }
        }
        let [first, last, step] = numbers;
        if step == 0 {
            return Err(SqlError::new("22023", "step size cannot equal zero"));
        }
        let is_within = if step > 0 { first <= last } else { first >= last };
        Ok(Series { next: is_within.then_some(first), last, step })
    }
}

impl Operator for Series {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let Some(number) = self.next else { return Ok(false) };
        context.execution.look()?;
        let (last, step) = (self.last, self.step);
        self.next = number.checked_add(step).filter(|next| if step > 0 { *next <= last } else { *next >= last });
        row.clear();
        row.push(Value::Int(number));
        Ok(true)
    }
}

struct Filter {
    input: Box<dyn Operator>,
    plan: Arc<crate::plan::FilterPlan>,
}

impl Operator for Filter {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while self.input.fill(context, row)? {
            if context.is_true(&self.plan.condition, row)? {
                return Ok(true);
            }
            context.execution.look()?;
        }
        Ok(false)
    }
}

struct Project {
    input: Box<dyn Operator>,
    /// The row of the input.
    from: Tuple,
    plan: Arc<crate::plan::ProjectPlan>,
}

impl Operator for Project {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if !self.input.fill(context, &mut self.from)? {
            return Ok(false);
        }
        evaluate_all(&self.plan.exprs, &context.env(&self.from), row)?;
        Ok(true)
    }
}

struct Within {
    outer: Vec<Value>,
    input: Box<dyn Operator>,
}

impl Operator for Within {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        self.input.fill(&Context { execution: context.execution, outer: &self.outer }, row)
    }
}

struct Cut {
    input: Box<dyn Operator>,
    columns: usize,
}

impl Operator for Cut {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let is_there = self.input.fill(context, row)?;
        row.truncate(self.columns);
        Ok(is_there)
    }
}
