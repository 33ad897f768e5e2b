//! What the tree looks like, level by level, and whether all of it is right.

use super::tree::{BTree, Fences};
use crate::Result;
use crate::pool::Access;
use pagefold_format::index::check;
use pagefold_format::index::header::LeafKind;
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::{LeafLayout, LeafView};
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::space_map::{CLASS_UNALLOCATED, is_map_page};
use pagefold_types::Rid;
use std::collections::HashSet;

/// Sums over the pages of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeLevel {
    /// Levels down to the leaves.
    pub level: u16,
    /// Pages.
    pub pages: u64,
    /// Entries of leaves, children of non-leaf pages.
    pub keys: u64,
    /// RIDs of leaves.
    pub rids: u64,
    /// Bytes in memory that are free.
    pub free_bytes: u64,
    /// Bytes of the keys or separators.
    pub key_bytes: u64,
    /// Bytes of folded leaves, headers included.
    pub folded_bytes: u64,
}

/// Something wrong with a page of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFault {
    /// The page; 0 when it is the index as a whole.
    pub page: u32,
    /// What is wrong.
    pub reason: String,
}

struct Checker<'f> {
    seen: HashSet<u32>,
    faults: Vec<TreeFault>,
    entry: &'f mut dyn FnMut(&[u8], Rid) -> Result<()>,
    /// Last leaf and the page it says comes next.
    previous: Option<(u32, u32)>,
    last_key: Vec<u8>,
    pages: u32,
    rids: u64,
    keys: u64,
    complete: bool,
}

