//! One table or index: the ways to store it, and what was decided.

use super::calibrate::{CostsByWay, format_key};
use super::{AdviseOptions, Calibration, PoolShare};
use crate::estimate::{estimate_index, estimate_table};
use crate::{Costs, Error, EstimateOptions, EstimateReport, ObjectNow, Progress, Result};
use pagefold_advisor::{Decision, IndexCandidate, IndexEstimate, LeafFormat, Load, Operations, Subject, TableEstimate, Way, decide};
use pagefold_engine::database::Database;
use std::fmt;

/// A table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table, or a range partition.
    Table,
    /// An index, or that of a range partition.
    Index,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == ObjectKind::Table { "table" } else { "index" })
    }
}

/// What there is to be said about an object.
#[derive(Clone, Debug)]
pub enum Advised {
    /// The ways there are, and which is best.
    Decided(Decided),
    /// Nothing: it is empty, or has no keys that pages take. Why.
    Nothing(String),
    /// It is damaged, or its file is refused. Why.
    Damaged(String),
}

/// What is asked about one object.
pub(super) struct Asked<'a> {
    pub(super) options: &'a AdviseOptions,
    pub(super) load: Load,
    /// What is done to it; `None` without a workload.
    pub(super) operations: Option<Operations>,
}

/// The ways there are, and which is best.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The object, as rules see it.
    pub subject: Subject,
    /// All ways.
    pub ways: Vec<Way>,
    /// Which is best, and why.
    pub decision: Decision,
}

/// Advice on one object.
#[derive(Clone, Debug)]
pub struct ObjectAdvice {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// How it is stored now; `None` where it is damaged.
    pub now: Option<ObjectNow>,
    /// Is what is said from a sample?
    pub is_sample: bool,
    /// What it has of the pools' memory; `None` without a workload.
    pub pool: Option<PoolShare>,
    /// What there is to be said.
    pub advised: Advised,
}

impl ObjectAdvice {
    fn without_ways(name: &str, kind: ObjectKind, advised: Advised) -> ObjectAdvice {
        ObjectAdvice { name: name.into(), kind, now: None, is_sample: false, pool: None, advised }
    }

    /// The way that it is to be written anew in; `None`: it stays.
    #[must_use]
    pub fn change(&self) -> Option<&Way> {
        match &self.advised {
            Advised::Decided(decided) if decided.decision.change => decided.ways.get(decided.decision.best),
            _ => None,
        }
    }

    /// Why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        match &self.advised {
            Advised::Decided(decided) => &decided.decision.reason,
            Advised::Nothing(reason) | Advised::Damaged(reason) => reason,
        }
    }

    /// The arguments of the command that carries it out, without the database; none where it stays.
    #[must_use]
    pub fn command(&self) -> Option<Vec<String>> {
        let way = self.change()?;
        let how = if self.kind == ObjectKind::Table { "--compress" } else { "--format" };
        let size = format!("{}K", way.page_bytes / 1024);
        Some(["reorg", "DB", &self.name, how, way.name, "--page-size", &size].map(str::to_owned).to_vec())
    }
}

fn estimate_options(options: &AdviseOptions) -> EstimateOptions {
    EstimateOptions { sample_pages: options.sample_pages, seed: options.seed, costs: Costs::Unknown, ..EstimateOptions::default() }
}

/// What an error of one object says about it, where it is about nothing else.
fn of_error(name: &str, kind: ObjectKind, error: Error) -> Result<ObjectAdvice> {
    if error.is_damage() || error.is_refusal() {
        return Ok(ObjectAdvice::without_ways(name, kind, Advised::Damaged(error.to_string())));
    }
    Err(error)
}

impl Asked<'_> {
    /// Does it matter what the ways cost? Not where there is nothing to save and nothing was done.
    fn wants_costs(&self, now: &ObjectNow, ways: &[Way], base: &str) -> bool {
        let is_used = self.operations.is_some_and(|operations| !operations.is_none());
        let is_worth = |way: &Way| pagefold_advisor::is_worth(now.size_bytes, way.size_bytes.value);
        is_used || pagefold_advisor::is_large(now.size_bytes) && (now.method != base || ways.iter().any(is_worth))
    }

    /// Enters what ways cost, and what the workload takes.
    fn enter(&self, ways: &mut [Way], costs: &CostsByWay, name_of: impl Fn(&Way) -> String) {
        for way in ways {
            let Some(own) = costs.get(&name_of(way)) else { continue };
            way.cost = Some(own.cost);
            way.cpu_s = self.operations.filter(|operations| !operations.is_none()).map(|all| all.cpu_ns(&own.operations) / 1e9);
            way.time_s = way.cpu_s;
        }
    }
}

