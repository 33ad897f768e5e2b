//! What came out, as Markdown and as JSON.

use crate::measure::Measured;
use pagefold_engine::table_space::Method;
use pagefold_lab_engine::inputs::Group;
use serde_json::{Value, json};
use std::fmt::Write;

/// Ratios of tables that take fewer pages uncompressed say nothing.
const RATIO_PAGES_MIN: u64 = 20;

/// A line of the report: a table, or all of a group.
struct Line {
    name: String,
    rows: u64,
    record_bytes: u64,
    /// Pages with rows, and bytes with the primary key, by method.
    npages: [u64; Method::ALL.len()],
    dictionary_pages: [u64; Method::ALL.len()],
    bytes: [u64; Method::ALL.len()],
    lz_tree_pages: u64,
    frozen_pages: Option<u64>,
    parquet_bytes: u64,
    sqlite_bytes: Option<u64>,
}

impl Line {
    fn of(measured: &Measured) -> Line {
        let sizes = Method::ALL.map(|method| measured.size(method));
        Line {
            name: measured.name.clone(),
            rows: measured.rows,
            record_bytes: measured.record_bytes,
            npages: sizes.map(|size| size.map_or(0, |s| s.npages)),
            dictionary_pages: sizes.map(|size| size.map_or(0, |s| s.dictionary_pages)),
            bytes: sizes.map(|size| size.map_or(0, |s| s.table_bytes + s.key_bytes)),
            lz_tree_pages: measured.lz_tree_pages,
            frozen_pages: measured.frozen_pages,
            parquet_bytes: measured.parquet_bytes,
            sqlite_bytes: measured.sqlite_bytes,
        }
    }

    fn sum(name: String, lines: &[Line]) -> Line {
        let sum = |of: &dyn Fn(&Line) -> u64| lines.iter().map(of).sum::<u64>();
        let optional = |of: &dyn Fn(&Line) -> Option<u64>| lines.iter().map(of).sum::<Option<u64>>();
        let by_method = |of: &dyn Fn(&Line, usize) -> u64| std::array::from_fn(|i| lines.iter().map(|line| of(line, i)).sum());
        Line {
            name,
            rows: sum(&|line| line.rows),
            record_bytes: sum(&|line| line.record_bytes),
            npages: by_method(&|line, i| line.npages[i]),
            dictionary_pages: by_method(&|line, i| line.dictionary_pages[i]),
            bytes: by_method(&|line, i| line.bytes[i]),
            lz_tree_pages: sum(&|line| line.lz_tree_pages),
            frozen_pages: optional(&|line| line.frozen_pages),
            parquet_bytes: sum(&|line| line.parquet_bytes),
            sqlite_bytes: optional(&|line| line.sqlite_bytes),
        }
    }

    fn pages(&self, method: Method) -> u64 {
        Method::ALL.iter().position(|m| *m == method).map_or(0, |i| self.npages[i])
    }

    fn bytes(&self, method: Method) -> u64 {
        Method::ALL.iter().position(|m| *m == method).map_or(0, |i| self.bytes[i])
    }

    fn ratio(&self, a: u64, b: u64) -> String {
        if self.pages(Method::None) < RATIO_PAGES_MIN || b == 0 { "-".to_owned() } else { format!("{:.3}", a as f64 / b as f64) }
    }
}

/// The tables of each group, and the group.
fn lines(all: &[Measured]) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in Group::ALL {
        let of_group: Vec<Line> = all.iter().filter(|m| m.group == group).map(Line::of).collect();
        if of_group.is_empty() {
            continue;
        }
        let total = Line::sum(format!("**{}**", group.name()), &of_group);
        lines.extend(of_group);
        lines.push(total);
    }
    lines
}

