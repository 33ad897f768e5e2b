//! The tables and indexes of an open database.
//!
//! * `places`: where they are found, by name and by number
//! * `opening`: opening them
//! * `members`: the range partitions of partitioned tables
//! * `partitioned`: a partitioned table as a value: which partition has which keys
//! * `beside`: what the catalog's data set does not say yet
//!
//! Invariants:
//! - what is in memory as the set of tables and indexes is what is committed;
//! - a table that is open knows its indexes;
//! - nothing is read of the files of a table that nobody has used, unless the log has something for it.

mod beside;
mod members;
mod opening;
mod partitioned;
mod places;

pub(crate) use beside::Beside;
pub(crate) use opening::{Broken, Headers, KnownDataSets, Opening, open_index, open_table, reason_of};
pub use partitioned::{PartitionedTable, RangePartition, first_key, partition_name, split_partition_name};
pub(crate) use partitioned::{SEPARATOR, TEMPLATE_NAME};
pub(crate) use places::Place;

use crate::catalog::{
    Defined, OtherEntry, catalog_attributes, definition_damage, definition_data_sets, definition_notes, in_place_of, read_catalog,
    read_definition, with_data_sets,
};
use crate::core::Core;
use crate::data_set::{DataSet, DataSetAttributes, DataSetEntry, HeaderWrites};
use crate::directory::data_set_path;
use crate::index::Index;
use crate::steps::stepping;
use crate::table_space::Table;
use crate::{Error, Result};
use members::Members;
use pagefold_format::catalog::{DefinedKind, DefinitionView};
use pagefold_format::control::ControlSlot;
use pagefold_format::log::{Checkpoint, DataSetState};
use places::Directory;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Object id of the catalog.
pub(crate) const CATALOG_OBJECT: u32 = 0;

/// What a change has made, and what it has dropped.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) indexes: Vec<Arc<Index>>,
    pub(crate) dropped_tables: Vec<Arc<Table>>,
    pub(crate) dropped_indexes: Vec<Arc<Index>>,
    /// What has no pages. It has no lifetime: a transaction finds what is committed.
    pub(crate) others: Vec<Arc<OtherEntry>>,
    pub(crate) dropped_others: Vec<Arc<OtherEntry>>,
    /// Tables as they are now, and as they were.
    pub(crate) altered_tables: Vec<(Arc<Table>, Arc<Table>)>,
    /// Indexes likewise.
    pub(crate) altered_indexes: Vec<(Arc<Index>, Arc<Index>)>,
    /// Objects of which something else is said now, by number, and their definitions.
    pub(crate) altered: Vec<(u32, Arc<[u8]>)>,
}

/// Tables and indexes, and the data set that says so.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) control: ControlSlot,
    pub(crate) tables: Directory<Table>,
    pub(crate) indexes: Directory<Index>,
    /// What has no pages.
    pub(crate) others: Directory<OtherEntry>,
    /// Which of the tables are range partitions, of which partitioned table.
    pub(crate) members: Members,
    /// Places of indexes, by table and index.
    of_tables: BTreeMap<(u32, u32), Arc<Place<Index>>>,
    pub(crate) catalog: Arc<DataSet>,
    /// What is not as the catalog's data set says.
    pub(crate) beside: Beside,
    /// The database has no log: header pages have been written just as often as the catalog says.
    exactly: bool,
}

impl Objects {
    /// Those of a database in which nothing is, but its catalog.
    pub(crate) fn none(control: ControlSlot, catalog: Arc<DataSet>, exactly: bool) -> Objects {
        Objects {
            control,
            tables: Directory::default(),
            indexes: Directory::default(),
            others: Directory::default(),
            members: Members::default(),
            of_tables: BTreeMap::new(),
            catalog,
            beside: Beside::default(),
            exactly,
        }
    }

    /// What these are, in the place of which nothing is left.
    pub(crate) fn take(&mut self) -> Objects {
        let none = Objects::none(self.control, Arc::clone(&self.catalog), self.exactly);
        std::mem::replace(self, none)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.tables.len() + self.indexes.len() + self.others.len()
    }

    /// Adds a table. False when its name or number is taken, or it has the range of another one.
    ///
    /// # Errors
    /// When its definition makes no sense.
    pub(crate) fn insert_table(&mut self, place: Arc<Place<Table>>) -> Result<bool> {
        Ok(self.members.insert(&place)? && self.tables.insert(place))
    }

    /// Takes the table of this number out.
    pub(crate) fn remove_table(&mut self, object_id: u32) -> Option<Arc<Place<Table>>> {
        let place = self.tables.remove(object_id)?;
        self.members.remove(&place);
        Some(place)
    }

