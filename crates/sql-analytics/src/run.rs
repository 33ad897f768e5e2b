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
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
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
/// The least memory that a query is run with.
const MEMORY_MIN: usize = 1 << 20;

/// Runs queries by DataFusion's operators.
#[derive(Debug, Default)]
pub struct DataFusion {
    threads: Option<usize>,
    runtime: OnceLock<Option<Runtime>>,
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
        DataFusion { threads: Some(threads.max(1)), runtime: OnceLock::new() }
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
        // Without threads the row executor does it.
        let Some(runtime) = self.runtime() else { return Ok(None) };
        let running = Running { failure: Failure::default(), interrupt: resources.interrupt.clone() };
        let plan = match (Planner { running: &running, threads: self.threads() }).whole(&query) {
            Ok(plan) => plan,
            // What DataFusion does not take the row executor does.
            Err(_) => return running.failure.kept().map_or(Ok(None), Err),
        };
        let context = context(resources, &running, self.threads()).map_err(|error| from_datafusion(&error))?;
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
        Ok(Some(Box::new(Rows { batches: Some(batches), task: Some(task), kinds, running, batch: None, at: 0 })))
    }
}

/// What operators take memory from, and files.
fn context(resources: &Resources, running: &Running, threads: usize) -> Result<Arc<TaskContext>> {
    let memory = resources.memory_bytes.max(MEMORY_MIN);
    let files = Files { scratch: resources.scratch.clone(), failure: running.failure.clone() };
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Custom(Arc::new(files)));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_disk_manager_builder(disk)
        .with_max_temp_directory_size(u64::MAX)
        .build_arc()?;
    let mut config = SessionConfig::new().with_batch_size(BATCH_ROWS).with_target_partitions(threads);
    let options = &mut config.options_mut().execution;
    options.sort_spill_reservation_bytes = (memory / 32).min(options.sort_spill_reservation_bytes);
    Ok(Arc::new(TaskContext::new(None, "query".into(), config, HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new(), runtime)))
}

/// Rows of a query that runs.
struct Rows {
    batches: Option<Receiver<Result<RecordBatch>>>,
    task: Option<JoinHandle<()>>,
    kinds: Arc<[Kind]>,
    running: Running,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
}

impl AnalyticsRows for Rows {
    fn fill(&mut self, row: &mut Vec<Value>) -> SqlResult<bool> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.at < batch.num_rows()) {
                row.clear();
                for (array, kind) in batch.columns().iter().zip(self.kinds.iter()) {
                    let view = View::new(array, *kind).map_err(|error| from_datafusion(&error))?;
                    row.push(ValueRef::to_owned(&view.value(self.at)));
                }
                self.at += 1;
                return Ok(true);
            }
            let Some(batches) = &mut self.batches else { return Ok(false) };
            match wait(batches.recv()) {
                Some(Ok(batch)) => (self.batch, self.at) = (Some(batch), 0),
                Some(Err(error)) => {
                    let error = self.running.failure.told(&error);
                    self.end();
                    return Err(error);
                }
                None => {
                    // A thread that has panicked said nothing.
                    let ended = self.task.take().map(wait);
                    self.end();
                    return match ended {
                        Some(Err(_)) => Err(SqlError::new("XX000", "a thread of the query ended before it")),
                        _ => Ok(false),
                    };
                }
            }
        }
    }
}

impl Rows {
    /// Ends what still runs, and waits for it.
    fn end(&mut self) {
        (self.batches, self.batch) = (None, None);
        if let Some(task) = self.task.take() {
            task.abort();
            drop(wait(task));
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
