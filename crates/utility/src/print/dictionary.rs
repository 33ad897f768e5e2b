//! The dictionaries of a table space partition.

use super::object::Object;
use super::page::{hex, printable};
use crate::check::{Context, DataSetFile};
use crate::{Error, Result, Silent};
use pagefold_codec::row::{CODE_COUNT, Dictionary, DictionaryType};
use pagefold_format::chain::{ChainPage, pages_needed};
use pagefold_format::data::{Body, DataPage, Stored};
use pagefold_format::page::PageType;
use pagefold_io::Storage;
use serde_json::{Value, json};
use std::path::Path;

/// Tokens shown of each kind.
const TOKENS_SHOWN: usize = 20;
/// Data pages in which codes are counted.
const PAGES_COUNTED: usize = 256;

pub(super) fn print(storage: &dyn Storage, directory: &Path, object: &mut Object) -> Result<Value> {
    let mut context = Context::new(&Silent);
    let database_id = object.database_id.unwrap_or_default();
    let set = DataSetFile::open(storage, directory, database_id, &object.expected, &mut context);
    let Some(mut set) = set else { return Err(Error::Usage(format!("{} has no file", object.name))) };
    let roots = set.header.as_ref().map(|header| header.dictionaries.clone()).unwrap_or_default();
    if roots.is_empty() {
        let why = if set.header.is_some() { "has no dictionary" } else { "has a damaged header page" };
        return Err(Error::Usage(format!("{} {why}", object.name)));
    }
    let mut shown = Vec::new();
    for root in roots {
        let (mut numbers, mut number, mut bytes) = (Vec::new(), root.first_page, Vec::new());
        for _ in 0..pages_needed(root.bytes as usize, set.page_bytes).min(set.page_count as usize) {
            numbers.push(number);
            let next =
                set.read_raw(number, &mut bytes).ok().and_then(|()| ChainPage::parse(&bytes, PageType::Dictionary).ok().map(|p| p.next));
            match next {
                Some(next) if next != 0 => number = next,
                _ => break,
            }
        }
        let mut header = json!({
            "version": root.version,
            "size_bytes": root.bytes,
            "pages": numbers.len(),
            "page_numbers": numbers,
        });
        if let (Value::Object(map), Some(dictionary)) = (&mut header, object.dictionaries.get(&root.version)) {
            let kind = match dictionary.dictionary_type() {
                DictionaryType::Fixed => "F (codes of 12 bits)",
                DictionaryType::Huffman => "H (Huffman codes of up to 16 bits)",
            };
            map.insert("type".into(), json!(kind));
            map.insert("nodes".into(), json!(dictionary.token_count()));
            if let Some(codes) = dictionary.codes() {
                let used = codes.histogram().into_iter().enumerate().filter(|(_, count)| *count > 0);
                let lengths: Vec<Value> = used.map(|(bits, count)| json!({ "bits": bits, "codes": count })).collect();
                map.insert("code_lengths".into(), json!(lengths));
            }
            let lengths = dictionary.tokens().tokens().map(<[u8]>::len).sum::<usize>();
            map.insert("token_bytes_avg".into(), json!((lengths as f64 / dictionary.token_count() as f64 * 100.0).round() / 100.0));
            let use_of = match dictionary.codes() {
                // How often a token comes is in its code word already.
                Some(codes) => Use::Bits(codes.lens().to_vec()),
                None => {
                    let (counts, pages) = count_codes(&mut set, root.version, &mut context);
                    map.insert("codes_counted".into(), json!({ "codes": counts.iter().sum::<u64>(), "data_pages": pages }));
                    Use::Counts(counts)
                }
            };
            map.insert("most_frequent".into(), most_frequent(dictionary.tokens(), &use_of));
            map.insert("longest".into(), longest(dictionary.tokens(), &use_of));
        } else if let Value::Object(map) = &mut header {
            map.insert("state".into(), json!("damaged: cannot be read"));
        }
        shown.push(header);
    }
    let mut out = json!({ "object": object.name, "file": format!("{:08x}", object.expected.file_id) });
    if let Value::Object(map) = &mut out {
        if shown.len() == 1 {
            map.extend(shown.into_iter().map(|dictionary| ("dictionary".to_string(), dictionary)));
        } else {
            map.extend(shown.into_iter().enumerate().map(|(i, dictionary)| (format!("dictionary_{}", i + 1), dictionary)));
        }
    }
    Ok(out)
}

