//! The tables and indexes of an open database, by name and by number.
//!
//! Invariants:
//! - what is in memory as the set of tables and indexes is what the control file names;
//! - by name and by number the same objects are found;
//! - a table knows its indexes: [`Objects::tell_tables`] is called before anybody sees a new set.

use crate::catalog::{DataSetEntry, catalog_attributes, read_catalog};
use crate::core::{Core, data_set_path};
use crate::data_set::{DataSet, DataSetAttributes, HeaderWrites};
use crate::index::Index;
use crate::steps::{step, stepping};
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::control::ControlSlot;
use pagefold_format::data_set_header::ObjectKind;
use pagefold_format::log::{Checkpoint, DataSetState};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    pub(super) fn insert(&mut self, object: Arc<T>) -> bool {
        let is_new = !self.by_name.contains_key(object.name()) && !self.by_id.contains_key(&object.object_id());
        if is_new {
            self.by_id.insert(object.object_id(), Arc::clone(&object));
            self.by_name.insert(object.name().into(), object);
        }
        is_new
    }

    /// Takes an object out. False when there is none of this name.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let removed = self.by_name.remove(name);
        removed.as_ref().is_some_and(|object| self.by_id.remove(&object.object_id()).is_some())
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
    /// Tells each table which indexes it has, by name.
    pub(super) fn tell_tables(&self) {
        let mut of_tables: HashMap<u32, Vec<Arc<Index>>> = HashMap::new();
        for index in self.indexes.values() {
            of_tables.entry(index.table_id).or_default().push(Arc::clone(index));
        }
        for table in self.tables.values() {
            table.set_indexes(of_tables.remove(&table.object_id).unwrap_or_default());
        }
    }
}

/// Opens what a state of the control file names; also the file ids of all of it.
pub(crate) fn open_objects(core: &Arc<Core>, control: ControlSlot, checkpoint: Option<&Checkpoint>) -> Result<(Objects, BTreeSet<u32>)> {
    let space = Table::create(Arc::clone(core), CATALOG_OBJECT, catalog_attributes()?)?;
    let attributes = DataSetAttributes {
        file_id: control.catalog_file_id,
        object_id: CATALOG_OBJECT,
        kind: ObjectKind::Table,
        partition: 0,
        page_bytes: space.attributes().page_bytes,
        leaf_bytes: space.attributes().page_bytes,
        extents: space.attributes().extents,
        object: "catalog".into(),
    };
    let path: PathBuf = data_set_path(&core.directory, control.catalog_file_id);
    if !core.storage.exists(&path)? {
        return Err(Error::Damaged { path: path.display().to_string(), reason: "the catalog is missing".into() });
    }
    let catalog = core.open_data_set(attributes, &space.attributes().pool, Some(HeaderWrites::Exactly(control.catalog_writes)))?;
    space.attach(Arc::clone(&catalog))?;
    let entries = read_catalog(&space)?;
    let mut objects = Objects { control, tables: Directory::default(), indexes: Directory::default(), catalog };
    let known = checkpoint.map(KnownDataSets::new);
    let mut named = BTreeSet::from([control.catalog_file_id]);
    for entry in entries.tables {
        let table = Table::create(Arc::clone(core), entry.object_id, entry.attributes)?;
        for data_set in &entry.data_sets {
            let attributes = table.data_set_attributes(data_set.partition);
            table.attach(open_one(core, attributes, &table.attributes().pool, data_set, known.as_ref())?)?;
            named.insert(data_set.file_id);
        }
        let added = known.as_ref().map(|known| known.added_partitions(entry.object_id, &named));
        for state in added.unwrap_or_default() {
            let attributes = DataSetAttributes { file_id: state.file_id, ..table.data_set_attributes(state.partition) };
            core.see_file_id(state.file_id);
            table.attach(core.open_data_set(attributes, &table.attributes().pool, header_writes(state.header_writes))?)?;
            named.insert(state.file_id);
        }
        let table = Arc::new(table);
        if !objects.tables.insert(Arc::clone(&table)) {
            return Err(objects.catalog.corrupt(0, format!("{} comes twice in the catalog", table.object())));
        }
    }
    for entry in entries.indexes {
        let Some(table) = objects.tables.by_id(entry.table_id) else { continue };
        let attributes = Index::data_set_attributes(entry.object_id, &entry.attributes);
        let data_set = open_one(core, attributes, &entry.attributes.pool, &entry.data_sets[0], known.as_ref())?;
        named.insert(data_set.file_id());
        let schema = &table.attributes().schema;
        let index = Index::attach(Arc::clone(core), entry.object_id, entry.table_id, schema, entry.attributes, data_set);
        let index = Arc::new(index);
        if !objects.indexes.insert(Arc::clone(&index)) {
            return Err(objects.catalog.corrupt(0, format!("index \"{}\" comes twice in the catalog", index.name())));
        }
    }
    objects.tell_tables();
    Ok((objects, named))
}

/// The data sets of a checkpoint.
struct KnownDataSets<'a> {
    by_file: HashMap<u32, &'a DataSetState>,
    /// By object and partition.
    of_objects: BTreeMap<(u32, u16), Vec<&'a DataSetState>>,
}

impl<'a> KnownDataSets<'a> {
    fn new(checkpoint: &'a Checkpoint) -> KnownDataSets<'a> {
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

fn open_one(
    core: &Core,
    attributes: DataSetAttributes,
    pool: &str,
    entry: &DataSetEntry,
    checkpoint: Option<&KnownDataSets<'_>>,
) -> Result<Arc<DataSet>> {
    let known = match checkpoint {
        None => entry.header_writes.map(HeaderWrites::Exactly),
        Some(checkpoint) => {
            let at_checkpoint = checkpoint.by_file.get(&entry.file_id).map_or(0, |state| state.header_writes);
            header_writes(entry.header_writes.unwrap_or(0).max(at_checkpoint))
        }
    };
    core.open_data_set(DataSetAttributes { file_id: entry.file_id, ..attributes }, pool, known)
}

/// How often a header must have been written that a checkpoint, or the catalog, knows to have been written so often; 0: the log has all of the data set.
fn header_writes(known: u32) -> Option<HeaderWrites> {
    (known > 0).then_some(HeaderWrites::AtLeast(known))
}
