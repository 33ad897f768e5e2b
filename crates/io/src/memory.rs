//! Storage in memory: fast, sparse, with an optional capacity. Nothing survives the process, so syncs do nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use xxhash_rust::xxh3::Xxh3;

use crate::error::error_at;
use crate::named::{NamedFiles, Names};
use crate::range::{check_alignment, check_len, check_writable, range_end};
use crate::sparse::SparseBytes;
use crate::storage::{File, Lock, LockKind, OpenOptions, Storage};
use crate::tree::{Node, Tree};

/// Files in memory. Clones share the files; [`snapshot`](Self::snapshot) makes an independent copy.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    alignment: usize,
    space: Arc<Space>,
    files: Arc<NamedFiles<Inode>>,
}

/// What the files take together, in whole chunks of 4 KB.
#[derive(Debug)]
struct Space {
    capacity: u64,
    taken: AtomicU64,
}

impl Space {
    fn take(&self, bytes: u64) -> io::Result<()> {
        let enough = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.capacity);
        if self.taken.try_update(Ordering::Relaxed, Ordering::Relaxed, enough).is_ok() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "no space left in memory storage"))
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Inode {
    space: Arc<Space>,
    content: RwLock<SparseBytes>,
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.space.give_back(self.content.get_mut().taken_bytes());
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStorage {
    /// An empty storage without limit, in which direct files have no alignment.
    #[must_use]
    pub fn new() -> Self {
        Self::with(1, None)
    }

    /// An empty storage in which direct files have the given alignment and all files together take at most `capacity` bytes, counted in
    /// blocks of 4 KB.
    ///
    /// # Panics
    /// When `alignment` is not a power of two.
    #[must_use]
    pub fn with(alignment: usize, capacity: Option<u64>) -> Self {
        assert!(alignment.is_power_of_two(), "alignment {alignment}");
        let space = Arc::new(Space { capacity: capacity.unwrap_or(u64::MAX), taken: AtomicU64::new(0) });
        let files = NamedFiles::from(Names::new(Tree::default(), BTreeMap::new(), 0));
        Self { alignment, space, files: Arc::new(files) }
    }

    /// Bytes of space that all files take, those without a name but with an open handle included.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.space.taken.load(Ordering::Relaxed)
    }

    /// An independent copy of all named files as they are now, without locks. Content is shared until one side writes.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let (tree, contents, last_number) = self.parts();
        Self::from_parts(self.alignment, Some(self.space.capacity), tree, contents, last_number)
    }

    /// A hash of all names and contents; holes and zeros are the same.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let names = self.files.names();
        let mut hasher = Xxh3::new();
        for (path, node) in names.tree.reachable() {
            hash_path(&mut hasher, &path);
            if let Some(inode) = if let Node::File(number) = node { names.files.get(&number) } else { None } {
                inode.content.read().hash_into(&mut hasher);
            }
        }
        hasher.digest()
    }

    /// Names, contents by number, and the last number used.
    pub(crate) fn parts(&self) -> (Tree, BTreeMap<u64, SparseBytes>, u64) {
        let names = self.files.names();
        let contents = names.files.iter().map(|(&number, inode)| (number, inode.content.read().clone()));
        (names.tree.clone(), contents.collect(), names.last_number)
    }

    /// The reverse of [`parts`](Self::parts). What is there may exceed the capacity.
    pub(crate) fn from_parts(
        alignment: usize,
        capacity: Option<u64>,
        tree: Tree,
        contents: BTreeMap<u64, SparseBytes>,
        last_number: u64,
    ) -> Self {
        let storage = Self::with(alignment, capacity);
        storage.space.taken.store(contents.values().map(SparseBytes::taken_bytes).sum(), Ordering::Relaxed);
        let inode = |(number, content)| {
            let inode = Inode { space: Arc::clone(&storage.space), content: RwLock::new(content) };
            (number, Arc::new(inode))
        };
        *storage.files.names() = Names::new(tree, contents.into_iter().map(inode).collect(), last_number);
        storage
    }

    fn empty_inode(&self) -> Inode {
        Inode { space: Arc::clone(&self.space), content: RwLock::default() }
    }
}

/// Feeds a path so that no two are alike.
pub(crate) fn hash_path(hasher: &mut Xxh3, path: &[std::ffi::OsString]) {
    for name in path {
        hasher.update(name.as_encoded_bytes());
        hasher.update(b"/");
    }
    hasher.update(b"/");
}

impl Storage for MemoryStorage {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        let inode = self.files.open(path, options, || self.empty_inode())?;
        let alignment = if options.direct { self.alignment } else { 1 };
        Ok(Arc::new(MemoryFile { inode, path: path.to_owned(), writable: options.write, alignment }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.exists(path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(directory)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.files.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.files.lock(path, LockKind::Exclusive, None, || self.empty_inode())
    }

    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        self.files.lock(path, kind, Some(limit), || self.empty_inode())
    }
}

#[derive(Debug)]
struct MemoryFile {
    inode: Arc<Inode>,
    path: PathBuf,
    writable: bool,
    alignment: usize,
}

impl MemoryFile {
    /// Changes the content and gives back or keeps the space that results.
    fn change(&self, to_take: impl FnOnce(&SparseBytes) -> u64, change: impl FnOnce(&mut SparseBytes)) -> io::Result<()> {
        let mut content = self.inode.content.write();
        let before = content.taken_bytes() + to_take(&content);
        self.inode.space.take(before - content.taken_bytes())?;
        change(&mut content);
        self.inode.space.give_back(before - content.taken_bytes());
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        range_end("read", &self.path, offset, buf.len() as u64)?;
        Ok(self.inode.content.read().read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let len = buf.len() as u64;
        check_writable("write", &self.path, self.writable)?;
        range_end("write", &self.path, offset, len)?;
        check_alignment(&self.path, offset, buf.len(), self.alignment)?;
        let written = self.change(|content| content.bytes_to_take(offset, len), |content| content.write(buf, offset));
        written.map_err(|error| error_at("write", &self.path, offset, error))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable("set length of", &self.path, self.writable)?;
        check_len(&self.path, len)?;
        self.change(|_| 0, |content| content.set_len(len))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.content.read().len())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("allocate", &self.path, self.writable)?;
        range_end("allocate", &self.path, offset, len)?;
        let allocated = self.change(|content| content.bytes_to_take(offset, len), |content| content.allocate(offset, len));
        allocated.map_err(|error| error_at("allocate", &self.path, offset, error))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("punch hole", &self.path, self.writable)?;
        range_end("punch hole", &self.path, offset, len)?;
        self.change(|_| 0, |content| content.punch_hole(offset, len))
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
