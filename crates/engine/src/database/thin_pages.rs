//! Emptying thin pages of a table beside everybody else: their rows go to other pages, so many in a transaction, and pages that are empty then are given back.
//!
//! Each [step](ThinPages::step) is a short transaction that waits for nobody: a row that somebody else has just now stays where it is. Between steps nothing is held: the work can be left at any
//! point, and what was done is done.
//!
//! Invariants:
//! - nobody waits for a row longer than a step takes, and who would not wait waits so long, too, and is not refused;
//! - a transaction that keeps one snapshot to its end and may change rows by it would be refused with a conflict where it changes a row that was moved since. So no step begins before those have
//!   ended that were there when it was to, as long as the caller's patience lasts;
//! - what moves leave for older snapshots, and for who remembers RIDs, is bounded: beyond [`WAITING_MAX`] rows no step begins before some of it is gone;
//! - no rows move while an index of the table is built beside its writers, or the table is written anew.

use super::open::Database;
use super::transaction::{Durability, Isolation, RowMoved, Transaction, TransactionOptions};
use crate::table_space::{Plan, Table};
use crate::{Error, Result};
use pagefold_types::Rid;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Rows that a step moves, unless something else is asked for: some milliseconds.
const STEP_ROWS: usize = 200;
/// Rows whose old places cannot be used again yet, at most, when a step begins.
const WAITING_MAX: usize = 50_000;
/// So often it is planned anew what is left to be done.
const ROUNDS_MAX: u32 = 6;
/// A round that gives back fewer pages than one in so many is the last one.
const WORTHWHILE: u64 = 100;
/// So long it is waited before the next look.
const WAIT: Duration = Duration::from_millis(5);
/// Pages that were emptied, of which a step tries so many to give them back.
const TRIED_AT_ONCE: usize = 64;

/// How rows are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOptions {
    /// Rows in a transaction, at most.
    pub rows_max: usize,
    /// Rows are moved also where the table takes little more than they need.
    pub is_thorough: bool,
}

impl Default for MoveOptions {
    fn default() -> MoveOptions {
        MoveOptions { rows_max: STEP_ROWS, is_thorough: false }
    }
}

/// What has come of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// Rows were moved, or pages looked at.
    Done,
    /// Nothing has happened: this transaction keeps a snapshot from before, and may change rows by it.
    BehindTransaction(u64),
    /// Nothing has happened: so many rows cannot be forgotten at their old places yet.
    BehindReaders,
    /// The table is as close as it can be now.
    End,
}

/// What there is, and what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTally {
    /// Rows that were moved.
    pub rows_moved: u64,
    /// Rows that stayed where they are, as somebody else had them.
    pub rows_left: u64,
    /// Pages that are to be emptied, by all plans so far, and those of them that were looked at.
    pub pages_planned: u64,
    /// Those of them that were looked at.
    pub pages_done: u64,
    /// Pages that were given back.
    pub pages_given_back: u64,
    /// Steps so far.
    pub steps: u64,
}

/// The thin pages of a table, and what is done about them.
#[derive(Debug)]
pub struct ThinPages<'d> {
    database: &'d Database,
    table: Arc<Table>,
    options: MoveOptions,
    plan: Plan,
    /// Pages of the plan that come next.
    next: usize,
    /// Where the plan has found room last.
    found_at: (u16, u32),
    /// Rows of the page before the next one.
    rows: VecDeque<Rid>,
    /// Pages that may be empty.
    emptied: VecDeque<(u16, u32)>,
    rounds: u32,
    given_back_before: u64,
    /// Those who keep a snapshot, of when the step was to begin.
    behind: Vec<u64>,
    /// Since when there was no step, as somebody had to be waited for.
    waiting_since: Option<Duration>,
    standing: MoveTally,
    is_done: bool,
}

impl Database {
    /// The thin pages of a table, as they are now.
    ///
    /// # Errors
    /// When there is no such table, or it is being built anew.
    pub fn thin_pages(&self, table: &Arc<Table>, options: MoveOptions) -> Result<ThinPages<'_>> {
        if !Arc::ptr_eq(&table.core, &self.core) {
            return Err(Error::Parameter(format!("{} is of another database", table.object())));
        }
        self.core.check_writable()?;
        table.check_no_build(0)?;
        let mut found = ThinPages {
            database: self,
            table: Arc::clone(table),
            options: MoveOptions { rows_max: options.rows_max.max(1), ..options },
            plan: Plan::default(),
            next: 0,
            found_at: (0, 0),
            rows: VecDeque::new(),
            emptied: VecDeque::new(),
            rounds: 0,
            given_back_before: 0,
            behind: Vec::new(),
            waiting_since: None,
            standing: MoveTally::default(),
            is_done: false,
        };
        found.plan_anew();
        Ok(found)
    }
}

