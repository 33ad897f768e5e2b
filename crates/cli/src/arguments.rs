//! The command line.

mod advise;
mod alter;
mod copies;
mod partitions;
mod runstats;
mod sql;

use crate::size::ByteSize;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pagefold::engine::index::IndexFormat;
use pagefold::engine::table::Method;
use pagefold::utility::{Division, RowOrder, Setting};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use advise::{AdviseArguments, GoalArgument};
pub(crate) use alter::{AlterArguments, AlterCommand};
pub(crate) use copies::{ArchiveLogArguments, CopyArguments, DiffArguments, RecoverArguments, time_text};
pub(crate) use partitions::{PartitionArguments, PartitionCommand};
pub(crate) use runstats::RunstatsArguments;
pub(crate) use sql::{RowsFormat, SqlArguments};

const EXAMPLES: &str = "\
Examples:
  pagefold demo                                             see what it does, on data it generates itself
  pagefold estimate orders.parquet                          what each compression and page size would give
  pagefold load shop.db orders orders.parquet --primary-key o_orderkey
  pagefold get shop.db orders 4711
  pagefold scan shop.db orders --columns o_orderkey,o_totalprice --where \"o_totalprice >= 400000\" --limit 10
  pagefold create-index shop.db by_date 'orders(o_orderdate, o_orderkey DESC)' --format fold --page-size 16K
  pagefold sql shop.db \"SELECT count(*) FROM orders\"
  pagefold report shop.db

Sizes are bytes, or have a unit: 4K, 8KB, 64MB, 2G (powers of 1,024).
Exit codes: 0 done; 1 it failed or was interrupted, and the database is as it was; 2 wrong use.";

/// An embedded row store whose tables and indexes are compressed at every level, and which says beforehand what that will save.
#[derive(Debug, Parser)]
#[command(name = "pagefold", version, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Print one JSON document instead of text; field names carry their units
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Memory of all buffer pools together [default: 256MB; demo: 6 GB times the scale factor, 256 MB to 2 GB]
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Background threads for prefetch and deferred writes
    #[arg(long, global = true, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) io_threads: u16,
    /// Bytes on disk that one prefetch or deferred write moves at most: 32K to 4M
    #[arg(long, global = true, value_name = "SIZE", default_value = "128K")]
    pub(crate) io_size: ByteSize,
    /// Wait so long for another process that writes the database: 10s, 500ms, 2m [default: do not wait]
    #[arg(long, global = true, value_name = "TIME", value_parser = crate::size::duration)]
    pub(crate) wait: Option<std::time::Duration>,
    /// Go through the system's file cache instead of direct I/O
    #[arg(long, global = true)]
    pub(crate) buffered: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a table, load it each way, measure, and say what came out
    Demo(DemoArguments),
    /// Run SQL: a shell, a script from standard input, or statements as arguments
    Sql(SqlArguments),
    /// Load Parquet, CSV or .tbl files into a table, or all tables of a SQLite file
    Load(LoadArguments),
    /// Put rows into a table by primary key: new ones are inserted, others changed
    #[command(
        after_help = "The columns of the files are those of the table, in any order; text has the table's types. Of rows with the same key the last one counts.\n\nExample:\n  pagefold upsert shop.db orders today.csv --rows-per-transaction 10000"
    )]
    Upsert(ChangeRowsArguments),
    /// Delete the rows of a table whose primary keys are in files
    #[command(
        after_help = "The files need the columns of the primary key; others do not matter.\n\nExample:\n  pagefold delete shop.db orders cancelled.csv"
    )]
    Delete(ChangeRowsArguments),
    /// Write a table to a Parquet, CSV or JSON-lines file
    Export(ExportArguments),
    /// Change names, columns and attributes of a table or index
    Alter(AlterArguments),
    /// Build an index on a table
    CreateIndex(CreateIndexArguments),
    /// Drop a table with its indexes, or one index; the space comes back
    Drop(DropArguments),
    /// Print one row by its primary key
    Get(GetArguments),
    /// Print rows: some columns, under a condition, in the order of the table or of an index
    Scan(ScanArguments),
    /// Say what each compression and page size would give, before anything is changed
    Estimate(EstimateArguments),
    /// Say what an index would take at each page size, and how it would be read
    PageSizes(PageSizesArguments),
    /// Say how tables and indexes are best stored, why, and by which commands; or do it
    Advise(AdviseArguments),
    /// Say what tables and indexes take: pages, levels, ratios, pools, counters
    Report(ReportArguments),
    /// Gather statistics of tables, columns and indexes, from all pages or a sample, each with a bound; they are kept
    Runstats(RunstatsArguments),
    /// Show what the process that writes a database does, as it goes on: pools, log, locks, transactions, utilities
    Top(TopArguments),
    /// Verify every page, every row and every index entry
    Check(CheckArguments),
    /// Decode a page, damaged ones too
    Print(PrintArguments),
    /// List the partitions of a table, add, drop, rotate, exchange, split or merge them
    Partition(PartitionArguments),
    /// Write a table or index anew, with another compression, format or page size
    Reorg(ReorgArguments),
    /// Copy a database while it is used, or some tables: into one file, whole or what has changed, or into a new database
    Copy(CopyArguments),
    /// Make a database from copies and log, as it was at their end or at a time; or put tables back
    Recover(RecoverArguments),
    /// Say what differs between two copies, or a copy and a database: objects, definitions, rows, pages
    Diff(DiffArguments),
    /// Keep the log of a database in a directory, for `recover`
    ArchiveLog(ArchiveLogArguments),
    /// Build an index anew from the rows of its table, whatever is damaged of it
    RebuildIndex(RebuildIndexArguments),
    /// Write the rows of all pages of a table that can be read to a file, and say what lacks
    #[command(
        after_help = "The database is not changed. Exit code 1 when something lacks; the file has the rest.\n\nExample:\n  pagefold salvage shop.db orders orders.parquet\n  pagefold drop shop.db orders\n  pagefold load shop.db orders orders.parquet --primary-key id"
    )]
    Salvage(ExportArguments),
}