    /// Adds an index. False when its name or number is taken.
    pub(crate) fn insert_index(&mut self, place: Arc<Place<Index>>) -> bool {
        let is_new = self.indexes.insert(Arc::clone(&place));
        if is_new {
            self.of_tables.insert((place.owner, place.object_id), place);
        }
        is_new
    }

    /// Takes the index of this number out.
    pub(crate) fn remove_index(&mut self, object_id: u32) -> Option<Arc<Place<Index>>> {
        let place = self.indexes.remove(object_id)?;
        self.of_tables.remove(&(place.owner, place.object_id));
        Some(place)
    }

    /// Places of the indexes of a table.
    fn places_of(&self, table: u32) -> impl Iterator<Item = &Arc<Place<Index>>> {
        self.of_tables.range((table, 0)..=(table, u32::MAX)).map(|(_, place)| place)
    }

    /// Numbers of the indexes of a table.
    pub(crate) fn index_numbers_of(&self, table: u32) -> Vec<u32> {
        self.places_of(table).map(|place| place.object_id).collect()
    }

    /// Indexes of a table that are open.
    pub(crate) fn opened_indexes_of(&self, table: u32) -> impl Iterator<Item = Arc<Index>> {
        self.places_of(table).filter_map(|place| place.opened())
    }

    /// Takes out what a change has dropped, and puts in what it has made.
    pub(crate) fn replace(&mut self, replaced: &Replaced, timestamp: u64) {
        // What comes to each table that gets or loses an index.
        let mut changed: HashMap<u32, Vec<Arc<Index>>> = HashMap::new();
        for index in &replaced.dropped_indexes {
            self.remove_index(index.object_id);
            if let Some(table) = self.open_table(index.table_id) {
                table.loses_an_index(timestamp);
            }
            changed.entry(index.table_id).or_default();
            self.beside.defined(index.object_id);
        }
        for table in &replaced.dropped_tables {
            self.remove_table(table.object_id);
            self.beside.defined(table.object_id);
        }
        for other in &replaced.dropped_others {
            self.others.remove(other.object_id);
            self.beside.defined(other.object_id);
        }
        // Names may go from one to another: all are given up first.
        for (table, _) in &replaced.altered_tables {
            self.remove_table(table.object_id);
        }
        for (index, _) in &replaced.altered_indexes {
            self.remove_index(index.object_id);
        }
        for (table, _) in &replaced.altered_tables {
            let is_new = self.insert_table(Arc::new(Place::open(Arc::clone(table))));
            debug_assert!(matches!(is_new, Ok(true)), "the change has locked its name");
            self.beside.defined(table.object_id);
        }
        for (index, _) in &replaced.altered_indexes {
            let is_new = self.insert_index(Arc::new(Place::open(Arc::clone(index))));
            debug_assert!(is_new, "the change has locked its name");
            changed.entry(index.table_id).or_default().push(Arc::clone(index));
            self.beside.defined(index.object_id);
        }
        for table in &replaced.tables {
            let is_new = self.insert_table(Arc::new(Place::open(Arc::clone(table))));
            debug_assert!(matches!(is_new, Ok(true)), "the change has locked its name");
            self.beside.defined(table.object_id);
        }
        for index in &replaced.indexes {
            let is_new = self.insert_index(Arc::new(Place::open(Arc::clone(index))));
            debug_assert!(is_new, "the change has locked its name");
            changed.entry(index.table_id).or_default().push(Arc::clone(index));
            self.beside.defined(index.object_id);
        }
        for other in &replaced.others {
            let is_new =
                self.others.insert(Arc::new(Place::described(other.object_id, other.object_id, &other.name, other.definition.clone())));
            debug_assert!(is_new, "the change has locked its name");
            self.beside.defined(other.object_id);
        }
        for (object_id, definition) in &replaced.altered {
            // It was made here, of an object that is locked.
            let altered = self.alter(*object_id, definition);
            debug_assert!(matches!(altered, Ok(true)), "{altered:?}");
        }
        // A dropped table keeps its indexes, for those who still have it.
        for (table, mut indexes) in changed.into_iter().filter_map(|(table, new)| Some((self.open_table(table)?, new))) {
            let known: HashSet<u32> = indexes.iter().map(|index| index.object_id).collect();
            let stays = |index: &&Arc<Index>| self.indexes.by_id(index.object_id).is_some() && !known.contains(&index.object_id);
            indexes.extend(table.all_indexes().iter().filter(stays).cloned());
            table.set_all_indexes(indexes);
        }
    }

