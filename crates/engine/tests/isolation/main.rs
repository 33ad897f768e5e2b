//! What transactions see of each other.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod all_partitions;
mod built_beside;
mod damaged;
mod define;
mod definitions;
mod described;
mod full_disk;
mod growth;
mod hermitage;
mod interleavings;
mod large_transactions;
mod leftovers;
mod list_append;
mod locking;
mod model;
mod no_room;
mod open_scans;
mod partition_notes;
mod partitions;
mod patched_room;
mod processes;
mod read_views;
mod readers;
mod replaced;
mod stopped;
mod table_beside;
mod taken_back;
mod thin_pages;
mod threads;
mod visitors;
mod waits;
mod world;
