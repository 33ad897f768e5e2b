//! Whether the thread is visiting: a visitor is a function that is handed rows while their page is latched.
//!
//! A visitor that changed or locked rows would wait for a page that its own thread has latched, or for another visitor
//! that waits for that, for ever. So what changes something asks here first. Reading inside a visitor is harmless.

use super::table::Table;
use crate::core::Core;
use std::cell::RefCell;
use std::ptr;

thread_local! {
    /// Addresses of the databases' cores.
    static VISITED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
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
        VISITED.with_borrow_mut(|visited| visited.push(address(&self.core)));
        Visiting(())
    }
}

/// Is the thread inside a visitor of any table of a database?
pub(crate) fn is_visiting(core: &Core) -> bool {
    VISITED.with_borrow(|visited| visited.contains(&address(core)))
}
