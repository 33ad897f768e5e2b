//! Definitions that come back, bytes that are fixed for good, and rows of the catalog that nobody wrote.

use super::{
    CatalogParts, Defined, IndexEntry, TableEntry, definition_damage, definition_data_sets, definition_notes, in_place_of,
    index_definition, other_definition, read_definition, table_definition, with_data_sets,
};
use crate::Error;
use crate::data_set::DataSetEntry;
use crate::index::{IndexAttributes, IndexFormat};
use crate::table_space::{Method, TableAttributes};
use crate::test_random::Random;
use pagefold_format::catalog::attributes::{Attributes, put};
use pagefold_format::catalog::{ColumnNotes, Constraint, ConstraintKind, DefinedKind, Notes, definition_rows, tag};
use pagefold_types::{Column, DataType, Direction, Schema, Value};

fn schema() -> Schema {
    Schema::new(vec![Column::new("a", DataType::Integer, false), Column::new("b", DataType::Varchar(Some(20)), true)]).unwrap()
}

fn notes() -> Notes {
    let mut notes = Notes::default();
    notes.set_comment(Some("what it is for")).unwrap();
    notes.set_schema_id(3).unwrap();
    notes.set_column(&ColumnNotes { default: Some("'none'".into()), ..ColumnNotes::new(1) }).unwrap();
    let check = Constraint { columns: vec![0], condition: Some("a > 0".into()), ..Constraint::new(ConstraintKind::Check, "positive") };
    notes.set_constraints(&[check]).unwrap();
    notes
}

fn table() -> TableEntry {
    let mut attributes = TableAttributes::new("t", schema()).with_page_bytes(4096);
    (attributes.primary_key, attributes.source_schema, attributes.method) = (vec![0], vec![7; 300], Method::Page);
    attributes.notes = notes();
    let data_set = |partition, file_id, header_writes| DataSetEntry { file_id, partition, header_writes };
    TableEntry { object_id: 5, attributes, data_sets: vec![data_set(0, 9, Some(3)), data_set(1, 70_000, None)] }
}

/// A table whose columns have changed three times: one came, then got another type; one went; and a change was taken back.
fn altered_table() -> TableEntry {
    let mut entry = TableEntry { object_id: 10, ..table() };
    let mut own = schema();
    let mut change = |columns: &dyn Fn(&mut Vec<Option<Column>>), added: &[(Column, Option<Value>)]| {
        let mut now: Vec<Option<Column>> = own.columns().iter().cloned().map(Some).collect();
        columns(&mut now);
        let (layouts, schema) = entry.attributes.layouts.next(&own, &now, added, None).unwrap();
        own = schema.clone();
        (entry.attributes.layouts, entry.attributes.schema) = (layouts, schema);
    };
    let came = Column::new("c", DataType::SmallInt, false);
    change(&|_| {}, &[(came, Some(Value::Int(-3)))]);
    change(&|columns| columns[2].as_mut().unwrap().data_type = DataType::BigInt, &[]);
    change(&|columns| columns[1] = None, &[]);
    let back = entry.attributes.clone();
    change_back(&mut entry, &back);
    entry.attributes.name = "altered".into();
    (entry.attributes.source_schema, entry.attributes.notes) = (Vec::new(), Notes::default());
    entry
}

/// The layouts of a further change are known, and the table has those before it.
fn change_back(entry: &mut TableEntry, back: &TableAttributes) {
    let columns: Vec<Option<Column>> = back.schema.columns().iter().cloned().map(Some).collect();
    let taken_back = (Column::new("d", DataType::Date, true), None);
    let (layouts, _) = back.layouts.next(&back.schema, &columns, &[taken_back], None).unwrap();
    entry.attributes.layouts = layouts.with_number(back.layouts.number());
}

