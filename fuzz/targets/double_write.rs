//! The double-write file with any bytes in it, also with checksums that are right: images are whole pages of their places, and opening makes them void.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::pool::double_write::{DoubleWrite, HALF_BYTES_MIN, images};
use pagefold_format::page::{PageIdentity, get_u32, is_page_size, put_u64, seal, verify};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::pages;
use pagefold_io::{MemoryStorage, OpenOptions, Storage, read_exact_at};
use std::path::Path;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const ID: u128 = 7;
const BLOCK: usize = 4096;
const FILE: usize = BLOCK + 2 * HALF_BYTES_MIN as usize;

/// Batches in both halves, some of older fillings behind them.
static MADE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let storage = MemoryStorage::new();
    let path = Path::new("dw");
    let area = DoubleWrite::create_or_open(&storage, path, ID, HALF_BYTES_MIN, false).expect("a file");
    for batch in 0..9u32 {
        let (bytes, count) = [(2048, 3), (4096, 9), (2048, 1)][batch as usize % 3];
        let mut images = Vec::new();
        let places: Vec<(u32, u32)> = (0..count).map(|i| (2, 3 + (batch + i) % 5)).collect();
        for (file_id, page_number) in &places {
            let mut page = pages::data(bytes);
            page[16..20].copy_from_slice(&page_number.to_le_bytes());
            seal(&mut page, &PageIdentity { database_id: ID, file_id: *file_id, page_number: *page_number });
            images.extend(page);
        }
        area.protect(&places, &images, bytes, &mut |_| Ok(())).expect("room").finished();
    }
    let mut bytes = vec![0; FILE];
    read_exact_at(&*storage.open(path, &OpenOptions::read_only()).expect("the file"), &mut bytes, 0).expect("all of it");
    bytes
});

/// Makes the checksum of the batch at an offset of the file right, and those of its entries.
fn mend(bytes: &mut [u8], at: usize) {
    let Some(batch) = bytes.get_mut(at..).filter(|batch| batch.len() >= BLOCK) else { return };
    let (page_bytes, count) = (get_u32(batch, 24) as usize, get_u32(batch, 28) as usize);
    let Some(header) = count.checked_mul(16).map(|entries| (32 + entries).next_multiple_of(BLOCK)) else { return };
    if header > batch.len() {
        return;
    }
    if is_page_size(page_bytes) {
        for i in 0..count.min((batch.len() - header) / page_bytes) {
            let image = header + i * page_bytes;
            let sum = xxh3_64_with_seed(&batch[image..image + page_bytes], 0);
            put_u64(batch, 32 + 16 * i + 8, sum);
        }
    }
    let seed = xxh3_64_with_seed(&(at as u64).to_le_bytes(), xxh3_64_with_seed(&ID.to_le_bytes(), 0));
    let sum = xxh3_64_with_seed(&batch[8..header], seed);
    put_u64(batch, 0, sum);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut bytes = MADE.clone();
    while !input.is_empty() {
        let (what, block) = (input.byte(), usize::from(input.byte()) % (FILE / BLOCK));
        let at = block * BLOCK + usize::from(input.u16()) % BLOCK;
        match what % 4 {
            0 => mend(&mut bytes, block * BLOCK),
            1 => {
                let Some(header) = bytes.get_mut(..BLOCK) else { continue };
                let sum = xxh3_64_with_seed(&header[8..], 0);
                put_u64(header, 0, sum);
            }
            2 => bytes.truncate(at),
            _ => {
                let length = usize::from(input.byte());
                for (to, byte) in bytes.iter_mut().skip(at).zip(input.take(length)) {
                    *to = *byte;
                }
            }
        }
    }
    let storage = MemoryStorage::new();
    let path = Path::new("dw");
    storage.open(path, &OpenOptions::create()).expect("in memory").write_at(&bytes, 0).expect("in memory");
    let found = images(&storage, path, ID);
    if let Ok(found) = &found {
        assert!(found.iter().map(|image| image.bytes.len()).sum::<usize>() < bytes.len());
        for image in found {
            let identity = PageIdentity { database_id: ID, file_id: image.file_id, page_number: image.page_number };
            verify(&image.bytes, &identity).expect("a whole page");
        }
    }
    let area = DoubleWrite::create_or_open(&storage, path, ID, HALF_BYTES_MIN, false);
    assert_eq!(area.is_ok(), found.is_ok());
    let Ok(area) = area else { return };
    assert!(images(&storage, path, ID).expect("whole").is_empty(), "void");
    let mut page = pages::data(2048);
    page[16..20].copy_from_slice(&3u32.to_le_bytes());
    seal(&mut page, &PageIdentity { database_id: ID, file_id: 2, page_number: 3 });
    area.protect(&[(2, 3)], &page, 2048, &mut |_| Ok(())).expect("room").finished();
    let after = images(&storage, path, ID).expect("whole");
    assert!(after.len() == 1 && after[0].bytes == page, "the batch that was written last, and no other");
});
