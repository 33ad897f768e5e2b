//! Rows of the catalog that nobody wrote.

use super::{
    CatalogParts, DataSetEntry, Defined, IndexEntry, TableEntry, definition_data_sets, index_definition, read_definition, table_definition,
};
use crate::index::IndexAttributes;
use crate::table_space::TableAttributes;
use crate::test_random::Random;
use pagefold_types::ValueRef::{Int, Text};
use pagefold_types::{Column, DataType, Direction, RowLayout, Schema, ValueRef};

fn row(relation: u8, values: &[ValueRef<'_>]) -> Vec<u8> {
    let columns = values.iter().enumerate().map(|(i, value)| {
        let data_type = if matches!(value, Text(_)) { DataType::Varchar(None) } else { DataType::BigInt };
        Column::new(format!("c{i}"), data_type, relation == 5 && i == 3)
    });
    let layout = RowLayout::new(&Schema::new(columns.collect()).unwrap()).unwrap();
    let mut row = vec![relation];
    layout.encode(values, &mut row).unwrap();
    row
}

#[test]
fn what_no_catalog_says_is_an_error_or_an_entry_that_makes_sense() {
    const MB: i64 = 1 << 20;
    let good = [
        row(1, &[Int(1), Int(4096), Int(5), Int(255), Int(MB), Int(MB), Int(1 << 30), Text("t"), Text("fixed"), Text("T4K")]),
        row(2, &[Int(1), Int(0), Int(0), Text("a"), Text("INTEGER")]),
        row(2, &[Int(1), Int(1), Int(1), Text("b"), Text("VARCHAR(20)")]),
        row(3, &[Int(1), Int(0), Int(0), Int(0)]),
        row(4, &[Int(2), Int(1), Int(0), Int(8192), Int(5), Int(MB), Int(MB), Text("i"), Text("fold"), Text("I8K")]),
        row(3, &[Int(2), Int(0), Int(1), Int(1)]),
        row(5, &[Int(1), Int(0), Int(3), Int(1)]),
        row(5, &[Int(2), Int(0), Int(4), ValueRef::Null]),
    ];
    let mut random = Random(61);
    let (mut whole, mut entries, mut errors) = (0, 0, 0);
    for round in 0..20_000 {
        let mut parts = CatalogParts::default();
        for row in &good {
            let mut row = row.clone();
            if round > 0 && random.below(5) == 0 {
                for _ in 0..=random.below(2) {
                    let at = random.index(row.len());
                    row[at] = [0, 1, 0xFF, random.next() as u8, row[at] ^ 1 << random.below(8)][random.index(5)];
                }
            }
            if round > 0 && random.below(40) == 0 {
                row.truncate(random.index(row.len()));
            }
            errors += usize::from(parts.add(&row).is_err());
        }
        let (found, wrong) = parts.finish();
        for table in &found.tables {
            table.attributes.check().unwrap();
            assert!(table.attributes.primary_key.iter().all(|column| *column < table.attributes.schema.len()));
        }
        for index in &found.indexes {
            let table = found.tables.iter().find(|t| t.object_id == index.table_id).unwrap();
            index.attributes.check(&table.attributes.schema).unwrap();
            assert_eq!(index.data_sets.len(), 1);
        }
        assert!(wrong.iter().all(|e| !e.to_string().is_empty()));
        entries += found.tables.len() + found.indexes.len();
        errors += wrong.len();
        whole += usize::from(found.tables.len() == 1 && found.indexes.len() == 1 && wrong.is_empty());
        assert!(round > 0 || whole == 1, "{wrong:?}");
    }
    assert!(whole > 2_000 && entries > 5_000 && errors > 5_000, "{whole} {entries} {errors}");
}

#[test]
fn a_definition_is_read_back() {
    let schema =
        || Schema::new(vec![Column::new("a", DataType::Integer, false), Column::new("b", DataType::Varchar(Some(20)), true)]).unwrap();
    let data_sets = |file_id| vec![DataSetEntry { file_id, partition: 0, header_writes: Some(3) }];
    let mut attributes = TableAttributes::new("t", schema());
    (attributes.primary_key, attributes.source_schema) = (vec![0], vec![7; 3000]);
    let table = TableEntry { object_id: 5, attributes, data_sets: data_sets(9) };
    let key = IndexAttributes::new("i", vec![(1, Direction::Descending), (0, Direction::Ascending)], true);
    let index = IndexEntry { object_id: 6, table_id: 5, attributes: key, data_sets: data_sets(10) };
    let bytes = table_definition(&table).unwrap();
    assert_eq!(definition_data_sets(5, &bytes).unwrap(), table.data_sets);
    assert_eq!(read_definition(5, &bytes, |_| None).unwrap(), Defined::Table(table.clone()));
    assert!(read_definition(6, &bytes, |_| None).is_err());
    let expected = Defined::Table(table.clone());
    assert!((0..bytes.len()).all(|length| !read_definition(5, &bytes[..length], |_| None).is_ok_and(|found| found == expected)));
    let of_index = index_definition(&index).unwrap();
    assert_eq!(read_definition(6, &of_index, |id| (id == 5).then(schema)).unwrap(), Defined::Index(index));
    assert!(read_definition(6, &of_index, |_| None).is_err());
    assert!(read_definition(5, &[bytes, of_index].concat(), |_| None).is_err());
    // What the catalog could not keep is refused before it is logged.
    let name = "n".repeat(5000);
    assert!(table_definition(&TableEntry { attributes: TableAttributes::new(name, schema()), ..table }).is_err());
}
