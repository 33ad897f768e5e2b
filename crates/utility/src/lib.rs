//! LOAD, UPSERT, DELETE, EXPORT, CREATE INDEX, REORG, DROP, CHECK, PRINT, REPORT, RUNSTATS, ADVISE: what commands do, without a command line.

mod access;
mod advise;
mod alter;
mod change_rows;
mod check;
mod diff;
mod drop;
mod error;
mod estimate;
mod index_build;
mod kept;
mod key_sort;
mod live_view;
mod load;
mod load_threads;
mod options;
mod page_sizes;
mod partitions;
mod print;
mod progress;
mod rebuild_index;
mod recover_tables;
mod reorg;
mod reorg_incremental;
mod report;
mod row_order;
mod runstats;
mod salvage;
mod sample;

pub use access::{Scan, ScanOptions, export, get, primary_key_index, push_rows};
pub use advise::{
    AdvicePlan, AdviseOptions, Advised, Applied, Calibration, CostsByWay, ObjectAdvice, ObjectKind, PoolShare, Totals, WayCosts, Workload,
    advise, apply_advice,
};
pub use alter::{AlterReport, Alteration, Attributes, ColumnText, alter};
pub use change_rows::{ChangeRowsOptions, ChangeRowsReport, delete_inputs, delete_rows, upsert, upsert_inputs};
pub use check::{CheckReport, ERRORS_SHOWN, Leftover, PageError, check, check_copies, check_files};
pub use diff::{DiffOptions, DiffReport, DiffSide, ObjectDiff, PagesDiff, RowChange, RowsDiff, TableDiff, diff};
pub use drop::{DropReport, drop_object};
pub use error::{Error, Result};
pub use estimate::add_every_method;
pub use estimate::{
    Costs, EstimateOptions, EstimateReport, IndexReportLine, IndexesEstimate, MethodEstimate, ObjectNow, Proposal, SAMPLE_BYTES_MIN,
    SampleFacts, Scratch, estimate_index, estimate_source, estimate_table,
};
pub use index_build::{IndexReport, create_index};
pub use live_view::{Counters as LiveCounters, LiveFrame, LiveTransaction, LiveUtility, LiveWait};
pub use load::{LoadReport, load, load_inputs, load_source, table_schema};
pub use options::{IndexOptions, LoadMode, LoadOptions, ReorgOptions, RowOrder, Setting};
pub use page_sizes::{IndexAssignment, PageSizeLine, PageSizeOptions, PageSizeReport, PoolForecast, divide_memory, forecast, page_sizes};
pub use pagefold_engine::table_space::{SAMPLE_BYTES, SAMPLE_ROWS, SampledRecords, Sampler};
pub use pagefold_engine::{Progress, Silent, Unit};
pub use pagefold_format::catalog::Figure;
pub use partitions::{
    Division, MovedRows, PartitionLine, PartitionText, add_partition, drop_partition, exchange_partition, first_table, list_partitions,
    merge_partitions, rotate_partition, split_partition,
};
pub use print::{DatabaseFiles, PrintWhat, Printed, print};
pub use rebuild_index::rebuild_index;
pub use recover_tables::{RecoverTablesOptions, RecoverTablesReport, RecoveredTable, recover_tables};
pub use reorg::{ReorgReport, reorg};
pub use reorg_incremental::{Incremental, IncrementalReport};
pub use report::{DamagedObject, DatabaseReport, IndexStatistics, LevelStatistics, LogStatistics, PoolStatistics, TableStatistics, report};
pub use runstats::{
    FreshCounts, FreshOptions, FreshStatistics, IndexRunstats, RunstatsOptions, RunstatsReport, SAMPLE_PAGES_MIN, Sample, TableRunstats,
    is_stale, is_stale_by, kept_statistics, runstats, runstats_if_stale,
};
pub use salvage::{LostKeys, LostValue, SalvageReport, Salvaged, salvage};
pub use sample::sample_source;
