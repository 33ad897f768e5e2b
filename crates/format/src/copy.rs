//! A copy of a database as one file: blocks of pages and of log, then the manifest.
//!
//! Layout: `docs/file-format.md`, "Copy".
//!
//! Invariants:
//! - every byte is under a checksum: the file header's, or its block's. That of a block is bound to the copy and to the block's place in it, so a block of another copy or of another place is refused;
//! - the header is written last and says how long the file is: a copy without it was never finished.

use crate::FormatError;
use crate::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use crate::log::Lsn;
use crate::page::{get_u64, is_page_size, put_u64};
use crate::wire::{Reader, put_varint};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Version of the format of copies of whole databases.
pub const COPY_VERSION: u32 = 1;
/// Version of the format of copies of some tables: who knows only the other one must not take it for a database.
pub const PARTIAL_COPY_VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"pgfoldcp";

const CHECKSUM: usize = 0;
const HEADER_MAGIC: usize = CHECKSUM + 8;
const HEADER_VERSION: usize = HEADER_MAGIC + 8;
const HEADER_COPY_ID: usize = HEADER_VERSION + 8;
const HEADER_MANIFEST: usize = HEADER_COPY_ID + 16;
const HEADER_LENGTH: usize = HEADER_MANIFEST + 8;
/// Bytes of the file's header.
pub const COPY_HEADER_BYTES: usize = HEADER_LENGTH + 16;
const _: () = assert!(COPY_HEADER_BYTES == 64);

const BLOCK_BYTES: usize = CHECKSUM + 8;
const BLOCK_KIND: usize = BLOCK_BYTES + 4;
const BLOCK_FILE_ID: usize = BLOCK_KIND + 4;
const BLOCK_PAGE_BYTES: usize = BLOCK_FILE_ID + 4;
const BLOCK_START: usize = BLOCK_PAGE_BYTES + 4;
/// Bytes of a block before its body.
pub const COPY_BLOCK_HEADER_BYTES: usize = BLOCK_START + 8;
const _: () = assert!(COPY_BLOCK_HEADER_BYTES == 32);

/// The longest body of a block of pages or log.
pub const COPY_BLOCK_BYTES_MAX: usize = 1 << 20;
/// The longest manifest.
pub const COPY_MANIFEST_BYTES_MAX: usize = 16 << 20;

/// The header of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyHeader {
    /// The copy; no other has its id.
    pub copy_id: u128,
    /// Where the block with the manifest starts.
    pub manifest: u64,
    /// Length of the file.
    pub length: u64,
    /// It has some tables only: those that its manifest names.
    pub partial: bool,
}

impl CopyHeader {
    /// The header's bytes.
    #[must_use]
    pub fn build(&self) -> [u8; COPY_HEADER_BYTES] {
        let mut bytes = [0; COPY_HEADER_BYTES];
        bytes[HEADER_MAGIC..HEADER_VERSION].copy_from_slice(MAGIC);
        let version = if self.partial { PARTIAL_COPY_VERSION } else { COPY_VERSION };
        bytes[HEADER_VERSION..HEADER_VERSION + 4].copy_from_slice(&version.to_le_bytes());
        bytes[HEADER_COPY_ID..HEADER_MANIFEST].copy_from_slice(&self.copy_id.to_le_bytes());
        put_u64(&mut bytes, HEADER_MANIFEST, self.manifest);
        put_u64(&mut bytes, HEADER_LENGTH, self.length);
        let sum = xxh3_64_with_seed(&bytes[HEADER_MAGIC..], 0);
        put_u64(&mut bytes, CHECKSUM, sum);
        bytes
    }