fn index() -> IndexEntry {
    let key = vec![(1, Direction::Descending), (0, Direction::Ascending)];
    let attributes = IndexAttributes::new("i", key, true).with_format(IndexFormat::Fold, 16384);
    IndexEntry {
        object_id: 6,
        table_id: 5,
        attributes,
        data_sets: vec![DataSetEntry { file_id: 10, partition: 0, header_writes: Some(1) }],
        damaged: None,
    }
}

#[test]
fn an_index_that_is_damaged_stays_so() {
    let whole = index_definition(&index()).unwrap();
    let marked = index_definition(&IndexEntry { damaged: Some("page 0: torn".into()), ..index() }).unwrap();
    assert_eq!((definition_damage(&whole).unwrap(), definition_damage(&marked).unwrap().as_deref()), (None, Some("page 0: torn")));
    // What is said of it later says nothing of that, and nothing of its data set.
    let mut notes = Notes::default();
    notes.set_comment(Some("by name")).unwrap();
    let attributes = IndexAttributes { notes, ..index().attributes };
    let later = index_definition(&IndexEntry { attributes: attributes.clone(), data_sets: Vec::new(), ..index() }).unwrap();
    let expected = IndexEntry { attributes, damaged: Some("page 0: torn".into()), ..index() };
    assert_eq!(in_place_of(&later, &marked).unwrap(), index_definition(&expected).unwrap());
    let read = read_definition(6, &in_place_of(&later, &marked).unwrap(), |_| Some(table().attributes.schema)).unwrap();
    assert_eq!(read, Defined::Index(expected));
    assert_eq!(in_place_of(&marked, &whole).unwrap(), marked);
}

#[test]
fn a_definition_is_read_back() {
    let (table, index) = (table(), index());
    let bytes = table_definition(&table).unwrap();
    assert_eq!(definition_data_sets(&bytes).unwrap(), table.data_sets);
    assert_eq!(definition_notes(&bytes).unwrap(), notes());
    let expected = Defined::Table(table.clone());
    assert_eq!(read_definition(5, &bytes, |_| None).unwrap(), expected);
    assert!((0..bytes.len()).all(|length| !read_definition(5, &bytes[..length], |_| None).is_ok_and(|found| found == expected)));
    let fewer = with_data_sets(&bytes, &table.data_sets[..1]).unwrap();
    let one = TableEntry { data_sets: table.data_sets[..1].to_vec(), ..table.clone() };
    assert_eq!(fewer, table_definition(&one).unwrap());
    assert_eq!(with_data_sets(&fewer, &table.data_sets).unwrap(), bytes);
    let of_index = index_definition(&index).unwrap();
    assert_eq!(read_definition(6, &of_index, |id| (id == 5).then(schema)).unwrap(), Defined::Index(index));
    assert!(read_definition(6, &of_index, |_| None).is_err());
    let of_view = other_definition(DefinedKind::View, "v", &notes()).unwrap();
    let Defined::Other(view) = read_definition(8, &of_view, |_| None).unwrap() else { panic!("a view") };
    assert_eq!((view.kind, view.name.as_str(), view.notes, &*view.definition), (DefinedKind::View, "v", notes(), &*of_view));
    // What the catalog could not keep is refused before it is logged.
    let attributes = TableAttributes { source_schema: vec![0; 2 << 20], ..TableAttributes::new("t", schema()) };
    assert!(matches!(table_definition(&TableEntry { attributes, ..table }), Err(Error::Parameter(_))));
}

/// The bytes of a table and an index. They are never changed: a later form comes beside them, under another name.
#[test]
fn golden_definitions() {
    let golden = [include_bytes!("golden/table_1.bin").as_slice(), include_bytes!("golden/index_1.bin").as_slice()];
    let written = [table_definition(&table()).unwrap(), index_definition(&index()).unwrap()];
    assert_eq!(written, golden);
    assert_eq!(read_definition(5, golden[0], |_| None).unwrap(), Defined::Table(table()));
    assert_eq!(read_definition(6, golden[1], |_| Some(schema())).unwrap(), Defined::Index(index()));
    let damaged = IndexEntry { damaged: Some("page 0: torn".into()), ..index() };
    assert_eq!(index_definition(&damaged).unwrap(), include_bytes!("golden/damaged_index_1.bin"));
    assert_eq!(read_definition(6, include_bytes!("golden/damaged_index_1.bin"), |_| Some(schema())).unwrap(), Defined::Index(damaged));
}

