//! Renewing the dictionaries of tables while they are used: what a thread of its own does, or whoever asks for it.
//!
//! Every step is one that anybody could take at any time, done under the lock of who changes rows of the table, and let go of after it: who asks for the whole table waits for a step, never for the whole look.
//!
//! Invariant: rows are brought into the form of the newest dictionary only after every transaction has ended that was there when that became the newest: until then rows of an older version may still come.

use super::open::DatabaseState;
use crate::core::Work;
use crate::table_space::dictionary::{Rewritten, Round};
use crate::table_space::{LIVE_MAX, Table};
use crate::transaction::{Mode, Resource};
use crate::{Error, Result};
use pagefold_codec::row::RowDictionary;
use pagefold_io::let_others_go_first;
use std::sync::Arc;
use std::time::Duration;

/// A round that had to wait goes on after this time at the earliest.
const RESUME_DELAY: Duration = Duration::from_millis(20);

/// What has come of a look at the dictionaries of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// There is a new dictionary.
    pub added: bool,
    /// Pages that were brought into the form of the newest.
    pub pages: u64,
    /// Pages that somebody may need as they are: they are looked at again with the next look.
    pub busy_pages: u64,
    /// The oldest dictionary is gone.
    pub dropped: bool,
}

/// How a dictionary is trained that would be better, if one would.
type Train = fn(&Table) -> Result<Option<RowDictionary>>;

/// Trains in a thread of its own, before which all others go: it takes the better part of a second, and nobody waits for it. What follows is done by the thread that asked, as others may wait for the latches it takes.
fn better_dictionary_behind_others(table: &Table) -> Result<Option<RowDictionary>> {
    std::thread::scope(|scope| {
        let train = || {
            let_others_go_first();
            table.better_dictionary()
        };
        match std::thread::Builder::new().name("pagefold-training".into()).spawn_scoped(scope, train) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => table.better_dictionary(),
        }
    })
}

/// What ends a look before it is done.
enum Stopped {
    /// The database is closed, the table is changed or gone.
    Asked,
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Failed(error)
    }
}

impl DatabaseState {
    /// Looks at the dictionaries of a table, as is done in the background for tables into which rows come: builds a new one if that would be better by more than a little, and brings rows into its form that
    /// have none, or that of the oldest, when there are more than two; one that nothing needs any more goes. Others may go on working.
    ///
    /// # Errors
    /// When there is no such table, a page is damaged, or something cannot be written.
    pub fn renew_dictionaries(&self, table: &str) -> Result<Renewal> {
        self.renew(&self.live_table(table)?, Table::better_dictionary)
    }

