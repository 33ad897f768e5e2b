//! A new version of a schema, with its rows, in one transaction: others see the old one until it is committed, or all of the new one.

use pagefold::{DataType, Database, IndexDefinition, TableDefinition};

pub(crate) fn main() -> pagefold::Result<()> {
    let database = Database::in_memory()?;
    let setup = database.begin();
    let people = setup.create_table("person", TableDefinition::new().column("name", DataType::Varchar(None)).primary_key(["name"]))?;
    for name in ["Ada Lovelace", "Alan Turing", "Grace Hopper"] {
        people.insert(name)?;
    }
    setup.commit()?;

    let transaction = database.begin();
    let old: Vec<String> = transaction.table("person")?.scan()?.map(|row| row?.get("name")).collect::<Result<_, _>>()?;
    transaction.drop_table("person")?;
    let definition = TableDefinition::new()
        .column("id", DataType::BigInt)
        .column("first_name", DataType::Varchar(None))
        .column("last_name", DataType::Varchar(None));
    let people = transaction.create_table("person", definition.primary_key(["id"]))?;
    for (id, name) in (1_i64..).zip(&old) {
        let (first, last) = name.split_once(' ').unwrap_or((name, ""));
        people.insert((id, first, last))?;
    }
    transaction.create_index("person_by_name", "person", IndexDefinition::new(["last_name", "first_name"]).unique())?;

    // Whoever looks now sees the old table.
    assert_eq!(database.begin_read().table("person")?.schema().len(), 1);
    transaction.commit()?;
    let reader = database.begin_read();
    for person in reader.table("person")?.by("person_by_name")?.range::<&str>(..)? {
        let (id, first, last): (i64, String, String) = person?.into()?;
        println!("{id}: {last}, {first}");
    }
    Ok(())
}
