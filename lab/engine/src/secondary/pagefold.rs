//! pagefold's indexes.

use super::run::{Built, Contender, Digest, IndexKeys};
use pagefold_engine::btree::Direction as Walk;
use pagefold_engine::database::Database;
use pagefold_engine::index::{FOLDED_DISK_BYTES, IndexFormat};
use pagefold_engine::table_space::Method;
use pagefold_format::index::header::LEAF_HEADER_BYTES;
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_lab_engine::database::create;
use pagefold_types::Direction;
use pagefold_utility::{IndexOptions, IndexReport, LoadOptions, Silent, create_index, drop_object, load};
use std::path::Path;
use std::rc::Rc;

const INDEX: &str = "secondary";

/// The table that the indexes are built on: LINEITEM, uncompressed, pages of 8 KB, no primary key.
pub(super) fn table(folder: &Path, data: &Lineitem, memory_bytes: usize) -> Outcome<Rc<Database>> {
    let database = create(folder, memory_bytes)?;
    let options = LoadOptions { method: Method::None.into(), ..LoadOptions::default() };
    load(&database, "lineitem", std::slice::from_ref(&data.path), &options, &Silent)?;
    Ok(Rc::new(database))
}

/// One format and page size.
pub(super) struct Pagefold {
    pub(super) database: Rc<Database>,
    pub(super) format: IndexFormat,
    pub(super) page_bytes: usize,
    pub(super) sort_bytes: usize,
}

/// Leaf pages needed when no page is cut between entries and every one is as full as it can be: the larger of folded bytes over what a 4 KB page holds and of bytes in memory over what a
/// buffer holds. (What leaf pages take when every 4 KB page holds the fold of a full buffer, or every page is full.)
fn leaf_pages_allowed(report: &IndexReport, page_bytes: usize) -> u64 {
    let Some(leaves) = report.built.levels.first() else { return 0 };
    let headers = leaves.pages * LEAF_HEADER_BYTES as u64;
    let folded = leaves.folded_bytes - headers;
    let in_memory = leaves.pages * page_bytes as u64 - leaves.free_bytes - headers;
    folded.div_ceil((FOLDED_DISK_BYTES - LEAF_HEADER_BYTES) as u64).max(in_memory.div_ceil((page_bytes - LEAF_HEADER_BYTES) as u64))
}

impl Contender for Pagefold {
    fn name(&self) -> String {
        format!("pagefold {} {} KB", self.format, self.page_bytes / 1024)
    }

    fn build(&mut self, index: &IndexKeys) -> Outcome<Built> {
        let columns: Vec<(String, Direction)> = index.columns.iter().map(|name| ((*name).to_owned(), Direction::Ascending)).collect();
        let options = IndexOptions {
            format: self.format.into(),
            page_bytes: Some(self.page_bytes),
            sort_bytes: self.sort_bytes,
            ..IndexOptions::default()
        };
        let report = create_index(&self.database, INDEX, "lineitem", &columns, &options, &Silent)?;
        let leaf_pages = report.built.levels.first().map_or(0, |level| level.pages);
        let fold = self.format == IndexFormat::Fold;
        let allowed = fold.then(|| (leaf_pages, leaf_pages_allowed(&report, self.page_bytes)));
        Ok(Built { size_bytes: report.size_bytes, leaf_pages_and_allowed: allowed })
    }

    fn digest(&mut self, _: &IndexKeys) -> Outcome<Digest> {
        let index = self.database.index(INDEX)?;
        let mut cursor = index.tree().all(Walk::Forward);
        let mut digest = Digest::default();
        while let Some((key, _)) = cursor.next()? {
            digest.see(key);
        }
        Ok(digest)
    }

    fn remove(&mut self) -> Outcome<()> {
        drop_object(&self.database, INDEX)?;
        Ok(())
    }
}