    /// Makes this the newest dictionary of a table, whatever it is worth, and goes on as [`Self::renew_dictionaries`] does; the third ends the oldest.
    ///
    /// # Errors
    /// When there is no such table, it has no dictionaries or as many as there can be, or as for `renew_dictionaries`.
    pub fn use_dictionary(&self, table: &str, dictionary: RowDictionary) -> Result<Renewal> {
        let found = self.live_table(table)?;
        if found.attributes().method.dictionary_type().is_none() || found.dictionary_versions().len() >= LIVE_MAX {
            return Err(Error::Parameter(format!("table \"{table}\" cannot have another dictionary now")));
        }
        found.check_dictionaries()?;
        match self.step(&found, || found.add_dictionary(dictionary)) {
            Ok(()) => {
                found.retire_oldest_of_many();
                self.renew(&found, Table::better_dictionary).map(|renewal| Renewal { added: true, ..renewal })
            }
            Err(Stopped::Asked) => Err(Error::Busy("tables or indexes are being loaded, built or dropped".into())),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    fn live_table(&self, name: &str) -> Result<Arc<Table>> {
        self.table(name)
    }

    /// As [`Self::renew_dictionaries`], for the thread; what goes wrong is met by whoever writes next.
    pub(super) fn renew_in_background(&self, object_id: u32) {
        let Ok(Some(table)) = self.table_by_id(object_id) else { return };
        if table.is_in_round() {
            // Where transactions are short, what is waited for has always ended.
            self.core.manager.clock().sleep(RESUME_DELAY);
        }
        drop(self.renew(&table, better_dictionary_behind_others));
    }

    /// A transaction has ended: perhaps the last one that tables wait for, which are then looked at again.
    pub(super) fn resume_renewals(&self, transaction: u64) {
        if transaction < self.core.renewal_waits.below() {
            // Seldom: only while a round waits, and by those who were there when it began to.
            for object_id in self.core.renewal_waits.take_due(self.oldest_running()) {
                self.core.renewal.ask(Work::Dictionary(object_id));
            }
        }
    }

    fn oldest_running(&self) -> u64 {
        self.core.transactions.active().first().map_or(u64::MAX, |state| state.id())
    }

    fn renew(&self, table: &Arc<Table>, train: Train) -> Result<Renewal> {
        let mut renewal = Renewal::default();
        // Somebody else is at it.
        let Some(_one_at_a_time) = table.renewing.try_lock() else { return Ok(renewal) };
        table.check_dictionaries()?;
        match self.renew_by_steps(table, train, &mut renewal) {
            Ok(()) | Err(Stopped::Asked) => Ok(renewal),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    fn renew_by_steps(&self, table: &Arc<Table>, train: Train, renewal: &mut Renewal) -> std::result::Result<(), Stopped> {
        if table.unfinished_dictionary() {
            self.step(table, || table.finish_dictionary())?;
        } else if let Some(dictionary) = train(table)? {
            // What goes when it comes was decided with it.
            self.step(table, || table.add_dictionary(dictionary)).inspect_err(|_| table.nothing_retires())?;
            renewal.added = true;
        }
        let _ = self.remove_leftovers_unless_busy();
        self.core.versions.sweep();
        while let Some(mut round) = table.begin_round(self.core.transactions.next_id())? {
            let seen = self.see_pages(table, &mut round, renewal);
            renewal.busy_pages = round.pages_left(table) as u64;
            if matches!(seen, Ok(true)) {
                renewal.dropped |= self.step(table, || table.end_round(&round))?;
                continue;
            }
            let waits_for = round.waits_for();
            table.suspend(round);
            if seen.is_ok() && waits_for > 0 {
                self.core.renewal_waits.enter(table.object_id, waits_for);
                // They may have ended meanwhile.
                self.resume_renewals(0);
            }
            return seen.map(drop);
        }
        Ok(())
    }

    /// Sees the pages of a round, when all transactions that it waits for have ended. False when some are left: it waits for others then, or for none, when pages are needed as they are though nobody runs.
    fn see_pages(&self, table: &Arc<Table>, round: &mut Round, renewal: &mut Renewal) -> std::result::Result<bool, Stopped> {
        if self.oldest_running() < round.waits_for() {
            return Ok(false);
        }
        round.list_pages(table);
        let mut busy = 0;
        while busy < round.pages_left(table) {
            match self.step(table, || round.see_page(table))? {
                Rewritten::Clean => {}
                Rewritten::Done => renewal.pages += 1,
                Rewritten::Busy => busy += 1,
            }
        }
        if busy > 0 {
            let running = self.oldest_running() < u64::MAX;
            round.wait_for(if running { self.core.transactions.next_id() } else { 0 });
        }
        Ok(busy == 0)
    }

    /// Does something while no change of tables and indexes is going on.
    fn step<R>(&self, table: &Arc<Table>, work: impl FnOnce() -> Result<R>) -> std::result::Result<R, Stopped> {
        if self.core.renewal.is_stopping() {
            return Err(Stopped::Asked);
        }
        let object = Resource::Object(table.object_id);
        let Some(_locked) = self.core.locks.lock_for_removal(object, Mode::IntentExclusive) else { return Err(Stopped::Asked) };
        // What is not logged is not there after a crash, and who makes the log later takes it that all there is has been written.
        self.ensure_log()?;
        self.core.manager.prepare_log()?;
        let there = self.objects.read().tables.by_id(table.object_id).is_some_and(|place| place.has(table));
        if there { work().map_err(Stopped::from) } else { Err(Stopped::Asked) }
    }
}
