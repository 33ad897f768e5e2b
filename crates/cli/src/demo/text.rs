//! What a demo found out, as one table with a legend.

use super::outcome::{IndexGroup, Outcome, TableOutcome};
use crate::size::{grouped, size_text};

/// Name, then nine columns of numbers.
const WIDTHS: [usize; 10] = [30, 9, 8, 9, 9, 8, 8, 8, 8, 8];

fn line(cells: &[String]) -> String {
    let mut out = String::new();
    for (i, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
        if i == 0 {
            out.push_str(cell);
            out.push_str(&pad);
        } else {
            out.push_str(&pad);
            out.push_str(cell);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / (1 << 20) as f64;
    format!("{value:.*}", if value < 10.0 { 2 } else { 1 })
}

/// `51 %`
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}

pub(super) fn thousands(per_s: f64) -> String {
    let value = per_s / 1000.0;
    format!("{value:.*}", usize::from(value < 100.0))
}

pub(super) fn milliseconds(s: f64) -> String {
    let value = s * 1000.0;
    format!("{value:.*}", if value < 10.0 { 2 } else { usize::from(value < 100.0) })
}

fn table_lines(table: &TableOutcome) -> String {
    let mut out = format!("Table {}, {} rows\n", table.name.to_uppercase(), grouped(table.rows));
    let base = table.methods.first().map_or(0, |m| m.size_bytes);
    for m in &table.methods {
        let what = match m.method {
            "none" => "uncompressed",
            "row" => "short values",
            "page" => "by column",
            "fixed" => "12-bit codes",
            _ => "Huffman codes",
        };
        out += &line(&[
            format!("  {:7} {what}", m.method),
            megabytes(m.size_bytes),
            share(m.size_bytes, base),
            grouped(m.pages),
            grouped(m.pages_estimated),
            format!("{:.2}", m.load_s),
            milliseconds(m.scan_s),
            thousands(m.seek_per_s),
            thousands(m.update_per_s),
            thousands(m.insert_per_s),
        ]);
    }
    out
}

fn index_lines(group: &IndexGroup<'_>) -> String {
    let unique = if group.base.unique { ", the primary key" } else { "" };
    let mut out = format!("Index on ({}){unique}, {} entries\n", group.columns, grouped(group.base.entries));
    // The other plain page sizes say little: they are on the page with charts.
    for i in group.forms.iter().filter(|i| i.format != "plain" || i.page_size_bytes == group.base.page_size_bytes) {
        out += &line(&[
            format!("  {:7} {}", i.format, size_text(i.page_size_bytes)),
            megabytes(i.size_bytes),
            share(i.size_bytes, group.base.size_bytes),
            grouped(i.pages),
            grouped(i.pages_estimated),
            format!("{:.2}", i.build_s),
            milliseconds(i.scan_s),
            thousands(i.seek_per_s),
            "-".to_owned(),
            "-".to_owned(),
        ]);
    }
    out
}

/// The table and what it means.
pub(super) fn report(outcome: &Outcome) -> String {
    let mut out = format!("\n{}\n\n", headline(outcome));
    out += &line(&cells(["", "size", "against", "pages", "pages", "load", "scan", "seek", "update", "insert"]));
    out += &line(&cells(["", "MB", "plain", "taken", "foretold", "s", "ms", "1000/s", "1000/s", "1000/s"]));
    out += &format!("{}\n", "-".repeat(WIDTHS.iter().sum()));
    for table in &outcome.tables {
        out += &table_lines(table);
    }
    for group in outcome.index_groups() {
        out += &index_lines(&group);
    }
    out += &format!("{}\n\n", "-".repeat(WIDTHS.iter().sum()));
    out += &legend(outcome);
    out += &format!("\n{}\n", closing(outcome));
    out += &format!(
        "\nDone in {:.0} s. The database is {}; look into it with `pagefold report {}`. All numbers, with charts: {}\n",
        outcome.elapsed_s, outcome.database, outcome.database, outcome.page
    );
    out
}

pub(super) fn headline(outcome: &Outcome) -> String {
    let rows: u64 = outcome.tables.iter().map(|t| t.rows).sum();
    format!(
        "The TPC-H tables LINEITEM and ORDERS at scale factor {} ({} rows), stored by pagefold in every way it has.",
        outcome.scale_factor,
        grouped(rows)
    )
}

/// What each column means: name and sentence.
pub(super) fn legend_items(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let source = if outcome.kept { "from rows in memory" } else { "generating the rows included" };
    let read = match outcome.pages_read() {
        0 => "Everything was in memory.".to_owned(),
        n => format!("Not everything was in memory: in the last round over all of it {} pages were read from disk.", grouped(n)),
    };
    vec![
        ("size", "what the table or index takes on disk, all of it: rows, dictionary, space map. 1 MB is 1,048,576 bytes.".to_owned()),
        ("against plain", "the same as a share: of the uncompressed table, or of the index with plain 8 KB pages.".to_owned()),
        (
            "pages taken",
            "pages on disk. Tables have 8 KB pages; an index page named 16 KB has 16 KB in memory and, when folded, 4 KB on disk."
                .to_owned(),
        ),
        (
            "pages foretold",
            "what pagefold's estimator said before the table was loaded, and from the plain index before the others were built.".to_owned(),
        ),
        ("load", format!("seconds to load the table with its primary key ({source}), or to build the index, until it is safe on disk.")),
        ("scan", format!("milliseconds to read two columns of every row, or every entry of the index. {read}")),
        (
            "seek",
            "thousands of look-ups a second on one thread: of a row by its primary key, reading two columns; or of a key in the index."
                .to_owned(),
        ),
        (
            "update",
            "thousands of updates a second on one thread: a row is found by its primary key and one number in it changed.".to_owned(),
        ),
        (
            "insert",
            "thousands of rows a second put into an empty table with its primary key, in the order of the key, 100 a transaction, on one thread; all is logged, and nobody waits for the disk."
                .to_owned(),
        ),
    ]
}

fn legend(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (name, sentence) in legend_items(outcome) {
        out += &wrap(&format!("{name:15}{sentence}"), 15);
    }
    out += &wrap(&method_note(), 15);
    out
}

fn method_note() -> String {
    "Every row of every table was compared with its source, every entry of every index with the others, before anything was measured. Times are medians.".to_owned()
}

/// Lines of at most the table's width; all but the first are indented.
fn wrap(text: &str, indent: usize) -> String {
    let width: usize = WIDTHS.iter().sum();
    let mut out = String::new();
    let mut column = 0;
    for (i, word) in text.split(' ').enumerate() {
        if column > indent && column + 1 + word.chars().count() > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out.push('\n');
    out
}

/// Times that differ by less are called the same: so much varies from run to run.
const SAME: f64 = 0.05;

fn slower(now: f64, before: f64) -> String {
    if now <= 0.0 || before <= 0.0 {
        return "-".to_owned();
    }
    match now / before {
        ratio if ratio > 1.0 + SAME => format!("{ratio:.2} times as long"),
        ratio if ratio < 1.0 - SAME => format!("{:.0} % less time", 100.0 * (1.0 - ratio)),
        _ => "the same time".to_owned(),
    }
}

/// What was saved, and what it cost.
pub(super) fn closing(outcome: &Outcome) -> String {
    let mut sentences = Vec::new();
    if let Some((table, [none, compressed @ ..])) = outcome.tables.first().map(|t| (t, t.methods.as_slice()))
        && let Some(best) = compressed.iter().min_by_key(|m| m.size_bytes)
    {
        sentences.push(format!(
            "Compressing {} with method {} saved {:.0} % of its space ({} MB instead of {}). What it costs: a scan takes {}, a seek {}, an update {}, an insert {}, the load {}.",
            table.name.to_uppercase(),
            best.method,
            100.0 * (1.0 - best.size_bytes as f64 / none.size_bytes.max(1) as f64),
            megabytes(best.size_bytes),
            megabytes(none.size_bytes),
            slower(best.scan_s, none.scan_s),
            slower(none.seek_per_s, best.seek_per_s),
            slower(none.update_per_s, best.update_per_s),
            slower(none.insert_per_s, best.insert_per_s),
            slower(best.load_s, none.load_s),
        ));
    }
    sentences.extend(of_indexes(outcome, "fold", "Folding its {n} indexes"));
    sentences.extend(of_indexes(outcome, "prefix", "Prefix leaves in its {n} indexes"));
    sentences.push(foretold(outcome));
    sentences.join("\n")
}

/// What a format of indexes saves and costs; `doing` is how the sentence begins.
fn of_indexes(outcome: &Outcome, format: &str, doing: &str) -> Option<String> {
    let groups = outcome.index_groups();
    let pairs: Vec<_> = groups.iter().filter_map(|g| g.smallest(format).map(|best| (g.base, best))).collect();
    if pairs.is_empty() {
        return None;
    }
    let (plain, compressed) = pairs.iter().fold((0, 0), |(p, c), (base, best)| (p + base.size_bytes, c + best.size_bytes));
    let logarithms: f64 = pairs.iter().map(|(base, best)| (base.seek_per_s / best.seek_per_s.max(1.0)).ln()).sum();
    Some(format!(
        "{}, each at its best page size, saved {:.0} % ({} MB instead of {}); finding a key takes {}.",
        doing.replace("{n}", &pairs.len().to_string()),
        100.0 * (1.0 - compressed as f64 / plain.max(1) as f64),
        megabytes(compressed),
        megabytes(plain),
        slower((logarithms / pairs.len() as f64).exp(), 1.0),
    ))
}

/// How true the estimates came.
fn foretold(outcome: &Outcome) -> String {
    let tables = outcome.tables.iter().flat_map(|t| &t.methods).map(|m| (m.pages, m.pages_estimated));
    let indexes = outcome.indexes.iter().map(|i| (i.pages, i.pages_estimated));
    let all: Vec<(u64, u64)> = tables.chain(indexes).collect();
    let exact = all.iter().filter(|(taken, said)| taken == said).count();
    let worst = all.iter().map(|(taken, said)| taken.abs_diff(*said) as f64 / (*taken).max(1) as f64).fold(0.0, f64::max);
    let numbers = all.len();
    if exact == numbers {
        format!("All {numbers} sizes came out as the estimator had said, to the page.")
    } else {
        format!("Of {numbers} sizes, {exact} came out as the estimator had said, to the page; the worst was off by {:.2} %.", 100.0 * worst)
    }
}

#[cfg(test)]
pub(in crate::demo) mod tests {
    use super::super::outcome::{IndexOutcome, MethodOutcome};
    use super::*;

    pub(in crate::demo) fn sample() -> Outcome {
        let method = |method, size_bytes, scan_s| MethodOutcome {
            method,
            size_bytes,
            scan_s,
            pages: size_bytes / 8192,
            pages_estimated: size_bytes / 8192,
            seek_per_s: 500_000.0,
            update_per_s: 250_000.0,
            insert_per_s: 200_000.0,
            load_s: 0.5,
            ..MethodOutcome::default()
        };
        let index = |format, page_size_bytes, size_bytes| IndexOutcome {
            table: "lineitem_fixed".into(),
            columns: "l_shipdate".into(),
            format,
            page_size_bytes,
            size_bytes,
            entries: 600_572,
            pages: 10,
            pages_estimated: 10,
            build_s: 0.3,
            scan_s: 0.02,
            seek_per_s: 1e6,
            ..IndexOutcome::default()
        };
        Outcome {
            scale_factor: 0.1,
            kept: true,
            tables: vec![TableOutcome {
                name: "lineitem",
                rows: 600_572,
                methods: vec![method("none", 64 << 20, 0.01), method("fixed", 32 << 20, 0.03)],
                ..TableOutcome::default()
            }],
            indexes: vec![
                index("plain", 8192, 8 << 20),
                index("plain", 4096, 9 << 20),
                index("fold", 8192, 4 << 20),
                index("fold", 16384, 3 << 20),
                index("prefix", 8192, 1 << 20),
            ],
            page: "demo.html".into(),
            ..Outcome::default()
        }
    }

    #[test]
    fn the_table_says_what_was_saved_and_what_it_cost() {
        let text = report(&sample());
        for expected in [
            "LINEITEM, 600,572 rows",
            "saved 50 % of its space (32.0 MB instead of 64.0)",
            "a scan takes 3.00 times as long",
            "Folding its 1 indexes, each at its best page size, saved 62 % (3.00 MB instead of 8.00)",
            "Prefix leaves in its 1 indexes, each at its best page size, saved 88 % (1.00 MB instead of 8.00)",
            "All 7 sizes came out",
            "Everything was in memory",
        ] {
            let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(in_one_line.contains(expected), "{expected} not in\n{text}");
        }
        let mut off = sample();
        off.indexes[0].pages_estimated = 11;
        assert!(report(&off).contains("Of 7 sizes, 6 came out"));
        let width: usize = WIDTHS.iter().sum();
        for line in text.lines().take_while(|line| !line.starts_with("Compressing")) {
            assert!(line.chars().count() <= width + 30, "{line}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([megabytes(64 << 20), megabytes(3 << 19)], ["64.0", "1.50"]);
        assert_eq!([thousands(812_345.0), thousands(12_345.0)], ["812", "12.3"]);
        assert_eq!([milliseconds(0.0012), milliseconds(0.0123), milliseconds(0.123)], ["1.20", "12.3", "123"]);
        assert_eq!(share(1, 0), "-");
    }
}
