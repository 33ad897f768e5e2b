//! Torn batches, torn pages, crashes at every call, bytes of any kind.

use super::*;
use crate::test_random::Random;
use pagefold_format::page::{PageType, init_header, seal, set_write_counter, write_counter};
use pagefold_io::{CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, MemoryStorage, Repeat, Trigger, is_simulated_crash};
use std::sync::atomic::{AtomicU32, Ordering};

const DATABASE: u128 = 77;
const HALF: u64 = HALF_BYTES_MIN;
const PAGES: usize = 24;
const PAGE: usize = 2048;

fn path() -> &'static Path {
    Path::new("/doublewrite")
}

fn open_area(storage: &dyn Storage) -> Result<DoubleWrite> {
    DoubleWrite::create_or_open(storage, path(), DATABASE, HALF, true)
}

fn identity(file_id: u32, page_number: u32) -> PageIdentity {
    PageIdentity { database_id: DATABASE, file_id, page_number }
}

/// A sealed page with this write counter.
fn page(file_id: u32, number: u32, version: u32, page_bytes: usize) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    let mut random = Random(u64::from(version) << 32 | u64::from(number));
    page.iter_mut().for_each(|byte| *byte = random.next() as u8);
    init_header(&mut page, number, PageType::Data, 1);
    set_write_counter(&mut page, version);
    seal(&mut page, &identity(file_id, number));
    page
}

fn no_reuse(_: &BTreeSet<u32>) -> Result<()> {
    panic!("nothing is to be overwritten yet")
}

/// A data file of 2 KB pages behind a double-write file.
struct Store {
    storage: Arc<dyn Storage>,
    data: Arc<dyn File>,
    /// By page: the version that is protected, the one last tried.
    protected: Vec<u32>,
    tried: Vec<u32>,
    /// The last version of any page: none comes twice, so that an image of before a crash that comes back is known.
    version: u32,
}

impl Store {
    fn new(disk: &FaultStorage) -> Store {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let data = storage.open(Path::new("/data"), &OpenOptions::create_new()).unwrap();
        for number in 0..PAGES {
            data.write_at(&page(3, number as u32, 1, PAGE), (number * PAGE) as u64).unwrap();
        }
        data.sync().unwrap();
        storage.sync_directory(Path::new("/")).unwrap();
        Store { storage, data, protected: vec![1; PAGES], tried: vec![1; PAGES], version: 1 }
    }

    fn work(&mut self, random: &mut Random, batches: u64) -> Result<()> {
        let area = open_area(self.storage.as_ref())?;
        for _ in 0..batches {
            let first = random.index(PAGES);
            let numbers: Vec<usize> = (first..PAGES.min(first + 1 + random.index(9))).collect();
            let mut images = Vec::new();
            for &number in &numbers {
                self.version += 1;
                self.tried[number] = self.version;
                images.extend(page(3, number as u32, self.tried[number], PAGE));
            }
            let pages: Vec<(u32, u32)> = numbers.iter().map(|&number| (3, number as u32)).collect();
            let mut before_reuse = |file_ids: &BTreeSet<u32>| {
                assert_eq!(file_ids.iter().collect::<Vec<_>>(), [&3]);
                Ok(self.data.sync()?)
            };
            let protected = area.protect(&pages, &images, PAGE, &mut before_reuse)?;
            numbers.iter().for_each(|&number| self.protected[number] = self.tried[number]);
            for (&number, image) in numbers.iter().zip(images.chunks_exact(PAGE)) {
                self.data.write_at(image, (number * PAGE) as u64)?;
            }
            protected.finished();
        }
        Ok(())
    }

