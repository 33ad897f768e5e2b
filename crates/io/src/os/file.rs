//! An operating system file: whole reads and writes, direct where possible.
//!
//! `alignment` may fall to 1 while the file is open (a file system may accept direct I/O on open and refuse it on the first read or
//! write); it never rises.

use std::fs::File as StdFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::buffer::AlignedBuffer;
use crate::error::{error_at, error_on};
use crate::os::direct::{self, Alignment};
use crate::range::{check_alignment, check_len, check_writable, range_end};
use crate::storage::File;

/// The most that goes through a bounce buffer, or is written as zeros, at a time.
const PIECE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct OsFile {
    file: StdFile,
    path: PathBuf,
    writable: bool,
    offset_alignment: AtomicU32,
    memory_alignment: AtomicU32,
}

impl OsFile {
    pub(super) fn new(file: StdFile, path: PathBuf, writable: bool, alignment: Alignment) -> Self {
        let offset_alignment = AtomicU32::new(alignment.offset);
        Self { file, path, writable, offset_alignment, memory_alignment: AtomicU32::new(alignment.memory) }
    }

    fn offset_alignment(&self) -> usize {
        self.offset_alignment.load(Ordering::Relaxed) as usize
    }

    fn memory_alignment(&self) -> usize {
        self.memory_alignment.load(Ordering::Relaxed) as usize
    }

    /// After a refusal of an aligned request: the file system cannot do direct I/O after all.
    fn fall_back_to_buffered(&self, refusal: io::Error) -> io::Result<()> {
        if refusal.raw_os_error() != Some(Errno::INVAL.raw_os_error()) || self.offset_alignment() == 1 {
            return Err(refusal);
        }
        direct::set_direct(&self.file, false)?;
        self.offset_alignment.store(1, Ordering::Relaxed);
        self.memory_alignment.store(1, Ordering::Relaxed);
        Ok(())
    }

    fn memory_is_aligned(&self, buf: &[u8]) -> bool {
        buf.as_ptr().addr() & (self.memory_alignment() - 1) == 0
    }

    fn is_aligned(&self, buf: &[u8], offset: u64) -> bool {
        (offset | buf.len() as u64) & (self.offset_alignment() as u64 - 1) == 0 && self.memory_is_aligned(buf)
    }

