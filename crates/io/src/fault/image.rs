//! The disk as a machine might find it after a crash.
//!
//! **Content.** Each unsynced change of a file is kept, dropped or torn. What a sector then holds is something the program could have read
//! from it at some time since the last sync: its durable content, or its content just after one of the kept changes (not necessarily
//! the last: reordering). Sectors choose independently of each other.
//!
//! **Length.** One of the lengths that the file had since the last sync. A cut (`set_len` to less) zeroes data exactly if the chosen length
//! is the one it made or a later one: both are one entry in a file system's journal.
//!
//! **Names.** A change of names happened or not, as a whole; if it happened, so did all earlier changes of the same names.

use std::collections::BTreeMap;

use super::disk::{Disk, FaultOptions, FileChange, Inode, NameChange, Pending, with_predecessors};
use crate::random::Random;
use crate::sparse::SparseBytes;
use crate::tree::Tree;

/// What a crash leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPolicy {
    /// Nothing.
    DropAll,
    /// Everything; of the call in whose middle the machine stopped, any part.
    KeepAll,
    /// Anything possible, by seed.
    Random(u64),
}

/// What happened to a change.
enum Fate {
    Kept,
    Dropped,
    /// Sector by sector, in the order of the sectors.
    Torn(Vec<bool>),
}

/// How an image tends to be: with independent even odds for everything, the extremes would never come up.
struct Character {
    random: Random,
    /// In eighths.
    keep: u64,
    /// In eighths.
    tear: u64,
    /// Sectors hold the last of the kept changes.
    ordered: bool,
    /// The length is that of the last kept change, not any.
    length_follows: bool,
}

