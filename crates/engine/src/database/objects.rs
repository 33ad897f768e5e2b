//! The tables and indexes of an open database, by name and by number.
//!
//! Invariants:
//! - what is in memory as the set of tables and indexes is what is committed;
//! - by name and by number the same objects are found;
//! - a table knows its indexes: [`Objects::tell_tables`] is called before anybody sees a new set.

use super::former::Replaced;
use crate::catalog::{DataSetEntry, IndexEntry, TableEntry, catalog_attributes, read_catalog};
use crate::core::{Core, data_set_path};
use crate::data_set::{DataSet, DataSetAttributes, HeaderWrites};
use crate::index::Index;
use crate::steps::{step, stepping};
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::control::ControlSlot;
use pagefold_format::log::{Checkpoint, DataSetState};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

/// Object id of the catalog.
pub(super) const CATALOG_OBJECT: u32 = 0;

/// What has a name and a number.
pub(crate) trait Object {
    fn name(&self) -> &str;
    fn object_id(&self) -> u32;
}

impl Object for Table {
    fn name(&self) -> &str {
        Table::name(self)
    }
    fn object_id(&self) -> u32 {
        self.object_id
    }
}

impl Object for Index {
    fn name(&self) -> &str {
        Index::name(self)
    }
    fn object_id(&self) -> u32 {
        self.object_id
    }
}

/// Objects of one kind. It is read as the map by name.
#[derive(Debug)]
pub(crate) struct Directory<T> {
    by_name: BTreeMap<String, Arc<T>>,
    by_id: HashMap<u32, Arc<T>>,
}

impl<T> Default for Directory<T> {
    fn default() -> Directory<T> {
        Directory { by_name: BTreeMap::new(), by_id: HashMap::new() }
    }
}

impl<T> Clone for Directory<T> {
    fn clone(&self) -> Directory<T> {
        Directory { by_name: self.by_name.clone(), by_id: self.by_id.clone() }
    }
}

impl<T> Deref for Directory<T> {
    type Target = BTreeMap<String, Arc<T>>;
    fn deref(&self) -> &BTreeMap<String, Arc<T>> {
        &self.by_name
    }
}

impl<T: Object> Directory<T> {
    /// The object of this number.
    pub(crate) fn by_id(&self, object_id: u32) -> Option<&Arc<T>> {
        step();
        self.by_id.get(&object_id)
    }

    /// Adds an object. False when its name or number is taken; nothing has changed then.
    pub(crate) fn insert(&mut self, object: Arc<T>) -> bool {
        let is_new = !self.by_name.contains_key(object.name()) && !self.by_id.contains_key(&object.object_id());
        if is_new {
            self.by_id.insert(object.object_id(), Arc::clone(&object));
            self.by_name.insert(object.name().into(), object);
        }
        is_new
    }

    /// Takes the object of this number out.
    pub(crate) fn remove(&mut self, object_id: u32) -> Option<Arc<T>> {
        let removed = self.by_id.remove(&object_id)?;
        self.by_name.remove(removed.name());
        Some(removed)
    }
}

/// Tables and indexes, and the data set that says so.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) control: ControlSlot,
    pub(crate) tables: Directory<Table>,
    pub(crate) indexes: Directory<Index>,
    pub(crate) catalog: Arc<DataSet>,
}

impl Objects {
    /// Takes out what a change has dropped, and puts in what it has made.
    pub(super) fn replace(&mut self, replaced: &Replaced, timestamp: u64) {
        // What comes to each table that gets or loses an index.
        let mut changed: HashMap<u32, Vec<Arc<Index>>> = HashMap::new();
        for index in &replaced.dropped_indexes {
            self.indexes.remove(index.object_id);
            if let Some(table) = self.tables.by_id(index.table_id) {
                table.loses_an_index(timestamp);
            }
            changed.entry(index.table_id).or_default();
        }
        for table in &replaced.dropped_tables {
            self.tables.remove(table.object_id);
        }
        for table in &replaced.tables {
            let is_new = self.tables.insert(Arc::clone(table));
            debug_assert!(is_new, "the change has locked its name");
        }
        for index in &replaced.indexes {
            let is_new = self.indexes.insert(Arc::clone(index));
            debug_assert!(is_new, "the change has locked its name");
            changed.entry(index.table_id).or_default().push(Arc::clone(index));
        }
        // A dropped table keeps its indexes, for those who still have it.
        for (table, mut indexes) in changed.into_iter().filter_map(|(table, new)| Some((self.tables.by_id(table)?, new))) {
            let known: HashSet<u32> = indexes.iter().map(|index| index.object_id).collect();
            let stays = |index: &&Arc<Index>| self.indexes.by_id(index.object_id).is_some() && !known.contains(&index.object_id);
            indexes.extend(table.indexes().iter().filter(stays).cloned());
            indexes.sort_unstable_by(|a, b| a.name().cmp(b.name()));
            table.set_indexes(indexes);
        }
    }

