//! The I/O work area: a few pinned buffers beside the pools, in which pages are checked, expanded and folded on their way.
//!
//! Invariant: never more than `limit` buffers exist; a thread that wants another waits. Nobody holds two.

use pagefold_io::AlignedBuffer;
use parking_lot::{Condvar, Mutex};
use std::ops::{Deref, DerefMut};

#[derive(Debug)]
struct Stock {
    buffers: Vec<AlignedBuffer>,
    made: usize,
}

/// Buffers of one size.
#[derive(Debug)]
pub(crate) struct WorkArea {
    buffer_bytes: usize,
    limit: usize,
    stock: Mutex<Stock>,
    returned: Condvar,
}

/// A borrowed buffer.
pub(crate) struct WorkBuffer<'a> {
    area: &'a WorkArea,
    buffer: Option<AlignedBuffer>,
}

impl WorkArea {
    pub(crate) fn new(buffer_bytes: usize, limit: usize) -> WorkArea {
        WorkArea { buffer_bytes, limit, stock: Mutex::new(Stock { buffers: Vec::new(), made: 0 }), returned: Condvar::new() }
    }

    /// Bytes of each buffer.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Borrows a buffer; waits when all are out.
    pub(crate) fn take(&self) -> WorkBuffer<'_> {
        let mut stock = self.stock.lock();
        loop {
            if let Some(buffer) = stock.buffers.pop() {
                return WorkBuffer { area: self, buffer: Some(buffer) };
            }
            if stock.made < self.limit {
                stock.made += 1;
                drop(stock);
                return WorkBuffer { area: self, buffer: Some(AlignedBuffer::new(self.buffer_bytes, 4096)) };
            }
            self.returned.wait(&mut stock);
        }
    }
}

impl Deref for WorkBuffer<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or_default()
    }
}

impl DerefMut for WorkBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for WorkBuffer<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.area.stock.lock().buffers.push(buffer);
            self.area.returned.notify_one();
        }
    }
}
