//! What a crash may leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{content, create, disk, sync_root};
use crate::fault::{CallKind, CrashPolicy, FaultStorage, is_simulated_crash};
use crate::random::Random;
use crate::storage::{OpenOptions, Storage};

/// The bytes of a range of a version, zeros beyond its end.
fn padded(version: &[u8], from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|at| version.get(at).copied().unwrap_or(0)).collect()
}

/// How an image relates to the versions since the last sync.
#[derive(Default, Debug)]
struct Seen {
    first: u64,
    last: u64,
    between: u64,
    mixed: u64,
}

impl Seen {
    /// Fails unless the length is that of a version and each sector that of a version.
    fn check(&mut self, image: &[u8], versions: &[Vec<u8>], sector_bytes: usize, context: &str) {
        assert!(versions.iter().any(|version| version.len() == image.len()), "{context}: length {} was never there", image.len());
        for from in (0..image.len()).step_by(sector_bytes) {
            let to = (from + sector_bytes).min(image.len());
            let known = versions.iter().any(|version| padded(version, from, to) == image[from..to]);
            assert!(known, "{context}: the sector at {from} holds what was never there");
        }
        match versions.iter().rposition(|version| version == image) {
            Some(last) if last + 1 == versions.len() => self.last += 1,
            Some(0) => self.first += 1,
            Some(_) => self.between += 1,
            None => self.mixed += 1,
        }
    }
}

#[test]
fn content_is_what_the_program_could_have_read_since_the_last_sync() {
    let mut seen = Seen::default();
    let mut synced_images = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let sector_bytes = if random.chance(1, 2) { 512 } else { 4096 };
        let storage = disk(seed, sector_bytes);
        let file = create(&storage, "/a", b"");
        sync_root(&storage);
        file.sync().unwrap();
        let mut versions = vec![Vec::new()];
        for step in 0..25 {
            let mut version: Vec<u8> = versions.last().unwrap().clone();
            let offset = random.below(4) * 4096 + random.below(2) * random.below(4096);
            let len = if random.chance(1, 3) { random.below(300) } else { random.below(4) * 2048 } + 1;
            let end = (offset + len) as usize;
            match random.below(8) {
                0 => {
                    file.sync().unwrap();
                    versions.clear();
                }
                1 => {
                    file.set_len(offset).unwrap();
                    version.resize(offset as usize, 0);
                }
                2 => {
                    file.allocate(offset, len).unwrap();
                    version.resize(version.len().max(end), 0);
                }
                3 => {
                    file.punch_hole(offset, len).unwrap();
                    let stop = end.min(version.len());
                    version[(offset as usize).min(stop)..stop].fill(0);
                }
                _ => {
                    let data = vec![random.below(255) as u8 + 1; len as usize];
                    file.write_at(&data, offset).unwrap();
                    version.resize(version.len().max(end), 0);
                    version[offset as usize..end].copy_from_slice(&data);
                }
            }
            versions.push(version);
            let context = format!("seed {seed}, step {step}");
            assert!(content(&storage, "/a").as_ref() == versions.last(), "{context}: the program sees its own changes");
            for image_seed in 0..4 {
                let image = storage.crash_image(CrashPolicy::Random(seed * 1000 + image_seed));
                seen.check(&content(&image, "/a").unwrap(), &versions, sector_bytes as usize, &context);
            }
            synced_images += u64::from(versions.len() == 1);
            assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").as_ref(), versions.first(), "{context}");
            assert_eq!(content(&storage.crash_image(CrashPolicy::KeepAll), "/a").as_ref(), versions.last(), "{context}");
        }
    }
    // All of it must have come up: nothing kept, all kept, a state in between, and a mixture of states.
    assert!(seen.first > 1000 && seen.last > 1000 && seen.between > 1000 && seen.mixed > 1000, "{seen:?}");
    assert!(synced_images > 500);
}

#[test]
fn unsynced_writes_are_reordered_and_torn() {
    let storage = disk(1, 512);
    let file = create(&storage, "/a", &[0; 4096]);
    file.sync().unwrap();
    sync_root(&storage);
    file.write_at(&[1; 2048], 0).unwrap();
    file.write_at(&[2; 2048], 2048).unwrap();
    file.write_at(&[3; 1024], 1024).unwrap();
    let images: BTreeSet<Vec<u8>> = (0..30_000)
        .map(|seed| content(&storage.crash_image(CrashPolicy::Random(seed)), "/a").unwrap().chunks(512).map(|sector| sector[0]).collect())
        .collect();
    for expected in [[0, 0, 0, 0, 2, 2, 2, 2], [1, 1, 1, 1, 2, 2, 2, 2], [0, 0, 3, 3, 0, 0, 0, 0], [0, 1, 3, 1, 0, 2, 0, 2]] {
        assert!(images.contains(&expected[..]), "{expected:?} never came up in {} images", images.len());
    }
    // 2 states of six sectors, 3 of the two that were written twice.
    assert!(images.len() > 200 && images.len() <= 64 * 9, "{}", images.len());
}