    /// As recovery does it. Returns how many pages were put back.
    fn recover(&mut self, disk: &FaultStorage, context: &str) -> usize {
        self.storage = Arc::new(disk.clone());
        self.data = self.storage.open(Path::new("/data"), &OpenOptions::read_write()).unwrap();
        let images = images(self.storage.as_ref(), path(), DATABASE).unwrap_or_else(|error| panic!("{context}: {error}"));
        let read = |number: usize| {
            let mut bytes = vec![0; PAGE];
            read_exact_at(self.data.as_ref(), &mut bytes, (number * PAGE) as u64).unwrap();
            verify(&bytes, &identity(3, number as u32)).ok().map(|_| write_counter(&bytes))
        };
        let mut restored = 0;
        for image in images {
            let number = image.page_number as usize;
            if read(number).is_none_or(|version| version < write_counter(&image.bytes)) {
                self.data.write_at(&image.bytes, (number * PAGE) as u64).unwrap();
                restored += 1;
            }
        }
        self.data.sync().unwrap();
        for number in 0..PAGES {
            let version = read(number).unwrap_or_else(|| panic!("{context}: page {number} is torn"));
            let expected = self.protected[number]..=self.tried[number];
            assert!(expected.contains(&version), "{context}: page {number} has version {version}, not {expected:?}");
            (self.protected[number], self.tried[number]) = (version, version);
        }
        restored
    }
}

fn crash_at_every_call(sector_bytes: u32) {
    let disk = |seed| FaultStorage::new(FaultOptions { seed, sector_bytes, ..FaultOptions::default() });
    let whole = disk(0);
    let mut store = Store::new(&whole);
    let first = whole.calls();
    store.work(&mut Random(1), 30).unwrap();
    let mut restored = 0;
    for call in first..=whole.calls() {
        for number in 0..6 {
            let policy = [CrashPolicy::DropAll, CrashPolicy::KeepAll].get(number).copied();
            let policy = policy.unwrap_or(CrashPolicy::Random(call * 10 + number as u64));
            let disk = disk(call);
            let mut store = Store::new(&disk);
            disk.crash_at(call);
            if let Err(error) = store.work(&mut Random(1), 30) {
                assert!(matches!(&error, Error::Io(error) if is_simulated_crash(error)), "{error}");
            }
            let context = format!("crash at call {call}, {policy:?}");
            let image = disk.crash_image(policy);
            restored += store.recover(&image, &context);
            // And once more, some batches later.
            let mut random = Random(call * 100 + number as u64);
            image.crash_at(image.calls() + random.below(80));
            store.work(&mut random, 12).ok();
            let image = image.crash_image(CrashPolicy::Random(call));
            restored += store.recover(&image, &format!("{context}, and again"));
        }
    }
    assert!(restored > 1000, "{restored}");
}

#[test]
fn crashes_with_sectors_of_512() {
    crash_at_every_call(512);
}

#[test]
fn crashes_with_sectors_of_4096() {
    crash_at_every_call(4096);
}

#[test]
fn the_newest_image_of_a_page_is_that_of_its_last_write() {
    let storage = MemoryStorage::new();
    let mut random = Random(9);
    let mut last = [0; 40];
    let mut found = 0;
    for life in 0..60 {
        let area = open_area(&storage).unwrap();
        assert_eq!(area.pages_max(PAGE), 25);
        for _ in 0..random.below(12) {
            let numbers: Vec<u32> =
                (0..1 + random.below(25)).map(|_| random.below(40) as u32).collect::<BTreeSet<_>>().into_iter().collect();
            numbers.iter().for_each(|&number| last[number as usize] += 1);
            let images: Vec<u8> = numbers.iter().flat_map(|&number| page(1, number, last[number as usize], PAGE)).collect();
            let pages: Vec<(u32, u32)> = numbers.iter().map(|&number| (1, number)).collect();
            area.protect(&pages, &images, PAGE, &mut |_| Ok(())).unwrap().finished();
        }
        let images = images(&storage, path(), DATABASE).unwrap();
        for number in 0..40 {
            if let Some(image) = images.iter().rfind(|image| image.page_number == number) {
                assert_eq!(write_counter(&image.bytes), last[number as usize], "life {life}, page {number}");
                found += 1;
            }
        }
    }
    assert!(found > 1000, "{found}");
}

