//! A table, rows by key, a range, a change, a commit.

use pagefold::{DataType, Database, TableDefinition};

pub(crate) fn main() -> pagefold::Result<()> {
    // `Database::create("ships.db")` for one on disk.
    let database = Database::in_memory()?;
    let transaction = database.begin();
    let definition = TableDefinition::new().column("name", DataType::Varchar(None)).nullable("built", DataType::Integer);
    let ships = transaction.create_table("ship", definition.primary_key(["name"]))?;
    for (name, built) in [("Fram", Some(1892)), ("Gjøa", Some(1872)), ("Maud", None)] {
        ships.insert((name, built))?;
    }
    ships.update("Maud", [("built", 1916)])?;
    transaction.commit()?;

    let reader = database.begin_read();
    let ships = reader.table("ship")?;
    let fram = ships.get("Fram")?.expect("it was inserted");
    println!("Fram was built in {}", fram.get::<i32>("built")?);
    for ship in ships.range("G"..)? {
        let (name, built): (String, Option<i32>) = ship?.into()?;
        println!("{name}: {built:?}");
    }
    Ok(())
}