/// Two tables: pages with rows, and bytes.
pub(crate) fn markdown(all: &[Measured], page_bytes: usize) -> String {
    let mut out = String::new();
    let lines = lines(all);
    let frozen = lines.iter().any(|line| line.frozen_pages.is_some());
    let extra = |text: &str| if frozen { text.to_owned() } else { String::new() };
    // Writing to a string does not fail.
    let _ = writeln!(out, "Pages of {} KB with rows (in parentheses: of dictionaries)\n", page_bytes / 1024);
    let _ = writeln!(
        out,
        "| Table | Rows | Bytes a row | `none` | `row` | `page` | `fixed` | `huffman` | LZ tree |{} `huffman` / `fixed` | `fixed` / LZ tree | `huffman` / LZ tree | `page` / `row` |",
        extra(" LZ tree, frozen |")
    );
    let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|{}---|---|---|---|", extra("---|"));
    for line in &lines {
        let _ = write!(out, "| {} | {} | {} ", line.name, line.rows, line.record_bytes / line.rows.max(1));
        for (pages, dictionary) in line.npages.iter().zip(line.dictionary_pages) {
            let _ = if dictionary > 0 { write!(out, "| {pages} ({dictionary}) ") } else { write!(out, "| {pages} ") };
        }
        let (fixed, huffman) = (line.pages(Method::Fixed), line.pages(Method::Huffman));
        let frozen = line.frozen_pages.map(|pages| format!(" {pages} |")).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} |{frozen} {} | {} | {} | {} |",
            line.lz_tree_pages,
            line.ratio(huffman, fixed),
            line.ratio(fixed, line.lz_tree_pages),
            line.ratio(huffman, line.lz_tree_pages),
            line.ratio(line.pages(Method::Page), line.pages(Method::Row))
        );
    }
    let _ = writeln!(out, "\nSizes in MB, with the primary key; Parquet has none\n");
    let _ = writeln!(
        out,
        "| Table | `none` | `row` | `page` | `fixed` | `huffman` | Parquet | SQLite | `page` / Parquet | `huffman` / Parquet | `page` / SQLite | `huffman` / SQLite |"
    );
    let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|---|");
    for line in &lines {
        let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6);
        let _ = write!(out, "| {} ", line.name);
        line.bytes.iter().for_each(|bytes| _ = write!(out, "| {} ", megabytes(*bytes)));
        let _ = write!(out, "| {} | {} ", megabytes(line.parquet_bytes), line.sqlite_bytes.map_or_else(|| "-".into(), megabytes));
        for rival in [line.parquet_bytes, line.sqlite_bytes.unwrap_or(0)] {
            for method in [Method::Page, Method::Huffman] {
                let _ = write!(out, "| {} ", line.ratio(line.bytes(method), rival));
            }
        }
        let _ = writeln!(out, "|");
    }
    profiles(all, &mut out);
    out
}

/// Where the bits of rows go, of the tables where that was asked for.
fn profiles(all: &[Measured], out: &mut String) {
    let profiles: Vec<_> = all.iter().filter_map(|measured| Some((&measured.name, measured.profile?))).collect();
    if profiles.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n| Table | Codes a row | Entropy, bits a code | Code words, bits a code | `huffman`, bits a row as stored | LZ tree: codes a row | Entropy, bits a code |"
    );
    let _ = writeln!(out, "|---|---|---|---|---|---|---|");
    for (name, p) in profiles {
        let _ = writeln!(
            out,
            "| {name} | {:.1} | {:.2} | {:.2} | {:.0} | {:.1} | {:.2} |",
            p.codes, p.entropy_bits, p.word_bits, p.row_bits, p.lz_tree_codes, p.lz_tree_entropy_bits
        );
    }
}

/// All figures.
pub(crate) fn json(all: &[Measured], page_bytes: usize) -> Value {
    let table = |measured: &Measured| {
        let method = |size: &crate::measure::Size| {
            json!({
                "method": size.method.name(),
                "npages": size.npages,
                "dictionary_pages": size.dictionary_pages,
                "size_bytes": size.table_bytes,
                "key_bytes": size.key_bytes,
            })
        };
        json!({
            "name": measured.name,
            "group": measured.group.name(),
            "rows": measured.rows,
            "record_bytes": measured.record_bytes,
            "methods": measured.sizes.iter().map(method).collect::<Vec<_>>(),
            "lz_tree_npages": measured.lz_tree_pages,
            "lz_tree_frozen_npages": measured.frozen_pages,
            "parquet_bytes": measured.parquet_bytes,
            "sqlite_bytes": measured.sqlite_bytes,
        })
    };
    json!({ "page_size_bytes": page_bytes, "tables": all.iter().map(table).collect::<Vec<_>>() })
}