/// How often each code occurs in the first data pages, and how many pages those are.
fn count_codes(set: &mut DataSetFile, version: u16, context: &mut Context<'_>) -> (Vec<u64>, usize) {
    let mut counts = vec![0u64; CODE_COUNT];
    let mut pages = 0;
    let mut bytes = Vec::new();
    let numbers: Vec<u32> = set.used_pages().collect();
    for number in numbers {
        if pages == PAGES_COUNTED {
            break;
        }
        if set.load(number, &mut bytes, context) != Some(PageType::Data) || DataPage::new(&bytes).validate().is_err() {
            continue;
        }
        pages += 1;
        let view = DataPage::new(&bytes);
        for row in (0..view.slot_count()).filter_map(|slot| view.row(slot)) {
            if let Ok(Stored::Home(body) | Stored::Away { body, .. } | Stored::Hosted { body, .. }) =
                Stored::parse(row, view.dictionary_version())
                && let Body::Compressed { version: found, codes } = body
                && found == version
            {
                unpack(codes).for_each(|code| counts[usize::from(code)] += 1);
            }
        }
    }
    (counts, pages)
}

/// The 12-bit codes of a row: two in three bytes, the first in the low bits; an odd last one in two.
fn unpack(codes: &[u8]) -> impl Iterator<Item = u16> {
    codes.chunks(3).flat_map(|chunk| {
        let byte = |i: usize| chunk.get(i).copied().map_or(0, u16::from);
        let first = byte(0) | (byte(1) & 0x0F) << 8;
        let second = byte(1) >> 4 | byte(2) << 4;
        [Some(first), (chunk.len() == 3).then_some(second)].into_iter().flatten()
    })
}

/// How much tokens are used, by code.
enum Use {
    /// How often they came.
    Counts(Vec<u64>),
    /// Lengths of their code words: the shorter, the more often.
    Bits(Vec<u8>),
}

impl Use {
    /// Descends with the use; `None` of what is not used.
    fn rank(&self, code: u16) -> Option<u64> {
        match self {
            Use::Counts(counts) => counts.get(usize::from(code)).copied().filter(|count| *count > 0).map(|count| u64::MAX - count),
            Use::Bits(bits) => bits.get(usize::from(code)).copied().map(u64::from),
        }
    }
}

fn token(dictionary: &Dictionary, code: u16, use_of: &Use) -> Value {
    let bytes = dictionary.token(code);
    let (name, number) = match use_of {
        Use::Counts(counts) => ("occurrences", counts[usize::from(code)]),
        Use::Bits(bits) => ("code_bits", u64::from(bits[usize::from(code)])),
    };
    json!({ "code": code, name: number, "bytes": bytes.len(), "token": hex(bytes), "as_text": printable(bytes) })
}

fn most_frequent(dictionary: &Dictionary, use_of: &Use) -> Value {
    let mut codes: Vec<u16> = (0..dictionary.token_count() as u16).filter(|code| use_of.rank(*code).is_some()).collect();
    codes.sort_by_key(|code| (use_of.rank(*code), *code));
    codes.into_iter().take(TOKENS_SHOWN).map(|code| token(dictionary, code, use_of)).collect()
}

fn longest(dictionary: &Dictionary, use_of: &Use) -> Value {
    let mut codes: Vec<u16> = (0..dictionary.token_count() as u16).collect();
    codes.sort_by_key(|code| (std::cmp::Reverse(dictionary.token(*code).len()), *code));
    codes.into_iter().take(TOKENS_SHOWN).map(|code| token(dictionary, code, use_of)).collect()
}
