//! Planned faults happen at their call and do what they say.

use std::io::ErrorKind;
use std::path::Path;

use super::{content, create, disk, sync_root};
use crate::error::raw_os_error;
use crate::fault::{CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, Repeat, Trigger};
use crate::memory::MemoryStorage;
use crate::storage::{OpenOptions, Storage, read_exact_at};

#[test]
fn errors_come_once_or_for_good() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"abc");
    storage.error_at(storage.calls() + 1, Failure::Io, Repeat::Once);
    file.write_at(b"d", 0).unwrap();
    let error = file.sync().unwrap_err();
    assert_eq!(raw_os_error(&error), Some(5));
    assert!(error.to_string().contains("/a"), "{error}");
    file.sync().unwrap();
    storage.error_at(storage.calls(), Failure::Kind(ErrorKind::TimedOut), Repeat::Forever);
    for _ in 0..3 {
        assert_eq!(file.read_at(&mut [0], 0).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(storage.remove(Path::new("/a")).unwrap_err().kind(), ErrorKind::TimedOut);
    }
    storage.clear_faults();
    assert_eq!(content(&storage, "/a").unwrap(), b"dbc");
}

#[test]
fn no_space_fails_only_what_takes_space() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"abc");
    storage.error_at(0, Failure::NoSpace, Repeat::Forever);
    assert_eq!(file.write_at(b"d", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.allocate(0, 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(storage.open(Path::new("/b"), &OpenOptions::create()).unwrap_err().kind(), ErrorKind::StorageFull);
    file.sync().unwrap();
    assert_eq!(content(&storage, "/a").unwrap(), b"abc");
    storage.remove(Path::new("/a")).unwrap();
}

#[test]
fn a_failed_sync_without_more_leaves_the_writes_unsynced() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"abc");
    sync_root(&storage);
    storage.error_at(storage.calls(), Failure::Io, Repeat::Once);
    file.sync().unwrap_err();
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").unwrap(), b"");
    file.sync().unwrap();
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").unwrap(), b"abc");
}

#[test]
fn a_failed_sync_drops_what_it_should_have_kept() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"old");
    file.sync().unwrap();
    sync_root(&storage);
    file.write_at(b"new and longer", 0).unwrap();
    storage.sync_drops_at(storage.calls());
    assert_eq!(raw_os_error(&file.sync().unwrap_err()), Some(5));
    assert_eq!(content(&storage, "/a").unwrap(), b"old");

    file.write_at(b"new", 0).unwrap();
    storage.inject(Trigger::kind(CallKind::Sync, 0), Fault::SyncDropsWritesFromDiskOnly);
    file.sync().unwrap_err();
    assert_eq!(content(&storage, "/a").unwrap(), b"new", "the cache still has it");
    file.sync().unwrap();
    for policy in [CrashPolicy::KeepAll, CrashPolicy::Random(1)] {
        assert_eq!(content(&storage.crash_image(policy), "/a").unwrap(), b"old", "and the retry lied");
    }
    file.write_at(b"N", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").unwrap(), b"Nld");
}

#[test]
fn lost_syncs_are_found_by_a_crash() {
    let storage = disk(0, 512);
    storage.inject(Trigger::default().forever(), Fault::LoseSync);
    create(&storage, "/a", b"abc").sync().unwrap();
    sync_root(&storage);
    assert_eq!(content(&storage, "/a").unwrap(), b"abc");
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a"), None);
}

#[test]
fn short_reads_and_writes() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"0123456789");
    storage.short_read_at(storage.calls() + 1, 3);
    let mut buf = [b'-'; 10];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 10);
    buf.fill(b'-');
    assert_eq!(file.read_at(&mut buf, 2).unwrap(), 3);
    assert_eq!(&buf, b"234-------");
    storage.short_read_at(storage.calls(), 4);
    read_exact_at(&*file, &mut buf, 0).unwrap();
    assert_eq!(&buf, b"0123456789");

    storage.short_write_at(0, 2, Failure::NoSpace);
    assert_eq!(file.write_at(b"abcd", 4).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(content(&storage, "/a").unwrap(), b"0123ab6789");
}

