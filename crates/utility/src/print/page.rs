//! A page: its header, whether it is whole, and its content by type.

use super::object::Object;
use super::{data_page, index_page};
use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::chain::ChainPage;
use pagefold_format::data_set_header::DataSetHeader;
use pagefold_format::page::{self, PageType, get_u64};
use pagefold_format::space_map::{self, CLASS_FULL, CLASS_NO_ROWS, CLASS_PARTS, CLASS_UNALLOCATED};
use serde_json::{Map, Value, json};

pub(super) fn print(object: &mut Object, number: u32) -> Result<Value> {
    let pages = object.reader.pages();
    if u64::from(number) >= pages {
        return Err(Error::Usage(format!("{} has pages 0 to {}, not {number}", object.name, pages.saturating_sub(1))));
    }
    let mut bytes = Vec::new();
    object.reader.read(number, &mut bytes)?;
    let (checksum, whole) = match object.identity(number).map(|identity| page::verify(&bytes, &identity)) {
        Some(Ok(_)) => ("matches".to_string(), true),
        Some(Err(error)) => (error.to_string(), false),
        None => ("cannot be verified: no control slot is whole".into(), false),
    };
    let found = page::page_type(&bytes);
    let mut out = Map::new();
    out.insert("object".into(), json!(object.name));
    out.insert("file".into(), json!(format!("{:08x}", object.expected.file_id)));
    out.insert("page".into(), json!(number));
    out.insert("page_size_bytes".into(), json!(bytes.len()));
    out.insert("offset_bytes".into(), json!(u64::from(number) * bytes.len() as u64));
    out.insert(
        "header".into(),
        json!({
            "checksum": format!("{:016x}, {checksum}", get_u64(&bytes, 0)),
            "lsn": page::lsn(&bytes),
            "page_number": page::page_number(&bytes),
            "write_counter": page::write_counter(&bytes),
            "type": found.map_or_else(|| format!("{}: unknown", bytes[24]), |t| format!("{}: {}", t as u8, type_name(t))),
            "version": page::page_version(&bytes),
            "count": page::count(&bytes),
            "low_end": page::low_end(&bytes),
            "garbage": page::garbage(&bytes),
        }),
    );
    let content = found.map(|found| content(object, found, number, &bytes));
    match content {
        Some(Ok(map)) => {
            out.insert("structure".into(), json!("valid"));
            out.extend(map);
            if !whole {
                out.insert("bytes".into(), hex_dump(&bytes));
            }
        }
        Some(Err((error, map))) => {
            out.insert("structure".into(), json!(error.to_string()));
            out.extend(map);
            out.insert("bytes".into(), hex_dump(&bytes));
        }
        None => {
            out.insert("bytes".into(), hex_dump(&bytes));
        }
    }
    Ok(Value::Object(out))
}

fn type_name(found: PageType) -> &'static str {
    match found {
        PageType::Header => "header",
        PageType::SpaceMap => "space map",
        PageType::Data => "data",
        PageType::Leaf => "leaf",
        PageType::NonLeaf => "non-leaf",
        PageType::Dictionary => "dictionary",
        PageType::LargeValue => "large value",
        PageType::FoldedLeaf => "folded leaf",
        PageType::PrefixLeaf => "prefix leaf",
    }
}

/// The content of a page; with an error what could be read nevertheless.
pub(super) type Content = std::result::Result<Map<String, Value>, (FormatError, Map<String, Value>)>;

fn content(object: &Object, found: PageType, number: u32, bytes: &[u8]) -> Content {
    match found {
        PageType::Header => header(bytes),
        PageType::SpaceMap => map_page(number, bytes),
        PageType::Data => data_page::content(object, number, bytes),
        PageType::Leaf | PageType::FoldedLeaf => index_page::leaf(object, found, bytes),
        PageType::PrefixLeaf => index_page::prefix_leaf(object, bytes),
        PageType::NonLeaf => index_page::non_leaf(bytes),
        PageType::Dictionary | PageType::LargeValue => chained(found, bytes),
    }
}

/// A map of these fields.
pub(super) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn header(bytes: &[u8]) -> Content {
    let h = DataSetHeader::parse(bytes).map_err(|e| (e, Map::new()))?;
    let dictionaries: Vec<Value> =
        h.dictionaries.iter().map(|d| json!({ "version": d.version, "first_page": d.first_page, "size_bytes": d.bytes })).collect();
    Ok(map(json!({ "data_set": {
        "file": format!("{:08x}", h.file_id),
        "object_id": h.object_id,
        "kind": format!("{:?}", h.kind).to_lowercase(),
        "partition": h.partition,
        "page_size_bytes": h.page_bytes,
        "leaf_size_bytes": h.leaf_bytes,
        "pages": h.page_count,
        "data_pages": h.data_pages,
        "rows": h.rows,
        "keys": h.keys,
        "root_page": h.root_page,
        "levels": h.levels,
        "space_map_writes": h.space_map_writes,
        "dictionaries": dictionaries,
    }})))
}

fn map_page(number: u32, bytes: &[u8]) -> Content {
    let words: Vec<_> = space_map::words(bytes).map_err(|e| (e, Map::new()))?.collect();
    let rows: Vec<Value> = (u64::from(number)..)
        .zip(&words)
        .map(|(page, word)| {
            let class = match word.class() {
                CLASS_UNALLOCATED => "free page".to_string(),
                CLASS_NO_ROWS => "no rows".to_string(),
                class => format!("{} of {CLASS_PARTS} parts free", class - CLASS_FULL),
            };
            json!({ "page": page, "class": word.class(), "meaning": class, "write_counter": word.write_counter() })
        })
        .collect();
    Ok(map(json!({ "pages": rows })))
}

fn chained(found: PageType, bytes: &[u8]) -> Content {
    let part = ChainPage::parse(bytes, found).map_err(|e| (e, Map::new()))?;
    let fields = json!({ "chain": {
        "next_page": part.next,
        "sequence": part.sequence,
        if found == PageType::Dictionary { "dictionary_version" } else { "first_page" }: part.owner,
        "payload_bytes": part.payload.len(),
    }});
    let mut out = map(fields);
    out.insert("payload".into(), hex_dump(part.payload));
    Ok(out)
}

/// Sixteen bytes a line, with their characters; lines of zeros left out.
pub(super) fn hex_dump(bytes: &[u8]) -> Value {
    let mut lines = Vec::new();
    let mut zeros = 0;
    for (i, line) in bytes.chunks(16).enumerate() {
        if line.iter().all(|b| *b == 0) {
            zeros += line.len();
            continue;
        }
        if zeros > 0 {
            lines.push(json!(format!("        {zeros} zeros")));
            zeros = 0;
        }
        let hex: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        lines.push(json!(format!("{:6}  {:47}  {}", i * 16, hex.join(" "), printable(line))));
    }
    if zeros > 0 {
        lines.push(json!(format!("        {zeros} zeros")));
    }
    Value::Array(lines)
}

/// Bytes as characters where they are such.
pub(super) fn printable(bytes: &[u8]) -> String {
    bytes.iter().map(|b| if (0x20..0x7F).contains(b) { char::from(*b) } else { '.' }).collect()
}

/// Bytes in hexadecimal digits, not too many.
pub(super) fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut out: String = bytes.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
    if bytes.len() > SHOWN {
        out.push_str(&format!("... ({} bytes)", bytes.len()));
    }
    out
}
