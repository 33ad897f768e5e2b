//! The pages of an index, in key order.
//!
//! Checked: each page by itself (`pagefold_format::index::check`: structure, order, heads, exact folded size, zeros where nothing is); levels; that everything below a child lies between
//! the separators beside it; that a leaf's link leads to the leaf that follows; that (key, RID) ascend strictly over all leaves; that a unique index has no key twice; the kind
//! of each leaf; counts in the header; pages that nothing leads to.
//!
//! Memory: one page a level.

use super::data_set::{DataSetFile, Expected};
use super::findings::Context;
use crate::Result;
use pagefold_engine::catalog::IndexEntry;
use pagefold_engine::index::IndexFormat;
use pagefold_format::FormatError;
use pagefold_format::data_set_header::ObjectKind;
use pagefold_format::index::header::LeafKind;
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::{LeafLayout, LeafView};
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::{check, folded};
use pagefold_format::page::PageType;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_types::{KeyLayout, Rid};

/// Gets every entry: page, key, RID.
pub(crate) type EntryVisitor<'v> = dyn FnMut(u32, &[u8], Rid) + 'v;

/// What errors call an index.
pub(crate) fn index_object(entry: &IndexEntry) -> String {
    format!("index \"{}\"", entry.attributes.name)
}

/// What is expected of an index's data set that has a file, and that is to be believed.
pub(crate) fn index_expected(entry: &IndexEntry) -> Option<Expected> {
    if entry.damaged.is_some() {
        return None;
    }
    let data_set = entry.data_sets.first()?;
    Some(Expected {
        object: index_object(entry),
        file_id: data_set.file_id,
        object_id: entry.object_id,
        kind: ObjectKind::Index,
        partition: data_set.partition,
        page_bytes: entry.attributes.disk_bytes(),
        leaf_bytes: entry.attributes.page_bytes,
        header_writes: data_set.header_writes?,
    })
}

/// An index's file.
pub(crate) struct IndexFile<'a> {
    pub(crate) entry: &'a IndexEntry,
    pub(crate) key_layout: KeyLayout,
    /// `None`: it has no file, or none that can be read.
    pub(crate) set: Option<DataSetFile>,
    /// Some page of the tree could not be read.
    pub(crate) broken: bool,
}

/// A non-leaf page on the way down.
struct Node {
    bytes: Vec<u8>,
    next_child: usize,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

#[derive(Default)]
struct Walk {
    leaves: u32,
    rids: u64,
    keys: u64,
    last_key: Vec<u8>,
    last_rid: Option<Rid>,
    /// Last leaf, and the page it says comes next; `None` behind a damaged page.
    link: Option<(u32, u32)>,
    /// Some page could not be read, so counts mean nothing.
    broken: bool,
}

impl<'a> IndexFile<'a> {
    /// Walks the tree and checks it.
    ///
    /// # Errors
    /// Only when the user wants to stop.
    pub(crate) fn check(&mut self, context: &mut Context<'_>, visit: &mut EntryVisitor<'_>) -> Result<()> {
        let Some(mut set) = self.set.take() else { return Ok(()) };
        let result = self.check_set(&mut set, context, visit);
        self.set = Some(set);
        self.broken = result?;
        Ok(())
    }

    fn check_set(&self, set: &mut DataSetFile, context: &mut Context<'_>, visit: &mut EntryVisitor<'_>) -> Result<bool> {
        let walk = self.walk(set, true, context, visit)?;
        context.count_entries(walk.rids);
        if let Some(header) = set.header.clone()
            && !walk.broken
        {
            let counts = [
                ("leaf pages", u64::from(walk.leaves), u64::from(header.data_pages)),
                ("RIDs", walk.rids, header.rows),
                ("keys", walk.keys, header.keys),
            ];
            for (what, found, said) in counts {
                if found != said {
                    set.fault(0, format!("{found} {what}, the header says {said}"), context);
                }
            }
            if !set.damaged && set.map_is_whole() {
                set.report_leaks(context);
            }
        }
        // Pages that the walk did not come to: their own state still counts.
        let mut bytes = Vec::new();
        for number in 1..set.page_count {
            if set.is_reached(number) || set.is_free(number) {
                continue;
            }
            context.tick()?;
            if !set.may_be_unwritten(number, &mut bytes)
                && let Some(found) = set.load(number, &mut bytes, context)
                && let Err(reason) = self.check_page(found, &bytes)
            {
                set.damage(number, reason, context);
            }
        }
        Ok(walk.broken)
    }

