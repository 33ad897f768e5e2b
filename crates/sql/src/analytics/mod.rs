//! Queries that are run by batches: what such a query is, and who runs it.
//!
//! How it is done is not part of this crate: who opens the database gives it [`Analytics`]. A plan, or the part of one below what only rows one by one can do, is translated into a tree of
//! [`Node`]s when each of its nodes and expressions has the same meaning there; whatever has none is run by the row executor, as everything is without it.
//!
//! * `scalar`: expressions; `convert`: how they come from those of plans
//! * `scan`: rows of tables, as the statement sees them
//! * `aggregate`: what is computed of groups
//! * `translate`: plans; `join`: joins; `correlated`: subqueries that need the row around them, as joins
//! * `prune`: columns that nobody needs
//! * `choose`: what is run by batches; `run`: rows of it, one by one
//!
//! Invariants:
//! - a tree has no parameters, no subqueries and nothing volatile: what was left of these is a value in it;
//! - what a tree gives is what the row executor would give, in whatever order nothing asks for; an error is one that the row executor could meet, and which of several comes first is said nowhere;
//! - values are those of [`Value`], by their [`Kind`]: scales and lengths are part of operations, not of values.

mod aggregate;
mod choose;
mod convert;
mod correlated;
mod join;
mod prune;
mod run;
mod scalar;
mod scan;
mod translate;

pub use aggregate::{Aggregate, AggregateFunction};
pub use scalar::{Arithmetic, Direct, Kind, LikePattern, RowExpr, Scalar};
pub use scan::{PartScans, TableScan};

pub(crate) use choose::{Chooser, Mode, When};
pub(crate) use run::open;
pub(crate) use translate::ends_with_all;

use crate::SqlResult;
use crate::execute::Limits;
use pagefold_engine::database::Database as Engine;
use pagefold_io::File;
use pagefold_types::Value;
use std::fmt;
use std::sync::Arc;

/// What runs queries by batches.
pub trait Analytics: fmt::Debug + Send + Sync {
    /// Begins a query; `None` when it is left to the row executor. Nothing may be given of it yet.
    ///
    /// # Errors
    /// Those of the query, when it has begun.
    fn run(&self, query: Node, resources: &Resources) -> SqlResult<Option<Box<dyn AnalyticsRows>>>;
}

/// The rows of a query that is run by batches.
pub trait AnalyticsRows: Send {
    /// Puts the next row in the place of another one; false at the end.
    ///
    /// # Errors
    /// Those of the query. 53200 before the first row: it needs more memory than it has, and the row executor runs it.
    fn fill(&mut self, row: &mut Vec<Value>) -> SqlResult<bool>;
}

/// What a query may take.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Bytes of memory for rows that are kept.
    pub memory_bytes: usize,
    /// Where rows go that do not fit.
    pub scratch: Scratch,
    /// When it ends, done or not.
    pub interrupt: Interrupt,
}

/// Gives files for rows that do not fit in memory: they have no name, lie with the database, and go with their last handle.
#[derive(Clone, Debug)]
pub struct Scratch(pub(crate) Arc<Engine>);

impl Scratch {
    /// A new file.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn file(&self) -> SqlResult<Arc<dyn File>> {
        Ok(self.0.scratch_file()?)
    }
}

/// Tells whether a statement has to end: it was cancelled, or its time is over.
#[derive(Clone, Debug)]
pub struct Interrupt(pub(crate) Limits);

impl Interrupt {
    /// Has it to end?
    ///
    /// # Errors
    /// 57014 when it has.
    pub fn check(&self) -> SqlResult<()> {
        self.0.check()
    }
}

/// A step of a query.
#[derive(Debug)]
pub struct Node {
    /// What it does.
    pub operation: Operation,
    /// The columns that come out.
    pub kinds: Vec<Kind>,
    /// Rows that come out, by estimate.
    pub rows: f64,
    /// Which part that is of what would come without conditions: what joins it loses as much.
    pub part: f64,
}

/// What a step does. Expressions are of the columns of its input; of a join, of those of both sides one after the other.
#[derive(Debug)]
pub enum Operation {
    /// Rows of a table.
    Scan(Box<TableScan>),
    /// These rows.
    Values(Vec<Vec<Value>>),
    /// Those for which a condition is true.
    Filter {
        /// Of these rows.
        input: Box<Node>,
        /// BOOLEAN
        condition: Scalar,
    },
    /// Other columns.
    Project {
        /// Of these rows.
        input: Box<Node>,
        /// One for each column.
        exprs: Vec<Scalar>,
    },
    /// Pairs of rows, or rows that have a partner, or have none.
    Join(Box<Join>),
    /// Groups: their keys, and behind them the aggregates.
    Aggregate {
        /// Of these rows.
        input: Box<Node>,
        /// By what they are grouped; none: one group, of no rows too.
        keys: Vec<Scalar>,
        /// What is computed of each.
        aggregates: Vec<Aggregate>,
    },
    /// Each row once. NULL is equal to NULL.
    Distinct(Box<Node>),
    /// Rows in an order.
    Sort {
        /// These rows.
        input: Box<Node>,
        /// The first counts most.
        keys: Vec<SortColumn>,
        /// Only so many of the first are needed.
        limit: Option<u64>,
    },
    /// Some of the rows, of those that come in an order or not.
    Limit {
        /// Of these rows.
        input: Box<Node>,
        /// So many are left out.
        offset: u64,
        /// So many come.
        rows: Option<u64>,
    },
    /// The rows of both, duplicates and all.
    Union(Box<Node>, Box<Node>),
}

/// A join.
#[derive(Debug)]
pub struct Join {
    /// What comes of pairs.
    pub kind: JoinType,
    /// One side.
    pub first: Node,
    /// The other one.
    pub second: Node,
    /// An expression of each side: partners have equal values, and no NULL among them.
    pub keys: Vec<(Scalar, Scalar)>,
    /// What is asked of both rows together.
    pub condition: Option<Scalar>,
    /// Of [`JoinType::Anti`], with one key and no condition, NOT IN: where the second side has a NULL no row comes, and one with a NULL itself only where the second side has no row.
    pub nulls_match: bool,
    /// NULL is equal to NULL.
    pub nulls_equal: bool,
}

/// What comes of the pairs of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    /// All pairs.
    Inner,
    /// And rows of the first side without a partner, with NULLs.
    Left,
    /// And those of the second side.
    Full,
    /// Rows of the first side that have a partner.
    Semi,
    /// Rows of the first side that have none.
    Anti,
}

/// A column by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortColumn {
    /// Its number.
    pub column: usize,
    /// The greatest first.
    pub descending: bool,
    /// NULLs before all others.
    pub nulls_first: bool,
}
