//! Which tables the thread is visiting: a visitor is a function that is handed rows while their page is
//! latched.
//!
//! A visitor that changed rows of its table would wait for a page that its own thread has latched, for
//! ever. So what changes something asks here first. Reading inside a visitor is harmless.

use super::table::Table;
use crate::core::Core;
use crate::{Error, Result};
use std::cell::RefCell;
use std::ptr;

thread_local! {
    /// Address of the database's core, and table.
    static VISITED: RefCell<Vec<(usize, u32)>> = const { RefCell::new(Vec::new()) };
}

/// The thread visits rows of a table while this lives.
#[derive(Debug)]
pub(crate) struct Visiting(());

impl Drop for Visiting {
    #[inline]
    fn drop(&mut self) {
        VISITED.with_borrow_mut(|visited| _ = visited.pop());
    }
}

fn address(core: &Core) -> usize {
    ptr::from_ref(core).addr()
}

impl Table {
    /// The thread visits rows of this table until what comes back is dropped.
    #[inline]
    pub(crate) fn visit(&self) -> Visiting {
        VISITED.with_borrow_mut(|visited| visited.push((address(&self.core), self.object_id)));
        Visiting(())
    }

    /// Refuses a change of rows inside a visitor of the table.
    pub(crate) fn refuse_inside_visitor(&self) -> Result<()> {
        let place = (address(&self.core), self.object_id);
        match VISITED.with_borrow(|visited| visited.contains(&place)) {
            true => Err(Error::Busy(format!("{} is being visited by this thread; change its rows after the visit", self.object()))),
            false => Ok(()),
        }
    }
}

/// Is the thread inside a visitor of any table of a database?
pub(crate) fn is_visiting(core: &Core) -> bool {
    VISITED.with_borrow(|visited| visited.iter().any(|(visited, _)| *visited == address(core)))
}