fn method(text: &str) -> Result<Method, String> {
    text.parse().map_err(|e: pagefold::Error| e.to_string())
}

/// A method or format, or `auto`.
fn setting<T: FromStr<Err = pagefold::Error>>(text: &str) -> Result<Setting<T>, String> {
    text.parse().map_err(|e: pagefold::Error| format!("{e}, auto"))
}

fn scale_factor(text: &str) -> Result<f64, String> {
    let refuse = || format!("\"{text}\" is no scale factor between 0.0001 and 100");
    let value: f64 = text.parse().map_err(|_| refuse())?;
    if (0.0001..=100.0).contains(&value) { Ok(value) } else { Err(refuse()) }
}

/// The main job, from nothing: generates the TPC-H tables LINEITEM and ORDERS, loads them with every compression, builds plain and folded indexes at every page
/// size, checks that all of them hold the same rows, and measures size, load, scan, seek and update.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// TPC-H scale factor: 0.1 is 600,000 rows of LINEITEM, 1 is 6 million
    #[arg(long, value_name = "SF", default_value = "0.1", value_parser = scale_factor)]
    pub(crate) scale_factor: f64,
    /// Where the database and the page with charts go; the database of an earlier demo there is replaced
    #[arg(long, value_name = "DIR", default_value = "demo.pagefold")]
    pub(crate) dir: PathBuf,
}