impl BTree<'_> {
    /// Levels from the leaves to the root. Reads every page.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub fn levels(&self) -> Result<Vec<TreeLevel>> {
        self.index.check_usable()?;
        let (root, levels) = self.root();
        let mut out = Vec::new();
        let mut pages = if root == 0 { vec![] } else { vec![root] };
        for level in (0..levels).rev() {
            let mut sum = TreeLevel { level, ..TreeLevel::default() };
            let mut children = Vec::new();
            for number in pages {
                let page = self.manager.shared(self.data_set, number, Access::Scan)?;
                self.expect(number, &page, level)?;
                sum.pages += 1;
                if level == 0 {
                    let view = LeafView::new(&page);
                    let (keys, key_bytes) = view.keys().map_err(|e| self.damaged(number, e))?;
                    sum.keys += keys;
                    sum.key_bytes += key_bytes;
                    sum.rids += view.rid_count() as u64;
                    sum.free_bytes += view.free_bytes() as u64;
                    sum.folded_bytes += view.folded_bytes() as u64;
                } else {
                    let view = NonLeaf::new(&page);
                    let n = view.separator_count();
                    sum.keys += n as u64 + 1;
                    sum.free_bytes += view.free_bytes() as u64;
                    sum.key_bytes += (0..n).map(|i| view.separator(i).len() as u64).sum::<u64>();
                    children.extend((0..=n).map(|i| view.child(i)));
                }
            }
            out.push(sum);
            pages = children;
        }
        out.reverse();
        Ok(out)
    }

    /// Checks every page, and how they hang together: levels, fences, order, links, counts, pages that belong to nobody. `entry` gets all entries in order.
    /// Nobody changes the index meanwhile.
    ///
    /// # Errors
    /// What `entry` returns. All that is wrong with the tree is in the faults.
    pub fn check(&self, entry: &mut dyn FnMut(&[u8], Rid) -> Result<()>) -> Result<Vec<TreeFault>> {
        let (root, levels) = self.root();
        let mut checker = Checker {
            seen: HashSet::new(),
            faults: Vec::new(),
            entry,
            previous: None,
            last_key: Vec::new(),
            pages: 0,
            rids: 0,
            keys: 0,
            complete: true,
        };
        if root != 0 {
            self.check_page(root, levels.saturating_sub(1), &Fences::default(), &mut checker)?;
        }
        let Checker { mut faults, previous, pages, rids, keys, complete, seen, .. } = checker;
        if complete {
            let facts = self.data_set.facts();
            for (what, found, stored) in
                [("leaf pages", u64::from(pages), u64::from(facts.data_pages)), ("RIDs", rids, facts.rows), ("keys", keys, facts.keys)]
            {
                if found != stored {
                    faults.push(TreeFault { page: 0, reason: format!("{found} {what}, the header says {stored}") });
                }
            }
            if previous.is_some_and(|(_, next)| next != 0) {
                faults.push(TreeFault { page: previous.map_or(0, |p| p.0), reason: "the last leaf has a page after it".into() });
            }
            let space = self.data_set.space();
            let taken = |page: &u32| space.word(*page).class() != CLASS_UNALLOCATED && !is_map_page(*page, self.data_set.page_bytes());
            for page in (1..space.page_count()).filter(taken).filter(|page| !seen.contains(page)) {
                faults.push(TreeFault { page, reason: "the page is taken but nothing leads to it".into() });
            }
        }
        Ok(faults)
    }

    fn check_page(&self, number: u32, level: u16, fences: &Fences, checker: &mut Checker<'_>) -> Result<()> {
        let fault = |checker: &mut Checker<'_>, reason: String| checker.faults.push(TreeFault { page: number, reason });
        if !checker.seen.insert(number) {
            checker.complete = false;
            fault(checker, "two ways lead to the page".into());
            return Ok(());
        }
        let page = match self.manager.shared(self.data_set, number, Access::Scan) {
            Ok(page) => page.to_vec(),
            Err(error) => {
                checker.complete = false;
                fault(checker, error.to_string());
                return Ok(());
            }
        };
        if let Err(error) = self.expect(number, &page, level).map_err(|e| e.to_string()).and(check::check(&page).map_err(|e| e.to_string()))
        {
            checker.complete = false;
            fault(checker, error);
            return Ok(());
        }
        if self.data_set.space().word(number).class() == CLASS_UNALLOCATED {
            fault(checker, "the space map has the page as free".into());
        }
        if level > 0 {
            let node = NonLeaf::new(&page);
            for i in 0..node.separator_count() {
                if outside(node.separator(i), fences) {
                    fault(checker, format!("separator {i} is outside of what the page above says"));
                }
            }
            for i in 0..=node.separator_count() {
                let mut narrow = fences.clone();
                narrow.narrow(&node, i);
                self.check_page(node.child(i), level - 1, &narrow, checker)?;
            }
            return Ok(());
        }
        let view = LeafView::new(&page);
        if let Some((before, next)) = checker.previous
            && next != number
        {
            checker.faults.push(TreeFault { page: before, reason: format!("says that page {next} follows; page {number} does") });
        }
        checker.previous = Some((number, view.next()));
        checker.pages += 1;
        // Slot bits are the leaf's own.
        let expected = match (self.leaf_layout(), view.layout()) {
            (LeafLayout::Plain(kind), LeafLayout::Plain(own)) => LeafLayout::Plain(LeafKind { slot_bits: own.slot_bits, ..kind }),
            (layout, _) => layout,
        };
        if view.layout() != expected {
            fault(checker, "a leaf of another kind than its index".into());
        }
        let mut bytes = Vec::new();
        for place in view.place_before(view.end()).into_iter().flat_map(|last| [Place::default(), last]) {
            bytes.clear();
            if let Some(rid) = view.pair(place, &mut bytes) {
                bytes.extend_from_slice(&rid.to_bytes());
                if outside(&bytes, fences) {
                    fault(checker, "an entry is outside of what the page above says".into());
                }
            }
        }
        let visit = |key: &[u8], rid| {
            if checker.rids == 0 || checker.last_key != key {
                checker.keys += 1;
                checker.last_key.clear();
                checker.last_key.extend_from_slice(key);
            }
            checker.rids += 1;
            (checker.entry)(key, rid)
        };
        view.for_each(visit, |e| self.damaged(number, e))
    }
}

fn outside(bytes: &[u8], fences: &Fences) -> bool {
    fences.low.as_deref().is_some_and(|low| bytes < low) || fences.high.as_deref().is_some_and(|high| bytes >= high)
}
