//! Errors of SQL on their way through DataFusion, which passes its own.
//!
//! Invariant: of several errors the first one that was kept is told; what DataFusion itself refuses is told with a SQLSTATE, too.

use datafusion_common::DataFusionError;
use pagefold_sql::{SqlError, SqlResult};
use std::sync::{Arc, Mutex, PoisonError};

/// What went wrong in a query, whichever thread met it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<SqlError>>>);

impl Failure {
    /// Does nothing else of the query know of it? Then nothing of it is left.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Keeps an error, and gives what stands for it.
    pub(crate) fn keep(&self, error: SqlError) -> DataFusionError {
        let message = error.message().to_owned();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        DataFusionError::Execution(message)
    }

    /// The result, with an error that DataFusion takes.
    pub(crate) fn of<T>(&self, result: SqlResult<T>) -> datafusion_common::Result<T> {
        result.map_err(|error| self.keep(error))
    }

    /// The error that was kept.
    pub(crate) fn kept(&self) -> Option<SqlError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The same, or what DataFusion says.
    pub(crate) fn told(&self, error: &DataFusionError) -> SqlError {
        self.kept().unwrap_or_else(|| from_datafusion(error))
    }
}

/// An error of DataFusion as one of SQL.
pub(crate) fn from_datafusion(error: &DataFusionError) -> SqlError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => {
            SqlError::new("53200", "the statement needs more memory than work_mem allows").with_hint("SET work_mem = '256MB' allows more.")
        }
        DataFusionError::IoError(error) => SqlError::new("58030", format!("a scratch file of the statement: {error}")),
        other => SqlError::new("XX000", format!("the batches of a query: {other}")),
    }
}
