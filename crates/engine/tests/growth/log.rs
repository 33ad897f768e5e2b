//! Segments of the log: what recovery needs no more goes, also when each process writes a little and ends.

use crate::Course;
use crate::tables::FORM;
use crate::world::{Random, try_open_with};
use pagefold_engine::database::{Isolation, OpenMode, Settings};
use pagefold_engine::log::LogSettings;
use pagefold_io::{MemoryStorage, Storage};
use std::path::Path;
use std::sync::Arc;

const SEGMENT_BYTES: u64 = 32 << 10;

fn small_segments(settings: Settings) -> Settings {
    Settings { log: LogSettings { segment_bytes: SEGMENT_BYTES, ..LogSettings::default() }, ..settings }
}

#[test]
fn of_many_processes_that_write_a_little() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = try_open_with(&storage, FORM, OpenMode::Create, small_segments).unwrap();
    world.database.close().unwrap();
    let mut random = Random(7);
    let mut course = Course::default();
    for round in 0..30 {
        let world = try_open_with(&storage, FORM, OpenMode::Write, small_segments).unwrap();
        let mut t = world.begin(Isolation::ReadCommitted);
        for number in 0..300 {
            world.insert(&mut t, round * 300 + number, number, &random.text(20)).unwrap();
        }
        t.commit().unwrap();
        world.database.close().unwrap();
        course.0.push(storage.list(Path::new("db/log")).unwrap().len() as u64);
    }
    let [first, second] = course.halves();
    println!("segments of the log: {first}, then {second}");
    assert!(second <= first + 1, "the log grows: {course:?}");
}
