//! The order of the versions of every list, as reads show it.
//!
//! Invariant: when there is an order, every read is one of its prefixes, with what the reader itself had appended behind it.

use super::history::{History, Outcome, Step};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A read that no order explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An element that nobody appended there.
    Garbage,
    /// An element twice.
    Twice,
    /// What the reader had appended is not there, or not last.
    NotOwn,
    /// An element of a transaction that was rolled back.
    G1a,
    /// A state in the middle of a transaction.
    G1b,
    /// Two reads, neither of which begins with the other.
    NoOrder,
    /// A committed element that the last read does not have.
    Lost,
}

/// What reads show.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// The elements of every list, first to last.
    pub(super) lists: HashMap<u64, Vec<u64>>,
    /// Who appended an element.
    pub(super) writers: HashMap<u64, usize>,
    /// Which transactions are committed, those in doubt decided.
    pub(super) committed: Vec<bool>,
    /// Reader, key, and how many elements others had made: what a transaction first saw of a list.
    pub(super) reads: Vec<(usize, u64, usize)>,
}

/// What went wrong, and for whom.
pub(super) type Refused = (Fault, String);

pub(super) fn orders(history: &History) -> Result<Orders, Refused> {
    let mut orders = Orders { committed: vec![false; history.len()], ..Orders::default() };
    let mut keys: HashMap<u64, u64> = HashMap::new();
    for (number, transaction) in history.iter().enumerate() {
        for (key, element) in transaction.appends() {
            assert!(orders.writers.insert(element, number).is_none(), "element {element} is not unique");
            keys.insert(element, key);
        }
    }
    let mut reads = Vec::new();
    for (number, transaction) in history.iter().enumerate() {
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for step in &transaction.steps {
            match step {
                Step::Append(key, element) => own.entry(*key).or_default().push(*element),
                Step::Read(key, list) => {
                    let refused = |fault| Err((fault, format!("transaction {number}: {transaction:?}: list {key}")));
                    let mine = own.get(key).map_or(&[][..], Vec::as_slice);
                    let Some(others) = list.strip_suffix(mine) else { return refused(Fault::NotOwn) };
                    if list.iter().collect::<HashSet<_>>().len() != list.len() {
                        return refused(Fault::Twice);
                    }
                    if list.iter().any(|element| keys.get(element) != Some(key)) {
                        return refused(Fault::Garbage);
                    }
                    reads.push((number, *key, others));
                }
            }
        }
    }
    for (_, key, others) in &reads {
        let longest = orders.lists.entry(*key).or_default();
        if longest.len() < others.len() {
            *longest = others.to_vec();
        }
    }
    // A transaction in doubt whose elements are seen is committed.
    let seen: HashSet<usize> = orders.lists.values().flatten().map(|element| orders.writers[element]).collect();
    for (number, transaction) in history.iter().enumerate() {
        orders.committed[number] = match transaction.outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::InDoubt => seen.contains(&number),
        };
    }
    for (number, key, others) in reads {
        let refused =
            |fault| Err((fault, format!("transaction {number} reads {others:?} in list {key}; the order is {:?}", orders.lists[&key])));
        if let Some(writer) = others.iter().map(|element| orders.writers[element]).find(|writer| !orders.committed[*writer]) {
            let (reader, writing) = (&history[number], &history[writer]);
            let fault = if writer == number { Fault::NotOwn } else { Fault::G1a };
            return Err((fault, format!("transaction {number} reads {others:?} in list {key}: {reader:?}, of {writer}: {writing:?}")));
        }
        if !orders.lists[&key].starts_with(others) {
            return refused(Fault::NoOrder);
        }
        // The last element of a version is the last one that its transaction appended there.
        if let Some(last) = others.last() {
            let appended = history[orders.writers[last]].appends().rev().find(|(other, _)| *other == key);
            if appended.is_some_and(|(_, element)| element != *last) {
                return refused(Fault::G1b);
            }
        }
        orders.reads.push((number, key, others.len()));
    }
    for (number, transaction) in history.iter().enumerate().filter(|(number, _)| orders.committed[*number]) {
        for (key, element) in transaction.appends() {
            if !orders.lists.get(&key).is_some_and(|list| list.contains(&element)) {
                return Err((Fault::Lost, format!("element {element} of transaction {number} is not in list {key}: {transaction:?}")));
            }
        }
    }
    Ok(orders)
}
