//! Random operations give the same on the operating system, in memory and on the simulated disk.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagefold_io::{
    CallKind, Failure, Fault, FaultOptions, FaultStorage, File, MemoryStorage, OpenOptions, OsStorage, Overlay, Storage, Trigger,
};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

struct Side {
    storage: Arc<dyn Storage>,
    root: PathBuf,
    handles: Vec<Arc<dyn File>>,
}

/// One step, decided before, so that each side does the same. The answer is text to compare.
#[derive(Debug, Clone)]
enum Step {
    Open { name: &'static str, options: OpenOptions },
    Close { handle: usize },
    Read { handle: usize, offset: u64, len: usize },
    Write { handle: usize, offset: u64, data: Vec<u8> },
    SetLen { handle: usize, len: u64 },
    Allocate { handle: usize, offset: u64, len: u64 },
    Punch { handle: usize, offset: u64, len: u64 },
    Sync { handle: usize },
    Remove { name: &'static str },
    Rename { from: &'static str, to: &'static str },
    CreateDirectory { name: &'static str },
    RemoveDirectory { name: &'static str },
    SyncDirectory { name: &'static str },
    List { name: &'static str },
    Exists { name: &'static str },
}

fn answer<T: std::fmt::Debug>(result: std::io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

impl Side {
    fn new(storage: Arc<dyn Storage>, root: &Path) -> Self {
        Self { storage, root: root.to_owned(), handles: Vec::new() }
    }

    fn run(&mut self, step: &Step) -> String {
        let path = |name: &str| self.root.join(name);
        let storage = &self.storage;
        match step {
            Step::Open { name, options } => {
                let opened = storage.open(&path(name), options);
                answer(opened.map(|file| {
                    self.handles.push(file);
                    self.handles.len()
                }))
            }
            Step::Close { handle } => {
                drop(self.handles.remove(*handle));
                String::new()
            }
            Step::Read { handle, offset, len } => {
                let mut buf = vec![0xEE; *len];
                let read = self.handles[*handle].read_at(&mut buf, *offset);
                answer(read) + &format!("{buf:?}")
            }
            Step::Write { handle, offset, data } => answer(self.handles[*handle].write_at(data, *offset)),
            Step::SetLen { handle, len } => answer(self.handles[*handle].set_len(*len)) + &answer(self.handles[*handle].len()),
            Step::Allocate { handle, offset, len } => {
                answer(self.handles[*handle].allocate(*offset, *len)) + &answer(self.handles[*handle].len())
            }
            Step::Punch { handle, offset, len } => {
                answer(self.handles[*handle].punch_hole(*offset, *len)) + &answer(self.handles[*handle].len())
            }
            Step::Sync { handle } => answer(self.handles[*handle].sync()),
            Step::Remove { name } => answer(storage.remove(&path(name))),
            Step::Rename { from, to } => answer(storage.rename(&path(from), &path(to))),
            Step::CreateDirectory { name } => answer(storage.create_directory(&path(name))),
            Step::RemoveDirectory { name } => answer(storage.remove_directory(&path(name))),
            Step::SyncDirectory { name } => answer(storage.sync_directory(&path(name))),
            Step::List { name } => {
                let listed = storage.list(&path(name));
                answer(listed.map(|paths| paths.iter().map(|path| path.strip_prefix(&self.root).unwrap().to_owned()).collect::<Vec<_>>()))
            }
            Step::Exists { name } => answer(storage.exists(&path(name))),
        }
    }
}

const NAMES: [&str; 9] = ["a", "b", "d", "e", "d/a", "d/b", "d/e", "d/e/a", "e/b"];

fn step(random: &mut Random, handles: usize) -> Step {
    let name = NAMES[random.below(9) as usize];
    let choice = if handles == 0 { 9 + random.below(8) } else { random.below(17) };
    let handle = random.below(handles.max(1) as u64) as usize;
    let (offset, len) = (random.below(20_000), random.below(9_000));
    match choice {
        0 => Step::Close { handle },
        1 | 2 => Step::Read { handle, offset, len: len as usize },
        3..=5 => Step::Write { handle, offset, data: (0..len).map(|_| random.below(256) as u8).collect() },
        6 => Step::SetLen { handle, len: offset },
        7 => Step::Allocate { handle, offset, len: len.max(1) },
        8 if random.below(2) == 0 => Step::Sync { handle },
        8 => Step::Punch { handle, offset, len: len.max(1) },
        9 | 10 => {
            let write = random.below(4) > 0;
            let options = OpenOptions { write, create: random.below(4) > 0, create_new: random.below(4) == 0, direct: false };
            Step::Open { name, options }
        }
        11 => Step::Remove { name },
        12 => Step::Rename { from: name, to: NAMES[random.below(9) as usize] },
        13 => Step::CreateDirectory { name },
        14 => Step::RemoveDirectory { name },
        15 if random.below(2) == 0 => Step::SyncDirectory { name },
        15 => Step::List { name },
        _ => Step::Exists { name },
    }
}

#[test]
fn all_storages_answer_alike() {
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 1..=60 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let directory = tempfile::tempdir().unwrap();
        let simulated: [Arc<dyn Storage>; 3] = [
            Arc::new(MemoryStorage::new()),
            Arc::new(FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() })),
            Arc::new(Overlay::new([], scratch()).unwrap()),
        ];
        let mut sides = vec![Side::new(Arc::new(OsStorage), directory.path())];
        for storage in simulated {
            storage.create_directory(Path::new("/root")).unwrap();
            sides.push(Side::new(storage, Path::new("/root")));
        }
        for number in 0..400 {
            let step = step(&mut random, sides[0].handles.len());
            let answers: Vec<String> = sides.iter_mut().map(|side| side.run(&step)).collect();
            assert!(answers.iter().all(|answer| *answer == answers[0]), "seed {seed}, step {number}: {step:?}: {answers:?}");
            if answers[0].len() < 20 && answers[0].chars().next().is_some_and(char::is_alphabetic) {
                *kinds.entry(answers[0].clone()).or_insert(0) += 1;
            }
        }
    }
    // The walk must have met the interesting failures, or it shows nothing.
    for kind in ["NotFound", "AlreadyExists", "IsADirectory", "NotADirectory", "DirectoryNotEmpty", "InvalidInput"] {
        assert!(kinds.contains_key(kind), "{kind} never came up: {kinds:?}");
    }
}

/// A file for what is written over others.
fn scratch() -> Arc<dyn File> {
    MemoryStorage::new().open(Path::new("scratch"), &OpenOptions::create_new()).unwrap()
}

#[test]
fn changes_over_files_are_as_changes_of_copies_and_leave_the_files_alone() {
    for seed in 1..=60 {
        let mut random = Random(0xD134_2543_DE82_EF95_u64.wrapping_mul(seed));
        let base = MemoryStorage::new();
        for name in ["root", "root/d"] {
            base.create_directory(Path::new(name)).unwrap();
        }
        let names = ["a", "b", "d/a", "d/b"];
        for name in names {
            let file = base.open(&Path::new("root").join(name), &OpenOptions::create_new()).unwrap();
            for _ in 0..random.below(4) {
                let bytes: Vec<u8> = (0..random.below(9000)).map(|_| random.below(256) as u8).collect();
                file.write_at(&bytes, random.below(20_000)).unwrap();
            }
        }
        let before = base.content_hash();
        let files = names.map(|name| {
            let path = Path::new("root").join(name);
            let file = base.open(&path, &OpenOptions::read_only()).unwrap();
            (path, file)
        });
        let scratch = scratch();
        let overlay = Overlay::new(files, Arc::clone(&scratch)).unwrap();
        let over: Arc<dyn Storage> = Arc::new(overlay.clone());
        let mut sides = [Arc::new(base.snapshot()) as Arc<dyn Storage>, over].map(|side| Side::new(side, Path::new("root")));
        for number in 0..400 {
            let step = step(&mut random, sides[0].handles.len());
            let answers = sides.each_mut().map(|side| side.run(&step));
            assert!(answers[0] == answers[1], "seed {seed}, step {number}: {step:?}");
        }
        assert_eq!(base.content_hash(), before, "seed {seed}: a file underneath was changed");
        assert_eq!(scratch.len().unwrap(), overlay.scratch_bytes(), "seed {seed}");
        // What nobody has any more gives its blocks back.
        for side in &mut sides {
            side.handles.clear();
        }
        for name in names {
            let _ = overlay.remove(&Path::new("root").join(name));
        }
        let fresh = overlay.open(Path::new("fresh"), &OpenOptions::create_new()).unwrap();
        let bytes = overlay.scratch_bytes();
        fresh.write_at(&vec![1; 4096.min(bytes as usize)], 0).unwrap();
        assert_eq!(overlay.scratch_bytes(), bytes, "seed {seed}: blocks of files that are gone are used again");
    }
}

#[test]
fn an_overlay_keeps_in_memory_what_its_scratch_file_has_no_room_for() {
    let full = MemoryStorage::with(1, Some(8192));
    let scratch = full.open(Path::new("scratch"), &OpenOptions::create_new()).unwrap();
    let overlay = Overlay::new([], scratch).unwrap();
    let file = overlay.open(Path::new("a"), &OpenOptions::create()).unwrap();
    for turn in 1..4u8 {
        for block in 0..9u64 {
            file.write_at(&[turn + block as u8; 4096], block * 4096).unwrap();
        }
        file.write_at(&[77; 10], 5 * 4096 + 9).unwrap();
        let mut bytes = vec![0; 9 * 4096];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        assert!((0..9).all(|block| bytes[block * 4096] == turn + block as u8 && bytes[block * 4096 + 4095] == turn + block as u8));
        assert_eq!(bytes[5 * 4096 + 9..5 * 4096 + 19], [77; 10]);
        file.set_len(4096 * 2).unwrap();
    }
}

#[test]
fn an_overlay_that_cannot_write_says_so_and_stays_as_it_is() {
    let full = FaultStorage::new(FaultOptions::default());
    let scratch = full.open(Path::new("scratch"), &OpenOptions::create_new()).unwrap();
    let base = MemoryStorage::new().open(Path::new("a"), &OpenOptions::create_new()).unwrap();
    base.write_at(&[1; 20_000], 0).unwrap();
    let overlay = Overlay::new([(PathBuf::from("a"), Arc::clone(&base))], scratch).unwrap();
    let file = overlay.open(Path::new("a"), &OpenOptions::read_write()).unwrap();
    file.write_at(&[2; 8192], 0).unwrap();
    full.inject(Trigger::kind(CallKind::Write, 0), Fault::Error(Failure::Io));
    let error = file.write_at(&[3; 100], 10_000).unwrap_err();
    assert!(error.to_string().contains("write a at offset 10000"), "{error}");
    full.clear_faults();
    let mut bytes = vec![0; 20_000];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 20_000);
    assert!(bytes[..8192] == [2; 8192] && bytes[8192..] == [1; 11_808]);
    file.write_at(&[4; 4096], 4096).unwrap();
    file.write_at(&[0; 4096], 12_288).unwrap();
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 20_000);
    assert!(bytes[4096..8192] == [4; 4096] && bytes[12_288..16_384] == [0; 4096], "zeros take no space");
    assert!(
        Overlay::new(
            [(PathBuf::from("a"), Arc::clone(&base)), (PathBuf::from("a/b"), base)],
            full.open(Path::new("s"), &OpenOptions::create()).unwrap()
        )
        .is_err()
    );
}
