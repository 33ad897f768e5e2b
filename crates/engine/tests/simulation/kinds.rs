//! Names of everything that a log can say, for `coverage`.
//!
//! Invariant: no wildcards. The list of names and the match are written once.

use pagefold_codec::splice::{Splice, Unit};
use pagefold_format::data::DataOp;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::{DataSetOp, Earlier, Leftover, RecordKind, Undo};
use pagefold_format::op::PageOp;

/// A function that names the variants of a type, and the list of these names.
macro_rules! kinds {
    ($function:ident, $list:ident, $kind:ty, { $($pattern:pat => $name:literal,)* }) => {
        pub(crate) const $list: &[&str] = &[$($name),*];

        pub(crate) fn $function(kind: &$kind) -> &'static str {
            match kind {
                $($pattern => $name,)*
            }
        }
    };
}

kinds!(record, RECORDS, RecordKind, {
    RecordKind::Action => "action",
    RecordKind::Commit => "commit",
    RecordKind::RolledBack => "rolled back",
    RecordKind::Checkpoint => "checkpoint",
});

kinds!(page_op, PAGE_OPS, PageOp<'_>, {
    PageOp::Image(_) => "image",
    PageOp::Data(_) => "of a data page",
    PageOp::Leaf(_) => "of a leaf",
    PageOp::NonLeaf(_) => "of a non-leaf page",
});

kinds!(data_op, DATA_OPS, DataOp<'_>, {
    DataOp::Format { .. } => "format",
    DataOp::Insert { .. } => "insert",
    DataOp::Replace { .. } => "replace",
    DataOp::Splice { splice: Splice { unit: Unit::Bytes, .. }, .. } => "splice",
    DataOp::Splice { splice: Splice { unit: Unit::Codes, .. }, .. } => "splice in codes",
    DataOp::Splice { splice: Splice { unit: Unit::Bits, .. }, .. } => "splice in bits",
    DataOp::Splice { splice: Splice { unit: Unit::BitsCut, .. }, .. } => "splice in bits, one cut",
    DataOp::Delete { .. } => "delete",
    DataOp::MarkDeleted { .. } => "mark deleted",
    DataOp::Undelete { .. } => "undelete",
    DataOp::Purge { .. } => "purge",
    DataOp::Rebuild(_) => "rebuild",
    DataOp::Patch { .. } => "patch",
    DataOp::Ranges(_) => "ranges",
});

kinds!(leaf_op, LEAF_OPS, LeafOp<'_>, {
    LeafOp::Format { .. } => "format",
    LeafOp::FormatPrefix { .. } => "format with prefixes",
    LeafOp::Insert { .. } => "insert",
    LeafOp::Remove { .. } => "remove",
    LeafOp::KeepFirst { .. } => "keep the first",
    LeafOp::KeepFrom { .. } => "keep from a place on",
    LeafOp::Append { .. } => "append",
    LeafOp::Prepend { .. } => "prepend",
    LeafOp::SetNext { .. } => "set the next leaf",
});

kinds!(non_leaf_op, NON_LEAF_OPS, NonLeafOp<'_>, {
    NonLeafOp::Format { .. } => "format",
    NonLeafOp::Insert { .. } => "insert",
    NonLeafOp::Remove { .. } => "remove",
    NonLeafOp::Replace { .. } => "replace",
    NonLeafOp::KeepFirst { .. } => "keep the first",
    NonLeafOp::Append { .. } => "append",
    NonLeafOp::SetFirstChild { .. } => "set the first child",
});

kinds!(data_set_op, DATA_SET_OPS, DataSetOp, {
    DataSetOp::Allocate { .. } => "a page is taken",
    DataSetOp::Free => "a page is given back",
    DataSetOp::Root { .. } => "another root",
    DataSetOp::Count(_) => "counts",
    DataSetOp::Dictionary { .. } => "a dictionary comes",
    DataSetOp::DropDictionary { .. } => "a dictionary goes",
    DataSetOp::Partition { .. } => "a partition",
    DataSetOp::GhostGone { .. } => "a ghost goes",
});

