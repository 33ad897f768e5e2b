//! Queries that run: on threads of their own, with rows pulled by whoever asked.
//!
//! Invariants:
//! - what a query keeps is bounded by its memory: what does not fit goes to files, or it fails with 53200;
//! - when whoever asked is gone, nothing of the query runs any more, and it holds nothing of the database.

use crate::arrays::View;
use crate::compute::Running;
use crate::failure::{Failure, from_datafusion};
use crate::plan::Planner;
use crate::scan::BATCH_ROWS;
use crate::spill::Files;
use arrow_array::RecordBatch;
use datafusion_common::Result;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::FairSpillPool;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_execution::{TaskContext, config::SessionConfig};
use futures::StreamExt;
use pagefold_sql::analytics::{AnalyticsRows, Kind, Node, Resources};
use pagefold_sql::{Analytics, SqlError, SqlResult};
use pagefold_types::{Value, ValueRef};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

/// Batches that wait for whoever asked.
const WAITING: usize = 4;
/// Between two looks whether to wait on.
const LOOK: Duration = Duration::from_millis(50);
/// So often is looked whether all of a query has ended.
const LOOKS_MAX: u32 = 10_000;
/// The least memory that a query is run with: with less the row executor does it, which needs little.
const MEMORY_MIN: usize = 4 << 20;

/// Runs queries by DataFusion's operators.
#[derive(Debug, Default)]
pub struct DataFusion {
    threads: Option<usize>,
    runtime: OnceLock<Option<Runtime>>,
    counters: Arc<Counters>,
}

/// What all queries have done.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Bytes written to files.
    pub(crate) spilled: AtomicU64,
    /// Scans that left out rows by keys of a join, and those of them that looked rows up by an index, each as often as it has parts.
    pub(crate) with_keys: AtomicU64,
    pub(crate) by_index: AtomicU64,
}

impl DataFusion {
    /// With as many threads as the processor runs at once.
    #[must_use]
    pub fn new() -> DataFusion {
        DataFusion::default()
    }

    /// With so many threads.
    #[must_use]
    pub fn with_threads(threads: usize) -> DataFusion {
        DataFusion { threads: Some(threads.max(1)), ..DataFusion::default() }
    }

    /// Bytes that queries have written to files, as they did not fit in memory.
    #[must_use]
    pub fn spilled_bytes(&self) -> u64 {
        self.counters.spilled.load(Ordering::Relaxed)
    }

    /// Scans that read only rows whose keys the other side of a join has, each as often as it has parts.
    #[must_use]
    pub fn scans_with_keys(&self) -> u64 {
        self.counters.with_keys.load(Ordering::Relaxed)
    }

    /// Those of them that looked rows up by an index.
    #[must_use]
    pub fn scans_by_index(&self) -> u64 {
        self.counters.by_index.load(Ordering::Relaxed)
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    }

    fn runtime(&self) -> Option<&Runtime> {
        let make =
            || tokio::runtime::Builder::new_multi_thread().worker_threads(self.threads()).thread_name("pagefold-batches").build().ok();
        self.runtime.get_or_init(make).as_ref()
    }
}

impl Analytics for DataFusion {
    fn run(&self, query: Node, resources: &Resources) -> SqlResult<Option<Box<dyn AnalyticsRows>>> {
        if resources.memory_bytes < MEMORY_MIN {
            return Ok(None);
        }
        // Without threads the row executor does it.
        let Some(runtime) = self.runtime() else { return Ok(None) };
        let (interrupt, counters) = (resources.interrupt.clone(), Arc::clone(&self.counters));
        let running = Running { failure: Failure::default(), interrupt, counters };
        let plan = match (Planner { running: &running, threads: self.threads() }).whole(&query) {
            Ok(plan) => plan,
            // What DataFusion does not take the row executor does.
            Err(_) => return running.failure.kept().map_or(Ok(None), Err),
        };
        let context = context(resources, &running, self).map_err(|error| from_datafusion(&error))?;
        let (sender, batches) = channel(WAITING);
        let task = runtime.spawn(async move {
            // Who does not listen any more need not be told.
            let mut rows = match plan.execute(0, context) {
                Ok(rows) => rows,
                Err(error) => return drop(sender.send(Err(error)).await),
            };
            while let Some(batch) = rows.next().await {
                let is_last = batch.is_err();
                if sender.send(batch).await.is_err() || is_last {
                    return;
                }
            }
        });
        let kinds = query.kinds.into();
        let rows = Rows { batches: Some(batches), task: Some(task), kinds, running, ready: VecDeque::new(), at: 0 };
        Ok(Some(Box::new(Gathered { rows, most: resources.memory_bytes / 4, has_begun: false })))
    }
}

