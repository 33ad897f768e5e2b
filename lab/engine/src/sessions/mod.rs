//! What a terminal needs of a database, the same for pagefold and for SQLite: prepared statements in transactions.
//!
//! SQLite is given the same texts without FOR UPDATE, which it does not know: there one transaction at a time changes anything.

pub mod ours;
#[cfg(feature = "rivals")]
pub mod sqlite;

use pagefold_types::Value;

/// A statement, by its number among those that a connection has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its place in the list.
    pub number: usize,
    /// As pagefold reads it.
    pub text: &'static str,
}

impl Query {
    /// Without what SQLite does not know.
    #[must_use]
    pub fn text_without_locks(self) -> &'static str {
        self.text.trim_end_matches(" FOR UPDATE")
    }
}

/// Numbers texts.
pub fn numbered(texts: &'static [&'static str]) -> impl Iterator<Item = Query> {
    texts.iter().enumerate().map(|(number, text)| Query { number, text })
}

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub enum Failure {
    /// Others came in the way: it is tried again. With its SQLSTATE, or what stands for it.
    Retry(&'static str),
    /// Anything else ends the run.
    Fatal(String),
}

impl Failure {
    /// Of a text.
    pub fn fatal(text: impl Into<String>) -> Failure {
        Failure::Fatal(text.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Retry(state) => write!(f, "{state}, which a retry would mend"),
            Failure::Fatal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// What may come to no end.
pub type Done<T> = Result<T, Failure>;
/// Rows of values.
pub type Rows = Vec<Vec<Value>>;

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing is changed.
    Read,
    /// Something may be changed.
    Write,
}

/// A connection. Statements are prepared; a transaction is open while they run, or a query is one by itself.
pub trait Connection {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Failure`], as all here.
    fn begin(&mut self, access: Access) -> Done<()>;

    /// The rows of a query, or those that RETURNING gives.
    fn rows(&mut self, query: Query, params: &[Value]) -> Done<Rows>;

    /// How many rows a statement has changed.
    fn change(&mut self, query: Query, params: &[Value]) -> Done<u64>;

    /// Ends it.
    ///
    /// # Errors
    /// [`Failure`].
    fn commit(&mut self) -> Done<()>;

    /// Takes it back.
    ///
    /// # Errors
    /// [`Failure`].
    fn rollback(&mut self) -> Done<()>;

    /// A text that is run now and then.
    fn say(&mut self, text: &str, params: &[Value]) -> Done<Rows>;
}

/// The one row that a statement has to give.
///
/// # Errors
/// When it gives none, or several.
pub fn one(connection: &mut dyn Connection, query: Query, params: &[Value]) -> Done<Vec<Value>> {
    let mut rows = connection.rows(query, params)?;
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok(row),
        (None, _) => Err(Failure::fatal(format!("no row of {} with {params:?}", query.text))),
        _ => Err(Failure::fatal(format!("several rows of {} with {params:?}", query.text))),
    }
}

/// A statement that has to change so many rows.
///
/// # Errors
/// When it changes more or fewer.
pub fn change(connection: &mut dyn Connection, query: Query, params: &[Value], wanted: u64) -> Done<()> {
    let changed = connection.change(query, params)?;
    if changed == wanted {
        return Ok(());
    }
    Err(Failure::fatal(format!("{changed} rows changed, not {wanted}, by {} with {params:?}", query.text)))
}

/// A whole number; an amount is one of its smallest units, on both sides.
///
/// # Errors
/// When it is none of 64 bits.
pub fn number(value: &Value) -> Done<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Decimal(number) => i64::try_from(*number).map_err(|_| Failure::fatal("a number out of range")),
        other => Err(Failure::fatal(format!("{other:?} is no number"))),
    }
}

/// A text.
///
/// # Errors
/// When it is none.
pub fn text(value: &Value) -> Done<&str> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(Failure::fatal(format!("{other:?} is no text"))),
    }
}

/// An amount as a value: cents, or ten-thousandths of rates.
pub fn amount(units: i64) -> Value {
    Value::Decimal(units.into())
}

/// A text as a value.
pub fn texts(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}