impl Character {
    fn new(policy: CrashPolicy, options: &FaultOptions, calls: u64) -> Self {
        match policy {
            CrashPolicy::DropAll => Self { random: Random::new(0), keep: 0, tear: 0, ordered: true, length_follows: true },
            CrashPolicy::KeepAll => {
                let random = Random::new(options.seed ^ calls.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                Self { random, keep: 8, tear: 0, ordered: true, length_follows: true }
            }
            CrashPolicy::Random(seed) => {
                let mut random = Random::new(seed);
                let keep = [0, 1, 4, 7, 8][random.below(5) as usize];
                let tear = [0, 2, 8][random.below(3) as usize];
                let (ordered, length_follows) = (random.chance(1, 2), random.chance(1, 2));
                Self { random, keep, tear, ordered, length_follows }
            }
        }
    }

    /// Whether a change of names happened.
    fn keeps(&mut self, policy: CrashPolicy, in_flight: bool) -> bool {
        let eighths = if in_flight && policy != CrashPolicy::DropAll { 4 } else { self.keep };
        self.random.chance(eighths, 8)
    }

    /// What happened to a change of `sectors` sectors.
    fn fate(&mut self, policy: CrashPolicy, in_flight: bool, sectors: u64) -> Fate {
        let open = in_flight && policy != CrashPolicy::DropAll;
        let (keep, tear) = if open { (4, 4) } else { (self.keep, if self.keep == 0 { 0 } else { self.tear }) };
        if sectors > 1 && self.random.chance(tear, 8) {
            return Fate::Torn(if self.random.chance(1, 2) {
                let end = self.random.below(sectors + 1);
                (0..sectors).map(|sector| sector < end).collect()
            } else {
                (0..sectors).map(|_| self.random.chance(1, 2)).collect()
            });
        }
        if self.random.chance(keep, 8) { Fate::Kept } else { Fate::Dropped }
    }
}

/// The disk after a crash: nothing unsynced, nothing locked, no faults planned, calls counted from 0.
pub(super) fn crash_image(disk: &Disk, policy: CrashPolicy) -> Disk {
    let mut character = Character::new(policy, &disk.options, disk.calls);
    let tree = names_image(&disk.durable_tree, &disk.names, &mut character, policy);
    let mut inodes = BTreeMap::new();
    for number in tree.files() {
        if let Some(inode) = disk.inodes.get(&number) {
            let content = file_image(inode, u64::from(disk.options.sector_bytes), &mut character, policy);
            inodes.insert(number, Inode { durable: content.clone(), current: content, pending: Vec::new(), handles: 0 });
        }
    }
    Disk { options: disk.options.clone(), durable_tree: tree.clone(), tree, inodes, next_number: disk.next_number, ..Disk::default() }
}

fn names_image(durable: &Tree, names: &[Pending<NameChange>], character: &mut Character, policy: CrashPolicy) -> Tree {
    let kept =
        with_predecessors(names.iter().map(|pending| &pending.change.change), |index| character.keeps(policy, names[index].in_flight));
    let mut tree = durable.clone();
    for (pending, kept) in names.iter().zip(kept) {
        if kept {
            tree.apply(&pending.change.change);
        }
    }
    tree.drop_unreachable();
    tree
}

/// First sector and number of sectors that a change of data touches.
fn touched(change: &FileChange, len_before: u64, sector_bytes: u64) -> (u64, u64) {
    let (offset, end) = match change {
        FileChange::Write { offset, data } => (*offset, offset + data.len() as u64),
        // Beyond the end there is nothing to zero.
        FileChange::PunchHole { offset, len } => (*offset, (offset + len).min(len_before)),
        FileChange::SetLen(_) | FileChange::Allocate { .. } => (0, 0),
    };
    if offset >= end {
        return (0, 0);
    }
    let first = offset / sector_bytes;
    (first, end.div_ceil(sector_bytes) - first)
}

fn file_image(inode: &Inode, sector_bytes: u64, character: &mut Character, policy: CrashPolicy) -> SparseBytes {
    let mut image = inode.durable.clone();
    if inode.pending.is_empty() || policy == CrashPolicy::DropAll {
        return image;
    }
    let mut lens = vec![image.len()];
    let mut fates = Vec::with_capacity(inode.pending.len());
    for (index, pending) in inode.pending.iter().enumerate() {
        let (_, sectors) = touched(&pending.change, lens[index], sector_bytes);
        fates.push(character.fate(policy, pending.in_flight, sectors));
        lens.push(pending.change.len_after(lens[index]));
    }
    // How many of the changes of length happened: always a prefix, because a journal keeps them in order.
    let happened = if character.length_follows {
        fates.iter().rposition(|fate| !matches!(fate, Fate::Dropped)).map_or(0, |last| last + 1)
    } else {
        character.random.below(lens.len() as u64) as usize
    };
    let len = lens[happened];

    let chosen = choose_sectors(inode, &fates, &lens, happened, sector_bytes, character);
    for index in 0..happened {
        // The cuts that happened take the durable content with them.
        if lens[index + 1] < image.len() && lens[index + 1] < lens[index] {
            image.set_len(lens[index + 1]);
        }
    }
    image.set_len(len);

    // Replay shows what each sector held just after the change that was chosen for it.
    let mut state = inode.durable.clone();
    for (index, pending) in inode.pending.iter().enumerate() {
        pending.change.apply(&mut state);
        for &sector in chosen.get(&index).into_iter().flatten() {
            let offset = sector * sector_bytes;
            if offset < len {
                image.copy_within_chunk(&state, offset, sector_bytes.min(len - offset));
            }
        }
    }
    for (pending, fate) in inode.pending[..happened].iter().zip(&fates) {
        match pending.change {
            FileChange::Allocate { offset, len: allocated } if offset < len => {
                image.allocate(offset, allocated.min(len - offset));
            }
            FileChange::PunchHole { offset, len } if matches!(fate, Fate::Kept) => image.give_zeros_back(offset, len),
            _ => {}
        }
    }
    image
}

/// For each change the sectors whose content is that from just after it.
fn choose_sectors(
    inode: &Inode,
    fates: &[Fate],
    lens: &[u64],
    happened: usize,
    sector_bytes: u64,
    character: &mut Character,
) -> BTreeMap<usize, Vec<u64>> {
    // Sector -> chosen change and number of changes to choose from so far.
    let mut sectors: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    for (index, (pending, fate)) in inode.pending.iter().zip(fates).enumerate() {
        if let FileChange::SetLen(cut) = pending.change {
            if cut < lens[index] && index < happened {
                drop(sectors.split_off(&(cut / sector_bytes)));
                if cut % sector_bytes != 0 {
                    sectors.insert(cut / sector_bytes, (index, 1));
                }
            }
            continue;
        }
        let (first, count) = touched(&pending.change, lens[index], sector_bytes);
        for number in 0..count {
            let kept = match fate {
                Fate::Kept => true,
                Fate::Dropped => false,
                Fate::Torn(mask) => mask[number as usize],
            };
            if !kept {
                continue;
            }
            let choice = sectors.entry(first + number).or_insert((index, 0));
            choice.1 += 1;
            if character.ordered || character.random.chance(1, choice.1) {
                choice.0 = index;
            }
        }
    }
    let mut by_change: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (sector, (index, _)) in sectors {
        by_change.entry(index).or_default().push(sector);
    }
    by_change
}
