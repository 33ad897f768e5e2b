//! Where the tables and indexes of a database are found, by name and by number: described by the catalog until they are used.
//!
//! Invariants:
//! - by name and by number the same places are found;
//! - of an object there is one value at a time: it is made at its place, once, and stays there;
//! - a table is opened with its indexes, so whoever has a table has them, and whoever drops or alters an object has opened it.

use crate::Result;
use crate::catalog::in_place_of;
use crate::index::Index;
use crate::steps::step;
use crate::table_space::Table;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What has a name and a number.
pub(crate) trait Object {
    fn name(&self) -> &str;
    fn object_id(&self) -> u32;
    /// The table that it belongs to, or its own number.
    fn owner(&self) -> u32;
}

impl Object for Table {
    fn name(&self) -> &str {
        Table::name(self)
    }
    fn object_id(&self) -> u32 {
        self.object_id
    }
    fn owner(&self) -> u32 {
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
    fn owner(&self) -> u32 {
        self.table_id
    }
}

/// What is at a place.
#[derive(Debug)]
pub(crate) enum State<T> {
    /// The definition of what nobody has used yet.
    Described(Box<[u8]>),
    /// The object.
    Open(Arc<T>),
}

/// The place of an object.
#[derive(Debug)]
pub(crate) struct Place<T> {
    pub(crate) object_id: u32,
    /// The table that it belongs to, or its own number.
    pub(crate) owner: u32,
    pub(crate) name: Box<str>,
    pub(crate) state: RwLock<State<T>>,
}

impl<T> Place<T> {
    /// Of what nobody has used yet.
    pub(crate) fn described(object_id: u32, owner: u32, name: &str, definition: Box<[u8]>) -> Place<T> {
        Place { object_id, owner, name: name.into(), state: RwLock::new(State::Described(definition)) }
    }

    /// The object, if somebody has used it.
    pub(crate) fn opened(&self) -> Option<Arc<T>> {
        match &*self.state.read() {
            State::Open(object) => Some(Arc::clone(object)),
            State::Described(_) => None,
        }
    }

    /// Looks at its definition, if nobody has used it.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match &*self.state.read() {
            State::Open(_) => None,
            State::Described(definition) => Some(look(definition)),
        }
    }

    /// Its definition, if nobody has used it.
    pub(crate) fn definition(&self) -> Option<Vec<u8>> {
        self.look(<[u8]>::to_vec)
    }

    /// Puts another definition, whose data sets do not count, in the place of this one.
    pub(crate) fn alter(&self, definition: &[u8], set: impl FnOnce(&T, &[u8]) -> Result<()>) -> Result<()> {
        let mut state = self.state.write();
        match &mut *state {
            State::Open(object) => set(object, definition),
            State::Described(before) => {
                *before = in_place_of(definition, before)?.into();
                Ok(())
            }
        }
    }

    /// Is this object at the place?
    pub(crate) fn has(&self, object: &Arc<T>) -> bool {
        matches!(&*self.state.read(), State::Open(here) if Arc::ptr_eq(here, object))
    }
}

/// Places of objects of one kind.
#[derive(Debug)]
pub(crate) struct Directory<T> {
    by_name: BTreeMap<Box<str>, Arc<Place<T>>>,
    by_id: HashMap<u32, Arc<Place<T>>>,
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

impl<T> Directory<T> {
    /// The place of this number.
    pub(crate) fn by_id(&self, object_id: u32) -> Option<&Arc<Place<T>>> {
        step();
        self.by_id.get(&object_id)
    }

    /// The place of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Place<T>>> {
        self.by_name.get(name)
    }

    /// All names, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// All places, by name.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Arc<Place<T>>> {
        self.by_name.values()
    }

    /// All objects that somebody has used.
    pub(crate) fn opened(&self) -> impl Iterator<Item = Arc<T>> {
        self.by_name.values().filter_map(|place| place.opened())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds a place. False when its name or number is taken; nothing has changed then.
    pub(crate) fn insert(&mut self, place: Arc<Place<T>>) -> bool {
        step();
        let is_new = !self.by_name.contains_key(&place.name) && !self.by_id.contains_key(&place.object_id);
        if is_new {
            self.by_id.insert(place.object_id, Arc::clone(&place));
            self.by_name.insert(place.name.clone(), place);
        }
        is_new
    }

    /// Takes the place of this number out.
    pub(crate) fn remove(&mut self, object_id: u32) -> Option<Arc<Place<T>>> {
        let removed = self.by_id.remove(&object_id)?;
        self.by_name.remove(&removed.name);
        Some(removed)
    }
}

impl<T: Object> Place<T> {
    /// Of an object that is there.
    pub(crate) fn open(object: Arc<T>) -> Place<T> {
        let (object_id, owner, name) = (object.object_id(), object.owner(), object.name().into());
        Place { object_id, owner, name, state: RwLock::new(State::Open(object)) }
    }
}
