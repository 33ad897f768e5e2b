//! What a visitor may do while it is handed rows: read, but not change or lock any.

use crate::world::World;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead};
use pagefold_engine::table_space::{RowBuffer, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, ValueRef};

/// A way to visit rows, and what is tried inside.
type Visit<'w> = (&'static str, Box<dyn Fn(&mut dyn FnMut(Rid) -> Result<()>) -> Result<()> + 'w>);

fn ways(world: &World) -> Vec<Visit<'_>> {
    vec![
        (
            "read",
            Box::new(move |inside| {
                let rid = world.find(&mut world.begin(ReadCommitted), 3).unwrap();
                let mut reader = world.begin(RepeatableRead);
                reader.read(&world.table, rid, &mut RowBuffer::default(), |_| inside(rid))?.unwrap()
            }),
        ),
        (
            "get of a snapshot",
            Box::new(move |inside| {
                let mut reader = world.begin(RepeatableRead);
                reader.get(&world.table, &world.by_number, &[ValueRef::Int(3)], |rid, _| inside(rid))?.unwrap()
            }),
        ),
        (
            "get",
            Box::new(move |inside| {
                let mut reader = world.begin(ReadCommitted);
                reader.get(&world.table, &world.by_number, &[ValueRef::Int(3)], |rid, _| inside(rid))?.unwrap()
            }),
        ),
    ]
}

#[test]
fn a_visitor_that_changes_or_locks_rows_gets_an_error() {
    let world = World::new();
    let rids = world.fill((0..50).map(|number| (number, number)));
    let mut change = world.database.change();
    let attributes = world.table.attributes().clone();
    let other = change.create_table(TableAttributes { name: "other".into(), ..attributes }).unwrap();
    change.commit().unwrap();
    for (name, visit) in ways(&world) {
        let mut writer = world.begin(ReadCommitted);
        world.set(&mut writer, 1, 1).unwrap();
        let savepoint = writer.savepoint();
        let mut numbers = 100..;
        let mut tried = 0;
        let mut refused = |result: Result<()>| {
            tried += 1;
            assert!(matches!(result, Err(Error::Busy(_))), "{name}: {result:?}");
        };
        visit(&mut |rid| {
            refused(writer.update(&world.table, rid, &[(1, ValueRef::Int(7))]).map(drop));
            refused(writer.delete(&world.table, rid).map(drop));
            refused(world.insert(&mut writer, numbers.next().unwrap(), 1, "").map(drop));
            refused(writer.lock(&world.table, rid).map(drop));
            refused(world.begin(ReadCommitted).drop_table("t"));
            // Nor rows of another table: two visitors that change each other's would wait for ever.
            refused(writer.insert(&other, &[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")]).map(drop));
            refused(writer.roll_back_to(savepoint));
            // Others may end, and what they have left goes later.
            let other = world.begin(ReadCommitted);
            other.commit()?;
            // Reading is no change.
            assert!(world.row(&mut world.begin(ReadCommitted), rid).is_some());
            Ok(())
        })
        .unwrap();
        assert!(tried >= 4, "{name}");
        // After the visit it is as if nothing had happened.
        assert!(writer.update(&world.table, rids[0], &[(1, ValueRef::Int(7))]).unwrap());
        writer.rollback().unwrap();
    }
    assert_eq!(world.check().len(), 50);
}

#[test]
fn a_commit_inside_a_visitor_leaves_the_removal_to_others() {
    let world = World::new();
    let rids = world.fill((0..50).map(|number| (number, number)));
    let mut deleter = Some(world.begin(ReadCommitted));
    assert!(deleter.as_mut().unwrap().delete(&world.table, rids[7]).unwrap());
    let mut reader = world.begin(RepeatableRead);
    let visited = reader.get(&world.table, &world.by_number, &[ValueRef::Int(3)], |_, _| deleter.take().map(|deleter| deleter.commit()));
    visited.unwrap().flatten().unwrap().unwrap();
    reader.commit().unwrap();
    assert_eq!(world.check().len(), 49);
}
