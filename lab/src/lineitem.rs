//! Rows of TPC-H LINEITEM, as text and as packed records.

use std::io::Write;

use pagefold_types::{Column, DataType, RowLayout, Schema, ValueRef};
use tpchgen::generators::{LineItem, LineItemGenerator};

/// Rows one behind the other.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The bytes of all rows.
    pub bytes: Vec<u8>,
    /// Offset behind each row.
    pub ends: Vec<u32>,
}

impl Rows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends what `write` appends to the bytes as one row.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or_else(|_| panic!("more than 4 GB of rows")));
    }

    /// Row `index`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[index] as usize]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.row(index))
    }
}

/// Which rows.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    /// TPC-H scale factor.
    pub scale_factor: f64,
    /// The first row taken.
    pub offset: usize,
    /// Every how many-th row is taken.
    pub step: usize,
}

impl Selection {
    /// The rows as generated.
    pub fn items(&self) -> impl Iterator<Item = LineItem<'static>> {
        LineItemGenerator::new(self.scale_factor, 1, 1).iter().skip(self.offset).step_by(self.step)
    }

    /// As lines of `lineitem.tbl`, without the line feed.
    #[must_use]
    pub fn text(&self) -> Rows {
        let mut rows = Rows::default();
        for item in self.items() {
            rows.push_with(|out| write!(out, "{item}").unwrap_or_else(|error| unreachable!("writing to memory: {error}")));
        }
        rows
    }

    /// As packed records of [`layout`].
    #[must_use]
    pub fn packed(&self) -> Rows {
        let layout = layout();
        let mut rows = Rows::default();
        for item in self.items() {
            rows.push_with(|out| {
                layout.encode(&values(&item), out).unwrap_or_else(|error| panic!("LINEITEM row: {error}"));
            });
        }
        rows
    }
}

/// LINEITEM with the types of the Parquet files that `tpchgen` writes.
#[must_use]
pub fn layout() -> RowLayout {
    let decimal = DataType::Decimal { precision: 15, scale: 2 };
    let text = DataType::Varchar(None);
    let columns = [
        ("l_orderkey", DataType::BigInt),
        ("l_partkey", DataType::BigInt),
        ("l_suppkey", DataType::BigInt),
        ("l_linenumber", DataType::Integer),
        ("l_quantity", decimal),
        ("l_extendedprice", decimal),
        ("l_discount", decimal),
        ("l_tax", decimal),
        ("l_returnflag", text),
        ("l_linestatus", text),
        ("l_shipdate", DataType::Date),
        ("l_commitdate", DataType::Date),
        ("l_receiptdate", DataType::Date),
        ("l_shipinstruct", text),
        ("l_shipmode", text),
        ("l_comment", text),
    ];
    let columns = columns.into_iter().map(|(name, data_type)| Column::new(name, data_type, false)).collect();
    let schema = Schema::new(columns).unwrap_or_else(|error| panic!("LINEITEM schema: {error}"));
    RowLayout::new(&schema).unwrap_or_else(|error| panic!("LINEITEM schema: {error}"))
}

/// The values of a row of [`layout`].
#[must_use]
pub fn values<'a>(item: &'a LineItem<'a>) -> [ValueRef<'a>; 16] {
    let date = |date: tpchgen::dates::TPCHDate| ValueRef::Int(i64::from(date.to_unix_epoch()));
    let decimal = |unscaled: i64| ValueRef::Decimal(i128::from(unscaled));
    let text = |text: &'a str| ValueRef::Text(text);
    [
        ValueRef::Int(item.l_orderkey),
        ValueRef::Int(item.l_partkey),
        ValueRef::Int(item.l_suppkey),
        ValueRef::Int(i64::from(item.l_linenumber)),
        decimal(item.l_quantity * 100),
        decimal(item.l_extendedprice.into_inner()),
        decimal(item.l_discount.into_inner()),
        decimal(item.l_tax.into_inner()),
        text(item.l_returnflag),
        text(item.l_linestatus),
        date(item.l_shipdate),
        date(item.l_commitdate),
        date(item.l_receiptdate),
        text(item.l_shipinstruct),
        text(item.l_shipmode),
        text(item.l_comment),
    ]
}
