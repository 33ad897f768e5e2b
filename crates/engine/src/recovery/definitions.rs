//! Which tables and indexes there are, while the log is redone.
//!
//! Invariants:
//! - redo begins with what the catalog named at the checkpoint's cut, and with what transactions that ran then had defined;
//! - what a transaction defines is there for redo of pages from its record on, and for everybody from the commit on;
//! - an index whose data set is missing or broken does not keep the others from being recovered: it is damaged from then on, and the log says so before anything else is done;
//! - a data set whose file is missing or cannot be read is no damage if the log says later that its object was dropped, or never that its transaction was committed: the file went with that, perhaps not
//!   durably, and what was written to it before was not made whole any more.

use super::redo::DataSets;
use crate::catalog::{self, OtherEntry, read_definition};
use crate::core::Core;
use crate::data_set::DataSet;
use crate::index::Index;
use crate::objects::{Broken, Headers, KnownDataSets, Objects, Place, open_index, open_table, reason_of, split_partition_name};
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::catalog::{DefinedKind, DefinitionView};
use pagefold_format::copy::is_asked;
use pagefold_format::log::{Checkpoint, CheckpointDefinition, Lsn, Role, Undo};
use pagefold_types::Schema;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What a transaction has defined.
#[derive(Debug)]
struct Pending {
    transaction: u64,
    /// Start of its record before.
    after: Lsn,
    what: What,
}

#[derive(Debug)]
enum What {
    Table(Arc<Table>),
    Index(Arc<Index>),
    /// Something that has no pages, by number: its definition.
    Other(u32, Box<[u8]>),
    /// Something else is said of an object that is there.
    Altered(u32, Box<[u8]>),
    Gone(u32),
}

impl What {
    fn object_id(&self) -> u32 {
        match self {
            What::Table(table) => table.object_id,
            What::Index(index) => index.object_id,
            What::Other(object_id, _) | What::Altered(object_id, _) | What::Gone(object_id) => *object_id,
        }
    }
}

/// What is to be done about data sets that are missing or broken when nothing in the log makes that good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged<'a> {
    /// It is an error.
    Refuse,
    /// An index is damaged from then on, and the tables that are given up go. Of others it is an error where what the log has for them would be lost; a reader loses nothing, and goes on without
    /// them.
    GoOn {
        /// Which tables go.
        without: Option<GiveUp<'a>>,
    },
}

/// Tables that the database is to be recovered without, should they be too damaged to get what the log has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp<'a> {
    /// Those of these names; of a partitioned one each of its partitions.
    Tables(&'a [String]),
    /// Each.
    Any,
    /// Each; and the tables that are none of these names', or parts of them, are gone whatever they are: a copy of these alone has not their pages, but may have
    /// log of theirs. So are partitioned tables of other names, of which no partition is left. No names: each table is one of them.
    OthersThan(&'a [String]),
}

/// A table that the database was recovered without: it is gone, with its indexes.
#[derive(Clone, Debug)]
pub struct GivenUp {
    /// Its name.
    pub table: String,
    /// What is damaged.
    pub error: Error,
    /// Numbers of the table and of its indexes.
    pub(crate) objects: Vec<u32>,
}

impl GiveUp<'_> {
    fn is(self, table: &str) -> bool {
        match self {
            GiveUp::Tables(names) => {
                let whole = split_partition_name(table).map(|(whole, _)| whole);
                names.iter().any(|name| name == table || Some(name.as_str()) == whole)
            }
            GiveUp::Any | GiveUp::OthersThan(_) => true,
        }
    }
}

/// Tables and indexes during redo.
#[derive(Debug)]
pub(crate) struct Definitions {
    core: Arc<Core>,
    objects: Objects,
    pending: Vec<Pending>,
    broken: Vec<Broken>,
    /// Data sets of what is gone.
    gone: Vec<Arc<DataSet>>,
    given_up: Vec<GivenUp>,
    /// Of the files of tables that nobody had used: the number of the table. Made when it is first asked for.
    files: Option<HashMap<u32, u32>>,
}

/// What there is when redo has come to the end.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) objects: Objects,
    /// Data sets of what is not there any more.
    pub(crate) gone: Vec<Arc<DataSet>>,
    /// What went as it was too damaged.
    pub(crate) given_up: Vec<GivenUp>,
}