kinds!(undo, UNDOS, Undo<'_>, {
    Undo::InsertedRow { .. } => "inserted row",
    Undo::InsertedRows { .. } => "inserted rows",
    Undo::DeletedRow { .. } => "deleted row",
    Undo::UpdatedRow { before: Earlier::Spliced(Splice { unit: Unit::Bytes, .. }), .. } => "updated row, a piece",
    Undo::UpdatedRow { before: Earlier::Spliced(Splice { unit: Unit::Codes, .. }), .. } => "updated row, codes",
    Undo::UpdatedRow { before: Earlier::Spliced(Splice { unit: Unit::Bits | Unit::BitsCut, .. }), .. } => "updated row, bits",
    Undo::UpdatedRow { before: Earlier::Record(_), .. } => "updated row, a piece of the record",
    Undo::UpdatedRow { before: Earlier::Whole { .. }, .. } => "updated row, another form",
    Undo::InsertedEntry { .. } => "inserted entry",
    Undo::InsertedEntries { .. } => "inserted entries",
    Undo::AllocatedPage { .. } => "page of a large value",
    Undo::KeptEntry { .. } => "kept entry",
    Undo::KeptLargeValue { .. } => "kept large value",
    Undo::Definition { rows: Some(_), .. } => "defined object",
    Undo::Definition { rows: None, .. } => "dropped object",
});

kinds!(leftover, LEFTOVERS, Leftover, {
    Leftover::Entry { .. } => "entry",
    Leftover::LargeValue { .. } => "large value",
    Leftover::Ghost { .. } => "ghost",
});

/// Ways that recovery can go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Branch {
    TornPage,
    PageNeverWritten,
    OlderPage,
    PageMadeAnew,
    PageHasIt,
    Applied,
    NoFile,
    PartitionWithoutFile,
    Stolen,
    Unfinished,
    UnfinishedRollback,
    SavepointAndCommit,
    GoesOnBehindSavepoint,
    RunningAtCheckpoint,
    LeftoversAtCheckpoint,
    RowMovesAway,
    PagesMerged,
    LeafUnlinked,
    LeavesSpread,
    LeafLevelled,
    LeafPacked,
    DefinedAtCheckpoint,
    ObjectComes,
    ObjectComesWithRows,
    ObjectGoes,
    RecoveryCutShort,
    RecoveryFailed,
    VersionsInFile,
    KeptBeside,
    BuildCutShort,
    BuiltBeside,
    SettledBeside,
    AnewCutShort,
    AnewBeside,
    BlocksGivenBack,
    HoleTaken,
}

kinds!(branch, BRANCHES, Branch, {
    Branch::TornPage => "a torn page is restored",
    Branch::PageNeverWritten => "a page behind the end of its file is restored",
    Branch::OlderPage => "an older page is replaced by its second image",
    Branch::PageMadeAnew => "redo makes a page anew",
    Branch::PageHasIt => "redo finds a page that has it",
    Branch::Applied => "redo changes a page",
    Branch::NoFile => "redo of a data set without a file",
    Branch::PartitionWithoutFile => "redo of a partition without a file",
    Branch::Stolen => "a page of an unfinished transaction is on disk",
    Branch::Unfinished => "a transaction without an end",
    Branch::UnfinishedRollback => "a rollback without an end",
    Branch::SavepointAndCommit => "something taken back, then a commit",
    Branch::GoesOnBehindSavepoint => "something taken back, then more changes",
    Branch::RunningAtCheckpoint => "a transaction ran at the checkpoint",
    Branch::LeftoversAtCheckpoint => "the checkpoint has leftovers",
    Branch::RowMovesAway => "a row moves away",
    Branch::PagesMerged => "pages of an index are merged into one fewer",
    Branch::LeafUnlinked => "an empty leaf is taken out",
    Branch::LeavesSpread => "three leaves or more are merged into one fewer",
    Branch::LeafLevelled => "a full leaf gives entries to a neighbour",
    Branch::LeafPacked => "a leaf is packed anew without many of its entries",
    Branch::DefinedAtCheckpoint => "a transaction that makes or drops something ran at the checkpoint",
    Branch::ObjectComes => "a table or index comes with a commit",
    Branch::ObjectComesWithRows => "a table or index comes with a commit that has rows",
    Branch::ObjectGoes => "a table or index goes with a commit",
    Branch::RecoveryCutShort => "a recovery cut short",
    Branch::RecoveryFailed => "a recovery that fails",
    Branch::VersionsInFile => "old versions lay in their file",
    Branch::KeptBeside => "others keep an index that is being built beside them",
    Branch::BuildCutShort => "a build beside writers without an end",
    Branch::BuiltBeside => "an index built beside writers comes with a commit",
    Branch::SettledBeside => "rows of a table that is written anew follow those of the old one",
    Branch::AnewCutShort => "a table that is written anew, without an end",
    Branch::AnewBeside => "a table written anew beside writers comes with a commit",
    Branch::BlocksGivenBack => "blocks of a free page were given back",
    Branch::HoleTaken => "a free page is taken whose blocks were given back",
});
