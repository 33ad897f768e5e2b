//! A program run by the engine and by the model, step by step.

use crate::model::{Done, Forecast, Model, Refusal, State};
use crate::program::{Change, Kind, Program, Read, SLOTS, Step};
use crate::read::{Question, Trouble, answer, ask};
use crate::serial::{Order, order_of};
use crate::shape::{World, dictionary, is_refused, open};
use crate::values::{stored, varied};
use pagefold_engine::database::{Durability, Isolation, OpenMode, Savepoint, Transaction, TransactionOptions};
use pagefold_engine::table_space::LIVE_MAX;
use pagefold_engine::{Error, Silent};
use pagefold_io::MemoryStorage;
use pagefold_types::{Rid, Value, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What has happened in programs: a test that does nothing is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) refused_shapes: u64,
    pub(crate) changes: u64,
    pub(crate) reads: u64,
    pub(crate) commits: u64,
    pub(crate) locks: u64,
    pub(crate) conflicts: u64,
    pub(crate) duplicates: u64,
    pub(crate) serialization_failures: u64,
    pub(crate) value_refusals: u64,
    pub(crate) openings: u64,
    pub(crate) lost_tails: u64,
    pub(crate) serial_orders: u64,
    pub(crate) given_up: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        let pairs = [
            (&mut self.refused_shapes, other.refused_shapes),
            (&mut self.changes, other.changes),
            (&mut self.reads, other.reads),
            (&mut self.commits, other.commits),
            (&mut self.locks, other.locks),
            (&mut self.conflicts, other.conflicts),
            (&mut self.duplicates, other.duplicates),
            (&mut self.serialization_failures, other.serialization_failures),
            (&mut self.value_refusals, other.value_refusals),
            (&mut self.openings, other.openings),
            (&mut self.lost_tails, other.lost_tails),
            (&mut self.serial_orders, other.serial_orders),
            (&mut self.given_up, other.given_up),
        ];
        pairs.into_iter().for_each(|(to, from)| *to += from);
    }
}

fn options(isolation: Isolation, durability: Durability) -> TransactionOptions {
    TransactionOptions { isolation, durability, lock_timeout: Duration::ZERO, ..TransactionOptions::default() }
}

/// Runs a program. The error says at which step engine and model differ, and how.
pub(crate) fn run(program: &Program, progress: &dyn Fn()) -> Result<Tally, String> {
    let mut machine = Machine { program, model: Model::new(&program.shape), tally: Tally::default(), at: 0, progress };
    let result = machine.run();
    let at = machine.at;
    result.map(|()| machine.tally).map_err(|error| match program.steps.get(at) {
        Some(step) => format!("step {at}, {step:?}: {error}"),
        None => format!("after the last step: {error}"),
    })
}

struct Machine<'p> {
    program: &'p Program,
    model: Model,
    tally: Tally,
    at: usize,
    progress: &'p dyn Fn(),
}

/// A transaction of the engine and its savepoints.
struct Slot<'w> {
    transaction: Transaction<'w>,
    savepoints: Vec<Savepoint>,
}

type Slots<'w> = [Option<Slot<'w>>; SLOTS];

/// How the time between two openings ends.
enum End {
    Reopen,
    Kill(MemoryStorage),
    Program,
}

