//! ESTIMATE: what each method and page size would give, for files, a table or an index, before anything is changed.
//!
//! Feeds `pagefold-advisor` with rows and keys; nothing is written but sorted keys that memory does not hold.
//!
//! * [`EstimateOptions`], [`Proposal`]: what to estimate; [`EstimateReport`]: what came out
//! * `choose`: the same for LOAD, CREATE INDEX and REORG with `auto`; `costs`: what methods and formats cost on this machine
//! * `dictionary`: the dictionary LOAD would train; `stand_in`: what a sample says of it
//! * `source`, `table`, `index`: the three kinds of object
//! * `proposed`: keys of indexes that do not exist, all of them
//! * `ranges`: key ranges of such indexes, for samples
//! * `neighbours`: what pages by column save because neighbours are alike, which clusters of a sample do not show
//! * `random`: which pages a sample takes
//!
//! Without a sample the result is what LOAD, REORG or CREATE INDEX then takes, to the page.

mod candidates;
mod choose;
mod costs;
mod dictionary;
pub(crate) mod index;
mod neighbours;
mod options;
mod proposed;
pub(crate) mod random;
mod ranges;
mod report;
mod source;
mod stand_in;
mod table;

pub use candidates::add_every_method;
pub(crate) use choose::{choose_for_load, choose_format, choose_format_of, choose_method};
pub use costs::Costs;
pub(crate) use costs::{InTurn, scratch_database, shuffled};
pub use index::estimate_index;
pub use options::{EstimateOptions, Proposal, SAMPLE_BYTES_MIN, Scratch};
pub use report::{EstimateReport, IndexReportLine, IndexesEstimate, MethodEstimate, ObjectNow, SampleFacts};
pub use source::estimate_source;
pub use table::estimate_table;
