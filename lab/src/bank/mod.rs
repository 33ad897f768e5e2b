//! Tables like those of a bank that keeps its accounts under SAP: columns of CHAR that are padded with blanks, numbers and dates as digits, keys as hexadecimal digits, and many columns that have
//! never been set. The same seed gives the same rows.
//!
//! What is modelled, after what is published of such workloads: master data of accounts, payment items and general-ledger items (20 an account, by account and date, as a reorganisation by the
//! clustering index leaves them), balances, counters, payment order notes and business partners. What is invented: the columns, and how their values are spread. Nothing in here has been fitted to a size.
//!
//! * `draw`: what the values of a row are made of
//! * `words`: names, places, purposes
//! * `tables`: the columns

mod draw;
mod tables;
mod words;

pub use draw::Draw;
use pagefold_types::{Column, DataType, Schema, SchemaError};
pub use tables::TABLES;

/// A column: its name, its characters, and what appends a value.
pub type Field = (&'static str, u32, fn(&mut Draw, &mut String));

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct BankTable {
    /// Its name.
    pub name: &'static str,
    /// Rows of one account, one behind the other.
    pub per_account: u64,
    /// How many columns, from the first on, are the primary key.
    pub key_columns: usize,
    /// The columns.
    pub fields: &'static [Field],
}

impl BankTable {
    /// The columns: CHAR, none of them NULL.
    ///
    /// # Errors
    /// When a name occurs twice.
    pub fn schema(&self) -> Result<Schema, SchemaError> {
        Schema::new(self.fields.iter().map(|(name, chars, _)| Column::new(*name, DataType::Char(*chars), false)).collect())
    }

    /// The names of the primary key's columns.
    #[must_use]
    pub fn primary_key(&self) -> Vec<String> {
        self.fields.iter().take(self.key_columns).map(|(name, ..)| (*name).to_owned()).collect()
    }

    /// The values of a row, without the blanks that pad them. Rows are numbered from 0.
    #[must_use]
    pub fn row(&self, seed: u64, number: u64) -> Vec<String> {
        let table = self.name.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut draw = Draw::new(seed, table, number, self.per_account);
        self.fields
            .iter()
            .map(|(_, chars, value)| {
                let mut out = String::new();
                value(&mut draw, &mut out);
                out.truncate(*chars as usize);
                out.truncate(out.trim_end().len());
                out
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_types::{RowLayout, ValueRef};
    use std::collections::HashSet;

    #[test]
    fn rows_fit_their_columns_and_keys_are_unique() {
        for table in &TABLES {
            let layout = RowLayout::new(&table.schema().unwrap()).unwrap();
            let mut keys = HashSet::new();
            for number in 0..3_000 {
                let row = table.row(7, number);
                assert_eq!(row, table.row(7, number));
                assert!(row.iter().all(|text| text.is_ascii()), "{row:?}");
                let values: Vec<ValueRef<'_>> = row.iter().map(|text| ValueRef::Text(text)).collect();
                layout.encode(&values, &mut Vec::new()).unwrap();
                assert!(keys.insert(row[..table.key_columns].to_vec()), "{}: {row:?}", table.name);
            }
            assert_ne!(table.row(7, 5), table.row(8, 5));
        }
    }
}