impl ThinPages<'_> {
    /// What was done so far.
    #[must_use]
    pub fn standing(&self) -> MoveTally {
        self.standing
    }

    /// Data pages with rows, and how many would do if rows lay as close as can be, by the latest plan.
    #[must_use]
    pub fn pages(&self) -> (u64, u64) {
        (self.plan.used, self.plan.needed)
    }

    fn plan_anew(&mut self) {
        self.plan = self.table.plan_of_thin_pages(self.options.is_thorough);
        (self.next, self.found_at) = (0, (0, 0));
        // Of pages that are not empty yet the next plan says it again.
        self.emptied.clear();
        self.emptied.extend(self.plan.empty.iter().copied());
        self.standing.pages_planned += self.plan.pages.len() as u64;
        self.rounds += 1;
    }

    /// Moves some rows. Who is told to wait calls again after a while, or leaves it.
    ///
    /// # Errors
    /// [`Error::Busy`] when an index of the table is built, or the table written anew; [`Error::Stale`] when it is there no more; when there is no room in the log, or a page is damaged. What was done
    /// before stays so.
    pub fn step(&mut self) -> Result<MoveStep> {
        if self.is_done {
            return Ok(MoveStep::End);
        }
        self.table.check_no_build(0)?;
        if let Some(waits) = self.has_to_wait()? {
            return Ok(waits);
        }
        self.waiting_since = None;
        self.standing.steps += 1;
        if self.next < self.plan.pages.len() || !self.rows.is_empty() {
            self.move_rows()?;
        }
        self.give_back(TRIED_AT_ONCE)?;
        if self.next == self.plan.pages.len() && self.rows.is_empty() {
            self.database.remove_leftovers()?;
            self.give_back(usize::MAX)?;
            let given_back = self.standing.pages_given_back - self.given_back_before;
            self.given_back_before = self.standing.pages_given_back;
            let was_worthwhile = given_back * WORTHWHILE >= self.plan.used && given_back > 0;
            if self.plan.pages.is_empty() || self.rounds >= ROUNDS_MAX || !was_worthwhile {
                self.is_done = true;
                return Ok(MoveStep::End);
            }
            self.plan_anew();
        }
        Ok(MoveStep::Done)
    }

    /// Waits for a moment. How long has been waited since the last step.
    pub fn wait(&mut self) -> Duration {
        let core = &self.database.core;
        let since = *self.waiting_since.get_or_insert_with(|| core.manager.clock().monotonic());
        core.manager.clock().sleep(WAIT);
        core.manager.clock().monotonic().saturating_sub(since)
    }

    /// What a step has to wait for.
    fn has_to_wait(&mut self) -> Result<Option<MoveStep>> {
        let core = &self.database.core;
        if core.moves.count() > WAITING_MAX {
            self.database.remove_leftovers()?;
            if core.moves.count() > WAITING_MAX {
                return Ok(Some(MoveStep::BehindReaders));
            }
        }
        let keeping = core.transactions.active().into_iter().filter(|state| state.keeps_snapshot()).map(|state| state.id());
        let keeping: Vec<u64> = keeping.collect();
        if self.behind.is_empty() {
            self.behind.clone_from(&keeping);
        }
        // Those that have come since are not waited for: there might be some at every moment.
        self.behind.retain(|id| keeping.contains(id));
        Ok(self.behind.first().map(|id| MoveStep::BehindTransaction(*id)))
    }

    /// Moves rows of the next pages, by one transaction.
    fn move_rows(&mut self) -> Result<()> {
        let mut t = self.database.begin(TransactionOptions {
            isolation: Isolation::Serializable,
            durability: Durability::Relaxed,
            lock_timeout: Duration::ZERO,
            read_only: false,
        });
        self.database.core.locks.note_mover(t.id());
        let (mut moved, mut left, mut looked_at) = (0, 0, 0);
        // What a step takes back it does not do again.
        let mut gone = Vec::new();
        let result = loop {
            if moved == self.options.rows_max || looked_at >= 4 * self.options.rows_max {
                break Ok(());
            }
            let Some(rid) = self.rows.pop_front() else {
                match self.next_page() {
                    Ok(Some(page)) => gone.push(page),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
                looked_at += 1;
                continue;
            };
            looked_at += 1;
            match self.move_one(&mut t, rid) {
                Ok(RowMoved::To(_)) => moved += 1,
                Ok(RowMoved::Gone) => {}
                Ok(RowMoved::NoPlace) => left += 1,
                Err(Error::Lock(_) | Error::Conflict { .. } | Error::DuplicateKey { .. }) => left += 1,
                Err(error) => break Err(error),
            }
        };
        let result = match result {
            Ok(()) => t.commit(),
            Err(error) => t.rollback().and(Err(error)),
        };
        self.emptied.extend(gone);
        match result {
            Ok(()) => {
                self.standing.rows_moved += moved as u64;
                self.standing.rows_left += left;
                Ok(())
            }
            // It would have come between others: what it has looked at stays where it is, until the next plan.
            Err(Error::Serialization(_)) => {
                self.standing.rows_left += left + moved as u64;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn move_one(&mut self, t: &mut Transaction<'_>, rid: Rid) -> Result<RowMoved> {
        let savepoint = t.savepoint();
        let mut targets = self.plan.targets().going_on_at(self.found_at);
        let moved = t.move_row(&self.table, rid, &mut targets);
        self.found_at = targets.at();
        if matches!(moved, Err(Error::Lock(_) | Error::Conflict { .. } | Error::DuplicateKey { .. })) {
            t.roll_back_to(savepoint)?;
        }
        moved
    }

    /// The next page of the plan; its rows come next.
    fn next_page(&mut self) -> Result<Option<(u16, u32)>> {
        let Some(page) = self.plan.pages.get(self.next).copied() else { return Ok(None) };
        self.next += 1;
        self.standing.pages_done += 1;
        self.rows.extend(self.table.rows_on_page(page)?);
        Ok(Some(page))
    }

    /// Gives pages back that are empty by now, of those that were emptied first.
    fn give_back(&mut self, most: usize) -> Result<()> {
        for _ in 0..self.emptied.len().min(most) {
            let Some(page) = self.emptied.pop_front() else { break };
            if self.table.give_page_back(page)? {
                self.standing.pages_given_back += 1;
            } else {
                self.emptied.push_back(page);
            }
        }
        Ok(())
    }
}
