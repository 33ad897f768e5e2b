//! Carrying a plan out, object by object, beside those who use the database.
//!
//! Invariant: each object is written anew in a change of its own. Whenever it ends, what is done is done, and the rest is as it was: advice that is asked for again is on the rest.

use super::objects::{ObjectAdvice, ObjectKind};
use super::plan::AdvicePlan;
use crate::reorg::reorg_one;
use crate::{Error, Progress, ReorgOptions, ReorgReport, Result, Setting, Unit};
use pagefold_engine::database::Database;

/// What became of the objects that were to be written anew.
#[derive(Debug, Default)]
pub struct Applied {
    /// Done, in this order.
    pub done: Vec<(String, ReorgReport)>,
    /// As it was, and why: it was dropped meanwhile, somebody did not let go of it, or there is no room.
    pub failed: Vec<(String, String)>,
    /// Not begun or not done, as the user wanted to stop or there is no room.
    pub left: Vec<String>,
}

fn reorg_options(object: &ObjectAdvice) -> Result<Option<ReorgOptions>> {
    let Some(way) = object.change() else { return Ok(None) };
    let mut options = ReorgOptions { page_bytes: Some(way.page_bytes), ..ReorgOptions::default() };
    match object.kind {
        ObjectKind::Table => options.method = Some(Setting::Given(way.name.parse()?)),
        ObjectKind::Index => options.format = Some(Setting::Given(way.name.parse()?)),
    }
    Ok(Some(options))
}

/// Writes the objects of a plan anew, one after the other. One that fails leaves the others to be done.
///
/// # Errors
/// When the plan names a method that there is not.
pub fn apply_advice(database: &Database, plan: &AdvicePlan, progress: &dyn Progress) -> Result<Applied> {
    let steps: Vec<&ObjectAdvice> = plan.steps().collect();
    let mut applied = Applied::default();
    for (at, object) in steps.iter().enumerate() {
        let Some(options) = reorg_options(object)? else { continue };
        let counted = Counted { outer: progress, step: at + 1, of: steps.len() };
        let done = if progress.interrupted() { Err(Error::Interrupted) } else { reorg_one(database, &object.name, &options, &counted) };
        match done {
            Ok(report) => applied.done.push((object.name.clone(), report)),
            Err(Error::Interrupted) => {
                applied.left = steps[at..].iter().map(|object| object.name.clone()).collect();
                break;
            }
            Err(error) => {
                applied.failed.push((object.name.clone(), error.to_string()));
                // The next one would need the room, too.
                if matches!(&error, Error::Engine(error) if error.is_no_room()) {
                    applied.left = steps[at + 1..].iter().map(|object| object.name.clone()).collect();
                    break;
                }
            }
        }
    }
    Ok(applied)
}

/// Says which step of how many it is.
struct Counted<'p> {
    outer: &'p dyn Progress,
    step: usize,
    of: usize,
}

impl Progress for Counted<'_> {
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit) {
        self.outer.start(&format!("{}/{} {phase}", self.step, self.of), total, unit);
    }

    fn advance(&self, n: u64) {
        self.outer.advance(n);
    }

    fn finish(&self) {
        self.outer.finish();
    }

    fn interrupted(&self) -> bool {
        self.outer.interrupted()
    }
}
