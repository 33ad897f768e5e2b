//! The dictionaries of a table in memory, by version.
//!
//! Invariants:
//! - a version that was put here stays until the table is closed, so references to it last as long as the table's. That is 0.2 to 0.5 MB for each, and no table has a new one before an eighth of it
//!   has been inserted anew;
//! - the newest version is one that all partitions have;
//! - a version that no partition has whole is not here. The table is known to be damaged then: nothing more is put into it, and what does not need that version is still read.

use crate::Error;
use crate::doubling::{Doubling, segments_for};
use pagefold_codec::row::{Encoder, RowDictionary};
use pagefold_format::data::forms::{DICTIONARY_VERSION_MAX, LAYOUT_MAX, RecordEncoder};
use pagefold_format::data::string_codes;
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

/// A dictionary ready to compress with.
pub struct Compressor {
    version: u16,
    dictionary: RowDictionary,
    /// By layout of the records.
    encoders: [OnceLock<RecordEncoder>; LAYOUT_MAX as usize + 1],
    string_codes: OnceLock<Arc<Encoder>>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compressor(version {}, {} tokens)", self.version, self.dictionary.token_count())
    }
}

impl Compressor {
    pub(super) fn new(version: u16, dictionary: RowDictionary) -> Compressor {
        Compressor { version, dictionary, encoders: Default::default(), string_codes: OnceLock::new() }
    }

    /// Version of the dictionary, from 1.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The dictionary.
    #[must_use]
    pub fn dictionary(&self) -> &RowDictionary {
        &self.dictionary
    }

    /// What brings records of a layout into its codes.
    pub(super) fn encoder(&self, layout: u8) -> &RecordEncoder {
        let encoder = &self.encoders[usize::from(layout.min(LAYOUT_MAX))];
        encoder.get_or_init(|| RecordEncoder::codes(self.version, &self.dictionary).of_layout(layout))
    }

    /// What turns strings of columns into codes.
    pub(in crate::table_space) fn string_codes(&self) -> &Arc<Encoder> {
        self.string_codes.get_or_init(|| string_codes(&self.dictionary))
    }
}

/// All dictionaries of a table that rows may refer to, and those that they referred to since it was opened.
#[derive(Debug, Default)]
pub(crate) struct DictionarySet {
    /// By version, from 1 on.
    versions: Doubling<OnceLock<Arc<Compressor>>, 2, { segments_for(2, DICTIONARY_VERSION_MAX as u32) }>,
    /// The version that new rows get; 0: none.
    newest: AtomicU16,
    /// Held by who adds, stores or drops a version: the versions that partitions have, ascending.
    pub(super) live: Mutex<Vec<u16>>,
    /// Why a version is not here.
    damage: OnceLock<Error>,
}

impl DictionarySet {
    /// The dictionary of a version.
    #[inline]
    pub(crate) fn get(&self, version: u16) -> Option<&Arc<Compressor>> {
        self.versions.get(u32::from(version))?.get()
    }

    /// What rows are decoded with that need the dictionary of a version.
    #[inline]
    pub(in crate::table_space) fn tokens_of(&self, version: u16) -> Option<&RowDictionary> {
        self.get(version).map(|compressor| compressor.dictionary())
    }

    /// The one that new rows get.
    pub(crate) fn newest(&self) -> Option<&Arc<Compressor>> {
        self.get(self.newest.load(Ordering::Acquire))
    }

    /// False when the version is out of range, or there.
    pub(super) fn put(&self, compressor: Arc<Compressor>) -> bool {
        let version = compressor.version;
        (1..=DICTIONARY_VERSION_MAX).contains(&version) && self.versions.get_or_make(u32::from(version)).set(compressor).is_ok()
    }

    /// Why a version is not here, if one that rows may have is not.
    pub(in crate::table_space) fn damage(&self) -> Option<&Error> {
        self.damage.get()
    }

    /// A version is in no partition whole.
    pub(super) fn set_damage(&self, damage: Error) {
        self.damage.get_or_init(|| damage);
    }

    /// New rows get this version from now on.
    pub(super) fn set_newest(&self, version: u16) {
        self.newest.store(version, Ordering::Release);
    }
}
