//! Records that are whole and say what no program has written: recovery refuses them or survives them; it neither panics nor takes memory or space without end.
//!
//! More of them: `PAGEFOLD_HOSTILE_RECORDS=100000 cargo test --release -p pagefold-engine --test simulation -- hostile --nocapture`.

use crate::images::try_contents;
use crate::model::Promise;
use crate::player::{Player, work};
use crate::steps::{Mix, Step, history, statement};
use crate::world::{Random, Shape, create, open};
use pagefold_codec::splice::{Splice, Unit};
use pagefold_engine::LOG_DIRECTORY;
use pagefold_engine::database::OpenMode;
use pagefold_engine::directory::read_control;
use pagefold_engine::log::{Log, LogReader, LogSettings};
use pagefold_format::data::DataOp;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::{Action, Change, Checkpoint, Commit, Counts, DataSetOp, Earlier, EntryList, RecordKind, Role, Undo, put_change};
use pagefold_format::op::PageOp;
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, Storage};
use pagefold_types::{LargeValueRef, Rid};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A database that was not closed, and its records behind the checkpoint.
struct Target {
    storage: FaultStorage,
    log_id: u128,
    records: Vec<(u8, Vec<u8>)>,
    /// End of the log, and a record's start in it.
    end: u64,
    inside: u64,
}

impl Target {
    fn new() -> Target {
        let storage = FaultStorage::new(FaultOptions { seed: 4, ..FaultOptions::default() });
        create(&storage, Shape::default()).unwrap();
        let database = open(&storage, OpenMode::Write).unwrap();
        let (mut random, promise) = (Random(4), Arc::<Mutex<Promise>>::default());
        work(&database, &promise, &history(&mut random, Mix::plain(), 120)).unwrap();
        let mut open_ended = Player::new(&database, &promise, &Arc::default());
        let steps: Vec<Step> = (0..40).map(|i| Step::Write { writer: 0, statement: statement(&mut random, i % 2, (26, true)) }).collect();
        open_ended.play(&steps).unwrap();
        for table in database.tables().unwrap() {
            table.data_sets().for_each(|data_set| database.write_dirty_pages(data_set).unwrap());
        }
        let storage = storage.crash_image(CrashPolicy::KeepAll);
        drop(open_ended);
        let control = read_control(&storage, Path::new("db")).unwrap().current;
        let mut reader = LogReader::open(&storage, &Path::new("db").join(LOG_DIRECTORY), control.log_id, control.checkpoint, 0).unwrap();
        let (mut records, mut inside) = (Vec::new(), 0);
        while let Some(record) = reader.next().unwrap() {
            records.push((record.kind, record.body.to_vec()));
            inside = record.start;
        }
        assert!(records.len() > 20, "{} records", records.len());
        Target { storage, log_id: control.log_id, records, end: reader.end(), inside }
    }

    /// The database with these records behind its own.
    fn with(&self, records: &[(u8, Vec<u8>)]) -> FaultStorage {
        let image = self.storage.crash_image(CrashPolicy::KeepAll);
        let storage: Arc<dyn Storage> = Arc::new(image.clone());
        let settings = LogSettings { segment_bytes: 32 << 10, ..LogSettings::default() };
        let log = Log::open(storage, &Path::new("db").join(LOG_DIRECTORY), self.log_id, settings, self.end).unwrap();
        for (kind, body) in records {
            log.append(*kind, &[body], &mut |_| {}).unwrap();
        }
        log.make_durable(log.end()).unwrap();
        image.set_capacity(Some(image.taken_bytes() + (16 << 20)));
        image
    }