    /// Reads the header of a file of `length` bytes.
    ///
    /// # Errors
    /// When it is damaged, of another format, or of a file of another length.
    pub fn parse(bytes: &[u8; COPY_HEADER_BYTES], length: u64) -> Result<CopyHeader, FormatError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(FormatError::new("the copy was never finished"));
        }
        if bytes[HEADER_MAGIC..HEADER_VERSION] != *MAGIC {
            return Err(FormatError::new("not a copy of a pagefold database"));
        }
        if get_u64(bytes, CHECKSUM) != xxh3_64_with_seed(&bytes[HEADER_MAGIC..], 0) {
            return Err(FormatError::new("the header's checksum does not match"));
        }
        let mut reader = Reader::new(&bytes[HEADER_VERSION..]);
        let version = reader.u32()?;
        if ![COPY_VERSION, PARTIAL_COPY_VERSION].contains(&version) {
            let known = format!("this program knows {COPY_VERSION} and {PARTIAL_COPY_VERSION}");
            return Err(FormatError::new(format!("a copy of format version {version}, {known}")));
        }
        reader.take(4)?;
        let partial = version == PARTIAL_COPY_VERSION;
        let header = CopyHeader { copy_id: reader.u128()?, manifest: reader.u64()?, length: reader.u64()?, partial };
        if header.length != length {
            return Err(FormatError::new(format!("{length} bytes long, the header says {}", header.length)));
        }
        if header.manifest < COPY_HEADER_BYTES as u64 || header.manifest > length.saturating_sub(COPY_BLOCK_HEADER_BYTES as u64) {
            return Err(FormatError::new(format!("a manifest at {} in {length} bytes", header.manifest)));
        }
        Ok(header)
    }
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyBlock {
    /// Pages of a data set, one behind the other, as they are on disk.
    Pages {
        /// The data set.
        file_id: u32,
        /// Page size on disk.
        page_bytes: u32,
        /// Number of the first page.
        first: u32,
    },
    /// Bytes of the log.
    Log {
        /// Where in the log they are.
        start: Lsn,
    },
    /// The [`Manifest`]: the last block.
    Manifest,
}

impl CopyBlock {
    /// The bytes before the body of a block at `position` of a copy.
    ///
    /// # Panics
    /// When the body is longer than a block may be: a mistake of the caller.
    #[must_use]
    pub fn build(&self, body: &[u8], copy_id: u128, position: u64) -> [u8; COPY_BLOCK_HEADER_BYTES] {
        assert!(body.len() <= self.body_bytes_max());
        let (kind, file_id, page_bytes, start) = match *self {
            CopyBlock::Pages { file_id, page_bytes, first } => (1, file_id, page_bytes, first.into()),
            CopyBlock::Log { start } => (2, 0, 0, start),
            CopyBlock::Manifest => (3, 0, 0, 0),
        };
        let mut header = [0; COPY_BLOCK_HEADER_BYTES];
        header[BLOCK_BYTES..BLOCK_KIND].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[BLOCK_KIND] = kind;
        header[BLOCK_FILE_ID..BLOCK_PAGE_BYTES].copy_from_slice(&file_id.to_le_bytes());
        header[BLOCK_PAGE_BYTES..BLOCK_START].copy_from_slice(&page_bytes.to_le_bytes());
        put_u64(&mut header, BLOCK_START, start);
        let sum = checksum(&header, body, copy_id, position);
        put_u64(&mut header, CHECKSUM, sum);
        header
    }

    /// Reads what stands before a body: what it is and how long. Nothing of it is to be believed before [`Self::check`], but that no more than the bound has to be read for that.
    ///
    /// # Errors
    /// When no block begins like this.
    pub fn parse(header: &[u8; COPY_BLOCK_HEADER_BYTES]) -> Result<(CopyBlock, usize), FormatError> {
        let mut reader = Reader::new(&header[BLOCK_BYTES..]);
        let (bytes, kind) = (reader.u32()? as usize, reader.u8()?);
        if reader.take(3)? != [0; 3] {
            return Err(FormatError::new("bytes that should be zero are not"));
        }
        let (file_id, page_bytes, start) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let block = match kind {
            1 => {
                let first = u32::try_from(start).map_err(|_| FormatError::new(format!("pages from {start} on")))?;
                if !is_page_size(page_bytes as usize) || bytes == 0 || !bytes.is_multiple_of(page_bytes as usize) {
                    return Err(FormatError::new(format!("{bytes} bytes of pages of {page_bytes} bytes")));
                }
                if first.checked_add(bytes as u32 / page_bytes).is_none() {
                    return Err(FormatError::new(format!("pages from {first} on")));
                }
                CopyBlock::Pages { file_id, page_bytes, first }
            }
            2 if (file_id, page_bytes) == (0, 0) && start.checked_add(bytes as u64).is_some() => CopyBlock::Log { start },
            3 if (file_id, page_bytes, start) == (0, 0, 0) => CopyBlock::Manifest,
            _ => return Err(FormatError::new(format!("a block of kind {kind}"))),
        };
        if bytes > block.body_bytes_max() {
            return Err(FormatError::new(format!("a block of {bytes} bytes")));
        }
        Ok((block, bytes))
    }

