//! What pool and object accounting counts: getpages, reads by kind, writes, expansions, CPU.
//!
//! Getpages and look-ups are counted on every access, so they are sharded by thread, those of one thread in one cache line; the rest is rare. A pool's counters are the sums over its objects.
//!
//! What is done to rows and entries is counted, too: from that it is foretold what a workload would take of the processors under another method (`docs/advice.md`).

use std::cell::Cell;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 8;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD.with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        cell.get()
    })
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    getpages: AtomicU64,
    lookups: AtomicU64,
    snapshot_lookups: AtomicU64,
    values_read: AtomicU64,
}

/// Counters that threads increase without sharing a cache line.
#[derive(Debug, Default)]
pub(crate) struct Accesses([Shard; SHARDS]);

impl Accesses {
    /// A page was asked for.
    #[inline]
    pub(crate) fn add_one(&self) {
        self.0[shard()].getpages.fetch_add(1, Ordering::Relaxed);
    }

    /// A row of which so many columns are wanted was asked for, or a leaf for reading.
    #[inline]
    pub(crate) fn add_lookup(&self, values: usize) {
        let shard = &self.0[shard()];
        shard.lookups.fetch_add(1, Ordering::Relaxed);
        shard.values_read.fetch_add(values as u64, Ordering::Relaxed);
    }

    /// The same, as a snapshot sees the row: its versions are asked first.
    #[inline]
    pub(crate) fn add_snapshot_lookup(&self, values: usize) {
        let shard = &self.0[shard()];
        shard.snapshot_lookups.fetch_add(1, Ordering::Relaxed);
        shard.values_read.fetch_add(values as u64, Ordering::Relaxed);
    }

    /// So many rows at once.
    #[inline]
    pub(crate) fn add_snapshot_lookups(&self, rows: usize, values_of_each: usize) {
        let shard = &self.0[shard()];
        shard.snapshot_lookups.fetch_add(rows as u64, Ordering::Relaxed);
        shard.values_read.fetch_add((rows * values_of_each) as u64, Ordering::Relaxed);
    }

    fn sum(&self, counter: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.0.iter().map(|shard| counter(shard).load(Ordering::Relaxed)).sum()
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Live counters of one object.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            pub(crate) getpages: Accesses,
            $(pub(crate) $name: AtomicU64,)*
        }

        /// Counters of a pool or object at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CounterValues {
            /// Pages asked for.
            pub getpages: u64,
            /// Rows asked for one by one that are the same for every snapshot; of an index leaves, for reading.
            pub lookups: u64,
            /// Rows asked for one by one of which versions had to be asked.
            pub snapshot_lookups: u64,
            /// Values of those rows that were wanted.
            pub values_read: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn values(&self) -> CounterValues {
                CounterValues {
                    getpages: self.getpages.sum(|shard| &shard.getpages),
                    lookups: self.getpages.sum(|shard| &shard.lookups),
                    snapshot_lookups: self.getpages.sum(|shard| &shard.snapshot_lookups),
                    values_read: self.getpages.sum(|shard| &shard.values_read),
                    $($name: self.$name.load(Ordering::Relaxed),)*
                }
            }
        }

        impl CounterValues {
            /// Every counter with its name.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![("getpages", self.getpages), ("lookups", self.lookups), ("snapshot_lookups", self.snapshot_lookups), ("values_read", self.values_read), $((stringify!($name), self.$name),)*]
            }
        }

        impl AddAssign for CounterValues {
            fn add_assign(&mut self, other: CounterValues) {
                self.getpages += other.getpages;
                self.lookups += other.lookups;
                self.snapshot_lookups += other.snapshot_lookups;
                self.values_read += other.values_read;
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Pages the asking thread read itself.
    synchronous_reads,
    /// Sequential prefetch: requests.
    sequential_prefetch_requests,
    /// Sequential prefetch: I/O operations.
    sequential_prefetch_ios,
    /// Sequential prefetch: pages read.
    sequential_prefetch_pages,
    /// Dynamic prefetch: requests.
    dynamic_prefetch_requests,
    /// Dynamic prefetch: I/O operations.
    dynamic_prefetch_ios,
    /// Dynamic prefetch: pages read.
    dynamic_prefetch_pages,
    /// List prefetch: requests.
    list_prefetch_requests,
    /// List prefetch: I/O operations.
    list_prefetch_ios,
    /// List prefetch: pages read.
    list_prefetch_pages,
    /// Writes that an asking thread waited for.
    synchronous_writes,
    /// Writes by the deferred-write engine.
    deferred_writes,
    /// Pages written.
    pages_written,
    /// Folded leaves expanded.
    expansions,
    /// Leaves folded.
    compressions,
    /// CPU of asking threads in reads and expansion, nanoseconds.
    asking_cpu_ns,
    /// CPU of background threads, nanoseconds.
    background_cpu_ns,
    /// Time asking threads waited for reads, nanoseconds.
    read_wait_ns,
    /// Sleeps for a page latch that others had.
    latch_sleeps,
    /// Rows that scans by pages came to.
    rows_scanned,
    /// Values of those rows that were wanted.
    values_scanned,
    /// Rows, or entries, inserted one by one.
    inserts,
    /// Rows, or entries, inserted together with others.
    batch_inserts,
    /// Rows changed.
    updates,
    /// Rows, or entries, deleted.
    deletes,
}

impl CounterValues {
    /// Getpages that found their page in memory.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.getpages.saturating_sub(self.synchronous_reads)
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
