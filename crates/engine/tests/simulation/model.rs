//! What must be in the database: what was acknowledged, and what running transactions see.
//!
//! A commit that need not be durable yet may be lost by a crash, whole and in order: so a promise is a list of states, and anything from the last one that must be there on will do.

use crate::alterations::{Altered, as_altered};
use crate::values::{Row, number, unique};
use pagefold_engine::database::Durability;
use pagefold_types::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a table holds: rows by number.
pub(crate) type Rows = BTreeMap<i64, Row>;
/// What the database holds.
pub(crate) type State = [Rows; 2];

/// What a crash left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was written: the end of a process.
    Written,
    /// What was synced, and of the rest anything.
    Durable,
}

/// What may be found after a crash now.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    states: Vec<State>,
    /// The first state that may be found after the end of the process, after a crash of the machine.
    written: usize,
    durable: usize,
}

impl Default for Promise {
    fn default() -> Promise {
        Promise { states: vec![State::default()], written: 0, durable: 0 }
    }
}

impl Promise {
    /// Everything that was acknowledged.
    pub(crate) fn last(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// A commit begins.
    pub(crate) fn begin(&mut self, state: State) {
        self.states.push(state);
    }

    /// It was refused.
    pub(crate) fn refuse(&mut self) {
        self.states.pop();
    }

    /// Everything up to the last state was acknowledged so.
    pub(crate) fn settle(&mut self, durability: Durability) {
        let last = self.states.len() - 1;
        match durability {
            Durability::Off => {}
            Durability::Relaxed => self.written = last,
            Durability::Durable => (self.written, self.durable) = (last, last),
        }
        self.states.drain(..self.durable);
        (self.written, self.durable) = (self.written - self.durable, 0);
    }

    /// Opened again: what has been seen once is never lost.
    pub(crate) fn found(&mut self, found: State) {
        *self = Promise { states: vec![found], written: 0, durable: 0 };
    }

    pub(crate) fn allows(&self, found: &State, left: Left) -> bool {
        let first = if left == Left::Written { self.written } else { self.durable };
        self.states[first..].contains(found)
    }

    /// What differs from the last state, in a few words.
    pub(crate) fn difference(&self, found: &State) -> String {
        let mut words = Vec::new();
        for (table, (is, should)) in found.iter().zip(self.last()).enumerate() {
            let numbers: BTreeSet<i64> = is.keys().chain(should.keys()).copied().collect();
            for n in numbers {
                match (is.get(&n), should.get(&n)) {
                    (Some(is), Some(should)) if is == should => {}
                    (Some(is), Some(should)) => {
                        let columns = (0..is.len()).filter(|c| is[*c] != should[*c]);
                        words.extend(columns.map(|c| format!("{table}/{n}: column {c} is {}, not {}", short(&is[c]), short(&should[c]))));
                    }
                    (is, _) => words.push(format!("{table}/{n} is {}", if is.is_some() { "there" } else { "missing" })),
                }
            }
        }
        format!("{} states allowed; against the last: {}", self.states.len(), words.join("; "))
    }
}

/// A value, cut.
pub(crate) fn short(value: &Value) -> String {
    let text = format!("{value:?}");
    if text.len() <= 40 { text } else { format!("{}... ({} characters)", &text[..30], text.len()) }
}

/// What a statement may meet others at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Row(usize, i64),
    Unique(usize, i64),
}

impl Place {
    pub(crate) fn table(self) -> usize {
        let (Place::Row(table, _) | Place::Unique(table, _)) = self;
        table
    }
}

/// What a transaction that makes or drops something has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whole {
    Table(usize),
    /// The name of one that is made and dropped again.
    Name(usize),
}

/// What a transaction has changed: `None` is deleted.
pub(crate) type Overlay = BTreeMap<(usize, i64), Option<Row>>;

