//! What the recovery of a disk image meets, by its log and its pages, and what was done before: so that a run can say what it went through, and that it left nothing out.
//!
//! Invariant: names come from matches over the enums of the format, without wildcard: a new kind of record, op or undo does not compile here before it has a name, and then it is asked for.

use crate::kinds::{
    BRANCHES, Branch, DATA_OPS, DATA_SET_OPS, LEAF_OPS, LEFTOVERS, NON_LEAF_OPS, PAGE_OPS, RECORDS, UNDOS, branch, data_op, data_set_op,
    leaf_op, leftover, non_leaf_op, page_op, record, undo,
};
use crate::world::DIRECTORY;
use pagefold_engine::database::read_checkpoint;
use pagefold_engine::directory::read_control;
use pagefold_engine::log::LogReader;
use pagefold_engine::pool::double_write;
use pagefold_engine::{LOG_DIRECTORY, file_id_of};
use pagefold_format::catalog::attributes::Attribute;
use pagefold_format::catalog::{DefinedKind, DefinitionView, tag};
use pagefold_format::data::{DataOp, StoredKind};
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::{Action, Change, Checkpoint, Commit, DataSetOp, Lsn, RecordKind, Role, Undo, next_change};
use pagefold_format::op::PageOp;
use pagefold_format::page::{self, PageIdentity};
use pagefold_format::space_map::{self, CLASS_UNALLOCATED, SpaceWord};
use pagefold_format::wire::Reader;
use pagefold_io::{FaultStorage, OpenOptions, Storage, read_exact_at};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A group, and a name in it.
pub(crate) type Kind = (&'static str, &'static str);

const GROUPS: [(&str, &[&str]); 10] = [
    ("record", RECORDS),
    ("page op", PAGE_OPS),
    ("op of a data page", DATA_OPS),
    ("op of a leaf", LEAF_OPS),
    ("op of a non-leaf page", NON_LEAF_OPS),
    ("op of a data set", DATA_SET_OPS),
    ("taken back at run time", UNDOS),
    ("taken back by recovery", UNDOS),
    ("left by a commit", LEFTOVERS),
    ("branch", BRANCHES),
];

/// What one image has behind its last checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeSet<Kind>);

