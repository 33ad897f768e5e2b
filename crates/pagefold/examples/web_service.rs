//! What a web service would start from: one database, shared by the threads that answer requests; each request a transaction, begun again when others were in its way.

use pagefold::{DataType, Database, Durability, Isolation, TableDefinition, TransactionOptions};
use std::thread;

/// What each handler has: clones are the same database.
#[derive(Clone)]
struct Accounts {
    database: Database,
}

impl Accounts {
    fn new(database: Database) -> pagefold::Result<Accounts> {
        database.write(|transaction| {
            let definition = TableDefinition::new().column("id", DataType::BigInt).column("balance", DataType::BigInt);
            let accounts = transaction.create_table("account", definition.primary_key(["id"]))?;
            (0_i64..10).try_for_each(|id| accounts.insert((id, 100_i64)))
        })?;
        Ok(Accounts { database })
    }

    /// `POST /transfer`: false when there is not enough.
    fn transfer(&self, from: i64, to: i64, amount: i64) -> pagefold::Result<bool> {
        self.database.write(|transaction| {
            let accounts = transaction.table("account")?;
            // The lower one first, whoever pays: so no two wait for each other.
            for id in [from.min(to), from.max(to)] {
                accounts.lock(id)?;
            }
            let balance = |id: i64| accounts.get(id)?.expect("accounts stay").get::<i64>("balance");
            let (payer, payee) = (balance(from)?, balance(to)?);
            if payer < amount {
                return Ok(false);
            }
            accounts.update(from, [("balance", payer - amount)])?;
            accounts.update(to, [("balance", payee + amount)])
        })
    }

    /// `GET /total`: one moment, whatever is going on.
    fn total(&self) -> pagefold::Result<i64> {
        let transaction = self.database.begin_read();
        let accounts = transaction.table("account")?;
        accounts.scan()?.map(|account| account?.get::<i64>("balance")).sum()
    }

    /// `PUT /visits`: one that may be lost when the machine stops, and costs no sync.
    fn open_account(&self, id: i64) -> pagefold::Result<()> {
        let options = TransactionOptions { durability: Durability::Relaxed, isolation: Isolation::ReadCommitted, ..Default::default() };
        let transaction = self.database.begin_with(options);
        transaction.table("account")?.upsert((id, 0_i64))?;
        transaction.commit()
    }
}

pub(crate) fn main() -> pagefold::Result<()> {
    let accounts = Accounts::new(Database::in_memory()?)?;
    thread::scope(|scope| {
        for handler in 0_i64..4 {
            let accounts = accounts.clone();
            scope.spawn(move || {
                for request in 0_i64..50 {
                    let (from, to) = ((handler + request) % 10, (handler * 3 + request * 7 + 1) % 10);
                    if from != to {
                        accounts.transfer(from, to, request % 20).expect("a transfer");
                    }
                    assert_eq!(accounts.total().expect("a total"), 1_000);
                }
            });
        }
    });
    accounts.open_account(10)?;
    println!("{} in all accounts", accounts.total()?);
    Ok(())
}