/// How text files are written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "CSV and .tbl files")]
pub(crate) struct TextArguments {
    /// Is the first line names?
    #[arg(long, value_enum, default_value_t = HeaderArgument::Auto)]
    pub(crate) header: HeaderArgument,
    /// Between fields; reading: by default what the file has. Writing: `|` in .tbl, a tab in .tsv, else a comma
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<String>,
    /// Around fields, or `none`; reading: by default what the file has. Writing: `"`, none in .tbl
    #[arg(long, value_name = "CHAR")]
    pub(crate) quote: Option<String>,
    /// Before a character in quotes that is to be taken as it is; reading: by default what the file has. Writing: a quote is doubled
    #[arg(long, value_name = "CHAR")]
    pub(crate) escape: Option<String>,
    /// Reading: lines before the first one, which are passed over
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Reading: what comes first in dates such as 01/02/2024, where no value says it
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) date_order: Option<DateOrderArgument>,
    /// What stands for NULL; by default nothing
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DateOrderArgument {
    /// Day, month, year
    Dmy,
    /// Month, day, year
    Mdy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderArgument {
    /// Reading: by comparison with the other lines; what was decided is printed. Writing: yes, but not in .tbl
    Auto,
    Yes,
    No,
}

/// The table appears with all rows and its primary key, or not at all (with `--reject`: with all rows that fit). How a text file is written and whether its first line is names is found from
/// its beginning, the types of its columns from all its values, and what was decided is printed; `--columns`, `--type` and the options for CSV say otherwise.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold load shop.db orders orders.parquet --primary-key o_orderkey --compress fixed --page-size 8K\n  pagefold load app.db app.sqlite\n  pagefold load app.db orders app.sqlite:orders"
)]
pub(crate) struct LoadArguments {
    /// Directory of the database; made when it is not there
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table; or a SQLite file, without FILE: all of its tables are loaded, with their keys and indexes, and compared
    #[arg(value_name = "TABLE|FILE.sqlite")]
    pub(crate) table: String,
    /// Parquet, Arrow, CSV, .tsv, .tbl or JSON-lines files of the same columns, also as .gz or .zst; patterns such as 'day-*.csv'; `-` is standard input; FILE.sqlite:TABLE is a table of a
    /// SQLite file
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Compression: page (the rows of a page column by column); none; row (each value in as few bytes as it needs); fixed (12-bit codes of a 4,096-entry dictionary); huffman (codes of up to
    /// 16 bits of such a dictionary); auto (chosen from an estimate and from what each costs on this machine; the reason is printed) [default: page; with --replace: the table's]
    #[arg(long, value_name = "METHOD", value_parser = setting::<Method>)]
    pub(crate) compress: Option<Setting<Method>>,
    /// Page size: 2 to 32 KB in steps of 2 KB
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    pub(crate) page_size: ByteSize,
    /// Columns of the primary key; a unique index TABLE_pk is built on them [with --replace by default: those of the table]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) primary_key: Option<String>,
    /// Format of the primary key's index: prefix, plain, fold, or auto (chosen like a compression)
    #[arg(long, value_name = "FORMAT", default_value = "prefix", value_parser = setting::<IndexFormat>)]
    pub(crate) key_format: Setting<IndexFormat>,
    /// Page size of the primary key's index [default: 8K; with --key-format auto: chosen, too]
    #[arg(long, value_name = "SIZE")]
    pub(crate) key_page_size: Option<ByteSize>,
    /// Put the new rows in the place of those of an existing table
    #[arg(long, conflicts_with = "append")]
    pub(crate) replace: bool,
    /// Add the new rows to an existing table
    #[arg(long)]
    pub(crate) append: bool,
    /// With --append: commit after so many rows [default: all in one transaction]
    #[arg(long, value_name = "N", requires = "append")]
    pub(crate) rows_per_transaction: Option<NonZeroU64>,
    /// With --replace: keep the dictionary instead of training another
    #[arg(long, requires = "replace")]
    pub(crate) keep_dictionary: bool,
    /// Percent of each page left free
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) pctfree: u8,
    /// The most rows on a page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) maxrows: Option<u16>,
    /// Bytes of the first extent
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub(crate) first_extent: ByteSize,
    /// Bytes of each further extent; 0 for a sliding scale
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub(crate) second_extent: ByteSize,
    /// Bytes of a partition; the row after that opens another
    #[arg(long, value_name = "SIZE", default_value = "64G")]
    pub(crate) partition_size: ByteSize,
    /// Divide the table by ranges: columns, a colon, and the limit behind each partition, with a name if wanted: 'day: 2024-01-01, 2024-07-01,
    /// last = MAXVALUE'; 'year, month: (2024, 7), (2025, MAXVALUE)'
    #[arg(long, value_name = "COLUMNS: LIMITS", conflicts_with = "append")]
    pub(crate) partition_by: Option<Division>,
    /// Types of all columns of a text file: 'id bigint not null, name char(20), price decimal(9,2)'
    #[arg(long, value_name = "LIST")]
    pub(crate) columns: Option<String>,
    /// Types of single columns of a text file: 'zip=text, price=decimal(9,2)'; can be given more than once
    #[arg(long = "type", value_name = "COLUMN=TYPE", conflicts_with_all = ["columns", "append"])]
    pub(crate) types: Vec<String>,
    /// Load the rows of a text file that fit, and write those that do not to this CSV file: file, line, reason, row
    #[arg(long, value_name = "FILE")]
    pub(crate) reject: Option<PathBuf>,
    /// With --reject: the most rows that may not fit
    #[arg(long, value_name = "N", requires = "reject", default_value_t = 1000)]
    pub(crate) reject_limit: u64,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// From a SQLite file: only these tables
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// From a SQLite file: a column that has numbers and texts becomes one of texts
    #[arg(long)]
    pub(crate) mixed_as_text: bool,
    /// From a SQLite file: do not read everything back to compare it
    #[arg(long)]
    pub(crate) no_compare: bool,
}