    /// Is this the block that was written at `position` of a copy?
    ///
    /// # Errors
    /// When it is not.
    pub fn check(header: &[u8; COPY_BLOCK_HEADER_BYTES], body: &[u8], copy_id: u128, position: u64) -> Result<(), FormatError> {
        match get_u64(header, CHECKSUM) == checksum(header, body, copy_id, position) {
            true => Ok(()),
            false => Err(FormatError::new("the checksum does not match: damaged, or a block of another place")),
        }
    }

    fn body_bytes_max(&self) -> usize {
        if *self == CopyBlock::Manifest { COPY_MANIFEST_BYTES_MAX } else { COPY_BLOCK_BYTES_MAX }
    }
}

fn checksum(header: &[u8; COPY_BLOCK_HEADER_BYTES], body: &[u8], copy_id: u128, position: u64) -> u64 {
    let place = xxh3_64_with_seed(&position.to_le_bytes(), xxh3_64_with_seed(&copy_id.to_le_bytes(), 0));
    xxh3_64_with_seed(body, xxh3_64_with_seed(&header[BLOCK_BYTES..], place))
}

/// The copy that another one goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseCopy {
    /// Its id.
    pub copy_id: u128,
    /// Its start of redo: what was changed before is in it.
    pub redo: Lsn,
}

/// A data set in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedDataSet {
    /// Its file id.
    pub file_id: u32,
    /// Page size on disk.
    pub page_bytes: u32,
    /// Pages in use.
    pub page_count: u32,
}

/// What a copy is a copy of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The copy that this one goes on from; `None`: it holds everything.
    pub base: Option<BaseCopy>,
    /// The state of the database that it opens with.
    pub control: ControlSlot,
    /// Redo starts here.
    pub redo: Lsn,
    /// From here on it has the log, which undo may need.
    pub log_start: Lsn,
    /// Up to here it has the log. Nothing in its pages is newer.
    pub log_end: Lsn,
    /// Length of a segment of the log; 0 when there is no log.
    pub segment_bytes: u64,
    /// When the copy was begun, in nanoseconds since 1970-01-01 UTC.
    pub begun_ns: u64,
    /// The latest time of a commit in its log; 0 when there is none.
    pub last_commit_ns: u64,
    /// All data sets that it makes, with those of its base.
    pub data_sets: Vec<CopiedDataSet>,
    /// Names of the tables that it has, in their order; none: the whole database. That of a partitioned table stands for all of its partitions.
    pub tables: Vec<String>,
}

