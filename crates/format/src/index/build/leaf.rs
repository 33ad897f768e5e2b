//! Leaves filled in key order.
//!
//! Invariant: [`LeafBuilder`] asks [`LeafPacker`] whether a RID still goes in; so counting and building agree by construction.

use crate::FormatError;
use crate::index::header::{self, FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};
use crate::index::plan::check_key;
use crate::page;
use pagefold_codec::index::cost::{Neighbour, count_cost, joint_cost, next_rid_cost};
use pagefold_codec::index::layout::{Entry, MAP_BYTES, RID_BYTES, common_prefix, key_head, put_map};
use pagefold_codec::index::slot_bits_for;
use pagefold_types::Rid;

/// Counts what goes into one leaf.
#[derive(Clone, Debug)]
pub struct LeafPacker {
    kind: LeafKind,
    page_bytes: usize,
    /// Bytes to fill, in memory and folded.
    limits: (usize, usize),
    entries: usize,
    rids: usize,
    /// RIDs of the last entry.
    last_rids: usize,
    key_bytes: usize,
    last_key: Vec<u8>,
    last_rid: Rid,
    used: usize,
    folded: usize,
}

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    NewEntry,
    IntoList,
    Full,
}

impl LeafPacker {
    /// For leaves of `page_bytes` in memory, of which `free_percent` (PCTFREE) stay free, in memory and, if they fold, of the 4 KB on disk.
    #[must_use]
    pub fn new(kind: LeafKind, page_bytes: usize, free_percent: u8) -> LeafPacker {
        let fill =
            |bytes: usize| LEAF_HEADER_BYTES + bytes.saturating_sub(LEAF_HEADER_BYTES) * usize::from(100 - free_percent.min(99)) / 100;
        LeafPacker {
            kind,
            page_bytes,
            limits: (fill(page_bytes), fill(FOLDED_PAGE_BYTES)),
            entries: 0,
            rids: 0,
            last_rids: 0,
            key_bytes: 0,
            last_key: Vec::new(),
            last_rid: Rid::MIN,
            used: LEAF_HEADER_BYTES,
            folded: LEAF_HEADER_BYTES,
        }
    }

    /// Starts the next leaf. The last key stays as what the next one must follow.
    pub fn reset(&mut self) {
        (self.entries, self.rids, self.last_rids, self.key_bytes) = (0, 0, 0, 0);
        (self.used, self.folded) = (LEAF_HEADER_BYTES, LEAF_HEADER_BYTES);
    }

    /// Adds a RID; `false`: it belongs into the next leaf. (key, RID) must ascend.
    ///
    /// # Errors
    /// When the key has a wrong length, or the slot more bits than the leaves are made for.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<bool, FormatError> {
        Ok(self.add(key, rid)? != Pushed::Full)
    }

    pub(super) fn add(&mut self, key: &[u8], rid: Rid) -> Result<Pushed, FormatError> {
        let shape = self.kind.shape();
        let continues = self.entries > 0 && !self.kind.single && self.last_key == key;
        let (used, folded);
        if continues {
            used = self.used + RID_BYTES;
            folded = if self.kind.fold {
                self.folded + next_rid_cost(shape, self.last_rid.to_u64(), rid.to_u64()) + count_cost(shape, self.last_rids + 1)
                    - count_cost(shape, self.last_rids)
            } else {
                0
            };
        } else {
            check_key(shape, key)?;
            used = self.used + shape.entry_bytes(key.len(), 1) + MAP_BYTES;
            folded = if self.kind.fold {
                let before =
                    if self.entries == 0 { Neighbour::NONE } else { Neighbour { key: &self.last_key, last_rid: self.last_rid.to_u64() } };
                self.folded + joint_cost(shape, before, key, rid.to_u64()) + count_cost(shape, 1)
            } else {
                0
            };
        }
        if self.kind.fold && slot_bits_for(rid.slot()) > self.kind.slot_bits {
            return Err(FormatError::new(format!("slot {} in a leaf for slots of {} bits", rid.slot(), self.kind.slot_bits)));
        }
        let fits = |limits: (usize, usize)| used <= limits.0 && folded <= limits.1;
        if !fits(self.limits) && (self.entries > 0 || !fits((self.page_bytes, FOLDED_PAGE_BYTES))) {
            return if self.entries > 0 { Ok(Pushed::Full) } else { Err(FormatError::new("a key that no leaf has room for")) };
        }
        (self.used, self.folded) = (used, folded);
        self.rids += 1;
        self.last_rid = rid;
        if continues {
            self.last_rids += 1;
            return Ok(Pushed::IntoList);
        }
        self.entries += 1;
        self.key_bytes += key.len();
        self.last_rids = 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(Pushed::NewEntry)
    }

    /// Nothing pushed since the last reset?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Entries of this leaf so far.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// RIDs of this leaf so far.
    #[must_use]
    pub fn rid_count(&self) -> usize {
        self.rids
    }

    /// Bytes of the keys of this leaf so far.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes in memory that are free.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.page_bytes - self.used
    }

    /// Bytes of the folded leaf, header included; 0 unless it folds.
    #[must_use]
    pub fn folded_bytes(&self) -> usize {
        if self.kind.fold { self.folded } else { 0 }
    }

    /// The last key and RID pushed, of this leaf or, just after a reset, of the one before.
    #[must_use]
    pub fn last(&self) -> (&[u8], Rid) {
        (&self.last_key, self.last_rid)
    }
}

