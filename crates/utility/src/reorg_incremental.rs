//! REORG a part at a time: thin pages of a table are emptied where the table lies, by short transactions beside all others.
//!
//! Nothing is held between two of them, so there is nothing to be rolled back: who interrupts this, or ends the process, leaves a table of which a part is done.

use crate::{Error, Progress, ReorgOptions, ReorgReport, Result, Unit};
use pagefold_engine::database::{Database, MoveOptions, MoveStep};
use pagefold_engine::table_space::Table;
use std::fmt;
use std::time::Duration;

/// How long the others are waited for, if nothing is said.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a table is reorganized a part at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incremental {
    /// Rows that are moved by one transaction, at most: 200 if nothing is said, which takes some milliseconds.
    pub rows_max: Option<usize>,
}

/// What a REORG that goes by parts has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncrementalReport {
    /// Rows that were moved.
    pub rows_moved: u64,
    /// Rows that somebody else had just then, and that stayed where they are.
    pub rows_left: u64,
    /// Pages that are free by now for anything.
    pub pages_free: u64,
    /// It ended before it was done, as others did not end in time who need rows as they were.
    pub is_cut_short: bool,
}

impl fmt::Display for IncrementalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows moved, {} left, {} pages free", self.rows_moved, self.rows_left, self.pages_free)?;
        if self.is_cut_short {
            f.write_str("; not done: a transaction needs rows as they were")?;
        }
        Ok(())
    }
}

pub(crate) fn reorg_incrementally(
    database: &Database,
    name: &str,
    (options, how): (&ReorgOptions, Incremental),
    progress: &dyn Progress,
) -> Result<ReorgReport> {
    let is_changed = options.method.is_some() || options.format.is_some() || options.page_bytes.is_some() || options.pctfree.is_some();
    if is_changed || options.order.is_some() || options.keep_dictionary {
        return Err(Error::Usage("an incremental REORG leaves the table as it is stored: it goes with no other option".into()));
    }
    if how.rows_max == Some(0) {
        return Err(Error::Usage("at least one row is to be moved at a time".into()));
    }
    let table = database.table(name)?;
    let patience = options.patience.unwrap_or(PATIENCE);
    let pages_before = data_pages(&table);
    let usual = MoveOptions::default();
    let move_options = MoveOptions { rows_max: how.rows_max.unwrap_or(usual.rows_max), ..usual };
    let mut thin = database.thin_pages(&table, move_options)?;
    let (mut planned, mut done) = (0, 0);
    let is_cut_short = loop {
        let standing = thin.standing();
        if standing.pages_planned > planned {
            if planned > 0 {
                progress.finish();
            }
            progress.start(&format!("emptying thin pages of {name}"), Some(standing.pages_planned - planned), Unit::Pages);
            planned = standing.pages_planned;
        }
        progress.advance(standing.pages_done - done);
        done = standing.pages_done;
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        match thin.step()? {
            MoveStep::End => break false,
            MoveStep::Done => {}
            MoveStep::BehindTransaction(_) | MoveStep::BehindReaders => {
                if thin.wait() >= patience {
                    break true;
                }
            }
        }
    };
    if planned > 0 {
        progress.finish();
    }
    let (standing, pages) = (thin.standing(), data_pages(&table));
    let bytes = |pages: u64| pages * table.attributes().page_bytes as u64;
    Ok(ReorgReport {
        pages_before,
        size_bytes_before: bytes(pages_before),
        pages,
        size_bytes: bytes(pages),
        rows: table.row_count(),
        choice: None,
        incremental: Some(IncrementalReport {
            rows_moved: standing.rows_moved,
            rows_left: standing.rows_left,
            pages_free: standing.pages_given_back,
            is_cut_short,
        }),
    })
}

fn data_pages(table: &Table) -> u64 {
    table.data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum()
}
