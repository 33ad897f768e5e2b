//! An index space: one index, its attributes, its data set.

use super::attributes::IndexAttributes;
use super::kept_filter::KeptFilter;
use super::key_bounds::KeyBounds;
use super::key_recorder::KeyRecorder;
use super::known_keys::KnownKeys;
use crate::core::{Core, Lifetime};
use crate::data_set::{DataSet, DataSetAttributes, DataSetEntry};
use crate::pool::BufferManager;
use crate::{Error, Result, spans};
use pagefold_format::catalog::Notes;
use pagefold_format::data_set_header::ObjectKind;
use pagefold_types::{KeyLayout, Schema};
use parking_lot::RwLock;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What is wrong with an index that cannot be used.
#[derive(Debug)]
struct Damage {
    reason: String,
    /// The system does not give its file: nothing is known to be wrong with it, and nothing is recorded.
    refused: Option<Error>,
    /// The log, or the catalog, has it.
    recorded: AtomicBool,
}

/// An open index, as it is called between two commits. The tree itself is in `btree`.
#[derive(Debug)]
pub struct Index {
    pub(crate) core: Arc<Core>,
    pub(crate) object_id: u32,
    pub(crate) table_id: u32,
    pub(crate) lifetime: Lifetime,
    pub(crate) attributes: IndexAttributes,
    pub(crate) key_layout: KeyLayout,
    pub(crate) data_set: Arc<DataSet>,
    /// Its data set as the catalog has it, if it was damaged when it was opened.
    pub(crate) found: Option<DataSetEntry>,
    /// What is said of it at present, as it is called here.
    notes: RwLock<Arc<Notes>>,
    body: Arc<IndexBody>,
}

/// What stays the same when an index is called in another way.
#[derive(Debug)]
pub struct IndexBody {
    pub(crate) known_keys: KnownKeys,
    pub(crate) key_bounds: KeyBounds,
    pub(crate) key_filter: KeptFilter,
    /// Made when its keys are first recorded.
    recorder: OnceLock<Box<KeyRecorder>>,
    /// Nothing of its data set is read or written any more. Once so, it stays so.
    damage: OnceLock<Damage>,
}

impl Deref for Index {
    type Target = IndexBody;
    #[inline]
    fn deref(&self) -> &IndexBody {
        &self.body
    }
}

impl Index {
    /// What the data set of an index is.
    pub(crate) fn data_set_attributes(object_id: u32, attributes: &IndexAttributes) -> DataSetAttributes {
        DataSetAttributes {
            file_id: 0,
            object_id,
            kind: ObjectKind::Index,
            partition: 0,
            page_bytes: attributes.disk_bytes(),
            leaf_bytes: attributes.page_bytes,
            extents: attributes.extents,
            object: object(attributes),
        }
    }

    /// A new, empty index.
    ///
    /// # Errors
    /// When an attribute is out of range.
    pub(crate) fn create(core: Arc<Core>, object_id: u32, table_id: u32, schema: &Schema, attributes: IndexAttributes) -> Result<Index> {
        attributes.check(schema)?;
        let data_set = core.create_data_set(Index::data_set_attributes(object_id, &attributes), &attributes.pool)?;
        Ok(Index::attach(core, object_id, table_id, schema, attributes, data_set))
    }

    /// An index whose data set exists.
    pub(crate) fn attach(
        core: Arc<Core>,
        object_id: u32,
        table_id: u32,
        schema: &Schema,
        attributes: IndexAttributes,
        data_set: Arc<DataSet>,
    ) -> Index {
        let body = IndexBody {
            known_keys: KnownKeys::default(),
            key_bounds: KeyBounds::default(),
            key_filter: KeptFilter::default(),
            recorder: OnceLock::new(),
            damage: OnceLock::new(),
        };
        let key_layout = attributes.key_layout(schema);
        let lifetime = Lifetime::default();
        let notes = RwLock::new(Arc::new(attributes.notes.clone()));
        Index { core, object_id, table_id, lifetime, attributes, key_layout, data_set, found: None, notes, body: Arc::new(body) }
    }

    /// The same index under other attributes, with which its pages are as they are.
    ///
    /// # Errors
    /// When an attribute is out of range, or pages would have to change for it.
    /// Without a schema its keys are made as before.
    pub(crate) fn altered(&self, schema: Option<&Schema>, attributes: IndexAttributes) -> Result<Index> {
        schema.map_or(Ok(()), |schema| attributes.check(schema))?;
        if let Some(what) = self.attributes.needs_other_pages(&attributes) {
            return Err(Error::Parameter(format!("{}: {what} changes only when it is built anew", self.object())));
        }
        Ok(Index {
            core: Arc::clone(&self.core),
            object_id: self.object_id,
            table_id: self.table_id,
            lifetime: Lifetime::default(),
            key_layout: schema.map_or_else(|| self.key_layout.clone(), |schema| attributes.key_layout(schema)),
            notes: RwLock::new(Arc::new(attributes.notes.clone())),
            attributes,
            data_set: Arc::clone(&self.data_set),
            found: self.found,
            body: Arc::clone(&self.body),
        })
    }

