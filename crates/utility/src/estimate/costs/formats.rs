//! What formats of indexes and their page sizes cost.

use super::in_turn::InTurn;
use super::{KeysOf, READ_ROUNDS, ROUNDS, shuffled};
use crate::{Progress, Result};
use pagefold_advisor::{Cost, IndexCandidate, LeafFormat};
use pagefold_engine::database::Database;
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::TableAttributes;
use pagefold_types::Rid;
use std::hint::black_box;
use std::sync::Arc;

/// Keys between two looks at the clock.
const PIECE: usize = 100;

/// A key and the row that has it.
type Entry = (Vec<u8>, Rid);

/// Of each candidate: time to find a key, and to insert one between others. The entries are sorted.
pub(super) fn costs(
    database: &Database,
    of: &KeysOf<'_>,
    entries: &[Entry],
    candidates: &[&IndexCandidate],
    progress: &dyn Progress,
) -> Result<Vec<Cost>> {
    let others = shuffled(entries.iter().skip(1).step_by(2).collect());
    let all = shuffled(entries.iter().collect());
    let inserted: Vec<&[&Entry]> = others.chunks(PIECE).collect();
    let found: Vec<&[&Entry]> = all.chunks(PIECE).collect();
    let (mut writes, mut reads) = (InTurn::new(candidates.len(), inserted.len()), InTurn::new(candidates.len(), found.len()));
    for round in 0..ROUNDS {
        let indexes = candidates.iter().map(|candidate| half_full(database, of, entries, candidate, round)).collect::<Result<Vec<_>>>()?;
        writes.round(progress, |contender, piece| {
            inserted[piece].iter().try_for_each(|(key, rid)| indexes[contender].tree().insert(key, *rid).map(drop))?;
            Ok(())
        })?;
        for _ in 0..READ_ROUNDS {
            reads.round(progress, |contender, piece| {
                for (key, _) in found[piece] {
                    black_box(indexes[contender].tree().first_rid(key)?);
                }
                Ok(())
            })?;
        }
    }
    let costs = reads.each_ns(all.len()).zip(writes.each_ns(others.len()));
    Ok(costs.map(|(read_ns, write_ns)| Cost { read_ns, write_ns }).collect())
}

/// An index with every other entry.
fn half_full(database: &Database, of: &KeysOf<'_>, entries: &[Entry], candidate: &IndexCandidate, round: usize) -> Result<Arc<Index>> {
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
    let index: Arc<Index> = change.create_index(&table, attributes)?;
    let slot_max = entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0);
    let mut builder = index.build(slot_max);
    for (key, rid) in entries.iter().step_by(2) {
        builder.push(key, *rid)?;
    }
    builder.finish()?;
    change.commit()?;
    Ok(index)
}