/// All rows in one transaction, unless told otherwise: after an error, a crash or Ctrl-C what was not committed is taken back.
#[derive(Debug, Args)]
pub(crate) struct ChangeRowsArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table; it has a primary key
    pub(crate) table: String,
    /// Parquet, Arrow, CSV, .tsv, .tbl or JSON-lines files of the same columns, also as .gz or .zst; patterns such as 'day-*.csv'; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Commit after so many rows [default: all in one transaction]
    #[arg(long, value_name = "N")]
    pub(crate) rows_per_transaction: Option<NonZeroU64>,
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

/// Columns get the types that the source of the table had.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pagefold export shop.db orders orders.parquet\n  pagefold export shop.db orders - --format csv | head")]
pub(crate) struct ExportArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table
    pub(crate) table: String,
    /// File to write, or `-` for standard output
    pub(crate) file: PathBuf,
    /// Columns, in this order; by default all
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) columns: Option<String>,
    /// Only rows for which this is true
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// Format; by default what the file's name says (.parquet, .arrow, .csv, .tsv, .tbl, .jsonl), CSV on standard output
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns
    Table,
    Csv,
    /// One JSON object a line
    Json,
    Parquet,
    /// Arrow IPC
    Arrow,
}

/// The index appears complete, or not at all.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pagefold create-index shop.db by_date 'orders(o_orderdate, o_orderkey DESC)' --format fold --page-size 16K"
)]
pub(crate) struct CreateIndexArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the index
    pub(crate) name: String,
    /// Table and columns: 'TABLE(a, b DESC)'
    #[arg(value_name = "TABLE(COLUMNS)")]
    pub(crate) on: String,
    /// Refuse two rows with the same key
    #[arg(long)]
    pub(crate) unique: bool,
    /// Leaf format: plain, fold (compressed into 4 KB on disk), prefix (compressed in memory as on disk), or auto (chosen from an estimate and from what each costs on this machine; the
    /// reason is printed)
    #[arg(long, value_name = "FORMAT", default_value = "plain", value_parser = setting::<IndexFormat>)]
    pub(crate) format: Setting<IndexFormat>,
    /// Page size: of leaves in memory; folded ones have 8, 16 or 32 KB [default: 8K; with --format auto: chosen, too]
    #[arg(long, value_name = "SIZE")]
    pub(crate) page_size: Option<ByteSize>,
    /// Percent of each leaf left free
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) pctfree: u8,
}

/// Drops a table with its indexes, or one index.
#[derive(Debug, Args)]
pub(crate) struct DropArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Names of the tables or indexes, which go one by one
    #[arg(value_name = "TABLE|INDEX", required = true)]
    pub(crate) objects: Vec<String>,
}

/// The index appears complete, or stays as it was.
#[derive(Debug, Args)]
pub(crate) struct RebuildIndexArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the index
    #[arg(value_name = "INDEX")]
    pub(crate) index: String,
}

/// Exit code 1 when there is no such row.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pagefold get shop.db lineitem 4711 2")]
pub(crate) struct GetArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table
    pub(crate) table: String,
    /// A value for each column of the primary key
    #[arg(required = true, allow_negative_numbers = true, value_name = "KEY")]
    pub(crate) key: Vec<String>,
}

