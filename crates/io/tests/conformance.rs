//! What every storage must do alike, run against all of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pagefold_io::{
    AlignedBuffer, CountingStorage, FaultOptions, FaultStorage, File, FileReader, FileWriter, LockKind, MemoryStorage, OpenOptions,
    OsStorage, Overlay, Storage, parent_directory, read_exact_at, read_file,
};

/// Runs a test on each storage, in an empty directory of its own.
fn on_all(test: impl Fn(&dyn Storage, &Path)) {
    let here = tempfile::tempdir().unwrap();
    test(&OsStorage, here.path());
    // A file system in memory, which refuses direct I/O.
    if let Ok(shm) = tempfile::tempdir_in("/dev/shm") {
        test(&OsStorage, shm.path());
    }
    let fault = FaultOptions { alignment: 512, ..FaultOptions::default() };
    let scratch = MemoryStorage::new().open(Path::new("/scratch"), &OpenOptions::create_new()).unwrap();
    let storages: [Arc<dyn Storage>; 5] = [
        Arc::new(MemoryStorage::new()),
        Arc::new(MemoryStorage::with(4096, None)),
        Arc::new(FaultStorage::new(fault)),
        Arc::new(CountingStorage::new(Arc::new(MemoryStorage::with(512, None)))),
        Arc::new(Overlay::new([], scratch).unwrap()),
    ];
    for storage in &storages {
        storage.create_directory(Path::new("/test")).unwrap();
        test(&**storage, Path::new("/test"));
    }
}

/// The kind of a failure, whose message must name the path.
fn kind<T: std::fmt::Debug>(result: std::io::Result<T>, path: &Path) -> ErrorKind {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error.kind()
}

fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_exact_at(file, &mut bytes, 0).unwrap();
    bytes
}

#[test]
fn open_creates_only_when_asked() {
    on_all(|storage, root| {
        let path = root.join("a");
        assert!(!storage.exists(&path).unwrap());
        assert_eq!(kind(storage.open(&path, &OpenOptions::read_only()), &path), ErrorKind::NotFound);
        assert_eq!(kind(storage.open(&path, &OpenOptions::read_write()), &path), ErrorKind::NotFound);
        let readable = OpenOptions { create: true, ..OpenOptions::default() };
        assert_eq!(kind(storage.open(&path, &readable), &path), ErrorKind::InvalidInput);
        let file = storage.open(&path, &OpenOptions::create_new()).unwrap();
        assert_eq!((file.path(), file.len().unwrap(), file.is_empty().unwrap()), (&*path, 0, true));
        assert!(storage.exists(&path).unwrap());
        assert_eq!(kind(storage.open(&path, &OpenOptions::create_new()), &path), ErrorKind::AlreadyExists);
        file.write_at(b"kept", 0).unwrap();
        let again = storage.open(&path, &OpenOptions::create()).unwrap();
        assert_eq!(content(&*again), b"kept");
        assert_eq!(kind(storage.open(root, &OpenOptions::read_only()), root), ErrorKind::IsADirectory);
        let below = path.join("b");
        assert_eq!(kind(storage.open(&below, &OpenOptions::create()), &below), ErrorKind::NotADirectory);
        let nowhere = root.join("no/b");
        assert_eq!(kind(storage.open(&nowhere, &OpenOptions::create()), &nowhere), ErrorKind::NotFound);
        assert!(!storage.exists(&below).unwrap());
    });
}

#[test]
fn reads_stop_at_the_end_and_gaps_are_zero() {
    on_all(|storage, root| {
        let file = storage.open(&root.join("a"), &OpenOptions::create_new()).unwrap();
        file.write_at(b"abc", 10_000).unwrap();
        file.write_at(b"", 1 << 40).unwrap();
        assert_eq!(file.len().unwrap(), 10_003);
        let mut buf = [9; 8];
        assert_eq!(file.read_at(&mut buf, 9_998).unwrap(), 5);
        assert_eq!(buf, [0, 0, b'a', b'b', b'c', 9, 9, 9]);
        assert_eq!(file.read_at(&mut buf, 10_003).unwrap(), 0);
        assert_eq!(file.read_at(&mut buf, 1 << 50).unwrap(), 0);
        assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
        let error = read_exact_at(&*file, &mut buf, 10_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("/a at offset 10003"), "{error}");
    });
}