/// Records of a transaction that nothing has taken back: start, and what takes them back.
type Chain = Vec<(Lsn, &'static str)>;

/// A page on disk.
struct OnDisk {
    lsn: Lsn,
    whole: bool,
    /// It was written, is free, and has only zeros.
    is_hole: bool,
}

impl Coverage {
    /// Of an image whose log is as recovery would find it; nothing when the database has none yet.
    pub(crate) fn of(image: &FaultStorage) -> Coverage {
        let mut coverage = Coverage::default();
        // A log that is cut short gives what it has.
        let _ = coverage.read(image);
        coverage
    }

    /// It is left by a recovery that was cut short.
    pub(crate) fn in_recovery(mut self) -> Coverage {
        self.meet(Branch::RecoveryCutShort);
        self
    }

    /// Old versions lay in their file when the machine stopped, if they did.
    pub(crate) fn with_versions_in_file(mut self, they_did: bool) -> Coverage {
        if they_did {
            self.meet(Branch::VersionsInFile);
        }
        self
    }

    /// A recovery failed before.
    pub(crate) fn after_failure(mut self) -> Coverage {
        self.meet(Branch::RecoveryFailed);
        self
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.0.iter().copied()
    }

    /// Everything that can be met.
    pub(crate) fn names() -> Vec<Kind> {
        GROUPS.iter().flat_map(|(group, names)| names.iter().map(move |name| (*group, *name))).collect()
    }

    fn meet(&mut self, met: Branch) {
        self.0.insert(("branch", branch(&met)));
    }

    fn read(&mut self, image: &FaultStorage) -> Option<()> {
        let directory = Path::new(DIRECTORY);
        let control = read_control(image, directory).ok()?.current;
        let (checkpoint, _) = read_checkpoint(image, directory, control.log_id, control.checkpoint).ok()?;
        let pages = pages(image, control.database_id)?;
        self.note_torn(image, control.database_id, &pages);
        // Chains of transactions that ran at the checkpoint begin before it.
        let first = checkpoint.transactions.iter().map(|t| t.first).fold(checkpoint.redo, u64::min);
        let mut reader = LogReader::open(image, &directory.join(LOG_DIRECTORY), control.log_id, first, 0).ok()?;
        if pages.values().flatten().any(|page| page.is_hole) {
            self.meet(Branch::BlocksGivenBack);
        }
        let mut scan = Scan::new(&checkpoint, pages);
        while let Some(found) = reader.next().ok()? {
            let kind = RecordKind::from_u8(found.kind)?;
            scan.behind = found.start >= checkpoint.redo;
            if scan.behind {
                self.0.insert(("record", record(&kind)));
            }
            match kind {
                RecordKind::Action => {
                    let action = Action::decode(found.body).ok()?;
                    self.add_role(&mut scan, &action.role, (found.start, found.end));
                    if matches!(action.role, Role::Structure) {
                        self.add_settled(&mut scan, action.changes)?;
                    }
                    if scan.behind {
                        self.add_changes(&scan, action.changes, found.end)?;
                    }
                }
                RecordKind::Commit => self.end(&mut scan, Commit::decode(found.body).ok()?.transaction, true),
                RecordKind::RolledBack => self.end(&mut scan, Reader::new(found.body).varint().ok()?, false),
                RecordKind::Checkpoint => {}
            }
        }
        self.add_losers(&scan);
        Some(())
    }

    fn add_role(&mut self, scan: &mut Scan, role: &Role<'_>, (start, end): (Lsn, Lsn)) {
        match role {
            Role::Structure => {}
            Role::Undoable { transaction, undo: back, .. } => {
                if scan.compensated.contains(transaction) {
                    self.meet(Branch::GoesOnBehindSavepoint);
                }
                match back {
                    Undo::Definition { object_id, rows: Some(definition) } => {
                        scan.defined.insert(*object_id, *transaction);
                        scan.files.extend(files_of_table(definition).into_iter().map(|file_id| (file_id, *transaction)));
                    }
                    Undo::InsertedEntry { object_id, .. } | Undo::InsertedEntries { object_id, .. } | Undo::KeptEntry { object_id, .. } => {
                        if let Some(by) = scan.defined.get(object_id).filter(|by| *by != transaction && scan.ends.contains_key(by)) {
                            scan.beside.insert(*by);
                            self.meet(Branch::KeptBeside);
                        }
                    }
                    _ => {}
                }
                scan.chains.entry(*transaction).or_default().push((start, undo(back)));
                scan.ends.entry(*transaction).or_default().insert(end);
                if let Some(left) = back.leaves() {
                    scan.left.entry(*transaction).or_default().push((start, leftover(&left)));
                }
            }
            Role::Compensation { transaction, next } => {
                let chain = scan.chains.entry(*transaction).or_default();
                while chain.last().is_some_and(|(at, _)| at > next) {
                    let (_, name) = chain.pop().unwrap_or_default();
                    if scan.behind {
                        self.0.insert(("taken back at run time", name));
                    }
                }
                scan.ends.entry(*transaction).or_default().insert(end);
                scan.left.entry(*transaction).or_default().retain(|(at, _)| at <= next);
                scan.compensated.insert(*transaction);
            }
        }
    }

    fn end(&mut self, scan: &mut Scan, transaction: u64, committed: bool) {
        scan.ends.remove(&transaction);
        // Undo that writes nothing has left its records in the chain.
        let chain = scan.chains.remove(&transaction).unwrap_or_default();
        let left = scan.left.remove(&transaction).unwrap_or_default();
        if !scan.behind {
            return;
        }
        if committed {
            if scan.beside.contains(&transaction) {
                self.meet(Branch::BuiltBeside);
            }
            if scan.anew.contains(&transaction) {
                self.meet(Branch::AnewBeside);
            }
            left.into_iter().for_each(|(_, name)| _ = self.0.insert(("left by a commit", name)));
            if scan.compensated.contains(&transaction) {
                self.meet(Branch::SavepointAndCommit);
            }
            let has_rows = chain.iter().any(|(_, name)| *name == "inserted row");
            for (_, name) in chain {
                match name {
                    "defined object" if has_rows => self.meet(Branch::ObjectComesWithRows),
                    "defined object" => self.meet(Branch::ObjectComes),
                    "dropped object" => self.meet(Branch::ObjectGoes),
                    _ => {}
                }
            }
        } else {
            chain.into_iter().for_each(|(_, name)| _ = self.0.insert(("taken back at run time", name)));
        }
    }

    /// What recovery takes back.
    fn add_losers(&mut self, scan: &Scan) {
        for (transaction, chain) in &scan.chains {
            self.meet(Branch::Unfinished);
            if scan.beside.contains(transaction) {
                self.meet(Branch::BuildCutShort);
            }
            if scan.anew.contains(transaction) {
                self.meet(Branch::AnewCutShort);
            }
            if scan.compensated.contains(transaction) {
                self.meet(Branch::UnfinishedRollback);
            }
            chain.iter().for_each(|(_, name)| _ = self.0.insert(("taken back by recovery", name)));
        }
        let ends: BTreeSet<Lsn> = scan.ends.values().flatten().copied().collect();
        if scan.pages.values().flatten().any(|page| ends.contains(&page.lsn)) {
            self.meet(Branch::Stolen);
        }
        if scan.at_checkpoint {
            self.meet(Branch::RunningAtCheckpoint);
        }
        if scan.defined_at_checkpoint {
            self.meet(Branch::DefinedAtCheckpoint);
        }
        scan.kept.iter().for_each(|name| _ = self.0.insert(("left by a commit", *name)));
        if !scan.kept.is_empty() {
            self.meet(Branch::LeftoversAtCheckpoint);
        }
    }

    /// Rows come into tables, and go, for no transaction: others have changed them in the tables that these are to replace.
    fn add_settled(&mut self, scan: &mut Scan, changes: &[u8]) -> Option<()> {
        let mut reader = Reader::new(changes);
        while !reader.is_empty() {
            let (file_id, _, change) = next_change(&mut reader).ok()?;
            if let (Some(by), Change::Page(PageOp::Data(_))) = (scan.files.get(&file_id), change)
                && scan.ends.contains_key(by)
            {
                scan.anew.insert(*by);
                self.meet(Branch::SettledBeside);
            }
        }
        Some(())
    }

    fn add_changes(&mut self, scan: &Scan, changes: &[u8], end: Lsn) -> Option<()> {
        let mut reader = Reader::new(changes);
        let mut shape = IndexShape::default();
        while !reader.is_empty() {
            let (file_id, number, change) = next_change(&mut reader).ok()?;
            let file = scan.pages.get(&file_id);
            if file.is_none() {
                let added = matches!(change, Change::DataSet(DataSetOp::Partition { .. }));
                self.meet(if added { Branch::PartitionWithoutFile } else { Branch::NoFile });
            }
            let on_disk = file.and_then(|pages| pages.get(number as usize));
            match change {
                Change::Page(op) => {
                    shape.add(&op);
                    let makes = self.add_page_op(&op);
                    self.meet(match on_disk {
                        _ if makes => Branch::PageMadeAnew,
                        Some(page) if page.lsn >= end => Branch::PageHasIt,
                        _ => Branch::Applied,
                    });
                }
                Change::DataSet(op) => {
                    if let (DataSetOp::Allocate { .. }, Some(true)) = (op, on_disk.map(|page| page.is_hole)) {
                        self.meet(Branch::HoleTaken);
                    }
                    self.0.insert(("op of a data set", data_set_op(&op)));
                }
            }
        }
        shape.branches().for_each(|branch| self.meet(branch));
        Some(())
    }

    /// Does the op make its page anew?
    fn add_page_op(&mut self, op: &PageOp<'_>) -> bool {
        self.0.insert(("page op", page_op(op)));
        match op {
            PageOp::Image(_) => true,
            PageOp::Data(op) => {
                self.0.insert(("op of a data page", data_op(op)));
                if let DataOp::Insert { kind: StoredKind::Special, .. } = op {
                    self.meet(Branch::RowMovesAway);
                }
                matches!(op, DataOp::Format { .. })
            }
            PageOp::Leaf(op) => {
                self.0.insert(("op of a leaf", leaf_op(op)));
                matches!(op, LeafOp::Format { .. } | LeafOp::FormatPrefix { .. })
            }
            PageOp::NonLeaf(op) => {
                self.0.insert(("op of a non-leaf page", non_leaf_op(op)));
                matches!(op, NonLeafOp::Format { .. })
            }
        }
    }

    fn note_torn(&mut self, image: &FaultStorage, database_id: u128, pages: &Pages) {
        let path = Path::new(DIRECTORY).join("doublewrite");
        for second in double_write::images(image, &path, database_id).unwrap_or_default() {
            match pages.get(&second.file_id).map(|pages| pages.get(second.page_number as usize)) {
                Some(Some(page)) if !page.whole => self.meet(Branch::TornPage),
                Some(None) => self.meet(Branch::PageNeverWritten),
                Some(Some(page)) if page.lsn < page::lsn(&second.bytes) => self.meet(Branch::OlderPage),
                _ => {}
            }
        }
    }
}

/// What one record does to the pages of an index, together.
#[derive(Default)]
struct IndexShape {
    removed: bool,
    replaced: bool,
    copied: bool,
    above: bool,
    /// Another change of a page above.
    parent: bool,
    formatted: bool,
}

impl IndexShape {
    fn add(&mut self, op: &PageOp<'_>) {
        match op {
            PageOp::NonLeaf(NonLeafOp::Remove { .. }) => self.removed = true,
            PageOp::NonLeaf(NonLeafOp::Replace { .. }) => self.replaced = true,
            PageOp::NonLeaf(NonLeafOp::Append { .. }) => self.above = true,
            PageOp::NonLeaf(_) => self.parent = true,
            PageOp::Leaf(LeafOp::FormatPrefix { .. }) => self.formatted = true,
            PageOp::Leaf(LeafOp::Append { .. } | LeafOp::Prepend { .. }) => self.copied = true,
            _ => {}
        }
    }

    fn branches(&self) -> impl Iterator<Item = Branch> + use<> {
        let IndexShape { removed, replaced, copied, above, parent, formatted } = *self;
        let met = [
            (Branch::PagesMerged, removed),
            (Branch::LeafUnlinked, removed && !copied && !replaced && !above),
            (Branch::LeavesSpread, removed && replaced && copied),
            (Branch::LeafLevelled, replaced && copied && !removed),
            (Branch::LeafPacked, formatted && copied && !(removed || replaced || above || parent)),
        ];
        met.into_iter().filter(|(_, met)| *met).map(|(branch, _)| branch)
    }
}

type Pages = BTreeMap<u32, Vec<OnDisk>>;

/// The files of a table, by its definition.
fn files_of_table(definition: &[u8]) -> Vec<u32> {
    let Some(view) = DefinitionView::new(definition).ok().filter(|view| view.kind == DefinedKind::Table) else { return Vec::new() };
    let data_sets = view.attributes().filter_map(Result::ok).filter(|attribute| attribute.tag == tag::DATA_SET);
    let file = |attribute: Attribute<'_>| {
        let mut reader = Reader::new(attribute.bytes);
        reader.varint16().and_then(|_| reader.varint32()).ok()
    };
    data_sets.filter_map(file).collect()
}

