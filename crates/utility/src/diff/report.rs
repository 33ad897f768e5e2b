//! What differs, as JSON and as text.

use crate::print::columns::count;
use serde_json::{Value as Json, json};

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReport {
    /// Both sides, as they were named.
    pub sides: [String; 2],
    /// Tables and indexes that only the first one has.
    pub gone: Vec<String>,
    /// Tables and indexes that only the second one has.
    pub new: Vec<String>,
    /// Tables that both have.
    pub tables: Vec<TableDiff>,
    /// Indexes that both have and whose definitions differ.
    pub indexes: Vec<ObjectDiff>,
}

/// An object that both sides have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectDiff {
    /// Its name.
    pub name: String,
    /// What its definition says on both sides, where that differs.
    pub definition: Vec<String>,
}

/// A table that both sides have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableDiff {
    /// Its name, and what its definitions say.
    pub object: ObjectDiff,
    /// Its pages and those of its indexes; `None` where they are in other files, and have nothing to do with each other.
    pub pages: Option<PagesDiff>,
    /// Its rows; `None` where the columns differ.
    pub rows: Option<RowsDiff>,
}

/// Pages of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesDiff {
    /// Pages that both have, the same.
    pub same: u64,
    /// Pages that both have, and that differ.
    pub changed: u64,
    /// Pages in use on the first side only.
    pub gone: u64,
    /// Pages in use on the second side only.
    pub new: u64,
}

/// Rows of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsDiff {
    /// Rows that are the same.
    pub same: u64,
    /// Rows of the second side only.
    pub inserted: u64,
    /// Rows of the first side only.
    pub deleted: u64,
    /// Rows of the same primary key that differ.
    pub changed: u64,
    /// Some of these, in the order of their keys: what, and the key, or without one the row's address.
    pub listed: Vec<(RowChange, String)>,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// The second side has it.
    Inserted,
    /// The first side has it.
    Deleted,
    /// Both have the key.
    Changed,
}

impl RowChange {
    fn name(self) -> &'static str {
        match self {
            RowChange::Inserted => "inserted",
            RowChange::Deleted => "deleted",
            RowChange::Changed => "changed",
        }
    }
}

impl TableDiff {
    fn differs(&self) -> bool {
        !self.object.definition.is_empty() || self.rows.as_ref().is_none_or(|rows| rows.inserted + rows.deleted + rows.changed > 0)
    }
}

impl DiffReport {
    /// Do both sides have the same objects, with the same definitions and rows?
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty() && self.indexes.is_empty() && !self.tables.iter().any(TableDiff::differs)
    }

    /// As `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let tables = self.tables.iter().map(|table| {
            let rows = table.rows.as_ref().map(|rows| {
                let listed = rows.listed.iter().map(|(what, key)| json!({ "what": what.name(), "key": key }));
                json!({
                    "same": rows.same,
                    "inserted": rows.inserted,
                    "deleted": rows.deleted,
                    "changed": rows.changed,
                    "listed": listed.collect::<Vec<_>>(),
                })
            });
            let pages =
                table.pages.map(|pages| json!({ "same": pages.same, "changed": pages.changed, "gone": pages.gone, "new": pages.new }));
            json!({ "name": table.object.name, "definition": table.object.definition, "pages": pages, "rows": rows })
        });
        let indexes = self.indexes.iter().map(|index| json!({ "name": index.name, "definition": index.definition }));
        json!({
            "first": self.sides[0],
            "second": self.sides[1],
            "same": self.is_same(),
            "gone": self.gone,
            "new": self.new,
            "tables": tables.collect::<Vec<_>>(),
            "indexes": indexes.collect::<Vec<_>>(),
        })
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (names, side) in [(&self.gone, 0), (&self.new, 1)] {
            names.iter().for_each(|name| out.push_str(&format!("{name}: only in {}\n", self.sides[side])));
        }
        for table in &self.tables {
            let name = &table.object.name;
            match &table.rows {
                Some(rows) if rows.inserted + rows.deleted + rows.changed > 0 => out.push_str(&format!(
                    "table \"{name}\": {} rows inserted, {} deleted, {} changed, {} the same\n",
                    count(rows.inserted),
                    count(rows.deleted),
                    count(rows.changed),
                    count(rows.same)
                )),
                Some(rows) => out.push_str(&format!("table \"{name}\": {} rows, all the same\n", count(rows.same))),
                None => out.push_str(&format!("table \"{name}\": has other columns, its rows are not compared\n")),
            }
            table.object.definition.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
            if let Some(PagesDiff { same, changed, gone, new }) = table.pages.filter(|pages| pages.changed + pages.gone + pages.new > 0) {
                let [same, changed, gone, new] = [same, changed, gone, new].map(count);
                out.push_str(&format!(
                    "  pages: {changed} differ, {same} are the same, {gone} are only in the first, {new} in the second\n"
                ));
            }
            if let Some(rows) = &table.rows {
                rows.listed.iter().for_each(|(what, key)| out.push_str(&format!("  {:8}  {key}\n", what.name())));
                let listed = rows.listed.len() as u64;
                let all = rows.inserted + rows.deleted + rows.changed;
                if listed > 0 && all > listed {
                    out.push_str(&format!("  and {} more\n", count(all - listed)));
                }
            }
        }
        for index in &self.indexes {
            out.push_str(&format!("index \"{}\"\n", index.name));
            index.definition.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
        if self.is_same() {
            out.push_str("no difference\n");
        }
        out
    }
}
