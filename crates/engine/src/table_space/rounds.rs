//! Changes of rows that start over, as others have pages that they need, or as room was made.
//!
//! Who has a page latched does not wait for another one: so nobody waits in a circle. But two that need each other's page could let go and
//! start over again and again, in step. So after some rounds one waits for a turn among those of the table that start over, with nothing
//! latched. Whose turn it is meets only those then who have not come so far, and who either come through or wait for their turn: in the end, nobody.
//!
//! Invariant: a turn is taken with no page latched, and nobody who holds a lock that a change of rows takes waits for one.

use super::table::Table;
use parking_lot::MutexGuard;

/// Rounds without a turn.
const FREE_ROUNDS: u32 = 8;

/// Rounds after which a change makes do with the least room: each page that gives some may want it back.
const MANY_ROUNDS: u32 = 32;

/// The rounds of one change.
pub(super) struct Rounds<'a> {
    table: &'a Table,
    begun: u32,
    turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> Rounds<'a> {
    pub(super) fn of(table: &'a Table) -> Rounds<'a> {
        Rounds { table, begun: 0, turn: None }
    }

    /// Have there been so many that room is not to be made again and again?
    pub(super) fn are_many(&self) -> bool {
        self.begun > MANY_ROUNDS
    }

    /// Another round begins. Nothing is latched.
    pub(super) fn begin(&mut self) {
        self.begun = self.begun.saturating_add(1);
        if self.begun > FREE_ROUNDS {
            match self.turn {
                None => self.turn = Some(self.table.rounds.lock()),
                // Those who have the pages may not be running.
                Some(_) => std::thread::yield_now(),
            }
        }
    }
}