/// Prints rows.
#[derive(Debug, Args)]
#[command(
    after_help = "Conditions: =, <>, <, <=, >, >=, between, in, like, is null, and, or, not, parentheses; text in single quotes, names that are no words in double quotes.\n\nExample:\n  pagefold scan shop.db orders --columns o_orderkey,o_comment --where \"o_orderdate >= '1998-07-01' and o_comment like '%pack%'\""
)]
pub(crate) struct ScanArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table
    pub(crate) table: String,
    /// Columns, in this order, names with commas or blanks in double quotes; by default all
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) columns: Option<String>,
    /// Only rows for which this is true
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// Read through this index, in its order; the condition narrows what is read. By default one that the condition narrows to few rows, if there is such
    #[arg(long, value_name = "NAME")]
    pub(crate) index: Option<String>,
    /// At most so many rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, conflicts_with = "json")]
    pub(crate) format: OutputFormat,
}

/// SOURCE is files of one table (Parquet, CSV, .tbl), or a SQLite file (all of its tables, with their keys and indexes) or FILE.sqlite:TABLE, or a database and a table, or a database and
/// `--index` for an index that exists.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold estimate orders.parquet --key 'o_orderdate' --key 'o_custkey, o_orderkey DESC'\n  pagefold estimate shop.db orders --sample-pages 500\n  pagefold estimate shop.db --index by_date\n  pagefold estimate app.sqlite"
)]
pub(crate) struct EstimateArguments {
    /// Files, a SQLite file, or a database and a table
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) source: Vec<PathBuf>,
    /// An existing index of the database
    #[arg(long, value_name = "NAME", conflicts_with = "key")]
    pub(crate) index: Option<String>,
    /// Columns of an index that does not exist yet: 'a, b DESC'; can be given more than once
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) key: Vec<String>,
    /// The proposed indexes hold every key once
    #[arg(long, requires = "key")]
    pub(crate) unique: bool,
    /// Columns of the primary key of a table to be; its index is estimated too
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) primary_key: Option<String>,
    /// Compression of a table to be, which decides the row addresses in its indexes
    #[arg(long, value_name = "METHOD", default_value = "page", value_parser = method)]
    pub(crate) compress: Method,
    /// Page size of a table to be, likewise
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    pub(crate) page_size: ByteSize,
    /// Read only so many pages (or as many rows of a file as fill them), 512 KB at least; results then come with a 95 % interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample_pages: Option<u64>,
    /// Which sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Of a SQLite file: only these tables
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Of a SQLite file: a column that has numbers and texts is taken as one of texts
    #[arg(long)]
    pub(crate) mixed_as_text: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

/// For page sizes of 2 to 32 KB and each format: levels, pages and bytes, as `reorg` would make them, and the smallest page size that saves a level. With a key trace, which a program records by
/// `Database::record_keys`, also what a pool of some size would hit.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold page-sizes shop.db by_date\n  pagefold page-sizes shop.db by_date --trace by_date.trace --pool 512MB\n  pagefold page-sizes shop.db by_date orders_pk --trace by_date.trace --trace orders_pk.trace --pool 512MB"
)]
pub(crate) struct PageSizesArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Names of indexes; with traces of several, the best division of the pool among them is named, too
    #[arg(required = true, value_name = "INDEX")]
    pub(crate) indexes: Vec<String>,
    /// Keys that were asked for: one file for each index, in their order
    #[arg(long, value_name = "FILE", conflicts_with = "sample_pages")]
    pub(crate) trace: Vec<PathBuf>,
    /// With --trace: bytes of the pool, or of the pools of all these indexes together [default: those of --memory]
    #[arg(long, value_name = "SIZE", requires = "trace")]
    pub(crate) pool: Option<ByteSize>,
    /// Percent of each leaf left free; by default as it is
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) pctfree: Option<u8>,
    /// Read only so many leaves, 512 KB at least
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample_pages: Option<u64>,
    /// Which sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Says what tables and indexes take.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Only this table or index
    #[arg(value_name = "TABLE|INDEX")]
    pub(crate) object: Option<String>,
}

