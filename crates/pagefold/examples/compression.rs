//! The same rows under every method, what each takes, and what was foretold.

use pagefold::utility::{Silent, report};
use pagefold::{DataType, Database, Method, TableDefinition};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Database::in_memory()?;
    for method in Method::ALL {
        database.write(|transaction| {
            let definition = TableDefinition::new()
                .column("id", DataType::BigInt)
                .column("day", DataType::Date)
                .column("city", DataType::Varchar(Some(20)))
                .column("amount", DataType::Decimal { precision: 12, scale: 2 });
            let sales = transaction.create_table(&format!("sale_{method}"), definition.primary_key(["id"]).method(method))?;
            for id in 0_i64..5_000 {
                let city = ["Bergen", "Oslo", "Trondheim", "Tromsø"][(id % 4) as usize];
                sales.insert((id, format!("2026-11-{:02}", 1 + id / 250), city, (id * 37) % 1_000))?;
            }
            Ok::<_, pagefold::Error>(())
        })?;
    }
    let report = report(database.engine(), None, &Silent)?;
    for table in &report.tables {
        println!("{:<14} {:>6} rows {:>5} pages {:>8} bytes", table.name, table.rows, table.npages, table.size_bytes);
    }
    Ok(())
}