    /// All data sets of tables and indexes.
    pub(crate) fn data_sets(&self) -> impl Iterator<Item = Arc<DataSet>> {
        let of_tables = self.tables.values().flat_map(|table| table.all_partitions());
        of_tables.chain(self.indexes.values().map(|index| Arc::clone(&index.data_set)))
    }

    /// Tells each table which indexes it has, by name.
    pub(crate) fn tell_tables(&self) {
        let mut of_tables: HashMap<u32, Vec<Arc<Index>>> = HashMap::new();
        for index in self.indexes.values() {
            of_tables.entry(index.table_id).or_default().push(Arc::clone(index));
        }
        for table in self.tables.values() {
            table.set_indexes(of_tables.remove(&table.object_id).unwrap_or_default());
        }
    }
}

/// A data set whose file is not there, or is damaged, and what the attempt to use it said. The log may say that it was dropped.
pub(crate) type Broken = (Arc<DataSet>, Error);

/// Opens what a state of the control file names. With a checkpoint, data sets may be broken.
pub(crate) fn open_objects(core: &Arc<Core>, control: ControlSlot, checkpoint: Option<&Checkpoint>) -> Result<(Objects, Vec<Broken>)> {
    let space = Table::create(Arc::clone(core), CATALOG_OBJECT, catalog_attributes()?)?;
    let attributes = catalog_data_set(&space, control.catalog_file_id);
    let path: PathBuf = data_set_path(&core.directory, control.catalog_file_id);
    if !core.storage.exists(&path)? {
        return Err(Error::Damaged { path: path.display().to_string(), reason: "the catalog is missing".into() });
    }
    let catalog = core.open_data_set(attributes, &space.attributes().pool, Some(HeaderWrites::Exactly(control.catalog_writes)))?;
    space.attach(Arc::clone(&catalog))?;
    let entries = read_catalog(&space)?;
    let mut objects = Objects { control, tables: Directory::default(), indexes: Directory::default(), catalog };
    let mut broken = Vec::new();
    let known = checkpoint.map(KnownDataSets::new);
    let headers = known.as_ref().map_or(Headers::Catalog, Headers::Checkpoint);
    for entry in entries.tables {
        let table = Arc::new(open_table(core, entry, headers, &mut broken)?);
        if !objects.tables.insert(Arc::clone(&table)) {
            return Err(objects.catalog.corrupt(0, format!("{} comes twice in the catalog", table.object())));
        }
    }
    for entry in entries.indexes {
        let Some(table) = objects.tables.by_id(entry.table_id) else { continue };
        let index = Arc::new(open_index(core, table, entry, headers, &mut broken)?);
        if !objects.indexes.insert(Arc::clone(&index)) {
            return Err(objects.catalog.corrupt(0, format!("index \"{}\" comes twice in the catalog", index.name())));
        }
    }
    objects.tell_tables();
    match broken.pop() {
        Some((_, error)) if known.is_none() => Err(error),
        last => {
            broken.extend(last);
            Ok((objects, broken))
        }
    }
}

/// What a catalog's data set is.
pub(super) fn catalog_data_set(space: &Table, file_id: u32) -> DataSetAttributes {
    DataSetAttributes { file_id, object: "catalog".into(), ..space.data_set_attributes(0) }
}

/// A table that the catalog or the log names. Numbers that it has are not given again.
pub(crate) fn open_table(core: &Arc<Core>, entry: TableEntry, headers: Headers<'_>, broken: &mut Vec<Broken>) -> Result<Table> {
    core.see_object_id(entry.object_id);
    let table = Table::create(Arc::clone(core), entry.object_id, entry.attributes)?;
    let mut attach = |partition: u16, file_id: u32, writes: Option<HeaderWrites>| {
        let attributes = DataSetAttributes { file_id, ..table.data_set_attributes(partition) };
        table.attach(open_or_break(core, attributes, &table.attributes().pool, writes, broken)?)
    };
    for data_set in &entry.data_sets {
        attach(data_set.partition, data_set.file_id, headers.writes_of(data_set))?;
    }
    if let Headers::Checkpoint(known) = headers {
        let named: BTreeSet<u32> = entry.data_sets.iter().map(|data_set| data_set.file_id).collect();
        for state in known.added_partitions(entry.object_id, &named) {
            attach(state.partition, state.file_id, header_writes(state.header_writes))?;
        }
    }
    Ok(table)
}

