//! What is said of a partitioned table: each partition that comes has it, and it stays with the names where two tables change places; with
//! savepoints, older snapshots and after crashes.

use super::partitions::{attributes, begin, create, create_staged, days, everywhere, open, snapshot, spec};
use pagefold_engine::database::{OpenMode, TableChange, Transaction};
use pagefold_engine::table_space::TableAttributes;
use pagefold_format::catalog::{ColumnNotes, Constraint, ConstraintKind, Notes};
use pagefold_io::{FaultOptions, FaultStorage};

/// A comment, the default of a column and a CHECK.
fn notes(comment: &str, default: &str, check: &str) -> Notes {
    let mut notes = Notes::default();
    notes.set_comment(Some(comment)).unwrap();
    notes.set_column(&ColumnNotes { default: Some(default.into()), ..ColumnNotes::new(2) }).unwrap();
    let constraint = Constraint { condition: Some("id > 0".into()), ..Constraint::new(ConstraintKind::Check, check) };
    notes.set_constraints(&[constraint]).unwrap();
    notes
}

fn say(t: &mut Transaction<'_>, said: &Notes) {
    let whole = t.partitioned_table("sales").unwrap();
    for partition in whole.partitions() {
        let table = t.table_of_partition(partition).unwrap();
        t.alter_table(&table, said.clone()).unwrap();
    }
}

/// What is said of each partition, without statistics.
fn said(t: &mut Transaction<'_>) -> Vec<Notes> {
    let whole = t.partitioned_table("sales").unwrap();
    let mut of = |partition| {
        let table = t.table_of_partition(partition).unwrap();
        let mut notes = Notes::clone(&t.notes_of_table(&table));
        notes.set_statistics(None).unwrap();
        notes
    };
    whole.partitions().iter().map(&mut of).collect()
}

#[test]
fn a_partition_that_comes_has_the_notes_of_its_table() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let first = notes("days", "'none'", "positive");
    let mut t = begin(&database);
    let with_notes = TableAttributes { notes: first.clone(), ..attributes() };
    t.create_partitioned_table(&with_notes, &[1], &[spec("a", Some(10)), spec("b", Some(20))]).unwrap();
    assert_eq!(said(&mut t), [first.clone(), first.clone()], "of a table that is made with some");
    // Statistics are of rows, which it has none of.
    let table = t.table("sales/a").unwrap();
    let mut of_rows = first.clone();
    of_rows.set_statistics(Some(vec![1, 2, 3])).unwrap();
    t.alter_table(&table, of_rows).unwrap();
    let added = t.add_partition("sales", &spec("c", Some(30))).unwrap();
    assert_eq!(*t.notes_of_table(&added), first);
    t.commit().unwrap();
    // What the transaction says itself counts, and all former partitions go.
    let second = notes("later", "'some'", "also positive");
    let mut t = begin(&database);
    say(&mut t, &second);
    for (name, day) in [("d", 40), ("e", 50), ("f", 60)] {
        t.rotate_partition("sales", &spec(name, Some(day))).unwrap();
    }
    assert_eq!(said(&mut t), vec![second.clone(); 3]);
    t.commit().unwrap();
    everywhere(&storage, |database| assert_eq!(said(&mut begin(database)), vec![second.clone(); 3]));
    // Of the only one, too.
    let mut t = begin(&database);
    t.drop_partition("sales", "d").unwrap();
    t.drop_partition("sales", "e").unwrap();
    t.rotate_partition("sales", &spec("g", None)).unwrap();
    t.commit().unwrap();
    everywhere(&storage, |database| assert_eq!(said(&mut begin(database)), std::slice::from_ref(&second)));
}

