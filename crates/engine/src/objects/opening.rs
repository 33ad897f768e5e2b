//! Opening tables and indexes: what their definitions say, and what their files are found to be.
//!
//! Invariants:
//! - a table is opened with its indexes, under the locks of all their places: who else wants one waits;
//! - an index that is damaged, or whose file the system does not give, does not keep its table from being opened;
//! - of an index of which the log or the catalog says that it is damaged, no file is looked at.

use super::places::{Place, State};
use crate::catalog::{Defined, IndexEntry, TableEntry, read_definition};
use crate::core::Core;
use crate::data_set::{DataSet, DataSetAttributes, DataSetEntry, HeaderWrites};
use crate::index::Index;
use crate::steps::stepping;
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::log::{Checkpoint, DataSetState};
use pagefold_types::Schema;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A data set whose file is not there, or is damaged, and what the attempt to use it said. The log may say that it was dropped.
pub(crate) type Broken = (Arc<DataSet>, Error);

/// What a table is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Use,
    Redo,
    Drop,
}

/// A table that is about to be opened.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) place: Arc<Place<Table>>,
    pub(crate) indexes: Vec<Arc<Place<Index>>>,
    /// Header pages have been written just as often as the definitions say.
    pub(crate) exactly: bool,
}

impl Opening {
    /// The table. It and its indexes are opened, unless they are.
    ///
    /// # Errors
    /// When a definition makes no sense, or a data set or a dictionary cannot be read: nothing is open then.
    pub(crate) fn open(&self, core: &Arc<Core>) -> Result<Arc<Table>> {
        let table = self.open_with(core, &mut Vec::new(), Purpose::Use)?;
        table.check_usable().map(|()| table)
    }

    /// The table, to drop it: it is there, though damaged, when it or an index cannot be opened because of damage.
    ///
    /// # Errors
    /// When a definition makes no sense, or a data set cannot be read for another reason.
    pub(crate) fn open_to_drop(&self, core: &Arc<Core>) -> Result<Arc<Table>> {
        self.open_with(core, &mut Vec::new(), Purpose::Drop)
    }

    /// The same while the log is redone: data sets that cannot be opened come to `broken`.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub(crate) fn open_to_redo(&self, core: &Arc<Core>, broken: &mut Vec<Broken>) -> Result<Arc<Table>> {
        self.open_with(core, broken, Purpose::Redo)
    }

    fn open_with(&self, core: &Arc<Core>, broken: &mut Vec<Broken>, purpose: Purpose) -> Result<Arc<Table>> {
        if let Some(table) = self.place.opened() {
            return Ok(table);
        }
        core.check_open()?;
        // Who else wants it waits here.
        let mut state = self.place.state.write();
        let definition = match &*state {
            State::Open(table) => return Ok(Arc::clone(table)),
            State::Described(definition) => definition,
        };
        let mut states: Vec<_> = self.indexes.iter().map(|place| (place.object_id, place.state.write())).collect();
        let mut indexes = Vec::with_capacity(states.len());
        let headers = if self.exactly { Headers::Catalog } else { Headers::Log };
        let table = Arc::new(open_table(core, table_of(self.place.object_id, definition)?, headers, broken)?);
        let opened = states.iter().try_for_each(|(object_id, state)| {
            let State::Described(definition) = &**state else { return Ok(()) };
            let entry = index_of(*object_id, definition, &table)?;
            indexes.push(Arc::new(open_index(core, &table.attributes().schema, entry, headers, broken)?));
            Ok(())
        });
        let finished = opened.and_then(|()| match purpose {
            Purpose::Redo => Ok(()),
            Purpose::Use | Purpose::Drop => match finish_opening(&table, &indexes, broken) {
                Err(error) if purpose == Purpose::Drop && (error.is_damage() || error.is_refusal()) => {
                    table.set_damaged(error);
                    table.set_all_indexes(indexes.clone());
                    Ok(())
                }
                finished => finished,
            },
        });
        if let Err(error) = finished {
            let of_indexes = indexes.iter().map(|index| &index.data_set);
            table.data_sets().chain(of_indexes).for_each(|data_set| core.manager.discard(data_set));
            return Err(error);
        }
        for ((_, state), index) in states.iter_mut().zip(indexes) {
            **state = State::Open(index);
        }
        *state = State::Open(Arc::clone(&table));
        Ok(table)
    }
}

