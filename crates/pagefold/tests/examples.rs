//! The programs under `examples/` do what they say.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../examples/compression.rs"]
mod compression;
#[path = "../examples/migration.rs"]
mod migration;
#[path = "../examples/parallel_scan.rs"]
mod parallel_scan;
#[path = "../examples/queue.rs"]
mod queue;
#[path = "../examples/quickstart.rs"]
mod quickstart;
#[path = "../examples/web_service.rs"]
mod web_service;

#[test]
fn they_run() {
    quickstart::main().unwrap();
    migration::main().unwrap();
    web_service::main().unwrap();
    queue::main().unwrap();
    compression::main().unwrap();
    parallel_scan::main().unwrap();
}
