//! What the tables of a foreign database would take.

use crate::foreign::{Foreign, ForeignTable};
use pagefold_utility::{Error, EstimateOptions, EstimateReport, Progress, Proposal, Result, Scratch, Unit, estimate_source};

/// A table, and what it would take.
#[derive(Clone, Debug)]
pub struct TableEstimates {
    /// The table there.
    pub table: ForeignTable,
    /// Under every method, with its primary key and indexes in every format.
    pub report: EstimateReport,
}

/// What all of them would take.
#[derive(Clone, Debug, Default)]
pub struct ForeignEstimate {
    /// By table.
    pub tables: Vec<TableEstimates>,
}

impl TableEstimates {
    /// Bytes under a method: at least, about, at most, with the page size of the table to be.
    #[must_use]
    pub fn table_bytes(&self, method: &str, page_bytes: usize) -> Option<(u64, u64, u64)> {
        let found = self.report.methods.iter().find(|m| m.estimate.method == method && m.estimate.options.page_bytes == page_bytes)?;
        let pages = found.estimate.pages;
        Some((pages.low * page_bytes as u64, found.estimate.size_bytes(), pages.high * page_bytes as u64))
    }

    /// Bytes of the primary key's index and all others in a format: at least, about, at most.
    #[must_use]
    pub fn index_bytes(&self, format: &str, page_bytes: usize) -> (u64, u64, u64) {
        let mut sum = (0, 0, 0);
        for index in &self.report.indexes {
            let line = index.lines.iter().find(|line| {
                let candidate = &line.estimate.candidate;
                candidate.format() == format && candidate.page_bytes == page_bytes
            });
            if let Some(line) = line {
                let pages = line.estimate.pages;
                let page = line.estimate.size_bytes() / pages.value.max(1);
                sum = (sum.0 + pages.low * page, sum.1 + line.estimate.size_bytes(), sum.2 + pages.high * page);
            }
        }
        sum
    }
}

/// Estimates these tables, one after the other.
///
/// # Errors
/// When values of a column have no type in common, or rows cannot be read.
pub fn estimate(
    foreign: &dyn Foreign,
    tables: &[&ForeignTable],
    scratch: &Scratch,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<ForeignEstimate> {
    let mut estimates = ForeignEstimate::default();
    for table in tables {
        progress.start(&format!("types of {}", table.name), None, Unit::Rows);
        let mut source = foreign.source(table)?;
        progress.finish();
        let proposal = |index: &crate::ForeignIndex| Proposal {
            name: index.name.clone(),
            columns: index.columns.iter().map(|(column, direction)| (table.columns[*column].name.clone(), *direction)).collect(),
            unique: index.unique,
        };
        let options = EstimateOptions {
            primary_key: table.names_of(&table.primary_key),
            proposals: table.indexes.iter().map(proposal).collect(),
            ..options.clone()
        };
        let report = estimate_source(source.as_mut(), scratch, &options, progress)?;
        if report.rows != table.rows {
            let reason = format!("{} rows of table \"{}\" came, and it has {}", report.rows, table.name, table.rows);
            return Err(Error::Data(format!("{}: {reason}", foreign.path().display())));
        }
        estimates.tables.push(TableEstimates { table: (*table).clone(), report });
    }
    Ok(estimates)
}