    /// Delivers all entries once more, without a word about what is wrong.
    ///
    /// # Errors
    /// Only when the user wants to stop.
    pub(crate) fn again(&mut self, context: &mut Context<'_>, visit: &mut EntryVisitor<'_>) -> Result<()> {
        let Some(mut set) = self.set.take() else { return Ok(()) };
        let result = context.muted(|context| self.walk(&mut set, false, context, visit).map(drop));
        self.set = Some(set);
        result
    }

    fn walk(&self, set: &mut DataSetFile, first: bool, context: &mut Context<'_>, visit: &mut EntryVisitor<'_>) -> Result<Walk> {
        let mut walk = Walk::default();
        let Some(header) = &set.header else {
            walk.broken = true;
            return Ok(walk);
        };
        let (root, levels) = (header.root_page, header.levels);
        if (root == 0) != (levels == 0) || levels > 33 {
            set.fault(0, format!("root page {root} at {levels} levels"), context);
            walk.broken = true;
            return Ok(walk);
        }
        if root == 0 {
            return Ok(walk);
        }
        let mut path: Vec<Node> = Vec::new();
        let mut next = Some((root, None, None));
        loop {
            if let Some((number, low, high)) = next.take() {
                context.tick()?;
                let level = levels - 1 - path.len() as u16;
                // A page that is named twice is damaged, so neither this pass nor a later one goes round in circles.
                let reached = if first { set.reach(number, "the page above", context) } else { !set.is_damaged(number) };
                let page = if reached { self.load(set, number, level, context) } else { None };
                match page {
                    Some(bytes) if level > 0 => {
                        check_fences(set, number, &bytes, &low, &high, context);
                        path.push(Node { bytes, next_child: 0, low, high });
                    }
                    Some(bytes) => self.leaf(set, number, &bytes, (&low, &high), &mut walk, context, visit),
                    None => {
                        walk.broken = true;
                        walk.link = None;
                    }
                }
            }
            let Some(node) = path.last_mut() else { break };
            let view = NonLeaf::new(&node.bytes);
            let i = node.next_child;
            if i > view.separator_count() {
                path.pop();
                continue;
            }
            node.next_child += 1;
            let low = if i == 0 { node.low.clone() } else { Some(view.separator(i - 1).to_vec()) };
            let high = if i == view.separator_count() { node.high.clone() } else { Some(view.separator(i).to_vec()) };
            next = Some((view.child(i), low, high));
        }
        if let Some((last, after)) = walk.link
            && after != 0
        {
            set.fault(last, format!("the last leaf says that page {after} follows"), context);
        }
        Ok(walk)
    }

    /// A page of the tree as it is in memory; reported when it is not one.
    fn load(&self, set: &mut DataSetFile, number: u32, level: u16, context: &mut Context<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let found = set.load(number, &mut bytes, context)?;
        if set.is_mapped(number) && set.word(number).class() != CLASS_NO_ROWS {
            let class = set.word(number).class();
            set.fault(number, format!("the space map has free-space class {class} for an index page"), context);
        }
        let own_level = match found {
            PageType::Leaf | PageType::FoldedLeaf | PageType::PrefixLeaf => 0,
            PageType::NonLeaf => u16::from(NonLeaf::new(&bytes).level()),
            other => {
                set.damage(number, format!("a page of type {other:?} in an index"), context);
                return None;
            }
        };
        if own_level != level {
            set.damage(number, format!("a page of level {own_level} where one of level {level} should be"), context);
            return None;
        }
        match self.check_page(found, &bytes) {
            Ok(Some(expanded)) => Some(expanded),
            Ok(None) => Some(bytes),
            Err(reason) => {
                set.damage(number, reason, context);
                None
            }
        }
    }

