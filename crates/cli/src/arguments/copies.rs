//! Arguments of `copy`, `recover`, `diff` and `archive-log`.

use clap::Args;
use pagefold::types::{DataType, TimeUnit, Value, text};
use std::path::PathBuf;

/// Transactions go on meanwhile, in other processes too; the copy is the database as of its end.
#[derive(Debug, Args)]
#[command(
    after_help = "A TARGET that ends with .pfc is one file, for `pagefold recover`; any other is a new directory with a database that is ready for use.\n\nExamples:\n  pagefold copy shop.db sunday.pfc\n  pagefold copy shop.db monday.pfc --incremental sunday.pfc\n  pagefold copy shop.db test.db\n  pagefold copy shop.db orders.pfc --table orders --table sales/q1"
)]
pub(crate) struct CopyArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// File (.pfc) or directory to make
    pub(crate) target: PathBuf,
    /// Copy only what has changed since this copy was taken
    #[arg(long, value_name = "COPY")]
    pub(crate) incremental: Option<PathBuf>,
    /// Copy only this table with its indexes, all partitions of it, or one (TABLE/PARTITION); can be given more than once
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
}

/// The new database goes on by itself: what the old one logs afterwards is not taken for its log. With --table, tables are put back into the database DB as they were then, with their indexes, in
/// one transaction; all else in it stays, and what was done to these tables since is gone.
#[derive(Debug, Args)]
#[command(
    after_help = "Times are UTC. Without --log, --until or --until-lsn the database or table is as it was when the last copy was taken; with --table and `--log DB`, as it is now by the log.\n\nExamples:\n  pagefold recover new.db sunday.pfc monday.pfc\n  pagefold recover new.db sunday.pfc --log /backup/log --log shop.db --until '2026-11-21 12:00:00.123'\n  pagefold recover shop.db sunday.pfc --table orders\n  pagefold recover shop.db orders.pfc --table orders --log /backup/log --log shop.db --until '2026-11-21 12:00'"
)]
pub(crate) struct RecoverArguments {
    /// Directory of the database to make; with --table: of the database that gets the table
    #[arg(value_name = "NEWDB|DB")]
    pub(crate) database: PathBuf,
    /// A copy, and those that go on from it, in their order
    #[arg(required = true, value_name = "COPY")]
    pub(crate) copies: Vec<PathBuf>,
    /// Directory with log to apply: an archive, or the old database; can be given more than once
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Vec<PathBuf>,
    /// Only transactions that committed up to this time
    #[arg(long, value_name = "TIME", value_parser = unix_ns, conflicts_with = "until_lsn")]
    pub(crate) until: Option<u64>,
    /// Only what the log has up to this position
    #[arg(long, value_name = "N")]
    pub(crate) until_lsn: Option<u64>,
    /// Put this table, partition (TABLE/PARTITION) or partitioned table back; can be given more than once
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
    /// With --table: also where the table has other columns by now
    #[arg(long, requires = "table")]
    pub(crate) replace: bool,
}

/// With an archive, `recover` can go on from a copy to any later moment.
#[derive(Debug, Args)]
#[command(
    after_help = "Log goes there when crash recovery does not need it any more; the newest is with the database. While the archive cannot be written, log stays with the database.\n\nExamples:\n  pagefold archive-log shop.db /backup/log\n  pagefold archive-log shop.db --off"
)]
pub(crate) struct ArchiveLogArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Existing directory for the log; without it and --off: say what is set
    #[arg(value_name = "DIR", conflicts_with = "off")]
    pub(crate) archive: Option<PathBuf>,
    /// Archive no longer
    #[arg(long)]
    pub(crate) off: bool,
}

/// Each side is a copy, or a database as it is now. Exit code 0 when they have the same rows and definitions, 1 when something differs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold diff sunday.pfc shop.db\n  pagefold diff sunday.pfc monday.pfc --second-base sunday.pfc --rows 50"
)]
pub(crate) struct DiffArguments {
    /// What was: a copy, or the directory of a database
    #[arg(value_name = "DB|COPY")]
    pub(crate) first: PathBuf,
    /// What is
    #[arg(value_name = "DB|COPY")]
    pub(crate) second: PathBuf,
    /// Of a first copy that goes on from others: these, in their order; can be given more than once
    #[arg(long, value_name = "COPY")]
    pub(crate) first_base: Vec<PathBuf>,
    /// The same of the second one
    #[arg(long, value_name = "COPY")]
    pub(crate) second_base: Vec<PathBuf>,
    /// List so many rows of each table that differ, by their keys
    #[arg(long, value_name = "N", num_args = 0..=1, default_value_t = 0, default_missing_value = "1000")]
    pub(crate) rows: usize,
}

const TIME: DataType = DataType::Timestamp { unit: TimeUnit::Nano, with_zone: false };

/// Nanoseconds since 1970 of a time in UTC.
fn unix_ns(time: &str) -> Result<u64, String> {
    match text::parse(time, &TIME) {
        Ok(Value::Int(ns)) => u64::try_from(ns).map_err(|_| format!("{time} is before 1970")),
        Ok(_) | Err(_) => Err(format!("\"{time}\" is no time such as '2026-11-21 12:00:00.123'")),
    }
}

/// A time in UTC as people read it.
pub(crate) fn time_text(unix_ns: u64) -> String {
    text::to_text(Value::Int(i64::try_from(unix_ns).unwrap_or(i64::MAX)).as_ref(), &TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(unix_ns("1970-01-01 00:00:01.5"), Ok(1_500_000_000));
        assert_eq!(unix_ns(&time_text(1_700_000_000_123_456_789)), Ok(1_700_000_000_123_456_789));
        assert!(unix_ns("1969-12-31 00:00:00").is_err() && unix_ns("noon").is_err());
    }
}
