//! What transactions did and saw.

/// What a transaction does with a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It read this list under a key.
    Read(u64, Vec<u64>),
    /// It appended an element to the list under a key.
    Append(u64, u64),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    /// Rolled back, or cut off by a crash before its commit was asked for.
    Aborted,
    /// A crash cut the call of its commit off.
    InDoubt,
}

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) steps: Vec<Step>,
    pub(super) outcome: Outcome,
    /// A moment before it began. No two moments of a history are the same.
    pub(super) begun: u64,
    /// A moment after it had ended.
    pub(super) ended: u64,
}

impl Transaction {
    pub(super) fn appends(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Append(key, element) => Some((*key, *element)),
            Step::Read(..) => None,
        })
    }
}

/// A history; whoever commits last has read every list.
pub(super) type History = Vec<Transaction>;
