//! Recording which keys of an index are asked for, while it is used: a key trace (`pagefold_format::key_trace`).
//!
//! What a trace is for is to say how the index would be read with other pages. So of some spans of keys all requests are kept, and of others none: a page of any size that lies within a span is then
//! known as if nothing were left out. A span is long enough for several pages of the largest size. Where an index is too small for that many spans, all of it is recorded, in windows of time.
//!
//! Most requests must cost next to nothing. Each has the number of the leaf that it came to, and a bit for each leaf says whether that lies in a span, as it was when recording began; only then the
//! key is looked at. Requests are counted by one in [`COUNTED_ONE_IN`]. Pages that came later have no bit: there the key decides, always. A page that was given back and taken again elsewhere keeps
//! its bit; if that is none, its requests are missed, and counted.
//!
//! Invariants:
//! - memory is bounded: when what is kept has come to its limit, recording ends by itself;
//! - `on` and `open` are only hints to requests; `state` says under its lock what is kept.

use crate::doubling::{Doubling, segments_for};
use crate::{Error, Result};
use pagefold_format::key_trace::{KeySpan, KeyTrace, TRACED_KEY_BYTES_MAX, spans_have};
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Requests are counted by one in so many, and that one as so many. A prime, so that threads which go from index to index in turn do not count always at the same one.
const COUNTED_ONE_IN: u32 = 61;

/// Requests of a window of time.
const WINDOW_REQUESTS: u64 = 1 << 16;

const WORD_BITS: u32 = 64;
const FIRST_BITS: u32 = 4;

/// How keys are recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// The most bytes that what is kept takes in memory; at most 64 MB.
    pub bytes_max: usize,
    /// Of so many requests one is kept; 1: all.
    pub one_in: u32,
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions { bytes_max: 16 << 20, one_in: 16 }
    }
}

impl RecordOptions {
    pub(crate) const BYTES_MAX: usize = 64 << 20;

    fn check(&self) -> Result<()> {
        if self.one_in == 0 || !(1..=RecordOptions::BYTES_MAX).contains(&self.bytes_max) {
            return Err(Error::Parameter(format!(
                "a key trace of one in {} requests, in {} bytes: the first is 1 or more, the other up to {}",
                self.one_in,
                self.bytes_max,
                RecordOptions::BYTES_MAX
            )));
        }
        Ok(())
    }
}

/// What of an index is recorded.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<KeySpan>,
    /// Of so many spans one is recorded.
    pub(crate) one_in: u32,
    /// Leaves that lie in spans.
    pub(crate) leaves: Vec<u32>,
    /// Pages with greater numbers came later.
    pub(crate) page_count: u32,
    pub(crate) entries: u64,
}

#[derive(Debug, Default)]
struct State {
    spans: Vec<KeySpan>,
    /// Keys: length (u16), bytes.
    kept: Vec<u8>,
    references: usize,
    bytes_max: usize,
    entries: u64,
    begun: Duration,
    elapsed: Option<Duration>,
    full: bool,
    /// Of so many windows one is recorded.
    windows: u64,
}

/// Records the keys of one index.
#[derive(Debug, Default)]
pub(crate) struct KeyRecorder {
    on: AtomicBool,
    /// Is it a window that is recorded?
    open: AtomicBool,
    /// By page number: is it a leaf of a span?
    leaves: Doubling<AtomicU64, FIRST_BITS, { segments_for(FIRST_BITS, u32::MAX / WORD_BITS) }>,
    page_count: AtomicU32,
    /// All of them, and those in recorded windows.
    requests: AtomicU64,
    requests_seen: AtomicU64,
    state: Mutex<State>,
}

thread_local! {
    static REQUESTS: Cell<u32> = const { Cell::new(0) };
}

impl KeyRecorder {
    /// Is something recorded?
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// A descent for this key has come to this leaf.
    #[inline]
    pub(crate) fn note(&self, leaf: u32, key: &[u8], now: impl FnOnce() -> Duration) {
        let counted = REQUESTS.with(|requests| {
            let more = requests.get() + 1;
            requests.set(if more == COUNTED_ONE_IN { 0 } else { more });
            more == COUNTED_ONE_IN
        });
        if counted {
            self.count();
        }
        if self.open.load(Ordering::Relaxed) && self.may_have(leaf) {
            self.keep(key, now);
        }
    }

