//! Leaves and non-leaf pages.

use super::object::Object;
use super::page::{Content, hex, map, printable};
use pagefold_format::index::header::LEAF_HEADER_BYTES;
use pagefold_format::index::leaf::{self, Leaf, Place};
use pagefold_format::index::non_leaf::{self, NonLeaf};
use pagefold_format::index::prefix::{self, PrefixLeaf};
use pagefold_format::index::{folded, limits};
use pagefold_format::page::PageType;
use serde_json::{Map, Value, json};

/// RIDs of one entry that are shown.
const RIDS_SHOWN: usize = 8;

pub(super) fn leaf(object: &Object, found: PageType, bytes: &[u8]) -> Content {
    if found == PageType::FoldedLeaf {
        let mut expanded = vec![0; folded::expanded_bytes(bytes).map_err(|e| (e, Map::new()))?];
        folded::expand(bytes, &mut expanded).map_err(|e| (e, Map::new()))?;
        let out = leaf_fields(object, &expanded);
        return folded::check_folded(bytes).map(|_| out.clone()).map_err(|e| (e, out));
    }
    let out = leaf_fields(object, bytes);
    match leaf::check(bytes) {
        Ok(()) => Ok(out),
        Err(error) => Err((error, out)),
    }
}

pub(super) fn prefix_leaf(object: &Object, bytes: &[u8]) -> Content {
    let view = PrefixLeaf::new(bytes);
    let mut blocks = Vec::new();
    for i in 0..view.block_count() {
        let Some(block) = view.block(i) else { break };
        let mut key = Vec::new();
        block.first_key(&mut key);
        let key = object.key_layout.as_ref().map_or_else(|| hex(&key), |layout| layout.describe(&key));
        let first = view.rid(Place { entry: i, rid: 0 }).to_string();
        blocks.push(json!({ "block": i, "rids": block.pair_count(), "bytes": block.byte_count(), "first_key": key, "first_rid": first }));
    }
    let out = map(json!({
        "prefix_leaf": {
            "key_bytes": if view.fixed_key_bytes() == 0 { json!("vary") } else { json!(view.fixed_key_bytes()) },
            "next": view.next(),
            "rids": view.rid_count(),
            "free_bytes": view.free_bytes(),
            "blocks": blocks,
        }
    }));
    match prefix::check::check(bytes) {
        Ok(()) => Ok(out),
        Err(error) => Err((error, out)),
    }
}

fn leaf_fields(object: &Object, bytes: &[u8]) -> Map<String, Value> {
    let view = Leaf::new(bytes);
    let kind = view.kind();
    let mut before: &[u8] = &[];
    let mut entries = Vec::new();
    for (i, entry) in view.entries().enumerate() {
        let rids: Vec<String> = (0..entry.rid_count().min(RIDS_SHOWN)).map(|r| leaf::rid(&entry, r).to_string()).collect();
        let mut rids = rids.join(" ");
        if entry.rid_count() > RIDS_SHOWN {
            rids.push_str(&format!(" ... ({} RIDs)", entry.rid_count()));
        }
        let shared = before.iter().zip(entry.key).take_while(|(a, b)| a == b).count();
        let key = object.key_layout.as_ref().map_or_else(|| hex(entry.key), |layout| layout.describe(entry.key));
        entries.push(json!({ "entry": i, "shared_bytes": shared, "key_bytes": entry.key.len(), "key": key, "rids": rids }));
        before = entry.key;
    }
    let in_memory = bytes.len().saturating_sub(view.free_bytes());
    map(json!({
        "leaf": {
            "unique": kind.single,
            "folds": kind.fold,
            "key_bytes": if kind.fixed_key_bytes == 0 { json!("vary") } else { json!(kind.fixed_key_bytes) },
            "slot_bits": kind.slot_bits,
            "next_page": view.next(),
            "entries": view.entry_count(),
            "rids": view.rid_count(),
            "size_in_memory_bytes": bytes.len(),
            "used_in_memory_bytes": in_memory,
            "free_bytes": view.free_bytes(),
            "folded_bytes": view.folded_bytes(),
            "header_bytes": LEAF_HEADER_BYTES,
            "middle_cut": limits::cut(&view, 1, 2).map_or(Value::Null, |place| json!(place.entry)),
        },
        "entries": entries,
    }))
}

pub(super) fn non_leaf(bytes: &[u8]) -> Content {
    let view = NonLeaf::new(bytes);
    let mut children = vec![json!({ "child": view.child(0), "separator_before": "", "as_text": "" })];
    for i in 0..view.separator_count() {
        let separator = view.separator(i);
        children.push(json!({ "child": view.child(i + 1), "separator_before": hex(separator), "as_text": printable(separator) }));
    }
    let out = map(json!({
        "level_above_leaves": view.level(),
        "free_bytes": view.free_bytes(),
        "children": children,
    }));
    match non_leaf::check(bytes) {
        Ok(()) => Ok(out),
        Err(error) => Err((error, out)),
    }
}