#[test]
fn absurd_offsets_are_refused() {
    on_all(|storage, root| {
        let path = root.join("a");
        let file = storage.open(&path, &OpenOptions::create_new()).unwrap();
        for offset in [u64::MAX, i64::MAX as u64] {
            assert_eq!(kind(file.read_at(&mut [0; 2], offset), &path), ErrorKind::InvalidInput);
            assert_eq!(kind(file.write_at(&[0; 2], offset), &path), ErrorKind::InvalidInput);
            assert_eq!(kind(file.allocate(offset, 2), &path), ErrorKind::InvalidInput);
            assert_eq!(kind(file.punch_hole(offset, 2), &path), ErrorKind::InvalidInput);
        }
        assert_eq!(kind(file.set_len(u64::MAX), &path), ErrorKind::InvalidInput);
        assert_eq!(file.len().unwrap(), 0);
    });
}

#[test]
fn a_read_only_handle_does_not_change_the_file() {
    on_all(|storage, root| {
        let path = root.join("a");
        storage.open(&path, &OpenOptions::create_new()).unwrap().write_at(b"abc", 0).unwrap();
        let file = storage.open(&path, &OpenOptions::read_only()).unwrap();
        assert_eq!(kind(file.write_at(b"x", 0), &path), ErrorKind::PermissionDenied);
        assert_eq!(kind(file.set_len(0), &path), ErrorKind::PermissionDenied);
        assert_eq!(kind(file.allocate(0, 10), &path), ErrorKind::PermissionDenied);
        assert_eq!(kind(file.punch_hole(0, 1), &path), ErrorKind::PermissionDenied);
        assert_eq!(content(&*file), b"abc");
    });
}

#[test]
fn lengths_allocations_and_holes() {
    on_all(|storage, root| {
        let file = storage.open(&root.join("a"), &OpenOptions::create_new()).unwrap();
        file.write_at(&[7; 20_000], 0).unwrap();
        file.set_len(10_000).unwrap();
        file.set_len(12_000).unwrap();
        let mut expected = vec![7; 10_000];
        expected.resize(12_000, 0);
        assert!(content(&*file) == expected, "a cut and regrown file has zeros at its end");
        file.allocate(11_000, 9_000).unwrap();
        expected.resize(20_000, 0);
        assert!(content(&*file) == expected);
        file.allocate(0, 100).unwrap();
        file.allocate(1 << 30, 0).unwrap();
        assert!(content(&*file) == expected, "allocating what is there changes nothing");
        file.punch_hole(100, 5_000).unwrap();
        expected[100..5_100].fill(0);
        file.punch_hole(19_999, 1_000_000).unwrap();
        file.punch_hole(3, 0).unwrap();
        assert!(content(&*file) == expected, "a hole reads as zeros and keeps the length");
        file.sync().unwrap();
    });
}

#[test]
fn handles_outlive_names() {
    on_all(|storage, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        let old = storage.open(&a, &OpenOptions::create_new()).unwrap();
        old.write_at(b"old", 0).unwrap();
        let reader = storage.open(&a, &OpenOptions::read_only()).unwrap();
        storage.rename(&a, &b).unwrap();
        assert!(!storage.exists(&a).unwrap() && storage.exists(&b).unwrap());
        let new = storage.open(&a, &OpenOptions::create_new()).unwrap();
        new.write_at(b"new!", 0).unwrap();
        storage.rename(&a, &b).unwrap();
        assert_eq!(content(&*storage.open(&b, &OpenOptions::read_only()).unwrap()), b"new!");
        old.write_at(b"O", 0).unwrap();
        assert_eq!(content(&*reader), b"Old", "a replaced file lives on in its handles, which share it");
        storage.remove(&b).unwrap();
        assert_eq!(content(&*new), b"new!");
        assert_eq!(kind(storage.remove(&b), &b), ErrorKind::NotFound);
        assert_eq!(storage.list(root).unwrap(), Vec::<PathBuf>::new());
        storage.sync_directory(root).unwrap();
        assert_eq!(content(&*new), b"new!");
    });
}

