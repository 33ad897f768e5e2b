//! CHECK of copies, which are not made into a database for that.
//!
//! Two passes. Blocks of each copy: their checksums, and those of the pages in them. Then the database that the copies make, with the log in them applied, as any other: it lies in the copies
//! (`MountedCopy`), and what the log changes in a scratch file.

use super::findings::{CheckReport, Context};
use super::run::{Checked, check_named, note_given_up};
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::Error as EngineError;
use pagefold_engine::backup::{CopyReader, MountOptions, MountedCopy};
use pagefold_engine::database::Settings;
use pagefold_io::{Clock, Storage};
use std::path::PathBuf;
use std::sync::Arc;

/// Checks a copy, with those that go on from it, in their order: every block, and every page, row and index entry of the database that they make.
///
/// # Errors
/// When a header or a manifest cannot be read, the copies do not go on from each other, or the user wants to stop. What else is damaged is no error but in the report.
pub fn check_copies(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    copies: &[PathBuf],
    settings: Settings,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let mut context = Context::new(progress);
    let mut chain = copies.iter().map(|path| CopyReader::open(storage.as_ref(), path)).collect::<pagefold_engine::Result<Vec<_>>>()?;
    progress.start("reading copies", Some(chain.iter().map(CopyReader::length).sum()), Unit::Bytes);
    for copy in &mut chain {
        for error in copy.check_blocks(progress)? {
            note(&mut context, error);
        }
    }
    progress.finish();
    let blocks_are_whole = context.error_count() == 0;
    let mounted = match MountedCopy::open(storage, clock, copies, &MountOptions::default(), progress) {
        Ok(mounted) => mounted,
        // A block whose length cannot be believed: what it is was said.
        Err(EngineError::Damaged { .. }) if !blocks_are_whole => return Ok(context.finish()),
        Err(error) => return Err(error.into()),
    };
    match mounted.bring_in_order(clock, settings) {
        Ok(given_up) => note_given_up(&given_up, "recover the database from another copy", &mut context),
        Err(error) if error.is_damage() => {
            note(&mut context, error);
            return Ok(context.finish());
        }
        Err(error) => return Err(Error::from(error)),
    }
    let is_wanted = |name: &str| mounted.has_table(name);
    let files = mounted.storage();
    let checked = Checked { storage: files.as_ref(), directory: mounted.directory(), is_wanted: &is_wanted, unnamed: Vec::new() };
    check_named(checked, context)
}

fn note(context: &mut Context<'_>, error: EngineError) {
    match error {
        EngineError::Corrupt { object, page, reason } => context.error(&object, page, reason),
        EngineError::Damaged { path, reason } => context.error(&path, 0, reason),
        other => context.error("copy", 0, other),
    }
}
