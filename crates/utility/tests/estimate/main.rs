//! ESTIMATE against what LOAD, CREATE INDEX and REORG then take, and samples against the whole.

mod exact;
mod samples;
mod tables;
