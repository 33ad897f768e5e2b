//! All objects of a database together.

use super::objects::{Advised, Asked, ObjectAdvice, ObjectKind, advise_index, advise_table};
use super::pools::divide;
use super::{AdviseOptions, Calibration};
use crate::{Error, Progress, Result};
use pagefold_advisor::{Goal, Load};
use pagefold_engine::database::Database;

/// Sums over all objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Bytes of all pages.
    pub size_bytes: u64,
    /// Seconds of processors that the workload is predicted to take; 0 without one.
    pub cpu_s: f64,
    /// Pages that it is predicted to read, with the memory of the pools divided as is best; 0 without a workload.
    pub reads: f64,
}

/// Busy for so large a part of the time, processors are what limits.
const CPU_BOUND: f64 = 0.8;

/// What limits the programs that do a workload, where that is told.
fn load_of(database: &Database, options: &AdviseOptions) -> Load {
    let Some(workload) = &options.workload else { return Load::default() };
    let bytes = |name: &String| -> u64 {
        let of_table = database.table(name).map(|table| table.data_sets().map(|d| u64::from(d.page_count()) * d.page_bytes() as u64).sum());
        of_table.unwrap_or_else(|_| {
            database.index(name).map_or(0, |index| u64::from(index.data_set().page_count()) * index.data_set().leaf_bytes() as u64)
        })
    };
    let used: u64 = workload.objects.keys().map(bytes).sum();
    let busy = workload.cpu_s.zip(workload.elapsed_s).filter(|(_, elapsed_s)| *elapsed_s > 0.0).map(|(cpu_s, elapsed_s)| cpu_s / elapsed_s);
    Load { memory_bound: Some(used > options.memory_bytes), cpu_bound: busy.map(|busy| busy > CPU_BOUND), hit_ratio: None }
}

/// What to do.
#[derive(Clone, Debug)]
pub struct AdvicePlan {
    /// Tables by name, each followed by its indexes.
    pub objects: Vec<ObjectAdvice>,
    /// As it is.
    pub before: Totals,
    /// As it would be.
    pub after: Totals,
    /// What was measured, before or now.
    pub calibration: Calibration,
}

impl AdvicePlan {
    /// Those that are to be written anew, in the order in which that is done: tables before their indexes, which a table that is written anew gets anew as they are.
    pub fn steps(&self) -> impl Iterator<Item = &ObjectAdvice> {
        let of = |kind| self.objects.iter().filter(move |object| object.kind == kind && object.change().is_some());
        of(ObjectKind::Table).chain(of(ObjectKind::Index))
    }
}

/// The tables and indexes to look at: each table with its indexes behind it.
fn chosen(database: &Database, only: &[String]) -> Result<Vec<(String, ObjectKind)>> {
    let (tables, mut indexes) = (database.table_names(), database.index_names());
    let mut whole: Vec<String> = Vec::new();
    for name in only {
        // All partitions of a table, or all of an index.
        if let Ok(table) = database.partitioned_table(name) {
            whole.extend(table.own_partitions().iter().map(|partition| partition.table_name().to_owned()));
        } else if let Some((_, of_index)) = database.partitioned_index(name)? {
            whole.extend(of_index);
        } else if tables.contains(name) || indexes.contains(name) {
            whole.push(name.clone());
        } else {
            return Err(crate::drop::no_object(database, name));
        }
    }
    let is_wanted = |name: &String| only.is_empty() || whole.contains(name);
    let mut found = Vec::new();
    for table in tables {
        let with_table = is_wanted(&table);
        // One that cannot be opened has no indexes that can be looked at; they are said for themselves.
        let own: Vec<String> = database
            .table(&table)
            .map_or_else(|_| Vec::new(), |table| table.all_indexes().iter().map(|index| index.name().to_owned()).collect());
        if with_table {
            found.push((table, ObjectKind::Table));
        }
        for index in own {
            indexes.retain(|other| *other != index);
            if with_table || is_wanted(&index) {
                found.push((index, ObjectKind::Index));
            }
        }
    }
    found.extend(indexes.into_iter().filter(|index| is_wanted(index)).map(|index| (index, ObjectKind::Index)));
    Ok(found)
}

/// Advises on tables and indexes of a database.
///
/// # Errors
/// When one of those asked for does not exist, one cannot be read for another reason than damage, time is to be least and there is no workload, or the user wants to stop.
pub fn advise(database: &Database, options: &AdviseOptions, progress: &dyn Progress) -> Result<AdvicePlan> {
    if options.goal == Goal::Time && options.workload.is_none() {
        return Err(Error::Usage("which way takes least time depends on what is done: a workload is needed".into()));
    }
    let names = chosen(database, &options.only)?;
    let mut calibration = options.calibration.clone();
    let load = load_of(database, options);
    let mut objects = Vec::with_capacity(names.len());
    for (name, kind) in names {
        let operations = options.workload.as_ref().map(|workload| workload.objects.get(&name).copied().unwrap_or_default());
        let hit_ratio = operations.filter(|all| all.getpages > 0).map(|all| 1.0 - (all.page_reads as f64 / all.getpages as f64).min(1.0));
        let asked = Asked { options, load: Load { hit_ratio, ..load }, operations };
        let advice = match kind {
            ObjectKind::Table => advise_table(database, &name, &asked, &mut calibration, progress),
            ObjectKind::Index => advise_index(database, &name, &asked, &mut calibration, progress),
        };
        match advice {
            Ok(advice) => objects.push(advice),
            // It was dropped meanwhile.
            Err(Error::Engine(pagefold_engine::Error::Unknown { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    divide(database, &mut objects, options, progress)?;
    let mut plan = AdvicePlan { objects, before: Totals::default(), after: Totals::default(), calibration };
    for object in &plan.objects {
        let now = object.now.as_ref().map_or(0, |now| now.size_bytes);
        plan.before.size_bytes += now;
        plan.after.size_bytes += object.change().map_or(now, |way| way.size_bytes.value);
        if let Some(pool) = &object.pool {
            plan.before.reads += pool.reads_now;
            plan.after.reads += pool.reads;
        }
        if let Advised::Decided(decided) = &object.advised {
            let present = &decided.ways[decided.subject.present];
            plan.before.cpu_s += present.cpu_s.unwrap_or(0.0);
            plan.after.cpu_s += object.change().unwrap_or(present).cpu_s.unwrap_or(0.0);
        }
    }
    Ok(plan)
}
