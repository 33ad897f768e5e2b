//! What can go wrong with a statement: a message for people, a SQLSTATE for programs, the place in the text, a hint.

use pagefold_engine::Error;
use std::fmt;

/// The result of a statement, or of a part of one.
pub type SqlResult<T> = Result<T, SqlError>;

/// Why a statement failed.
#[derive(Debug)]
pub struct SqlError {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    sqlstate: &'static str,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    context: Option<String>,
    /// Line and column, each from 1, in characters.
    position: Option<(u64, u64)>,
    constraint: Option<String>,
    table: Option<String>,
    column: Option<String>,
    source: Option<Error>,
}

impl SqlError {
    /// With a SQLSTATE of five characters, as PostgreSQL has them.
    #[must_use]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        let inner = Inner {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            context: None,
            position: None,
            constraint: None,
            table: None,
            column: None,
            source: None,
        };
        SqlError { inner: Box::new(inner) }
    }

    /// The SQLSTATE that PostgreSQL has for an error of a file.
    #[must_use]
    pub fn sqlstate_of_io(error: &std::io::Error) -> &'static str {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::NotFound => "58P01",
            ErrorKind::PermissionDenied => "42501",
            ErrorKind::IsADirectory | ErrorKind::NotADirectory => "42809",
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => "53100",
            _ => "58030",
        }
    }

    /// 42601: the text is no statement.
    pub(crate) fn syntax(message: impl Into<String>) -> SqlError {
        SqlError::new("42601", message)
    }

    /// 0A000: SQL that is not done here.
    pub(crate) fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new("0A000", format!("{what} is not supported"))
    }

    /// 42804: types that do not fit each other.
    pub(crate) fn types(message: impl Into<String>) -> SqlError {
        SqlError::new("42804", message)
    }

    /// 22003: a number out of the range of its type.
    pub(crate) fn out_of_range(data_type: impl fmt::Display) -> SqlError {
        SqlError::new("22003", format!("{data_type} out of range"))
    }

    /// Says what may help. The first hint that is given stays.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.inner.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Says more than the message does. The first detail that is given stays.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.inner.detail.get_or_insert_with(|| detail.into());
        self
    }

    /// The first context that is told stays.
    pub(crate) fn in_context(mut self, context: impl FnOnce() -> String) -> SqlError {
        self.inner.context.get_or_insert_with(context);
        self
    }

    /// It is in the text of a view, not of the statement: its place there says nothing. The innermost view stays.
    pub(crate) fn in_view(mut self, view: &str, column: Option<&str>) -> SqlError {
        self.inner.position = None;
        self.in_context(|| match column {
            Some(column) => format!("view \"{view}\", column \"{column}\""),
            None => format!("view \"{view}\""),
        })
    }

    /// The first place that is told stays.
    pub(crate) fn at(mut self, line: u64, column: u64) -> SqlError {
        if line > 0 {
            self.inner.position.get_or_insert((line, column));
        }
        self
    }

    pub(crate) fn of_constraint(mut self, constraint: &str, table: &str) -> SqlError {
        self.inner.constraint = Some(constraint.to_owned());
        self.inner.table = Some(table.to_owned());
        self
    }

    pub(crate) fn of_column(mut self, table: &str, column: &str) -> SqlError {
        self.inner.table = Some(table.to_owned());
        self.inner.column = Some(column.to_owned());
        self
    }

    /// The class of the error, as PostgreSQL has it: `23505`, `40001` and so on.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        self.inner.sqlstate
    }

    /// What went wrong, in a sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// More about it.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// What may help.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// Where it was, if that is not in the text of the statement: `COPY t, line 2, column b: "x"`, `view "v", column "c"`.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.inner.context.as_deref()
    }

    /// Line and column in the text of the statement, each from 1, in characters.
    #[must_use]
    pub fn position(&self) -> Option<(u64, u64)> {
        self.inner.position
    }

    /// The constraint that was violated.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        self.inner.constraint.as_deref()
    }

    /// The table that it is about.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.inner.table.as_deref()
    }

    /// The column that it is about.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        self.inner.column.as_deref()
    }

    /// Did others only come in the way, so that the transaction may be tried again?
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.inner.sqlstate, "40001" | "40P01")
    }

    /// That of the engine, if it comes from there.
    pub(crate) fn engine(&self) -> Option<&Error> {
        self.inner.source.as_ref()
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        if let Some((line, column)) = self.inner.position {
            write!(f, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_ref().map(|source| source as _)
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        let mut made = SqlError::new(error.sqlstate(), error.to_string());
        made.inner.source = Some(error);
        made
    }
}