impl Manifest {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.base.map_or(0, |base| base.copy_id).to_le_bytes());
        put_varint(out, self.base.map_or(0, |base| base.redo));
        out.extend_from_slice(&self.control.build());
        [self.redo, self.log_start, self.log_end, self.segment_bytes, self.begun_ns, self.last_commit_ns, self.data_sets.len() as u64]
            .into_iter()
            .for_each(|n| put_varint(out, n));
        for data_set in &self.data_sets {
            [data_set.file_id, data_set.page_bytes, data_set.page_count].into_iter().for_each(|n| put_varint(out, n.into()));
        }
        for name in &self.tables {
            put_varint(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
    }

    /// Reads the body.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, FormatError> {
        let mut reader = Reader::new(bytes);
        let (base, base_redo) = (reader.u128()?, reader.varint()?);
        let slot = reader.take(CONTROL_SLOT_BYTES)?;
        let sequence = get_u64(slot, 24);
        let control = match ControlSlot::parse(slot, ControlSlot::slot_number(sequence)) {
            SlotState::Valid(control) => control,
            SlotState::Damaged(error) => return Err(error),
            SlotState::Empty | SlotState::Newer(_) => return Err(FormatError::new("no state of a database")),
        };
        let mut manifest = Manifest {
            base: (base != 0).then_some(BaseCopy { copy_id: base, redo: base_redo }),
            control,
            redo: reader.varint()?,
            log_start: reader.varint()?,
            log_end: reader.varint()?,
            segment_bytes: reader.varint()?,
            begun_ns: reader.varint()?,
            last_commit_ns: reader.varint()?,
            data_sets: Vec::new(),
            tables: Vec::new(),
        };
        if !(manifest.log_start <= manifest.redo && manifest.redo <= manifest.log_end) {
            return Err(FormatError::new("the positions of its log are out of order"));
        }
        // Each takes three bytes at least, so a hostile count ends with the bytes.
        for _ in 0..reader.varint()? {
            let (file_id, page_bytes, page_count) = (reader.varint32()?, reader.varint32()?, reader.varint32()?);
            if !is_page_size(page_bytes as usize) {
                return Err(FormatError::new(format!("file {file_id:08x}: a page size of {page_bytes} bytes")));
            }
            manifest.data_sets.push(CopiedDataSet { file_id, page_bytes, page_count });
        }
        while !reader.is_empty() {
            let length = reader.varint()?;
            let name = usize::try_from(length).map_err(|_| FormatError::new(format!("a name of {length} bytes")))?;
            let name = std::str::from_utf8(reader.take(name)?).map_err(|_| FormatError::new("the name of a table is not UTF-8"))?;
            if name.is_empty() || manifest.tables.last().is_some_and(|last| last.as_str() >= name) {
                return Err(FormatError::new(format!("table \"{name}\" has no name, or does not come behind the one before it")));
            }
            manifest.tables.push(name.to_owned());
        }
        Ok(manifest)
    }

    /// Does it have the table of this name?
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        is_asked(&self.tables, name)
    }

    /// The data set with this file id.
    #[must_use]
    pub fn data_set(&self, file_id: u32) -> Option<&CopiedDataSet> {
        self.data_sets.iter().find(|data_set| data_set.file_id == file_id)
    }
}

/// Is the table of this name one of those that were asked for, or a partition of one? Where none were, all are.
#[must_use]
pub fn is_asked(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|asked| stands_for(asked, name))
}

