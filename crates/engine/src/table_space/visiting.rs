//! Whether the thread is visiting: a visitor is a function that is handed rows while their page is latched.
//!
//! A visitor that changed or locked rows would wait for a page that its own thread has latched, or for another visitor
//! that waits for that, for ever. So what changes something asks here first. Reading inside a visitor is harmless.

use super::table::Table;
use crate::core::Core;
use std::cell::{Cell, RefCell};
use std::ptr;

thread_local! {
    /// Address of a database's core, and how many visits of it there are. Nearly always a thread visits one database.
    static VISITED: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
    /// Addresses of others, which are visited meanwhile.
    static OTHERS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The thread visits rows of a table while this lives.
#[derive(Debug)]
pub(crate) struct Visiting {
    is_other: bool,
}

impl Drop for Visiting {
    #[inline]
    fn drop(&mut self) {
        if self.is_other {
            OTHERS.with_borrow_mut(|others| _ = others.pop());
        } else {
            let (address, visits) = VISITED.get();
            VISITED.set((address, visits - 1));
        }
    }
}

#[inline]
fn address(core: &Core) -> usize {
    ptr::from_ref(core).addr()
}

impl Table {
    /// The thread visits rows of this table until what comes back is dropped.
    #[inline]
    pub(crate) fn visit(&self) -> Visiting {
        let (address, (visited, visits)) = (address(&self.core), VISITED.get());
        let is_other = visits > 0 && visited != address;
        if is_other {
            OTHERS.with_borrow_mut(|others| others.push(address));
        } else {
            VISITED.set((address, visits + 1));
        }
        Visiting { is_other }
    }
}

/// Is the thread inside a visitor of any table of a database?
pub(crate) fn is_visiting(core: &Core) -> bool {
    let (visited, visits) = VISITED.get();
    visits > 0 && visited == address(core) || OTHERS.with_borrow(|others| others.contains(&address(core)))
}