    /// Puts another definition, whose data sets do not count, in the place of that of an object which is there. False when there is none.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(crate) fn alter(&mut self, object_id: u32, definition: &[u8]) -> Result<bool> {
        self.beside.defined(object_id);
        let of_table = |table: &Table, definition: &[u8]| definition_notes(definition).map(|notes| table.set_notes(notes));
        let of_index = |index: &Index, definition: &[u8]| {
            index.set_notes(definition_notes(definition)?);
            definition_damage(definition)?.into_iter().for_each(|reason| index.set_damaged(reason, true));
            Ok(())
        };
        let table = self.tables.by_id(object_id).map(|place| place.alter(definition, of_table));
        let index = || self.indexes.by_id(object_id).map(|place| place.alter(definition, of_index));
        let other = || self.others.by_id(object_id).map(|place| place.alter(definition, |_, _| Ok(())));
        table.or_else(index).or_else(other).transpose().map(|found| found.is_some())
    }

    /// The same while the log is redone: the object may have another name, or other columns, then.
    ///
    /// # Errors
    /// When a definition makes no sense, or the object cannot be so.
    pub(crate) fn redefine(&mut self, object_id: u32, definition: &[u8]) -> Result<bool> {
        self.beside.defined(object_id);
        if let Some(place) = self.remove_table(object_id) {
            let Some(table) = place.opened() else { return self.describe_again(object_id, definition, place.definition()) };
            let Defined::Table(entry) = read_definition(object_id, definition, |_| None)? else { return Ok(false) };
            table.set_layouts(entry.attributes.layouts.clone());
            let altered = Arc::new(table.altered(entry.attributes)?);
            return self.insert_table(Arc::new(Place::open(altered)));
        }
        if let Some(place) = self.remove_index(object_id) {
            let Some(index) = place.opened() else { return self.describe_again(object_id, definition, place.definition()) };
            let table = self.open_table(index.table_id);
            let schema = table.map(|table| table.attributes().schema.clone());
            let Defined::Index(entry) = read_definition(object_id, definition, |_| schema.clone())? else { return Ok(false) };
            let altered = Arc::new(index.altered(schema.as_ref(), entry.attributes)?);
            entry.damaged.into_iter().for_each(|reason| altered.set_damaged(reason, true));
            return Ok(self.insert_index(Arc::new(Place::open(altered))));
        }
        match self.others.remove(object_id) {
            Some(place) => self.describe_again(object_id, definition, place.definition()),
            None => Ok(false),
        }
    }

    fn describe_again(&mut self, object_id: u32, definition: &[u8], before: Option<Vec<u8>>) -> Result<bool> {
        let Some(before) = before else { return Ok(false) };
        self.insert_described(object_id, in_place_of(definition, &before)?.into()).map(|()| true)
    }

    /// Is there something of this number?
    pub(crate) fn has(&self, object_id: u32) -> bool {
        self.tables.by_id(object_id).is_some() || self.indexes.by_id(object_id).is_some() || self.others.by_id(object_id).is_some()
    }

    fn open_table(&self, object_id: u32) -> Option<Arc<Table>> {
        self.tables.by_id(object_id)?.opened()
    }

    /// All data sets of tables and indexes that somebody has used.
    pub(crate) fn open_data_sets(&self) -> impl Iterator<Item = Arc<DataSet>> {
        let of_tables = self.tables.opened().flat_map(|table| table.all_partitions());
        of_tables.chain(self.indexes.opened().map(|index| Arc::clone(&index.data_set)))
    }

    /// The files that the definitions of what nobody has used name, each with the number of the table.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(crate) fn described_files(&self) -> Result<Vec<(DataSetEntry, u32)>> {
        let mut files = Vec::new();
        let mut add = |data_sets: Option<Result<Vec<DataSetEntry>>>, table: u32| -> Result<()> {
            files.extend(data_sets.transpose()?.into_iter().flatten().map(|entry| (entry, table)));
            Ok(())
        };
        self.tables.places().try_for_each(|place| add(place.look(definition_data_sets), place.object_id))?;
        self.indexes.places().try_for_each(|place| add(place.look(definition_data_sets), place.owner))?;
        Ok(files)
    }

    /// Tells each table that is open which indexes it has, by name.
    pub(crate) fn tell_tables(&self) {
        let mut of_tables: HashMap<u32, Vec<Arc<Index>>> = HashMap::new();
        for index in self.indexes.opened() {
            of_tables.entry(index.table_id).or_default().push(index);
        }
        for table in self.tables.opened() {
            table.set_all_indexes(of_tables.remove(&table.object_id).unwrap_or_default());
        }
    }

    /// Names of the indexes of which the log or the catalog says that they are damaged.
    pub(crate) fn damaged_index_names(&self) -> Vec<String> {
        let is_damaged = |place: &&Arc<Place<Index>>| match place.opened() {
            Some(index) => index.recorded_damage().is_some(),
            None => place.look(definition_damage).is_some_and(|damage| matches!(damage, Ok(Some(_)))),
        };
        self.indexes.places().filter(is_damaged).map(|place| place.name.to_string()).collect()
    }

    /// What opens the table of a number, with its indexes; `None` when there is none.
    pub(crate) fn opening(&self, table: u32) -> Option<Opening> {
        let place = Arc::clone(self.tables.by_id(table)?);
        Some(Opening { place, indexes: self.places_of(table).cloned().collect(), exactly: self.exactly })
    }
}

