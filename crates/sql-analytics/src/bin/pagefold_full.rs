//! The `pagefold` command, with large queries run by DataFusion.

use pagefold_sql_analytics::DataFusion;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    pagefold_cli::run(Some(Arc::new(DataFusion::new())))
}