/// A pass over the log.
struct Scan {
    pages: Pages,
    /// Behind where redo begins.
    behind: bool,
    chains: BTreeMap<u64, Chain>,
    /// Ends of the records of transactions without an end.
    ends: BTreeMap<u64, BTreeSet<Lsn>>,
    left: BTreeMap<u64, Chain>,
    compensated: BTreeSet<u64>,
    /// Who has defined what.
    defined: BTreeMap<u32, u64>,
    /// Those that have defined an index which others keep before they have ended.
    beside: BTreeSet<u64>,
    /// Who has defined tables with these files.
    files: BTreeMap<u32, u64>,
    /// Those that write a table anew beside others.
    anew: BTreeSet<u64>,
    at_checkpoint: bool,
    defined_at_checkpoint: bool,
    /// What the checkpoint has of committed transactions.
    kept: Vec<&'static str>,
}

impl Scan {
    fn new(checkpoint: &Checkpoint, pages: Pages) -> Scan {
        let kept = checkpoint.leftovers.iter().filter(|left| left.transaction == 0).map(|left| leftover(&left.left));
        Scan {
            pages,
            behind: false,
            chains: BTreeMap::new(),
            ends: BTreeMap::new(),
            left: BTreeMap::new(),
            compensated: BTreeSet::new(),
            defined: BTreeMap::new(),
            beside: BTreeSet::new(),
            files: BTreeMap::new(),
            anew: BTreeSet::new(),
            at_checkpoint: !checkpoint.transactions.is_empty(),
            defined_at_checkpoint: !checkpoint.definitions.is_empty(),
            kept: kept.collect(),
        }
    }
}

