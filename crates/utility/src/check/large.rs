//! Large values: their chains, blocks and contents.
//!
//! Memory: one block, however long the value.

use super::chain::{Chain, read_chain};
use super::data_set::DataSetFile;
use super::findings::Context;
use pagefold_codec::block::{TagOfParts, decompress, next_block, stored_bytes_max};
use pagefold_format::chain::owner_of_value;
use pagefold_format::page::PageType;
use pagefold_types::{DataType, LargeValueRef, Rid};

/// Counts characters and checks UTF-8 of a text that comes in parts.
#[derive(Default)]
struct Text {
    chars: u64,
    /// The beginning of a character that was cut.
    cut: Vec<u8>,
}

impl Text {
    fn push(&mut self, part: &[u8]) -> Result<(), String> {
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend_from_slice(part);
        let valid = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err("the text is not UTF-8".into()),
        };
        self.chars += bytes[..valid].iter().filter(|b| **b & 0xC0 != 0x80).count() as u64;
        self.cut = bytes.split_off(valid);
        Ok(())
    }

    fn finish(&self, data_type: DataType) -> Result<(), String> {
        if !self.cut.is_empty() {
            return Err("the text ends in the middle of a character".into());
        }
        match data_type {
            DataType::Char(n) if self.chars != u64::from(n) => Err(format!("{} characters in CHAR({n})", self.chars)),
            DataType::Varchar(Some(n)) if self.chars > u64::from(n) => Err(format!("{} characters in VARCHAR({n})", self.chars)),
            _ => Ok(()),
        }
    }
}

/// Reads a large value that a row names; `take` gets its bytes in parts. False when something is wrong with it.
pub(crate) fn read_large(
    sets: &mut [Option<DataSetFile>],
    (rid, home): (Rid, (usize, u32)),
    data_type: DataType,
    reference: LargeValueRef,
    context: &mut Context<'_>,
    take: &mut dyn FnMut(&[u8]),
) -> bool {
    let by = format!("a large value of row {rid}");
    let complain = |sets: &mut [Option<DataSetFile>], context: &mut Context<'_>, reason: String| {
        if let Some(Some(set)) = sets.get_mut(home.0) {
            set.fault(home.1, format!("{by}: {reason}"), context);
        }
        false
    };
    let raw_bytes = reference.raw_bytes as usize;
    let Some(Some(set)) = sets.get_mut(usize::from(reference.partition)) else {
        return complain(sets, context, format!("in partition {}, which is not there", reference.partition));
    };
    let chain = Chain {
        page_type: PageType::LargeValue,
        first_page: reference.first_page,
        owner: owner_of_value(reference.tag),
        bytes: (0, stored_bytes_max(raw_bytes)),
    };
    let mut text = data_type.is_text().then(Text::default);
    let mut pending: Vec<u8> = Vec::new();
    let mut value = Vec::new();
    let (mut seen, mut tag) = (0usize, TagOfParts::default());
    let whole = read_chain(set, chain, &by, context, |_, part| {
        tag.update(part);
        pending.extend_from_slice(part);
        let mut rest = &pending[..];
        while let Some((block, behind)) = next_block(rest).map_err(|e| e.to_string())? {
            value.clear();
            decompress(block.stored, block.raw_bytes, &mut value).map_err(|e| e.to_string())?;
            seen += value.len();
            if seen > raw_bytes {
                return Err(format!("{seen} bytes and more where {raw_bytes} are expected"));
            }
            if let Some(text) = &mut text {
                text.push(&value)?;
            }
            take(&value);
            rest = behind;
        }
        let taken = pending.len() - rest.len();
        pending.drain(..taken);
        Ok(())
    });
    if !whole {
        return false;
    }
    if tag.finish() != reference.tag {
        set.fault(reference.first_page, format!("{by}: the value here is not the one that the row names"), context);
        return false;
    }
    let ends = text.map_or(Ok(()), |text| text.finish(data_type));
    if !pending.is_empty() || seen != raw_bytes {
        set.fault(reference.first_page, format!("{by}: {seen} bytes where {raw_bytes} are expected"), context);
        return false;
    }
    if let Err(reason) = ends {
        set.fault(reference.first_page, format!("{by}: {reason}"), context);
        return false;
    }
    true
}
