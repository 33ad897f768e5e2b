//! What a demo found out, as one HTML page without anything from elsewhere.

use super::chart::{Bar, Group, bars, escape};
use super::outcome::{IndexOutcome, MethodOutcome, Outcome, TableOutcome};
use super::text::{closing, headline, legend_items, megabytes, milliseconds, share, thousands};
use crate::size::{grouped, size_text};

const STYLE: &str = include_str!("page.css");

/// The page.
pub(super) fn html(outcome: &Outcome) -> String {
    let mut body = format!("<header><p class=\"brand\">pagefold demo</p><h1>{}</h1></header>\n", escape(&headline(outcome)));
    body += &key_figures(outcome);
    body += "<section class=\"lead\">\n";
    for sentence in closing(outcome).lines() {
        body += &format!("<p>{}</p>\n", escape(sentence));
    }
    body += "</section>\n<section class=\"charts\">\n";
    body += &figure(
        "Size of tables, MB",
        "On disk, everything included. The line is what the estimator had said beforehand.",
        &bars(
            "Size of tables by compression",
            &table_groups(outcome, &|m| {
                (m.size_bytes as f64, megabytes(m.size_bytes), Some(m.pages_estimated as f64 * m.page_size_bytes as f64))
            }),
            true,
        ),
    );
    body += &figure(
        "Seek, thousand rows a second",
        "One thread; a row by its primary key, two columns read. Longer is better.",
        &bars("Seeks a second by compression", &table_groups(outcome, &|m| (m.seek_per_s, thousands(m.seek_per_s), None)), true),
    );
    body += &figure(
        "Scan, ms",
        "One thread; two columns of every row. Shorter is better.",
        &bars("Scan time by compression", &table_groups(outcome, &|m| (m.scan_s, milliseconds(m.scan_s), None)), true),
    );
    body += &figure(
        "Update, thousand rows a second",
        "One thread; a row by its primary key, one number changed. Longer is better.",
        &bars("Updates a second by compression", &table_groups(outcome, &|m| (m.update_per_s, thousands(m.update_per_s), None)), true),
    );
    body += &figure(
        "Size of indexes, MB",
        "Plain and prefix pages have their size on disk; folded ones take 4 KB. The line is the estimate.",
        &bars(
            "Size of indexes by format and page size",
            &index_groups(outcome, &|i| {
                (i.size_bytes as f64, megabytes(i.size_bytes), Some(i.pages_estimated as f64 * disk_page_bytes(i)))
            }),
            true,
        ),
    );
    body += &figure(
        "Finding a key in an index, thousand a second",
        "One thread; in memory a folded page is expanded. Longer is better.",
        &bars(
            "Look-ups a second by format and page size",
            &index_groups(outcome, &|i| (i.seek_per_s, thousands(i.seek_per_s), None)),
            true,
        ),
    );
    body += "</section>\n";
    body += &numbers(outcome);
    body += &legend(outcome);
    body += &format!(
        "<footer>Scale factor {}, {} of memory for pages, {:.0} s in all. Every row was compared with its source and every index entry with the other formats before anything was measured; times are medians.</footer>\n",
        outcome.scale_factor,
        size_text(outcome.memory_bytes),
        outcome.elapsed_s
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>pagefold demo</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn disk_page_bytes(index: &IndexOutcome) -> f64 {
    index.size_bytes.checked_div(index.pages).unwrap_or(0) as f64
}

fn figure(title: &str, caption: &str, svg: &str) -> String {
    format!("<figure><figcaption><h2>{}</h2><p>{}</p></figcaption>{svg}</figure>\n", escape(title), escape(caption))
}

type Measure<'m, T> = &'m dyn Fn(&T) -> (f64, String, Option<f64>);

fn table_groups(outcome: &Outcome, measure: Measure<'_, MethodOutcome>) -> Vec<Group> {
    let group = |table: &TableOutcome| Group {
        title: format!("{}, {} rows", table.name.to_uppercase(), grouped(table.rows)),
        bars: table
            .methods
            .iter()
            .map(|m| {
                let (value, text, mark) = measure(m);
                Bar { label: m.method.to_owned(), value, text, class: if m.method == "none" { "a" } else { "b" }, mark }
            })
            .collect(),
    };
    outcome.tables.iter().map(group).collect()
}

/// Plain forms first.
fn order(index: &IndexOutcome) -> usize {
    ["plain", "fold", "prefix"].iter().position(|format| *format == index.format).unwrap_or(usize::MAX)
}

fn index_groups(outcome: &Outcome, measure: Measure<'_, IndexOutcome>) -> Vec<Group> {
    outcome
        .index_groups()
        .iter()
        .map(|group| {
            let mut forms = group.forms.clone();
            forms.sort_by_key(|i| (order(i), i.page_size_bytes));
            let bars = forms.into_iter().map(|i| {
                let (value, text, mark) = measure(i);
                let class = if i.format == "plain" { "a" } else { "b" };
                Bar { label: format!("{} {}", i.format, size_text(i.page_size_bytes)), value, text, class, mark }
            });
            Group { title: format!("({})", group.columns), bars: bars.collect() }
        })
        .collect()
}

/// A few large numbers for those who read nothing else.
fn key_figures(outcome: &Outcome) -> String {
    let mut tiles: Vec<(String, String)> = Vec::new();
    if let Some((table, [none, compressed @ ..])) = outcome.tables.first().map(|t| (t, t.methods.as_slice()))
        && let Some(best) = compressed.iter().min_by_key(|m| m.size_bytes)
    {
        let saved = 100.0 * (1.0 - best.size_bytes as f64 / none.size_bytes.max(1) as f64);
        tiles.push((format!("{saved:.0} %"), format!("less space for {}", table.name.to_uppercase())));
        let seek = 100.0 * best.seek_per_s / none.seek_per_s.max(1.0);
        tiles.push((format!("{seek:.0} %"), "of the uncompressed rate of seeks".to_owned()));
    }
    for (format, text) in [("fold", "less space for folded indexes"), ("prefix", "less space for indexes with prefix leaves")] {
        let sizes: Vec<(u64, u64)> =
            outcome.index_groups().iter().filter_map(|g| g.smallest(format).map(|i| (g.base.size_bytes, i.size_bytes))).collect();
        if !sizes.is_empty() {
            let (plain, compressed) = sizes.iter().fold((0, 0), |(p, c), (a, b)| (p + a, c + b));
            tiles.push((format!("{:.0} %", 100.0 * (1.0 - compressed as f64 / plain.max(1) as f64)), text.to_owned()));
        }
    }
    let tiles = tiles.iter().map(|(number, text)| format!("<div><strong>{}</strong><span>{}</span></div>", escape(number), escape(text)));
    format!("<section class=\"tiles\">{}</section>\n", tiles.collect::<String>())
}

fn row(cells: &[String], class: &str) -> String {
    let cells: String = cells
        .iter()
        .enumerate()
        .map(|(i, c)| if i == 0 { format!("<th scope=\"row\">{}</th>", escape(c)) } else { format!("<td>{}</td>", escape(c)) })
        .collect();
    format!("<tr class=\"{class}\">{cells}</tr>\n")
}

fn section_row(text: &str) -> String {
    format!("<tr class=\"section\"><th colspan=\"10\" scope=\"rowgroup\">{}</th></tr>\n", escape(text))
}

fn numbers(outcome: &Outcome) -> String {
    let mut rows = String::new();
    for table in &outcome.tables {
        rows += &section_row(&format!("Table {}, {} rows", table.name.to_uppercase(), grouped(table.rows)));
        let base = table.methods.first().map_or(0, |m| m.size_bytes);
        for m in &table.methods {
            let cells = [
                m.method.to_owned(),
                megabytes(m.size_bytes),
                share(m.size_bytes, base),
                grouped(m.pages),
                grouped(m.pages_estimated),
                format!("{:.2}", m.load_s),
                milliseconds(m.scan_s),
                thousands(m.seek_per_s),
                thousands(m.update_per_s),
                thousands(m.insert_per_s),
            ];
            rows += &row(&cells, if m.method == "none" { "" } else { "good" });
        }
    }
    for group in outcome.index_groups() {
        let unique = if group.base.unique { ", the primary key" } else { "" };
        rows += &section_row(&format!("Index on ({}){unique}, {} entries", group.columns, grouped(group.base.entries)));
        let mut forms = group.forms.clone();
        forms.sort_by_key(|i| (order(i), i.page_size_bytes));
        for i in forms {
            let cells = [
                format!("{} {}", i.format, size_text(i.page_size_bytes)),
                megabytes(i.size_bytes),
                share(i.size_bytes, group.base.size_bytes),
                grouped(i.pages),
                grouped(i.pages_estimated),
                format!("{:.2}", i.build_s),
                milliseconds(i.scan_s),
                thousands(i.seek_per_s),
                "\u{2013}".to_owned(),
                "\u{2013}".to_owned(),
            ];
            let is_best = i.format != "plain" && group.smallest(i.format).is_some_and(|best| best.page_size_bytes == i.page_size_bytes);
            rows += &row(&cells, if is_best { "good" } else { "" });
        }
    }
    let heads = [
        "",
        "Size, MB",
        "Against plain",
        "Pages taken",
        "Pages foretold",
        "Load, s",
        "Scan, ms",
        "Seek, 1000/s",
        "Update, 1000/s",
        "Insert, 1000/s",
    ];
    let head: String = heads.iter().map(|h| format!("<th scope=\"col\">{h}</th>")).collect();
    format!(
        "<section><h2>All numbers</h2><div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div></section>\n"
    )
}

fn legend(outcome: &Outcome) -> String {
    let items: String =
        legend_items(outcome).iter().map(|(name, sentence)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(sentence))).collect();
    format!("<section><h2>What the columns mean</h2><dl>\n{items}</dl></section>\n")
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::sample;
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = html(&sample());
        for forbidden in ["http://", "https://", "<script", "src=", "@import", "url(", "NaN", "inf"] {
            assert!(!page.replace("font-variant-numeric", "").contains(forbidden), "{forbidden}");
        }
        for tag in ["svg", "figure", "section", "table", "tr", "dl", "main", "html"] {
            let (open, close) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
            assert_eq!(open, close, "{tag}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
    }
}
