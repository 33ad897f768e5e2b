//! Rows as text, one after the other: whatever the size of a result, no more of it is kept than the first rows, which decide widths.

mod boxes;
mod json;
mod parquet;
mod text;

use crate::arguments::RowsFormat;
use crate::failure::Result;
use pagefold::types::text::to_text;
use pagefold::{DataType, Value};
use std::io::Write;

pub(super) use boxes::shown;
pub(super) use parquet::ParquetRows;

/// A column of a result.
#[derive(Clone, Debug)]
pub(super) struct OutputColumn {
    pub(super) name: String,
    pub(super) data_type: DataType,
}

/// How results are written.
#[derive(Clone, Debug)]
pub(super) struct Style {
    pub(super) format: RowsFormat,
    pub(super) headers: bool,
    /// What stands for NULL, where the format has nothing of its own.
    pub(super) null: String,
    /// One line for each column.
    pub(super) expanded: bool,
    /// Wider texts are cut in boxes; 0 for never.
    pub(super) width_max: usize,
}

impl Style {
    pub(super) fn new(format: RowsFormat) -> Style {
        Style { format, headers: true, null: String::new(), expanded: false, width_max: 60 }
    }
}

/// Writes the rows of one result.
pub(super) trait RowWriter {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()>;

    /// No row comes any more. After an error what has begun is closed, so that it can be read.
    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()>;
}

/// What writes rows as text.
pub(super) fn text_writer(style: &Style, columns: &[OutputColumn]) -> Box<dyn RowWriter> {
    let (columns, style) = (columns.to_vec(), style.clone());
    match style.format {
        RowsFormat::Json => Box::new(json::JsonRows::new(&columns, true)),
        RowsFormat::JsonLines => Box::new(json::JsonRows::new(&columns, false)),
        RowsFormat::Csv => Box::new(text::CsvRows::new(columns, style)),
        RowsFormat::Markdown => Box::new(text::MarkdownRows::new(columns, style)),
        RowsFormat::Box | RowsFormat::Parquet if style.expanded => Box::new(boxes::ExpandedRows::new(columns, style)),
        RowsFormat::List if style.expanded => Box::new(boxes::ExpandedRows::new(columns, style)),
        RowsFormat::List => Box::new(text::ListRows::new(columns, style)),
        RowsFormat::Box | RowsFormat::Parquet => Box::new(boxes::BoxRows::new(columns, style)),
    }
}

/// A value as text; `None` for NULL.
fn field(value: &Value, column: &OutputColumn) -> Option<String> {
    if matches!(value, Value::Null) { None } else { Some(to_text(value.as_ref(), &column.data_type)) }
}

fn is_number(data_type: &DataType) -> bool {
    use DataType::{BigInt, Decimal, Double, Integer, Real, SmallInt};
    matches!(data_type, SmallInt | Integer | BigInt | Real | Double | Decimal { .. })
}

/// Texts may be cut; all else would mean something else then.
fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Char(_) | DataType::Varchar(_) | DataType::Bytea)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn columns() -> Vec<OutputColumn> {
        let column = |name: &str, data_type| OutputColumn { name: name.into(), data_type };
        vec![
            column("id", DataType::Integer),
            column("name", DataType::Varchar(None)),
            column("price", DataType::Decimal { precision: 9, scale: 2 }),
        ]
    }

    fn rows() -> Vec<Vec<Value>> {
        vec![
            vec![Value::Int(1), Value::Text("Fram".into()), Value::Decimal(1250)],
            vec![Value::Int(20), Value::Text("a,\"b\"|c\nd".into()), Value::Null],
            vec![Value::Null, Value::Text("船と鳥".into()), Value::Decimal(-5)],
            vec![Value::Int(4), Value::Text(String::new()), Value::Decimal(0)],
        ]
    }

    fn written(style: &Style) -> String {
        let (mut out, mut writer) = (Vec::new(), text_writer(style, &columns()));
        rows().iter().for_each(|row| writer.row(row, &mut out).unwrap());
        writer.end(true, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format() {
        let style = |format| Style { null: "NULL".into(), ..Style::new(format) };
        assert_eq!(
            written(&style(RowsFormat::Box)),
            "\
┌──────┬────────────┬───────┐
│   id │ name       │ price │
├──────┼────────────┼───────┤
│    1 │ Fram       │ 12.50 │
│   20 │ a,\"b\"|c\\nd │  NULL │
│ NULL │ 船と鳥     │ -0.05 │
│    4 │            │  0.00 │
└──────┴────────────┴───────┘
(4 rows)
"
        );
        assert_eq!(
            written(&Style { null: String::new(), ..style(RowsFormat::Csv) }),
            "id,name,price\n1,Fram,12.50\n20,\"a,\"\"b\"\"|c\nd\",\n,船と鳥,-0.05\n4,\"\",0.00\n"
        );
        assert_eq!(
            written(&style(RowsFormat::Json)),
            "[{\"id\":1,\"name\":\"Fram\",\"price\":12.50},\n{\"id\":20,\"name\":\"a,\\\"b\\\"|c\\nd\",\"price\":null},\n\
             {\"id\":null,\"name\":\"船と鳥\",\"price\":-0.05},\n{\"id\":4,\"name\":\"\",\"price\":0.00}]\n"
        );
        assert_eq!(written(&style(RowsFormat::JsonLines)).lines().next(), Some("{\"id\":1,\"name\":\"Fram\",\"price\":12.50}"));
        assert_eq!(
            written(&style(RowsFormat::Markdown)),
            "| id | name | price |\n|---:|---|---:|\n| 1 | Fram | 12.50 |\n| 20 | a,\"b\"\\|c<br>d | NULL |\n| NULL | 船と鳥 | -0.05 |\n| 4 |  | 0.00 |\n"
        );
        assert_eq!(written(&style(RowsFormat::List)), "id|name|price\n1|Fram|12.50\n20|a,\"b\"|c\nd|NULL\nNULL|船と鳥|-0.05\n4||0.00\n");
        let expanded = written(&Style { expanded: true, ..style(RowsFormat::Box) });
        assert!(expanded.starts_with("─[ 1 ]───\nid    │ 1\nname  │ Fram\nprice │ 12.50\n─[ 2 ]"), "{expanded}");
    }

    #[test]
    fn without_headers() {
        let style = |format| Style { headers: false, ..Style::new(format) };
        assert!(written(&style(RowsFormat::Csv)).starts_with("1,Fram,12.50\n"));
        assert!(written(&style(RowsFormat::List)).starts_with("1|Fram|12.50\n"));
        assert!(written(&style(RowsFormat::Box)).contains("┐\n│  1 │ Fram"));
    }
}