#[test]
fn golden_definition_of_an_altered_table() {
    let golden = include_bytes!("golden/altered_table_1.bin");
    assert_eq!(table_definition(&altered_table()).unwrap(), golden);
    assert_eq!(read_definition(10, golden, |_| None).unwrap(), Defined::Table(altered_table()));
}

/// Each byte of an altered table's definition damaged in turn: an error that names it, or a table that makes sense.
#[test]
fn layouts_that_are_none_are_refused() {
    let good = table_definition(&altered_table()).unwrap();
    let (mut refused, mut read, mut of_layouts) = (0, 0, 0);
    let mut unnamed = std::collections::BTreeSet::new();
    for at in 2..good.len() {
        for byte in [0, 1, 2, 0x1F, 0x20, 0x7F, 0xFF, good[at] ^ 1, good[at].wrapping_add(1)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            match read_definition(10, &bytes, |_| None) {
                Ok(Defined::Table(table)) => {
                    table.attributes.check().unwrap();
                    table.attributes.decoder().unwrap();
                    assert!(table.attributes.visible_columns().iter().all(|at| *at < table.attributes.schema.len()));
                    table_definition(&table).unwrap();
                    read += 1;
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    let error = error.to_string();
                    if !["table", "object number 10"].iter().any(|name| error.contains(name)) {
                        unnamed.insert(error.clone());
                    }
                    of_layouts += u32::from(error.contains("layout"));
                    refused += 1;
                }
            }
        }
    }
    assert!(unnamed.is_empty(), "errors that do not say what is damaged: {unnamed:#?}");
    println!("{refused} refused, {of_layouts} for their layouts, {read} read");
    assert!(refused > 300 && of_layouts > 20 && read > 300, "{refused} {of_layouts} {read}");
}

/// The bytes of a definition with some attributes more.
fn with(bytes: &[u8], more: &[(u32, &[u8])]) -> Vec<u8> {
    let own = Attributes::new(&bytes[2..]).map(|attribute| attribute.map(|a| (a.tag, a.bytes)).unwrap());
    let mut all: Vec<(u32, &[u8])> = own.chain(more.iter().copied()).collect();
    all.sort_by_key(|(tag, _)| *tag);
    let mut out = bytes[..2].to_vec();
    all.into_iter().for_each(|(tag, bytes)| put(&mut out, tag, bytes));
    out
}