#[test]
fn directories() {
    on_all(|storage, root| {
        let (d, e, f) = (root.join("d"), root.join("d/e"), root.join("d/f"));
        assert_eq!(kind(storage.create_directory(&e), &e), ErrorKind::NotFound);
        storage.create_directory(&d).unwrap();
        assert_eq!(kind(storage.create_directory(&d), &d), ErrorKind::AlreadyExists);
        storage.open(&f, &OpenOptions::create_new()).unwrap();
        storage.create_directory(&e).unwrap();
        assert_eq!(kind(storage.create_directory(&f), &f), ErrorKind::AlreadyExists);
        assert_eq!(storage.list(&d).unwrap(), [e.clone(), f.clone()]);
        assert_eq!(storage.list(root).unwrap(), std::slice::from_ref(&d));
        assert_eq!(kind(storage.list(&f), &f), ErrorKind::NotADirectory);
        assert_eq!(kind(storage.sync_directory(&f), &f), ErrorKind::NotADirectory);
        assert_eq!(kind(storage.remove_directory(&f), &f), ErrorKind::NotADirectory);
        assert_eq!(kind(storage.remove_directory(&d), &d), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(storage.remove(&e), &e), ErrorKind::IsADirectory);
        assert_eq!(kind(storage.rename(&f, &e), &f), ErrorKind::IsADirectory);
        assert_eq!(kind(storage.rename(&e, &f), &e), ErrorKind::NotADirectory);
        let inner = e.join("inner");
        assert_eq!(kind(storage.rename(&d, &inner), &inner), ErrorKind::InvalidInput);
        let moved = root.join("moved");
        storage.rename(&d, &moved).unwrap();
        assert_eq!(storage.list(&moved).unwrap(), [moved.join("e"), moved.join("f")]);
        assert_eq!(kind(storage.list(&d), &d), ErrorKind::NotFound);
        storage.rename(&moved.join("e"), &moved.join("e")).unwrap();
        storage.remove_directory(&moved.join("e")).unwrap();
        storage.remove(&moved.join("f")).unwrap();
        storage.sync_directory(&moved).unwrap();
        storage.remove_directory(&moved).unwrap();
        assert_eq!(kind(storage.remove_directory(&moved), &moved), ErrorKind::NotFound);
        assert_eq!(kind(storage.sync_directory(&moved), &moved), ErrorKind::NotFound);
    });
}

#[test]
fn a_lock_excludes_until_it_is_dropped() {
    on_all(|storage, root| {
        let path = root.join("lock");
        let lock = storage.lock(&path).unwrap();
        assert_eq!(lock.path(), path);
        assert_eq!(kind(storage.lock(&path), &path), ErrorKind::WouldBlock);
        assert_eq!(kind(storage.lock(&path), &path), ErrorKind::WouldBlock, "a failed attempt does not release");
        let other = storage.lock(&root.join("other")).unwrap();
        drop(lock);
        // A child process of another test has the file too, from its fork to its exec: so wait.
        let lock = storage.lock_within(&path, LockKind::Exclusive, LONG).unwrap();
        assert!(storage.exists(&path).unwrap());
        drop((lock, other));
        assert!(storage.exists(&path).unwrap(), "the lock file stays");
        let nowhere = root.join("no/lock");
        assert_eq!(kind(storage.lock(&nowhere), &nowhere), ErrorKind::NotFound);
    });
}

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn who_has_waited_long_enough_gets_an_error() {
    on_all(|storage, root| {
        let path = root.join("lock");
        let mut held = vec![storage.lock_within(&path, LockKind::Exclusive, LONG).unwrap()];
        for limit in [Duration::ZERO, Duration::from_millis(7)] {
            for kind_of in [LockKind::Shared, LockKind::Exclusive] {
                assert_eq!(kind(storage.lock_within(&path, kind_of, limit), &path), ErrorKind::TimedOut);
            }
        }
        held.clear();
        held.push(storage.lock_within(&path, LockKind::Shared, LONG).unwrap());
        held.push(storage.lock_within(&path, LockKind::Shared, LONG).unwrap());
        assert_eq!(kind(storage.lock_within(&path, LockKind::Exclusive, Duration::from_millis(3)), &path), ErrorKind::TimedOut);
        held.clear();
        drop(storage.lock_within(&path, LockKind::Exclusive, LONG).unwrap());
    });
}