/// Nothing is to be redone of a table that was just opened.
fn finish_opening(table: &Table, indexes: &[Arc<Index>], broken: &mut Vec<Broken>) -> Result<()> {
    // Without an index that is damaged, the table goes on.
    for (data_set, error) in broken.drain(..) {
        match indexes.iter().find(|index| Arc::ptr_eq(&index.data_set, &data_set)) {
            Some(index) if error.is_damage() => index.set_damaged(reason_of(&error), false),
            Some(index) if error.is_refusal() => index.set_refused(error),
            _ => return Err(error),
        }
        table.core.manager.discard(&data_set);
    }
    let of_indexes = indexes.iter().map(|index| &index.data_set);
    table.data_sets().chain(of_indexes).for_each(|data_set| data_set.set_recovering(false));
    table.data_sets().try_for_each(|data_set| data_set.check_length(false))?;
    for index in indexes {
        if let Err(error) = index.data_set.check_length(false) {
            index.set_damaged(reason_of(&error), false);
        }
    }
    table.set_all_indexes(indexes.to_vec());
    table.load_dictionaries()
}

/// What an error says of an object whose name is known.
pub(crate) fn reason_of(error: &Error) -> String {
    match error {
        Error::Corrupt { page, reason, .. } => format!("page {page}: {reason}"),
        other => other.to_string(),
    }
}

fn not_what_it_was(object_id: u32) -> Error {
    Error::Damaged { path: "catalog".into(), reason: format!("object number {object_id} is not what it was") }
}

fn table_of(object_id: u32, definition: &[u8]) -> Result<TableEntry> {
    match read_definition(object_id, definition, |_| None)? {
        Defined::Table(entry) => Ok(entry),
        _ => Err(not_what_it_was(object_id)),
    }
}

fn index_of(object_id: u32, definition: &[u8], table: &Table) -> Result<IndexEntry> {
    match read_definition(object_id, definition, |_| Some(table.attributes().schema.clone()))? {
        Defined::Index(entry) => Ok(entry),
        _ => Err(not_what_it_was(object_id)),
    }
}

/// A table that the catalog or the log names. Numbers that it has are not given again.
pub(crate) fn open_table(core: &Arc<Core>, entry: TableEntry, headers: Headers<'_>, broken: &mut Vec<Broken>) -> Result<Table> {
    core.see_object_id(entry.object_id);
    let table = Table::create(Arc::clone(core), entry.object_id, entry.attributes)?;
    let mut attach = |partition: u16, file_id: u32, writes: Option<HeaderWrites>| {
        let attributes = DataSetAttributes { file_id, ..table.data_set_attributes(partition) };
        table.attach(open_or_break(core, attributes, &table.attributes().pool, writes, broken)?)
    };
    for data_set in entry.data_sets.iter().map(stepping) {
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

/// An index that the catalog or the log names, of a table with these columns. Numbers that it has are not given again.
pub(crate) fn open_index(
    core: &Arc<Core>,
    schema: &Schema,
    entry: IndexEntry,
    headers: Headers<'_>,
    broken: &mut Vec<Broken>,
) -> Result<Index> {
    core.see_object_id(entry.object_id);
    let Some(data_set) = entry.data_sets.first() else { return Err(not_what_it_was(entry.object_id)) };
    let found = DataSetEntry { header_writes: headers.known_writes(data_set), ..*data_set };
    let attributes = DataSetAttributes { file_id: data_set.file_id, ..Index::data_set_attributes(entry.object_id, &entry.attributes) };
    let opened = match &entry.damaged {
        // Whatever lies there is not looked at.
        Some(_) => {
            core.see_file_id(attributes.file_id);
            core.data_set(attributes, &entry.attributes.pool)?
        }
        None => open_or_break(core, attributes, &entry.attributes.pool, headers.writes_of(data_set), broken)?,
    };
    if let Err(error) = opened.check_length(true) {
        opened.poison(&error);
        broken.push((Arc::clone(&opened), error));
    }
    let is_closed = found.header_writes.is_some() && !opened.is_defined();
    let mut index = Index::attach(Arc::clone(core), entry.object_id, entry.table_id, schema, entry.attributes, opened);
    index.found = is_closed.then_some(found);
    entry.damaged.into_iter().for_each(|reason| index.set_damaged(reason, true));
    Ok(index)
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
        Err(error) if header_writes.is_some() || error.is_refusal() => {
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
    /// What the definition says, exactly: the database was closed without a log.
    Catalog,
    /// What the definition says, at least.
    Log,
    /// The same, and what a checkpoint says, at least; and which partitions were added before.
    Checkpoint(&'a KnownDataSets<'a>),
}

impl Headers<'_> {
    /// How often the header has been written, as far as is known.
    fn known_writes(self, entry: &DataSetEntry) -> Option<u32> {
        match self.writes_of(entry) {
            Some(HeaderWrites::Exactly(writes) | HeaderWrites::AtLeast(writes)) => Some(writes),
            None => None,
        }
    }

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