fn engine<T>(what: &str, result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

impl Machine<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut storage = MemoryStorage::new();
        let mut world = match open(&storage, &self.program.shape, OpenMode::Create, 0) {
            Ok(world) => world,
            Err(error) if is_refused(&error) => {
                self.tally.refused_shapes += 1;
                return Ok(());
            }
            Err(error) => return Err(format!("the first opening: {error}")),
        };
        loop {
            match self.until_closed(&world, &storage)? {
                End::Reopen => {
                    self.close(world, &storage)?;
                    self.model.reopened(self.model.committed.clone());
                    world = self.open_again(&storage)?;
                    self.compare(&world, "opened again")?;
                }
                End::Kill(copy) => {
                    drop(world);
                    storage = copy;
                    world = self.open_again(&storage)?;
                    self.find_state(&world)?;
                }
                End::Program => break,
            }
            self.at += 1;
        }
        self.compare(&world, "at the end")?;
        engine("removing leftovers", world.database.remove_leftovers())?;
        self.compare(&world, "without leftovers")?;
        self.close(world, &storage)?;
        self.model.reopened(self.model.committed.clone());
        let world = self.open_again(&storage)?;
        self.compare(&world, "closed and opened again")?;
        engine("close", world.database.close())
    }

    fn open_again(&mut self, storage: &MemoryStorage) -> Result<World, String> {
        self.tally.openings += 1;
        engine("opening again", open(storage, &self.program.shape, OpenMode::Write, 0))
    }

    /// Closes the database, and has every page of it looked at.
    fn close(&self, world: World, storage: &MemoryStorage) -> Result<(), String> {
        engine("close", world.database.close())?;
        drop((world.tables, world.indexes));
        let report = pagefold_utility::check_files(storage, Path::new("db"), &Silent).map_err(|e| format!("check: {e}"))?;
        if report.is_clean() { Ok(()) } else { Err(format!("check of the closed database:\n{}", report.to_text(usize::MAX))) }
    }

    /// Everything, as a new transaction sees it.
    fn compare(&mut self, world: &World, when: &str) -> Result<(), String> {
        self.compare_with(world, &self.model.committed.clone()).map_err(|error| format!("{when}: {error}"))
    }

    fn compare_with(&mut self, world: &World, state: &State) -> Result<(), String> {
        let mut t = world.database.begin(options(Isolation::RepeatableRead, Durability::Durable));
        for (table, rows) in state.iter().enumerate() {
            self.tally.reads += 1;
            match ask(world, &mut t, &self.program.shape.tables[table], table, &Question::Everything, rows) {
                Ok(()) => {}
                Err(Trouble::Engine(error)) => return Err(format!("t{table}: {error}")),
                Err(Trouble::Differs(error)) => return Err(format!("t{table}: {error}")),
            }
            let counted = world.tables[table].row_count();
            if counted != rows.len() as u64 {
                return Err(format!("t{table}: {counted} rows are counted, {} are there", rows.len()));
            }
        }
        engine("commit of the reader", t.commit())
    }

    /// After the process was killed: commits that need not be durable may be lost, the last ones first.
    fn find_state(&mut self, world: &World) -> Result<(), String> {
        let mut first = None;
        for (lost, state) in self.model.after_a_kill().into_iter().enumerate() {
            match self.compare_with(world, &state) {
                Ok(()) => {
                    self.tally.lost_tails += u64::from(lost > 0);
                    self.model.reopened(state);
                    return Ok(());
                }
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        Err(format!("killed and opened again: no state that may be there is; of the last one: {}", first.unwrap_or_default()))
    }

    fn until_closed(&mut self, world: &World, storage: &MemoryStorage) -> Result<End, String> {
        let mut slots: Slots<'_> = [const { None }; SLOTS];
        while let Some(step) = self.program.steps.get(self.at) {
            (self.progress)();
            match step {
                Step::Reopen => {
                    slots.iter_mut().for_each(|slot| *slot = None);
                    return Ok(End::Reopen);
                }
                Step::Kill => return Ok(End::Kill(storage.snapshot())),
                step => self.step(world, &mut slots, step)?,
            }
            self.at += 1;
        }
        for (slot, running) in slots.into_iter().enumerate() {
            if let Some(running) = running {
                engine("the last rollback", running.transaction.rollback())?;
                self.ended(slot)?;
            }
        }
        Ok(End::Program)
    }

    /// A transaction has not committed.
    fn ended(&mut self, slot: usize) -> Result<(), String> {
        self.model.rollback(slot);
        self.look_for_serial_order()
    }

    /// When nothing runs: what was committed since nothing ran before has a serial order.
    fn look_for_serial_order(&mut self) -> Result<(), String> {
        if !self.model.is_quiet() {
            return Ok(());
        }
        let (from, transactions) = (std::mem::replace(&mut self.model.quiet, self.model.committed.clone()), &mut self.model.serial);
        let transactions = std::mem::take(transactions);
        if self.program.kind == Kind::Serializable && transactions.len() > 1 {
            match order_of(&self.program.shape, &from, &transactions, &self.model.committed) {
                Order::Found => self.tally.serial_orders += 1,
                Order::GivenUp => self.tally.given_up += 1,
                Order::None => {
                    return Err(format!("{} committed transactions have no serial order: {transactions:?}", transactions.len()));
                }
            }
        }
        Ok(())
    }

    fn step<'w>(&mut self, world: &'w World, slots: &mut Slots<'w>, step: &Step) -> Result<(), String> {
        let tables = self.program.shape.tables.len();
        match step {
            Step::Begin { slot, isolation, durability } => {
                if slots[*slot].is_some() && self.model.of(*slot).failed {
                    slots[*slot] = None;
                    self.ended(*slot)?;
                }
                if slots[*slot].is_none() {
                    let transaction = world.database.begin(options(*isolation, *durability));
                    slots[*slot] = Some(Slot { transaction, savepoints: Vec::new() });
                    self.model.begin(*slot, *isolation, *durability);
                }
            }
            Step::Change { slot, table, change, times } if *table < tables && slots[*slot].is_some() => {
                let known = self.model.known(*slot, *table);
                for time in 0..*times {
                    let running = slots[*slot].as_mut().unwrap();
                    self.change(world, running, *slot, *table, change, &known, time)?;
                    if self.model.of(*slot).failed {
                        break;
                    }
                }
            }
            Step::Commits { slot, table, change, count } if *table < tables => {
                let (slot, table, change) = (*slot, *table, change.clone());
                let change = Step::Change { slot, table, change, times: 1 };
                let begin = Step::Begin { slot, isolation: Isolation::ReadCommitted, durability: Durability::Durable };
                self.step(world, slots, &Step::Commit { slot })?;
                for _ in 0..*count {
                    for step in [&begin, &change, &Step::Commit { slot }] {
                        self.step(world, slots, step)?;
                    }
                    (self.progress)();
                }
            }
            Step::Read { slot, table, read } if *table < tables && slots[*slot].is_some() => {
                let goes_on = self.read(world, slots[*slot].as_mut().unwrap(), *slot, *table, read)?;
                if !goes_on {
                    slots[*slot] = None;
                    self.ended(*slot)?;
                }
            }
            Step::Savepoint { slot } => {
                if let Some(running) = &mut slots[*slot] {
                    running.savepoints.push(running.transaction.savepoint());
                    self.model.savepoint(*slot);
                }
            }
            Step::RollBackTo { slot, pick } => {
                if let Some(running) = slots[*slot].as_mut().filter(|running| !running.savepoints.is_empty()) {
                    let at = *pick as usize % running.savepoints.len();
                    let result = running.transaction.roll_back_to(running.savepoints[at]);
                    if self.model.of(*slot).failed_for_good {
                        return if result.is_err() { Ok(()) } else { Err("a transaction that has failed is taken back in part".into()) };
                    }
                    engine("rollback to a savepoint", result)?;
                    running.savepoints.truncate(at + 1);
                    self.model.roll_back_to(*slot, at);
                }
            }
            Step::Commit { slot } => {
                if let Some(running) = slots[*slot].take() {
                    self.commit(running, *slot)?;
                }
            }
            Step::Rollback { slot } => {
                if let Some(running) = slots[*slot].take() {
                    engine("rollback", running.transaction.rollback())?;
                    self.ended(*slot)?;
                }
            }
            Step::Checkpoint => {
                engine("checkpoint", world.database.checkpoint())?;
                self.model.all_is_durable();
            }
            Step::Leftovers => engine("removing leftovers", world.database.remove_leftovers())?,
            Step::Steal { table } if *table < tables => {
                for data_set in world.tables[*table].data_sets() {
                    engine("writing dirty pages", world.database.write_dirty_pages(data_set))?;
                }
                for index in &world.indexes[*table] {
                    engine("writing dirty pages", world.database.write_dirty_pages(index.data_set()))?;
                }
            }
            Step::Renew { table } if *table < tables => {
                engine("renewal", world.database.renew_dictionaries(world.tables[*table].name()))?;
            }
            Step::UseDictionary { table, seed } if *table < tables => {
                let (table, method) = (&world.tables[*table], self.program.shape.tables[*table].method);
                if method.dictionary_type().is_some() && table.dictionary_versions().len() < LIVE_MAX {
                    engine("another dictionary", world.database.use_dictionary(table.name(), dictionary(method, *seed)))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, running: Slot<'_>, slot: usize) -> Result<(), String> {
        let of = self.model.of(slot);
        let (failed, may_fail) = (of.failed, of.met && of.isolation == Isolation::Serializable);
        match running.transaction.commit() {
            Ok(()) if failed => Err("a transaction that has failed is committed".into()),
            Ok(()) => {
                self.tally.commits += 1;
                self.model.commit(slot);
                self.look_for_serial_order()
            }
            Err(_) if failed => self.ended(slot),
            Err(Error::Serialization(_)) if may_fail => {
                self.tally.serialization_failures += 1;
                self.ended(slot)
            }
            Err(error) => Err(format!("commit: {error}")),
        }
    }

    /// False when the transaction has to be given up.
    fn read(&mut self, world: &World, running: &mut Slot<'_>, slot: usize, table: usize, read: &Read) -> Result<bool, String> {
        let shape = &self.program.shape.tables[table];
        if self.model.of(slot).failed {
            let result = running.transaction.row(&world.tables[table], Rid::MIN);
            return if result.is_err() { Ok(true) } else { Err("a transaction that has failed reads on".into()) };
        }
        let rows = self.model.visible(slot, table);
        let known = self.model.known(slot, table);
        let picked = |pick: u32| known.get(pick as usize % known.len().max(1)).copied();
        let question = match read {
            Read::Row { pick } => picked(*pick).map(Question::Row),
            Read::Key { index, values } => Some(Question::Key { index: *index, values: values.clone() }),
            Read::KeyOf { index, pick, columns } => picked(*pick).filter(|_| *index < shape.indexes.len()).and_then(|rid| {
                let row = rows.get(&rid).cloned().or_else(|| self.model.row_of(table, rid))?;
                let of = &shape.indexes[*index].columns;
                let count = 1 + columns % of.len();
                Some(Question::Key { index: *index, values: of[..count].iter().map(|(column, _)| row[*column].clone()).collect() })
            }),
            Read::Range { index, low, high, backward, keys, most } => {
                Some(Question::Range { index: *index, low: low.clone(), high: high.clone(), backward: *backward, keys: *keys, most: *most })
            }
            Read::Scan { columns } => Some(Question::Scan { columns: columns.clone() }),
            Read::Columns { columns, condition } => Some(Question::Columns { columns: columns.clone(), condition: condition.clone() }),
            Read::Everything => Some(Question::Everything),
        };
        let is_there = |question: &Question| match question {
            Question::Key { index, .. } | Question::Range { index, .. } => *index < shape.indexes.len(),
            _ => true,
        };
        let Some(question) = question.filter(is_there) else { return Ok(true) };
        self.model.statement(slot);
        self.tally.reads += 1;
        let of = self.model.of(slot);
        let may_fail = of.met && of.isolation == Isolation::Serializable;
        match ask(world, &mut running.transaction, shape, table, &question, &rows) {
            Ok(()) => {}
            Err(Trouble::Engine(Error::Serialization(_))) if may_fail => {
                self.tally.serialization_failures += 1;
                return Ok(false);
            }
            Err(Trouble::Engine(error)) => return Err(error.to_string()),
            Err(Trouble::Differs(error)) => return Err(error),
        }
        if matches!(question, Question::Everything) {
            let (counted, there) = (world.tables[table].row_count(), self.model.now(table).len());
            if counted != there as u64 {
                return Err(format!("t{table}: {counted} rows are counted, {there} are there"));
            }
        }
        if self.program.kind == Kind::Serializable {
            let said = answer(&question, shape, &rows);
            self.model.of(slot).done.push(Done::Read { table, read: question, said });
        }
        Ok(true)
    }

    #[allow(clippy::too_many_arguments, reason = "what a step says")]
    fn change(
        &mut self,
        world: &World,
        running: &mut Slot<'_>,
        slot: usize,
        table: usize,
        change: &Change,
        known: &[Rid],
        time: usize,
    ) -> Result<(), String> {
        let (shape, of) = (&self.program.shape.tables[table], &world.tables[table]);
        let t = &mut running.transaction;
        let picked = |pick: &u32| known.get((*pick as usize + time) % known.len().max(1)).copied();
        if self.model.of(slot).failed {
            let result = t.lock(of, Rid::MIN);
            return if result.is_err() { Ok(()) } else { Err("a transaction that has failed goes on".into()) };
        }
        if known.is_empty() && !matches!(change, Change::Insert(_)) {
            return Ok(());
        }
        self.model.statement(slot);
        self.tally.changes += 1;
        match change {
            Change::Insert(row) => {
                let row: Vec<Value> = row.iter().zip(&shape.columns).map(|(value, c)| varied(value, c.data_type, time)).collect();
                let kept: Vec<Value> = row.iter().zip(&shape.columns).map(|(value, c)| stored(value, c.data_type)).collect();
                let refs: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                let kept = Arc::new(kept);
                let forecast = self.model.foretell_insert(slot, table, &kept);
                let result = t.insert(of, &refs);
                let rid = result.as_ref().ok().copied();
                let concluded = self.conclude(slot, table, forecast, result.map(|_| true))?;
                if let Some(rid) = rid {
                    if !self.model.is_free(table, rid) {
                        return Err(format!("a new row gets {rid}, which somebody may know as another"));
                    }
                    self.model.put(slot, table, rid, Some(kept.clone()));
                }
                if !matches!(concluded, Concluded::Refused(Refusal::Value)) {
                    self.note(slot, Done::Insert { table, row: kept, rid });
                }
            }
            Change::Update(pick, changes) => {
                let Some(rid) = picked(pick) else { return Ok(()) };
                let changes: Vec<(usize, Value)> =
                    changes.iter().map(|(column, value)| (*column, varied(value, shape.columns[*column].data_type, time))).collect();
                let refs: Vec<(usize, ValueRef<'_>)> = changes.iter().map(|(column, value)| (*column, value.as_ref())).collect();
                let forecast = self.model.foretell_update(slot, table, rid, &changes);
                let result = t.update(of, rid, &refs);
                let concluded = self.conclude(slot, table, forecast, result)?;
                let found = match concluded {
                    Concluded::Done(found) => Some(found),
                    Concluded::Refused(Refusal::Value) => return Ok(()),
                    Concluded::Refused(_) => None,
                };
                if found == Some(true) {
                    let Some(before) = self.model.row_of(table, rid) else { return Err("a row that is not there is updated".into()) };
                    self.model.put(slot, table, rid, Some(Model::changed_row(shape, &before, &changes)));
                }
                self.note(slot, Done::Update { table, rid, changes, found });
            }
            Change::Delete(pick) => {
                let Some(rid) = picked(pick) else { return Ok(()) };
                let forecast = self.model.foretell_lock_row(slot, table, rid);
                let result = t.delete(of, rid);
                if let Concluded::Done(found) = self.conclude(slot, table, forecast, result)? {
                    if found {
                        self.model.put(slot, table, rid, None);
                    }
                    self.note(slot, Done::Delete { table, rid, found });
                }
            }
            Change::Lock(pick) => {
                let Some(rid) = picked(pick) else { return Ok(()) };
                let forecast = self.model.foretell_lock_row(slot, table, rid);
                let result = t.lock(of, rid);
                self.conclude(slot, table, forecast, result)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, slot: usize, done: Done) {
        let is_serial = self.program.kind == Kind::Serializable;
        if let Some(running) = self.model.running[slot].as_mut().filter(|running| is_serial && !running.failed) {
            running.done.push(done);
        }
    }

    /// Holds how a statement ended against what was foretold.
    fn conclude(&mut self, slot: usize, table: usize, forecast: Forecast, result: Result<bool, Error>) -> Result<Concluded, String> {
        let of = self.model.of(slot);
        let refusal = match result {
            Ok(found) => {
                if forecast.surely {
                    return Err(format!("succeeds ({found}), and should be refused: {:?}", forecast.refusals));
                }
                if forecast.found.is_some_and(|foretold| foretold != found) {
                    return Err(format!("says {found} where {:?} is expected", forecast.found));
                }
                self.model.take_locks(slot, table, forecast, false);
                return Ok(Concluded::Done(found));
            }
            Err(ref error) => match error {
                Error::Lock(_) => Refusal::Lock,
                Error::Conflict { .. } => Refusal::Conflict,
                Error::Serialization(_) => Refusal::Serialization,
                Error::DuplicateKey { .. } => Refusal::Duplicate,
                Error::Value(_) => Refusal::Value,
                error => return Err(format!("ends with: {error}")),
            },
        };
        let may_fail = refusal == Refusal::Serialization && of.met && of.isolation == Isolation::Serializable;
        if !forecast.refusals.contains(&refusal) && !may_fail {
            return Err(format!("is refused, {result:?}, and may be for {:?} only", forecast.refusals));
        }
        match refusal {
            Refusal::Lock => self.tally.locks += 1,
            Refusal::Conflict => self.tally.conflicts += 1,
            Refusal::Serialization => self.tally.serialization_failures += 1,
            Refusal::Duplicate => self.tally.duplicates += 1,
            Refusal::Value => self.tally.value_refusals += 1,
        }
        of.failed_for_good = refusal == Refusal::Serialization;
        of.failed = of.failed_for_good || matches!(refusal, Refusal::Lock | Refusal::Conflict);
        self.model.take_locks(slot, table, forecast, true);
        Ok(Concluded::Refused(refusal))
    }
}

enum Concluded {
    Done(bool),
    Refused(Refusal),
}