#[test]
fn who_has_a_lock_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let _lock = OsStorage.lock(&path).unwrap();
    if let Some(holder) = OsStorage.lock_holder(&path) {
        assert!(holder.contains(&format!("process {}", std::process::id())), "{holder}");
    }
    assert_eq!(OsStorage.lock_holder(&directory.path().join("other")), None);
}

#[test]
fn who_waits_gets_the_lock() {
    on_all(|storage, root| {
        let path = root.join("lock");
        let shared = storage.lock_within(&path, LockKind::Shared, LONG).unwrap();
        let second = storage.lock_within(&path, LockKind::Shared, LONG).unwrap();
        assert_eq!((second.path(), kind(storage.lock(&path), &path)), (&*path, ErrorKind::WouldBlock));
        drop(shared);
        assert_eq!(kind(storage.lock(&path), &path), ErrorKind::WouldBlock, "one of two still has it");
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = storage.lock_within(&path, LockKind::Exclusive, LONG).unwrap();
                order.lock().unwrap().push("waited");
            });
            std::thread::sleep(Duration::from_millis(20));
            order.lock().unwrap().push("gave back");
            drop(second);
        });
        assert_eq!(*order.lock().unwrap(), ["gave back", "waited"]);
        let total = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = storage.lock_within(&path, LockKind::Exclusive, LONG).unwrap();
                        let before = total.load(std::sync::atomic::Ordering::Relaxed);
                        std::thread::yield_now();
                        total.store(before + 1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 200, "one at a time");
        drop(storage.lock(&path).unwrap());
        let nowhere = root.join("no/lock");
        assert_eq!(kind(storage.lock_within(&nowhere, LockKind::Shared, LONG), &nowhere), ErrorKind::NotFound);
    });
}

#[test]
fn direct_files_read_anything_and_write_aligned() {
    on_all(|storage, root| {
        let path = root.join("a");
        let file = storage.open(&path, &OpenOptions::create_new().direct(true)).unwrap();
        let alignment = file.alignment();
        assert!(alignment.is_power_of_two());
        let block: Vec<u8> = (0..3 * 4096u32).map(|at| (at % 251) as u8).collect();
        let mut aligned = AlignedBuffer::from_slice(&[&[0], &block[..]].concat(), 4096);
        // Unaligned memory, aligned offset and length.
        file.write_at(&aligned[1..], 4096).unwrap();
        aligned[..block.len()].copy_from_slice(&block);
        file.write_at(&aligned[..block.len()], 4 * 4096).unwrap();
        let expected = [&vec![0; 4096], &block[..], &block[..]].concat();
        assert!(content(&*file) == expected);
        for (offset, len) in
            [(4097, 10), (0, 1), (4095, 4098), (8192, 100), (20_000, 4096), (4096 * 7 - 3, 100), (4096 * 7, 5), (90_001, 7)]
        {
            let mut buf = vec![0; len];
            let read = file.read_at(&mut buf, offset).unwrap();
            assert_eq!(buf[..read], expected[(offset as usize).min(expected.len())..(offset as usize + len).min(expected.len())]);
        }
        if alignment > 1 {
            for (offset, len) in [(1, alignment), (0, alignment + 1), (alignment as u64 / 2, alignment / 2)] {
                let error = file.write_at(&aligned[..len], offset).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            }
        }
        // An end inside a block.
        file.set_len(5_000).unwrap();
        assert!(content(&*file) == expected[..5_000]);
        let mut buf = AlignedBuffer::new(8192, 4096);
        assert_eq!(file.read_at(&mut buf, 4096).unwrap(), 904);
        assert_eq!(file.read_at(&mut buf, 8192).unwrap(), 0);
        file.sync().unwrap();
        let buffered = storage.open(&path, &OpenOptions::read_write()).unwrap();
        assert_eq!(buffered.alignment(), 1);
        assert!(content(&*buffered) == expected[..5_000]);
        buffered.write_at(b"x", 4_999).unwrap();
        assert_eq!(content(&*file)[4_999], b'x');
        assert_eq!(file.alignment(), alignment, "nothing of this made direct I/O fall back to buffered");
    });
}

