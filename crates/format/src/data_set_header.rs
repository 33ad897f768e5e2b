//! Header page of a data set: page 0.
//!
//! Layout: `docs/file-format.md`, "Header page".

use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType, is_page_size};
use crate::wire::Reader;

/// Format version of header pages.
pub const DATA_SET_HEADER_VERSION: u8 = 1;

/// At most so many dictionary versions live at once in a data set.
pub const DICTIONARIES_MAX: usize = 8;

const MAGIC: &[u8; 8] = b"pagefold";

/// What a data set belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// The catalog.
    Catalog = 1,
    /// A table space partition.
    Table = 2,
    /// An index partition.
    Index = 3,
}

/// Where a dictionary lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryRoot {
    /// Its version, from 1.
    pub version: u16,
    /// First page of its chain.
    pub first_page: u32,
    /// Length of its serial form.
    pub bytes: u32,
}

/// The contents of a header page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSetHeader {
    /// The data set's own file id.
    pub file_id: u32,
    /// Table or index it belongs to.
    pub object_id: u32,
    /// What that is.
    pub kind: ObjectKind,
    /// Partition number.
    pub partition: u16,
    /// Page size on disk.
    pub page_bytes: u32,
    /// Size of leaf pages in memory; differs from `page_bytes` in folded indexes only.
    pub leaf_bytes: u32,
    /// Pages in use: all pages at or above this number were never written.
    pub page_count: u32,
    /// Pages that hold rows, or leaf pages.
    pub data_pages: u32,
    /// Rows, or RIDs of an index.
    pub rows: u64,
    /// Root page of an index; 0 when it is empty.
    pub root_page: u32,
    /// Levels of an index; 0 when it is empty.
    pub levels: u16,
    /// Distinct keys of an index.
    pub keys: u64,
    /// Sum of the write counters of all space-map pages: a lost write of one of them is noticed.
    pub space_map_writes: u64,
    /// Dictionaries.
    pub dictionaries: Vec<DictionaryRoot>,
}

impl DataSetHeader {
    /// Writes the page image.
    ///
    /// # Panics
    /// When there are more than [`DICTIONARIES_MAX`] dictionaries.
    pub fn build(&self, page: &mut [u8]) {
        assert!(self.dictionaries.len() <= DICTIONARIES_MAX);
        page.fill(0);
        page::init_header(page, 0, PageType::Header, DATA_SET_HEADER_VERSION);
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.file_id.to_le_bytes());
        out.extend_from_slice(&self.object_id.to_le_bytes());
        out.push(self.kind as u8);
        out.push(self.dictionaries.len() as u8);
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.extend_from_slice(&self.page_bytes.to_le_bytes());
        out.extend_from_slice(&self.leaf_bytes.to_le_bytes());
        out.extend_from_slice(&self.page_count.to_le_bytes());
        out.extend_from_slice(&self.data_pages.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.root_page.to_le_bytes());
        out.extend_from_slice(&self.levels.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.keys.to_le_bytes());
        out.extend_from_slice(&self.space_map_writes.to_le_bytes());
        for dictionary in &self.dictionaries {
            out.extend_from_slice(&dictionary.version.to_le_bytes());
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&dictionary.first_page.to_le_bytes());
            out.extend_from_slice(&dictionary.bytes.to_le_bytes());
        }
        page[HEADER_BYTES..HEADER_BYTES + out.len()].copy_from_slice(&out);
        page::set_low_end(page, (HEADER_BYTES + out.len()) as u16);
    }

    /// Reads a header page that has passed [`page::verify`].
    ///
    /// # Errors
    /// When it is not one, is of a newer version, or a field is out of range.
    pub fn parse(page: &[u8]) -> Result<DataSetHeader, FormatError> {
        if page::page_type(page) != Some(PageType::Header) {
            return Err(FormatError::new("not a header page"));
        }
        let version = page::page_version(page);
        if version != DATA_SET_HEADER_VERSION {
            return Err(FormatError::new(format!("data set header version {version}, this program knows {DATA_SET_HEADER_VERSION}")));
        }
        let mut reader = Reader::new(&page[HEADER_BYTES..]);
        if reader.take(8)? != MAGIC {
            return Err(FormatError::new("not a pagefold data set"));
        }
        let file_id = reader.u32()?;
        let object_id = reader.u32()?;
        let kind = match reader.u8()? {
            1 => ObjectKind::Catalog,
            2 => ObjectKind::Table,
            3 => ObjectKind::Index,
            other => return Err(FormatError::new(format!("unknown kind of data set {other}"))),
        };
        let dictionary_count = usize::from(reader.u8()?);
        let partition = reader.u16()?;
        let page_bytes = reader.u32()?;
        let leaf_bytes = reader.u32()?;
        if !is_page_size(page_bytes as usize) || !is_page_size(leaf_bytes as usize) {
            return Err(FormatError::new(format!("page size {page_bytes}, leaf size {leaf_bytes}")));
        }
        let page_count = reader.u32()?;
        let data_pages = reader.u32()?;
        let rows = reader.u64()?;
        let root_page = reader.u32()?;
        let levels = reader.u16()?;
        reader.take(2)?;
        let keys = reader.u64()?;
        let space_map_writes = reader.u64()?;
        if dictionary_count > DICTIONARIES_MAX {
            return Err(FormatError::new(format!("{dictionary_count} dictionaries, at most {DICTIONARIES_MAX} can be")));
        }
        let mut dictionaries = Vec::with_capacity(dictionary_count);
        for _ in 0..dictionary_count {
            let version = reader.u16()?;
            reader.take(2)?;
            dictionaries.push(DictionaryRoot { version, first_page: reader.u32()?, bytes: reader.u32()? });
        }
        Ok(DataSetHeader {
            file_id,
            object_id,
            kind,
            partition,
            page_bytes,
            leaf_bytes,
            page_count,
            data_pages,
            rows,
            root_page,
            levels,
            keys,
            space_map_writes,
            dictionaries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        let header = DataSetHeader {
            file_id: 3,
            object_id: 9,
            kind: ObjectKind::Index,
            partition: 2,
            page_bytes: 4096,
            leaf_bytes: 16384,
            page_count: 100,
            data_pages: 80,
            rows: 1 << 40,
            root_page: 4,
            levels: 3,
            keys: 55,
            space_map_writes: 12,
            dictionaries: (1..=DICTIONARIES_MAX as u16).map(|v| DictionaryRoot { version: v, first_page: 7, bytes: 60_000 }).collect(),
        };
        let mut page = vec![0xFF; 2048];
        header.build(&mut page);
        assert_eq!(DataSetHeader::parse(&page).unwrap(), header);
        let used = usize::from(page::low_end(&page));
        for at in 24..used {
            let mut bad = page.clone();
            bad[at] ^= 0xFF;
            let _ = DataSetHeader::parse(&bad);
        }
        page[HEADER_BYTES] = b'x';
        assert!(DataSetHeader::parse(&page).is_err());
    }
}