#[test]
fn pages_of_all_sizes_and_files_come_back() {
    for page_bytes in (1..=16).map(|steps| steps * 2048) {
        let storage = MemoryStorage::new();
        let area = open_area(&storage).unwrap();
        let count = area.pages_max(page_bytes) as u32;
        let pages: Vec<(u32, u32)> = (0..count).map(|n| (n % 3, n)).collect();
        let images: Vec<u8> = pages.iter().flat_map(|&(file_id, number)| page(file_id, number, 1, page_bytes)).collect();
        area.protect(&pages, &images, page_bytes, &mut no_reuse).unwrap().finished();
        let found = super::images(&storage, path(), DATABASE).unwrap();
        assert_eq!(found.iter().map(|image| (image.file_id, image.page_number)).collect::<Vec<_>>(), pages);
        assert!(found.iter().flat_map(|image| &image.bytes).eq(&images));
        for (pages, images, page_bytes) in
            [(&pages[..], &images[1..], page_bytes), (&[], &[], page_bytes), (&pages, &images, page_bytes + 1)]
        {
            assert!(matches!(area.protect(pages, images, page_bytes, &mut no_reuse), Err(Error::Parameter(_))));
        }
        let many = HALF as usize / page_bytes + 1;
        let (pages, images) = (vec![(1, 1); many], vec![0; many * page_bytes]);
        assert!(matches!(area.protect(&pages, &images, page_bytes, &mut no_reuse), Err(Error::Parameter(_))));
    }
}

#[test]
fn a_half_waits_for_its_writes_in_place() {
    let storage = MemoryStorage::new();
    let area = open_area(&storage).unwrap();
    let images: Vec<u8> = (0..20).flat_map(|number| page(1, number, 1, PAGE)).collect();
    let pages: Vec<(u32, u32)> = (0..20).map(|number| (1, number)).collect();
    let first = area.protect(&pages, &images, PAGE, &mut no_reuse).unwrap();
    area.protect(&pages, &images, PAGE, &mut no_reuse).unwrap().finished();
    let reused = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let third = scope.spawn(|| {
            let mut before_reuse = |_: &BTreeSet<u32>| {
                reused.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            area.protect(&pages, &images, PAGE, &mut before_reuse).unwrap().finished();
        });
        while !third.is_finished() && area.area.try_lock().is_some() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(reused.load(Ordering::SeqCst) == 0 && !third.is_finished());
        first.finished();
    });
    assert_eq!(reused.load(Ordering::SeqCst), 1);
    // One that is not finished keeps the images for good.
    drop(area.protect(&pages, &images, PAGE, &mut |_| Ok(())).unwrap());
    assert!(matches!(area.protect(&pages, &images, PAGE, &mut no_reuse), Err(Error::Poisoned(_))));
}

#[test]
fn many_threads() {
    let storage = MemoryStorage::new();
    let area = open_area(&storage).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let area = &area;
            scope.spawn(move || {
                let mut random = Random(u64::from(thread));
                for version in 0..200 {
                    let count = 1 + random.below(20) as u32;
                    let images: Vec<u8> = (0..count).flat_map(|number| page(thread, number, version, PAGE)).collect();
                    let pages: Vec<(u32, u32)> = (0..count).map(|number| (thread, number)).collect();
                    area.protect(&pages, &images, PAGE, &mut |_| Ok(())).unwrap().finished();
                }
            });
        }
    });
    assert!(images(&storage, path(), DATABASE).unwrap().len() > 20);
}

#[test]
fn failures_poison_and_a_failed_reuse_does_not() {
    for (kind, fault) in [(CallKind::Write, Fault::Error(Failure::Io)), (CallKind::Sync, Fault::SyncDropsWrites)] {
        let disk = FaultStorage::new(FaultOptions::default());
        let area = open_area(&disk).unwrap();
        let (pages, image) = ([(1, 5)], page(1, 5, 1, PAGE));
        area.protect(&pages, &image, PAGE, &mut no_reuse).unwrap().finished();
        disk.inject(Trigger { kinds: vec![kind], repeat: Repeat::Once, ..Trigger::default() }, fault);
        assert!(matches!(area.protect(&pages, &image, PAGE, &mut no_reuse), Err(Error::Io(_))));
        assert!(matches!(area.protect(&pages, &image, PAGE, &mut no_reuse), Err(Error::Poisoned(_))));
        assert_eq!(images(&disk.crash_image(CrashPolicy::DropAll), path(), DATABASE).unwrap().len(), 1);
    }
    let storage = MemoryStorage::new();
    let area = open_area(&storage).unwrap();
    let (pages, images) = (vec![(1, 5); 20], page(1, 5, 1, PAGE).repeat(20));
    area.protect(&pages, &images, PAGE, &mut no_reuse).unwrap().finished();
    area.protect(&pages, &images, PAGE, &mut no_reuse).unwrap().finished();
    assert!(area.protect(&pages, &images, PAGE, &mut |_| Err(Error::Interrupted)).is_err());
    let mut called = 0;
    let mut before_reuse = |_: &BTreeSet<u32>| {
        called += 1;
        Ok(())
    };
    area.protect(&pages, &images, PAGE, &mut before_reuse).unwrap().finished();
    assert_eq!(called, 1);
}

