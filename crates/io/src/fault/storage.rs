//! The seam's traits on a simulated disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use xxhash_rust::xxh3::Xxh3;

use super::call::{Call, CallKind};
use super::disk::{Disk, FaultOptions, Inode};
use super::error::simulated_crash;
use super::file::{FaultFile, FaultLock};
use super::image::{CrashPolicy, crash_image};
use super::plan::{Failure, Fault, Repeat, Trigger};
use crate::clock::Clock;
use crate::error::{error_at, error_on};
use crate::memory::{MemoryStorage, hash_path};
use crate::os::OsClock;
use crate::range::range_end;
use crate::storage::{File, Lock, LockKind, OpenOptions, Storage};
use crate::tree::{Change, Node};

type Observer = Arc<dyn Fn(&FaultStorage, &Call) + Send + Sync>;

/// Storage on a simulated disk that goes wrong as planned. Clones share the disk.
///
/// Until something is planned it behaves like any other storage. A test of crashes either plans a crash, runs until the error
/// ([`is_simulated_crash`](super::is_simulated_crash)), takes a [`crash_image`](Self::crash_image) and opens that; or it runs
/// once with an [observer](Self::set_observer) that takes images before each call. Taking an image leaves this storage as it is.
///
/// ```
/// use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, OpenOptions, Storage, is_simulated_crash};
/// use std::path::Path;
///
/// let disk = FaultStorage::new(FaultOptions::default());
/// let file = disk.open(Path::new("/a"), &OpenOptions::create_new())?;
/// file.write_at(b"old", 0)?;
/// file.sync()?;
/// disk.sync_directory(Path::new("/"))?;
/// disk.crash_at(disk.calls());
/// assert!(is_simulated_crash(&file.write_at(b"new", 0).unwrap_err()));
///
/// let rebooted = disk.crash_image(CrashPolicy::DropAll);
/// let mut content = [0; 3];
/// rebooted.open(Path::new("/a"), &OpenOptions::read_only())?.read_at(&mut content, 0)?;
/// assert_eq!(&content, b"old");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FaultStorage {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Mutex<Disk>,
    /// A lock was given back, or the machine has stopped.
    unlocked: Condvar,
    observer: RwLock<Option<Observer>>,
}

impl fmt::Debug for FaultStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = self.shared.disk.lock();
        f.debug_struct("FaultStorage").field("calls", &disk.calls).field("crashed", &disk.crashed).finish_non_exhaustive()
    }
}

impl FaultStorage {
    /// An empty disk.
    ///
    /// # Panics
    /// When `sector_bytes` is not a power of two up to 4096 or `alignment` not a power of two.
    #[must_use]
    pub fn new(options: FaultOptions) -> Self {
        assert!(options.sector_bytes.is_power_of_two() && options.sector_bytes <= 4096, "sectors of {} bytes", options.sector_bytes);
        assert!(options.alignment.is_power_of_two(), "alignment {}", options.alignment);
        Self::from_disk(Disk { options, ..Disk::default() })
    }

    fn from_disk(disk: Disk) -> Self {
        Self { shared: Arc::new(Shared { disk: Mutex::new(disk), unlocked: Condvar::new(), observer: RwLock::new(None) }) }
    }

