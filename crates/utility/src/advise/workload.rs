//! What programs did to tables and indexes: a JSON document, which a program writes from the counters of its open database.
//!
//! `{"version": 1, "elapsed_s": 60.0, "cpu_s": 31.5, "objects": {"orders": {"lookups": 120000, ...}}}`; `elapsed_s` and `cpu_s` may lack.
//!
//! Invariant: counts that were read are whole numbers; times are finite and not negative.

use crate::{Error, Result};
use pagefold_advisor::Operations;
use pagefold_engine::CounterValues;
use pagefold_engine::database::Database;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

const VERSION: u64 = 1;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// By name of the table or index; of a partitioned one by those of its partitions.
    pub objects: BTreeMap<String, Operations>,
    /// How long it took.
    pub elapsed_s: Option<f64>,
    /// What the processors had to do meanwhile.
    pub cpu_s: Option<f64>,
    /// How long was waited for pages, in nanoseconds, and for how many: what a read takes on this device.
    pub read_wait_ns: u64,
    /// Pages that were waited for.
    pub waited_reads: u64,
}

/// Fewer reads say little about the device.
const READS_MIN: u64 = 100;

fn operations(counters: &CounterValues) -> Operations {
    let pages = [counters.sequential_prefetch_pages, counters.dynamic_prefetch_pages, counters.list_prefetch_pages];
    Operations {
        lookups: counters.lookups,
        snapshot_lookups: counters.snapshot_lookups,
        values_read: counters.values_read,
        rows_scanned: counters.rows_scanned,
        values_scanned: counters.values_scanned,
        inserts: counters.inserts,
        batch_inserts: counters.batch_inserts,
        updates: counters.updates,
        deletes: counters.deletes,
        getpages: counters.getpages,
        page_reads: counters.synchronous_reads + pages.iter().sum::<u64>(),
    }
}

fn wrong(what: &str) -> Error {
    Error::Data(format!("a workload: {what}"))
}

impl Workload {
    /// What was counted since the database was opened, of objects that can be opened.
    #[must_use]
    pub fn of(database: &Database) -> Workload {
        let mut workload = Workload::default();
        for name in database.table_names() {
            let Ok(table) = database.table(&name) else { continue };
            let mut counters = CounterValues::default();
            table.data_sets().for_each(|data_set| counters += data_set.counters());
            workload.count_waits(&counters);
            workload.objects.insert(name, operations(&counters));
        }
        for name in database.index_names() {
            let Ok(index) = database.index(&name) else { continue };
            let counters = index.data_set().counters();
            workload.count_waits(&counters);
            workload.objects.insert(name, operations(&counters));
        }
        workload
    }

    fn count_waits(&mut self, counters: &CounterValues) {
        self.read_wait_ns += counters.read_wait_ns;
        self.waited_reads += counters.synchronous_reads;
    }

    /// Nanoseconds that a page took to be read; `None` where there were few reads.
    #[must_use]
    pub fn read_ns(&self) -> Option<f64> {
        (self.waited_reads >= READS_MIN).then(|| self.read_wait_ns as f64 / self.waited_reads as f64)
    }

    /// What was counted since an earlier moment, of objects with operations.
    #[must_use]
    pub fn since(&self, earlier: &Workload) -> Workload {
        let of = |(name, own): (&String, &Operations)| {
            let since = earlier.objects.get(name).map_or(*own, |before| own.since(before));
            (!since.is_none()).then(|| (name.clone(), since))
        };
        Workload {
            objects: self.objects.iter().filter_map(of).collect(),
            read_wait_ns: self.read_wait_ns.saturating_sub(earlier.read_wait_ns),
            waited_reads: self.waited_reads.saturating_sub(earlier.waited_reads),
            ..*self
        }
    }

    /// As a document.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let counts = |operations: &Operations| -> Json {
            let counted = operations.fields().into_iter().filter(|(_, count)| *count > 0);
            Json::Object(counted.map(|(name, count)| (name.to_owned(), json!(count))).collect())
        };
        let objects: Map<String, Json> = self.objects.iter().map(|(name, operations)| (name.clone(), counts(operations))).collect();
        json!({
            "version": VERSION,
            "elapsed_s": self.elapsed_s,
            "cpu_s": self.cpu_s,
            "read_wait_ns": self.read_wait_ns,
            "waited_reads": self.waited_reads,
            "objects": objects,
        })
    }

    /// From the text of a document.
    ///
    /// # Errors
    /// When it is none, of a later version, or a count is no number.
    pub fn from_json(text: &[u8]) -> Result<Workload> {
        let json: Json = serde_json::from_slice(text).map_err(|e| wrong(&e.to_string()))?;
        if json["version"].as_u64() != Some(VERSION) {
            return Err(wrong(&format!("version {}; known is {VERSION}", json["version"])));
        }
        let time = |name: &str| match &json[name] {
            Json::Null => Ok(None),
            value => value.as_f64().filter(|s| *s >= 0.0).map(Some).ok_or_else(|| wrong(&format!("{name} is no time"))),
        };
        let mut objects = BTreeMap::new();
        for (name, counts) in json["objects"].as_object().ok_or_else(|| wrong("objects is no object"))? {
            let mut operations = Operations::default();
            for (what, count) in counts.as_object().ok_or_else(|| wrong(&format!("{name} is no object")))? {
                let count = count.as_u64().ok_or_else(|| wrong(&format!("{name}: {what} is no count")))?;
                // Others are of a later version.
                operations.field_mut(what).into_iter().for_each(|field| *field = count);
            }
            objects.insert(name.clone(), operations);
        }
        let count = |name: &str| match &json[name] {
            Json::Null => Ok(0),
            value => value.as_u64().ok_or_else(|| wrong(&format!("{name} is no count"))),
        };
        let (read_wait_ns, waited_reads) = (count("read_wait_ns")?, count("waited_reads")?);
        Ok(Workload { objects, elapsed_s: time("elapsed_s")?, cpu_s: time("cpu_s")?, read_wait_ns, waited_reads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_wrong_is_refused() {
        let mut operations = Operations::default();
        for (at, (name, _)) in Operations::default().fields().iter().enumerate() {
            *operations.field_mut(name).unwrap() = at as u64 + 1;
        }
        let workload = Workload {
            objects: BTreeMap::from([("t".into(), operations)]),
            elapsed_s: Some(2.5),
            cpu_s: None,
            read_wait_ns: 9_000,
            waited_reads: 100,
        };
        assert_eq!(workload.read_ns(), Some(90.0));
        let text = workload.to_json().to_string();
        assert_eq!(Workload::from_json(text.as_bytes()).unwrap(), workload);
        assert!(workload.since(&workload).objects.is_empty());
        for (from, to) in [
            ("2.5", "-2.5"),
            ("2.5", "\"long\""),
            ("\"lookups\":1", "\"lookups\":-1"),
            ("\"lookups\":1", "\"lookups\":1.5"),
            ("\"version\":1", "\"version\":0"),
        ] {
            let wrong = text.replace(from, to);
            assert!(wrong != text && Workload::from_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Workload::from_json(b"").is_err() && Workload::from_json(b"{\"version\":1,\"objects\":[]}").is_err());
    }
}