/// What operators take memory from, and files.
fn context(resources: &Resources, running: &Running, of: &DataFusion) -> Result<Arc<TaskContext>> {
    let memory = resources.memory_bytes;
    let files = Files { scratch: resources.scratch.clone(), failure: running.failure.clone(), counters: Arc::clone(&of.counters) };
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Custom(Arc::new(files)));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_disk_manager_builder(disk)
        .with_max_temp_directory_size(u64::MAX)
        .build_arc()?;
    let mut config = SessionConfig::new().with_batch_size(BATCH_ROWS).with_target_partitions(of.threads());
    let options = &mut config.options_mut().execution;
    // For merging what was written.
    options.sort_spill_reservation_bytes = (memory / 8).min(options.sort_spill_reservation_bytes);
    Ok(Arc::new(TaskContext::new(None, "query".into(), config, HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new(), runtime)))
}

/// Rows of a query, a part of which comes before the first one is given: what fails for want of memory mostly does so until then, and the row executor can still run it.
struct Gathered {
    rows: Rows,
    /// Bytes of that part.
    most: usize,
    has_begun: bool,
}

impl AnalyticsRows for Gathered {
    fn fill(&mut self, row: &mut Vec<Value>) -> SqlResult<bool> {
        if !std::mem::replace(&mut self.has_begun, true) {
            let mut bytes = 0;
            while bytes < self.most
                && let Some(batch) = self.rows.next_batch()?
            {
                bytes += batch.get_array_memory_size();
                self.rows.ready.push_back(batch);
            }
        }
        self.rows.fill(row)
    }
}

/// Rows of a query that runs.
struct Rows {
    /// `None` at the end.
    batches: Option<Receiver<Result<RecordBatch>>>,
    task: Option<JoinHandle<()>>,
    kinds: Arc<[Kind]>,
    running: Running,
    /// Batches that are there.
    ready: VecDeque<RecordBatch>,
    /// The next row of the first of them.
    at: usize,
}

impl Rows {
    fn fill(&mut self, row: &mut Vec<Value>) -> SqlResult<bool> {
        loop {
            let Some(batch) = self.ready.front() else {
                match self.next_batch()? {
                    Some(batch) => self.ready.push_back(batch),
                    None => return Ok(false),
                }
                continue;
            };
            if self.at == batch.num_rows() {
                self.at = 0;
                self.ready.pop_front();
                continue;
            }
            row.clear();
            for (array, kind) in batch.columns().iter().zip(self.kinds.iter()) {
                let view = View::new(array, *kind).map_err(|error| from_datafusion(&error))?;
                row.push(ValueRef::to_owned(&view.value(self.at)));
            }
            self.at += 1;
            return Ok(true);
        }
    }

    /// The next batch; `None` at the end.
    fn next_batch(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(batches) = &mut self.batches else { return Ok(None) };
        match wait(batches.recv()) {
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => {
                let error = self.running.failure.told(&error);
                self.end();
                Err(error)
            }
            None => {
                // A thread that has panicked said nothing.
                let ended = self.task.take().map(wait);
                self.end();
                match ended {
                    Some(Err(_)) => Err(SqlError::new("XX000", "a thread of the query ended before it")),
                    _ => Ok(None),
                }
            }
        }
    }
}

impl Rows {
    /// Ends what still runs, and waits for it.
    fn end(&mut self) {
        self.batches = None;
        if let Some(task) = self.task.take() {
            task.abort();
            drop(wait(task));
        }
        // Tasks that it has begun end at their next batch.
        let mut looks = 0;
        while !self.running.failure.is_alone() && looks < LOOKS_MAX {
            looks += 1;
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.end();
    }
}

/// Wakes a thread that waits.
struct Waiting(Thread);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for something on this thread, whatever it is: one of a program that has a runtime of its own, too.
fn wait<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Waiting(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park_timeout(LOOK),
        }
    }
}
