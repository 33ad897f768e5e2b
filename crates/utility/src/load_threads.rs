//! The threads of LOAD: one reads and packs rows, some encode them, one stores them and collects keys.
//!
//! Invariants:
//! - batches are stored in the order of the source, whatever thread encoded them, so a load gives the same bytes with any number of threads;
//! - no more batches exist than the queues hold: memory is bounded however the threads are scheduled;
//! - whoever fails hangs up, which ends the others.

use crate::error::no_thread;
use crate::{Error, Result};
use pagefold_codec::page::PreparedRows;
use pagefold_engine::table_space::LoadEncoder;
use pagefold_interchange::{InterchangeError, Packer, Source};
use pagefold_types::{PackedRow, PackedRows};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// Batches that wait between two threads.
pub(crate) const BATCHES_WAITING: usize = 4;

/// Threads that encode, at most, unless told otherwise: more than the one that reads can keep busy.
const ENCODERS_MAX: usize = 4;

/// Rows, and what was made of them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    rows: PackedRows,
    encoded: Encoded,
}

#[derive(Debug, Default)]
enum Encoded {
    #[default]
    Nothing,
    /// What is stored of the rows, and by row its form and where that ends; nothing of a row that is stored as it is.
    Records {
        bytes: Vec<u8>,
        ends: Vec<(u16, usize)>,
    },
    Columns(PreparedRows),
}

impl Batch {
    fn encode(rows: PackedRows, encoder: &LoadEncoder<'_>) -> Batch {
        let encoded = match encoder {
            LoadEncoder::Records(encoder) => {
                let (mut bytes, mut ends) = (Vec::with_capacity(rows.record_bytes() / 2), Vec::with_capacity(rows.len()));
                for row in rows.iter() {
                    let form = match row {
                        PackedRow::Record(record) => encoder.append(record, &mut bytes),
                        PackedRow::Wide(_) => 0,
                    };
                    ends.push((form, bytes.len()));
                }
                Encoded::Records { bytes, ends }
            }
            LoadEncoder::Columns(preparer) => {
                let records = rows.iter().map(|row| if let PackedRow::Record(record) = row { record } else { &[] });
                Encoded::Columns(preparer.prepare(records))
            }
        };
        Batch { rows, encoded }
    }

    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &PackedRows {
        &self.rows
    }

    /// The rows taken apart, if they are to lie by column.
    pub(crate) fn columns(&self) -> Option<&PreparedRows> {
        if let Encoded::Columns(rows) = &self.encoded { Some(rows) } else { None }
    }

    /// Form and stored bytes of each row, in order; form 0, and nothing, of one that is stored as it is.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let (bytes, ends) = if let Encoded::Records { bytes, ends } = &self.encoded { (&bytes[..], &ends[..]) } else { (&[][..], &[][..]) };
        let mut start = 0;
        let encoded = ends.iter().map(move |(form, end)| (*form, &bytes[std::mem::replace(&mut start, *end)..*end]));
        encoded.chain(std::iter::repeat((0, &[][..])))
    }
}

/// Batches in the order of the source: each is promised first, and comes when it is encoded.
pub(crate) struct Batches {
    promised: Receiver<Receiver<Result<Batch>>>,
    empty: SyncSender<PackedRows>,
}

impl Batches {
    /// The next batch; `None` behind the last.
    pub(crate) fn next(&self) -> Option<Result<Batch>> {
        // Only a thread that panics breaks its promise; the scope passes that on.
        self.promised.recv().ok().map(|promise| promise.recv().unwrap_or(Err(Error::Interrupted)))
    }

    /// Gives the memory of a batch back.
    pub(crate) fn reuse(&self, batch: Batch) {
        let _ = self.empty.try_send(batch.rows);
    }
}

/// Rows to encode, and where to send them then.
type Work = (PackedRows, SyncSender<Result<Batch>>);

