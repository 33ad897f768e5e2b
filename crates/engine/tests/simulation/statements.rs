//! One statement of a writer, and whether what comes of it may be.
//!
//! One thread drives all transactions and nobody waits, so much is known: a statement that succeeds has met nobody; a lock that is not had is held by another one that runs; a conflict is
//! with a commit since the snapshot; a duplicate key is there. What fails changes nothing.

use crate::alterations::{as_altered, as_seen, fit, fit_changes};
use crate::model::{Place, Whole, places, short};
use crate::player::{Halt, Player, Writer};
use crate::steps::Statement;
use crate::values::{COLUMNS, NUMBER, Row, Size, UNIQUE, number, row, short_row, unique, value};
use crate::world::{Random, TABLES};
use pagefold_engine::database::{Durability, Isolation};
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, Value, ValueRef};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a statement would do to its row.
struct Intent {
    table: usize,
    n: i64,
    before: Option<Row>,
    /// `None`: delete it, or leave it as it is.
    after: Option<Row>,
    deletes: bool,
}

impl Intent {
    fn places(&self) -> Vec<Place> {
        let mut all = places(self.table, self.n, &[self.before.as_ref(), self.after.as_ref()]);
        all.extend(self.after.as_ref().map(|row| Place::Row(self.table, number(row))));
        all
    }
}

