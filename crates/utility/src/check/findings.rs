//! What CHECK has found so far.
//!
//! Invariant: memory is bounded: of each object the first [`ERRORS_PER_OBJECT`] errors are kept, the others are counted.

use crate::print::columns::count;
use crate::{Error, Progress, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// So many errors of one object are kept.
const ERRORS_PER_OBJECT: usize = 1000;
/// So many of them a person is shown when he asks for no more.
pub const ERRORS_SHOWN: usize = 20;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageError {
    /// Table, index, catalog, control file or file.
    pub object: String,
    /// Page number in its data set; of the control file the slot.
    pub page: u32,
    /// What is wrong.
    pub reason: String,
}

/// A file that nothing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it lies.
    pub path: String,
    /// What is known of it.
    pub reason: String,
}

/// The outcome of CHECK.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages read, control slots included.
    pub pages: u64,
    /// Rows read, those of the catalog apart.
    pub rows: u64,
    /// Index entries read: (key, RID) pairs.
    pub index_entries: u64,
    /// Everything that is wrong.
    pub errors: Vec<PageError>,
    /// Files that nothing needs: no errors.
    pub leftovers: Vec<Leftover>,
}

impl CheckReport {
    /// Nothing wrong?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// As `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let errors: Vec<Value> = self.errors.iter().map(|e| json!({ "object": e.object, "page": e.page, "reason": e.reason })).collect();
        let leftovers: Vec<Value> = self.leftovers.iter().map(|l| json!({ "file": l.path, "reason": l.reason })).collect();
        json!({
            "pages": self.pages,
            "rows": self.rows,
            "index_entries": self.index_entries,
            "errors": errors,
            "leftovers": leftovers,
        })
    }

    /// As a person reads it, with so many errors of an object at most.
    #[must_use]
    pub fn to_text(&self, errors_per_object: usize) -> String {
        let mut out = String::new();
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        for e in &self.errors {
            let of_object = shown.entry(&e.object).or_default();
            *of_object += 1;
            if *of_object <= errors_per_object {
                out.push_str(&format!("{}, page {}: {}\n", e.object, e.page, e.reason));
            }
        }
        for (object, listed) in shown {
            if listed > errors_per_object {
                let more = count((listed - errors_per_object) as u64);
                out.push_str(&format!("{object}: {more} more errors, which --all-errors lists\n"));
            }
        }
        for l in &self.leftovers {
            out.push_str(&format!("{}: {}\n", l.path, l.reason));
        }
        let read = format!("{} pages, {} rows, {} index entries checked", count(self.pages), count(self.rows), count(self.index_entries));
        match self.errors.len() {
            0 => out.push_str(&format!("{read}: no errors\n")),
            1 => out.push_str(&format!("{read}: 1 error\n")),
            n => out.push_str(&format!("{read}: {} errors\n", count(n as u64))),
        }
        out
    }
}

/// Errors, counts and progress of a run.
pub(crate) struct Context<'a> {
    progress: &'a dyn Progress,
    report: CheckReport,
    per_object: BTreeMap<String, usize>,
    /// A second look at pages that were reported on: says nothing.
    muted: bool,
    /// Header pages are as old as the catalog says, not newer.
    exact_headers: bool,
    /// The log of a database that was not closed cannot be read: pages may be newer than maps, and maps than headers.
    lacks_log: bool,
    ticks: u64,
}

/// Pages between two looks at whether to stop.
const PAGES_PER_LOOK: u64 = 256;

impl<'a> Context<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Context<'a> {
        Context {
            progress,
            report: CheckReport::default(),
            per_object: BTreeMap::new(),
            muted: false,
            exact_headers: false,
            lacks_log: false,
            ticks: 0,
        }
    }

    /// Says whether header pages must be as old as the catalog says: so they are where there is no log.
    pub(crate) fn want_exact_headers(&mut self, exact: bool) {
        self.exact_headers = exact;
    }

    /// Says whether what the log has for the files is not in them, and cannot be had.
    pub(crate) fn without_log(&mut self, lacks: bool) {
        self.lacks_log = lacks;
    }

    /// Is what is newer than what tells of it no damage?
    pub(crate) fn lacks_log(&self) -> bool {
        self.lacks_log
    }

    pub(crate) fn wants_exact_headers(&self) -> bool {
        self.exact_headers
    }

    pub(crate) fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Notes an error.
    pub(crate) fn error(&mut self, object: &str, page: u32, reason: impl ToString) {
        if self.muted {
            return;
        }
        let count = self.per_object.entry(object.into()).or_default();
        *count += 1;
        if *count <= ERRORS_PER_OBJECT {
            self.report.errors.push(PageError { object: object.into(), page, reason: reason.to_string() });
        }
    }

    /// Notes a file that nothing needs.
    pub(crate) fn leftover(&mut self, path: &Path, reason: &str) {
        self.report.leftovers.push(Leftover { path: path.display().to_string(), reason: reason.into() });
    }

    pub(crate) fn count_page(&mut self) {
        if !self.muted {
            self.report.pages += 1;
        }
    }

    pub(crate) fn count_rows(&mut self, rows: u64) {
        if !self.muted {
            self.report.rows += rows;
        }
    }

    pub(crate) fn count_entries(&mut self, entries: u64) {
        if !self.muted {
            self.report.index_entries += entries;
        }
    }

    /// Errors so far, listed or not.
    pub(crate) fn error_count(&self) -> usize {
        self.per_object.values().sum()
    }

    /// Runs `work` without noting anything.
    pub(crate) fn muted<R>(&mut self, work: impl FnOnce(&mut Context<'a>) -> R) -> R {
        let before = std::mem::replace(&mut self.muted, true);
        let result = work(self);
        self.muted = before;
        result
    }

    /// A page is done.
    ///
    /// # Errors
    /// When the user wants to stop.
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks += 1;
        if self.ticks.is_multiple_of(PAGES_PER_LOOK) {
            self.progress.advance(PAGES_PER_LOOK);
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> CheckReport {
        for (object, count) in self.per_object {
            if count > ERRORS_PER_OBJECT {
                let reason = format!("and {} more errors", count - ERRORS_PER_OBJECT);
                self.report.errors.push(PageError { object, page: 0, reason });
            }
        }
        self.report
    }
}
