//! Large queries run by the operators of Apache DataFusion, over pulled scans of the row store.
//!
//! `pagefold-sql` translates plans, and this crate runs them: [`DataFusion`] is given to a database when it is opened ([`pagefold_sql::Database::with_analytics`]).
//!
//! * `run`: queries on threads, with memory and files
//! * `plan`: trees of nodes as physical plans; `watch`: the end of a statement; `scan`: rows of tables as arrays
//! * `keys`: what one side of a join tells the other one
//! * `expr`, `compute`, `arithmetic`: expressions; `sums`: SUM and AVG
//! * `arrays`: values as arrays; `spill`: files; `failure`: errors
//!
//! Invariants:
//! - what a query gives is what the row executor gives, or an error with the same SQLSTATE: DataFusion's operators join, group and sort; expressions and sums are computed here;
//! - no optimizer of DataFusion sees a plan.

mod arithmetic;
mod arrays;
mod compute;
mod expr;
mod failure;
mod keys;
mod plan;
mod run;
mod scan;
mod spill;
mod sums;
mod watch;

pub use run::DataFusion;