impl Player<'_> {
    pub(crate) fn write(&mut self, writer: usize, statement: &Statement) -> std::result::Result<(), Halt> {
        if !self.writers.contains_key(&writer) {
            self.begin(writer, Isolation::ReadCommitted, Durability::Durable);
        }
        // Out of the map: the others are those that it may meet.
        let Some(mut w) = self.writers.remove(&writer) else { return Ok(()) };
        let done = if w.failed { Ok(()) } else { self.run(&mut w, statement) };
        self.writers.insert(writer, w);
        done.map_err(|halt| match halt {
            Halt::Fault(what) => Halt::Fault(format!("writer {writer}: {what}")),
            Halt::Killed => Halt::Killed,
        })
    }

    fn run(&mut self, w: &mut Writer<'_>, statement: &Statement) -> std::result::Result<(), Halt> {
        if w.transaction.isolation() != Isolation::ReadCommitted && w.snapshot.is_none() {
            w.snapshot = Some((self.committed.state.clone(), self.committed.count));
        }
        let table = statement.table();
        let object = self.must(w.transaction.table(TABLES[table]), "a table by its name")?;
        match statement {
            Statement::Insert { n, sizes, seed, .. } => {
                // A look takes the snapshot, if there is none yet: the statement may fail before it takes one.
                self.find(w, table, *n)?;
                if w.failed {
                    return Ok(());
                }
                let fresh = fit(&object, &row(*n, sizes, *seed));
                let intent = Intent { table, n: *n, before: None, after: Some(Arc::clone(&fresh)), deletes: false };
                let values: Vec<ValueRef<'_>> = fresh.iter().map(Value::as_ref).collect();
                let done = w.transaction.insert(&object, &values).map(|_| true);
                self.judge(w, &intent, statement, done)
            }
            Statement::InsertRows { n, count, large, seed, .. } => {
                self.find(w, table, *n)?;
                if w.failed {
                    return Ok(());
                }
                let is_there = |n: &i64| match w.overlay.get(&(table, *n)) {
                    Some(own) => own.is_some(),
                    None => self.committed.state[table].contains_key(n),
                };
                let numbers: Vec<i64> = (*n..).filter(|n| !is_there(n)).take(*count).collect();
                let rows: Vec<Row> = several(&numbers, *large, *seed).iter().map(|row| fit(&object, row)).collect();
                let done = w.transaction.insert_rows(&object, |batch| {
                    rows.iter().try_for_each(|row| batch.push(&row.iter().map(Value::as_ref).collect::<Vec<_>>()))
                });
                let intents =
                    numbers.iter().zip(rows).map(|(n, row)| Intent { table, n: *n, before: None, after: Some(row), deletes: false });
                match done {
                    Ok(rows) if rows != *count as u64 => Err(Halt::Fault(format!("{statement:?}: {rows} rows came"))),
                    Ok(_) => {
                        self.trouble.meet("several rows at once");
                        intents.into_iter().try_for_each(|intent| self.judge(w, &intent, statement, Ok(true)))
                    }
                    Err(error) => {
                        // One of them is the reason, and locks of the others stay.
                        let mut outcome = Err(Halt::Fault("no row".into()));
                        for intent in intents {
                            match outcome {
                                Ok(()) => drop(self.touch(w, &intent)),
                                Err(_) => outcome = self.judge(w, &intent, statement, Err(error.clone())),
                            }
                        }
                        outcome
                    }
                }
            }
            Statement::Update { n, to, sizes, seed, .. } => {
                let n = self.nearest(w, table, *n);
                let Some((rid, before)) = self.find(w, table, n)? else { return Ok(()) };
                let mut changes: Vec<(usize, Value)> = sizes.iter().map(|(column, size)| (*column, value(*column, *size, *seed))).collect();
                fit_changes(&object, &mut changes, *seed);
                changes.extend(to.map(|to| (NUMBER, Value::Int(to))));
                let mut after = Vec::clone(&before);
                changes.iter().for_each(|(column, value)| after[*column] = value.clone());
                let intent = Intent { table, n, before: Some(before), after: Some(Arc::new(after)), deletes: false };
                let changes: Vec<_> = changes.iter().map(|(column, value)| (*column, value.as_ref())).collect();
                let done = w.transaction.update(&object, rid, &changes);
                self.judge(w, &intent, statement, done)
            }
            Statement::Delete { n, .. } => {
                let n = self.nearest(w, table, *n);
                let Some((rid, before)) = self.find(w, table, n)? else { return Ok(()) };
                let intent = Intent { table, n, before: Some(before), after: None, deletes: true };
                let done = w.transaction.delete(&object, rid);
                self.judge(w, &intent, statement, done)
            }
            Statement::Lock { n, .. } => {
                let n = self.nearest(w, table, *n);
                let Some((rid, before)) = self.find(w, table, n)? else { return Ok(()) };
                let intent = Intent { table, n, before: Some(before), after: None, deletes: false };
                let done = w.transaction.lock(&object, rid);
                self.judge(w, &intent, statement, done)
            }
        }
    }

    /// A number that the transaction sees, at or behind this one; now and then a number as it is, which may be missing.
    fn nearest(&self, w: &Writer<'_>, table: usize, n: i64) -> i64 {
        if n % 8 == 7 {
            return n;
        }
        let rows = &w.snapshot.as_ref().map_or(&self.committed.state, |(state, _)| state)[table];
        let seen = |n: &i64| !matches!(w.overlay.get(&(table, *n)), Some(None));
        let own = w.overlay.range((table, n)..(table + 1, i64::MIN)).find(|(_, row)| row.is_some()).map(|((_, n), _)| *n);
        let others = rows.range(n..).map(|(n, _)| *n).find(seen);
        own.into_iter().chain(others).min().or_else(|| rows.keys().copied().find(seen)).unwrap_or(n)
    }

    /// A row by its number, as the transaction sees it: it must see what it has changed, and what its snapshot has.
    fn find(&mut self, w: &mut Writer<'_>, table: usize, n: i64) -> std::result::Result<Option<(Rid, Row)>, Halt> {
        let seen = match w.overlay.get(&(table, n)) {
            Some(changed) => changed.clone(),
            None => {
                let rows = &w.snapshot.as_ref().map_or(&self.committed.state, |(state, _)| state)[table];
                rows.get(&n).map(|row| as_altered(&w.alterations, table, row))
            }
        };
        let found = (|| {
            let object = w.transaction.table(TABLES[table])?;
            let index = w.transaction.index(&format!("{}_pk", TABLES[table]))?;
            let rids = w.transaction.find(&object, &index, &[ValueRef::Int(n)])?;
            let Some(rid) = rids.first().copied() else { return Ok((rids.len(), None)) };
            Ok::<_, Error>((rids.len(), w.transaction.row(&object, rid)?.map(|values| (rid, as_seen(&object, values)))))
        })();
        let (count, found) = match found {
            Ok(found) => found,
            Err(Error::Serialization(_)) if w.transaction.isolation() == Isolation::Serializable && !self.is_alone(w.began) => {
                w.failed = true;
                return Ok(None);
            }
            Err(error) => return self.must(Err(error), &format!("a look for row {table}/{n}")),
        };
        match (seen, found) {
            (None, None) if count == 0 => Ok(None),
            (Some(seen), Some((rid, values))) if count == 1 && *seen == values => Ok(Some((rid, seen))),
            (seen, found) => {
                let differs = seen.iter().zip(&found).flat_map(|(seen, (_, values))| {
                    let columns = (0..values.len().min(seen.len())).filter(|c| values[*c] != seen[*c]);
                    columns.map(|c| format!("column {c} is {}, not {}", short(&values[c]), short(&seen[c]))).collect::<Vec<_>>()
                });
                let (differs, there, must) = (differs.collect::<Vec<_>>().join("; "), found.is_some(), seen.is_some());
                let what = format!("row {table}/{n} is seen {count} times, is there: {there}, must be: {must}; {differs}");
                Err(Halt::Fault(what))
            }
        }
    }

    /// What a statement may have locked for this. Also locks of a statement that failed stay, and so do those of the rows that had the keys it looked for.
    fn touch(&mut self, w: &mut Writer<'_>, intent: &Intent) -> BTreeSet<Place> {
        if let Some(after) = &intent.after {
            self.committed.note(intent.table, intent.before.as_ref(), after);
        }
        let reach = self.committed.reach(&intent.places());
        w.touched.extend(reach.iter().copied());
        reach
    }

    /// May this come of the statement? Its change is noted.
    fn judge(&mut self, w: &mut Writer<'_>, intent: &Intent, statement: &Statement, done: Result<bool>) -> std::result::Result<(), Halt> {
        let places = intent.places();
        let reach = self.touch(w, intent);
        let fault = |what: String| Err(Halt::Fault(format!("{statement:?}: {what}")));
        let duplicate = self.duplicate(w, intent);
        match done {
            Ok(changed) => {
                if let Some(key) = duplicate {
                    return fault(format!("done, though {key:?} is taken"));
                }
                if let Some(place) = places.iter().find(|place| self.is_in_work(**place)) {
                    return fault(format!("done, though another one is at {place:?}"));
                }
                // Of a row of its own others may have had the number, and given it back since.
                let is_own = w.overlay.contains_key(&(intent.table, intent.n));
                let changed_since = !is_own && self.changed_since(w, &[Place::Row(intent.table, intent.n)]);
                if intent.before.is_some() && changed == changed_since {
                    return fault(format!("found: {changed}, changed since the snapshot: {changed_since}"));
                }
                if changed {
                    self.trouble.meet("done");
                    self.apply(w, intent);
                }
                Ok(())
            }
            Err(Error::DuplicateKey { .. }) if duplicate.is_some() => {
                self.trouble.meet("a duplicate key");
                Ok(())
            }
            Err(Error::Value(_)) if statement.may_be_too_wide() => {
                self.trouble.meet("a value, key or row that is too wide");
                Ok(())
            }
            Err(Error::Stale { .. }) if self.defined_since(w, intent.table) => {
                self.trouble.meet("a table that is not the one of the snapshot any more");
                Ok(())
            }
            Err(Error::Lock(_)) if self.is_held(&reach) || self.is_held_as_a_whole(Whole::Table(intent.table)) => {
                self.trouble.meet("a lock that another one holds");
                w.failed = true;
                Ok(())
            }
            // While a build waits for those who ran, a slot may have another row than the one that an entry of a unique key is of.
            Err(Error::Lock(_))
                if self.building.as_ref().is_some_and(|b| b.table == intent.table && b.is_kept()) && !self.writers.is_empty() =>
            {
                self.trouble.meet("a lock that another one holds, perhaps");
                w.failed = true;
                Ok(())
            }
            Err(Error::Conflict { .. }) if self.changed_since(w, &reach) => {
                self.trouble.meet("a conflict");
                w.failed = true;
                Ok(())
            }
            Err(Error::Serialization(_)) if w.transaction.isolation() == Isolation::Serializable && !self.is_alone(w.began) => {
                self.trouble.meet("a serialization failure");
                w.failed = true;
                Ok(())
            }
            Err(error @ (Error::Io(_) | Error::Poisoned(_))) => self.expect_trouble(&error, &format!("{statement:?}")),
            Err(error) => {
                let held: Vec<_> = self.writers.iter().map(|(writer, other)| (*writer, other.touched.clone())).collect();
                fault(format!("{error}; nothing speaks for that; it reaches {reach:?}, others hold {held:?}"))
            }
        }
    }

    fn apply(&mut self, w: &mut Writer<'_>, intent: &Intent) {
        let Intent { table, n, .. } = *intent;
        if intent.deletes {
            w.overlay.insert((table, n), None);
        } else if let Some(after) = &intent.after {
            if number(after) != n {
                w.overlay.insert((table, n), None);
            }
            w.overlay.insert((table, number(after)), Some(Arc::clone(after)));
        }
    }

    /// A key that the statement would give twice, as rows are now.
    fn duplicate(&self, w: &Writer<'_>, intent: &Intent) -> Option<Place> {
        let after = intent.after.as_ref()?;
        let (table, own) = (intent.table, intent.before.as_ref().map(|_| intent.n));
        let now = self.committed.with(&w.overlay, &w.alterations);
        let to = number(after);
        if own != Some(to) && now[table].contains_key(&to) {
            return Some(Place::Row(table, to));
        }
        let u = unique(after)?;
        let taken = now[table].iter().any(|(n, row)| Some(*n) != own && unique(row) == Some(u));
        taken.then_some(Place::Unique(table, u))
    }

    /// Has another transaction changed something there that it may take back?
    fn is_in_work(&self, place: Place) -> bool {
        self.writers.values().any(|other| {
            other.overlay.iter().any(|((table, n), row)| {
                let before = self.committed.state[*table].get(n);
                places(*table, *n, &[before.filter(|before| row.as_ref().map(|row| unique(row)) != Some(unique(before))), row.as_ref()])
                    .contains(&place)
            })
        })
    }

    /// Does another transaction that runs hold, or has it held, one of these?
    fn is_held(&self, places: &BTreeSet<Place>) -> bool {
        let held: BTreeSet<Place> = self.writers.values().flat_map(|other| other.touched.iter().copied()).collect();
        places.iter().any(|place| held.contains(place))
    }

    /// Does another transaction that runs hold the table, or name, as a whole?
    pub(crate) fn is_held_as_a_whole(&self, whole: Whole) -> bool {
        self.writers.values().any(|other| other.wholes.contains(&whole))
    }

    /// Does another transaction that runs hold it, or may it have changed rows of the table?
    pub(crate) fn is_used(&self, whole: Whole) -> bool {
        let is_of = |place: &Place| whole == Whole::Table(place.table());
        self.is_held_as_a_whole(whole) || self.writers.values().any(|other| other.touched.iter().any(is_of))
    }

    /// Has a commit since the snapshot made or dropped something of the table?
    pub(crate) fn defined_since(&self, w: &Writer<'_>, table: usize) -> bool {
        w.snapshot.as_ref().is_some_and(|(_, count)| self.committed.defined_since(table, *count))
    }

    /// Has a commit since the snapshot changed one of these?
    fn changed_since<'p>(&self, w: &Writer<'_>, places: impl IntoIterator<Item = &'p Place>) -> bool {
        w.snapshot.as_ref().is_some_and(|(_, count)| places.into_iter().any(|place| self.committed.changed_since(*place, *count)))
    }
}

/// Short rows; one of them may be otherwise.
fn several(numbers: &[i64], large: bool, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let odd = random.below(2 * numbers.len() as u64) as usize;
    let rows = numbers.iter().enumerate().map(|(at, n)| {
        let mut sizes = [Size::Short; COLUMNS];
        sizes[COLUMNS - 1] = Size::Null;
        // No two have the same value where it must be unique.
        if at != 0 {
            sizes[UNIQUE] = Size::Null;
        }
        if at == odd {
            sizes[1 + random.below(4) as usize] = Size::of(&mut random, large);
        }
        row(*n, &sizes, seed ^ *n as u64)
    });
    rows.collect()
}

/// Inserts short rows in one transaction.
pub(crate) fn fill(player: &mut Player<'_>, numbers: impl Iterator<Item = (usize, i64)>) {
    player.begin(0, Isolation::ReadCommitted, Durability::Durable);
    let Some(w) = player.writers.get_mut(&0) else { return };
    for (table, n) in numbers {
        let object = player.database.table(TABLES[table]).unwrap();
        let row = short_row(n, n as u64);
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        w.transaction.insert(&object, &values).unwrap();
        w.overlay.insert((table, n), Some(row));
    }
}
