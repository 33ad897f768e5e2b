//! Files by name, with their locks: what storages share that keep names in memory.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::clock::Clock;
use crate::error::error_on;
use crate::held::Held;
use crate::os::OsClock;
use crate::storage::{Lock, LockKind, OpenOptions};
use crate::tree::{Node, Tree};

/// Files of type `F` by name.
#[derive(Debug)]
pub(crate) struct NamedFiles<F> {
    names: Mutex<Names<F>>,
    unlocked: Condvar,
}

#[derive(Debug)]
pub(crate) struct Names<F> {
    pub(crate) tree: Tree,
    pub(crate) files: BTreeMap<u64, Arc<F>>,
    locked: Held,
    /// The last number that a file or directory got.
    pub(crate) last_number: u64,
}

impl<F> Names<F> {
    /// Names and files that are known already.
    pub(crate) fn new(tree: Tree, files: BTreeMap<u64, Arc<F>>, last_number: u64) -> Self {
        Self { tree, files, locked: Held::default(), last_number }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn create(&mut self, path: &Path, file: F) -> io::Result<(u64, Arc<F>)> {
        let number = self.number();
        let change = self.tree.plan_create(path, Node::File(number))?;
        self.tree.apply(&change);
        let file = Arc::new(file);
        self.files.insert(number, Arc::clone(&file));
        Ok((number, file))
    }

    fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        let number = self.number();
        let change = self.tree.plan_create(path, Node::Directory(number))?;
        self.tree.apply(&change);
        Ok(())
    }

    /// Makes a file, and the directories that its path names.
    pub(crate) fn place(&mut self, path: &Path, file: F) -> io::Result<()> {
        let mut missing: Vec<&Path> = path.ancestors().skip(1).take_while(|above| self.tree.find(above).is_err()).collect();
        while let Some(directory) = missing.pop() {
            self.create_directory(directory)?;
        }
        self.create(path, file).map(drop)
    }

    /// Drops the files that have no name any more; open handles keep theirs.
    fn drop_unnamed(&mut self) {
        let named = self.tree.files();
        self.files.retain(|number, _| named.contains(number));
    }
}

impl<F> From<Names<F>> for NamedFiles<F> {
    fn from(names: Names<F>) -> Self {
        Self { names: Mutex::new(names), unlocked: Condvar::new() }
    }
}

impl<F> NamedFiles<F> {
    pub(crate) fn names(&self) -> MutexGuard<'_, Names<F>> {
        self.names.lock()
    }

    /// The file, made first if the options say so.
    pub(crate) fn open(&self, path: &Path, options: &OpenOptions, make: impl FnOnce() -> F) -> io::Result<Arc<F>> {
        options.check(path)?;
        let opened = find_or_create(&mut self.names(), path, options, make);
        opened.map(|(_, file)| file).map_err(|error| error_on("open", path, error))
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names();
        let change = names.tree.plan_remove(path).map_err(|error| error_on("remove", path, error))?;
        names.tree.apply(&change);
        names.drop_unnamed();
        Ok(())
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names();
        let change = names.tree.plan_rename(from, to).map_err(|error| error_on("rename", from, error_on("to", to, error)))?;
        if let Some(change) = change {
            names.tree.apply(&change);
            names.tree.drop_unreachable();
            names.drop_unnamed();
        }
        Ok(())
    }

    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.names().tree.find(path).is_ok()
    }

    pub(crate) fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let names = self.names().tree.list(directory).map_err(|error| error_on("list", directory, error))?;
        Ok(names.iter().map(|name| directory.join(name)).collect())
    }

    pub(crate) fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.names().create_directory(path).map_err(|error| error_on("create directory", path, error))
    }

    pub(crate) fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names();
        let change = names.tree.plan_remove_directory(path).map_err(|error| error_on("remove directory", path, error))?;
        names.tree.apply(&change);
        names.tree.drop_unreachable();
        Ok(())
    }

    /// Nothing is to be made durable, but the directory must be there.
    pub(crate) fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.names().tree.directory(path).map(drop).map_err(|error| error_on("sync directory", path, error))
    }
}

impl<F: Debug + Send + Sync + 'static> NamedFiles<F> {
    /// Takes a lock on a file, made first if it is not there; waits for it so long, or not.
    pub(crate) fn lock(
        self: &Arc<Self>,
        path: &Path,
        kind: LockKind,
        limit: Option<Duration>,
        make: impl FnOnce() -> F,
    ) -> io::Result<Box<dyn Lock>> {
        let located = |error: io::Error| error_on("lock", path, error);
        let mut names = self.names();
        let (number, _) = find_or_create(&mut names, path, &OpenOptions::create(), make).map_err(located)?;
        let until = limit.map(|limit| OsClock.monotonic().saturating_add(limit));
        while !names.locked.take(number, kind) {
            let Some(until) = until else { return Err(located(io::ErrorKind::WouldBlock.into())) };
            let left = until.saturating_sub(OsClock.monotonic());
            if left.is_zero() {
                return Err(located(io::ErrorKind::TimedOut.into()));
            }
            self.unlocked.wait_for(&mut names, left);
        }
        drop(names);
        Ok(Box::new(NamedLock { files: Arc::clone(self), number, path: path.to_owned() }))
    }
}

/// The file and its number, made first if the options say so.
fn find_or_create<F>(names: &mut Names<F>, path: &Path, options: &OpenOptions, make: impl FnOnce() -> F) -> io::Result<(u64, Arc<F>)> {
    match names.tree.find(path) {
        Ok(_) if options.create_new => Err(io::ErrorKind::AlreadyExists.into()),
        Ok(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
        Ok(Node::File(number)) => {
            let file = names.files.get(&number).map(Arc::clone).ok_or(io::ErrorKind::NotFound)?;
            Ok((number, file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && (options.create || options.create_new) => names.create(path, make()),
        Err(error) => Err(error),
    }
}

#[derive(Debug)]
struct NamedLock<F> {
    files: Arc<NamedFiles<F>>,
    number: u64,
    path: PathBuf,
}

impl<F: Debug + Send + Sync> Lock for NamedLock<F> {
    fn path(&self) -> &Path {
        &self.path
    }
}

impl<F> Drop for NamedLock<F> {
    fn drop(&mut self) {
        self.files.names().locked.give_back(self.number);
        self.files.unlocked.notify_all();
    }
}
