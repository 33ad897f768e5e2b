//! What the hashed side of a join tells the other one: which keys it has. Rows of the other side that have none of them are not read.
//!
//! Invariants:
//! - keys are told when all rows of the hashed side have gone by, or never: then whoever waits goes on without them;
//! - who waits for them is on the other side of that join, which is read when the hashed side is complete: nobody waits for himself.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use pagefold_engine::table_space::IntMembers;
use std::mem::size_of;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Bytes of memory for a key: as it is noted, and as it is asked.
const KEY_BYTES: usize = 4 * size_of::<i64>();

/// `None` as long as nothing is told; none, when nothing will be.
type Told = Option<Option<Arc<IntMembers>>>;

/// Keys that somebody waits for.
#[derive(Clone, Debug)]
pub(crate) struct AwaitedKeys(watch::Receiver<Told>);

impl AwaitedKeys {
    /// Waits until they are told; `None` when they never are.
    pub(crate) async fn told(mut self) -> Option<Arc<IntMembers>> {
        self.0.wait_for(Option::is_some).await.ok()?.clone().flatten()
    }
}

/// Notes the keys in a column of rows that go by.
#[derive(Debug)]
pub(crate) struct KeyNotes {
    column: usize,
    noted: Mutex<Noted>,
    tell: watch::Sender<Told>,
}

#[derive(Debug, Default)]
struct Noted {
    keys: Vec<i64>,
    /// Partitions of rows that have not ended.
    open: usize,
    memory: Option<MemoryReservation>,
    /// There was no memory for all of them.
    given_up: bool,
}

impl KeyNotes {
    /// Of a column; and who waits for its keys.
    pub(crate) fn new(column: usize) -> (KeyNotes, AwaitedKeys) {
        let (tell, told) = watch::channel(None);
        (KeyNotes { column, noted: Mutex::default(), tell }, AwaitedKeys(told))
    }

    /// Does anybody wait?
    pub(crate) fn are_awaited(&self) -> bool {
        self.tell.receiver_count() > 0
    }

    /// Rows come in so many partitions.
    pub(crate) fn of_partitions(self, count: usize) -> Arc<KeyNotes> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).open = count;
        Arc::new(self)
    }

    /// Notes the keys of rows.
    pub(crate) fn note(&self, batch: &RecordBatch, memory: &Arc<dyn MemoryPool>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = &mut *noted;
        let column = batch.columns().get(self.column).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let Some(column) = column.filter(|_| !noted.given_up) else { return noted.give_up() };
        let reservation = noted.memory.get_or_insert_with(|| MemoryConsumer::new("keys of a join").register(memory));
        if reservation.try_grow(KEY_BYTES * column.len()).is_err() {
            return noted.give_up();
        }
        match column.null_count() {
            0 => noted.keys.extend_from_slice(column.values()),
            // NULL has no partner.
            _ => noted.keys.extend(column.iter().flatten()),
        }
    }

    /// A partition has ended: with the last one keys are told.
    pub(crate) fn end(&self) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.open = noted.open.saturating_sub(1);
        if noted.open == 0 {
            let keys = std::mem::take(&mut noted.keys);
            let members = (!noted.given_up).then(|| Arc::new(IntMembers::of(keys)));
            self.tell.send_replace(Some(members));
        }
    }
}

impl Noted {
    fn give_up(&mut self) {
        *self = Noted { open: self.open, given_up: true, ..Noted::default() };
    }
}
