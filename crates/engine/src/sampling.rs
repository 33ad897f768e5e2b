//! Pages that a sample can be drawn from: each is read by itself, so a sample costs what it reads.

use crate::data_set::DataSet;
use crate::index::Index;
use crate::pool::Access;
use crate::space_map::SpaceMap;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::page::{self, PageType};
use pagefold_format::space_map::{CLASS_FULL, CLASS_UNALLOCATED, is_map_page};
use std::collections::HashSet;

/// Of so many pages one is drawn at most: where more are wanted, all are listed and some of them chosen.
const PAGES_PER_DRAW: u64 = 8;
/// Numbers drawn for each page that is wanted, at most: then pages of the kind are few, and are listed.
const DRAWS_PER_PAGE: u64 = 32;
/// Numbers drawn at once: who changes pages waits for the space map for so long at most.
const DRAWS_PER_LOCK: u64 = 256;

impl DataSet {
    /// Numbers of so many random data pages, or of all pages of an index but header and map pages: each has the same chance, none comes twice. `below` gives a random number below another one.
    /// Takes time for the pages that are wanted, not for those that there are, unless that is most of them.
    #[must_use]
    pub fn draw_pages(&self, wanted: u64, of_index: bool, mut below: impl FnMut(u64) -> u64) -> Vec<u32> {
        let page_bytes = self.page_bytes();
        let is_one = |space: &SpaceMap, page: u32| match space.word(page).class() {
            class if of_index => class != CLASS_UNALLOCATED && !is_map_page(page, page_bytes),
            class => class >= CLASS_FULL,
        };
        let pages = self.page_count();
        if wanted.saturating_mul(PAGES_PER_DRAW) < u64::from(pages) {
            let (mut drawn, mut seen) = (Vec::with_capacity(wanted as usize), HashSet::with_capacity(wanted as usize));
            for _ in 0..(wanted * DRAWS_PER_PAGE).div_ceil(DRAWS_PER_LOCK) {
                let space = self.space();
                for _ in 0..DRAWS_PER_LOCK {
                    if drawn.len() as u64 == wanted {
                        return drawn;
                    }
                    let page = 1 + below(u64::from(pages) - 1) as u32;
                    if is_one(&space, page) && seen.insert(page) {
                        drawn.push(page);
                    }
                }
            }
        }
        let space = self.space();
        let mut all: Vec<u32> = (1..space.page_count()).filter(|page| is_one(&space, *page)).collect();
        drop(space);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(all.len());
        for at in 0..wanted {
            let other = at + below((all.len() - at) as u64) as usize;
            all.swap(at, other);
        }
        all.truncate(wanted);
        all
    }
}

impl Index {
    /// Numbers of its leaf and non-leaf pages, ascending: all pages in use but header and map pages.
    #[must_use]
    pub fn used_page_numbers(&self) -> Vec<u32> {
        let data_set = self.data_set();
        let space = data_set.space();
        let used = |page: &u32| !is_map_page(*page, data_set.page_bytes()) && space.word(*page).class() != CLASS_UNALLOCATED;
        (1..data_set.page_count()).filter(used).collect()
    }

    /// Calls `visit` with a page that is a leaf; `None` when it is a non-leaf page.
    ///
    /// # Errors
    /// When the page is damaged or cannot be read, or `visit` fails.
    pub fn visit_leaf<R, E: From<crate::Error>>(
        &self,
        number: u32,
        visit: impl FnOnce(&LeafView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let page = match self.manager().shared(self.data_set(), number, Access::Scan) {
            // Given back since its number was found.
            Err(_) if self.data_set().space().word(number).class() == CLASS_UNALLOCATED => return Ok(None),
            page => page?,
        };
        match page::page_type(&page) {
            Some(PageType::Leaf | PageType::PrefixLeaf) => visit(&LeafView::new(&page)).map(Some),
            Some(PageType::NonLeaf) => Ok(None),
            _ => Err(self.data_set().corrupt(number, "not an index page").into()),
        }
    }
}