    /// Checks an index page by itself; returns a folded leaf as it is in memory.
    fn check_page(&self, found: PageType, bytes: &[u8]) -> std::result::Result<Option<Vec<u8>>, String> {
        let format = self.entry.attributes.format;
        match found {
            PageType::FoldedLeaf if format == IndexFormat::Fold => {
                let leaf = folded::check_folded(bytes).map_err(|e| e.to_string())?;
                if leaf.len() != self.entry.attributes.page_bytes {
                    return Err(format!("a leaf of {} bytes in this index", leaf.len()));
                }
                Ok(Some(leaf))
            }
            PageType::Leaf if format == IndexFormat::Plain => check::check(bytes).map(|()| None).map_err(|e| e.to_string()),
            PageType::PrefixLeaf if format == IndexFormat::Prefix => check::check(bytes).map(|()| None).map_err(|e| e.to_string()),
            PageType::NonLeaf => check::check(bytes).map(|()| None).map_err(|e| e.to_string()),
            other => Err(format!("a page of type {other:?} in this index")),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one loop body, moved out of its loop")]
    fn leaf(
        &self,
        set: &mut DataSetFile,
        number: u32,
        bytes: &[u8],
        (low, high): (&Option<Vec<u8>>, &Option<Vec<u8>>),
        walk: &mut Walk,
        context: &mut Context<'_>,
        visit: &mut EntryVisitor<'_>,
    ) {
        let leaf = LeafView::new(bytes);
        walk.leaves += 1;
        if let Some((before, next)) = walk.link
            && next != number
        {
            set.fault(before, format!("says that page {next} follows; page {number} does"), context);
        }
        walk.link = Some((number, leaf.next()));
        let fixed_key_bytes = self.key_layout.fixed_len().map_or(0, |length| length as u16);
        let expected = match leaf.layout() {
            LeafLayout::Plain(kind) => LeafLayout::Plain(LeafKind {
                single: self.entry.attributes.unique,
                fold: self.entry.attributes.format == IndexFormat::Fold,
                fixed_key_bytes,
                slot_bits: kind.slot_bits,
            }),
            LeafLayout::Prefix { .. } => LeafLayout::Prefix { fixed_key_bytes },
        };
        if leaf.layout() != expected {
            set.fault(number, "a leaf of another kind than its index", context);
        }
        for place in leaf.place_before(leaf.end()).into_iter().flat_map(|last| [Place::default(), last]) {
            let mut search = Vec::new();
            if let Some(rid) = leaf.pair(place, &mut search) {
                search.extend_from_slice(&rid.to_bytes());
                if outside(&search, low, high) {
                    set.fault(number, format!("entry {} lies outside of what the page above says", place.entry), context);
                }
            }
        }
        let unique = self.entry.attributes.unique;
        let mut entry: Option<usize> = None;
        let visit_pair = |key: &[u8], rid: Rid| {
            let same_key = walk.last_rid.is_some() && walk.last_key == key;
            let i = entry.map_or(0, |i| i + usize::from(unique || !same_key));
            entry = Some(i);
            let ascends = walk.last_rid.is_none_or(|last| if same_key { last < rid } else { walk.last_key.as_slice() < key });
            if !ascends {
                set.fault(number, format!("entry {i} does not follow the entry before it"), context);
            }
            if !same_key {
                walk.keys += 1;
                walk.last_key.clear();
                walk.last_key.extend_from_slice(key);
            } else if unique && !self.has_null(key) {
                let reason = format!("key {} comes twice in a unique index", self.key_layout.describe(key));
                set.fault(number, reason, context);
            }
            walk.rids += 1;
            walk.last_rid = Some(rid);
            visit(number, key, rid);
            Ok(())
        };
        if let Err(error) = leaf.for_each(visit_pair, |error: FormatError| error) {
            set.damage(number, error.to_string(), context);
        }
    }

    fn has_null(&self, key: &[u8]) -> bool {
        self.key_layout.decode(key).is_ok_and(|values| values.iter().any(|value| value.as_ref().is_null()))
    }
}

fn outside(bytes: &[u8], low: &Option<Vec<u8>>, high: &Option<Vec<u8>>) -> bool {
    low.as_deref().is_some_and(|low| bytes < low) || high.as_deref().is_some_and(|high| bytes >= high)
}

fn check_fences(
    set: &mut DataSetFile,
    number: u32,
    bytes: &[u8],
    low: &Option<Vec<u8>>,
    high: &Option<Vec<u8>>,
    context: &mut Context<'_>,
) {
    let node = NonLeaf::new(bytes);
    for i in 0..node.separator_count() {
        if outside(node.separator(i), low, high) {
            set.fault(number, format!("separator {i} lies outside of what the page above says"), context);
        }
    }
}
