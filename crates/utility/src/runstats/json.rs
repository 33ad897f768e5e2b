//! Statistics as `--json` prints them: every figure with the ends of its interval.

use super::values::value_of_key;
use super::{IndexRunstats, RunstatsReport, TableRunstats};
use pagefold_format::catalog::{Figure, Figures, Statistics, figure};
use pagefold_types::Column;
use pagefold_types::text::to_text;
use serde_json::{Map, Value as Json, json};

/// Names of figures of tables, columns and indexes.
const NAMES: [(u32, &str); 19] = [
    (figure::ROWS, "rows"),
    (figure::DATA_PAGES, "npages"),
    (figure::PAGES, "pages"),
    (figure::RECORD_BYTES, "record_bytes_avg"),
    (figure::STORED_BYTES, "stored_bytes_avg"),
    (figure::MOVED_SHARE, "moved_share"),
    (figure::COMPRESSED_SHARE, "compressed_share"),
    (figure::PAGES_WITH_ROWS_SHARE, "pages_with_rows_share"),
    (figure::NULL_SHARE, "null_share"),
    (figure::VALUE_BYTES, "value_bytes_avg"),
    (figure::DISTINCT, "distinct_values"),
    (figure::CORRELATION, "correlation"),
    (figure::BEYOND_SHARE, "beyond_share_of_pages"),
    (figure::HISTOGRAM_ERROR, "histogram_error"),
    (figure::KEYS, "keys"),
    (figure::LEVELS, "levels"),
    (figure::KEY_BYTES, "key_bytes_avg"),
    (figure::CLUSTER_RATIO, "cluster_ratio"),
    (figure::SYNCHRONOUS_SHARE, "synchronous_share"),
];

fn of_figure(figure: Figure) -> Json {
    json!({ "value": figure.value, "low": figure.low, "high": figure.high })
}

fn put_figures(figures: &Figures, out: &mut Map<String, Json>) {
    for (number, name) in NAMES {
        if let Some(figure) = figures.get(number) {
            out.insert(name.into(), of_figure(figure));
        }
    }
}

fn put_source(statistics: &Statistics, out: &mut Map<String, Json>) {
    let looked = &statistics.looked;
    out.insert("gathered_unix_ms".into(), json!(statistics.gathered_ms));
    out.insert("seed".into(), json!(statistics.seed));
    out.insert("pages_read".into(), json!(looked.pages_read));
    out.insert("rows_read".into(), json!(looked.rows_read));
}

/// A value as text, if it can be read.
pub(super) fn text_of(column: &Column, key: &[u8]) -> Option<String> {
    value_of_key(column.data_type, key).map(|value| to_text(value.as_ref(), &column.data_type))
}

fn of_index(index: &IndexRunstats) -> Json {
    let mut out = Map::new();
    out.insert("name".into(), json!(index.name));
    out.insert("columns".into(), json!(index.columns));
    out.insert("unique".into(), json!(index.unique));
    put_source(&index.statistics, &mut out);
    put_figures(&index.statistics.figures, &mut out);
    let prefixes = index.statistics.prefixes.iter().enumerate();
    let prefix = |(at, figure): (usize, &Figure)| json!({ "columns": index.columns.get(..=at), "distinct_values": of_figure(*figure) });
    out.insert("prefixes".into(), prefixes.map(prefix).collect());
    Json::Object(out)
}

fn of_table(table: &TableRunstats) -> Json {
    let mut out = Map::new();
    out.insert("name".into(), json!(table.name));
    put_source(&table.statistics, &mut out);
    out.insert("rows_changed_since".into(), json!(table.rows_changed));
    put_figures(&table.statistics.figures, &mut out);
    let columns = table.statistics.columns.iter().filter_map(|statistics| {
        let column = table.columns.get(statistics.column as usize)?;
        let text = |key: &Vec<u8>| text_of(column, key);
        let mut out = Map::new();
        out.insert("name".into(), json!(column.name));
        put_figures(&statistics.figures, &mut out);
        out.insert("least".into(), json!(statistics.least.as_ref().and_then(text)));
        out.insert("greatest".into(), json!(statistics.greatest.as_ref().and_then(text)));
        out.insert("histogram_bounds".into(), json!(statistics.bounds.iter().map(text).collect::<Vec<_>>()));
        let frequent = statistics.frequent.iter().map(|(key, share)| json!({ "value": text(key), "share": of_figure(*share) }));
        out.insert("frequent_values".into(), frequent.collect());
        Some(Json::Object(out))
    });
    out.insert("columns".into(), columns.collect());
    out.insert("indexes".into(), table.indexes.iter().map(of_index).collect());
    Json::Object(out)
}

impl RunstatsReport {
    /// All figures: of which table or index, of which column, the figure's name, and itself.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Option<&str>, &'static str, Figure)> {
        let named = |figures: &Figures| -> Vec<(&'static str, Figure)> {
            NAMES.into_iter().filter_map(|(number, name)| Some((name, figures.get(number)?))).collect()
        };
        self.tables.iter().flat_map(move |table| {
            let whole = named(&table.statistics.figures).into_iter().map(|(name, figure)| (table.name.as_str(), None, name, figure));
            let columns = table.statistics.columns.iter().filter_map(|own| Some((table.columns.get(own.column as usize)?, own)));
            let of_columns = columns.flat_map(move |(column, own)| {
                named(&own.figures).into_iter().map(|(name, figure)| (table.name.as_str(), Some(column.name.as_str()), name, figure))
            });
            let of_indexes = table.indexes.iter().flat_map(move |index| {
                named(&index.statistics.figures).into_iter().map(|(name, figure)| (index.name.as_str(), None, name, figure))
            });
            whole.chain(of_columns).chain(of_indexes)
        })
    }

    /// As `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({ "tables": self.tables.iter().map(of_table).collect::<Vec<_>>(), "without_statistics": self.without })
    }
}