/// An index that the catalog or the log names. Numbers that it has are not given again.
pub(crate) fn open_index(
    core: &Arc<Core>,
    table: &Table,
    entry: IndexEntry,
    headers: Headers<'_>,
    broken: &mut Vec<Broken>,
) -> Result<Index> {
    core.see_object_id(entry.object_id);
    let data_set = entry.data_sets[0];
    let attributes = DataSetAttributes { file_id: data_set.file_id, ..Index::data_set_attributes(entry.object_id, &entry.attributes) };
    let opened = open_or_break(core, attributes, &entry.attributes.pool, headers.writes_of(&data_set), broken)?;
    Ok(Index::attach(Arc::clone(core), entry.object_id, entry.table_id, &table.attributes().schema, entry.attributes, opened))
}

/// Opens a data set. One that should have a file, and has none that can be used, comes without it.
fn open_or_break(
    core: &Core,
    attributes: DataSetAttributes,
    pool: &str,
    header_writes: Option<HeaderWrites>,
    broken: &mut Vec<Broken>,
) -> Result<Arc<DataSet>> {
    core.see_file_id(attributes.file_id);
    match core.open_data_set(attributes.clone(), pool, header_writes) {
        Err(error) if header_writes.is_some() => {
            let data_set = core.data_set(attributes, pool)?;
            data_set.poison(&error);
            broken.push((Arc::clone(&data_set), error));
            Ok(data_set)
        }
        opened => opened,
    }
}

/// What is known of the headers of data sets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers<'a> {
    /// What the catalog says, exactly: the database was closed without a log.
    Catalog,
    /// What the log says when it defines them, at least.
    Log,
    /// What a checkpoint says, at least; and which partitions were added before.
    Checkpoint(&'a KnownDataSets<'a>),
}

impl Headers<'_> {
    /// How often the header must have been written; `None`: the log has all of the data set.
    fn writes_of(self, entry: &DataSetEntry) -> Option<HeaderWrites> {
        match self {
            Headers::Catalog => entry.header_writes.map(HeaderWrites::Exactly),
            Headers::Log => entry.header_writes.map(HeaderWrites::AtLeast),
            Headers::Checkpoint(known) => {
                let at_checkpoint = known.by_file.get(&entry.file_id).map_or(0, |state| state.header_writes);
                header_writes(entry.header_writes.unwrap_or(0).max(at_checkpoint))
            }
        }
    }
}

/// The data sets of a checkpoint.
#[derive(Debug)]
pub(crate) struct KnownDataSets<'a> {
    by_file: HashMap<u32, &'a DataSetState>,
    /// By object and partition.
    of_objects: BTreeMap<(u32, u16), Vec<&'a DataSetState>>,
}

impl<'a> KnownDataSets<'a> {
    pub(crate) fn new(checkpoint: &'a Checkpoint) -> KnownDataSets<'a> {
        let mut of_objects: BTreeMap<(u32, u16), Vec<&DataSetState>> = BTreeMap::new();
        for state in checkpoint.data_sets.iter().map(stepping) {
            of_objects.entry((state.object_id, state.partition)).or_default().push(state);
        }
        KnownDataSets { by_file: checkpoint.data_sets.iter().map(|state| (state.file_id, state)).collect(), of_objects }
    }

    /// Those of a table that are not in `named`, by partition: partitions that have been added since the catalog was written.
    fn added_partitions(&self, object_id: u32, named: &BTreeSet<u32>) -> Vec<&'a DataSetState> {
        let of_table = self.of_objects.range((object_id, 0)..=(object_id, u16::MAX)).flat_map(|(_, states)| states).map(stepping);
        of_table.filter(|state| !named.contains(&state.file_id)).copied().collect()
    }
}

/// How often a header must have been written that a checkpoint, or the catalog, knows to have been written so often; 0: the log has all of the data set.
fn header_writes(known: u32) -> Option<HeaderWrites> {
    (known > 0).then_some(HeaderWrites::AtLeast(known))
}
