//! What a demo found out.

use serde_json::{Value as Json, json};

/// A table under one method. Times are medians.
#[derive(Clone, Debug, Default)]
pub(super) struct MethodOutcome {
    pub(super) method: &'static str,
    pub(super) page_size_bytes: u64,
    /// Pages of all kinds.
    pub(super) pages: u64,
    /// Said beforehand.
    pub(super) pages_estimated: u64,
    pub(super) size_bytes: u64,
    /// Of the primary key's index.
    pub(super) key_size_bytes: u64,
    pub(super) dictionary: bool,
    /// Seconds, primary key and making it durable included.
    pub(super) load_s: f64,
    /// Seconds to read two columns of every row.
    pub(super) scan_s: f64,
    /// Rows found by primary key, two columns read, each second.
    pub(super) seek_per_s: f64,
    /// Rows found by primary key, one column changed, each second.
    pub(super) update_per_s: f64,
    /// Rows put one by one into an empty table with its primary key, each second.
    pub(super) insert_per_s: f64,
    /// Pages read from disk during the last scan.
    pub(super) scan_pages_read: u64,
    /// Pages read from disk during the last round of seeks.
    pub(super) seek_pages_read: u64,
}

/// A table under every method; uncompressed first.
#[derive(Clone, Debug, Default)]
pub(super) struct TableOutcome {
    pub(super) name: &'static str,
    pub(super) rows: u64,
    pub(super) record_bytes: u64,
    pub(super) read: [&'static str; 2],
    pub(super) update: &'static str,
    pub(super) seeks: u64,
    /// Seconds that reading all rows and estimating all methods took.
    pub(super) estimate_s: f64,
    pub(super) methods: Vec<MethodOutcome>,
}

/// An index in one format and page size.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexOutcome {
    pub(super) table: String,
    pub(super) columns: String,
    pub(super) unique: bool,
    pub(super) format: &'static str,
    pub(super) page_size_bytes: u64,
    pub(super) entries: u64,
    pub(super) keys: u64,
    pub(super) levels: u64,
    pub(super) leaf_pages: u64,
    pub(super) pages: u64,
    pub(super) pages_estimated: u64,
    pub(super) size_bytes: u64,
    pub(super) build_s: f64,
    /// Seconds to read all entries.
    pub(super) scan_s: f64,
    /// Keys found each second.
    pub(super) seek_per_s: f64,
    /// Pages read from disk during the last scan and round of seeks.
    pub(super) pages_read: u64,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) scale_factor: f64,
    /// Were the generated rows kept in memory, so that a load does not generate them?
    pub(super) kept: bool,
    pub(super) memory_bytes: u64,
    pub(super) database: String,
    pub(super) page: String,
    pub(super) tables: Vec<TableOutcome>,
    pub(super) indexes: Vec<IndexOutcome>,
    pub(super) elapsed_s: f64,
}

/// Is this the form that others are compared with?
fn is_base(index: &IndexOutcome) -> bool {
    index.format == super::indexes::BASE.format() && index.page_size_bytes == super::indexes::BASE.page_bytes as u64
}

/// One set of columns in all its forms, and what they are compared with.
pub(super) struct IndexGroup<'o> {
    pub(super) columns: &'o str,
    pub(super) base: &'o IndexOutcome,
    pub(super) forms: Vec<&'o IndexOutcome>,
}

impl IndexGroup<'_> {
    /// The smallest form of a format.
    pub(super) fn smallest(&self, format: &str) -> Option<&IndexOutcome> {
        self.forms.iter().copied().filter(|i| i.format == format).min_by_key(|i| i.size_bytes)
    }
}

impl Outcome {
    /// The indexes by their columns.
    pub(super) fn index_groups(&self) -> Vec<IndexGroup<'_>> {
        let bases = self.indexes.iter().filter(|i| is_base(i));
        bases
            .map(|base| {
                let same = |i: &&IndexOutcome| i.columns == base.columns && i.table == base.table;
                IndexGroup { columns: &base.columns, base, forms: self.indexes.iter().filter(same).collect() }
            })
            .collect()
    }

    /// Pages read from disk in the last round of scans and seeks.
    pub(super) fn pages_read(&self) -> u64 {
        let tables: u64 = self.tables.iter().flat_map(|t| &t.methods).map(|m| m.scan_pages_read + m.seek_pages_read).sum();
        tables + self.indexes.iter().map(|i| i.pages_read).sum::<u64>()
    }

    pub(super) fn to_json(&self) -> Json {
        let tables: Vec<Json> = self.tables.iter().map(table_json).collect();
        // The methods of the first table, LINEITEM, once more at the top: what scripts rely on.
        let methods = tables.first().map_or(Json::Array(Vec::new()), |table| table["methods"].clone());
        json!({
            "scale_factor": self.scale_factor,
            "methods": methods,
            "tables": tables,
            "indexes": self.indexes.iter().map(index_json).collect::<Vec<Json>>(),
            "pages_read_while_measuring": self.pages_read(),
            "rows_kept_in_memory": self.kept,
            "memory_bytes": self.memory_bytes,
            "database": self.database,
            "page": self.page,
            "elapsed_s": self.elapsed_s,
        })
    }
}

fn table_json(table: &TableOutcome) -> Json {
    let method = |m: &MethodOutcome| {
        json!({
            "method": m.method,
            "page_size_bytes": m.page_size_bytes,
            "dictionary": m.dictionary,
            "pages": m.pages,
            "pages_estimated": m.pages_estimated,
            "size_bytes": m.size_bytes,
            "primary_key_size_bytes": m.key_size_bytes,
            "load_s": m.load_s,
            "scan_s": m.scan_s,
            "seek_per_s": m.seek_per_s,
            "update_per_s": m.update_per_s,
            "insert_per_s": m.insert_per_s,
            "scan_pages_read": m.scan_pages_read,
            "seek_pages_read": m.seek_pages_read,
        })
    };
    json!({
        "name": table.name,
        "rows": table.rows,
        "record_bytes": table.record_bytes,
        "columns_read": table.read,
        "column_updated": table.update,
        "seeks": table.seeks,
        "estimate_s": table.estimate_s,
        "methods": table.methods.iter().map(method).collect::<Vec<Json>>(),
    })
}

fn index_json(index: &IndexOutcome) -> Json {
    json!({
        "table": index.table,
        "columns": index.columns,
        "unique": index.unique,
        "format": index.format,
        "page_size_bytes": index.page_size_bytes,
        "entries": index.entries,
        "keys": index.keys,
        "levels": index.levels,
        "leaf_pages": index.leaf_pages,
        "pages": index.pages,
        "pages_estimated": index.pages_estimated,
        "size_bytes": index.size_bytes,
        "build_s": index.build_s,
        "scan_s": index.scan_s,
        "seek_per_s": index.seek_per_s,
        "pages_read": index.pages_read,
    })
}
