//! What is done to an object, and what it takes of the processors: operations counted x cost of one.

/// Operations on a table or an index, as they are counted while it is used (`docs/advice.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rows asked for one by one that are the same for every snapshot; of an index leaves, for reading.
    pub lookups: u64,
    /// Rows asked for one by one of which versions had to be asked, as before a change.
    pub snapshot_lookups: u64,
    /// Values of those rows that were wanted.
    pub values_read: u64,
    /// Rows that scans by pages came to.
    pub rows_scanned: u64,
    /// Values of those that were wanted.
    pub values_scanned: u64,
    /// Rows, or entries, inserted one by one.
    pub inserts: u64,
    /// Rows, or entries, inserted together with others.
    pub batch_inserts: u64,
    /// Rows changed.
    pub updates: u64,
    /// Rows, or entries, deleted.
    pub deletes: u64,
    /// Pages asked for.
    pub getpages: u64,
    /// Pages that were not in memory.
    pub page_reads: u64,
}

/// What one operation takes, in nanoseconds of a processor, all pages in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperationCosts {
    /// A row by its number, or a descent of an index to an entry, without the values.
    pub lookup_ns: f64,
    /// A row of which versions have to be asked, without the values and the descent.
    pub snapshot_lookup_ns: f64,
    /// Each value of that row.
    pub value_ns: f64,
    /// A row of a scan, without its values.
    pub scan_ns: f64,
    /// Each value of that.
    pub scan_value_ns: f64,
    /// A row, or an entry, inserted by a transaction of a hundred.
    pub insert_ns: f64,
    /// The same, together with others that fill pages.
    pub batch_insert_ns: f64,
    /// A column of fixed width changed.
    pub update_ns: f64,
    /// A row, or an entry, deleted, and later taken out.
    pub delete_ns: f64,
}

impl OperationCosts {
    /// Every cost with its name.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, f64); 9] {
        [
            ("lookup_ns", self.lookup_ns),
            ("snapshot_lookup_ns", self.snapshot_lookup_ns),
            ("value_ns", self.value_ns),
            ("scan_ns", self.scan_ns),
            ("scan_value_ns", self.scan_value_ns),
            ("insert_ns", self.insert_ns),
            ("batch_insert_ns", self.batch_insert_ns),
            ("update_ns", self.update_ns),
            ("delete_ns", self.delete_ns),
        ]
    }

    /// The cost of this name, to be set; `None`: there is none.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "lookup_ns" => &mut self.lookup_ns,
            "snapshot_lookup_ns" => &mut self.snapshot_lookup_ns,
            "value_ns" => &mut self.value_ns,
            "scan_ns" => &mut self.scan_ns,
            "scan_value_ns" => &mut self.scan_value_ns,
            "insert_ns" => &mut self.insert_ns,
            "batch_insert_ns" => &mut self.batch_insert_ns,
            "update_ns" => &mut self.update_ns,
            "delete_ns" => &mut self.delete_ns,
            _ => return None,
        })
    }
}

impl Operations {
    /// Every count with its name.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, u64); 11] {
        [
            ("lookups", self.lookups),
            ("snapshot_lookups", self.snapshot_lookups),
            ("values_read", self.values_read),
            ("rows_scanned", self.rows_scanned),
            ("values_scanned", self.values_scanned),
            ("inserts", self.inserts),
            ("batch_inserts", self.batch_inserts),
            ("updates", self.updates),
            ("deletes", self.deletes),
            ("getpages", self.getpages),
            ("page_reads", self.page_reads),
        ]
    }

    /// The count of this name, to be set; `None`: there is none.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "lookups" => &mut self.lookups,
            "snapshot_lookups" => &mut self.snapshot_lookups,
            "values_read" => &mut self.values_read,
            "rows_scanned" => &mut self.rows_scanned,
            "values_scanned" => &mut self.values_scanned,
            "inserts" => &mut self.inserts,
            "batch_inserts" => &mut self.batch_inserts,
            "updates" => &mut self.updates,
            "deletes" => &mut self.deletes,
            "getpages" => &mut self.getpages,
            "page_reads" => &mut self.page_reads,
            _ => return None,
        })
    }

    /// What was counted since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Operations) -> Operations {
        let mut since = *self;
        for (name, before) in earlier.fields() {
            if let Some(count) = since.field_mut(name) {
                *count = count.saturating_sub(before);
            }
        }
        since
    }

    /// Was anything counted?
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Operations::default()
    }

    /// Nanoseconds of processors that they take, all pages in memory.
    #[must_use]
    pub fn cpu_ns(&self, costs: &OperationCosts) -> f64 {
        let parts = [
            (self.lookups, costs.lookup_ns),
            (self.snapshot_lookups, costs.snapshot_lookup_ns),
            (self.values_read, costs.value_ns),
            (self.rows_scanned, costs.scan_ns),
            (self.values_scanned, costs.scan_value_ns),
            (self.inserts, costs.insert_ns),
            (self.batch_inserts, costs.batch_insert_ns),
            (self.updates, costs.update_ns),
            (self.deletes, costs.delete_ns),
        ];
        parts.iter().map(|(count, ns)| *count as f64 * ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_counts_once() {
        for (at, (name, _)) in Operations::default().fields().iter().enumerate() {
            let mut operations = Operations::default();
            *operations.field_mut(name).unwrap() = 3;
            assert_eq!(operations.fields()[at], (*name, 3));
            assert_eq!(operations.since(&operations), Operations::default());
            let mut costs = OperationCosts::default();
            for (number, (name, _)) in OperationCosts::default().fields().iter().enumerate() {
                *costs.field_mut(name).unwrap() = f64::from(10u32.pow(number as u32));
            }
            let expected = if at < 9 { 3.0 * 10f64.powi(at as i32) } else { 0.0 };
            assert!((operations.cpu_ns(&costs) - expected).abs() < 1e-6, "{name}");
        }
        assert!(Operations::default().field_mut("no").is_none() && OperationCosts::default().field_mut("no").is_none());
    }
}
