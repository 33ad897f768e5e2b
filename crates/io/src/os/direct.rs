//! Whether a file can be read and written past the operating system's cache, and at what alignment.
//!
//! Linux 6.1 and later say so (`STATX_DIOALIGN`). Where they do not, a read at 512 bytes is tried; on a file too short for that, 4096 is
//! taken, which every 512-byte device accepts too.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, fstatfs, statx};

use crate::buffer::AlignedBuffer;

/// Files that live in memory: there is no cache to go past.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// What the device asks of direct I/O, in bytes. Powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Of offsets and lengths.
    pub(super) offset: u32,
    /// Of memory addresses.
    pub(super) memory: u32,
}

/// Buffered I/O.
pub(super) const NONE: Alignment = Alignment { offset: 1, memory: 1 };

/// Switches direct I/O on where it works. Never an error: a refusal means buffered.
pub(super) fn enable(file: &File) -> Alignment {
    let reported = reported(file);
    if reported == Some(NONE) || set_direct(file, true).is_err() {
        return NONE;
    }
    reported.unwrap_or_else(|| probed(file))
}

/// Switches direct I/O on or off.
pub(super) fn set_direct(file: &File, on: bool) -> rustix::io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, on);
    fcntl_setfl(file, flags)
}

fn reported(file: &File) -> Option<Alignment> {
    if let Ok(system) = fstatfs(file)
        && [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(system.f_type as u64))
    {
        return Some(NONE);
    }
    let status = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if !StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN) {
        return None;
    }
    let (offset, memory) = (status.stx_dio_offset_align, status.stx_dio_mem_align);
    let plausible = |alignment: u32| alignment.is_power_of_two() && alignment <= 1 << 16;
    Some(if plausible(offset) && plausible(memory) { Alignment { offset, memory } } else { NONE })
}

fn probed(file: &File) -> Alignment {
    let mut buffer = AlignedBuffer::new(1024, 4096);
    // An address and an offset that are multiples of 512 and of nothing larger.
    let readable = file.read_at(&mut buffer[512..1024], 512).is_ok_and(|read| read == 512);
    let alignment = if readable { 512 } else { 4096 };
    Alignment { offset: alignment, memory: alignment }
}