    /// A record that was written, with some bytes changed.
    fn changed(&self, random: &mut Random) -> (u8, Vec<u8>) {
        let (kind, mut body) = self.records[random.below(self.records.len() as u64) as usize].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(body.len() as u64 + 1) as usize;
            match random.below(5) {
                0 => body.truncate(at.max(1)),
                1 => body.insert(at, random.below(256) as u8),
                _ if at == body.len() => {}
                2 => drop(body.remove(at)),
                3 => body[at] ^= 1 << random.below(8),
                _ => body[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5) as usize],
            }
        }
        (kind, body)
    }

    /// A record of valid form with numbers out of all bounds.
    fn invented(&self, random: &mut Random) -> (u8, Vec<u8>) {
        let number = |random: &mut Random| [0, 1, 2, 3, 5, 9, 70, 1 << 20, u32::MAX - 1, u32::MAX][random.below(10) as usize];
        let long = |random: &mut Random| [0, 1, self.inside, self.end, 1 << 40, (1 << 62) - 1, 1 << 62, u64::MAX][random.below(8) as usize];
        let rid = Rid::new(random.below(3) as u16, number(random), random.below(40) as u16);
        let object_id = 1 + random.below(7) as u32;
        let value = LargeValueRef {
            first_page: number(random),
            raw_bytes: number(random),
            tag: long(random) >> 12,
            partition: random.below(2) as u16,
        };
        let mut body = Vec::new();
        match random.below(12) {
            0 => {
                Commit { transaction: long(random), unix_time_ns: u64::MAX }.encode(&mut body);
                return (RecordKind::Commit as u8, body);
            }
            1 => {
                Checkpoint { redo: long(random), next_transaction: long(random), ..Checkpoint::default() }.encode(&mut body);
                return (RecordKind::Checkpoint as u8, body);
            }
            _ => {}
        }
        let key = [0x80, 0, 0, 0, 0, 0, 0, random.below(90) as u8];
        let mut entries = Vec::new();
        (0..=random.below(4)).for_each(|n| EntryList::push(&mut entries, &key[..random.below(9) as usize], Rid::new(0, 1 + n as u32, 3)));
        let undo = match random.below(7) {
            0 if random.one_in(2) => Undo::InsertedRows { object_id, rid, count: 1 + random.below(30) as u16 },
            0 => Undo::InsertedRow { object_id, rid },
            1 => Undo::DeletedRow { object_id, rid, kind: random.below(256) as u8 },
            2 => {
                let unit = [Unit::Bytes, Unit::Codes, Unit::Bits, Unit::BitsCut][random.below(4) as usize];
                let (at, removed) = (random.below(90) as u16, random.below(90) as u16);
                let before = match random.below(3) {
                    0 => Earlier::Whole { version: random.below(3) as u16, bytes: &[7; 40] },
                    _ => Earlier::Spliced(Splice { unit, at, removed, inserted: 20, bytes: &[7; 30][..Splice::piece_len(unit, 20)] }),
                };
                Undo::UpdatedRow { object_id, rid, before }
            }
            3 if random.one_in(2) => Undo::InsertedEntries { object_id, entries: EntryList::parse(&entries).unwrap() },
            3 => Undo::InsertedEntry { object_id, key: &key[..random.below(9) as usize], rid },
            4 => Undo::AllocatedPage { file_id: object_id, page: number(random) },
            5 => Undo::KeptEntry { object_id, key: &key, rid },
            _ => Undo::KeptLargeValue { object_id, value },
        };
        let role = match random.below(3) {
            0 => Role::Structure,
            1 => Role::Undoable { transaction: long(random), previous: if random.below(2) == 0 { 0 } else { long(random) }, undo },
            _ => Role::Compensation { transaction: long(random), next: long(random) },
        };
        Action::encode_head(&role, &mut body);
        let image = vec![random.below(9) as u8; 2048];
        for _ in 0..random.below(4) {
            let signed = [i64::MIN, -5, 0, 1, i64::MAX];
            let mut count = || signed[random.below(5) as usize];
            let counts = Counts { rows: count(), data_pages: count(), keys: count() };
            let page_number = number(random);
            let kind = pagefold_format::index::header::LeafKind { single: true, fold: false, fixed_key_bytes: 8, slot_bits: 12 };
            let change = match random.below(13) {
                0 => Change::DataSet(DataSetOp::Allocate { class: random.below(256) as u8 }),
                1 => Change::DataSet(DataSetOp::Free),
                2 => Change::DataSet(DataSetOp::Root { levels: number(random) as u16 }),
                3 => Change::DataSet(DataSetOp::Count(counts)),
                4 => Change::DataSet(DataSetOp::Dictionary { version: number(random) as u16, bytes: number(random) }),
                5 => Change::Page(PageOp::Data(DataOp::Format { page_number, dictionary_version: number(random) as u16 })),
                6 => Change::Page(PageOp::Leaf(LeafOp::Format { page_number, kind, next: number(random) })),
                7 => Change::Page(PageOp::NonLeaf(NonLeafOp::Format { page_number, level: 1, first_child: number(random) })),
                8 => Change::Page(PageOp::Image(&image)),
                9 => Change::Page(PageOp::Data(DataOp::Delete { slot: number(random) as u16 })),
                10 => Change::Page(PageOp::Leaf(LeafOp::Insert { key: &key, rid })),
                11 => Change::Page(PageOp::Leaf(LeafOp::FormatPrefix { page_number, fixed_key_bytes: 8, next: number(random) })),
                _ => Change::Page(PageOp::NonLeaf(NonLeafOp::SetFirstChild { child: number(random) })),
            };
            put_change(&mut body, 1 + random.below(9) as u32, if random.below(2) == 0 { page_number } else { number(random) }, &change);
        }
        (RecordKind::Action as u8, body)
    }
}

#[test]
fn hostile_records_are_refused_or_survived() {
    let target = Target::new();
    let rounds = std::env::var("PAGEFOLD_HOSTILE_RECORDS").ok().and_then(|n| n.parse().ok()).unwrap_or(800);
    let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..rounds {
        let mut random = Random(seed);
        let count = 1 + random.below(3);
        let records: Vec<_> =
            (0..count).map(|_| if random.below(2) == 0 { target.changed(&mut random) } else { target.invented(&mut random) }).collect();
        let image = target.with(&records);
        let fate = match open(&image, OpenMode::Write) {
            Err(_) => "refused",
            Ok(database) if try_contents(&database).is_err() => "seen by a check",
            Ok(_) => "survived",
        };
        *fates.entry(fate).or_default() += 1;
    }
    println!("{rounds} databases: {fates:?}");
    assert!(fates.len() == 3, "{fates:?}");
}