/// Is the table of this name the one that was asked for, or a partition of it?
#[must_use]
pub fn stands_for(asked: &str, name: &str) -> bool {
    name.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            base: Some(BaseCopy { copy_id: 1 << 100, redo: 5000 }),
            control: ControlSlot {
                sequence: 9,
                database_id: 1 << 90,
                catalog_file_id: 5,
                catalog_writes: 1,
                next_file_id: 6,
                next_object_id: 9,
                checkpoint: 1 << 40,
                log_id: 3,
            },
            redo: 1 << 39,
            log_start: 1 << 38,
            log_end: 1 << 41,
            segment_bytes: 16 << 20,
            begun_ns: 1 << 60,
            last_commit_ns: 0,
            data_sets: vec![
                CopiedDataSet { file_id: 1, page_bytes: 4096, page_count: 2 },
                CopiedDataSet { file_id: u32::MAX, page_bytes: 2048, page_count: u32::MAX },
            ],
            tables: vec![],
        }
    }

    #[test]
    fn everything_comes_back() {
        for partial in [false, true] {
            let header = CopyHeader { copy_id: u128::MAX - 1, manifest: 64, length: 96, partial };
            assert_eq!(CopyHeader::parse(&header.build(), 96).unwrap(), header);
        }
        for block in [CopyBlock::Pages { file_id: 7, page_bytes: 2048, first: 9 }, CopyBlock::Log { start: 1 << 50 }, CopyBlock::Manifest] {
            let body = vec![3; 4096];
            let bytes = block.build(&body, 4, 64);
            assert_eq!(CopyBlock::parse(&bytes).unwrap(), (block, 4096));
            CopyBlock::check(&bytes, &body, 4, 64).unwrap();
            assert!(CopyBlock::check(&bytes, &body, 4, 65).is_err() && CopyBlock::check(&bytes, &body, 5, 64).is_err());
            assert!(CopyBlock::check(&bytes, &body[1..], 4, 64).is_err());
        }
        let (manifest, mut bytes) = (manifest(), Vec::new());
        manifest.encode(&mut bytes);
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
        assert_eq!(manifest.data_set(u32::MAX).unwrap().page_bytes, 2048);
        assert!((0..bytes.len()).all(|length| Manifest::decode(&bytes[..length]).is_err()));
    }

    #[test]
    fn a_copy_of_some_tables_names_them() {
        let some = Manifest { tables: vec!["orders".into(), "sales/q1".into()], ..manifest() };
        let (mut bytes, mut whole) = (Vec::new(), Vec::new());
        some.encode(&mut bytes);
        manifest().encode(&mut whole);
        assert_eq!(Manifest::decode(&bytes).unwrap(), some);
        for (name, has) in
            [("orders", true), ("orders/a", true), ("orders2", false), ("sales", false), ("sales/q1", true), ("sales/q10", false)]
        {
            assert_eq!((some.has_table(name), manifest().has_table(name)), (has, true), "{name}");
        }
        // Cut off it is another copy, or none: which of the two, the checksum of its block says.
        for length in whole.len() + 1..bytes.len() {
            assert!(
                Manifest::decode(&bytes[..length]).is_ok_and(|cut| cut.tables == ["orders"]) || Manifest::decode(&bytes[..length]).is_err()
            );
        }
        for names in [vec!["b", "a"], vec!["a", "a"], vec![""]] {
            let mut bytes = Vec::new();
            Manifest { tables: names.iter().map(ToString::to_string).collect(), ..manifest() }.encode(&mut bytes);
            assert!(Manifest::decode(&bytes).is_err(), "{names:?}");
        }
        let with = |tail: &[u8]| Manifest::decode(&[&whole, tail].concat());
        assert!(with(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'a']).is_err() && with(&[1, 0xFF]).is_err());
    }

    #[test]
    fn every_bit_flip_is_found() {
        let header = CopyHeader { copy_id: 5, manifest: 70, length: 200, partial: false };
        let mut bytes = header.build();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(CopyHeader::parse(&bytes, 200).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(CopyHeader::parse(&bytes, 199).is_err());
        assert!(CopyHeader::parse(&[0; COPY_HEADER_BYTES], 200).unwrap_err().to_string().contains("never finished"));
        let block = CopyBlock::Pages { file_id: 7, page_bytes: 2048, first: 9 };
        let mut body = vec![3; 2048];
        let mut bytes = block.build(&body, 4, 64);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(CopyBlock::check(&bytes, &body, 4, 64).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..body.len() * 8 {
            body[bit / 8] ^= 1 << (bit % 8);
            assert!(CopyBlock::check(&bytes, &body, 4, 64).is_err(), "bit {bit}");
            body[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn hostile_blocks_are_refused() {
        let valid = CopyBlock::Pages { file_id: 7, page_bytes: 2048, first: 9 }.build(&[3; 2048], 4, 64);
        let with = |at: usize, bytes: &[u8]| {
            let mut header = valid;
            header[at..at + bytes.len()].copy_from_slice(bytes);
            CopyBlock::parse(&header)
        };
        assert!(with(BLOCK_BYTES, &u32::MAX.to_le_bytes()).is_err());
        assert!(with(BLOCK_BYTES, &0u32.to_le_bytes()).is_err());
        assert!(with(BLOCK_BYTES, &(2u32 << 20).to_le_bytes()).is_err());
        assert!(with(BLOCK_PAGE_BYTES, &0u32.to_le_bytes()).is_err());
        assert!(with(BLOCK_START, &u64::from(u32::MAX).to_le_bytes()).is_err());
        assert!(with(BLOCK_START, &u64::MAX.to_le_bytes()).is_err());
        assert!(with(BLOCK_KIND, &[4]).is_err() && with(BLOCK_KIND + 1, &[1]).is_err());
        // A manifest that claims more data sets than it has bytes.
        let mut bytes = Vec::new();
        Manifest { data_sets: vec![], ..manifest() }.encode(&mut bytes);
        bytes.pop();
        put_varint(&mut bytes, u64::MAX);
        assert!(Manifest::decode(&bytes).is_err());
    }
}
