//! A SQLite file with the tables of TPC-H, their keys and an index for each foreign key.
//!
//! `cargo run --release -p pagefold-lab-engine --features rivals --bin tpch_sqlite -- --scale-factor 0.1 tpch.sqlite`

use clap::Parser;
use pagefold_lab_engine::data::Outcome;
use rusqlite::{Connection, params_from_iter};
use std::fmt::Display;
use std::path::PathBuf;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};

#[derive(Debug, Parser)]
struct Options {
    #[arg(long, default_value_t = 0.1)]
    scale_factor: f64,
    /// The file; it must not be there.
    file: PathBuf,
}

const TABLES: &str = "
CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152));
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INTEGER NOT NULL, n_comment VARCHAR(152));
CREATE TABLE supplier (s_suppkey INTEGER PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, s_nationkey INTEGER NOT NULL,
    s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR(101) NOT NULL);
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, c_nationkey INTEGER NOT NULL,
    c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL);
CREATE TABLE part (p_partkey INTEGER PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL,
    p_type VARCHAR(25) NOT NULL, p_size INTEGER NOT NULL, p_container CHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL);
CREATE TABLE partsupp (ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL, ps_availqty INTEGER NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL,
    ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)) WITHOUT ROWID;
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderstatus CHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL,
    o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, o_clerk CHAR(15) NOT NULL, o_shippriority INTEGER NOT NULL, o_comment VARCHAR(79) NOT NULL);
CREATE TABLE lineitem (l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL,
    l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
    l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL,
    l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)) WITHOUT ROWID;
";

const INDEXES: &str = "
CREATE INDEX supplier_nation ON supplier (s_nationkey);
CREATE INDEX customer_nation ON customer (c_nationkey);
CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate);
";

/// Rows as the generator writes them, with a bar behind each value. SQLite makes numbers of what its columns are declared as.
fn fill<R: Display>(connection: &mut Connection, table: &str, columns: usize, rows: impl Iterator<Item = R>) -> Outcome<()> {
    let transaction = connection.transaction()?;
    {
        let places = vec!["?"; columns].join(", ");
        let mut insert = transaction.prepare(&format!("INSERT INTO {table} VALUES ({places})"))?;
        for row in rows {
            let text = row.to_string();
            insert.execute(params_from_iter(text.trim_end_matches('|').split('|')))?;
        }
    }
    Ok(transaction.commit()?)
}

fn main() -> Outcome<()> {
    let Options { scale_factor: sf, file } = Options::parse();
    if file.exists() {
        return Err(format!("{} is there already", file.display()).into());
    }
    let mut connection = Connection::open(&file)?;
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    connection.execute_batch(TABLES)?;
    fill(&mut connection, "region", 3, RegionGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "nation", 4, NationGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "supplier", 7, SupplierGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "customer", 8, CustomerGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "part", 9, PartGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "partsupp", 5, PartSuppGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "orders", 9, OrderGenerator::new(sf, 1, 1).iter())?;
    fill(&mut connection, "lineitem", 16, LineItemGenerator::new(sf, 1, 1).iter())?;
    connection.execute_batch(INDEXES)?;
    println!("{}: {} MB", file.display(), file.metadata()?.len() >> 20);
    Ok(())
}
