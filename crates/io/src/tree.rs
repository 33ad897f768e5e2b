//! Names in memory: which directory has which entry.
//!
//! What is asked for is first planned against the tree as the program sees it, which gives the errors a file system gives; the resulting
//! [`Change`] is then applied. The simulated disk applies the same changes later, or not, to the tree as the disk has it; so applying never
//! fails: what no longer fits is skipped.
//!
//! Paths are taken lexically: `.` is dropped, `..` goes up, a relative path starts at the root.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};

/// What a name stands for, by number. Numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Node {
    File(u64),
    Directory(u64),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) directory: u64,
    pub(crate) name: OsString,
}

/// An atomic change of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Link { at: Place, node: Node },
    Unlink { at: Place, node: Node },
    Move { from: Place, to: Place, node: Node },
}

impl Change {
    /// The names that it touches.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let (first, second) = match self {
            Self::Link { at, .. } | Self::Unlink { at, .. } => (at, None),
            Self::Move { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

pub(crate) const ROOT: u64 = 0;

/// Directories and their entries.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    directories: BTreeMap<u64, BTreeMap<OsString, Node>>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { directories: BTreeMap::from([(ROOT, BTreeMap::new())]) }
    }
}

fn names(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

fn fail<T>(kind: ErrorKind) -> io::Result<T> {
    Err(kind.into())
}

impl Tree {
    fn entry(&self, directory: u64, name: &OsString) -> Option<Node> {
        self.directories.get(&directory)?.get(name).copied()
    }

    fn at(&self, place: &Place) -> Option<Node> {
        self.entry(place.directory, &place.name)
    }

    fn walk(&self, names: &[OsString]) -> io::Result<Node> {
        let mut node = Node::Directory(ROOT);
        for name in names {
            let Node::Directory(directory) = node else { return fail(ErrorKind::NotADirectory) };
            node = self.entry(directory, name).ok_or(ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// What the path stands for.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Node> {
        self.walk(&names(path))
    }

    /// The place of the path in its directory, which must exist. The root has none.
    fn place(&self, path: &Path) -> io::Result<Place> {
        let mut names = names(path);
        let Some(name) = names.pop() else { return fail(ErrorKind::InvalidInput) };
        match self.walk(&names)? {
            Node::Directory(directory) => Ok(Place { directory, name }),
            Node::File(_) => fail(ErrorKind::NotADirectory),
        }
    }

    /// The number of a directory.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<u64> {
        match self.find(path)? {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => fail(ErrorKind::NotADirectory),
        }
    }

    /// The names in a directory, sorted.
    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.directories[&self.directory(path)?].keys().cloned().collect())
    }

    fn is_empty(&self, directory: u64) -> bool {
        self.directories.get(&directory).is_none_or(BTreeMap::is_empty)
    }

    /// A new name for a new node.
    pub(crate) fn plan_create(&self, path: &Path, node: Node) -> io::Result<Change> {
        // The root is always there.
        let at = self
            .place(path)
            .map_err(|error| if error.kind() == ErrorKind::InvalidInput { ErrorKind::AlreadyExists.into() } else { error })?;
        if self.at(&at).is_some() { fail(ErrorKind::AlreadyExists) } else { Ok(Change::Link { at, node }) }
    }

    /// The end of a file's name.
    pub(crate) fn plan_remove(&self, path: &Path) -> io::Result<Change> {
        let at = match self.find(path)? {
            Node::Directory(_) => return fail(ErrorKind::IsADirectory),
            Node::File(_) => self.place(path)?,
        };
        let node = self.at(&at).ok_or(ErrorKind::NotFound)?;
        Ok(Change::Unlink { at, node })
    }

    /// The end of an empty directory.
    pub(crate) fn plan_remove_directory(&self, path: &Path) -> io::Result<Change> {
        let directory = self.directory(path)?;
        let at = self.place(path)?;
        if !self.is_empty(directory) {
            return fail(ErrorKind::DirectoryNotEmpty);
        }
        Ok(Change::Unlink { at, node: Node::Directory(directory) })
    }

    /// Another name; `None` when both paths are the same place.
    pub(crate) fn plan_rename(&self, from: &Path, to: &Path) -> io::Result<Option<Change>> {
        let (from_names, to_names) = (names(from), names(to));
        // The order in which Linux finds out what is wrong.
        let (from, to) = (self.place(from)?, self.place(to)?);
        let node = self.at(&from).ok_or(ErrorKind::NotFound)?;
        if from == to {
            return Ok(None);
        }
        if matches!(node, Node::Directory(_)) && to_names.starts_with(&from_names) {
            return fail(ErrorKind::InvalidInput);
        }
        if from_names.starts_with(&to_names) {
            return fail(ErrorKind::DirectoryNotEmpty);
        }
        match (node, self.at(&to)) {
            (Node::File(_), Some(Node::Directory(_))) => fail(ErrorKind::IsADirectory),
            (Node::Directory(_), Some(Node::File(_))) => fail(ErrorKind::NotADirectory),
            (Node::Directory(_), Some(Node::Directory(replaced))) if !self.is_empty(replaced) => fail(ErrorKind::DirectoryNotEmpty),
            _ => Ok(Some(Change::Move { from, to, node })),
        }
    }

    fn set(&mut self, place: &Place, node: Node) {
        if let Node::Directory(directory) = node {
            self.directories.entry(directory).or_default();
        }
        // The directory may be unknown here because its own creation was lost: it comes into being unreachable.
        self.directories.entry(place.directory).or_default().insert(place.name.clone(), node);
    }

    fn clear(&mut self, place: &Place, node: Node) {
        if self.at(place) == Some(node)
            && let Some(entries) = self.directories.get_mut(&place.directory)
        {
            entries.remove(&place.name);
        }
    }

    /// Applies a change. Names that stand for something else than the change expects are not removed.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Link { at, node } => self.set(at, *node),
            Change::Unlink { at, node } => self.clear(at, *node),
            Change::Move { from, to, node } => {
                self.clear(from, *node);
                self.set(to, *node);
            }
        }
    }

    /// Everything that can be reached from the root, with its path from there, by path.
    pub(crate) fn reachable(&self) -> BTreeMap<Vec<OsString>, Node> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::from([ROOT]);
        let mut queue = vec![(Vec::new(), ROOT)];
        while let Some((path, directory)) = queue.pop() {
            for (name, &node) in self.directories.get(&directory).into_iter().flatten() {
                let mut path = path.clone();
                path.push(name.clone());
                if let Node::Directory(inner) = node
                    && seen.insert(inner)
                {
                    queue.push((path.clone(), inner));
                }
                found.insert(path, node);
            }
        }
        found
    }

    /// The files that any directory names, reachable or not.
    pub(crate) fn files(&self) -> BTreeSet<u64> {
        let nodes = self.directories.values().flat_map(BTreeMap::values);
        nodes.filter_map(|node| if let Node::File(file) = node { Some(*file) } else { None }).collect()
    }

    /// Forgets the directories that cannot be reached.
    pub(crate) fn drop_unreachable(&mut self) {
        let keep = |node: &Node| if let Node::Directory(directory) = node { Some(*directory) } else { None };
        let kept: BTreeSet<u64> = self.reachable().values().filter_map(keep).chain([ROOT]).collect();
        self.directories.retain(|directory, _| kept.contains(directory));
    }
}
