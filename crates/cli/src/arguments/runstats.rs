//! Arguments of `runstats`.

use clap::Args;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Says how many rows and pages there are, how long rows are, and of every column the share of NULL, distinct and frequent values, the least and the greatest, a histogram, and whether rows lie in its
/// order; of every index levels, leaf pages, distinct keys, and how well rows lie in its order. What is not known exactly has the interval of 95 % behind it. All of it is kept with the table and its
/// indexes. Others can read and change rows meanwhile.
#[derive(Debug, Args)]
#[command(
    after_help = "A sample takes time for the pages that it reads, not for those that there are; of fewer than 64 pages nothing could be said, and of half of them or more all are read.\nBEYOND is the share of the pages that may have values below the least or above the greatest one seen.\nSTEPS OFF BY is how much the share of rows up to any step of the histogram may be off.\n\nExamples:\n  pagefold runstats shop.db                          everything, exactly\n  pagefold runstats shop.db orders --sample 1        one page of a hundred\n  pagefold runstats shop.db orders --print           what is known already"
)]
pub(crate) struct RunstatsArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Only these tables, with their indexes
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
    /// Read so many percent of the pages, at random
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "pages")]
    pub(crate) sample: Option<f64>,
    /// Read so many pages of each table and index, at random
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<NonZeroU64>,
    /// Which sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the statistics that are kept, and read no rows
    #[arg(long, conflicts_with_all = ["sample", "pages"])]
    pub(crate) print: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| format!("\"{text}\" is not more than 0 and at most 100 percent"))
}
