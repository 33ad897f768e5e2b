//! CHECK: every page of a database, every row, every index entry against its row and every row against its entries.
//!
//! Pages are read straight from the files (or from a snapshot of them, with the log applied) and decoded by the views of `pagefold-format`; no buffer pool, no open database. So damage of one page hides nothing else, and
//! nothing that is read is trusted. The work goes on after every error.
//!
//! * `run`: the order of it all; [`check`], [`check_files`]
//! * `copy`: copies; [`check_copies`]
//! * `findings`: what was found; [`CheckReport`]
//! * `files`: page reader, control file, names of files
//! * `data_set`: header page, space map, and every page's checksum, place and write counter
//! * `catalog`: the catalog's rows
//! * `log`: the last checkpoint, and that nothing follows it
//! * `table`: data pages, rows, moved rows, large values (`large`), dictionaries (`chain`)
//! * `headers`: what files say of themselves, where the log cannot be read
//! * `tree`: the pages of an index in key order
//! * `unique`: keys that are unique over all partitions
//! * `difference`: two sets compared in bounded memory
//!
//! # What the comparison of rows and entries can miss
//! Rows and entries are compared as sets of (key, RID): each element is hashed to 128 bits, and both sides add up their hashes. Keys are made anew from the records. Sums that are
//! equal although the sets differ need a collision, 1 in 2^128 for damage that does not aim at it. Entries ascend strictly and rows are visited once under their home
//! RID, so no element comes twice on one side. Only when sums differ are both sides read again, to name the elements.
//!
//! # What cannot be found
//! * A database that was put back as a whole, control file included, to an older state of itself: it was a valid state.
//! * That the control slot not in use was filled with zeros: a writer does so with a damaged one, and nothing needs it.
//! * Bytes that no page owns: behind the last page in use of a file, and pages given back to the space map. They are never read.
//! * A wrong value in a record that is valid, where a program has written it: checksums vouch for bytes, not for what was meant. In a key column it is found, by the index.

mod catalog;
mod chain;
mod copy;
mod data_set;
mod difference;
mod files;
mod findings;
mod headers;
mod large;
mod log;
mod partitions;
mod run;
mod table;
mod tree;
mod unique;

pub use copy::check_copies;
pub use findings::{CheckReport, ERRORS_SHOWN, Leftover, PageError};
pub use run::{check, check_files};

pub(crate) use catalog::{catalog_entry, read_entries};
pub(crate) use chain::read_dictionaries;
pub(crate) use data_set::{DataSetFile, Expected};
pub(crate) use files::{PageReader, read_control_slots};
pub(crate) use findings::Context;
pub(crate) use headers::read_header;
pub(crate) use large::read_large;
pub(crate) use log::{is_in_order, known_log};
pub(crate) use run::files_in_order;
pub(crate) use table::{TableFiles, Visit, table_expected, table_object};
pub(crate) use tree::{IndexFile, index_expected, index_object};
