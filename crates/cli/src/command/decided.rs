//! What was decided about files, in both forms of output.

use pagefold::interchange::{Decided, FileDecided};
use serde_json::{Value as Json, json};

/// Files whose decisions are printed one by one, at most.
const FILES_SHOWN: usize = 5;

/// Everything.
pub(super) fn json(decided: &Decided) -> Json {
    let file = |f: &FileDecided| {
        json!({
            "file": f.path.display().to_string(),
            "format": f.format,
            "compression": f.compression,
            "delimiter": f.delimiter,
            "quote": f.quote,
            "escape": f.escape,
            "line_end": f.line_end,
            "header": f.header,
            "header_reason": f.header.map(|_| f.header_reason),
        })
    };
    let columns = decided.columns.iter().map(|c| {
        json!({
            "name": c.name,
            "type": c.data_type.to_string(),
            "nullable": c.nullable,
            "date_order": c.order.map(|order| order.name()),
            "note": c.note,
        })
    });
    json!({ "files": decided.files.iter().map(file).collect::<Vec<_>>(), "columns": columns.collect::<Vec<_>>() })
}

fn character(c: char) -> String {
    match c {
        '\t' => "tab".to_owned(),
        c => format!("{c:?}"),
    }
}

/// Of text files how they are written, and all columns.
pub(super) fn text(decided: &Decided) -> String {
    let mut text = String::new();
    for file in decided.files.iter().filter(|f| f.delimiter.is_some() || f.compression.is_some()).take(FILES_SHOWN) {
        let mut parts = Vec::new();
        parts.extend(file.compression.map(str::to_owned));
        parts.extend(file.delimiter.map(|c| format!("delimiter {}", character(c))));
        parts.extend(file.delimiter.map(|_| file.quote.map_or_else(|| "no quotes".to_owned(), |c| format!("quote {}", character(c)))));
        parts.extend(file.escape.map(|c| format!("escape {}", character(c))));
        parts.extend(file.line_end.map(|end| format!("lines end with {end}")));
        parts.extend(
            file.header.map(|header| format!("{} ({})", if header { "names in the first line" } else { "no names" }, file.header_reason)),
        );
        text += &format!("  {}: {}\n", file.path.display(), parts.join(", "));
    }
    if decided.files.len() > FILES_SHOWN {
        text += &format!("  and {} files more\n", decided.files.len() - FILES_SHOWN);
    }
    if decided.columns.is_empty() {
        return text;
    }
    text += "  columns\n";
    let width = decided.columns.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    for column in &decided.columns {
        let name: String = column.name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
        let pad = " ".repeat(width.saturating_sub(name.chars().count()));
        let not_null = if column.nullable { "" } else { " NOT NULL" };
        let order = column.order.map_or_else(String::new, |order| format!("  ({})", order.name()));
        let note = column.note.map_or_else(String::new, |note| format!("  ({note})"));
        text += &format!("    {name}{pad}  {}{not_null}{order}{note}\n", column.data_type);
    }
    text
}
