//! SQL over the row store: the dialect is PostgreSQL's.
//!
//! A [`Database`] gives [`Session`]s. A session runs statements, and gives an [`Answer`] to each: rows that are pulled, or what was done.
//!
//! * `parse`: text to a syntax tree (sqlparser); `forms`, `rewrite`, `exclusion`, `partitioning`: what that does not know of statements, window frames and partitions
//! * `print`: parts of statements as texts that are read again
//! * `bind`: names and types
//! * `expression`: typed expressions: how they are made from operands, and evaluated on rows; aggregates
//! * `catalog`: tables and views as a statement finds them
//! * `plan`: how rows are come by
//! * `execute`: plans that run
//! * `analytics`: queries that are run by batches, by who is given to do so
//! * `system`: tables that say what there is
//! * `partition_names`: partitions that are relations of their own names
//! * `temporary`: tables of a session
//! * `sequences`: numbers that are given once
//! * `copy`: COPY: its text, the rows in it; files of columns, which somebody else reads
//! * `cursor`: DECLARE, FETCH, MOVE, CLOSE
//! * `define`: tables, indexes and views that come and go
//! * `utility`: ANALYZE, REORG, ESTIMATE and others, which somebody else does
//! * `session`, `settings`, `planned`, `answer`: transactions, SET, kept plans, what comes back
//! * `error`: what can go wrong, with SQLSTATE, place in the text and hint

pub mod analytics;
mod answer;
mod bind;
mod catalog;
mod copy;
mod cursor;
mod database;
mod define;
mod dialect;
mod error;
mod exclusion;
mod execute;
mod expression;
mod forms;
mod keywords;
mod parse;
mod partition_names;
mod partitioning;
mod plan;
mod planned;
mod print;
mod rewrite;
mod sequences;
mod session;
mod sessions;
mod settings;
mod system;
mod temporary;
mod utility;

pub use analytics::Analytics;
pub use answer::{Answer, Column};
pub use catalog::is_system as is_system_relation;
pub use copy::columnar::{ColumnFiles, ColumnFormat, FileColumn, RowTaker};
pub use database::Database;
pub use error::{SqlError, SqlResult};
pub use parse::quoted_where_needed as quoted_name;
pub use partition_names::partition_called;
pub use session::{Canceller, CopyStream, Notice, Session, Statement, TransactionState};
pub use system::system_relations;
pub use utility::{Portion, ReorgWishes, Utilities, Utility, UtilityAnswer, Wanted};