    /// It is not used any more: for this reason, which is `recorded` if others will know of it after a crash.
    pub(crate) fn set_damaged(&self, reason: impl ToString, recorded: bool) {
        let made = || Damage { reason: reason.to_string(), refused: None, recorded: AtomicBool::new(false) };
        let damage = self.damage.get_or_init(made);
        spans::damage(&self.object(), &damage.reason);
        damage.recorded.fetch_or(recorded, Ordering::AcqRel);
        self.data_set.poison(format!("{} is damaged: {}", self.object(), damage.reason));
    }

    /// It is not used as long as the database is open, because of what the system says of its file.
    pub(crate) fn set_refused(&self, error: Error) {
        self.data_set.poison(&error);
        let made = || Damage { reason: error.to_string(), refused: Some(error), recorded: AtomicBool::new(false) };
        self.damage.get_or_init(made);
    }

    /// What the system said, if it does not give its file.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        self.damage.get().and_then(|damage| damage.refused.as_ref())
    }

    /// What is wrong with it, if it cannot be used: it is to be built anew.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.damage.get().map(|damage| damage.reason.as_str())
    }

    /// The same, as far as the log or the catalog has it.
    pub(crate) fn recorded_damage(&self) -> Option<&str> {
        self.damage.get().filter(|damage| damage.recorded.load(Ordering::Acquire)).map(|damage| damage.reason.as_str())
    }

    /// An entry with this key was added: whoever knows of keys that are not there learns it.
    #[inline]
    pub(crate) fn added(&self, key: &[u8]) {
        self.key_bounds.added(key);
        self.key_filter.added(key);
    }

    /// Refuses an index that is damaged.
    ///
    /// # Errors
    /// [`Error::DamagedIndex`]; the system's, when it does not give the file.
    #[inline]
    pub fn check_usable(&self) -> Result<()> {
        match self.damage.get() {
            None => Ok(()),
            Some(Damage { refused: Some(error), .. }) => Err(error.clone()),
            Some(damage) => Err(Error::DamagedIndex { index: self.name().into(), reason: damage.reason.clone() }),
        }
    }

    /// Is a column that passes the test part of the key?
    pub(crate) fn has_column(&self, test: impl Fn(usize) -> bool) -> bool {
        self.attributes.columns.iter().any(|(column, _)| test(*column))
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> &IndexAttributes {
        &self.attributes
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// What is said of it that the engine does not act on, as last committed.
    #[must_use]
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes.read())
    }

    /// This is said of it from now on.
    pub(crate) fn set_notes(&self, notes: Notes) {
        *self.notes.write() = Arc::new(notes);
    }

    /// Its attributes with what is said of it at present: those of another index that takes its place.
    #[must_use]
    pub fn attributes_now(&self) -> IndexAttributes {
        IndexAttributes { notes: Notes::clone(&self.notes.read()), ..self.attributes.clone() }
    }

    /// What errors call it.
    pub(crate) fn object(&self) -> String {
        object(&self.attributes)
    }

    /// How its keys are made.
    #[must_use]
    pub fn key_layout(&self) -> &KeyLayout {
        &self.key_layout
    }

    /// Its data set.
    #[must_use]
    pub fn data_set(&self) -> &Arc<DataSet> {
        &self.data_set
    }

    /// The table it belongs to, by object id.
    #[must_use]
    pub fn table_id(&self) -> u32 {
        self.table_id
    }

    /// A descent for this key has come to this leaf. Costs a look at whether keys are recorded.
    #[inline]
    pub(crate) fn note_request(&self, leaf: u32, key: Option<&[u8]>) {
        if let (Some(recorder), Some(key)) = (self.recorder.get(), key)
            && recorder.is_on()
        {
            recorder.note(leaf, key, || self.manager().clock().monotonic());
        }
    }

    /// What records its keys, if that ever was asked for.
    pub(crate) fn recorder(&self) -> Option<&KeyRecorder> {
        self.recorder.get().map(Box::as_ref)
    }

    /// What records its keys.
    pub(crate) fn recorder_made(&self) -> &KeyRecorder {
        self.recorder.get_or_init(Box::default)
    }

    /// The buffer manager.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        &self.core.manager
    }
}

fn object(attributes: &IndexAttributes) -> String {
    format!("index \"{}\"", attributes.name)
}