    /// A disk with the files of a memory storage, all durable.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn from_memory(memory: &MemoryStorage, options: FaultOptions) -> Self {
        let storage = Self::new(options);
        let (tree, files, next_number) = memory.parts();
        let mut disk = storage.shared.disk.lock();
        let inode = |content: crate::sparse::SparseBytes| Inode { durable: content.clone(), current: content, ..Inode::default() };
        disk.inodes = files.into_iter().map(|(number, content)| (number, inode(content))).collect();
        (disk.durable_tree, disk.tree, disk.next_number) = (tree.clone(), tree, next_number);
        drop(disk);
        storage
    }

    /// The files as the program sees them, in a memory storage with the same alignment and capacity.
    #[must_use]
    pub fn to_memory(&self) -> MemoryStorage {
        let disk = self.shared.disk.lock();
        let named = disk.tree.files();
        let files = disk.inodes.iter().filter(|(number, _)| named.contains(number));
        let files = files.map(|(&number, inode)| (number, inode.current.clone())).collect();
        MemoryStorage::from_parts(disk.options.alignment, disk.options.capacity, disk.tree.clone(), files, disk.next_number)
    }

    /// The disk as a machine might find it after a crash now, or at the planned crash if that has happened. An independent storage with the
    /// same options, everything durable, no locks, no faults planned, calls counted from 0.
    #[must_use]
    pub fn crash_image(&self, policy: CrashPolicy) -> Self {
        Self::from_disk(crash_image(&self.shared.disk.lock(), policy))
    }

    /// A hash of all names and contents as the program sees them; holes and zeros are the same.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let disk = self.shared.disk.lock();
        let mut hasher = Xxh3::new();
        for (path, node) in disk.tree.reachable() {
            hash_path(&mut hasher, &path);
            if let Some(inode) = if let Node::File(number) = node { disk.inodes.get(&number) } else { None } {
                inode.current.hash_into(&mut hasher);
            }
        }
        hasher.digest()
    }

    /// Calls so far, failed ones included: the index of the next call.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.disk.lock().calls
    }

    /// Calls of a kind so far.
    #[must_use]
    pub fn calls_of(&self, kind: CallKind) -> u64 {
        self.shared.disk.lock().calls_by_kind[kind as usize]
    }

    /// The first calls, as many as [`FaultOptions::log_calls_max`] allows.
    #[must_use]
    pub fn call_log(&self) -> Vec<Call> {
        self.shared.disk.lock().log.clone()
    }

    /// Whether a planned crash has happened.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.shared.disk.lock().crashed
    }

    /// Bytes that the files take which the program can see.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.shared.disk.lock().taken_bytes()
    }

    /// Sets or lifts the limit on what all files together may take.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.shared.disk.lock().options.capacity = capacity;
    }

    /// Calls `observer` before each call, with no lock held. It may take images and plan faults for that very call. (A crash in
    /// the middle of a call leaves what some image before the next call shows.)
    pub fn set_observer(&self, observer: impl Fn(&Self, &Call) + Send + Sync + 'static) {
        *self.shared.observer.write() = Some(Arc::new(observer));
    }

    /// Takes the observer away.
    pub fn clear_observer(&self) {
        *self.shared.observer.write() = None;
    }

    /// Plans a fault.
    pub fn inject(&self, trigger: Trigger, fault: Fault) {
        self.shared.disk.lock().plan.add(trigger, fault);
    }

    /// Forgets all planned faults. A crash that has happened stays.
    pub fn clear_faults(&self) {
        self.shared.disk.lock().plan.clear();
    }

    /// Plans a crash in the middle of the call with this index.
    pub fn crash_at(&self, call: u64) {
        self.inject(Trigger::at(call), Fault::Crash);
    }

    /// Plans a failure of the call with this index (for [`Failure::NoSpace`]: the first from there on that takes space).
    pub fn error_at(&self, call: u64, failure: Failure, repeat: Repeat) {
        self.inject(Trigger { repeat, ..Trigger::at(call) }, Fault::Error(failure));
    }

    /// Plans that the first read from this call on delivers at most `len` bytes.
    pub fn short_read_at(&self, call: u64, len: usize) {
        self.inject(Trigger::at(call), Fault::ShortRead(len));
    }

    /// Plans that the first write from this call on fails after `len` bytes.
    pub fn short_write_at(&self, call: u64, len: usize, failure: Failure) {
        self.inject(Trigger::at(call), Fault::ShortWrite(len, failure));
    }

    /// Plans that the first sync from this call on fails and drops the file's unsynced writes.
    pub fn sync_drops_at(&self, call: u64) {
        self.inject(Trigger::at(call), Fault::SyncDropsWrites);
    }

    /// Plans that the first write from this call on is silently ignored.
    pub fn lose_write_at(&self, call: u64) {
        self.inject(Trigger::at(call), Fault::LoseWrite);
    }

    /// Plans that the first write from this call on goes to `offset` instead.
    pub fn misdirect_write_at(&self, call: u64, offset: u64) {
        self.inject(Trigger::at(call), Fault::MisdirectWrite(offset));
    }

    /// Changes bytes at rest, past the seam: in what the program sees and in what is durable. No call is counted.
    ///
    /// # Errors
    /// `NotFound`; `UnexpectedEof` when the range goes beyond the end.
    pub fn overwrite_at_rest(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change_at_rest(path, offset, bytes.len() as u64, |content| content.copy_from_slice(bytes))
    }

    /// Flips a bit (0 to 7) of a byte at rest, past the seam.
    ///
    /// # Errors
    /// As [`overwrite_at_rest`](Self::overwrite_at_rest).
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u32) -> io::Result<()> {
        self.change_at_rest(path, offset, 1, |content| content[0] ^= 1 << (bit % 8))
    }

    fn change_at_rest(&self, path: &Path, offset: u64, len: u64, change: impl Fn(&mut [u8])) -> io::Result<()> {
        let located = |error: io::Error| error_at("change at rest", path, offset, error);
        let end = range_end("change at rest", path, offset, len)?;
        let mut disk = self.shared.disk.lock();
        let Node::File(number) = disk.tree.find(path).map_err(located)? else { return Err(located(io::ErrorKind::IsADirectory.into())) };
        let inode = disk.inode(number).map_err(located)?;
        if end > inode.current.len() {
            return Err(located(io::ErrorKind::UnexpectedEof.into()));
        }
        for content in [&mut inode.current, &mut inode.durable] {
            let mut bytes = vec![0; len as usize];
            if content.len() >= end {
                content.read(&mut bytes, offset);
                change(&mut bytes);
                content.write(&bytes, offset);
            }
        }
        Ok(())
    }

    /// Counts, logs and announces a call, and decides its fault. Errors that end it before it does anything are returned as such.
    pub(super) fn begin(&self, kind: CallKind, path: &Path, offset: u64, len: u64) -> io::Result<(MutexGuard<'_, Disk>, Option<Fault>)> {
        let mut disk = self.shared.disk.lock();
        if disk.crashed {
            return Err(simulated_crash());
        }
        let call = Call { index: disk.calls, kind, path: Arc::from(path), offset, len };
        disk.calls += 1;
        disk.calls_by_kind[kind as usize] += 1;
        if disk.log.len() < disk.options.log_calls_max {
            disk.log.push(call.clone());
        }
        let observer = self.shared.observer.read().clone();
        if let Some(observer) = observer {
            drop(disk);
            observer(self, &call);
            disk = self.shared.disk.lock();
            if disk.crashed {
                return Err(simulated_crash());
            }
        }
        let fault = disk.plan.decide(&call);
        match fault {
            Some(Fault::Error(failure)) => return Err(failure.error()),
            Some(Fault::Crash) => {
                disk.crashed = true;
                self.shared.unlocked.notify_all();
            }
            _ => {}
        }
        Ok((disk, fault))
    }

    /// A call that changes names, as planned against what the program sees.
    fn change_names(&self, kind: CallKind, path: &Path, plan: impl FnOnce(&mut Disk) -> io::Result<Option<Change>>) -> io::Result<()> {
        let (mut disk, fault) = self.begin(kind, path, 0, 0)?;
        let crash = fault == Some(Fault::Crash);
        let planned = plan(&mut disk);
        if let Ok(Some(change)) = &planned {
            disk.change_names(change.clone(), crash);
        }
        if crash { Err(simulated_crash()) } else { planned.map(drop) }
    }

    /// The number of a file, created first if the options say so, with one more handle.
    fn open_inode(&self, path: &Path, options: &OpenOptions, kind_if_there: CallKind) -> io::Result<u64> {
        let is_there = self.shared.disk.lock().tree.find(path).is_ok();
        let creates = (options.create || options.create_new) && !is_there;
        let (mut disk, fault) = self.begin(if creates { CallKind::Create } else { kind_if_there }, path, 0, 0)?;
        let crash = fault == Some(Fault::Crash);
        let opened = open_or_create(&mut disk, path, options, crash);
        if crash {
            return Err(simulated_crash());
        }
        let number = opened?;
        disk.inode(number)?.handles += 1;
        Ok(number)
    }

    pub(super) fn unlock(&self, number: u64) {
        self.shared.disk.lock().locked.give_back(number);
        self.shared.unlocked.notify_all();
    }

    pub(super) fn close_inode(&self, number: u64) {
        if let Some(inode) = self.shared.disk.lock().inodes.get_mut(&number) {
            inode.handles = inode.handles.saturating_sub(1);
        }
    }

    /// What may be asked without a counted call.
    pub(super) fn look(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.shared.disk.lock();
        if disk.crashed { Err(simulated_crash()) } else { Ok(disk) }
    }
}

