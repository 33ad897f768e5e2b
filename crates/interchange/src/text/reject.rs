//! Rows that did not fit, beside those that did.
//!
//! Invariant: bounded in rows and bytes; what is beyond is an error.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a report, at most.
const BYTES_MAX: usize = 64 << 20;

/// Collects the rows that did not fit; a clone collects into the same.
#[derive(Clone, Debug, Default)]
pub struct Rejects {
    /// Rows, at most.
    limit: u64,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    rows: u64,
    text: String,
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

impl Rejects {
    /// For at most so many rows.
    #[must_use]
    pub fn new(limit: u64) -> Rejects {
        Rejects { limit, found: Arc::default() }
    }

    /// Rows that did not fit.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).rows
    }

    /// A CSV file: file, line, reason, row.
    #[must_use]
    pub fn report(&self) -> String {
        format!("file,line,reason,row\n{}", self.found.lock().unwrap_or_else(PoisonError::into_inner).text)
    }

    /// Begins again.
    pub(crate) fn clear(&self) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Found::default();
    }

    /// Takes a row; false when there are too many.
    pub(crate) fn add(&self, path: &Path, line: u64, reason: &str, row: &[u8]) -> bool {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.rows >= self.limit || found.text.len() + row.len() > BYTES_MAX {
            return false;
        }
        found.rows += 1;
        let row = String::from_utf8_lossy(row);
        // Writing to a String cannot fail.
        let _ = writeln!(
            found.text,
            "{},{line},{},{}",
            quoted(&path.display().to_string()),
            quoted(reason),
            quoted(row.trim_end_matches(['\n', '\r']))
        );
        true
    }

    /// The limit in words.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}
