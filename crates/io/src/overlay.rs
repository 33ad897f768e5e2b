//! Files that others have, with changes of one's own on top: what is written, made, renamed and removed here is seen here only.
//!
//! What is written goes to a scratch file, in blocks of 4 KB, or is kept in memory (256 MB at most) when the device has no room for it; what was not is read from the file underneath. Nothing survives the storage, so syncs do nothing.
//!
//! Invariants:
//!
//! - The files underneath are never written.
//! - A block of the scratch file belongs to one block of one file; it is free again when that is cut off, or the file is gone with its handles.
//! - In a block of its own, a file's bytes beyond its length are zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::error::{error_at, error_on};
use crate::named::{NamedFiles, Names};
use crate::range::{check_len, check_writable, range_end};
use crate::storage::{File, Lock, LockKind, OpenOptions, Storage, read_exact_at};
use crate::tree::Tree;

const BLOCK_BYTES: u64 = 4096;
type Bytes = [u8; BLOCK_BYTES as usize];
static ZEROS: Bytes = [0; BLOCK_BYTES as usize];

/// A storage of some files as they are elsewhere, which can be changed without changing those. Clones share the changes.
#[derive(Debug, Clone)]
pub struct Overlay {
    scratch: Arc<Scratch>,
    files: Arc<NamedFiles<Inode>>,
}

/// Blocks that the scratch file has no room for are kept in memory: so many at most.
const MEMORY_BLOCKS_MAX: usize = (256 << 20) / BLOCK_BYTES as usize;

/// Where blocks that were written lie.
#[derive(Debug)]
struct Scratch {
    file: Arc<dyn File>,
    free: Mutex<Free>,
    /// What the device had no room for.
    memory: RwLock<BTreeMap<u64, Box<Bytes>>>,
}

#[derive(Debug, Default)]
struct Free {
    blocks: Vec<u64>,
    /// From here on, none was ever used.
    next: u64,
}

impl Scratch {
    fn take(&self) -> u64 {
        let mut free = self.free.lock();
        free.blocks.pop().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        })
    }

    fn give_back(&self, block: Block) {
        if let Block::At(at) = block {
            self.memory.write().remove(&at);
            self.free.lock().blocks.push(at);
        }
    }

    fn read(&self, block: u64, within: u64, to: &mut [u8]) -> io::Result<()> {
        if let Some(bytes) = self.memory.read().get(&block) {
            to.copy_from_slice(&bytes[within as usize..within as usize + to.len()]);
            return Ok(());
        }
        read_exact_at(self.file.as_ref(), to, block * BLOCK_BYTES + within)
    }

    /// On a full disk, a block that was once in memory stays there.
    fn write(&self, block: u64, bytes: &Bytes) -> io::Result<()> {
        if let Some(kept) = self.memory.write().get_mut(&block) {
            **kept = *bytes;
            return Ok(());
        }
        match self.file.write_at(bytes, block * BLOCK_BYTES) {
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                let mut memory = self.memory.write();
                if memory.len() >= MEMORY_BLOCKS_MAX {
                    return Err(error);
                }
                memory.insert(block, Box::new(*bytes));
                Ok(())
            }
            written => written,
        }
    }
}

/// A block that is not as it is underneath.
#[derive(Debug, Clone, Copy)]
enum Block {
    Zeros,
    /// The number of a block of the scratch file.
    At(u64),
}

#[derive(Debug)]
struct Inode {
    base: Option<Arc<dyn File>>,
    scratch: Arc<Scratch>,
    content: RwLock<Content>,
}

#[derive(Debug, Default)]
struct Content {
    len: u64,
    /// Up to here the file underneath shows, where no block of one's own is; at most `len`.
    base_len: u64,
    blocks: BTreeMap<u64, Block>,
}

impl Drop for Inode {
    fn drop(&mut self) {
        for block in self.content.get_mut().blocks.values() {
            self.scratch.give_back(*block);
        }
    }
}

impl Inode {
    fn read(&self, content: &Content, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let total = usize::try_from(content.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0;
        while done < total {
            let at = offset + done as u64;
            let (number, within) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let own = content.blocks.get(&number);
            let end = match own {
                Some(_) => (number + 1) * BLOCK_BYTES,
                None => content.blocks.range(number..).next().map_or(u64::MAX, |(next, _)| next * BLOCK_BYTES),
            };
            let piece = usize::try_from(end - at).unwrap_or(usize::MAX).min(total - done);
            let to = &mut buf[done..done + piece];
            match own {
                Some(Block::Zeros) => to.fill(0),
                Some(Block::At(block)) => self.scratch.read(*block, within, to)?,
                None => self.read_base(content, to, at)?,
            }
            done += piece;
        }
        Ok(total)
    }

    fn read_base(&self, content: &Content, to: &mut [u8], at: u64) -> io::Result<()> {
        let there = usize::try_from(content.base_len.saturating_sub(at)).unwrap_or(usize::MAX).min(to.len());
        let (shown, behind) = to.split_at_mut(there);
        behind.fill(0);
        match &self.base {
            Some(base) if there > 0 => read_exact_at(base.as_ref(), shown, at),
            _ => Ok(()),
        }
    }

    fn write(&self, content: &mut Content, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let within = (at % BLOCK_BYTES) as usize;
            let piece = (ZEROS.len() - within).min(buf.len() - done);
            let bytes = &buf[done..done + piece];
            match Bytes::try_from(bytes) {
                Ok(whole) => self.store(content, at / BLOCK_BYTES, &whole)?,
                Err(_) => self.change_block(content, at / BLOCK_BYTES, |block| block[within..within + piece].copy_from_slice(bytes))?,
            }
            done += piece;
        }
        if !buf.is_empty() {
            content.len = content.len.max(offset + buf.len() as u64);
        }
        Ok(())
    }

