//! Arguments of `pagefold partition`.

use clap::{Args, Subcommand};
use pagefold::engine::table::Method;
use pagefold::utility::PartitionText;
use std::path::PathBuf;

/// Each partition is a table of its own, TABLE/PARTITION, for reorg, load --replace, estimate, print and all other commands.
#[derive(Debug, Args)]
#[command(
    after_help = "A LIMIT is the first value behind a partition, or MAXVALUE; of several columns in parentheses: '(2024, 7)'.\n\nExamples:\n  pagefold partition list shop.db sales\n  pagefold partition add shop.db sales 'q3 = 2024-10-01'\n  pagefold partition rotate shop.db sales 2024-11-01\n  pagefold partition exchange shop.db sales q1 corrected_q1\n  pagefold partition split shop.db sales rest 'q4 = 2025-01-01'\n  pagefold partition merge shop.db sales q1 q2 --into h1\n  pagefold reorg shop.db sales/h1 --compress page"
)]
pub(crate) struct PartitionArguments {
    #[command(subcommand)]
    pub(crate) command: PartitionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PartitionCommand {
    /// List the partitions of a table, with limit, compression, rows and sizes
    List(Whole),
    /// Add a partition behind the last one, which it is like
    Add {
        #[command(flatten)]
        whole: Whole,
        /// The first value behind it, with a name if wanted
        #[arg(value_name = "[NAME =] LIMIT", allow_hyphen_values = true)]
        limit: PartitionText,
        /// Its compression, if not that of the last one
        #[arg(long, value_name = "METHOD", value_parser = super::method)]
        compress: Option<Method>,
    },
    /// Drop a partition with its rows; it takes moments, however many there are
    Drop {
        #[command(flatten)]
        whole: Whole,
        /// Its name
        partition: String,
    },
    /// Drop the first partition with its rows and add one behind the last
    Rotate {
        #[command(flatten)]
        whole: Whole,
        /// The first value behind the new one, with a name if wanted
        #[arg(value_name = "[NAME =] LIMIT", allow_hyphen_values = true)]
        limit: PartitionText,
    },
    /// Put a table in the place of a partition, and the partition in that of the table; no row is written
    ///
    /// Both have the same columns, primary key and indexes; compression, page sizes and formats may differ. Each is called from then on as the other was.
    Exchange {
        #[command(flatten)]
        whole: Whole,
        /// The partition
        partition: String,
        /// The table, whose rows are in the range of the partition
        #[arg(value_name = "WITH")]
        with: String,
    },
    /// Divide a partition in two: rows below the limit go to a new one before it
    Split {
        #[command(flatten)]
        whole: Whole,
        /// The partition to divide; it keeps the rows from the limit on
        partition: String,
        /// The first value behind the new one, with a name if wanted
        #[arg(value_name = "[NAME =] LIMIT", allow_hyphen_values = true)]
        limit: PartitionText,
    },
    /// Make one of partitions that follow each other
    Merge {
        #[command(flatten)]
        whole: Whole,
        /// The partitions, in the order of their keys
        #[arg(required = true, num_args = 2.., value_name = "PARTITION")]
        partitions: Vec<String>,
        /// Name of what comes of them [default: that of the first]
        #[arg(long, value_name = "NAME")]
        into: Option<String>,
    },
}

/// Which table.
#[derive(Debug, Args)]
pub(crate) struct Whole {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the partitioned table
    pub(crate) table: String,
}
