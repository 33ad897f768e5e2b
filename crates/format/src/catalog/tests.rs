//! Round trips, bytes that are fixed for good, and bytes that nobody wrote.

use super::attributes::{Attributes, Kept, put};
use super::*;
use crate::test_random::Random;

fn kept() -> Kept {
    let mut kept = Kept::default();
    let bytes = b"later";
    kept.keep(attributes::Attribute { tag: 30, bytes }).unwrap();
    kept
}

fn full() -> Notes {
    let mut notes = Notes::default();
    notes.set_comment(Some("ships of the line")).unwrap();
    notes.set_schema_id(300).unwrap();
    notes.set_statistics(Some(vec![1, 2, 3])).unwrap();
    let identity = Some(Identity { sequence: 9, always: true });
    notes.set_column(&ColumnNotes { comment: Some("tons".into()), identity, ..ColumnNotes::new(2) }).unwrap();
    let column = ColumnNotes { default: Some("current_date".into()), generated: Some("a + b".into()), kept: kept(), ..ColumnNotes::new(1) };
    notes.set_column(&column).unwrap();
    let reference = Some(Reference { table: 7, columns: vec![0, 2], actions: [2, 3], ..Reference::default() });
    let constraints = [
        Constraint { condition: Some("built > 0".into()), ..Constraint::new(ConstraintKind::Check, "built_check") },
        Constraint { columns: vec![1, 2], reference, deferrable: true, ..Constraint::new(ConstraintKind::ForeignKey, "yard") },
        Constraint {
            columns: vec![1],
            index: Some(12),
            not_valid: true,
            comment: Some("for now".into()),
            kept: kept(),
            ..Constraint::new(ConstraintKind::Unique, "one")
        },
    ];
    notes.set_constraints(&constraints).unwrap();
    let ranges = [
        RangePartition {
            number: 0,
            limit: Some(vec![1, 0]),
            method: Some("page".into()),
            page_bytes: Some(16384),
            kept: kept(),
            ..RangePartition::default()
        },
        RangePartition { number: 1, ..RangePartition::default() },
    ];
    notes.set_ranges(&[1], &ranges).unwrap();
    notes.set_text(Some("select 1")).unwrap();
    let sequence = Sequence { start: -5, increment: -1, least: i64::MIN, greatest: 0, cycles: true, cache: 20, kept: kept() };
    notes.set_sequence(Some(&sequence)).unwrap();
    notes
}

fn read(bytes: &[u8]) -> Result<Notes, crate::FormatError> {
    let mut notes = Notes::default();
    Attributes::new(bytes).try_for_each(|attribute| notes.take(attribute?))?;
    Ok(notes)
}

fn written(notes: &Notes) -> Vec<u8> {
    let mut bytes = Vec::new();
    notes.write_with(&[], &mut bytes);
    bytes
}

#[test]
fn everything_comes_back() {
    let notes = full();
    let bytes = written(&notes);
    assert_eq!(read(&bytes).unwrap(), notes);
    assert_eq!((notes.comment(), notes.schema_id(), notes.statistics()), (Some("ships of the line"), 300, Some(&[1u8, 2, 3][..])));
    let columns: Vec<u32> = notes.columns().iter().map(|notes| notes.column).collect();
    assert_eq!(columns, [1, 2]);
    assert_eq!(notes.column(1).default.as_deref(), Some("current_date"));
    assert_eq!(notes.column(5), ColumnNotes::new(5));
    assert_eq!(notes.constraints().len(), 3);
    assert_eq!(notes.constraints()[1].reference.as_ref().unwrap().actions, [2, 3]);
    assert_eq!(notes.ranges().1[0].method.as_deref(), Some("page"));
    let partition = RangePartition { number: 4095, start: Some(vec![3]), table: Some(70_000), ..RangePartition::default() };
    assert_eq!(RangePartition::decode(&partition.encode()).unwrap(), partition);
    assert_eq!((notes.text(), notes.sequence().unwrap().increment), (Some("select 1"), -1));
    // Said no more, nothing is left of it.
    let mut empty = notes;
    empty.set_comment(None).unwrap();
    empty.set_schema_id(0).unwrap();
    empty.set_statistics(None).unwrap();
    [1, 2].into_iter().for_each(|column| empty.set_column(&ColumnNotes::new(column)).unwrap());
    empty.set_constraints(&[]).unwrap();
    empty.set_ranges(&[], &[]).unwrap();
    empty.set_text(None).unwrap();
    empty.set_sequence(None).unwrap();
    assert!(empty.is_empty());
}

