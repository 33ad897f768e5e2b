//! Files and locks on a simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use super::call::CallKind;
use super::disk::FileChange;
use super::error::simulated_crash;
use super::plan::{Failure, Fault};
use super::storage::FaultStorage;
use crate::error::{error_at, error_on};
use crate::range::{check_alignment, check_len, check_writable, range_end};
use crate::storage::{File, Lock};

#[derive(Debug)]
pub(super) struct FaultLock {
    pub(super) storage: FaultStorage,
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

impl Lock for FaultLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.storage.unlock(self.number);
        self.storage.close_inode(self.number);
    }
}

#[derive(Debug)]
pub(super) struct FaultFile {
    pub(super) storage: FaultStorage,
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
    pub(super) alignment: usize,
}

impl Drop for FaultFile {
    fn drop(&mut self) {
        self.storage.close_inode(self.number);
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    if !bytes.is_empty() {
        let bit = bit % (bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl FaultFile {
    /// A call that changes content or length.
    fn change(&self, kind: CallKind, offset: u64, len: u64, change: FileChange) -> io::Result<()> {
        let (mut disk, fault) = self.storage.begin(kind, &self.path, offset, len)?;
        let crash = fault == Some(Fault::Crash);
        let changed = disk.change_file(self.number, change, crash);
        if crash { Err(simulated_crash()) } else { changed }
    }

    fn write(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let (mut disk, fault) = self.storage.begin(CallKind::Write, &self.path, offset, buf.len() as u64)?;
        let mut write = |offset: u64, bytes: &[u8], in_flight: bool| {
            disk.change_file(self.number, FileChange::Write { offset, data: bytes.into() }, in_flight)
        };
        match fault {
            Some(Fault::Crash) => {
                // Whether there would have been space does not matter any more.
                write(offset, buf, true).and(Err(simulated_crash())).map_err(|_| simulated_crash())
            }
            Some(Fault::ShortWrite(written, failure)) => {
                write(offset, &buf[..written.min(buf.len())], false)?;
                Err(failure.error())
            }
            Some(Fault::LoseWrite) => Ok(()),
            Some(Fault::MisdirectWrite(elsewhere)) => {
                range_end("write", &self.path, elsewhere, buf.len() as u64)?;
                write(elsewhere, buf, false)
            }
            Some(Fault::FlipBit(bit)) => {
                let mut bytes = buf.to_vec();
                flip(&mut bytes, bit);
                write(offset, &bytes, false)
            }
            _ => write(offset, buf, false),
        }
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut disk, fault) = self.storage.begin(CallKind::Read, &self.path, offset, buf.len() as u64)?;
        let wanted = match fault {
            Some(Fault::Crash) => return Err(simulated_crash()),
            Some(Fault::ShortRead(len)) => len.min(buf.len()),
            _ => buf.len(),
        };
        let read = disk.inode(self.number)?.current.read(&mut buf[..wanted], offset);
        if let Some(Fault::FlipBit(bit)) = fault {
            flip(&mut buf[..read], bit);
        }
        Ok(read)
    }

    fn sync_content(&self) -> io::Result<()> {
        let (mut disk, fault) = self.storage.begin(CallKind::Sync, &self.path, 0, 0)?;
        match fault {
            Some(Fault::Crash) => Err(simulated_crash()),
            Some(Fault::LoseSync) => Ok(()),
            Some(Fault::SyncDropsWrites | Fault::SyncDropsWritesFromDiskOnly) => {
                disk.drop_pending(self.number, fault == Some(Fault::SyncDropsWritesFromDiskOnly))?;
                Err(Failure::Io.error())
            }
            _ => disk.sync_file(self.number),
        }
    }
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        range_end("read", &self.path, offset, buf.len() as u64)?;
        self.read(buf, offset).map_err(|error| error_at("read", &self.path, offset, error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        check_writable("write", &self.path, self.writable)?;
        range_end("write", &self.path, offset, buf.len() as u64)?;
        check_alignment(&self.path, offset, buf.len(), self.alignment)?;
        self.write(buf, offset).map_err(|error| error_at("write", &self.path, offset, error))
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_content().map_err(|error| error_on("sync", &self.path, error))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable("set length of", &self.path, self.writable)?;
        check_len(&self.path, len)?;
        self.change(CallKind::SetLen, len, 0, FileChange::SetLen(len)).map_err(|error| error_on("set length of", &self.path, error))
    }

    fn len(&self) -> io::Result<u64> {
        let len = || Ok(self.storage.look()?.inode(self.number)?.current.len());
        len().map_err(|error| error_on("inspect", &self.path, error))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("allocate", &self.path, self.writable)?;
        range_end("allocate", &self.path, offset, len)?;
        let allocated = self.change(CallKind::Allocate, offset, len, FileChange::Allocate { offset, len });
        allocated.map_err(|error| error_at("allocate", &self.path, offset, error))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        check_writable("punch hole", &self.path, self.writable)?;
        range_end("punch hole", &self.path, offset, len)?;
        let punched = self.change(CallKind::PunchHole, offset, len, FileChange::PunchHole { offset, len });
        punched.map_err(|error| error_at("punch hole", &self.path, offset, error))
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