/// The process that writes the database shows once a second what it does, while somebody looks. Ends with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pagefold top shop.db\n  pagefold top shop.db --once --json\n  pagefold top shop.db --prometheus")]
pub(crate) struct TopArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Between two views, 1s at least
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::size::duration)]
    pub(crate) interval: std::time::Duration,
    /// Print one view, with what was done a second within the interval before it, and end; `--json` does
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the metrics once, in the Prometheus text format
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
}

/// Reads the files themselves: also those of a database that cannot be opened, and copies, which are not made into a database for that. Exit code 1 and the list when anything is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pagefold check shop.db\n  pagefold check sunday.pfc monday.pfc")]
pub(crate) struct CheckArguments {
    /// Directory of the database, or a copy
    #[arg(value_name = "DB|COPY")]
    pub(crate) database: PathBuf,
    /// Copies that go on from that one, in their order
    #[arg(value_name = "COPY")]
    pub(crate) copies: Vec<PathBuf>,
    /// List all errors that are kept of an object, up to 1,000, and not the first 20; `--json` does
    #[arg(long)]
    pub(crate) all_errors: bool,
}

/// Decodes pages without opening the database, or making one of a copy.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold print shop.db orders --page 17\n  pagefold print monday.pfc orders --page 17 --base sunday.pfc"
)]
pub(crate) struct PrintArguments {
    /// Directory of the database, or a copy
    #[arg(value_name = "DB|COPY")]
    pub(crate) database: PathBuf,
    /// Table, index, `catalog`, `control`, or a file id in eight hexadecimal digits
    pub(crate) object: String,
    /// Page number; by default the header page
    #[arg(long, value_name = "N", conflicts_with = "dictionary")]
    pub(crate) page: Option<u32>,
    /// Partition of a table
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) partition: u16,
    /// The entries of the dictionary
    #[arg(long)]
    pub(crate) dictionary: bool,
    /// Of a copy that goes on from others: these, in their order; can be given more than once
    #[arg(long, value_name = "COPY")]
    pub(crate) base: Vec<PathBuf>,
}

/// The old table or index is used, and changed, until the new one is complete.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pagefold reorg shop.db orders --compress fixed --page-size 16K\n  pagefold reorg shop.db by_date --format fold --page-size 32K\n  pagefold reorg shop.db orders --compress auto\n  pagefold reorg shop.db orders --order by_date\n  pagefold reorg shop.db orders --incremental"
)]
pub(crate) struct ReorgArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Name of the table or index
    #[arg(value_name = "TABLE|INDEX")]
    pub(crate) object: String,
    /// Compression of a table: none, row, page, fixed, huffman, or auto (chosen from an estimate and from what each costs on this machine); by default as it is
    #[arg(long, value_name = "METHOD", value_parser = setting::<Method>)]
    pub(crate) compress: Option<Setting<Method>>,
    /// Format of an index: plain, fold, prefix, or auto (chosen likewise, with its page size); by default as it is
    #[arg(long, value_name = "FORMAT", value_parser = setting::<IndexFormat>)]
    pub(crate) format: Option<Setting<IndexFormat>>,
    /// Page size; by default as it is
    #[arg(long, value_name = "SIZE")]
    pub(crate) page_size: Option<ByteSize>,
    /// Percent of each page left free; by default as it is
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) pctfree: Option<u8>,
    /// Put the rows of a table in the order of this index of it, or of its primary key (primary-key); by default they keep theirs
    #[arg(long, value_name = "INDEX")]
    pub(crate) order: Option<RowOrder>,
    /// Keep the dictionary instead of training another
    #[arg(long)]
    pub(crate) keep_dictionary: bool,
    /// Do not write the table anew: move the rows of pages that are little used to room in others, a part at a time, so that those pages are free. Can be interrupted at any time; what was done stays
    #[arg(long, conflicts_with_all = ["compress", "format", "page_size", "pctfree", "order", "keep_dictionary"])]
    pub(crate) incremental: bool,
    /// Rows that are moved by one transaction, at most; by default 200, which takes some milliseconds
    #[arg(long, value_name = "N", requires = "incremental", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_rows: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
