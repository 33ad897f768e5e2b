//! Chains of pages: dictionaries and large values.
//!
//! Checked: every page is of the type, names its place and its owner, is named once, and the lengths add up.

use super::data_set::DataSetFile;
use super::findings::Context;
use pagefold_codec::row::RowDictionary;
use pagefold_format::chain::{ChainPage, pages_needed};
use pagefold_format::page::PageType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The serial form of a dictionary is never longer.
const DICTIONARY_BYTES_MAX: usize = 128 * 1024;

/// A chain to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) page_type: PageType,
    pub(crate) first_page: u32,
    pub(crate) owner: u32,
    /// The least and the most that it may hold.
    pub(crate) bytes: (usize, usize),
}

/// Reads a chain page by page; what is wrong is reported, by the name of who refers to it. False when the chain is not whole.
pub(crate) fn read_chain(
    set: &mut DataSetFile,
    chain: Chain,
    by: &str,
    context: &mut Context<'_>,
    mut visit: impl FnMut(u32, &[u8]) -> Result<(), String>,
) -> bool {
    let mut number = chain.first_page;
    let mut seen = 0usize;
    let mut bytes = Vec::new();
    let pages = pages_needed(chain.bytes.1, set.page_bytes).max(1).min(u32::MAX as usize) as u32;
    for sequence in 0..pages {
        if sequence > 0 && number == 0 {
            break;
        }
        if !set.reach(number, by, context) {
            return false;
        }
        if set.load(number, &mut bytes, context).is_none() {
            return false;
        }
        let part = match ChainPage::parse(&bytes, chain.page_type) {
            Ok(part) => part,
            Err(error) => {
                set.damage(number, format!("{by}: {error}"), context);
                return false;
            }
        };
        if part.sequence != sequence || part.owner != chain.owner {
            let reason = format!("{by}: part {} of {}, expected part {sequence} of {}", part.sequence, part.owner, chain.owner);
            set.fault(number, reason, context);
            return false;
        }
        seen += part.payload.len();
        if let Err(reason) = visit(number, part.payload) {
            set.fault(number, format!("{by}: {reason}"), context);
            return false;
        }
        number = part.next;
    }
    let (least, most) = chain.bytes;
    if !(least..=most).contains(&seen) || number != 0 {
        set.fault(chain.first_page, format!("{by}: a chain of {seen} bytes where {least} to {most} are expected"), context);
        return false;
    }
    true
}

/// Looks for dictionaries in all pages, whatever the header names. Only those that are whole count, and nothing is said of others.
pub(crate) fn find_dictionaries(set: &mut DataSetFile) -> BTreeMap<u16, Arc<RowDictionary>> {
    let mut found = BTreeMap::new();
    let mut bytes = Vec::new();
    for first in 1..set.page_count {
        let mut serial = Vec::new();
        let (mut number, mut sequence, mut version) = (first, 0, None);
        while number != 0 && serial.len() <= DICTIONARY_BYTES_MAX {
            let loaded = set.peek(number, &mut bytes) == Some(PageType::Dictionary);
            let part = loaded.then(|| ChainPage::parse(&bytes, PageType::Dictionary).ok()).flatten();
            let Some(part) = part.filter(|part| part.sequence == sequence && version.is_none_or(|owner| owner == part.owner)) else {
                version = None;
                break;
            };
            version = Some(part.owner);
            serial.extend_from_slice(part.payload);
            (number, sequence) = (part.next, sequence + 1);
        }
        if let Some(version) = version.and_then(|owner| u16::try_from(owner).ok())
            && let Ok(dictionary) = RowDictionary::from_bytes(&serial)
        {
            found.insert(version, Arc::new(dictionary));
        }
    }
    found
}

/// Reads all dictionaries that the header page names.
pub(crate) fn read_dictionaries(set: &mut DataSetFile, context: &mut Context<'_>) -> BTreeMap<u16, Arc<RowDictionary>> {
    let mut found = BTreeMap::new();
    let roots = set.header.as_ref().map(|header| header.dictionaries.clone()).unwrap_or_default();
    for root in roots {
        let by = format!("dictionary version {}", root.version);
        if root.version == 0 || found.contains_key(&root.version) {
            set.fault(0, format!("{by} is 0 or comes twice"), context);
            continue;
        }
        let length = root.bytes as usize;
        if length > DICTIONARY_BYTES_MAX {
            set.fault(0, format!("{by} of {length} bytes; the longest has {DICTIONARY_BYTES_MAX}"), context);
            continue;
        }
        let chain =
            Chain { page_type: PageType::Dictionary, first_page: root.first_page, owner: u32::from(root.version), bytes: (length, length) };
        let mut serial = Vec::with_capacity(length);
        let whole = read_chain(set, chain, &by, context, |_, part| {
            serial.extend_from_slice(part);
            Ok(())
        });
        if !whole {
            continue;
        }
        match RowDictionary::from_bytes(&serial) {
            Ok(dictionary) => drop(found.insert(root.version, Arc::new(dictionary))),
            Err(error) => set.fault(root.first_page, format!("{by}: {error}"), context),
        }
    }
    found
}