    /// Changes part of a block.
    fn change_block(&self, content: &mut Content, number: u64, change: impl FnOnce(&mut Bytes)) -> io::Result<()> {
        let mut block = ZEROS;
        self.read(content, &mut block, number * BLOCK_BYTES)?;
        change(&mut block);
        self.store(content, number, &block)
    }

    fn store(&self, content: &mut Content, number: u64, bytes: &Bytes) -> io::Result<()> {
        if *bytes == ZEROS {
            self.forget(content, number);
            return Ok(());
        }
        let (at, taken) = match content.blocks.get(&number) {
            Some(Block::At(at)) => (*at, None),
            _ => {
                let at = self.scratch.take();
                (at, Some(Block::At(at)))
            }
        };
        let written = self.scratch.write(at, bytes);
        match (taken, &written) {
            (Some(block), Ok(())) => drop(content.blocks.insert(number, block)),
            (Some(block), Err(_)) => self.scratch.give_back(block),
            (None, _) => {}
        }
        written
    }

    /// Makes a block zeros.
    fn forget(&self, content: &mut Content, number: u64) {
        let hides = number * BLOCK_BYTES < content.base_len;
        let before = if hides { content.blocks.insert(number, Block::Zeros) } else { content.blocks.remove(&number) };
        before.into_iter().for_each(|block| self.scratch.give_back(block));
    }

    fn set_len(&self, content: &mut Content, len: u64) -> io::Result<()> {
        if len < content.len {
            let within = (len % BLOCK_BYTES) as usize;
            if within > 0 && content.blocks.contains_key(&(len / BLOCK_BYTES)) {
                self.change_block(content, len / BLOCK_BYTES, |block| block[within..].fill(0))?;
            }
            for block in content.blocks.split_off(&len.div_ceil(BLOCK_BYTES)).into_values() {
                self.scratch.give_back(block);
            }
            content.base_len = content.base_len.min(len);
        }
        content.len = len;
        Ok(())
    }

    fn punch_hole(&self, content: &mut Content, offset: u64, end: u64) -> io::Result<()> {
        let end = end.min(content.len);
        if offset >= end {
            return Ok(());
        }
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        let own = content.blocks.range(first..=last).map(|(&number, _)| number);
        let shown = first..content.base_len.div_ceil(BLOCK_BYTES).min(last + 1);
        let numbers: BTreeSet<u64> = own.chain(shown).collect();
        for number in numbers {
            let start = number * BLOCK_BYTES;
            let (from, to) = (offset.saturating_sub(start), (end - start).min(BLOCK_BYTES));
            if from == 0 && (to == BLOCK_BYTES || end == content.len) {
                self.forget(content, number);
            } else {
                self.change_block(content, number, |block| block[from as usize..to as usize].fill(0))?;
            }
        }
        Ok(())
    }
}

impl Overlay {
    /// A storage of these files, each under its path; the directories are those that the paths name. `scratch` takes what is written: it is buffered, and nobody else's.
    ///
    /// # Errors
    /// When two files have the same path, one's path is a directory in another's, or a length cannot be found out.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Arc<dyn File>)>, scratch: Arc<dyn File>) -> io::Result<Self> {
        let scratch = Arc::new(Scratch { file: scratch, free: Mutex::default(), memory: RwLock::default() });
        let mut names = Names::new(Tree::default(), BTreeMap::new(), 0);
        for (path, base) in files {
            let len = base.len()?;
            let content = RwLock::new(Content { len, base_len: len, blocks: BTreeMap::new() });
            let inode = Inode { base: Some(base), scratch: Arc::clone(&scratch), content };
            names.place(&path, inode).map_err(|error| error_on("place", &path, error))?;
        }
        Ok(Self { scratch, files: Arc::new(NamedFiles::from(names)) })
    }

    /// The most that the scratch file has had to take at once, in bytes.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.free.lock().next * BLOCK_BYTES
    }

    fn empty_inode(&self) -> Inode {
        Inode { base: None, scratch: Arc::clone(&self.scratch), content: RwLock::default() }
    }
}

impl Storage for Overlay {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        let inode = self.files.open(path, options, || self.empty_inode())?;
        Ok(Arc::new(OverlayFile { inode, path: path.to_owned(), writable: options.write }))
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
struct OverlayFile {
    inode: Arc<Inode>,
    path: PathBuf,
    writable: bool,
}

impl File for OverlayFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        range_end("read", &self.path, offset, buf.len() as u64)?;
        let read = self.inode.read(&self.inode.content.read(), buf, offset);
        read.map_err(|error| error_at("read", &self.path, offset, error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        check_writable("write", &self.path, self.writable)?;
        range_end("write", &self.path, offset, buf.len() as u64)?;
        let written = self.inode.write(&mut self.inode.content.write(), buf, offset);
        written.map_err(|error| error_at("write", &self.path, offset, error))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable("set length of", &self.path, self.writable)?;
        check_len(&self.path, len)?;
        let set = self.inode.set_len(&mut self.inode.content.write(), len);
        set.map_err(|error| error_on("set length of", &self.path, error))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.content.read().len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("allocate", &self.path, self.writable)?;
        let end = range_end("allocate", &self.path, offset, len)?;
        if len > 0 {
            let mut content = self.inode.content.write();
            content.len = content.len.max(end);
        }
        Ok(())
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("punch hole", &self.path, self.writable)?;
        let end = range_end("punch hole", &self.path, offset, len)?;
        let punched = self.inode.punch_hole(&mut self.inode.content.write(), offset, end);
        punched.map_err(|error| error_at("punch hole", &self.path, offset, error))
    }

    fn alignment(&self) -> usize {
        1
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
