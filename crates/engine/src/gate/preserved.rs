//! The preserved-pages file of a reader.
//!
//! Layout: `docs/file-format.md`, "Preserved-pages file". The reader writes the header when it registers; the writer appends entries.
//!
//! Invariants:
//! - of several entries of a page the first counts;
//! - entries that count follow each other from the header on; the first that is not whole ends them: it is being written, or its writer died;
//! - an empty file says that the reader cannot be served any more.

use crate::{Error, Result};
use pagefold_format::page::{get_u32, get_u64, is_page_size, put_u32, put_u64};
use pagefold_io::{File, read_exact_at};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 8] = b"pgfoldpr";
/// Version of the format.
const PRESERVED_VERSION: u32 = 1;

const CHECKSUM: usize = 0;

// The header.
const MAGIC_AT: usize = CHECKSUM + 8;
const VERSION: usize = MAGIC_AT + 8;
const COUNT: usize = VERSION + 4;
const DATABASE_ID: usize = COUNT + 4;
const DATA_SETS: usize = DATABASE_ID + 16;
const DATA_SET_BYTES: usize = 16;
const _: () = assert!(DATA_SETS == 40);

// An entry.
const FILE_ID: usize = CHECKSUM + 8;
const PAGE_NUMBER: usize = FILE_ID + 4;
const PAGE_BYTES: usize = PAGE_NUMBER + 4;
/// Bytes of an entry before its image.
const ENTRY_HEADER_BYTES: usize = PAGE_BYTES + 8;
const _: () = assert!(ENTRY_HEADER_BYTES == 24);

/// What a reader has registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) database_id: u128,
    /// Lengths of the data sets, by file id.
    pub(crate) lengths: BTreeMap<u32, u64>,
}

impl Registered {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; DATA_SETS + self.lengths.len() * DATA_SET_BYTES];
        bytes[MAGIC_AT..VERSION].copy_from_slice(MAGIC);
        put_u32(&mut bytes, VERSION, PRESERVED_VERSION);
        put_u32(&mut bytes, COUNT, self.lengths.len() as u32);
        bytes[DATABASE_ID..DATA_SETS].copy_from_slice(&self.database_id.to_le_bytes());
        for ((file_id, length), entry) in self.lengths.iter().zip(bytes[DATA_SETS..].chunks_exact_mut(DATA_SET_BYTES)) {
            put_u32(entry, 0, *file_id);
            put_u64(entry, 8, *length);
        }
        let checksum = xxh3_64_with_seed(&bytes[MAGIC_AT..], 0);
        put_u64(&mut bytes, CHECKSUM, checksum);
        bytes
    }

    /// Reads the header of a preserved-pages file; also where its entries begin.
    pub(crate) fn read(file: &dyn File) -> Result<(Registered, u64)> {
        let damaged = |reason: String| Error::Damaged { path: file.path().display().to_string(), reason };
        let mut fixed = [0; DATA_SETS];
        read_exact_at(file, &mut fixed, 0)?;
        let found = get_u32(&fixed, VERSION);
        if fixed[MAGIC_AT..VERSION] != *MAGIC {
            return Err(damaged("not a preserved-pages file of pagefold".into()));
        }
        if found != PRESERVED_VERSION {
            return Err(Error::NewerFormat { path: file.path().display().to_string(), found, known: PRESERVED_VERSION });
        }
        let length = DATA_SETS as u64 + u64::from(get_u32(&fixed, COUNT)) * DATA_SET_BYTES as u64;
        if length > file.len()? {
            return Err(damaged(format!("its header of {length} bytes is not all there")));
        }
        let mut bytes = vec![0; length as usize];
        read_exact_at(file, &mut bytes, 0)?;
        if get_u64(&bytes, CHECKSUM) != xxh3_64_with_seed(&bytes[MAGIC_AT..], 0) {
            return Err(damaged("the header's checksum does not match".into()));
        }
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[DATABASE_ID..DATA_SETS]);
        let data_sets = bytes[DATA_SETS..].chunks_exact(DATA_SET_BYTES);
        let lengths = data_sets.map(|entry| (get_u32(entry, 0), get_u64(entry, 8))).collect();
        Ok((Registered { database_id: u128::from_le_bytes(id), lengths }, length))
    }
}

/// A page that is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) file_id: u32,
    pub(crate) page: u32,
    pub(crate) page_bytes: usize,
    /// Where its image begins in the file.
    pub(crate) image_at: u64,
}

