//! Background threads: prefetch and deferred write.
//!
//! Invariants:
//! - jobs hold data sets by file id only, so a dropped data set is never kept alive by the queue for long;
//! - a prefetch that fails says nothing: the asking thread meets the error when it reads the page itself;
//! - a page that is being prefetched is claimed, so an asking thread waits for it instead of reading it again.

use super::leaf_io;
use super::manager::{Access, BufferManager, Claim};
use crate::data_set::DataSet;
use crate::frames::add;
use pagefold_io::read_exact_at;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// What a prefetch is for; each kind is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// All pages in order.
    Sequential,
    /// Index leaves in key order that lie in page order too.
    Dynamic,
    /// Pages of RIDs that an index gave, sorted.
    List,
}

#[derive(Debug)]
enum Job {
    Read {
        file_id: u32,
        kind: Prefetch,
        pages: Vec<Range<u32>>,
        position: Option<Arc<AtomicU32>>,
    },
    Write {
        file_id: u32,
    },
    /// Memory for frames that are wanted next.
    TouchAhead,
}

impl Job {
    fn file_id(&self) -> Option<u32> {
        match self {
            Job::Read { file_id, .. } | Job::Write { file_id } => Some(*file_id),
            Job::TouchAhead => None,
        }
    }
}

/// Requests that wait; more are dropped, as the asking thread reads what was not prefetched.
const QUEUE_MAX: usize = 256;

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: Vec<u32>,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    done: Condvar,
}

/// The queue and its threads.
#[derive(Debug, Default)]
pub(super) struct Background {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    /// Starts the threads of a manager.
    pub(super) fn start(manager: &Arc<BufferManager>, threads: usize) {
        let background = manager.background();
        for number in 0..threads {
            let weak = Arc::downgrade(manager);
            let shared = Arc::clone(&background.shared);
            let spawned = std::thread::Builder::new().name(format!("pagefold-io-{number}")).spawn(move || work(&weak, &shared));
            // Without background threads everything still works, only slower.
            if let Ok(thread) = spawned {
                background.threads.lock().push(thread);
            }
        }
    }

    /// Adds a job, unless one like it waits.
    fn push(&self, job: Job, is_like_it: impl Fn(&Job) -> bool) {
        if self.threads.lock().is_empty() {
            return;
        }
        let mut queue = self.shared.queue.lock();
        if queue.stopped || queue.jobs.len() >= QUEUE_MAX || queue.jobs.iter().any(is_like_it) {
            return;
        }
        match job {
            // It is short, and wanted soon.
            Job::TouchAhead => queue.jobs.push_front(job),
            Job::Read { .. } | Job::Write { .. } => queue.jobs.push_back(job),
        }
        self.shared.arrived.notify_one();
    }

    /// Asks for the dirty pages of a data set to be written.
    pub(super) fn request_write(&self, file_id: u32) {
        self.push(Job::Write { file_id }, |job| matches!(job, Job::Write { file_id: other } if *other == file_id));
    }

    /// Asks for memory for the next frames.
    pub(super) fn request_touch(&self) {
        self.push(Job::TouchAhead, |job| matches!(job, Job::TouchAhead));
    }

    /// Forgets the jobs of a data set, and waits for the running ones.
    pub(super) fn finish(&self, file_id: u32) {
        let mut queue = self.shared.queue.lock();
        queue.jobs.retain(|job| job.file_id() != Some(file_id));
        while queue.running.contains(&file_id) {
            self.shared.done.wait(&mut queue);
        }
    }