fn damaged(reason: String) -> Error {
    Error::Damaged { path: "log".into(), reason }
}

impl Definitions {
    /// As they were at a checkpoint's cut: committed ones, data sets of them that are missing or broken, and those of transactions that ran.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(crate) fn new(
        core: &Arc<Core>,
        objects: Objects,
        broken: Vec<Broken>,
        checkpoint: &Checkpoint,
        data_sets: &mut DataSets,
    ) -> Result<Definitions> {
        let (pending, gone, given_up) = (Vec::new(), Vec::new(), Vec::new());
        let mut definitions = Definitions { core: Arc::clone(core), objects, pending, broken, gone, given_up, files: None };
        let known = KnownDataSets::new(checkpoint);
        for definition in &checkpoint.definitions {
            let CheckpointDefinition { transaction, after, object_id, rows } = definition;
            definitions.define((*transaction, *after), *object_id, rows.as_deref(), Headers::Checkpoint(&known), data_sets)?;
        }
        Ok(definitions)
    }

    /// The table of this number, also one whose transaction has not committed yet.
    ///
    /// # Errors
    /// When nobody has used it, and its definition makes no sense.
    pub(crate) fn table(&mut self, object_id: u32, data_sets: &mut DataSets) -> Result<Option<Arc<Table>>> {
        let Some(place) = self.objects.tables.by_id(object_id) else {
            return Ok(self.pending.iter().find_map(|pending| match &pending.what {
                What::Table(table) if table.object_id == object_id => Some(Arc::clone(table)),
                _ => None,
            }));
        };
        if let Some(table) = place.opened() {
            return Ok(Some(table));
        }
        let Some(opening) = self.objects.opening(object_id) else { return Ok(None) };
        let table = opening.open_to_redo(&self.core, &mut self.broken)?;
        data_sets.extend(table.data_sets().map(|data_set| (data_set.file_id(), Arc::clone(data_set))));
        let indexes = self.objects.opened_indexes_of(object_id);
        data_sets.extend(indexes.map(|index| (index.data_set.file_id(), Arc::clone(&index.data_set))));
        Ok(Some(table))
    }

    /// The data set of a file, if it is one of a table or index that is there. Its table is opened, if nobody has used it.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) fn data_set(&mut self, file_id: u32, data_sets: &mut DataSets) -> Result<Option<Arc<DataSet>>> {
        if let Some(data_set) = data_sets.get(&file_id) {
            return Ok(Some(Arc::clone(data_set)));
        }
        let files = match &mut self.files {
            Some(files) => files,
            none => {
                let described = self.objects.described_files()?;
                none.insert(described.into_iter().map(|(entry, table)| (entry.file_id, table)).collect())
            }
        };
        let Some(table) = files.remove(&file_id) else { return Ok(None) };
        self.table(table, data_sets)?;
        Ok(data_sets.get(&file_id).cloned())
    }

    /// Is there something of this number, committed or not?
    fn has(&self, object_id: u32) -> bool {
        let is_made = |what: &What| !matches!(what, What::Gone(_)) && what.object_id() == object_id;
        self.objects.has(object_id) || self.pending.iter().any(|pending| is_made(&pending.what))
    }

    /// Something in the log could not be done to a data set: nothing more is done to it.
    pub(crate) fn broken(&mut self, data_set: Arc<DataSet>, error: Error) {
        data_set.poison(&error);
        self.broken.push((data_set, error));
    }

    /// Does nothing about data sets that are missing or broken, if they are such.
    pub(crate) fn forget_broken(&mut self, is_such: impl Fn(&DataSet) -> bool) {
        self.broken.retain(|(data_set, _)| !is_such(data_set));
    }

    /// Names of tables that are asked for, committed or not; the numbers of these and of their indexes.
    pub(crate) fn tables_called(&self, is_asked: &dyn Fn(&str) -> bool) -> (Vec<String>, BTreeSet<u32>) {
        let there = self.objects.tables.places().map(|place| (place.object_id, &*place.name));
        let made = self.pending.iter().filter_map(|pending| match &pending.what {
            What::Table(table) => Some((table.object_id, table.name())),
            _ => None,
        });
        let tables: Vec<(u32, &str)> = there.chain(made).filter(|(_, name)| is_asked(name)).collect();
        let mut numbers: BTreeSet<u32> = tables.iter().map(|(object_id, _)| *object_id).collect();
        let made = self.pending.iter().filter_map(|pending| match &pending.what {
            What::Index(index) if numbers.contains(&index.table_id) => Some(index.object_id),
            _ => None,
        });
        let indexes: Vec<u32> = tables.iter().flat_map(|(table, _)| self.objects.index_numbers_of(*table)).chain(made).collect();
        numbers.extend(indexes);
        (tables.into_iter().map(|(_, name)| name.to_owned()).collect(), numbers)
    }

    /// A transaction has done something, or taken something back.
    ///
    /// # Errors
    /// As [`Self::define`].
    pub(crate) fn follow(&mut self, role: &Role<'_>, data_sets: &mut DataSets) -> Result<()> {
        match *role {
            Role::Undoable { transaction, previous, undo: Undo::Definition { object_id, rows } } => {
                self.define((transaction, previous), object_id, rows, Headers::Log, data_sets)
            }
            Role::Compensation { transaction, next } => {
                self.taken_back(transaction, next, data_sets);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A transaction defines an object by its rows of the catalog, or drops it, behind its record at `after`. `headers`: what is known of its data sets.
    ///
    /// # Errors
    /// When the rows make no sense, or a data set cannot be opened.
    fn define(
        &mut self,
        (transaction, after): (u64, Lsn),
        object_id: u32,
        rows: Option<&[u8]>,
        headers: Headers<'_>,
        data_sets: &mut DataSets,
    ) -> Result<()> {
        // A checkpoint may have it, too.
        if self.pending.iter().any(|pending| (pending.transaction, pending.after) == (transaction, after)) {
            return Ok(());
        }
        let schemas = match rows {
            Some(rows) => self.schema_of(transaction, rows, data_sets)?,
            None => None,
        };
        let what = match rows {
            None => What::Gone(object_id),
            Some(rows) if self.has(object_id) => What::Altered(object_id, rows.into()),
            Some(rows) => match read_definition(object_id, rows, |id| schemas.clone().filter(|(table, _)| *table == id).map(|(_, s)| s))? {
                catalog::Defined::Table(entry) => {
                    let table = open_table(&self.core, entry, headers, &mut self.broken)?;
                    data_sets.extend(table.data_sets().map(|data_set| (data_set.file_id(), Arc::clone(data_set))));
                    What::Table(Arc::new(table))
                }
                catalog::Defined::Index(entry) => {
                    let table = self.table(entry.table_id, data_sets)?;
                    let table = table
                        .ok_or_else(|| damaged(format!("it defines an index of table number {}, which is not there", entry.table_id)))?;
                    // Its keys are of columns as the transaction has made them.
                    let schema = schemas.map_or_else(|| table.attributes().schema.clone(), |(_, schema)| schema);
                    let index = open_index(&self.core, &schema, entry, headers, &mut self.broken)?;
                    data_sets.insert(index.data_set.file_id(), Arc::clone(&index.data_set));
                    What::Index(Arc::new(index))
                }
                catalog::Defined::Other(entry) => {
                    self.core.see_object_id(object_id);
                    What::Other(object_id, entry.definition)
                }
            },
        };
        self.pending.push(Pending { transaction, after, what });
        Ok(())
    }

    /// The transaction is committed: what it has defined counts.
    ///
    /// # Errors
    /// When it does not go with what there is.
    pub(crate) fn committed(&mut self, transaction: u64, data_sets: &mut DataSets) -> Result<()> {
        let committed: Vec<Pending> = self.pending.extract_if(.., |pending| pending.transaction == transaction).collect();
        // What goes makes place for what comes under its name, whichever was defined first. What comes and goes does so in this order.
        let is_own = |object_id: u32| {
            committed.iter().any(|pending| !matches!(pending.what, What::Gone(_)) && pending.what.object_id() == object_id)
        };
        let goes_first: Vec<bool> = committed.iter().map(|p| matches!(p.what, What::Gone(object_id) if !is_own(object_id))).collect();
        let (first, then): (Vec<_>, Vec<_>) = committed.into_iter().zip(goes_first).partition(|(_, goes_first)| *goes_first);
        for (Pending { what, .. }, _) in first.into_iter().chain(then) {
            let object_id = what.object_id();
            self.objects.beside.defined(object_id);
            let fits = match what {
                What::Table(table) => self.objects.insert_table(Arc::new(Place::open(table)))?,
                What::Index(index) => self.objects.insert_index(Arc::new(Place::open(index))),
                What::Other(object_id, definition) => self.objects.insert_described(object_id, definition).is_ok(),
                What::Altered(object_id, definition) => self.objects.redefine(object_id, &definition)?,
                What::Gone(object_id) => {
                    let table = self.objects.remove_table(object_id);
                    let index = self.objects.remove_index(object_id);
                    let found = table.is_some() || index.is_some() || self.objects.others.remove(object_id).is_some();
                    // Of what nobody had used there is nothing in memory, and its files are among those that nobody names.
                    let (table, index) = (table.and_then(|place| place.opened()), index.and_then(|place| place.opened()));
                    self.is_gone(
                        table.iter().flat_map(|table| table.data_sets()).chain(index.iter().map(|index| &index.data_set)),
                        data_sets,
                    );
                    found
                }
            };
            if !fits {
                return Err(damaged(format!(
                    "transaction {transaction} defines object number {object_id} in a way that does not go with what is there"
                )));
            }
        }
        Ok(())
    }

    /// The transaction has taken back everything down to its record at `last`; 0: all.
    pub(crate) fn taken_back(&mut self, transaction: u64, last: Lsn, data_sets: &mut DataSets) {
        let taken_back: Vec<Pending> =
            self.pending.extract_if(.., |pending| pending.transaction == transaction && pending.after >= last).collect();
        for Pending { what, .. } in taken_back {
            match what {
                What::Table(table) => self.is_gone(table.data_sets(), data_sets),
                What::Index(index) => self.is_gone([&index.data_set].into_iter(), data_sets),
                What::Other(..) | What::Altered(..) | What::Gone(_) => {}
            }
        }
    }

    /// The columns of the table that an index is of, which these rows define: as the transaction has them, which may have altered the table.
    fn schema_of(&mut self, transaction: u64, rows: &[u8], data_sets: &mut DataSets) -> Result<Option<(u32, Schema)>> {
        let Some(table) = DefinitionView::new(rows).ok().filter(|view| view.kind == DefinedKind::Index).and_then(|view| view.table().ok())
        else {
            return Ok(None);
        };
        let altered = self.pending.iter().rev().find_map(|pending| match &pending.what {
            What::Altered(object_id, rows) if (pending.transaction, *object_id) == (transaction, table) => Some(rows),
            _ => None,
        });
        if let Some(rows) = altered
            && let catalog::Defined::Table(entry) = read_definition(table, rows, |_| None)?
        {
            return Ok(Some((table, entry.attributes.schema)));
        }
        Ok(self.table(table, data_sets)?.map(|found| (table, found.attributes().schema.clone())))
    }

    /// A table goes, with its indexes. Where tables were named, recovery logs that before it takes others back; else nothing is: should
    /// there be a crash before the checkpoint, the table is as damaged as it was.
    fn give_up(&mut self, table: u32, error: Error, data_sets: &mut DataSets) {
        let name = self.objects.tables.by_id(table).map_or_else(String::new, |place| place.name.to_string());
        let objects: Vec<u32> = self.objects.index_numbers_of(table).into_iter().chain([table]).collect();
        self.given_up.push(GivenUp { table: name, error, objects: objects.clone() });
        for object_id in objects {
            self.objects.beside.defined(object_id);
            let index = self.objects.remove_index(object_id).and_then(|place| place.opened());
            let table = self.objects.remove_table(object_id).and_then(|place| place.opened());
            self.is_gone(index.iter().map(|index| &index.data_set), data_sets);
            table.iter().for_each(|table| self.is_gone(table.data_sets(), data_sets));
        }
    }

    /// Partitioned tables that are none of these, and of which no partition is left, go with their indexes.
    fn give_up_wholes(&mut self, names: &[String]) -> Result<()> {
        let described = |kind: DefinedKind| {
            let is_such = move |place: &&Arc<Place<OtherEntry>>| {
                place.look(|bytes| DefinitionView::new(bytes).is_ok_and(|view| view.kind == kind)).unwrap_or_default()
            };
            self.objects.others.places().filter(is_such)
        };
        let is_empty = |place: &&Arc<Place<OtherEntry>>| !is_asked(names, &place.name) && !self.objects.members.has_any(place.object_id);
        let wholes: BTreeSet<u32> = described(DefinedKind::PartitionedTable).filter(is_empty).map(|place| place.object_id).collect();
        let mut gone: Vec<u32> = wholes.iter().copied().collect();
        for index in described(DefinedKind::PartitionedIndex) {
            let notes = index.look(catalog::definition_notes).transpose()?;
            if notes.and_then(|notes| notes.partitioned_table()).is_some_and(|whole| wholes.contains(&whole)) {
                gone.push(index.object_id);
            }
        }
        for object_id in gone {
            self.objects.beside.defined(object_id);
            self.objects.others.remove(object_id);
        }
        Ok(())
    }

    /// A table is there, and not used.
    fn leave_damaged(&mut self, table: u32, error: Error) -> Result<()> {
        let Some(table) = self.objects.tables.by_id(table).and_then(|place| place.opened()) else { return Err(error) };
        table.set_damaged(error);
        Ok(())
    }

    fn is_gone<'a>(&mut self, gone: impl Iterator<Item = &'a Arc<DataSet>>, data_sets: &mut DataSets) {
        for data_set in gone {
            data_sets.remove(&data_set.file_id());
            self.gone.push(Arc::clone(data_set));
        }
    }

    /// Redo has come to the end. Transactions that have not committed have defined nothing.
    ///
    /// # Errors
    /// When a data set of what is there is missing or broken, unless one can do without it.
    pub(crate) fn finish(mut self, damaged: Damaged<'_>, data_sets: &mut DataSets) -> Result<Defined> {
        while let Some(pending) = self.pending.last() {
            self.taken_back(pending.transaction, 0, data_sets);
        }
        if let Damaged::GoOn { without: Some(GiveUp::OthersThan(names)) } = damaged {
            let others = self.objects.tables.places().filter(|place| !is_asked(names, &place.name));
            for (table, name) in others.map(|place| (place.object_id, place.name.to_string())).collect::<Vec<_>>() {
                self.give_up(table, Error::Unknown { kind: "table", name, hint: String::new() }, data_sets);
            }
            self.give_up_wholes(names)?;
        }
        let broken = std::mem::take(&mut self.broken);
        for (data_set, error) in broken {
            // It was dropped later in the log, or is gone with its table by now.
            if !data_sets.contains_key(&data_set.file_id()) {
                continue;
            }
            let object_id = data_set.attributes.object_id;
            let index = self.objects.indexes.by_id(object_id).and_then(|place| place.opened());
            let goes_on = damaged != Damaged::Refuse && error.is_damage();
            match (index, damaged) {
                // The log says that it is damaged, or will when this is known.
                (Some(index), _) if index.damage().is_some() || goes_on => index.set_damaged(reason_of(&error), false),
                (Some(index), Damaged::GoOn { .. }) if !self.core.writable && error.is_refusal() => index.set_refused(error),
                (None, Damaged::GoOn { without: Some(which) })
                    if goes_on && self.objects.tables.by_id(object_id).is_some_and(|place| which.is(&place.name)) =>
                {
                    self.give_up(object_id, error, data_sets);
                }
                (None, Damaged::GoOn { .. }) if !self.core.writable && (goes_on || error.is_refusal()) => {
                    self.leave_damaged(object_id, error)?
                }
                _ => return Err(error),
            }
        }
        for index in self.objects.indexes.opened().filter(|_| damaged != Damaged::Refuse) {
            // The log has what was added to it.
            if let Err(error) = index.data_set.check_length(false) {
                index.set_damaged(reason_of(&error), false);
            }
        }
        let damaged: Vec<_> = self.objects.tables.opened().filter(|table| table.check_usable().is_err()).collect();
        let of_tables = damaged.iter().flat_map(|table| table.data_sets().cloned());
        let of_indexes = self.objects.indexes.opened().filter(|index| index.damage().is_some()).map(|index| Arc::clone(&index.data_set));
        for data_set in of_tables.chain(of_indexes) {
            // Whatever redo has done to its pages is not to be written.
            data_sets.remove(&data_set.file_id());
            self.core.manager.discard(&data_set);
        }
        self.objects.tell_tables();
        Ok(Defined { objects: self.objects, gone: self.gone, given_up: self.given_up })
    }
}