/// What the map pages of a file say of its pages.
fn space_words(bytes: &[u8], page_bytes: usize) -> BTreeMap<u32, SpaceWord> {
    let map_pages = (1u32..).step_by(space_map::words_per_page(page_bytes) as usize);
    let map_pages = map_pages.map_while(|number| Some((number, bytes.get(number as usize * page_bytes..)?.get(..page_bytes)?)));
    map_pages.filter_map(|(number, page)| Some((number..).zip(space_map::words(page).ok()?))).flatten().collect()
}

/// All pages on disk.
fn pages(image: &FaultStorage, database_id: u128) -> Option<Pages> {
    let mut all = Pages::new();
    for path in image.list(&Path::new(DIRECTORY).join("data")).ok()? {
        let Some(file_id) = file_id_of(&path) else { continue };
        let file = image.open(&path, &OpenOptions::read_only()).ok()?;
        let mut bytes = vec![0; file.len().ok()? as usize];
        read_exact_at(file.as_ref(), &mut bytes, 0).ok()?;
        // Where the header is torn its page size is not known.
        let Some(size) = bytes.get(52..56).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes) else { continue };
        if !(page::PAGE_SIZE_MIN..=page::PAGE_SIZE_MAX).contains(&(size as usize)) {
            continue;
        }
        let words = space_words(&bytes, size as usize);
        let on_disk = bytes.chunks_exact(size as usize).zip(0..).map(|(bytes, page_number)| {
            let whole = page::verify(bytes, &PageIdentity { database_id, file_id, page_number }).is_ok();
            let is_zero = bytes.iter().all(|b| *b == 0);
            let word = words.get(&page_number);
            let was_written = word.is_some_and(|word| word.class() == CLASS_UNALLOCATED && word.write_counter() > 0);
            OnDisk { lsn: page::lsn(bytes), whole: whole || is_zero, is_hole: is_zero && was_written }
        });
        all.insert(file_id, on_disk.collect());
    }
    Some(all)
}
