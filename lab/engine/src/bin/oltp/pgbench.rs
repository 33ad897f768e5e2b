//! The script of pgbench, PostgreSQL's own benchmark, which it calls "TPC-B (sort of)": three balances change by the same
//! amount, and a line is written about it.

use crate::workload::{Workload, equal, figure, insert_rows};
use pagefold_lab_engine::random::Random;
use pagefold_lab_engine::sessions::{Access, Connection, Done, Query, change, numbered, one, texts};
use pagefold_types::Value;

/// Of a branch.
const ACCOUNTS: i64 = 100_000;
const TELLERS: i64 = 10;

static TEXTS: [&str; 8] = [
    "INSERT INTO pgbench_branches (bid, bbalance, filler) VALUES (?, 0, ?)",
    "INSERT INTO pgbench_tellers (tid, bid, tbalance, filler) VALUES (?, ?, 0, ?)",
    "INSERT INTO pgbench_accounts (aid, bid, abalance, filler) VALUES (?, ?, 0, ?)",
    "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?",
    "SELECT abalance FROM pgbench_accounts WHERE aid = ?",
    "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?",
    "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
];

fn query(number: usize) -> Query {
    Query { number, text: TEXTS[number] }
}

/// A number of branches.
#[derive(Debug)]
pub(crate) struct Pgbench {
    branches: i64,
}

impl Pgbench {
    /// As many branches as these accounts need.
    pub(crate) fn new(accounts: i64) -> Pgbench {
        Pgbench { branches: (accounts / ACCOUNTS).max(1) }
    }
}

#[derive(Debug)]
pub(crate) struct Input {
    account: i64,
    teller: i64,
    branch: i64,
    delta: i64,
}

impl Workload for Pgbench {
    type Input = Input;
    type Terminal = ();

    fn name(&self) -> String {
        "pgbench".into()
    }

    fn definitions(&self, with: &str) -> Vec<String> {
        [
            "branches (bid INTEGER NOT NULL PRIMARY KEY, bbalance INTEGER, filler CHAR(88))",
            "tellers (tid INTEGER NOT NULL PRIMARY KEY, bid INTEGER, tbalance INTEGER, filler CHAR(84))",
            "accounts (aid INTEGER NOT NULL PRIMARY KEY, bid INTEGER, abalance INTEGER, filler CHAR(84))",
            "history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TIMESTAMP, filler CHAR(22))",
        ]
        .map(|table| format!("CREATE TABLE pgbench_{table}{with}"))
        .to_vec()
    }

    fn queries(&self) -> Vec<Query> {
        numbered(&TEXTS).collect()
    }

    fn load(&self, connection: &mut dyn Connection) -> Done<()> {
        // As pgbench fills it: with blanks.
        let filler = |bytes: usize| texts(" ".repeat(bytes));
        insert_rows(connection, query(0), 1, self.branches, |bid| vec![Value::Int(bid), filler(88)])?;
        insert_rows(connection, query(1), 1, self.branches * TELLERS, |tid| {
            vec![Value::Int(tid), Value::Int((tid - 1) / TELLERS + 1), filler(84)]
        })?;
        insert_rows(connection, query(2), 1, self.branches * ACCOUNTS, |aid| {
            vec![Value::Int(aid), Value::Int((aid - 1) / ACCOUNTS + 1), filler(84)]
        })
    }

    fn terminal(&self, _: usize) {}

    fn input(&self, (): &mut (), random: &mut Random) -> Input {
        Input {
            account: random.between(1, self.branches * ACCOUNTS),
            teller: random.between(1, self.branches * TELLERS),
            branch: random.between(1, self.branches),
            delta: random.between(-5000, 5000),
        }
    }

    fn run(&self, connection: &mut dyn Connection, input: &Input) -> Done<i64> {
        let Input { account, teller, branch, delta } = *input;
        connection.begin(Access::Write)?;
        change(connection, query(3), &[Value::Int(delta), Value::Int(account)], 1)?;
        one(connection, query(4), &[Value::Int(account)])?;
        change(connection, query(5), &[Value::Int(delta), Value::Int(teller)], 1)?;
        change(connection, query(6), &[Value::Int(delta), Value::Int(branch)], 1)?;
        change(connection, query(7), &[Value::Int(teller), Value::Int(branch), Value::Int(account), Value::Int(delta)], 1)?;
        connection.commit()?;
        Ok(1)
    }

    fn check(&self, connection: &mut dyn Connection, told: i64) -> Done<()> {
        equal("lines of history", figure(connection, "SELECT count(*) FROM pgbench_history")?, told)?;
        let delta = figure(connection, "SELECT sum(delta) FROM pgbench_history")?;
        equal("balances of accounts", figure(connection, "SELECT sum(abalance) FROM pgbench_accounts")?, delta)?;
        equal("balances of tellers", figure(connection, "SELECT sum(tbalance) FROM pgbench_tellers")?, delta)?;
        equal("balances of branches", figure(connection, "SELECT sum(bbalance) FROM pgbench_branches")?, delta)
    }
}