#[test]
fn the_write_at_the_crash_is_applied_in_part() {
    let mut partial = BTreeSet::new();
    for seed in 0..200 {
        let storage = disk(seed, 512);
        let file = create(&storage, "/a", &[1; 2048]);
        file.sync().unwrap();
        sync_root(&storage);
        storage.crash_at(storage.calls());
        assert!(is_simulated_crash(&file.write_at(&[2; 2048], 0).unwrap_err()));
        let after = content(&storage.crash_image(CrashPolicy::KeepAll), "/a").unwrap();
        assert!(after.chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
        partial.insert(after.chunks(512).map(|sector| sector[0]).collect::<Vec<u8>>());
        assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/a").unwrap(), [1; 2048]);
    }
    assert_eq!(partial.len(), 16, "every combination of four sectors");
}

#[test]
fn names_are_what_they_were_at_some_time_since_the_last_sync() {
    let names = ["/a", "/b", "/c", "/d"];
    let (mut vanished, mut appeared) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let storage = disk(seed, 512);
        // Name -> number of the file, which is its content; and what each name was since the last sync.
        let mut current: BTreeMap<&str, u8> = BTreeMap::new();
        let mut history: BTreeMap<&str, BTreeSet<Option<u8>>> = names.iter().map(|&name| (name, BTreeSet::from([None]))).collect();
        // Files that must be there under some name: named at the last sync, and not removed or replaced since.
        let mut safe: BTreeSet<u8> = BTreeSet::new();
        for number in 1..30u8 {
            let name = names[random.below(4) as usize];
            let other = names[random.below(4) as usize];
            match random.below(5) {
                0 => {
                    sync_root(&storage);
                    history = names.iter().map(|&name| (name, BTreeSet::from([current.get(name).copied()]))).collect();
                    safe = current.values().copied().collect();
                }
                1 | 2 if !current.contains_key(name) => {
                    create(&storage, name, &[number]).sync().unwrap();
                    current.insert(name, number);
                }
                3 if current.contains_key(name) => {
                    storage.remove(Path::new(name)).unwrap();
                    safe.remove(&current.remove(name).unwrap());
                }
                _ if current.contains_key(name) && name != other => {
                    storage.rename(Path::new(name), Path::new(other)).unwrap();
                    let file = current.remove(name).unwrap();
                    if let Some(replaced) = current.insert(other, file) {
                        safe.remove(&replaced);
                    }
                }
                _ => continue,
            }
            for &name in &names {
                history.get_mut(name).unwrap().insert(current.get(name).copied());
            }
            for policy in [CrashPolicy::Random(seed * 7 + u64::from(number)), CrashPolicy::DropAll, CrashPolicy::KeepAll] {
                let image = storage.crash_image(policy);
                let mut found = Vec::new();
                for &name in &names {
                    let file = content(&image, name).map(|content| content[0]);
                    assert!(history[name].contains(&file), "seed {seed}: {name} was never {file:?}");
                    found.extend(file);
                }
                let unique: BTreeSet<u8> = found.iter().copied().collect();
                assert_eq!(unique.len(), found.len(), "seed {seed}: one file under two names: a rename was half done");
                assert!(safe.is_subset(&unique), "seed {seed}, {policy:?}: a synced file vanished: {found:?}, {safe:?}");
                if policy == CrashPolicy::KeepAll {
                    assert_eq!(unique, current.values().copied().collect());
                }
                vanished += u64::from(current.values().any(|file| !unique.contains(file)));
                appeared += u64::from(unique.iter().any(|file| !current.values().any(|other| other == file)));
            }
        }
    }
    assert!(vanished > 100 && appeared > 100, "unsynced creations vanish, unsynced removals come undone: {vanished}, {appeared}");
}

#[test]
fn a_synced_file_without_a_synced_name_may_vanish() {
    let storage = disk(3, 512);
    storage.create_directory(Path::new("/d")).unwrap();
    create(&storage, "/d/a", b"x").sync().unwrap();
    storage.sync_directory(Path::new("/d")).unwrap();
    let images = |storage: &FaultStorage| -> BTreeSet<Option<Vec<u8>>> {
        (0..100).map(|seed| content(&storage.crash_image(CrashPolicy::Random(seed)), "/d/a")).collect()
    };
    assert_eq!(images(&storage), BTreeSet::from([None, Some(b"x".to_vec())]), "the name of the directory was not synced");
    sync_root(&storage);
    assert_eq!(images(&storage), BTreeSet::from([Some(b"x".to_vec())]));
}