    /// Reads until the buffer is full or the file ends.
    fn read_aligned(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => {
                    done += read;
                    // Inside a block only the end of the file stops a direct read, and from there nothing more could be asked for.
                    if done & (self.offset_alignment() - 1) != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.fall_back_to_buffered(error)?,
            }
        }
        Ok(done)
    }

    fn read_bounced(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let alignment = self.alignment();
        let mask = alignment as u64 - 1;
        let mut bounce = AlignedBuffer::new((buf.len() + 2 * alignment).next_multiple_of(alignment).min(PIECE_BYTES), alignment);
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let skip = (at & mask) as usize;
            let wanted = (buf.len() - done + skip).next_multiple_of(alignment).min(bounce.len());
            let read = self.read_aligned(&mut bounce[..wanted], at & !mask)?;
            let take = read.saturating_sub(skip).min(buf.len() - done);
            buf[done..done + take].copy_from_slice(&bounce[skip..skip + take]);
            done += take;
            if read < wanted {
                break;
            }
        }
        Ok(done)
    }

    fn write_aligned(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.write_at(&buf[done..], offset + done as u64) {
                Ok(written) => {
                    // A direct write cut short inside a block goes on from the block's start.
                    let whole = (done + written) & !(self.offset_alignment() - 1);
                    let progress = if done + written == buf.len() { buf.len() } else { whole };
                    if progress <= done {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    done = progress;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.fall_back_to_buffered(error)?,
            }
        }
        Ok(())
    }

    fn write_bounced(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let alignment = self.alignment();
        let mut bounce = AlignedBuffer::new(buf.len().min(PIECE_BYTES), alignment);
        for (index, piece) in buf.chunks(PIECE_BYTES).enumerate() {
            bounce[..piece.len()].copy_from_slice(piece);
            self.write_aligned(&bounce[..piece.len()], offset + (index * PIECE_BYTES) as u64)?;
        }
        Ok(())
    }

    fn write_zeros(&self, mut from: u64, to: u64) -> io::Result<()> {
        let alignment = self.alignment();
        if (from | to) & (alignment as u64 - 1) != 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, format!("not supported here but in multiples of {alignment} bytes")));
        }
        let zeros = AlignedBuffer::new(PIECE_BYTES.min(usize::try_from(to - from).unwrap_or(PIECE_BYTES)), alignment);
        while from < to {
            let piece = usize::try_from(to - from).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            self.write_aligned(&zeros[..piece], from)?;
            from += piece as u64;
        }
        Ok(())
    }

    fn allocate_range(&self, offset: u64, len: u64) -> io::Result<()> {
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), offset, len) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                other => return Ok(other?),
            }
        }
        self.allocate_by_writing(offset + len)
    }

    fn allocate_by_writing(&self, end: u64) -> io::Result<()> {
        // Without the system call only what lies beyond the end can be reserved safely: overwriting a hole could race with a write.
        let current = self.file.metadata()?.len();
        if end <= current {
            return Ok(());
        }
        let alignment = self.alignment() as u64;
        let (zeros_from, zeros_to) = (current.next_multiple_of(alignment), end & !(alignment - 1));
        if zeros_from < zeros_to {
            self.write_zeros(zeros_from, zeros_to)?;
        }
        if end > zeros_to { self.file.set_len(end) } else { Ok(()) }
    }

    fn punch_range(&self, offset: u64, end: u64) -> io::Result<()> {
        loop {
            match fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, end - offset) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                other => return Ok(other?),
            }
        }
        self.punch_by_writing(offset, end)
    }

    fn punch_by_writing(&self, offset: u64, end: u64) -> io::Result<()> {
        // The space stays taken then, but the range must read as zeros.
        let end = end.min(self.file.metadata()?.len());
        if offset < end { self.write_zeros(offset, end) } else { Ok(()) }
    }
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        range_end("read", &self.path, offset, buf.len() as u64)?;
        let read = if self.is_aligned(buf, offset) { self.read_aligned(buf, offset) } else { self.read_bounced(buf, offset) };
        read.map_err(|error| error_at("read", &self.path, offset, error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        check_writable("write", &self.path, self.writable)?;
        range_end("write", &self.path, offset, buf.len() as u64)?;
        check_alignment(&self.path, offset, buf.len(), self.offset_alignment())?;
        let written = if self.memory_is_aligned(buf) { self.write_aligned(buf, offset) } else { self.write_bounced(buf, offset) };
        written.map_err(|error| error_at("write", &self.path, offset, error))
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: everything that reading the data needs, hence the length, but no time stamps.
        self.file.sync_data().map_err(|error| error_on("sync", &self.path, error))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable("set length of", &self.path, self.writable)?;
        check_len(&self.path, len)?;
        self.file.set_len(len).map_err(|error| error_on("set length of", &self.path, error))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata().map_err(|error| error_on("inspect", &self.path, error))?.len())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("allocate", &self.path, self.writable)?;
        range_end("allocate", &self.path, offset, len)?;
        if len == 0 {
            return Ok(());
        }
        self.allocate_range(offset, len).map_err(|error| error_at("allocate", &self.path, offset, error))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("punch hole", &self.path, self.writable)?;
        let end = range_end("punch hole", &self.path, offset, len)?;
        if len == 0 {
            return Ok(());
        }
        self.punch_range(offset, end).map_err(|error| error_at("punch hole", &self.path, offset, error))
    }

    fn alignment(&self) -> usize {
        self.offset_alignment().max(self.memory_alignment())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(directory: &tempfile::TempDir, direct: bool) -> OsFile {
        let path = directory.path().join("a");
        let file = StdFile::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let alignment = if direct { direct::enable(&file) } else { direct::NONE };
        OsFile::new(file, path, true, alignment)
    }

    fn content(file: &OsFile) -> Vec<u8> {
        let mut content = vec![0; file.len().unwrap() as usize + 1];
        let read = file.read_at(&mut content, 0).unwrap();
        content.truncate(read);
        content
    }

    #[test]
    fn a_refused_direct_request_falls_back_to_buffered() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(&directory, true);
        if file.alignment() == 1 {
            return;
        }
        // As on a file system that promises more than it keeps.
        file.offset_alignment.store(2, Ordering::Relaxed);
        file.memory_alignment.store(1, Ordering::Relaxed);
        file.write_at(b"abcd", 2).unwrap();
        assert_eq!((file.alignment(), content(&file)), (1, b"\0\0abcd".to_vec()));
    }

    #[test]
    fn allocation_without_the_system_call_writes_beyond_the_end_only() {
        for direct in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let file = file(&directory, direct);
            file.write_at(&[7; 4096], 0).unwrap();
            file.set_len(5000).unwrap();
            for (end, len) in [(3000, 5000), (5001, 5001), (3_000_000, 3_000_000), (3_000_001, 3_000_001)] {
                file.allocate_by_writing(end).unwrap();
                assert_eq!(file.len().unwrap(), len);
            }
            let content = content(&file);
            assert!(content[..4096] == [7; 4096] && content[4096..].iter().all(|&byte| byte == 0));
            if !direct {
                use std::os::unix::fs::MetadataExt;
                file.sync().unwrap();
                assert!(file.file.metadata().unwrap().blocks() * 512 > 2_900_000, "the blocks are there");
            }
        }
    }

    #[test]
    fn a_hole_without_the_system_call_is_zeros() {
        let directory = tempfile::tempdir().unwrap();
        let buffered = file(&directory, false);
        buffered.write_at(&[7; 10_000], 0).unwrap();
        buffered.punch_by_writing(100, 200).unwrap();
        buffered.punch_by_writing(9000, 1 << 40).unwrap();
        buffered.punch_by_writing(1 << 30, 1 << 40).unwrap();
        let mut expected = vec![7; 10_000];
        expected[100..200].fill(0);
        expected[9000..].fill(0);
        assert!(content(&buffered) == expected);
        let direct = file(&directory, true);
        direct.write_at(&[7; 8192], 0).unwrap();
        direct.punch_by_writing(4096, 8192).unwrap();
        assert!(content(&direct) == [vec![7; 4096], vec![0; 4096]].concat());
        if direct.alignment() > 1 {
            assert_eq!(direct.punch_by_writing(1, 4096).unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }
}