/// What is committed, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    pub(crate) state: State,
    /// Number of commits.
    pub(crate) count: u64,
    /// The last commit that changed a row, or gave or took a key.
    changed: HashMap<Place, u64>,
    /// The last commit that made or dropped something of a table.
    defined: [u64; 2],
    /// Numbers of rows that ever had a key: their entries may be there for older snapshots.
    had: HashMap<Place, BTreeSet<i64>>,
}

impl Committed {
    pub(crate) fn of(state: State) -> Committed {
        let mut committed = Committed::default();
        committed.redefine(state);
        committed
    }

    /// A definition has put these rows there. The entries of rows before it may still be there, in the tables that it did not make anew.
    pub(crate) fn redefine(&mut self, state: State) {
        for (table, rows) in state.iter().enumerate() {
            rows.values().for_each(|row| self.note(table, None, row));
        }
        self.state = state;
    }

    /// The state with what a transaction has altered and changed.
    pub(crate) fn with(&self, overlay: &Overlay, alterations: &[Altered]) -> State {
        let mut state = self.state.clone();
        for (table, rows) in state.iter_mut().enumerate().filter(|(table, _)| alterations.iter().any(|altered| altered.table == *table)) {
            rows.values_mut().for_each(|row| *row = as_altered(alterations, table, row));
        }
        for ((table, n), row) in overlay {
            match row {
                Some(row) => drop(state[*table].insert(*n, row.clone())),
                None => drop(state[*table].remove(n)),
            }
        }
        state
    }

    /// The last commit made or dropped something of the table.
    pub(crate) fn defined(&mut self, whole: Whole) {
        if let Whole::Table(table) = whole {
            self.defined[table] = self.count;
        }
    }

    pub(crate) fn defined_since(&self, table: usize, count: u64) -> bool {
        self.defined[table] > count
    }

    pub(crate) fn apply(&mut self, overlay: &Overlay, alterations: &[Altered]) {
        self.count += 1;
        for ((table, n), row) in overlay {
            let before = self.state[*table].get(n).cloned();
            for place in places(*table, *n, &[before.as_ref(), row.as_ref()]) {
                self.changed.insert(place, self.count);
            }
        }
        self.state = self.with(overlay, alterations);
    }

    /// A row has these values, or is about to.
    pub(crate) fn note(&mut self, table: usize, before: Option<&Row>, after: &Row) {
        let to = number(after);
        if let Some(from) = before.map(|row| number(row)).filter(|from| *from != to) {
            // It keeps the entries that it has under its old number.
            for (place, numbers) in &mut self.had {
                if place.table() == table && numbers.contains(&from) {
                    numbers.insert(to);
                }
            }
        }
        for place in places(table, to, &[Some(after)]) {
            self.had.entry(place).or_default().insert(to);
        }
    }

    pub(crate) fn changed_since(&self, place: Place, count: u64) -> bool {
        self.changed.get(&place).is_some_and(|changed| *changed > count)
    }

    /// What a statement may come to that looks for these places: also rows that had a key, under every number that they had.
    pub(crate) fn reach(&self, places: &[Place]) -> BTreeSet<Place> {
        let mut reach: BTreeSet<Place> = places.iter().copied().collect();
        let mut rows = BTreeSet::new();
        for place in places {
            let numbers = self.had.get(place).into_iter().flatten().copied();
            rows.extend(numbers.map(|n| (place.table(), n)));
            if let Place::Row(table, n) = place {
                rows.insert((*table, *n));
            }
        }
        reach.extend(rows.iter().map(|(table, n)| Place::Row(*table, *n)));
        let earlier = self
            .had
            .iter()
            .filter(|(place, numbers)| matches!(place, Place::Row(..)) && numbers.iter().any(|n| rows.contains(&(place.table(), *n))));
        reach.extend(earlier.map(|(place, _)| *place));
        reach
    }
}

/// The places of a row that is changed.
pub(crate) fn places(table: usize, n: i64, rows: &[Option<&Row>]) -> Vec<Place> {
    let keys = rows.iter().flatten().filter_map(|row| unique(row)).map(|u| Place::Unique(table, u));
    keys.chain([Place::Row(table, n)]).collect()
}
