//! Switching the recording of keys on and off, and which spans of keys are recorded.
//!
//! Spans follow from the separators above the leaves: each has as many leaves in a row as hold [`SPAN_BYTES`], and one in some is recorded, at equal distances. So a span begins and ends where a leaf
//! does, and has several of the largest pages that the index may get, in any format.

use super::tree::{BTree, Step, Target};
use crate::Result;
use crate::index::{Index, IndexFormat, RecordOptions, Spans};
use pagefold_format::key_trace::{KeySpan, KeyTrace};

/// Bytes of a span's leaves: eight leaves of 32 KB whose entries take as little as they may in another format.
const SPAN_BYTES: usize = 256 << 10;
/// Entries of plain leaves may take a fourth elsewhere.
const SPAN_BYTES_PLAIN: usize = 4 * SPAN_BYTES;

/// Spans that are recorded at least; where there are fewer in all, everything is.
const SPANS_MIN: u32 = 16;

impl Index {
    /// Records which keys are asked for, from now on: look-ups, changes, and where scans come to a leaf.
    ///
    /// # Errors
    /// When they are being recorded already, an option is out of range, or a page above the leaves cannot be read.
    pub fn record_keys(&self, options: &RecordOptions) -> Result<()> {
        self.check_usable()?;
        let spans = self.tree().spans(options.one_in)?;
        self.recorder_made().begin(spans, options, self.manager().clock().monotonic())
    }

    /// Ends recording. The trace; `None` when nothing was recorded.
    pub fn stop_recording_keys(&self) -> Option<KeyTrace> {
        self.recorder()?.end(self.manager().clock().monotonic())
    }
}

impl BTree<'_> {
    /// Leaves with where they begin, from left to right, as the pages above list them.
    fn leaves_in_order(&self, mut visit: impl FnMut(&[u8], u32)) -> Result<()> {
        let mut from = Some(Vec::new());
        while let Some(start) = from.take() {
            let mut children: Vec<(Vec<u8>, u32)> = Vec::new();
            let mut high: Option<Vec<u8>> = None;
            let leaf = self.leaf(Target::At(&start), |step| match step {
                Step::Start => {
                    children.clear();
                    high = None;
                }
                Step::Down(node, i) if node.level() == 1 => {
                    children.extend((i..=node.separator_count()).map(|child| {
                        let low = if child == i { start.clone() } else { node.separator(child - 1).to_vec() };
                        (low, node.child(child))
                    }));
                }
                Step::Down(node, i) => {
                    if i < node.separator_count() {
                        high = Some(node.separator(i).to_vec());
                    }
                }
            })?;
            if let Some(leaf) = leaf.filter(|_| children.is_empty()) {
                children.push((start, leaf.number()));
            }
            children.iter().for_each(|(low, page)| visit(low, *page));
            from = high;
        }
        Ok(())
    }

    /// The spans to record, where one in so many requests is to be kept.
    fn spans(&self, one_in: u32) -> Result<Spans> {
        let (leaves, entries) = {
            let facts = self.data_set.facts();
            (facts.data_pages, facts.rows)
        };
        let span_bytes = if self.index.attributes().format == IndexFormat::Plain { SPAN_BYTES_PLAIN } else { SPAN_BYTES };
        let leaves_per_span = (span_bytes / self.data_set.page_bytes()).max(1) as u32;
        let spans = leaves / leaves_per_span;
        let one_in = (spans / SPANS_MIN).clamp(1, one_in.max(1));
        if one_in == 1 {
            return Ok(Spans { spans: vec![KeySpan::all()], one_in, entries, ..Spans::default() });
        }
        let mut recorded = Spans { one_in, entries, page_count: self.data_set.page_count(), ..Spans::default() };
        let mut place = 0;
        self.leaves_in_order(|low, page| {
            let (span, first) = (place / leaves_per_span, place % leaves_per_span == 0);
            // In the middle of each stretch of so many spans.
            let is_recorded = span % one_in == one_in / 2;
            if first && is_recorded {
                recorded.spans.push(KeySpan { low: low.to_vec(), high: None });
            } else if first && let Some(before) = recorded.spans.last_mut().filter(|before| before.high.is_none()) {
                before.high = Some(low.to_vec());
            }
            if is_recorded {
                recorded.leaves.push(page);
            }
            place += 1;
        })?;
        Ok(recorded)
    }
}
