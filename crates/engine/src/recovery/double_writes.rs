//! Restoring pages from the file of double writes.
//!
//! Invariants:
//! - of several images of a page only the last counts;
//! - the images are synced before any is put in its place: those of a process that was stopped may be in the system's cache only;
//! - a page is written only when its image is whole and the page on disk is not, or has an older write counter;
//! - afterwards all files with images are synced, also where nothing was restored: so a crash during redo, when the images are void, finds them as redo did.

use crate::Result;
use crate::directory::{DOUBLE_WRITE_NAME, data_set_path};
use crate::pool::double_write::{self, Image};
use pagefold_format::log::Lsn;
use pagefold_format::page::{self, PageIdentity};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Restores what can be; returns a position up to which the log was durable: pages go to that file when the log is durable up to their LSNs.
///
/// # Errors
/// When a file cannot be read or written.
pub(crate) fn restore_double_writes(
    storage: &dyn Storage,
    directory: &Path,
    database_id: u128,
    before: &mut BeforeWrite<'_>,
) -> Result<Lsn> {
    let path = directory.join(DOUBLE_WRITE_NAME);
    let images = double_write::images_if_whole(storage, &path, database_id)?;
    if !images.is_empty() {
        storage.open(&path, &OpenOptions { write: true, ..OpenOptions::read_only() })?.sync()?;
    }
    put_back(storage, directory, database_id, images, before)
}

/// Called before an image is written in place.
pub(crate) type BeforeWrite<'a> = dyn FnMut(&Image, &dyn File) -> Result<()> + 'a;

/// As [`restore_double_writes`], of images that have been read.
///
/// # Errors
/// When a data set cannot be read or written.
pub(crate) fn put_back(
    storage: &dyn Storage,
    directory: &Path,
    database_id: u128,
    images: Vec<Image>,
    before: &mut BeforeWrite<'_>,
) -> Result<Lsn> {
    let mut files: BTreeMap<u32, Arc<dyn File>> = BTreeMap::new();
    let mut durable = 0;
    let mut newest = BTreeMap::new();
    for image in images {
        durable = durable.max(page::lsn(&image.bytes));
        newest.insert((image.file_id, image.page_number), image);
    }
    for image in newest.into_values() {
        let target = data_set_path(directory, image.file_id);
        if !storage.exists(&target)? {
            continue;
        }
        let file = match files.get(&image.file_id) {
            Some(file) => Arc::clone(file),
            None => storage.open(&target, &OpenOptions { write: true, ..OpenOptions::read_only() })?,
        };
        let offset = u64::from(image.page_number) * image.bytes.len() as u64;
        let mut found = vec![0; image.bytes.len()];
        let present = file.len()? >= offset + found.len() as u64 && read_exact_at(file.as_ref(), &mut found, offset).is_ok();
        let identity = PageIdentity { database_id, file_id: image.file_id, page_number: image.page_number };
        let whole = present && page::verify(&found, &identity).is_ok();
        if !whole || counter_ahead(page::write_counter(&image.bytes), page::write_counter(&found)) {
            before(&image, file.as_ref())?;
            file.write_at(&image.bytes, offset)?;
        }
        // What is whole may be so in the system's cache only: written by a process that was stopped before it synced.
        files.insert(image.file_id, file);
    }
    for file in files.values() {
        file.sync()?;
    }
    Ok(durable)
}

/// Is counter `a` ahead of `b`? Space maps keep 24 bits of them, so no more count.
fn counter_ahead(a: u32, b: u32) -> bool {
    ((a.wrapping_sub(b) << 8) as i32) > 0
}
