//! Progress of long work, and the wish to stop it.

/// What a long operation tells, and asks.
pub trait Progress: Sync {
    /// A phase begins: "sampling", "loading lineitem", "building index pk". `total` in `unit`s, when it is known.
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit);
    /// So much more of the phase is done.
    fn advance(&self, n: u64);
    /// The phase has ended.
    fn finish(&self);
    /// Should the operation stop? It then rolls back and returns `Interrupted`.
    fn interrupted(&self) -> bool;
}

/// What progress is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
    /// Pages.
    Pages,
    /// Partitions of a table.
    Partitions,
}

/// Tells nobody, and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        false
    }
}