/// Builds the pages of leaves.
#[derive(Clone, Debug)]
pub struct LeafBuilder {
    packer: LeafPacker,
    page: Vec<u8>,
    low_end: usize,
    last_entry: usize,
}

impl LeafBuilder {
    /// As [`LeafPacker::new`].
    #[must_use]
    pub fn new(kind: LeafKind, page_bytes: usize, free_percent: u8) -> LeafBuilder {
        LeafBuilder {
            packer: LeafPacker::new(kind, page_bytes, free_percent),
            page: vec![0; page_bytes],
            low_end: LEAF_HEADER_BYTES,
            last_entry: 0,
        }
    }

    /// What the packer knows of this leaf.
    #[must_use]
    pub fn packer(&self) -> &LeafPacker {
        &self.packer
    }

    /// As [`LeafPacker::push`].
    ///
    /// # Errors
    /// As [`LeafPacker::push`].
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<bool, FormatError> {
        let shape = self.packer.kind.shape();
        match self.packer.add(key, rid)? {
            Pushed::Full => return Ok(false),
            Pushed::IntoList => {
                let at = self.last_entry + shape.prefix_bytes() - 2;
                page::put_u16(&mut self.page, at, self.packer.last_rids as u16);
            }
            Pushed::NewEntry => {
                self.last_entry = self.low_end;
                if shape.fixed_key_bytes == 0 {
                    page::put_u16(&mut self.page, self.low_end, key.len() as u16);
                    self.low_end += 2;
                }
                if !shape.single {
                    page::put_u16(&mut self.page, self.low_end, 1);
                    self.low_end += 2;
                }
                self.page[self.low_end..self.low_end + key.len()].copy_from_slice(key);
                self.low_end += key.len();
                // Its head needs the common prefix: `finish` has that.
                put_map(&mut self.page, self.packer.entries - 1, self.last_entry, 0).map_err(|e| FormatError::new(e.to_string()))?;
            }
        }
        self.page[self.low_end..self.low_end + RID_BYTES].copy_from_slice(&rid.to_bytes());
        self.low_end += RID_BYTES;
        Ok(true)
    }

    /// As [`LeafPacker::push`], without the bytes; end the leaf by [`LeafBuilder::reset`] then.
    ///
    /// # Errors
    /// As [`LeafPacker::push`].
    pub fn count(&mut self, key: &[u8], rid: Rid) -> Result<bool, FormatError> {
        self.packer.push(key, rid)
    }

    /// Ends a leaf that was only counted.
    pub fn reset(&mut self) {
        self.packer.reset();
    }

    /// Completes the leaf, copies it to `out` (of the leaf's size) and starts the next.
    ///
    /// # Panics
    /// When `out` has another size.
    pub fn finish(&mut self, page_number: u32, next: u32, out: &mut [u8]) {
        let kind = self.packer.kind;
        let shape = kind.shape();
        header::format_leaf(out, page_number, kind, next);
        out[LEAF_HEADER_BYTES..].copy_from_slice(&self.page[LEAF_HEADER_BYTES..]);
        let n = self.packer.entries;
        let key = |page: &[u8], at: usize| Entry::read(page, at, shape).map(|e| e.key.to_vec()).unwrap_or_default();
        let prefix = if n == 0 { 0 } else { common_prefix(&key(out, LEAF_HEADER_BYTES), &key(out, self.last_entry)) };
        for i in 0..n {
            let at = out.len() - MAP_BYTES * (i + 1);
            let offset = usize::from(page::get_u16(out, at));
            let head = Entry::read(out, offset, shape).map_or(0, |e| key_head(e.key, prefix));
            out[at + 2..at + 6].copy_from_slice(&head.to_le_bytes());
        }
        page::set_count(out, n as u16);
        page::set_low_end(out, self.low_end as u16);
        header::set_common_prefix(out, prefix);
        header::set_rids(out, self.packer.rids);
        header::set_folded_bytes(out, self.packer.folded_bytes());
        let end = self.page.len();
        self.page[LEAF_HEADER_BYTES..self.low_end].fill(0);
        self.page[end - MAP_BYTES * n..].fill(0);
        self.low_end = LEAF_HEADER_BYTES;
        self.packer.reset();
    }
}