impl Entry {
    /// Where the next entry begins.
    pub(crate) fn end(&self) -> u64 {
        self.image_at + self.page_bytes as u64
    }
}

/// Adds an entry to bytes that will be written at an offset of the file.
pub(super) fn put_entry(bytes: &mut Vec<u8>, bytes_at: u64, (file_id, page): (u32, u32), image: &[u8]) {
    let from = bytes.len();
    bytes.resize(from + ENTRY_HEADER_BYTES, 0);
    bytes.extend_from_slice(image);
    let entry = &mut bytes[from..];
    put_u32(entry, FILE_ID, file_id);
    put_u32(entry, PAGE_NUMBER, page);
    put_u32(entry, PAGE_BYTES, image.len() as u32);
    let checksum = xxh3_64_with_seed(&entry[FILE_ID..], bytes_at + from as u64);
    put_u64(entry, CHECKSUM, checksum);
}

/// The entry at an offset; `None` when there is none, or not all of it yet. `length` is that of the file.
pub(crate) fn entry_at(file: &dyn File, at: u64, length: u64) -> Result<Option<Entry>> {
    let image_at = at + ENTRY_HEADER_BYTES as u64;
    if image_at > length {
        return Ok(None);
    }
    let mut header = [0; ENTRY_HEADER_BYTES];
    read_exact_at(file, &mut header, at)?;
    let page_bytes = get_u32(&header, PAGE_BYTES) as usize;
    if !is_page_size(page_bytes) || image_at + page_bytes as u64 > length {
        return Ok(None);
    }
    let mut bytes = vec![0; ENTRY_HEADER_BYTES + page_bytes];
    read_exact_at(file, &mut bytes, at)?;
    let whole = get_u64(&bytes, CHECKSUM) == xxh3_64_with_seed(&bytes[FILE_ID..], at) && get_u32(&bytes, PAGE_BYTES) as usize == page_bytes;
    Ok(whole.then(|| Entry { file_id: get_u32(&bytes, FILE_ID), page: get_u32(&bytes, PAGE_NUMBER), page_bytes, image_at }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_io::{MemoryStorage, OpenOptions, Storage};
    use std::path::Path;
    use std::sync::Arc;

    fn file() -> Arc<dyn File> {
        MemoryStorage::new().open(Path::new("a.pfr"), &OpenOptions::create_new()).unwrap()
    }

    #[test]
    fn every_bit_flip_in_a_header_is_found() {
        let registered = Registered { database_id: 7 << 70, lengths: BTreeMap::from([(1, 8192), (9, 1 << 40)]) };
        let file = file();
        let bytes = registered.encode();
        file.write_at(&bytes, 0).unwrap();
        assert_eq!(Registered::read(file.as_ref()).unwrap(), (registered, 72));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            file.write_at(&flipped, 0).unwrap();
            assert!(Registered::read(file.as_ref()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_entry_counts_only_when_all_of_it_is_there_and_in_its_place() {
        let file = file();
        let mut bytes = Vec::new();
        put_entry(&mut bytes, 100, (3, 5), &[1; 2048]);
        put_entry(&mut bytes, 100, (3, 6), &[2; 4096]);
        file.write_at(&bytes, 100).unwrap();
        let length = file.len().unwrap();
        let first = entry_at(file.as_ref(), 100, length).unwrap().unwrap();
        assert_eq!(first, Entry { file_id: 3, page: 5, page_bytes: 2048, image_at: 124 });
        let second = entry_at(file.as_ref(), first.end(), length).unwrap().unwrap();
        assert_eq!((second.page, second.end()), (6, length));
        assert_eq!(entry_at(file.as_ref(), length, length).unwrap(), None);
        for cut in [first.end(), first.end() + 3, first.end() + 24, length - 1] {
            assert_eq!(entry_at(file.as_ref(), first.end(), cut).unwrap(), None);
        }
        file.write_at(&bytes, 101).unwrap();
        assert_eq!(entry_at(file.as_ref(), 101, length + 1).unwrap(), None, "not where it was made for");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            file.write_at(&flipped, 100).unwrap();
            let at = if bit / 8 < 2072 { 100 } else { 2172 };
            assert_eq!(entry_at(file.as_ref(), at, length).unwrap(), None, "bit {bit}");
        }
    }
}