/// What a later version adds stays where it is, or the object is refused, and says why.
#[test]
fn what_a_later_version_has_added() {
    let bytes = table_definition(&table()).unwrap();
    let later = with(&bytes, &[(40, b"low"), (40, b"lower"), (90, b"high")]);
    let Defined::Table(read) = read_definition(5, &later, |_| None).unwrap() else { panic!("a table") };
    assert_eq!(table_definition(&read).unwrap(), later);
    let refused = |more: &[(u32, &[u8])], says: &str| {
        let error = read_definition(5, &with(&bytes, more), |_| None).unwrap_err().to_string();
        assert!(error.contains("table \"t\"") && error.contains(says), "{error}");
    };
    refused(&[(41, b"")], "attribute 41, which a later version has written");
    refused(&[(91, b"")], "attribute 91, which a later version has written");
    refused(&[(tag::LAYOUT_VERSION, &[2])], "a column of which no layout says what it is");
    refused(&[(tag::NEXT_COLUMN, &[3])], "lost columns");
    refused(&[(tag::RANGE_COLUMNS, &[0])], "said to be a range partition, but not which");
    let mut column = Vec::new();
    for (tag, value) in [(tag::COLUMN_NAME, b"c".as_slice()), (tag::COLUMN_TYPE, b"INTEGER"), (tag::COLUMN_LAYOUTS, &[1])] {
        put(&mut column, tag, value);
    }
    refused(&[(tag::COLUMN, &column)], "1 bytes expected, 0 left");
    // What is so by default may be said.
    let same = with(&bytes, &[(tag::LAYOUT_VERSION, &[0]), (tag::NEXT_COLUMN, &[2])]);
    assert_eq!(read_definition(5, &same, |_| None).unwrap(), Defined::Table(table()));
    // An object of a later kind is kept whole, whatever it says.
    let kept = with(&[&[1, 200], &bytes[2..]].concat(), &[(91, b"")]);
    let Defined::Other(other) = read_definition(9, &kept, |_| None).unwrap() else { panic!("something else") };
    assert_eq!((other.kind, &*other.definition), (DefinedKind::Later(200), &*kept));
    assert!(read_definition(9, &[&[1, 99], &bytes[2..]].concat(), |_| None).is_err());
}

#[test]
fn what_no_catalog_says_is_an_error_or_an_entry_that_makes_sense() {
    let mut good = Vec::new();
    let wide = TableEntry {
        object_id: 7,
        attributes: TableAttributes { name: "wide".into(), source_schema: vec![1; 5000], ..table().attributes },
        data_sets: Vec::new(),
    };
    let definitions = [
        (5, table_definition(&table()).unwrap()),
        (6, index_definition(&index()).unwrap()),
        (7, table_definition(&wide).unwrap()),
        (8, other_definition(DefinedKind::Schema, "s", &notes()).unwrap()),
        (10, table_definition(&altered_table()).unwrap()),
    ];
    for (object_id, definition) in &definitions {
        definition_rows::<()>(*object_id, definition, |row| {
            good.push(row.to_vec());
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(good.len(), 6);
    let mut random = Random(61);
    let (mut whole, mut entries, mut errors) = (0, 0, 0);
    for round in 0..20_000 {
        let mut parts = CatalogParts::default();
        for row in &good {
            let mut row = row.clone();
            if round > 0 && random.below(5) == 0 {
                for _ in 0..=random.below(2) {
                    let at = random.index(row.len().min(400));
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
            table_definition(table).unwrap();
        }
        for index in &found.indexes {
            let table = found.tables.iter().find(|t| t.object_id == index.table_id).unwrap();
            index.attributes.check(&table.attributes.schema).unwrap();
            assert_eq!(index.data_sets.len(), 1);
        }
        assert!(wrong.iter().all(|e| !e.to_string().is_empty()));
        let all = found.tables.len() + found.indexes.len() + found.others.len();
        entries += all;
        errors += wrong.len();
        whole += usize::from(all == 5 && wrong.is_empty());
        assert!(round > 0 || whole == 1, "{wrong:?}");
    }
    assert!(whole > 2_000 && entries > 5_000 && errors > 5_000, "{whole} {entries} {errors}");
}

#[test]
fn a_checkpoint_says_otherwise() {
    let rows =
        |object_id, definition: &[u8], parts: &mut CatalogParts| definition_rows(object_id, definition, |row| parts.add(row)).unwrap();
    let mut parts = CatalogParts::default();
    rows(5, &table_definition(&table()).unwrap(), &mut parts);
    rows(6, &index_definition(&index()).unwrap(), &mut parts);
    let renamed = TableEntry { attributes: TableAttributes { name: "u".into(), ..table().attributes }, ..table() };
    parts.replace(5, Some(&table_definition(&renamed).unwrap()));
    parts.replace(6, None);
    parts.replace(6, None);
    let (entries, errors) = parts.finish();
    assert!(errors.is_empty() && entries.indexes.is_empty());
    assert_eq!(entries.tables, [renamed]);
}
