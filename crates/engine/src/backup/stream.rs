//! A copy as one file: written, and read back.
//!
//! Layout: `docs/file-format.md`, "Copy".
//!
//! Invariants:
//! - a copy gets its name when it is complete and durable; until then it is `<name>.partial`, and its header is zeros;
//! - what a reader hands out is whole: blocks by their checksums, pages by theirs as well, and the blocks follow each other without a gap up to the manifest.

use super::take::{LogName, Sink};
use crate::{Error, Progress, Result};
use pagefold_format::FormatError;
use pagefold_format::copy::{COPY_BLOCK_BYTES_MAX, COPY_BLOCK_HEADER_BYTES, COPY_HEADER_BYTES, CopyBlock, CopyHeader, Manifest};
use pagefold_format::log::Lsn;
use pagefold_format::page::{self, PageIdentity};
use pagefold_io::{File, OpenOptions, Storage, parent_directory, read_exact_at};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many damaged blocks are told of.
const ERRORS_MAX: usize = 1000;

/// The name of something that is being made.
pub(super) fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Refuses to make what is there.
pub(super) fn check_absent(storage: &dyn Storage, kind: &'static str, path: &Path) -> Result<()> {
    match storage.exists(path)? {
        true => Err(Error::Exists { kind, name: path.display().to_string() }),
        false => Ok(()),
    }
}

/// Writes a copy.
#[derive(Debug)]
pub(super) struct CopyWriter {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Arc<dyn File>,
    copy_id: u128,
    position: u64,
    finished: bool,
}

impl CopyWriter {
    pub(super) fn create(storage: Arc<dyn Storage>, path: &Path, copy_id: u128) -> Result<CopyWriter> {
        check_absent(storage.as_ref(), "file", path)?;
        let partial = partial_path(path);
        if storage.exists(&partial)? {
            storage.remove(&partial)?;
        }
        let file = storage.open(&partial, &OpenOptions::create_new())?;
        let mut writer = CopyWriter { storage, path: path.to_path_buf(), file, copy_id, position: 0, finished: false };
        writer.write(&[0; COPY_HEADER_BYTES])?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn block(&mut self, block: CopyBlock, body: &[u8]) -> Result<()> {
        self.write(&block.build(body, self.copy_id, self.position))?;
        self.write(body)
    }

    /// Ends the copy; its length in bytes.
    pub(super) fn finish(mut self, manifest: &Manifest) -> Result<u64> {
        let at = self.position;
        let mut body = Vec::new();
        manifest.encode(&mut body);
        self.block(CopyBlock::Manifest, &body)?;
        // What the header vouches for is durable before it is there.
        self.file.sync()?;
        let header = CopyHeader { copy_id: self.copy_id, manifest: at, length: self.position, partial: !manifest.tables.is_empty() };
        self.file.write_at(&header.build(), 0)?;
        self.file.sync()?;
        check_absent(self.storage.as_ref(), "file", &self.path)?;
        self.storage.rename(&partial_path(&self.path), &self.path)?;
        self.finished = true;
        self.storage.sync_directory(parent_directory(&self.path))?;
        Ok(self.position)
    }
}

impl Sink for CopyWriter {
    fn pages(&mut self, file_id: u32, page_bytes: u32, first: u32, pages: &[u8]) -> Result<()> {
        let room = COPY_BLOCK_BYTES_MAX / page_bytes as usize;
        for (number, part) in (first..).step_by(room).zip(pages.chunks(room * page_bytes as usize)) {
            self.block(CopyBlock::Pages { file_id, page_bytes, first: number }, part)?;
        }
        Ok(())
    }