    /// Ends the threads.
    pub(super) fn stop(&self) {
        {
            let mut queue = self.shared.queue.lock();
            queue.stopped = true;
            queue.jobs.clear();
        }
        self.shared.arrived.notify_all();
        for thread in self.threads.lock().drain(..) {
            // The last reference to the manager may be dropped by one of its own threads.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn work(manager: &Weak<BufferManager>, shared: &Shared) {
    loop {
        let job = {
            let mut queue = shared.queue.lock();
            loop {
                if queue.stopped {
                    return;
                }
                if let Some(job) = queue.jobs.pop_front() {
                    queue.running.extend(job.file_id());
                    break job;
                }
                shared.arrived.wait(&mut queue);
            }
        };
        let file_id = job.file_id();
        if let Some(manager) = manager.upgrade() {
            manager.run(job);
        }
        let mut queue = shared.queue.lock();
        if let Some(at) = queue.running.iter().position(|f| Some(*f) == file_id) {
            queue.running.swap_remove(at);
        }
        shared.done.notify_all();
    }
}

impl BufferManager {
    /// Asks for pages to be read in the background. `pages` are ranges in ascending order; each I/O moves at most `bytes_per_io` bytes on disk. Pages below
    /// `position`, which the asking thread moves on, are no longer wanted.
    pub fn prefetch(&self, data_set: &DataSet, kind: Prefetch, pages: Vec<Range<u32>>, position: Option<&Arc<AtomicU32>>) {
        let counters = &data_set.counters;
        let requests = match kind {
            Prefetch::Sequential => &counters.sequential_prefetch_requests,
            Prefetch::Dynamic => &counters.dynamic_prefetch_requests,
            Prefetch::List => &counters.list_prefetch_requests,
        };
        add(requests, 1);
        let count = data_set.page_count();
        let missing = pages
            .iter()
            .any(|range| (range.start..range.end.min(count)).any(|page| !data_set.translation.get_or_make(page).state().resident));
        if missing {
            let job = Job::Read { file_id: data_set.file_id(), kind, pages, position: position.cloned() };
            self.background().push(job, |_| false);
        }
    }

    fn run(&self, job: Job) {
        let Some(file_id) = job.file_id() else { return self.arena.touch_ahead() };
        let Some(data_set) = self.data_set(file_id) else { return };
        let cpu = self.clock.thread_cpu();
        match job {
            Job::Read { kind, pages, position, .. } => {
                let per_io = (self.cluster_buffers.buffer_bytes() / data_set.page_bytes()) as u32;
                for range in pages {
                    let end = range.end.min(data_set.page_count());
                    let mut page = range.start;
                    while page < end {
                        if let Some(position) = &position {
                            page = page.max(position.load(Ordering::Relaxed));
                        }
                        page = self.prefetch_run(&data_set, kind, page.min(end), end.min(page.saturating_add(per_io)));
                    }
                }
            }
            // A failure has poisoned the data set; the next one who writes meets it.
            Job::Write { .. } => drop(self.write_dirty(&data_set)),
            // Of no data set: done above.
            Job::TouchAhead => {}
        }
        let spent = self.clock.thread_cpu().saturating_sub(cpu);
        add(&data_set.counters.background_cpu_ns, spent.as_nanos() as u64);
    }

    /// Reads the first run of missing pages in `from..to` with one I/O; returns where to go on.
    fn prefetch_run(&self, data_set: &DataSet, kind: Prefetch, from: u32, to: u32) -> u32 {
        let Some(first) = (from..to).find(|page| data_set.translation.get_or_make(*page).claim()) else { return to };
        let mut claims = vec![Claim(Some(data_set.translation.get_or_make(first)))];
        for page in first + 1..to {
            let word = data_set.translation.get_or_make(page);
            if !word.claim() {
                break;
            }
            claims.push(Claim(Some(word)));
        }
        let next = first + claims.len() as u32;
        let page_bytes = data_set.page_bytes();
        let mut buffer = self.cluster_buffers.take();
        let bytes = &mut buffer[..claims.len() * page_bytes];
        let offset = u64::from(first) * page_bytes as u64;
        let read = data_set.file().is_ok_and(|file| read_exact_at(file.as_ref(), bytes, offset).is_ok());
        if !read {
            return next;
        }
        let (ios, pages) = match kind {
            Prefetch::Sequential => (&data_set.counters.sequential_prefetch_ios, &data_set.counters.sequential_prefetch_pages),
            Prefetch::Dynamic => (&data_set.counters.dynamic_prefetch_ios, &data_set.counters.dynamic_prefetch_pages),
            Prefetch::List => (&data_set.counters.list_prefetch_ios, &data_set.counters.list_prefetch_pages),
        };
        let access = if kind == Prefetch::Sequential { Access::Scan } else { Access::Random };
        add(ios, 1);
        add(pages, claims.len() as u64);
        for ((claim, disk), number) in claims.into_iter().zip(bytes.chunks_exact(page_bytes)).zip(first..) {
            // Pages that hold no rows or entries are not cached.
            let Ok(second) = leaf_io::verify(data_set, number, disk) else { continue };
            let pool = &data_set.pools[usize::from(second)];
            let Ok(unit) = self.acquire_frame(pool, access, None) else { continue };
            // SAFETY: the frame has just been acquired and the page is claimed: nobody else knows of it.
            #[expect(unsafe_code, reason = "filling a frame before it is published")]
            let into = unsafe { self.frame(data_set, unit, second).as_mut_slice() };
            if leaf_io::into_frame(data_set, number, disk, into).is_err() {
                pool.push_free(unit);
                continue;
            }
            let word = data_set.translation.get_or_make(number);
            self.own(unit, data_set, number);
            self.publish(data_set, (unit, second), word, access, 1);
            claim.keep();
            word.release_exclusive();
        }
        next
    }
}