/// Advice on a table.
pub(super) fn advise_table(
    database: &Database,
    name: &str,
    asked: &Asked<'_>,
    calibration: &mut Calibration,
    progress: &dyn Progress,
) -> Result<ObjectAdvice> {
    let found = database.table(name).map_err(Error::from).and_then(|table| {
        let attributes = table.attributes_now();
        if table.row_count() == 0 {
            return Ok((attributes, None));
        }
        let report = estimate_table(database, name, &estimate_options(asked.options), progress)?;
        let now = report.now.clone().ok_or_else(|| Error::Data(format!("table \"{name}\": nothing is said of what there is")))?;
        let mut ways: Vec<Way> = report.methods.iter().map(|m| way_of_table(&m.estimate)).collect();
        if asked.wants_costs(&now, &ways, "none") {
            // Pages are as large as they are now.
            asked.enter(&mut ways, calibration.of_table(database, &table, progress)?, |way| way.name.to_owned());
        }
        Ok((attributes, Some((report, now, ways))))
    });
    let (attributes, (report, now, ways)) = match found {
        Ok((attributes, Some(found))) => (attributes, found),
        Ok((_, None)) => return Ok(ObjectAdvice::without_ways(name, ObjectKind::Table, Advised::Nothing("it is empty".into()))),
        Err(error) => return of_error(name, ObjectKind::Table, error),
    };
    let EstimateReport { sample, rows, .. } = report;
    let subject = |base, present| Subject {
        rows,
        pctfree: attributes.pctfree,
        maxrows: Some(attributes.maxrows),
        base,
        present,
        size_now: now.size_bytes,
        load: asked.load,
    };
    Ok(decided((name, ObjectKind::Table), "none", (now.clone(), sample.is_some()), ways, subject, asked.options))
}

fn way_of_table(e: &TableEstimate) -> Way {
    Way {
        name: e.method,
        page_bytes: e.options.page_bytes,
        disk_page_bytes: e.options.page_bytes,
        size_bytes: e.pages.map(|pages| pages * e.options.page_bytes as u64),
        memory_bytes: e.size_bytes(),
        rows_per_page: e.rows as f64 / e.data_pages.value.max(1) as f64,
        fold_ratio: None,
        buffer_unused: 0.0,
        cost: None,
        cpu_s: None,
        reads: None,
        time_s: None,
    }
}

/// Advice on an index.
pub(super) fn advise_index(
    database: &Database,
    name: &str,
    asked: &Asked<'_>,
    calibration: &mut Calibration,
    progress: &dyn Progress,
) -> Result<ObjectAdvice> {
    let found = database.index(name).map_err(Error::from).and_then(|index| {
        index.check_usable()?;
        let attributes = index.attributes_now();
        if index.data_set().facts().rows == 0 {
            return Ok((attributes, None));
        }
        let EstimateReport { now, mut indexes, sample, rows, .. } =
            estimate_index(database, name, &estimate_options(asked.options), progress)?;
        let (Some(now), Some(estimates)) = (now, indexes.pop()) else {
            return Err(Error::Data(format!("index \"{name}\": nothing is said of what there is")));
        };
        let able: Vec<&IndexEstimate> = estimates.lines.iter().map(|line| &line.estimate).filter(|e| e.key_too_long.is_none()).collect();
        let mut ways: Vec<Way> = able.iter().map(|e| way_of_index(e)).collect();
        if asked.wants_costs(&now, &ways, "plain") {
            let candidates: Vec<IndexCandidate> = able.iter().map(|e| e.candidate).collect();
            let costs = calibration.of_index(database, &index, &candidates, progress)?;
            asked.enter(&mut ways, costs, |way| format_key(way.name, way.page_bytes));
        }
        Ok((attributes, Some((sample.is_some(), rows, now, ways))))
    });
    let (attributes, (is_sample, rows, now, ways)) = match found {
        Ok((attributes, Some(found))) => (attributes, found),
        Ok((_, None)) => return Ok(ObjectAdvice::without_ways(name, ObjectKind::Index, Advised::Nothing("it is empty".into()))),
        Err(error) => return of_error(name, ObjectKind::Index, error),
    };
    let subject = |base, present| Subject {
        rows,
        pctfree: attributes.pctfree,
        maxrows: None,
        base,
        present,
        size_now: now.size_bytes,
        load: asked.load,
    };
    Ok(decided((name, ObjectKind::Index), "plain", (now.clone(), is_sample), ways, subject, asked.options))
}

fn way_of_index(e: &IndexEstimate) -> Way {
    Way {
        name: e.candidate.format(),
        page_bytes: e.candidate.page_bytes,
        disk_page_bytes: e.candidate.disk_bytes(),
        size_bytes: e.pages.map(|pages| pages * e.candidate.disk_bytes() as u64),
        memory_bytes: e.leaf_pages.value * e.candidate.page_bytes as u64 + e.non_leaf_pages * e.candidate.disk_bytes() as u64,
        rows_per_page: e.rids as f64 / e.leaf_pages.value.max(1) as f64,
        fold_ratio: (e.candidate.format == LeafFormat::Fold).then(|| e.ratio()),
        buffer_unused: e.buffer_unused(),
        cost: None,
        cpu_s: None,
        reads: None,
        time_s: None,
    }
}

/// Decides among ways; the base is the way of this name with the page size nearest to the one in use.
fn decided(
    (name, kind): (&str, ObjectKind),
    base: &str,
    (now, is_sample): (ObjectNow, bool),
    ways: Vec<Way>,
    subject: impl Fn(usize, usize) -> Subject,
    options: &AdviseOptions,
) -> ObjectAdvice {
    let present = ways.iter().position(|way| way.name == now.method && way.page_bytes == now.page_bytes);
    let bases = ways.iter().enumerate().filter(|(_, way)| way.name == base);
    let base = bases.min_by_key(|(_, way)| way.page_bytes.abs_diff(now.page_bytes)).map(|(at, _)| at);
    let advised = match (base, present) {
        (Some(base), Some(present)) => {
            let subject = subject(base, present);
            let decision = decide(&subject, &ways, options.goal);
            Advised::Decided(Decided { subject, ways, decision })
        }
        _ => Advised::Nothing("its rows or keys are too long for every other way".into()),
    };
    ObjectAdvice { name: name.into(), kind, now: Some(now), is_sample, pool: None, advised }
}
