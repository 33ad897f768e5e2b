//! What is computed of groups.

use super::{Kind, Scalar};
use crate::expression::aggregate::Aggregate as Call;
use crate::expression::summed;
use crate::{SqlError, SqlResult};
use pagefold_types::Value;

/// An aggregate. NULLs do not count.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Which one.
    pub function: AggregateFunction,
    /// Of what; none of [`AggregateFunction::CountRows`].
    pub argument: Option<Scalar>,
    /// Of its result.
    pub kind: Kind,
    pub(super) call: Call,
}

/// An aggregate whose result does not depend on the order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// Rows.
    CountRows,
    /// Values.
    Count,
    /// Of integers and decimals, added up in 128 bits: [`Aggregate::finish`] makes the result of that.
    Sum,
    /// The same, and how many there were.
    Average,
    /// The least, of a plain kind.
    Min,
    /// The greatest.
    Max,
}

impl Aggregate {
    /// The result of a sum or an average, of all that was added up and how many there were: NULL of none.
    ///
    /// # Errors
    /// 22003 when it is none of its type.
    pub fn finish(&self, sum: i128, count: i64) -> SqlResult<Value> {
        summed(&self.call, sum, count)
    }

    /// What a sum is that leaves 128 bits.
    #[must_use]
    pub fn overflow() -> SqlError {
        crate::expression::sum_overflow()
    }
}
