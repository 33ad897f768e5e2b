//! Room that a bank takes, as it was after each kill: it must level off, and stay near to what the same rows take when they are inserted anew.
//!
//! A file never gets shorter, and while an auditor looks at its snapshot, all large values that it may come to stay: so the file of a table is compared with itself, and roughly with one that is new. Pages that nobody
//! owns any more are found by CHECK.

use crate::bank::Form;
use std::collections::BTreeMap;

/// Pages that make no difference: the page that inserts go to, ends of data sets.
const SLACK_PAGES: u64 = 10;
/// The same of files of tables: large values of transactions at work and of those that an auditor may come to.
const SLACK_LARGE_PAGES: u64 = 600;
/// Bytes of files that make no difference: segments of the log come with the work between two checkpoints.
const SLACK_BYTES: u64 = 24 << 20;
/// With fewer kills there are no quarters to compare.
const KILLS_MIN: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Pages of a table that have rows.
    Rows,
    /// Pages of the files of a table up to the last one that was ever used.
    Table,
    /// The same of an index.
    Index,
}

pub(crate) type Pages = BTreeMap<(Kind, String), u64>;

#[derive(Default)]
pub(crate) struct Space {
    /// Pages, and bytes of all files.
    course: Vec<(Pages, u64)>,
}

impl Space {
    pub(crate) fn note(&mut self, pages: Pages, bytes: u64) {
        self.course.push((pages, bytes));
    }

    /// Panics unless the last quarter is like the second, and all take no more than so many times the pages that they take anew. Rows change between 40 bytes and nearly a page: a short one that has moved keeps a page from
    /// a long one.
    pub(crate) fn assert_bounded(&self, form: Form, fresh: &Pages) {
        let method = form.method;
        let last = &self.course[self.course.len() - 1];
        for (what, fresh) in fresh {
            let (kind, name) = what;
            let (times, slack) = match kind {
                Kind::Rows => (4, SLACK_PAGES),
                Kind::Index => (2, SLACK_PAGES),
                Kind::Table => (2, SLACK_LARGE_PAGES),
            };
            let now = last.0[what];
            let course: Vec<u64> = self.course.iter().step_by(self.course.len().div_ceil(16)).map(|at| at.0[what]).collect();
            println!("{method}, {kind:?} {name}: {now} pages, anew {fresh}; {course:?}");
            assert!(now <= times * fresh + slack, "{method}, {kind:?} {name}: {now} pages, anew {fresh}");
            self.assert_level(&format!("{method}, {kind:?} {name}: pages"), |at| at.0[what], slack);
        }
        println!("{method}: files of {} KB", last.1 >> 10);
        self.assert_level(&format!("{method}: bytes of files"), |at| at.1, SLACK_BYTES);
    }

    fn assert_level(&self, what: &str, of: impl Fn(&(Pages, u64)) -> u64, slack: u64) {
        let kills = self.course.len();
        if kills < KILLS_MIN {
            return;
        }
        let most = |part: &[(Pages, u64)]| part.iter().map(&of).max().unwrap();
        let (then, now) = (most(&self.course[kills / 4..kills / 2]), most(&self.course[kills - kills / 4..]));
        assert!(now <= then + then / 4 + slack, "{what}: {now} in the last quarter, {then} in the second");
    }
}
