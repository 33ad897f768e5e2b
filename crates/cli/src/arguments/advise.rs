//! The arguments of `advise`.

use crate::size::ByteSize;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Each table and index is estimated under every method or format and page size, what they cost is measured on this machine, and rules say what is worth it. Nothing is changed without `--apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold advise shop.db\n  pagefold advise shop.db orders --all-pages\n  pagefold advise shop.db --workload shop.json --trace by_date=by_date.trace --pools 512MB --goal time\n  pagefold advise shop.db --apply"
)]
pub(crate) struct AdviseArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Only these tables, with their indexes, and indexes
    #[arg(value_name = "TABLE|INDEX")]
    pub(crate) objects: Vec<String>,
    /// What is to be least
    #[arg(long, value_enum, default_value_t = GoalArgument::Size)]
    pub(crate) goal: GoalArgument,
    /// Read so many pages of each object, 512 KB at least
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample_pages: u64,
    /// Read all pages
    #[arg(long, conflicts_with = "sample_pages")]
    pub(crate) all_pages: bool,
    /// Which sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What programs did to tables and indexes: a JSON file that a program writes with `Workload`; needed for --goal time
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// Keys of an index that were asked for, which a program records by `Database::record_keys`: INDEX=FILE; can be given more than once. Without one requests are taken to be spread evenly
    #[arg(long, value_name = "INDEX=FILE", requires = "workload")]
    pub(crate) trace: Vec<String>,
    /// With --workload: memory of the pools together that the programs have [default: that of --memory]
    #[arg(long, value_name = "SIZE", requires = "workload")]
    pub(crate) pools: Option<ByteSize>,
    /// Take what was measured on this machine before from this file, where it is there, and put what is measured now into it
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Carry it out: objects are written anew one after the other, while others use them. What is done stays done when it is stopped
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalArgument {
    /// Bytes on disk
    Size,
    /// Time of a workload
    Time,
}
