//! Pages that a sample can be drawn from: each is read by itself, so a sample costs what it reads.

use crate::index::Index;
use crate::pool::Access;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::page::{self, PageType};
use pagefold_format::space_map::{CLASS_UNALLOCATED, is_map_page};

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
        let page = self.manager().shared(self.data_set(), number, Access::Scan)?;
        match page::page_type(&page) {
            Some(PageType::Leaf | PageType::PrefixLeaf) => visit(&LeafView::new(&page)).map(Some),
            Some(PageType::NonLeaf) => Ok(None),
            _ => Err(self.data_set().corrupt(number, "not an index page").into()),
        }
    }
}