#[test]
fn large_bounced_reads_and_writes() {
    on_all(|storage, root| {
        let file = storage.open(&root.join("a"), &OpenOptions::create_new().direct(true)).unwrap();
        let len = (5 << 20) + 4096;
        let bytes: Vec<u8> = (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let shifted = AlignedBuffer::from_slice(&[&[0; 3], &bytes[..]].concat(), 4096);
        file.write_at(&shifted[3..], 8192).unwrap();
        let mut back = vec![0; len - 10];
        assert_eq!(file.read_at(&mut back, 8192 + 7).unwrap(), back.len());
        assert!(back == bytes[7..len - 3]);
        assert!(file.alignment() > 1 || storage.open(&root.join("b"), &OpenOptions::create_new().direct(true)).unwrap().alignment() == 1);
    });
}

#[test]
fn threads_share_a_file() {
    on_all(|storage, root| {
        let file = storage.open(&root.join("a"), &OpenOptions::create_new()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for page in 0..50u64 {
                        let offset = (page * 4 + u64::from(thread)) * 1000;
                        file.write_at(&[thread + 1; 1000], offset).unwrap();
                        let mut back = [0; 1000];
                        assert_eq!(file.read_at(&mut back, offset).unwrap(), 1000);
                        assert_eq!(back, [thread + 1; 1000]);
                    }
                });
            }
        });
        assert!(content(&*file).chunks(1000).zip([1, 2, 3, 4].iter().cycle()).all(|(page, &id)| page == [id; 1000]));
    });
}

#[test]
fn streams_and_helpers() {
    use std::io::{Read, Seek, SeekFrom, Write};
    on_all(|storage, root| {
        let path = root.join("a");
        let file = storage.open(&path, &OpenOptions::create_new()).unwrap();
        let mut writer = FileWriter::at(Arc::clone(&file), 2);
        writer.write_all(b"hello ").unwrap();
        writer.write_all(b"world").unwrap();
        assert_eq!(writer.position(), 13);
        let mut reader = FileReader::new(file);
        let mut text = String::new();
        reader.seek(SeekFrom::End(-5)).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "world");
        reader.seek(SeekFrom::Current(-11)).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "worldhello world");
        assert_eq!(kind(reader.seek(SeekFrom::Current(-14)), &path), ErrorKind::InvalidInput);
        assert_eq!(read_file(storage, &path, 13).unwrap(), b"\0\0hello world");
        assert_eq!(kind(read_file(storage, &path, 12), &path), ErrorKind::FileTooLarge);
        assert_eq!(parent_directory(&path), root);
    });
    assert_eq!(parent_directory(Path::new("db")), Path::new(""));
}

#[test]
fn the_operating_system_knows_bare_names() {
    // The directory of `db` is the empty path.
    OsStorage.sync_directory(parent_directory(Path::new("db"))).unwrap();
    assert!(OsStorage.exists(Path::new("")).unwrap());
    assert!(OsStorage.list(Path::new("")).unwrap().contains(&PathBuf::from("Cargo.toml")));
    assert!(MemoryStorage::new().exists(Path::new("")).unwrap());
}

#[test]
fn only_regular_files_are_opened() {
    let null = Path::new("/dev/null");
    assert_eq!(kind(OsStorage.open(null, &OpenOptions::read_only()), null), ErrorKind::InvalidInput);
}

#[test]
fn memory_runs_out_of_space_and_gets_it_back() {
    let memory: &dyn Storage = &MemoryStorage::with(1, Some(10 * 4096));
    let fault: &dyn Storage = &FaultStorage::new(FaultOptions { capacity: Some(10 * 4096), ..FaultOptions::default() });
    for storage in [memory, fault] {
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let file = storage.open(a, &OpenOptions::create_new()).unwrap();
        file.allocate(0, 8 * 4096).unwrap();
        let other = storage.open(b, &OpenOptions::create_new()).unwrap();
        other.write_at(&[1; 4097], 0).unwrap();
        assert_eq!(kind(other.write_at(&[1; 10], 8192), b), ErrorKind::StorageFull);
        assert_eq!(kind(file.allocate(8 * 4096, 1), a), ErrorKind::StorageFull);
        assert_eq!((file.len().unwrap(), other.len().unwrap()), (8 * 4096, 4097), "nothing was done");
        file.write_at(&[2; 8 * 4096], 0).unwrap();
        other.set_len(1 << 40).unwrap();
        file.punch_hole(4096, 4096).unwrap();
        other.write_at(&[1; 10], 8192).unwrap();
        assert_eq!(kind(other.write_at(&[1; 10], 12_288), b), ErrorKind::StorageFull);
        storage.remove(a).unwrap();
        assert_eq!(kind(other.write_at(&[1; 10], 12_288), b), ErrorKind::StorageFull, "the handle still holds the space");
        drop(file);
        other.write_at(&[1; 10], 12_288).unwrap();
        other.set_len(0).unwrap();
        other.allocate(0, 10 * 4096).unwrap();
    }
}