#[test]
fn damage_costs_what_is_damaged() {
    let disk = FaultStorage::new(FaultOptions::default());
    assert!(images(&disk, path(), DATABASE).unwrap().is_empty());
    let area = open_area(&disk).unwrap();
    for number in 0..3 {
        area.protect(&[(1, number)], &page(1, number, 1, PAGE), PAGE, &mut no_reuse).unwrap().finished();
    }
    drop(area);
    let numbers = || images(&disk, path(), DATABASE).map(|images| images.iter().map(|image| image.page_number).collect::<Vec<_>>());
    assert_eq!(numbers().unwrap(), [0, 1, 2]);
    // Batches of 8 KB: a header of 4 KB, an image of 2 KB, padding.
    let expected = |offset: u64| match (offset / 8192, offset % 8192) {
        (batch, 4096..6144) => (0..3).filter(|&number| u64::from(number) != batch).collect(),
        (batch, 0..4096) => (0..batch as u32).collect::<Vec<_>>(),
        _ => vec![0, 1, 2],
    };
    for offset in (0..24_576).step_by(13) {
        disk.flip_bit(path(), 4096 + offset, (offset % 8) as u32).unwrap();
        assert_eq!(numbers().unwrap(), expected(offset), "offset {offset}");
        disk.flip_bit(path(), 4096 + offset, (offset % 8) as u32).unwrap();
    }
    for offset in 0..4096 {
        disk.flip_bit(path(), offset, (offset % 8) as u32).unwrap();
        assert!(matches!(numbers(), Err(Error::Damaged { .. })));
        assert!(open_area(&disk).is_err());
        disk.flip_bit(path(), offset, (offset % 8) as u32).unwrap();
    }
    assert!(matches!(images(&disk, path(), DATABASE + 1), Err(Error::Damaged { .. })));
    for half_bytes in [0, HALF - 4096, HALF + 1, HALF_BYTES_MAX + 4096, u64::MAX] {
        assert!(DoubleWrite::create_or_open(&disk, path(), DATABASE, half_bytes, true).is_err());
    }
    disk.open(path(), &OpenOptions::read_write()).unwrap().set_len(4096 + 2 * HALF - 1).unwrap();
    assert!(matches!(numbers(), Err(Error::Damaged { .. })));
}

#[test]
fn headers_of_any_kind_are_read_without_harm() {
    let disk = FaultStorage::new(FaultOptions::default());
    drop(open_area(&disk).unwrap());
    let mut random = Random(4);
    let numbers = [0, 1, 12, 2048, 32_768, 65_536, u32::MAX, u32::MAX / 2048];
    for _ in 0..2000 {
        let half = random.below(2);
        let mut header = vec![0; 8192];
        header[MAGIC_AT..SEQUENCE].copy_from_slice(BATCH_MAGIC);
        put_u64(&mut header, SEQUENCE, [0, 1, u64::MAX][random.index(3)]);
        put_u32(&mut header, PAGE_BYTES, numbers[random.index(8)]);
        put_u32(&mut header, COUNT, numbers[random.index(8)]);
        let at = 4096 + half * HALF + 4096 * [0, 1, 15][random.index(3)];
        let checked = header_bytes(get_u32(&header, COUNT) as usize).unwrap_or(4096).min(8192);
        let checksum = batch_checksum(&header[..checked], DATABASE, at);
        put_u64(&mut header, CHECKSUM, checksum);
        disk.overwrite_at_rest(path(), at, &header[..4096]).unwrap();
        assert!(images(&disk, path(), DATABASE).unwrap().is_empty());
        open_area(&disk).unwrap();
    }
}
