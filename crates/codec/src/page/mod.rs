//! Pages by column (method `page`): rows rebuilt as a *column area*, in which any value, row or column is read in constant time.
//!
//! Pure: [`PageEncoder`] turns packed records into bytes and knows their exact number before; [`ColumnArea`] reads them. Every column of every area has the
//! encoding that takes the fewest bytes there. The encodings are those that leave random access (Lemire, Boytsov 2015; Kuschewski et al., "BtrBlocks", 2023;
//! Liu et al., "LeCo", 2024); NULL rows repeat a neighbour's value.
//!
//! ## Format
//!
//! Numbers are little-endian. *Packed* numbers of w bits lie one behind the other in little-endian bit order. Offsets count from the start of the area.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 2 | rows, 1 to 4,096 |
//! | 2 | 2 | columns |
//! | 4 | 2 | length of the area |
//! | 6 | 8 each | entries of the columns |
//! | | | parameters that do not fit into entries |
//! | | | data of the columns |
//!
//! | Offset | Size | Field of an entry |
//! |---|---|---|
//! | 0 | 1 | encoding (low 4 bits); 16 some rows are NULL, 32 exceptions, 64 parameters outside, 128 some values are large-value references |
//! | 1 | 1 | bits of a packed number |
//! | 2 | 2 | offset of the packed numbers |
//! | 4 | 4 | parameters; when outside: their offset (2), 0 (2) |
//!
//! | Encoding | Value of row i, r the packed number of the row | Parameters in the entry | outside |
//! |---|---|---|---|
//! | 0 null | NULL | | |
//! | 1 frame | base + r | base (4) | base (8) |
//! | 2 multiple | base + factor r | | base (8), factor (8) |
//! | 3 linear | base + (slope i / 2^16, rounded down) + r | | base (8), slope (8) |
//! | 4 dictionary | base + number r of those packed at an offset | | base (8), offset (2), number of them (2), bits (1), 0 (1) |
//! | 5 difference | value of the partner, an earlier column with an encoding of 1 to 4, + base + r | base (2), partner (2) | base (8), partner (2) |
//! | 8 bytes | string i of a heap; r ends it | | heap |
//! | 9 codes | the same, in string codes | | heap |
//! | 10 dictionary of bytes | string r of a heap | | heap, offset of the ends (2), number of strings (2), bits of an end (1) |
//! | 11 dictionary of codes | the same, in string codes | | the same |
//!
//! Arithmetic wraps at 64 bits. The heap's parameters are: slope (4), base (4), offset of the strings (2), length of the prefix (2). String k ends at base + (slope (k + 1) / 2^16,
//! rounded down) + its packed number, and starts where string k - 1 ends, the first at 0: in bytes, or in codes of 12 bits from the [dictionary](crate::row::Dictionary) of
//! the table, packed. The prefix, which all strings begin with, lies before the strings. NULL rows have no bytes.
//!
//! Before the packed numbers of a column lies the bitmap of NULL rows, if it has some, before that the bitmap of large-value references (a bit per row, from
//! the least significant of byte 0). Behind them lie the exceptions, which replace the packed number of their row: number of exceptions (2), bytes of each (1), their rows, ascending
//! (2 each), their numbers (two's complement). Only encodings 1, 3 and 5 have exceptions.
//!
//! Integers are BOOLEAN, integers, dates, times, DECIMAL of up to 8 bytes, and REAL and DOUBLE by the two's complement of their bits. All others are strings: CHAR without
//! trailing blanks, UUID and wider DECIMAL as in the record.

mod area;
mod batch;
mod batch_strings;
mod bitmap;
mod bits;
mod bits_avx2;
mod carry;
mod check;
mod encoder;
mod int_members;
mod int_rows;
mod int_set;
mod ints;
mod layout;
mod nulls;
mod numbers;
mod patch;
mod prepare;
mod schema;
mod select;
mod spans;
mod string_rows;
mod strings;

pub use area::{ColumnArea, StringValue};
pub use batch::PageInt;
pub use bitmap::Bitmap;
pub use carry::CarriedRows;
pub use encoder::{ColumnSize, PageEncoder};
pub use int_members::IntMembers;
pub use int_set::IntSet;
pub use layout::{AREA_BYTES_MAX, ROWS_MAX};
pub use patch::Patch;
pub use prepare::{PreparedRows, RowPreparer};
pub use schema::PageSchema;

#[cfg(test)]
mod tests;
