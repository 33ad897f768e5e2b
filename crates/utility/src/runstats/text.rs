//! Statistics as a person reads them: each figure with its interval, if it has one.

use super::json::text_of;
use super::{IndexRunstats, RunstatsReport, TableRunstats};
use crate::print::columns::{Align, Grid, count};
use pagefold_format::catalog::{Figure, Figures, figure};
use pagefold_types::text::to_text;
use pagefold_types::{DataType, TimeUnit, ValueRef};

/// Characters of a value that are shown.
const SHOWN: usize = 24;

/// What a line says, of which figure, and how.
type Line = (&'static str, u32, fn(Figure) -> String);

fn with_interval(figure: Figure, show: impl Fn(f64) -> String) -> String {
    let (value, low, high) = (show(figure.value), show(figure.low), show(figure.high));
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

fn whole(figure: Figure) -> String {
    with_interval(figure, |number| count(number.round().max(0.0) as u64))
}

fn bytes(figure: Figure) -> String {
    with_interval(figure, |number| format!("{number:.1}"))
}

fn percent(figure: Figure) -> String {
    with_interval(figure, |share| {
        let percent = share * 100.0;
        let digits = if percent != 0.0 && percent < 0.1 { 3 } else { 1 };
        format!("{percent:.digits$}")
    }) + " %"
}

fn shown(figures: &Figures, number: u32, show: fn(Figure) -> String) -> String {
    figures.get(number).map_or_else(|| "-".into(), show)
}

fn cut(text: String) -> String {
    // A line stays one.
    let text: String = text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
    if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN - 3).chain("...".chars()).collect() }
}

/// A time, to the second.
pub(crate) fn time_text(gathered_ms: u64) -> String {
    let data_type = DataType::Timestamp { unit: TimeUnit::Second, with_zone: false };
    i64::try_from(gathered_ms / 1000).map_or_else(|_| "?".into(), |seconds| to_text(ValueRef::Int(seconds), &data_type))
}

fn table(table: &TableRunstats, out: &mut String) {
    let (figures, looked) = (&table.statistics.figures, &table.statistics.looked);
    out.push_str(&format!("TABLE {}, {} UTC\n", table.name, time_text(table.statistics.gathered_ms)));
    let of = if table.statistics.seed.is_some() { format!(" of {}", count(looked.pages)) } else { String::new() };
    out.push_str(&format!("  read: {}{of} pages, {} rows", count(looked.pages_read), count(looked.rows_read)));
    out.push_str(if table.statistics.seed.is_some() { "; in brackets the 95 % interval\n" } else { "\n" });
    if table.rows_changed > 0 {
        out.push_str(&format!("  rows that have changed since: {}\n", count(table.rows_changed)));
    }
    let lines: [Line; 8] = [
        ("rows", figure::ROWS, whole),
        ("pages for rows", figure::DATA_PAGES, whole),
        ("pages in use", figure::PAGES, whole),
        ("of the pages for rows, with rows", figure::PAGES_WITH_ROWS_SHARE, percent),
        ("bytes of a record", figure::RECORD_BYTES, bytes),
        ("bytes of a row on its page", figure::STORED_BYTES, bytes),
        ("compressed rows", figure::COMPRESSED_SHARE, percent),
        ("rows away from home", figure::MOVED_SHARE, percent),
    ];
    for (what, number, show) in lines {
        out.push_str(&format!("  {what}: {}\n", shown(figures, number, show)));
    }
    let head = ["COLUMN", "NULL", "BYTES", "DISTINCT", "CORRELATION", "LEAST", "GREATEST", "BEYOND", "STEPS", "STEPS OFF BY"];
    let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left, Align::Left];
    let mut grid = Grid::new(&head.map(|head| if head == "COLUMN" { "  COLUMN" } else { head }), &align);
    let mut frequent = String::new();
    for statistics in &table.statistics.columns {
        let Some(column) = table.columns.get(statistics.column as usize) else { continue };
        let text = |key: Option<&Vec<u8>>| key.and_then(|key| text_of(column, key)).map_or_else(|| "-".into(), cut);
        let figures = &statistics.figures;
        let most = |figure: Figure| if figure.high > 0.0 { format!("{:.1} %", figure.high * 100.0) } else { "-".into() };
        grid.row(vec![
            format!("  {}", column.name),
            shown(figures, figure::NULL_SHARE, percent),
            shown(figures, figure::VALUE_BYTES, bytes),
            shown(figures, figure::DISTINCT, whole),
            shown(figures, figure::CORRELATION, |figure| with_interval(figure, |number| format!("{number:.2}"))),
            text(statistics.least.as_ref()),
            text(statistics.greatest.as_ref()),
            shown(figures, figure::BEYOND_SHARE, most),
            count(statistics.bounds.len().saturating_sub(1) as u64),
            shown(figures, figure::HISTOGRAM_ERROR, most),
        ]);
        if !statistics.frequent.is_empty() {
            let all: Vec<String> =
                statistics.frequent.iter().take(5).map(|(key, share)| format!("{} {}", text(Some(key)), percent(*share))).collect();
            frequent.push_str(&format!("  frequent in {}: {}\n", column.name, all.join(", ")));
        }
    }
    out.push_str(&grid.to_string());
    out.push_str(&frequent);
    table.indexes.iter().for_each(|index| of_index(index, out));
}

fn of_index(index: &IndexRunstats, out: &mut String) {
    let (figures, looked) = (&index.statistics.figures, &index.statistics.looked);
    let unique = if index.unique { ", unique" } else { "" };
    out.push_str(&format!(
        "  INDEX {} ({}){unique}; read: {} leaf pages\n",
        index.name,
        index.columns.join(", "),
        count(looked.pages_read)
    ));
    let lines: [Line; 8] = [
        ("levels", figure::LEVELS, whole),
        ("leaf pages", figure::DATA_PAGES, whole),
        ("pages in use", figure::PAGES, whole),
        ("RIDs", figure::ROWS, whole),
        ("distinct keys", figure::KEYS, whole),
        ("bytes of a key", figure::KEY_BYTES, bytes),
        ("neighbours on one page or the next", figure::CLUSTER_RATIO, percent),
        ("steps to another page that are not to the next one", figure::SYNCHRONOUS_SHARE, percent),
    ];
    for (what, number, show) in lines {
        out.push_str(&format!("    {what}: {}\n", shown(figures, number, show)));
    }
    for (at, figure) in index.statistics.prefixes.iter().enumerate().take(index.columns.len().saturating_sub(1)) {
        out.push_str(&format!("    distinct ({}): {}\n", index.columns[..=at].join(", "), whole(*figure)));
    }
}

impl RunstatsReport {
    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (at, of_table) in self.tables.iter().enumerate() {
            if at > 0 {
                out.push('\n');
            }
            table(of_table, &mut out);
        }
        for name in &self.without {
            out.push_str(&format!("TABLE {name}: no statistics; `runstats` gathers them\n"));
        }
        out
    }
}