/// How many threads encode: `wanted`; if that is 0, as many as there are processors, but at most four.
fn encoder_count(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(ENCODERS_MAX),
        wanted => wanted,
    }
}

/// Calls `store` with the batches of a source, which other threads read, pack, and (given an encoder) encode.
///
/// # Errors
/// Those of `store`, which gets those of the source.
pub(crate) fn with_batches<R>(
    source: &mut dyn Source,
    packer: &Packer<'_>,
    encoder: Option<&LoadEncoder<'_>>,
    encoders: usize,
    store: impl FnOnce(Batches) -> Result<R>,
) -> Result<R> {
    let encoders = if encoder.is_some() { encoder_count(encoders) } else { 0 };
    let (promise, promised) = sync_channel(BATCHES_WAITING + encoders);
    let (empty, reusable) = sync_channel(BATCHES_WAITING + encoders + 2);
    let (work, waiting) = sync_channel::<Work>(BATCHES_WAITING);
    std::thread::scope(|scope| {
        let waiting = Arc::new(Mutex::new(waiting));
        let (mut started, mut refused) = (0, None);
        for encoder in encoder.iter().cycle().take(encoders) {
            let waiting = Arc::clone(&waiting);
            match Builder::new().spawn_scoped(scope, move || encode_batches(encoder, &waiting)) {
                Ok(_) => started += 1,
                Err(error) => refused = Some(error),
            }
        }
        // Fewer are slower; without any nobody would take the work.
        if let (0, Some(error)) = (started, refused) {
            drop(work);
            return Err(no_thread(&error));
        }
        // Only the threads that encode keep it: without them the one that reads must not wait for room.
        drop(waiting);
        let reader = move || {
            pack_batches(source, packer, &reusable, |rows| {
                let (done, to_come) = sync_channel(1);
                // The other side hangs up when it has failed.
                if promise.send(to_come).is_err() {
                    return false;
                }
                match rows {
                    Ok(rows) if encoders > 0 => work.send((rows, done)).is_ok(),
                    Ok(rows) => done.send(Ok(Batch { rows, ..Batch::default() })).is_ok(),
                    Err(error) => done.send(Err(error)).is_ok(),
                }
            });
        };
        Builder::new().spawn_scoped(scope, reader).map_err(|error| no_thread(&error))?;
        store(Batches { promised, empty })
    })
}

fn encode_batches(encoder: &LoadEncoder<'_>, waiting: &Mutex<Receiver<Work>>) {
    loop {
        // The lock is held while waiting: the others wait for it instead.
        let work = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((rows, done)) = work else { return };
        // Nobody wants it any more when storing has failed.
        let _ = done.send(Ok(Batch::encode(rows, encoder)));
    }
}

/// Reads and packs; hands batches to `send` until it returns false. The first error is the last thing handed over.
pub(crate) fn pack_batches(
    source: &mut dyn Source,
    packer: &Packer<'_>,
    reusable: &Receiver<PackedRows>,
    mut send: impl FnMut(Result<PackedRows>) -> bool,
) {
    let batches = match source.batches() {
        Ok(batches) => batches,
        Err(error) => {
            send(Err(error.into()));
            return;
        }
    };
    let mut row = 0u64;
    for batch in batches {
        let mut rows = reusable.try_recv().unwrap_or_default();
        rows.clear();
        let packed = batch.and_then(|batch| packer.pack(&batch, &mut rows).map(|()| batch.num_rows() as u64));
        let (outcome, failed) = match packed {
            Ok(count) => {
                row += count;
                (Ok(rows), false)
            }
            // Rows are counted from the start of the source, not of the batch.
            Err(InterchangeError::Value { row: in_batch, error }) => {
                (Err(Error::Row { row: row + in_batch as u64, reason: error.to_string() }), true)
            }
            Err(error) => (Err(error.into()), true),
        };
        if !send(outcome) || failed {
            return;
        }
    }
}