#[test]
fn an_unsynced_removal_may_come_undone_whatever_else_is_synced() {
    let storage = disk(3, 512);
    storage.create_directory(Path::new("/d")).unwrap();
    create(&storage, "/d/a", b"x").sync().unwrap();
    storage.sync_directory(Path::new("/d")).unwrap();
    sync_root(&storage);
    storage.remove(Path::new("/d/a")).unwrap();
    sync_root(&storage);
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/d/a").unwrap(), b"x");
    storage.sync_directory(Path::new("/d")).unwrap();
    assert_eq!(content(&storage.crash_image(CrashPolicy::DropAll), "/d/a"), None);
    assert_eq!(storage.taken_bytes(), 0);
}

#[test]
fn a_rename_between_directories_needs_both_synced() {
    let storage = disk(3, 512);
    let (d, e) = (Path::new("/d"), Path::new("/e"));
    storage.create_directory(d).unwrap();
    storage.create_directory(e).unwrap();
    create(&storage, "/d/a", b"x").sync().unwrap();
    storage.sync_directory(d).unwrap();
    sync_root(&storage);
    storage.rename(Path::new("/d/a"), Path::new("/e/a")).unwrap();
    let places = |storage: &FaultStorage| -> BTreeSet<(bool, bool)> {
        let place = |image: FaultStorage| (content(&image, "/d/a").is_some(), content(&image, "/e/a").is_some());
        (0..50).map(|seed| place(storage.crash_image(CrashPolicy::Random(seed)))).collect()
    };
    assert_eq!(places(&storage), BTreeSet::from([(true, false), (false, true)]));
    storage.sync_directory(e).unwrap();
    assert_eq!(places(&storage), BTreeSet::from([(true, false), (false, true)]));
    storage.sync_directory(d).unwrap();
    assert_eq!(places(&storage), BTreeSet::from([(false, true)]));
}

/// Replaces a file's content atomically, each step of the protocol optional.
fn replace(storage: &FaultStorage, new: &[u8], sync_file: bool, sync_directory: bool) -> io::Result<()> {
    let (path, temporary) = (Path::new("/a"), Path::new("/a.new"));
    let file = storage.open(temporary, &OpenOptions::create())?;
    file.set_len(0)?;
    for (index, piece) in new.chunks(1000).enumerate() {
        file.write_at(piece, index as u64 * 1000)?;
    }
    if sync_file {
        file.sync()?;
    }
    storage.rename(temporary, path)?;
    if sync_directory {
        storage.sync_directory(Path::new("/"))?;
    }
    Ok(())
}

/// Crashes the replacement at every call and counts the images that are neither old nor new, or old although it was acknowledged.
fn violations(sync_file: bool, sync_directory: bool) -> (u64, BTreeSet<u64>) {
    let (old, new) = ([1; 3000], [2; 5000]);
    let mut violations = 0;
    let mut images = BTreeSet::new();
    for call in 0..20 {
        for seed in 0..40 {
            let storage = disk(seed, 512);
            replace(&storage, &old, true, true).unwrap();
            storage.crash_at(storage.calls() + call);
            let result = replace(&storage, &new, sync_file, sync_directory);
            assert_eq!(storage.is_crashed(), result.is_err());
            let image = storage.crash_image(CrashPolicy::Random(seed * 20 + call));
            images.insert(image.content_hash());
            let found = content(&image, "/a").unwrap_or_default();
            let allowed = found == new || (result.is_err() && found == old);
            violations += u64::from(!allowed);
            // Crash again in the middle of the repetition, and then let it finish.
            image.crash_at(call);
            let _ = replace(&image, &new, true, true);
            let again = image.crash_image(CrashPolicy::Random(seed + 1));
            replace(&again, &new, true, true).unwrap();
            assert_eq!(content(&again.crash_image(CrashPolicy::DropAll), "/a").unwrap(), new);
        }
    }
    (violations, images)
}

#[test]
fn an_atomic_replacement_holds_and_each_sync_taken_out_is_found() {
    let (found, images) = violations(true, true);
    assert_eq!(found, 0);
    assert!(images.len() > 40, "{} distinct images", images.len());
    assert!(violations(false, true).0 > 0, "without the sync of the file");
    assert!(violations(true, false).0 > 0, "without the sync of the directory");
}