fn open_or_create(disk: &mut Disk, path: &Path, options: &OpenOptions, in_flight: bool) -> io::Result<u64> {
    match disk.tree.find(path) {
        Ok(_) if options.create_new => Err(io::ErrorKind::AlreadyExists.into()),
        Ok(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
        Ok(Node::File(number)) => Ok(number),
        Err(error) if error.kind() == io::ErrorKind::NotFound && (options.create || options.create_new) => {
            let number = disk.number();
            let change = disk.tree.plan_create(path, Node::File(number))?;
            disk.inodes.insert(number, Inode::default());
            disk.change_names(change, in_flight);
            Ok(number)
        }
        Err(error) => Err(error),
    }
}

impl Storage for FaultStorage {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        options.check(path)?;
        let number = self.open_inode(path, options, CallKind::Open).map_err(|error| error_on("open", path, error))?;
        let alignment = if options.direct { self.shared.disk.lock().options.alignment } else { 1 };
        Ok(Arc::new(FaultFile { storage: self.clone(), number, path: path.to_owned(), writable: options.write, alignment }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.change_names(CallKind::Remove, path, |disk| disk.tree.plan_remove(path).map(Some));
        removed.map_err(|error| error_on("remove", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = self.change_names(CallKind::Rename, from, |disk| disk.tree.plan_rename(from, to));
        renamed.map_err(|error| error_on("rename", from, error_on("to", to, error)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.look().map_err(|error| error_on("inspect", path, error))?.tree.find(path).is_ok())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let list = || {
            let (disk, fault) = self.begin(CallKind::List, directory, 0, 0)?;
            if fault == Some(Fault::Crash) { Err(simulated_crash()) } else { disk.tree.list(directory) }
        };
        let names = list().map_err(|error| error_on("list", directory, error))?;
        Ok(names.iter().map(|name| directory.join(name)).collect())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let created = self.change_names(CallKind::CreateDirectory, path, |disk| {
            let number = disk.number();
            disk.tree.plan_create(path, Node::Directory(number)).map(Some)
        });
        created.map_err(|error| error_on("create directory", path, error))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let removed = self.change_names(CallKind::RemoveDirectory, path, |disk| disk.tree.plan_remove_directory(path).map(Some));
        removed.map_err(|error| error_on("remove directory", path, error))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let sync = || {
            let (mut disk, fault) = self.begin(CallKind::SyncDirectory, path, 0, 0)?;
            if fault == Some(Fault::Crash) {
                return Err(simulated_crash());
            }
            let directory = disk.tree.directory(path)?;
            if fault != Some(Fault::LoseSync) {
                disk.sync_directory(directory);
            }
            Ok(())
        };
        sync().map_err(|error| error_on("sync directory", path, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let number = self.open_inode(path, &OpenOptions::create(), CallKind::Lock).map_err(|error| error_on("lock", path, error))?;
        if !self.shared.disk.lock().locked.take(number, LockKind::Exclusive) {
            self.close_inode(number);
            return Err(error_on("lock", path, io::ErrorKind::WouldBlock.into()));
        }
        Ok(Box::new(FaultLock { storage: self.clone(), number, path: path.to_owned() }))
    }

    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        let number = self.open_inode(path, &OpenOptions::create(), CallKind::Lock).map_err(|error| error_on("lock", path, error))?;
        let mut disk = self.shared.disk.lock();
        let until = OsClock.monotonic().saturating_add(limit);
        let refused = loop {
            if disk.crashed {
                break Some(simulated_crash());
            }
            if disk.locked.take(number, kind) {
                break None;
            }
            let left = until.saturating_sub(OsClock.monotonic());
            if left.is_zero() {
                break Some(io::ErrorKind::TimedOut.into());
            }
            self.shared.unlocked.wait_for(&mut disk, left);
        };
        drop(disk);
        if let Some(error) = refused {
            self.close_inode(number);
            return Err(error_on("lock", path, error));
        }
        Ok(Box::new(FaultLock { storage: self.clone(), number, path: path.to_owned() }))
    }
}
