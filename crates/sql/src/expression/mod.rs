//! Typed expressions.
//!
//! * `make`: expressions from operands: which types an operator takes, what comes out, what is cast
//! * `typed`: literals, parameters, folding of constants
//! * `types`: names of types, common types, what can be cast to what
//! * `cast`, `read`, `arithmetic`, `decimal`, `calendar`, `interval`, `like`, `function`: what is done with values
//! * `datum`: a value that is borrowed where it can be
//! * `evaluate`: an expression on a row; `walk`: its parts; `same`: is it another one?
//! * `aggregate`, `accumulator`: COUNT, SUM and the others over rows; `regression`: those of two variables
//!
//! Invariants:
//! - an [`Expr`] is monomorphic: both sides of a comparison have one type, the operands of an arithmetic operation those that
//!   it names; whatever had to be cast has a [`Expr::Cast`] around it. Types of one representation that differ only in what they
//!   may hold (VARCHAR(3) and VARCHAR) count as one;
//! - evaluation gives a value of the type that was said when the expression was made, or NULL, or an error with a SQLSTATE: a
//!   result out of range is 22003 and never wraps, a division by zero 22012;
//! - a value of CHAR(n) has n characters, padded with blanks; compared with another CHAR it is padded to the longer one,
//!   everywhere else the blanks at its end are cut off first.

mod accumulator;
pub(crate) mod aggregate;
pub(crate) mod arithmetic;
mod calendar;
mod cast;
mod datum;
mod decimal;
mod evaluate;
pub(crate) mod function;
pub(crate) mod interval;
mod like;
pub(crate) mod make;
mod read;
mod regression;
mod same;
#[cfg(test)]
mod tests;
mod typed;
mod types;
mod walk;

pub(crate) use accumulator::{Accumulator, sum_overflow, summed};
pub(crate) use aggregate::{AggregateKind, aggregate, is_aggregate};
pub(crate) use cast::{for_column, written};
pub(crate) use datum::Datum;
pub(crate) use like::matches as like_matches;
pub(crate) use typed::NoSubqueries;
pub(crate) use types::{TEXT, common_type, name as type_name};

use pagefold_types::{DataType, Value, ValueRef};

pub(crate) use pagefold_types::Comparison;
use std::cell::RefCell;

/// An expression with its type. `data_type` is `None` for what has none yet: a literal in quotes, NULL, a parameter. The first operator that it
/// meets gives it one.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) data_type: Option<DataType>,
}

/// What is computed of a row.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    /// A column of a relation of the FROM clause, by their numbers. Gone before anything is evaluated.
    Column {
        relation: usize,
        column: usize,
    },
    /// A value of the row that is looked at.
    Slot(usize),
    /// A value of the row around a subquery.
    Outer(usize),
    /// A parameter of the statement, from 0.
    Param(usize),
    Not(Box<Expr>),
    /// Three-valued; ends with the first that is false.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    IsNull {
        of: Box<Expr>,
        negated: bool,
    },
    /// IS [NOT] TRUE, FALSE, UNKNOWN (`None`)
    IsTruth {
        of: Box<Expr>,
        truth: Option<bool>,
        negated: bool,
    },
    Compare {
        comparison: Comparison,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// IS [NOT] DISTINCT FROM
    IsDistinct {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    /// `sorted`: the list has literals only, in order, so that it is searched.
    In {
        of: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
        sorted: bool,
    },
    /// `escape`: `None` is a backslash, `Some(None)` none at all.
    Like {
        of: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Option<char>>,
        ignores_case: bool,
        negated: bool,
    },
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        of: Box<Expr>,
        from: DataType,
        to: DataType,
    },
    Negate {
        of: Box<Expr>,
        data_type: DataType,
    },
    Arithmetic {
        operation: arithmetic::Operation,
        on: arithmetic::Operands,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Call {
        function: function::Function,
        arguments: Vec<Expr>,
    },
    /// What is asked of a sequence, or said to it.
    Sequence {
        call: crate::sequences::SequenceCall,
        arguments: Vec<Expr>,
    },
    /// A subquery of the plan, by its number.
    Subquery {
        number: usize,
        kind: SubqueryKind,
        /// What it needs of the row: its outer row.
        outer: Vec<Expr>,
    },
}

impl SubqueryKind {
    /// Is it asked only whether a value is among the rows? IN and NOT IN are that, and so are `= ANY` and `<> ALL`.
    pub(crate) fn is_membership(&self) -> bool {
        match self {
            SubqueryKind::In { .. } => true,
            SubqueryKind::Quantified { comparison: Comparison::Equal, all, .. } => !*all,
            SubqueryKind::Quantified { comparison: Comparison::NotEqual, all, .. } => *all,
            _ => false,
        }
    }
}

/// What is asked of a subquery.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SubqueryKind {
    /// Its one value; NULL without a row; 21000 with more than one.
    Scalar,
    Exists,
    /// Is this, a value for each of its columns, among its rows? Three-valued, as IN is. Of a row of several values only where the subquery needs nothing of the row around it.
    In {
        of: Vec<Expr>,
        negated: bool,
    },
    /// `of` compared with ANY or ALL of its values.
    Quantified {
        of: Box<Expr>,
        comparison: Comparison,
        all: bool,
    },
}

