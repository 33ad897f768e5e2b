//! What the steps of two transactions give at a level, by definition.
//!
//! Rows are kept by identity: one that was deleted and inserted again is another row.

use super::programs::{FIRST_ROWS, Op, Outcome};
use pagefold_engine::database::Isolation;
use std::collections::BTreeMap;

type Rows = BTreeMap<u32, (i64, i64)>;

/// What is committed, and by which commit a row was last changed.
#[derive(Clone, Debug, Default)]
struct Committed {
    rows: Rows,
    changed: BTreeMap<u32, u64>,
    commits: u64,
}

#[derive(Clone, Debug, Default)]
struct Running {
    snapshot: Option<Committed>,
    changes: BTreeMap<u32, Option<(i64, i64)>>,
    /// The row and the value that a statement found when it began: it may then have to wait.
    found: Option<(u32, i64)>,
}

/// Both transactions.
#[derive(Debug)]
pub(super) struct Model {
    level: Isolation,
    committed: Committed,
    running: [Running; 2],
    next_row: u32,
}

impl Model {
    pub(super) fn new(level: Isolation) -> Model {
        let rows: Rows = (0..).zip(FIRST_ROWS).collect();
        let next_row = rows.len() as u32;
        Model { level, committed: Committed { rows, ..Committed::default() }, running: Default::default(), next_row }
    }

    pub(super) fn rows(&self) -> Vec<(i64, i64)> {
        let mut rows: Vec<_> = self.committed.rows.values().copied().collect();
        rows.sort_unstable();
        rows
    }

    /// What a transaction sees.
    fn seen(&mut self, who: usize) -> Rows {
        let base = match self.level {
            Isolation::ReadCommitted => &self.committed,
            _ => self.running[who].snapshot.get_or_insert_with(|| self.committed.clone()),
        };
        with(&base.rows, &self.running[who].changes)
    }

    /// What is committed, with what a transaction has changed.
    fn newest(&self, who: usize) -> Rows {
        with(&self.committed.rows, &self.running[who].changes)
    }

    /// A statement begins: it finds its row.
    pub(super) fn begin(&mut self, who: usize, op: Op) {
        let seen = self.seen(who);
        let number = match op {
            Op::Update(number, _) | Op::Add(number, _) | Op::Renumber(number, _) | Op::Delete(number) => number,
            _ => return,
        };
        self.running[who].found = seen.iter().find(|(_, row)| row.0 == number).map(|(id, row)| (*id, row.1));
    }

    /// Has the other changed, without an end, what this statement would change?
    pub(super) fn must_wait(&self, who: usize, op: Op) -> bool {
        let other = &self.running[1 - who].changes;
        let takes = |number: i64| {
            let had = |id: &u32| self.committed.rows.get(id).is_some_and(|row| row.0 == number);
            other.iter().any(|(id, row)| row.is_some_and(|row| row.0 == number) || had(id))
        };
        let found = self.running[who].found.filter(|_| !matches!(op, Op::Insert(..)));
        let row_is_changed = found.is_some_and(|(id, _)| other.contains_key(&id));
        match op {
            Op::Insert(number, _) => takes(number),
            Op::Renumber(_, to) => row_is_changed || (found.is_some() && !self.conflicts(who) && self.is_there(who) && takes(to)),
            Op::Update(..) | Op::Add(..) | Op::Delete(_) => row_is_changed,
            _ => false,
        }
    }

    /// Was the row of the statement changed by a commit since the snapshot?
    fn conflicts(&self, who: usize) -> bool {
        let running = &self.running[who];
        let (Some((id, _)), Some(snapshot)) = (running.found, &running.snapshot) else { return false };
        self.level != Isolation::ReadCommitted && self.committed.changed.get(&id).is_some_and(|by| *by > snapshot.commits)
    }

    fn is_there(&self, who: usize) -> bool {
        self.running[who].found.is_some_and(|(id, _)| self.newest(who).contains_key(&id))
    }

    /// What a statement gives when it has waited.
    pub(super) fn end(&mut self, who: usize, op: Op) -> Outcome {
        let rows = |rows: Rows, number: Option<i64>| {
            let mut rows: Vec<_> = rows.into_values().filter(|row| number.is_none_or(|number| row.0 == number)).collect();
            rows.sort_unstable();
            Outcome::Rows(rows)
        };
        match op {
            Op::Read(number) => rows(self.seen(who), Some(number)),
            Op::ReadAll | Op::ReadByValue | Op::Scan => rows(self.seen(who), None),
            Op::Insert(number, value) => {
                if let Some(refused) = self.taken(who, number) {
                    return refused;
                }
                let id = self.next_row;
                self.next_row += 1;
                self.running[who].changes.insert(id, Some((number, value)));
                Outcome::Done
            }
            Op::Update(..) | Op::Add(..) | Op::Renumber(..) | Op::Delete(_) => self.change(who, op),
            Op::Commit => {
                let changes = std::mem::take(&mut self.running[who]).changes;
                let committed = &mut self.committed;
                committed.commits += 1;
                committed.changed.extend(changes.keys().map(|id| (*id, committed.commits)));
                committed.rows = with(&committed.rows, &changes);
                Outcome::Done
            }
            Op::Rollback => {
                self.give_up(who);
                Outcome::Done
            }
        }
    }

    /// The transaction is rolled back.
    pub(super) fn give_up(&mut self, who: usize) {
        self.running[who] = Running::default();
    }

    fn change(&mut self, who: usize, op: Op) -> Outcome {
        let Some((id, read)) = self.running[who].found else { return Outcome::Absent };
        if self.conflicts(who) {
            return Outcome::Conflict;
        }
        let Some((number, _)) = self.newest(who).get(&id).copied() else { return Outcome::Absent };
        let changed = match op {
            Op::Update(_, value) => Some((number, value)),
            Op::Add(_, amount) => Some((number, read + amount)),
            Op::Renumber(_, to) => {
                let other = self.running[who].changes.get(&id).copied();
                self.running[who].changes.insert(id, None);
                let taken = self.taken(who, to);
                match other {
                    Some(own) => self.running[who].changes.insert(id, own),
                    None => self.running[who].changes.remove(&id),
                };
                if let Some(refused) = taken {
                    return refused;
                }
                Some((to, self.newest(who)[&id].1))
            }
            _ => None,
        };
        self.running[who].changes.insert(id, changed);
        Outcome::Done
    }

    /// Is a number taken? One that the snapshot has and another transaction has since given free would be there twice.
    fn taken(&mut self, who: usize, number: i64) -> Option<Outcome> {
        let (seen, newest) = (self.seen(who), self.newest(who));
        let has = |row: Option<&(i64, i64)>| row.is_some_and(|row| row.0 == number);
        if seen.iter().any(|(id, row)| has(Some(row)) && !has(newest.get(id))) {
            return Some(Outcome::Conflict);
        }
        newest.values().any(|row| has(Some(row))).then_some(Outcome::Duplicate)
    }
}

fn with(rows: &Rows, changes: &BTreeMap<u32, Option<(i64, i64)>>) -> Rows {
    let mut rows = rows.clone();
    for (id, row) in changes {
        match row {
            Some(row) => rows.insert(*id, *row),
            None => rows.remove(id),
        };
    }
    rows
}