#[test]
fn notes_stay_with_the_name() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    create(&database);
    let mut t = begin(&database);
    create_staged(&mut t, "staged", &[11, 12]);
    let (of_sales, of_staged) = (notes("days", "'none'", "positive"), notes("staged", "'some'", "another name"));
    say(&mut t, &of_sales);
    let with_statistics = |notes: &Notes, byte: u8| {
        let mut notes = notes.clone();
        notes.set_statistics(Some(vec![byte])).unwrap();
        notes
    };
    let table = t.table("staged").unwrap();
    t.alter_table(&table, with_statistics(&of_staged, 1)).unwrap();
    let table = t.table("sales/b").unwrap();
    t.alter_table(&table, with_statistics(&of_sales, 2)).unwrap();
    t.commit().unwrap();
    let both = |t: &mut Transaction<'_>| {
        ["sales/b", "staged"].map(|name| {
            let table = t.table(name).unwrap();
            Notes::clone(&t.notes_of_table(&table))
        })
    };
    let exchanged = [with_statistics(&of_sales, 1), with_statistics(&of_staged, 2)];
    let mut old = snapshot(&database);
    assert_eq!(days(&mut old), Vec::<i64>::new());
    let mut t = begin(&database);
    let savepoint = t.savepoint();
    t.exchange_partition("sales", "b", "staged").unwrap();
    assert_eq!(both(&mut t), exchanged, "its own");
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(both(&mut t), [with_statistics(&of_sales, 2), with_statistics(&of_staged, 1)], "taken back");
    t.exchange_partition("sales", "b", "staged").unwrap();
    t.commit().unwrap();
    assert_eq!(both(&mut old), [with_statistics(&of_sales, 2), with_statistics(&of_staged, 1)], "an older snapshot");
    drop(old);
    everywhere(&storage, |database| assert_eq!(both(&mut begin(database)), exchanged));
    // What is said before in the same transaction goes with the name, and what is said behind counts.
    let (earlier, later) = (notes("earlier", "'1'", "positive"), notes("later", "'2'", "another name"));
    let mut t = begin(&database);
    say(&mut t, &earlier);
    t.exchange_partition("sales", "b", "staged").unwrap();
    assert_eq!(said(&mut t), vec![earlier.clone(); 3]);
    let table = t.table("staged").unwrap();
    t.alter_table(&table, later.clone()).unwrap();
    let renamed = t.change_table("staged", &[TableChange::Rename("put aside".into())]).unwrap();
    assert_eq!(*t.notes_of_table(&renamed), later);
    t.commit().unwrap();
    everywhere(&storage, |database| {
        let mut t = begin(database);
        assert_eq!(said(&mut t), vec![earlier.clone(); 3]);
        let table = t.table("put aside").unwrap();
        assert_eq!(*t.notes_of_table(&table), later);
    });
    // A condition that one alone has, whatever it is called.
    let mut t = begin(&database);
    let table = t.table("put aside").unwrap();
    t.alter_table(&table, Notes::default()).unwrap();
    let error = t.exchange_partition("sales", "b", "put aside").unwrap_err();
    assert!(error.to_string().contains("CHECK (id > 0)"), "{error}");
}

/// What a transaction says of a table goes into the definition that it makes of it afterwards, and a crash changes nothing of that.
#[test]
fn what_is_said_before_a_change_is_said_behind_it() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let mut t = begin(&database);
    create_staged(&mut t, "staged", &[1, 2]);
    t.commit().unwrap();
    let (first, second) = (notes("first", "'1'", "positive"), notes("second", "'2'", "positive"));
    let mut t = begin(&database);
    let table = t.table("staged").unwrap();
    t.alter_table(&table, first.clone()).unwrap();
    let savepoint = t.savepoint();
    t.alter_table(&table, second).unwrap();
    t.roll_back_to(savepoint).unwrap();
    let renamed = t.change_table("staged", &[TableChange::RenameColumn { column: "text".into(), to: "said".into() }]).unwrap();
    assert_eq!(*t.notes_of_table(&renamed), first);
    t.commit().unwrap();
    let look = |t: &mut Transaction<'_>| {
        let table = t.table("staged").unwrap();
        assert_eq!((&*t.notes_of_table(&table), &*table.attributes().schema.columns()[2].name), (&first, "said"));
    };
    look(&mut begin(&database));
    everywhere(&storage, |database| look(&mut begin(database)));
}