/// Bytes of a later version: even tags stay where they are, odd ones are refused, everywhere.
#[test]
fn what_a_later_version_says_is_kept_or_refused() {
    let mut own = Vec::new();
    put(&mut own, 1, b"name");
    put(&mut own, 75, b"text");
    let mut notes = Notes::default();
    for tag in [200, 40, 40] {
        notes.take(attributes::Attribute { tag, bytes: &[tag as u8] }).unwrap();
    }
    let mut bytes = Vec::new();
    notes.write_with(&own, &mut bytes);
    let tags: Vec<u32> = Attributes::new(&bytes).map(|attribute| attribute.unwrap().tag).collect();
    assert_eq!(tags, [1, 40, 40, 75, 200]);
    let refused = notes.take(attributes::Attribute { tag: 201, bytes: &[] }).unwrap_err();
    assert!(refused.to_string().contains("a later version"), "{refused}");
    let with = |mut bytes: Vec<u8>, tag: u32| {
        put(&mut bytes, tag, b"?");
        bytes
    };
    let [column, constraint, range, sequence] = [
        ColumnNotes::new(3).encode(),
        Constraint::new(ConstraintKind::Check, "c").encode(),
        RangePartition::default().encode(),
        Sequence::default().encode(),
    ];
    assert_eq!(ColumnNotes::decode(&with(column.clone(), 30)).unwrap().encode(), with(column.clone(), 30));
    assert!(ColumnNotes::decode(&with(column, 31)).is_err());
    assert_eq!(Constraint::decode(&with(constraint.clone(), 30)).unwrap().encode(), with(constraint.clone(), 30));
    assert!(Constraint::decode(&with(constraint, 31)).is_err());
    assert_eq!(RangePartition::decode(&with(range.clone(), 30)).unwrap().encode(), with(range.clone(), 30));
    assert!(RangePartition::decode(&with(range, 31)).is_err());
    assert_eq!(Sequence::decode(&with(sequence.clone(), 30)).unwrap().encode(), with(sequence.clone(), 30));
    assert!(Sequence::decode(&with(sequence, 31)).is_err());
    // What a foreign key says of another table, by name.
    let reference = Some(Reference { name: "yards".into(), columns: vec![2], actions: [4, 0], full: true, table: 0 });
    let named = Constraint { columns: vec![1], reference, ..Constraint::new(ConstraintKind::ForeignKey, "yard") };
    assert_eq!(Constraint::decode(&named.encode()).unwrap(), named);
    let wider = Constraint { columns: vec![1, 2], ..named.clone() };
    assert!(Constraint::decode(&wider.encode()).is_err());
    assert!(Constraint::decode(&with(Constraint::new(ConstraintKind::Check, "c").encode(), 19)).is_err());
    let definition = |kind: u8| [&[1, kind][..], &own].concat();
    assert_eq!(DefinitionView::new(&definition(200)).unwrap().kind, DefinedKind::Later(200));
    let refused = DefinitionView::new(&definition(9)).unwrap_err();
    assert!(refused.to_string().contains("a later version"), "{refused}");
    assert!(DefinitionView::new(&[2, 1]).is_err());
}

/// The bytes of all there is to say. They are never changed: a later form comes beside them, under another name.
#[test]
fn golden_notes() {
    let golden = include_bytes!("golden/notes_1.bin");
    assert_eq!(written(&full()), golden);
    assert_eq!(read(golden).unwrap(), full());
}

#[test]
fn a_definition_comes_back_from_its_rows() {
    let mut random = Random(5);
    for length in [0, 1, 3490, 3491, 3492, 20_000] {
        let definition: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let mut rows = Vec::new();
        definition_rows::<()>(77, &definition, |row| {
            rows.push(row.to_vec());
            Ok(())
        })
        .unwrap();
        let parts: Vec<RowPart<'_>> = rows.iter().map(|row| RowPart::parse(row).unwrap()).collect();
        assert!(rows.iter().all(|row| row.len() <= ROW_BYTES_MAX));
        assert!(
            parts
                .iter()
                .enumerate()
                .all(|(i, part)| { (part.object_id, usize::from(part.part), usize::from(part.parts)) == (77, i, parts.len()) })
        );
        assert_eq!(parts.iter().flat_map(|part| part.bytes).copied().collect::<Vec<u8>>(), definition);
    }
    assert!(RowPart::parse(&[2, 0, 0, 0, 0, 0, 0, 1, 0]).is_err(), "a kind of row that is not known");
    assert!(RowPart::parse(&[1, 0, 0, 0, 0, 1, 0, 1, 0]).is_err(), "a part behind the last");
}

#[test]
fn hostile_notes_are_refused_or_come_back_as_they_are() {
    let good = written(&full());
    let mut random = Random(91);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..40_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7F, 0xFF, random.next() as u8, bytes[at] ^ 1 << random.below(8)][random.below(6) as usize];
        }
        if random.below(8) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        match read(&bytes) {
            Ok(notes) => {
                // As who read them would write them, and read again.
                let again = written(&notes);
                assert_eq!(read(&again).unwrap(), notes);
                let _ = (notes.columns(), notes.constraints(), notes.ranges(), notes.sequence(), notes.comment(), notes.text());
                assert_eq!(notes.constraints().len(), notes.all(tag::CONSTRAINT).count());
                taken += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(taken > 1_000 && refused > 10_000, "{taken} {refused}");
}