    #[inline]
    fn may_have(&self, leaf: u32) -> bool {
        let has_bit = |word: &AtomicU64| word.load(Ordering::Relaxed) >> (leaf % WORD_BITS) & 1 == 1;
        leaf >= self.page_count.load(Ordering::Relaxed) || self.leaves.get(leaf / WORD_BITS).is_some_and(has_bit)
    }

    #[cold]
    #[inline(never)]
    fn count(&self) {
        let more = u64::from(COUNTED_ONE_IN);
        let before = self.requests.fetch_add(more, Ordering::Relaxed);
        if self.open.load(Ordering::Relaxed) {
            self.requests_seen.fetch_add(more, Ordering::Relaxed);
        }
        if before / WINDOW_REQUESTS != (before + more) / WINDOW_REQUESTS {
            let windows = self.state.lock().windows.max(1);
            self.open.store(((before + more) / WINDOW_REQUESTS).is_multiple_of(windows), Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&self, key: &[u8], now: impl FnOnce() -> Duration) {
        let key = &key[..key.len().min(TRACED_KEY_BYTES_MAX)];
        let mut state = self.state.lock();
        if state.full || !self.is_on() || !spans_have(&state.spans, key) {
            return;
        }
        if state.kept.len() + 2 + key.len() > state.bytes_max {
            (state.full, state.elapsed) = (true, Some(now().saturating_sub(state.begun)));
            self.on.store(false, Ordering::Relaxed);
            return;
        }
        state.kept.extend_from_slice(&(key.len() as u16).to_le_bytes());
        state.kept.extend_from_slice(key);
        state.references += 1;
    }

    /// Begins to record. What was recorded before and not taken is gone.
    ///
    /// # Errors
    /// When it is recorded already, or the options are out of range.
    pub(crate) fn begin(&self, spans: Spans, options: &RecordOptions, now: Duration) -> Result<()> {
        options.check()?;
        let mut state = self.state.lock();
        if self.is_on() {
            return Err(Error::Busy("its keys are being recorded already".into()));
        }
        self.leaves.all().for_each(|(_, word)| word.store(0, Ordering::Relaxed));
        for leaf in &spans.leaves {
            self.leaves.get_or_make(leaf / WORD_BITS).fetch_or(1 << (leaf % WORD_BITS), Ordering::Relaxed);
        }
        self.page_count.store(spans.page_count, Ordering::Relaxed);
        self.requests.store(0, Ordering::Relaxed);
        self.requests_seen.store(0, Ordering::Relaxed);
        let windows = u64::from(options.one_in / spans.one_in.max(1)).max(1);
        let (bytes_max, entries) = (options.bytes_max, spans.entries);
        *state = State { spans: spans.spans, bytes_max, entries, begun: now, windows, ..State::default() };
        self.open.store(true, Ordering::Relaxed);
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends recording, and gives what there is; none when nothing was recorded.
    pub(crate) fn end(&self, now: Duration) -> Option<KeyTrace> {
        let mut state = self.state.lock();
        let was_on = self.on.swap(false, Ordering::AcqRel);
        if !was_on && !state.full {
            return None;
        }
        let state = std::mem::take(&mut *state);
        let elapsed = state.elapsed.unwrap_or_else(|| now.saturating_sub(state.begun));
        let (keys, references) = numbered(&state.kept, state.references);
        Some(KeyTrace {
            spans: state.spans,
            keys,
            references,
            requests: self.requests.load(Ordering::Relaxed),
            requests_seen: self.requests_seen.load(Ordering::Relaxed),
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            entries: state.entries,
            full: state.full,
        })
    }
}

/// The distinct keys, ascending, and for each key in the order in which they were kept its number.
fn numbered(kept: &[u8], references: usize) -> (Vec<Vec<u8>>, Vec<u32>) {
    let mut found: Vec<(&[u8], u32)> = Vec::with_capacity(references);
    let mut rest = kept;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let Some((key, behind)) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length))) else { break };
        found.push((key, found.len() as u32));
        rest = behind;
    }
    found.sort_unstable();
    let mut numbers = vec![0; found.len()];
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for (key, place) in found {
        if keys.last().is_none_or(|last| last != key) {
            keys.push(key.to_vec());
        }
        numbers[place as usize] = keys.len() as u32 - 1;
    }
    (keys, numbers)
}