/// Reads what a state of the control file and its checkpoint name. Nothing is read of tables and indexes themselves.
pub(crate) fn open_objects(core: &Arc<Core>, control: ControlSlot, checkpoint: Option<&Checkpoint>) -> Result<Objects> {
    let space = Table::create(Arc::clone(core), CATALOG_OBJECT, catalog_attributes()?)?;
    let attributes = catalog_data_set(&space, control.catalog_file_id);
    let path: PathBuf = data_set_path(&core.directory, control.catalog_file_id);
    if !core.storage.exists(&path)? {
        return Err(Error::Damaged { path: path.display().to_string(), reason: "the catalog is missing".into() });
    }
    let catalog = core.open_data_set(attributes, &space.attributes().pool, Some(HeaderWrites::Exactly(control.catalog_writes)))?;
    space.attach(Arc::clone(&catalog))?;
    let mut definitions = read_catalog(&space)?;
    let mut objects = Objects::none(control, catalog, checkpoint.is_none());
    let mut known: HashMap<u32, Vec<&DataSetState>> = HashMap::new();
    if let Some(checkpoint) = checkpoint {
        objects.beside = Beside::of(checkpoint);
        if !checkpoint.committed.is_empty() {
            let later: HashSet<u32> = checkpoint.committed.iter().map(|(object_id, _)| *object_id).collect();
            definitions.retain(|(object_id, _)| !later.contains(object_id));
            let there = checkpoint.committed.iter().filter_map(|(object_id, definition)| Some((*object_id, definition.as_deref()?.into())));
            definitions.extend(there);
        }
        for state in checkpoint.data_sets.iter().map(stepping) {
            known.entry(state.object_id).or_default().push(state);
        }
    }
    for (object_id, definition) in definitions {
        let definition = match known.get(&object_id) {
            Some(states) => with_data_sets(&definition, &as_at_checkpoint(definition_data_sets(&definition)?, states))?.into(),
            None => definition,
        };
        core.see_object_id(object_id);
        objects.insert_described(object_id, definition)?;
    }
    if let Some(place) = objects.indexes.places().find(|place| objects.tables.by_id(place.owner).is_none()) {
        let reason = format!("index \"{}\" belongs to table number {}, which does not exist", place.name, place.owner);
        return Err(Error::Damaged { path: "catalog".into(), reason });
    }
    Ok(objects)
}

impl Objects {
    /// Adds what nobody has used, by its definition.
    ///
    /// # Errors
    /// When that makes no sense, or its name or number is taken.
    pub(crate) fn insert_described(&mut self, object_id: u32, definition: Box<[u8]>) -> Result<()> {
        let damaged = |reason: String| Error::Damaged { path: "catalog".into(), reason };
        let view = DefinitionView::new(&definition).map_err(|e| damaged(format!("object number {object_id}: {e}")))?;
        let (kind, name) = (view.kind, view.name.to_owned());
        let is_new = match kind {
            DefinedKind::Table => self.insert_table(Arc::new(Place::described(object_id, object_id, &name, definition)))?,
            DefinedKind::Index => {
                let table = view.table().map_err(|e| damaged(format!("index \"{name}\": {e}")))?;
                self.insert_index(Arc::new(Place::described(object_id, table, &name, definition)))
            }
            _ => self.others.insert(Arc::new(Place::described(object_id, object_id, &name, definition))),
        };
        if is_new { Ok(()) } else { Err(damaged(format!("{} \"{name}\" comes twice in the catalog", kind.name()))) }
    }
}

/// What a definition says of its data sets, as a checkpoint knows better.
fn as_at_checkpoint(mut data_sets: Vec<DataSetEntry>, states: &[&DataSetState]) -> Vec<DataSetEntry> {
    let written = |state: &DataSetState| Some(state.header_writes).filter(|writes| *writes > 0);
    let mut added = Vec::new();
    for state in states {
        match data_sets.iter_mut().find(|entry| entry.file_id == state.file_id) {
            Some(entry) => entry.header_writes = entry.header_writes.max(written(state)),
            None => added.push(DataSetEntry { file_id: state.file_id, partition: state.partition, header_writes: written(state) }),
        }
    }
    added.sort_unstable_by_key(|entry| entry.partition);
    data_sets.extend(added);
    data_sets
}

/// What a catalog's data set is.
pub(crate) fn catalog_data_set(space: &Table, file_id: u32) -> DataSetAttributes {
    DataSetAttributes { file_id, object: "catalog".into(), ..space.data_set_attributes(0) }
}