    fn log(&mut self, _log: LogName, start: Lsn, bytes: &[u8]) -> Result<()> {
        for (at, part) in (start..).step_by(COPY_BLOCK_BYTES_MAX).zip(bytes.chunks(COPY_BLOCK_BYTES_MAX)) {
            self.block(CopyBlock::Log { start: at }, part)?;
        }
        Ok(())
    }
}

impl Drop for CopyWriter {
    fn drop(&mut self) {
        if !self.finished {
            // What stays is known by its name for what it is.
            let _ = self.storage.remove(&partial_path(&self.path));
        }
    }
}

/// Reads a copy.
#[derive(Debug)]
pub struct CopyReader {
    file: Arc<dyn File>,
    path: PathBuf,
    header: CopyHeader,
    manifest: Manifest,
    position: u64,
    body: Vec<u8>,
}

/// A block of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    /// Pages of a data set.
    Pages { file_id: u32, page_bytes: u32, first: u32, pages: &'a [u8] },
    /// Bytes of the log.
    Log { start: Lsn, bytes: &'a [u8] },
}

impl CopyReader {
    /// Opens a copy and reads its manifest.
    ///
    /// # Errors
    /// When it is none, was never finished, is damaged or of a newer format.
    pub fn open(storage: &dyn Storage, path: &Path) -> Result<CopyReader> {
        let damaged = |e: FormatError| Error::Damaged { path: path.display().to_string(), reason: e.to_string() };
        let file = storage.open(path, &OpenOptions::read_only())?;
        let length = file.len()?;
        let mut bytes = [0; COPY_HEADER_BYTES];
        if length < COPY_HEADER_BYTES as u64 {
            return Err(damaged(FormatError::new(format!("{length} bytes long: no copy of a database"))));
        }
        read_exact_at(file.as_ref(), &mut bytes, 0)?;
        let header = CopyHeader::parse(&bytes, length).map_err(damaged)?;
        let mut body = Vec::new();
        let (block, end) = read_block(file.as_ref(), path, &header, header.manifest, &mut body)?;
        if block != CopyBlock::Manifest || end != header.length {
            return Err(damaged(FormatError::new("it does not end with its manifest")));
        }
        let manifest = Manifest::decode(&body).map_err(damaged)?;
        if header.partial == manifest.tables.is_empty() {
            return Err(damaged(FormatError::new("header and manifest contradict each other: is it a copy of some tables?")));
        }
        Ok(CopyReader { file, path: path.to_path_buf(), header, manifest, position: COPY_HEADER_BYTES as u64, body })
    }

    /// Its id.
    #[must_use]
    pub fn copy_id(&self) -> u128 {
        self.header.copy_id
    }

    /// What it is a copy of.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.header.length
    }

    /// Where the body of the next block begins.
    #[cfg(test)]
    pub(super) fn position(&self) -> u64 {
        self.position + COPY_BLOCK_HEADER_BYTES as u64
    }

    /// An error about the copy.
    pub(super) fn damaged(&self, reason: impl ToString) -> Error {
        Error::Damaged { path: self.path.display().to_string(), reason: reason.to_string() }
    }

    /// Reads all parts; the bytes of pages and log. For fuzzers: what reads a copy looks at each part itself.
    ///
    /// # Errors
    /// When the copy is damaged; those of the device.
    #[doc(hidden)]
    pub fn read_through(&mut self) -> Result<u64> {
        let mut bytes = 0;
        while let Some(part) = self.next()? {
            bytes += match part {
                Part::Pages { pages, .. } => pages.len(),
                Part::Log { bytes, .. } => bytes.len(),
            } as u64;
        }
        Ok(bytes)
    }

    /// What the next block is, how long its body is, and where that begins; `None` behind the last. Its checksum is not looked at.
    pub(super) fn peek(&self) -> Result<Option<(CopyBlock, usize, u64)>> {
        if self.position == self.header.manifest {
            return Ok(None);
        }
        let at = |e: FormatError| self.damaged(format!("the block at {}: {e}", self.position));
        let body = self.position.saturating_add(COPY_BLOCK_HEADER_BYTES as u64);
        if body > self.header.manifest {
            return Err(at(FormatError::new("it reaches into the manifest")));
        }
        let mut header = [0; COPY_BLOCK_HEADER_BYTES];
        read_exact_at(self.file.as_ref(), &mut header, self.position)?;
        let (block, bytes) = CopyBlock::parse(&header).map_err(at)?;
        match block {
            CopyBlock::Manifest => Err(at(FormatError::new("a second manifest"))),
            _ if bytes as u64 > self.header.manifest - body => Err(at(FormatError::new("it reaches into the manifest"))),
            block => Ok(Some((block, bytes, body))),
        }
    }

    /// Goes on behind a block that was looked at.
    pub(super) fn pass(&mut self, (_, bytes, body): (CopyBlock, usize, u64)) {
        self.position = body + bytes as u64;
    }

    /// Where it is.
    pub(super) fn begin(&self) -> u64 {
        self.position
    }

    /// Goes back to where it was.
    pub(super) fn go_to(&mut self, position: u64) {
        self.position = position;
    }

    /// The file, open.
    pub(super) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Looks at every block: what is wrong with each, as far as they can be told apart. Behind one whose length cannot be believed nothing is found.
    ///
    /// # Errors
    /// Those of the device; when the user wants to stop.
    pub fn check_blocks(&mut self, progress: &dyn Progress) -> Result<Vec<Error>> {
        let mut found = Vec::new();
        loop {
            let block = match self.peek() {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(found),
                Err(error @ Error::Damaged { .. }) => {
                    found.push(error);
                    return Ok(found);
                }
                Err(error) => return Err(error),
            };
            match self.next() {
                Ok(_) => {}
                Err(error @ (Error::Damaged { .. } | Error::Corrupt { .. })) if found.len() < ERRORS_MAX => found.push(error),
                Err(Error::Damaged { .. } | Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
            self.pass(block);
            progress.advance(block.1 as u64);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// The next part, in the order in which it was written; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Part<'_>>> {
        if self.position == self.header.manifest {
            return Ok(None);
        }
        let (block, end) = read_block(self.file.as_ref(), &self.path, &self.header, self.position, &mut self.body)
            .map_err(|error| self.name_the_page(error))?;
        if end > self.header.manifest {
            return Err(self.damaged(format!("the block at {} reaches into the manifest", self.position)));
        }
        self.position = end;
        match block {
            CopyBlock::Pages { file_id, page_bytes, first } => {
                self.check_pages(file_id, page_bytes, first)?;
                Ok(Some(Part::Pages { file_id, page_bytes, first, pages: &self.body }))
            }
            CopyBlock::Log { start } => Ok(Some(Part::Log { start, bytes: &self.body })),
            CopyBlock::Manifest => Err(self.damaged(format!("a second manifest at {}", self.position))),
        }
    }

    fn check_pages(&self, file_id: u32, page_bytes: u32, first: u32) -> Result<()> {
        let database_id = self.manifest.control.database_id;
        for (page_number, page) in (first..).zip(self.body.chunks_exact(page_bytes as usize)) {
            page::verify(page, &PageIdentity { database_id, file_id, page_number })
                .map_err(|e| Error::corrupt(format!("{}, data set {file_id:08x}", self.path.display()), page_number, e))?;
        }
        Ok(())
    }

    /// The block at hand is damaged: which page is it?
    fn name_the_page(&self, error: Error) -> Error {
        let mut header = [0; COPY_BLOCK_HEADER_BYTES];
        if !matches!(error, Error::Damaged { .. }) || read_exact_at(self.file.as_ref(), &mut header, self.position).is_err() {
            return error;
        }
        match CopyBlock::parse(&header) {
            Ok((CopyBlock::Pages { file_id, page_bytes, first }, bytes)) if bytes == self.body.len() => {
                self.check_pages(file_id, page_bytes, first).err().unwrap_or(error)
            }
            _ => error,
        }
    }
}

/// Reads the block at a position into `body`; also where it ends.
fn read_block(file: &dyn File, path: &Path, copy: &CopyHeader, position: u64, body: &mut Vec<u8>) -> Result<(CopyBlock, u64)> {
    let damaged = |e: FormatError| Error::Damaged { path: path.display().to_string(), reason: format!("the block at {position}: {e}") };
    let left = copy.length.saturating_sub(position);
    let mut header = [0; COPY_BLOCK_HEADER_BYTES];
    let Some(left) = left.checked_sub(header.len() as u64) else { return Err(damaged(FormatError::new("the file ends in it"))) };
    read_exact_at(file, &mut header, position)?;
    let (block, bytes) = CopyBlock::parse(&header).map_err(damaged)?;
    if bytes as u64 > left {
        return Err(damaged(FormatError::new("the file ends in it")));
    }
    body.resize(bytes, 0);
    let start = position + header.len() as u64;
    read_exact_at(file, body, start)?;
    CopyBlock::check(&header, body, copy.copy_id, position).map_err(damaged)?;
    Ok((block, start + bytes as u64))
}
