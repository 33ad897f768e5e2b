//! Partitioned tables: what the catalog says of their partitions and indexes, together.

use super::findings::Context;
use pagefold_engine::catalog::{CatalogEntries, IndexEntry, TableEntry};
use pagefold_engine::database::{partition_name, split_partition_name};
use pagefold_format::catalog::DefinedKind;
use std::collections::BTreeMap;

/// Each partition is of a table that is there, no key belongs to two, all have the same columns, and each has its index of every index of the whole.
pub(super) fn check_partitions(entries: &CatalogEntries, object: &str, context: &mut Context<'_>) {
    let mut of_tables: BTreeMap<u32, Vec<&TableEntry>> = BTreeMap::new();
    for table in &entries.tables {
        if let Some(range) = &table.attributes.range {
            of_tables.entry(range.table).or_default().push(table);
        }
    }
    let mut faults = Vec::new();
    for whole in entries.others.iter().filter(|other| other.kind == DefinedKind::PartitionedTable) {
        let mut members = of_tables.remove(&whole.object_id).unwrap_or_default();
        members.sort_by(|a, b| start(a).cmp(start(b)));
        let indexes = entries
            .others
            .iter()
            .filter(|other| other.kind == DefinedKind::PartitionedIndex && other.notes.partitioned_table() == Some(whole.object_id));
        let indexes: Vec<&str> = indexes.map(|index| index.name.as_str()).collect();
        check_members(&whole.name, &members, &indexes, &entries.indexes, &mut faults);
    }
    for table in of_tables.values().flatten() {
        faults.push(format!("table \"{}\" is a partition of a table that is not there", table.attributes.name));
    }
    faults.into_iter().for_each(|fault| context.error(object, 0, fault));
}

fn start(table: &TableEntry) -> &[u8] {
    table.attributes.range.as_ref().map_or(&[], |range| &range.keys.start)
}

fn check_members(whole: &str, members: &[&TableEntry], indexes: &[&str], all: &[IndexEntry], faults: &mut Vec<String>) {
    let Some(first) = members.first() else {
        faults.push(format!("partitioned table \"{whole}\" has no partition"));
        return;
    };
    let columns_of = |table: &TableEntry| table.attributes.range.as_ref().map(|range| range.columns.clone());
    for (at, table) in members.iter().enumerate() {
        let name = &table.attributes.name;
        let end = table.attributes.range.as_ref().and_then(|range| range.keys.end.as_deref());
        if let Some(next) = members.get(at + 1).filter(|next| end.is_none_or(|end| end > start(next))) {
            faults.push(format!("the ranges of tables \"{name}\" and \"{}\" overlap", next.attributes.name));
        }
        let key = |table: &TableEntry| table.attributes.primary_key.clone();
        if table.attributes.schema != first.attributes.schema || columns_of(table) != columns_of(first) || key(table) != key(first) {
            faults.push(format!(
                "table \"{name}\" has other columns, or another key, than \"{}\", which is a partition of the same table",
                first.attributes.name
            ));
        }
        let Some((_, partition)) = split_partition_name(name).filter(|(of, _)| *of == whole) else {
            faults.push(format!("table \"{name}\" is a partition of \"{whole}\", and not called so"));
            continue;
        };
        for index in indexes {
            let wanted = partition_name(index, partition);
            let share_of =
                |table: &TableEntry, wanted: &str| all.iter().find(|own| own.table_id == table.object_id && own.attributes.name == wanted);
            let Some(own) = share_of(table, &wanted) else {
                faults.push(format!("table \"{name}\" lacks index \"{wanted}\""));
                continue;
            };
            let of_first = split_partition_name(&first.attributes.name).map(|(_, partition)| partition_name(index, partition));
            let like = of_first.and_then(|wanted| share_of(first, &wanted));
            if like
                .is_some_and(|like| (&like.attributes.columns, like.attributes.unique) != (&own.attributes.columns, own.attributes.unique))
            {
                faults.push(format!(
                    "index \"{wanted}\" has other columns than that of \"{}\", or is unique where that is not",
                    first.attributes.name
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_engine::index::IndexAttributes;
    use pagefold_engine::table_space::{RangeOf, TableAttributes};
    use pagefold_types::{Column, DataType, Direction, KeyRange, Schema};

    fn member(id: u32, name: &str, start: &[u8], end: Option<&[u8]>) -> TableEntry {
        let schema = Schema::new(vec![Column::new("a", DataType::BigInt, false)]).unwrap();
        let keys = KeyRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
        let range = Some(RangeOf { table: 1, number: id as u16, columns: vec![0], keys });
        TableEntry { object_id: id, attributes: TableAttributes { range, ..TableAttributes::new(name, schema) }, data_sets: Vec::new() }
    }

    fn index(table: u32, name: &str) -> IndexEntry {
        let attributes = IndexAttributes::new(name, vec![(0, Direction::Ascending)], false);
        IndexEntry { object_id: table + 100, table_id: table, attributes, data_sets: Vec::new(), damaged: None }
    }

    fn faults(members: &[TableEntry], indexes: &[IndexEntry]) -> String {
        let (members, mut faults): (Vec<&TableEntry>, Vec<String>) = (members.iter().collect(), Vec::new());
        check_members("t", &members, &["i"], indexes, &mut faults);
        faults.join("; ")
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        let (a, b) = (member(2, "t/a", &[], Some(&[5])), member(3, "t/b", &[5], None));
        let both = [index(2, "i/a"), index(3, "i/b")];
        assert_eq!(faults(&[a.clone(), b.clone()], &both), "");
        assert!(faults(&[], &[]).contains("has no partition"));
        assert!(faults(&[a.clone(), member(3, "t/b", &[4], None)], &both).contains("\"t/a\" and \"t/b\" overlap"));
        assert!(faults(&[member(2, "t/a", &[], None), b.clone()], &both).contains("overlap"));
        assert!(faults(&[a.clone(), b.clone()], &both[..1]).contains("\"t/b\" lacks index \"i/b\""));
        let unique = IndexEntry { attributes: IndexAttributes { unique: true, ..both[1].attributes.clone() }, ..both[1].clone() };
        assert!(faults(&[a.clone(), b.clone()], &[both[0].clone(), unique]).contains("is unique where that is not"));
        assert!(faults(&[a.clone(), member(3, "u/b", &[5], None)], &both).contains("not called so"));
        let mut other = b;
        other.attributes.schema = Schema::new(vec![Column::new("b", DataType::BigInt, false)]).unwrap();
        assert!(faults(&[a, other], &both).contains("other columns"));
    }
}