#[test]
fn snapshots_are_independent() {
    let storage = MemoryStorage::with(1, Some(100 * 4096));
    let path = Path::new("/d/a");
    storage.create_directory(Path::new("/d")).unwrap();
    let file = storage.open(path, &OpenOptions::create_new()).unwrap();
    file.write_at(&[5; 9000], 0).unwrap();
    let lock = storage.lock(Path::new("/lock")).unwrap();
    let copy = storage.snapshot();
    assert_eq!((copy.content_hash(), copy.taken_bytes()), (storage.content_hash(), 3 * 4096));
    file.write_at(&[6], 5000).unwrap();
    assert_ne!(copy.content_hash(), storage.content_hash());
    let copied = copy.open(path, &OpenOptions::read_write()).unwrap();
    assert!(content(&*copied) == [5; 9000]);
    copied.write_at(&[6], 5000).unwrap();
    assert_eq!(copy.content_hash(), storage.content_hash());
    drop(copy.lock(Path::new("/lock")).unwrap());
    drop(lock);
    copy.rename(path, Path::new("/d/b")).unwrap();
    assert_ne!(copy.content_hash(), storage.content_hash(), "names count");
}

#[test]
fn counts_what_goes_through() {
    let storage = CountingStorage::new(Arc::new(MemoryStorage::new()));
    let file = storage.open(Path::new("/a"), &OpenOptions::create_new()).unwrap();
    file.write_at(&[1; 100], 0).unwrap();
    let before = storage.counts();
    file.read_at(&mut [0; 80], 50).unwrap();
    file.write_at(&[1; 30], 0).unwrap();
    file.sync().unwrap();
    file.set_len(3).unwrap();
    assert!(storage.open(Path::new("/a"), &OpenOptions::read_only()).unwrap().write_at(&[1; 30], 0).is_err());
    storage.sync_directory(Path::new("/")).unwrap();
    storage.remove(Path::new("/a")).unwrap();
    let counts = storage.counts().since(&before);
    assert_eq!((counts.reads, counts.read_bytes, counts.writes, counts.written_bytes), (1, 50, 2, 30));
    assert_eq!((counts.syncs, counts.directory_syncs, counts.space_changes, counts.opens, counts.name_changes), (1, 1, 1, 1, 1));
}

#[test]
fn direct_io_is_direct_where_the_file_system_says_so() {
    // The machine decides whether there is direct I/O; where there is, the file must really be in that mode.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let file = OsStorage.open(&path, &OpenOptions::create_new().direct(true)).unwrap();
    file.write_at(&AlignedBuffer::new(8192, 4096), 0).unwrap();
    let direct_bit = 0o40000;
    let mut flags = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name())).unwrap();
            let line = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
            flags.push(u32::from_str_radix(&line, 8).unwrap());
        }
    }
    println!("alignment {}, flags {flags:?}", file.alignment());
    assert_eq!(flags.len(), 1);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(flags[0] & direct_bit != 0, file.alignment() > 1);
    }
}

const LOCK_VARIABLE: &str = "PAGEFOLD_TEST_LOCK";

#[test]
fn a_lock_excludes_other_processes_and_ends_with_them() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "hold_the_lock"])
        .env(LOCK_VARIABLE, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("the lock is held")));
    assert_eq!(kind(OsStorage.lock(&path), &path), ErrorKind::WouldBlock);
    other.kill().unwrap();
    other.wait().unwrap();
    drop(OsStorage.lock(&path).unwrap());
}

#[test]
#[ignore = "the other process of a_lock_excludes_other_processes_and_ends_with_them"]
fn hold_the_lock() {
    let Some(path) = std::env::var_os(LOCK_VARIABLE) else { return };
    let _lock = OsStorage.lock(Path::new(&path)).unwrap();
    println!("the lock is held");
    // Until the parent kills this process, or ends.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
