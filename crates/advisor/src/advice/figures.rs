//! What rules look at.

use crate::choice::Cost;
use crate::sample::Interval;

/// What limits the programs that use the object, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Is there less memory for pages than the objects take?
    pub memory_bound: Option<bool>,
    /// Are the processors busy nearly all the time?
    pub cpu_bound: Option<bool>,
    /// The part of the requests for its pages that finds them in memory.
    pub hit_ratio: Option<f64>,
}

/// A table or an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// Rows, or RIDs of an index.
    pub rows: u64,
    /// Percent of each page that is left free.
    pub pctfree: u8,
    /// The most rows on a page, where that is limited.
    pub maxrows: Option<u16>,
    /// Number of the way without compression, with the page size in use.
    pub base: usize,
    /// Number of the way it is stored in now, written anew.
    pub present: usize,
    /// Bytes of the pages that it takes now.
    pub size_now: u64,
    /// What limits those who use it.
    pub load: Load,
}

/// One way to store it.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Method of a table, format of an index.
    pub name: &'static str,
    /// Page size: of leaves in memory.
    pub page_bytes: usize,
    /// Bytes of a page on disk.
    pub disk_page_bytes: usize,
    /// Bytes of all pages.
    pub size_bytes: Interval,
    /// Bytes of all pages in memory.
    pub memory_bytes: u64,
    /// Rows, or entries, on a page.
    pub rows_per_page: f64,
    /// Of leaves that are folded: compressed over uncompressed.
    pub fold_ratio: Option<f64>,
    /// The part of a leaf's buffer in memory that stays unused as its page on disk is full before.
    pub buffer_unused: f64,
    /// What it costs on this machine; `None`: not known.
    pub cost: Option<Cost>,
    /// Seconds of processors that a workload is predicted to take, all pages in memory.
    pub cpu_s: Option<f64>,
    /// Pages that it is predicted to read.
    pub reads: Option<f64>,
    /// Seconds that it is predicted to take: processors, and waiting for pages.
    pub time_s: Option<f64>,
}

impl Way {
    /// The part of the base's bytes that it saves; negative when it is larger.
    #[must_use]
    pub fn saving(&self, base: &Way) -> f64 {
        1.0 - self.size_bytes.value as f64 / base.size_bytes.value.max(1) as f64
    }

    /// Its name for people: `page of 8 KB`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} of {} KB", self.name, self.page_bytes / 1024)
    }
}
