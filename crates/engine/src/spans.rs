//! What is told through `tracing`: spans of what takes long, and events that an operator should know of.
//!
//! Invariants:
//! - all of it is named here and in `docs/live-view.md`, under the target `pagefold`;
//! - where nobody listens, each costs one load and one branch;
//! - no span or event has a value of a row or of a parameter.

use std::fmt::{Debug, Display};
use tracing::{Level, Span, debug_span, error, event, info_span, warn};

/// The target of all spans and events.
const TARGET: &str = "pagefold";

/// A utility, from its begin to its end: its name, such as `reorg orders`.
pub(crate) fn utility(name: &str) -> Span {
    info_span!(target: TARGET, "utility", name)
}

/// A phase of a utility begins.
pub(crate) fn phase(of: &Span, name: &str, total: Option<u64>, unit: &str) {
    event!(target: TARGET, parent: of, Level::INFO, name, total, unit, "phase");
}

/// Recovery of a database that is opened: redo from `redo` on. Of what was redone it learns at its end, by [`recovered`].
pub(crate) fn recovery(directory: &impl Debug, redo: u64) -> Span {
    info_span!(target: TARGET, "recovery", ?directory, redo, end = tracing::field::Empty, records = tracing::field::Empty, rolled_back = tracing::field::Empty)
}

/// The log was read to its `end`: records redone, transactions that are taken back.
pub(crate) fn recovered(span: &Span, end: u64, records: u64, rolled_back: usize) {
    span.record("end", end).record("records", records).record("rolled_back", rolled_back);
}

/// A checkpoint, while it is written.
pub(crate) fn checkpoint(log_bytes: u64) -> Span {
    info_span!(target: TARGET, "checkpoint", log_bytes)
}

/// A transaction waits for a lock.
pub(crate) fn lock_wait(transaction: u64, resource: &impl Debug) -> Span {
    debug_span!(target: TARGET, "lock_wait", transaction, ?resource)
}

/// A transaction gives way to others.
pub(crate) fn deadlock(victim: u64, cycle: usize) {
    warn!(target: TARGET, victim, cycle, "deadlock");
}

/// A table or index is found to be damaged.
pub(crate) fn damage(object: &impl Display, reason: &impl Display) {
    error!(target: TARGET, %object, %reason, "damage");
}

/// Nothing more is written until the database is opened again.
pub(crate) fn poisoned(directory: &impl Debug, reason: &impl Display) {
    error!(target: TARGET, ?directory, %reason, "writing has ended");
}

/// A copy is taken.
pub(crate) fn copy(directory: &impl Debug) -> Span {
    info_span!(target: TARGET, "copy", ?directory)
}
