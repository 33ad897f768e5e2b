//! What pool and object accounting counts: getpages, reads by kind, writes, expansions, CPU.
//!
//! Getpages are counted on every access, so they are sharded by thread; the rest is rare. A pool's counters are the sums over its objects.

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
struct Shard(AtomicU64);

/// A counter that threads increase without sharing a cache line.
#[derive(Debug, Default)]
pub(crate) struct ShardedCounter([Shard; SHARDS]);

impl ShardedCounter {
    #[inline]
    pub(crate) fn add_one(&self) {
        self.0[shard()].0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Live counters of one object.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            pub(crate) getpages: ShardedCounter,
            $(pub(crate) $name: AtomicU64,)*
        }

        /// Counters of a pool or object at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CounterValues {
            /// Pages asked for.
            pub getpages: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn values(&self) -> CounterValues {
                CounterValues { getpages: self.getpages.get(), $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl CounterValues {
            /// Every counter with its name.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![("getpages", self.getpages), $((stringify!($name), self.$name),)*]
            }
        }

        impl AddAssign for CounterValues {
            fn add_assign(&mut self, other: CounterValues) {
                self.getpages += other.getpages;
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