/// Types of the parameters of a statement, as far as they are known: the first operator that a parameter meets says it.
#[derive(Debug, Default)]
pub(crate) struct ParamTypes(pub(crate) RefCell<Vec<Option<DataType>>>, RefCell<Vec<usize>>);

impl ParamTypes {
    /// The types of all: text, where nothing has given one.
    pub(crate) fn all(&self) -> Vec<DataType> {
        self.0.borrow().iter().map(|data_type| data_type.unwrap_or(TEXT)).collect()
    }

    /// The scale of this one, a decimal number, is our choice: nothing in the statement says it.
    pub(crate) fn choose_scale(&self, of: &Expr) {
        if let Expr::Param(number) = of {
            self.1.borrow_mut().push(*number);
        }
    }

    /// Those of which that is so.
    pub(crate) fn of_chosen_scale(&self) -> Vec<usize> {
        self.1.borrow().clone()
    }
}

/// What the time is, in microseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    /// When the transaction began: NOW().
    pub(crate) transaction: i64,
    /// When the statement began.
    pub(crate) statement: i64,
}

/// What an expression is evaluated with.
pub(crate) struct Env<'e> {
    /// Values of the row.
    pub(crate) row: &'e [Value],
    /// Values of the row around a subquery.
    pub(crate) outer: &'e [Value],
    pub(crate) params: &'e [Value],
    pub(crate) now: Now,
    pub(crate) subqueries: &'e dyn Subqueries,
}

/// What an expression asks of the statement that it is of: who runs the subqueries of its plan, and takes numbers of sequences.
pub(crate) trait Subqueries {
    /// A number of a sequence.
    fn number(&self, call: &crate::sequences::SequenceCall) -> crate::SqlResult<i64>;

    /// The number of a sequence becomes this one; whether it is given already.
    fn set_number(&self, sequence: &crate::sequences::SequenceRef, number: i64, is_given: bool) -> crate::SqlResult<()>;

    /// What the clock says now, in microseconds since 1970 UTC.
    fn clock(&self) -> crate::SqlResult<i64>;

    /// Calls `visit` with the first value of each row of subquery `number`, run for this outer row, until it gives false.
    fn run(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Value) -> crate::SqlResult<bool>) -> crate::SqlResult<()>;

    /// Is this, a value for each column, among the rows of a subquery that needs nothing of the row? Three-valued, as IN is.
    fn is_among(&self, number: usize, of: &[ValueRef<'_>]) -> crate::SqlResult<Option<bool>>;
}
