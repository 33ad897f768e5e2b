//! What operations on entries cost in each format and page size.

use super::WayCosts;
use crate::estimate::{InTurn, shuffled};
use crate::{Progress, Result};
use pagefold_advisor::{Cost, IndexCandidate, LeafFormat, OperationCosts};
use pagefold_engine::database::Database;
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::TableAttributes;
use pagefold_types::{Direction, Rid, Schema};
use std::hint::black_box;
use std::sync::Arc;

/// Entries between two looks at the clock.
const PIECE: usize = 100;
const ROUNDS: usize = 2;
const READ_ROUNDS: usize = 2;

/// A key and the row that has it.
type Entry = (Vec<u8>, Rid);

/// Entries in their order, and the index that they are of.
pub(super) struct EntriesOf<'e> {
    pub(super) schema: &'e Schema,
    pub(super) columns: &'e [(usize, Direction)],
    pub(super) unique: bool,
    pub(super) entries: &'e [Entry],
}

/// Costs of each candidate: every other entry is there, the others are inserted between them, all are looked for, and the others are deleted.
pub(super) fn costs(
    database: &Database,
    of: &EntriesOf<'_>,
    candidates: &[IndexCandidate],
    progress: &dyn Progress,
) -> Result<Vec<WayCosts>> {
    let others = shuffled(of.entries.iter().skip(1).step_by(2).collect::<Vec<&Entry>>());
    let all = shuffled(of.entries.iter().collect::<Vec<&Entry>>());
    let changed: Vec<&[&Entry]> = others.chunks(PIECE).collect();
    let found: Vec<&[&Entry]> = all.chunks(PIECE).collect();
    let turns = |pieces: usize| InTurn::new(candidates.len(), pieces);
    let (mut inserts, mut deletes, mut searches) = (turns(changed.len()), turns(changed.len()), turns(found.len()));
    for round in 0..ROUNDS {
        let indexes = candidates.iter().map(|candidate| half_full(database, of, candidate, round)).collect::<Result<Vec<_>>>()?;
        inserts.round(progress, |at, piece| {
            changed[piece].iter().try_for_each(|(key, rid)| indexes[at].tree().insert(key, *rid))?;
            Ok(())
        })?;
        for _ in 0..READ_ROUNDS {
            searches.round(progress, |at, piece| {
                for (key, _) in found[piece] {
                    black_box(indexes[at].tree().first_rid(key)?);
                }
                Ok(())
            })?;
        }
        deletes.round(progress, |at, piece| {
            changed[piece].iter().try_for_each(|(key, rid)| indexes[at].tree().delete(key, *rid).map(drop))?;
            Ok(())
        })?;
    }
    let costs = searches.each_ns(all.len()).zip(inserts.each_ns(others.len()).zip(deletes.each_ns(others.len())));
    Ok(costs
        .map(|(lookup_ns, (insert_ns, delete_ns))| WayCosts {
            operations: OperationCosts { lookup_ns, insert_ns, batch_insert_ns: insert_ns, delete_ns, ..OperationCosts::default() },
            cost: Cost { read_ns: lookup_ns, write_ns: insert_ns },
        })
        .collect())
}

/// An index with every other entry.
fn half_full(database: &Database, of: &EntriesOf<'_>, candidate: &IndexCandidate, round: usize) -> Result<Arc<Index>> {
    let format = match candidate.format {
        LeafFormat::Plain => IndexFormat::Plain,
        LeafFormat::Fold => IndexFormat::Fold,
        LeafFormat::Prefix => IndexFormat::Prefix,
    };
    let name = format!("{format} {} {round}", candidate.page_bytes);
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new(&name, of.schema.clone()).with_page_bytes(32768))?;
    let attributes =
        IndexAttributes::new(format!("key of {name}"), of.columns.to_vec(), of.unique).with_format(format, candidate.page_bytes);
    let index = change.create_index(&table, attributes)?;
    let slot_max = of.entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0);
    let mut builder = index.build(slot_max);
    for (key, rid) in of.entries.iter().step_by(2) {
        builder.push(key, *rid)?;
    }
    builder.finish()?;
    change.commit()?;
    Ok(index)
}