#[test]
fn lost_misdirected_and_flipped_writes() {
    let storage = disk(0, 512);
    let file = create(&storage, "/a", b"0123456789");
    let next = storage.calls();
    storage.lose_write_at(next);
    storage.misdirect_write_at(next + 1, 7);
    storage.inject(Trigger::at(next + 2), Fault::FlipBit(9));
    for _ in 0..3 {
        file.write_at(b"ab", 0).unwrap();
        file.sync().unwrap();
    }
    // The faults stand in line: each takes the first write from its call on that no earlier one took.
    assert_eq!(
        content(&storage, "/a").unwrap(),
        b"a`234567ab"[..]
            .iter()
            .enumerate()
            .map(|(at, &byte)| match at {
                7 => b'a',
                8 => b'b',
                9 => b'9',
                _ => byte,
            })
            .collect::<Vec<u8>>()
    );
    storage.inject(Trigger::at(0), Fault::FlipBit(80));
    let mut buf = [0; 10];
    file.read_at(&mut buf, 0).unwrap();
    assert_eq!(buf[0], b'`', "bit 80 of 80 is bit 0");
    assert_eq!(content(&storage, "/a").unwrap()[0], b'a', "only this read was wrong");
}

#[test]
fn triggers_pick_kind_path_and_position() {
    let storage = disk(0, 512);
    let (a, b) = (create(&storage, "/data.a", b""), create(&storage, "/data.b", b""));
    storage.inject(Trigger::kind(CallKind::Sync, 1).on_path(".b"), Fault::Error(Failure::Io));
    for _ in 0..3 {
        a.sync().unwrap();
    }
    b.sync().unwrap();
    b.write_at(b"x", 0).unwrap();
    b.sync().unwrap_err();
    b.sync().unwrap();
    storage.inject(Trigger::kind(CallKind::Write, 2).forever(), Fault::Error(Failure::Io));
    a.write_at(b"x", 0).unwrap();
    b.write_at(b"x", 0).unwrap();
    a.write_at(b"x", 0).unwrap_err();
    b.write_at(b"x", 0).unwrap_err();
}

#[test]
fn damage_at_rest() {
    let storage = disk(0, 512);
    let path = Path::new("/a");
    let file = create(&storage, "/a", b"0123456789");
    file.sync().unwrap();
    sync_root(&storage);
    storage.flip_bit(path, 3, 1).unwrap();
    storage.overwrite_at_rest(path, 8, b"zz").unwrap();
    assert_eq!(content(&storage, "/a").unwrap(), b"01214567zz");
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").unwrap(), b"01214567zz");
    assert_eq!(storage.flip_bit(path, 10, 0).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(storage.flip_bit(Path::new("/b"), 0, 0).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn calls_are_counted_and_logged() {
    let storage = FaultStorage::new(FaultOptions { log_calls_max: 5, ..FaultOptions::default() });
    let file = create(&storage, "/a", b"0123456789");
    file.read_at(&mut [0; 4], 3).unwrap();
    file.set_len(7).unwrap();
    storage.list(Path::new("/")).unwrap();
    storage.open(Path::new("/b"), &OpenOptions::read_only()).unwrap_err();
    let log = storage.call_log();
    let brief: Vec<_> = log.iter().map(|call| (call.index, call.kind, call.path.to_str().unwrap(), call.offset, call.len)).collect();
    use CallKind::{Create, List, Read, SetLen, Write};
    let expected = [(0, Create, "/a", 0, 0), (1, Write, "/a", 0, 10), (2, Read, "/a", 3, 4), (3, SetLen, "/a", 7, 0), (4, List, "/", 0, 0)];
    assert_eq!(brief, expected);
    assert_eq!((storage.calls(), storage.calls_of(CallKind::Open), storage.calls_of(Read), storage.calls_of(CallKind::Sync)), (6, 1, 1, 0));
}

#[test]
fn files_go_to_memory_and_back() {
    let memory = MemoryStorage::with(512, Some(1 << 20));
    memory.create_directory(Path::new("/d")).unwrap();
    memory.open(Path::new("/d/a"), &OpenOptions::create_new()).unwrap().write_at(&[3; 5000], 100).unwrap();
    let storage = FaultStorage::from_memory(&memory, FaultOptions { alignment: 512, ..FaultOptions::default() });
    assert_eq!(storage.content_hash(), memory.content_hash());
    assert_eq!(storage.crash_image(CrashPolicy::DropAll).content_hash(), memory.content_hash(), "all of it is durable");
    create(&storage, "/d/b", b"new");
    let back = storage.to_memory();
    assert_eq!((back.content_hash(), back.taken_bytes()), (storage.content_hash(), 3 * 4096));
    assert!(!memory.exists(Path::new("/d/b")).unwrap());
    back.open(Path::new("/d/c"), &OpenOptions::create_new()).unwrap().write_at(b"more", 0).unwrap();
    assert_eq!(back.list(Path::new("/d")).unwrap().len(), 3);
}
