//! SQL on a database.
//!
//! ```
//! use pagefold::Database;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::in_memory()?;
//! database.execute("CREATE TABLE ship (name TEXT PRIMARY KEY, built INTEGER)", ())?;
//! assert_eq!(database.execute("INSERT INTO ship VALUES (?, ?), (?, ?)", ("Fram", 1892, "Vega", 1872))?, 2);
//! let ships = database.query("SELECT name FROM ship WHERE built < ?", (1880,))?;
//! assert_eq!(ships[0].get::<String>("name")?, "Vega");
//!
//! // A session has transactions.
//! let mut session = database.session();
//! session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ", &[])?;
//! session.execute("DELETE FROM ship", &[])?;
//! session.execute("ROLLBACK", &[])?;
//! assert_eq!(session.execute("SELECT count(*) FROM ship", &[])?.rows()?.len(), 1);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "arrow")]
mod column_files;
#[cfg(feature = "arrow")]
mod utilities;

pub use pagefold_sql::{
    Analytics, Answer, Canceller, Column, CopyStream, Notice, Session, SqlError, SqlResult, Statement, TransactionState,
    is_system_relation, partition_called, system_relations,
};

use crate::row::{IntoValues, Row};
use crate::{Database, Value};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Sessions for statements on the database itself, kept for the next ones with their plans.
const SESSIONS_MAX: usize = 64;

#[cfg(feature = "arrow")]
fn utilities() -> Option<Arc<dyn pagefold_sql::Utilities>> {
    Some(Arc::new(utilities::AllUtilities))
}

/// Utilities need what reads and writes files.
#[cfg(not(feature = "arrow"))]
fn utilities() -> Option<Arc<dyn pagefold_sql::Utilities>> {
    None
}

fn speaking(engine: Arc<pagefold_engine::database::Database>, analytics: Option<Arc<dyn Analytics>>) -> pagefold_sql::Database {
    match (utilities(), analytics) {
        (utilities, Some(analytics)) => pagefold_sql::Database::with_analytics(engine, utilities, analytics),
        (Some(utilities), None) => pagefold_sql::Database::with_utilities(engine, utilities),
        (None, None) => pagefold_sql::Database::new(engine),
    }
}

/// What speaks SQL over a database.
#[derive(Debug, Default)]
pub(crate) struct Speaking {
    database: OnceLock<pagefold_sql::Database>,
    /// Who runs large queries by batches.
    analytics: Option<Arc<dyn Analytics>>,
    idle: Mutex<Vec<Session>>,
}

impl Database {
    /// The same database, where large queries are run by batches, by who is given to do so. Sessions that there are already go on as they are.
    #[must_use]
    pub fn with_analytics(mut self, analytics: Arc<dyn Analytics>) -> Database {
        self.sql = Arc::new(Speaking { analytics: Some(analytics), ..Speaking::default() });
        self
    }

    /// A session: transactions, settings, prepared statements.
    #[must_use]
    pub fn session(&self) -> Session {
        self.sql.database.get_or_init(|| speaking(Arc::clone(self.engine()), self.sql.analytics.clone())).session()
    }

    fn with_session<R>(&self, run: impl FnOnce(&mut Session) -> SqlResult<R>) -> SqlResult<R> {
        let idle = || self.sql.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut session = kept.unwrap_or_else(|| self.session());
        let done = run(&mut session);
        // One in which BEGIN was said, or that has other settings, is nobody else's.
        if session.is_as_new() {
            let mut idle = idle();
            if idle.len() < SESSIONS_MAX {
                idle.push(session);
            }
        }
        done
    }

    /// All rows of a query, in a transaction of its own. Parameters are `$1` and so on, or `?` one after the other; without any: `()`.
    ///
    /// # Errors
    /// Whatever is wrong with it, with a SQLSTATE.
    pub fn query(&self, text: &str, params: impl IntoValues) -> SqlResult<Vec<Row>> {
        let params: Vec<Value> = params.values().iter().map(|value| value.to_owned()).collect();
        self.with_session(|session| {
            let mut answer = session.execute(text, &params)?;
            let names: Arc<[String]> = answer.columns().map(|column| column.name.to_owned()).collect();
            let mut rows = Vec::new();
            while let Some(row) = answer.next_row()? {
                rows.push(Row::of_query(&names, row));
            }
            Ok(rows)
        })
    }

    /// Runs a statement in a transaction of its own; gives how many rows it has changed, or a query has given.
    ///
    /// # Errors
    /// Whatever is wrong with it, with a SQLSTATE.
    pub fn execute(&self, text: &str, params: impl IntoValues) -> SqlResult<u64> {
        let params: Vec<Value> = params.values().iter().map(|value| value.to_owned()).collect();
        self.with_session(|session| {
            let mut answer = session.execute(text, &params)?;
            while answer.next_row()?.is_some() {}
            Ok(answer.count())
        })
    }
}