#[test]
fn images_are_replayable_and_independent() {
    let run = || {
        let storage = disk(9, 512);
        let file = create(&storage, "/a", &[1; 9000]);
        storage.rename(Path::new("/a"), Path::new("/b")).unwrap();
        file.write_at(&[2; 3000], 4000).unwrap();
        storage
    };
    let (first, second) = (run(), run());
    let hashes = |storage: &FaultStorage| -> Vec<u64> {
        (0..50).map(|seed| storage.crash_image(CrashPolicy::Random(seed)).content_hash()).collect()
    };
    assert_eq!(hashes(&first), hashes(&second));
    assert!(hashes(&first).iter().collect::<BTreeSet<_>>().len() > 20);
    let image = first.crash_image(CrashPolicy::KeepAll);
    assert_eq!(image.content_hash(), first.content_hash());
    image.open(Path::new("/b"), &OpenOptions::read_write()).unwrap().write_at(b"x", 0).unwrap();
    assert_ne!(image.content_hash(), first.content_hash());
    assert_eq!((image.calls(), first.calls(), content(&first, "/b").unwrap()[0]), (2, 4, 1));
}

#[test]
fn an_observer_sees_each_call_before_it_happens() {
    let storage = disk(2, 512);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    storage.set_observer(move |storage, call| {
        let hash = storage.crash_image(CrashPolicy::KeepAll).content_hash();
        shared.lock().unwrap().push((call.index, call.kind, hash));
    });
    let empty = storage.content_hash();
    replace(&storage, &[7; 1500], true, true).unwrap();
    let seen: Vec<_> = std::mem::take(&mut *seen.lock().unwrap());
    use CallKind::{Create, Rename, SetLen, Sync, SyncDirectory, Write};
    let kinds: Vec<CallKind> = seen.iter().map(|&(_, kind, _)| kind).collect();
    assert_eq!(kinds, [Create, SetLen, Write, Write, Sync, Rename, SyncDirectory]);
    assert!(seen.iter().enumerate().all(|(number, &(index, ..))| index == number as u64));
    assert_eq!(seen[0].2, empty);
    assert_eq!(seen.last().unwrap().2, storage.content_hash());
    storage.clear_observer();
    assert!(!storage.exists(Path::new("/nothing")).unwrap());
}

#[test]
fn after_a_crash_everything_fails_and_locks_are_gone() {
    let storage = disk(4, 512);
    let path = Path::new("/a");
    let file = create(&storage, "/a", b"x");
    let lock = storage.lock(Path::new("/lock")).unwrap();
    sync_root(&storage);
    storage.crash_at(0);
    let errors = [
        file.read_at(&mut [0], 0).map(drop).unwrap_err(),
        file.write_at(b"y", 0).unwrap_err(),
        file.sync().unwrap_err(),
        file.set_len(0).unwrap_err(),
        file.len().map(drop).unwrap_err(),
        file.allocate(0, 9).unwrap_err(),
        file.punch_hole(0, 9).unwrap_err(),
        storage.open(path, &OpenOptions::create()).map(drop).unwrap_err(),
        storage.remove(path).unwrap_err(),
        storage.rename(path, Path::new("/b")).unwrap_err(),
        storage.exists(path).map(drop).unwrap_err(),
        storage.list(Path::new("/")).map(drop).unwrap_err(),
        storage.create_directory(path).unwrap_err(),
        storage.remove_directory(path).unwrap_err(),
        storage.sync_directory(Path::new("/")).unwrap_err(),
        storage.lock(Path::new("/lock")).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(is_simulated_crash(&error), "{error}");
    }
    let image = storage.crash_image(CrashPolicy::DropAll);
    drop(image.lock(Path::new("/lock")).unwrap());
    drop(lock);
    assert_eq!(content(&image, "/a").unwrap(), b"");
}

#[test]
fn a_crash_is_a_crash_also_at_a_call_that_would_have_failed() {
    let missing = Path::new("/missing");
    let calls: [fn(&FaultStorage, &Path) -> io::Result<()>; 6] = [
        |storage, path| storage.remove(path),
        |storage, path| storage.rename(path, Path::new("/b")),
        |storage, path| storage.open(path, &OpenOptions::read_only()).map(drop),
        |storage, path| storage.list(path).map(drop),
        |storage, path| storage.sync_directory(path),
        |storage, path| storage.remove_directory(path),
    ];
    for call in calls {
        let storage = disk(5, 512);
        storage.crash_at(0);
        assert!(is_simulated_crash(&call(&storage, missing).unwrap_err()));
        assert!(storage.is_crashed());
    }
    let storage = disk(5, 512);
    let file = create(&storage, "/a", b"");
    storage.set_capacity(Some(0));
    storage.crash_at(storage.calls());
    assert!(is_simulated_crash(&file.write_at(b"no space", 0).unwrap_err()));
}
