//! A check of whole histories: transactions append unique elements to lists and read lists, so what a list is says who wrote before whom (Kingsbury, Alvaro: Elle, 2020).
//!
//! * `history`: what was done and seen
//! * `order`: from what was read, the order of all versions, or an anomaly that no order explains
//! * `graph`: who depends on whom, and circles of it
//! * `check`: which of them a level forbids, with bad histories made by hand
//! * `clients`: threads that make a history on a database
//! * `runs`: histories of many threads
//! * `crashes`: histories that go on after crashes
//!
//! The long form, in release as everywhere: `PAGEFOLD_HISTORY_TRANSACTIONS=1000000 cargo test --release -p pagefold-engine --test isolation -- list_append --nocapture`.

mod check;
mod clients;
mod crashes;
mod graph;
mod history;
mod order;
mod runs;
