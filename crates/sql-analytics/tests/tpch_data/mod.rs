//! The tables and queries of TPC-H (3.0.1): definitions, rows as COPY reads them, the 22 queries with the values that check their answers.

use pagefold_sql::{Session, SqlResult};
use std::io::{BufRead, Read};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};
use tpchgen::q_and_a::QueryAndAnswer;

/// Each table with its columns.
const TABLES: [(&str, &str); 8] = [
    ("region", "r_regionkey INTEGER PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152)"),
    ("nation", "n_nationkey INTEGER PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INTEGER NOT NULL, n_comment VARCHAR(152)"),
    (
        "supplier",
        "s_suppkey INTEGER PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, s_nationkey INTEGER NOT NULL,
         s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR(101) NOT NULL",
    ),
    (
        "customer",
        "c_custkey INTEGER PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, c_nationkey INTEGER NOT NULL,
         c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
    ),
    (
        "part",
        "p_partkey INTEGER PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL,
         p_type VARCHAR(25) NOT NULL, p_size INTEGER NOT NULL, p_container CHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL,
         p_comment VARCHAR(23) NOT NULL",
    ),
    (
        "partsupp",
        "ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL, ps_availqty INTEGER NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL,
         ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    ),
    (
        "orders",
        "o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderstatus CHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL,
         o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, o_clerk CHAR(15) NOT NULL, o_shippriority INTEGER NOT NULL,
         o_comment VARCHAR(79) NOT NULL",
    ),
    (
        "lineitem",
        "l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL,
         l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL,
         l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL,
         l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL,
         l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
    ),
];

const INDEXES: [&str; 6] = [
    "CREATE INDEX supplier_nation ON supplier (s_nationkey)",
    "CREATE INDEX customer_nation ON customer (c_nationkey)",
    "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
    "CREATE INDEX orders_customer ON orders (o_custkey)",
    "CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate)",
];

/// Lines of a table, without the bar at their ends.
struct Lines {
    rows: Box<dyn Iterator<Item = String>>,
    line: Vec<u8>,
    at: usize,
}

impl Read for Lines {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Lines {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.at == self.line.len() {
            (self.line, self.at) = (Vec::with_capacity(1 << 16), 0);
            for row in self.rows.by_ref().take(256) {
                self.line.extend_from_slice(row.trim_end_matches('|').as_bytes());
                self.line.push(b'\n');
            }
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

fn lines(table: &str, scale: f64) -> Lines {
    let rows: Box<dyn Iterator<Item = String>> = match table {
        "region" => Box::new(RegionGenerator::new(scale, 1, 1).iter().map(|row| row.to_string()).collect::<Vec<_>>().into_iter()),
        "nation" => Box::new(NationGenerator::new(scale, 1, 1).iter().map(|row| row.to_string()).collect::<Vec<_>>().into_iter()),
        "supplier" => Box::new(SupplierGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "customer" => Box::new(CustomerGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "part" => Box::new(PartGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "partsupp" => Box::new(PartSuppGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "orders" => Box::new(OrderGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        _ => Box::new(LineItemGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
    };
    Lines { rows, line: Vec::new(), at: 0 }
}

/// Makes the tables under a method, with their rows and indexes.
pub(crate) fn make(session: &mut Session, scale: f64, method: &str) -> SqlResult<()> {
    for (table, columns) in TABLES {
        session.execute(&format!("CREATE TABLE {table} ({columns}) WITH (compress = '{method}')"), &[])?.rows()?;
        let copy = session.prepare(&format!("COPY {table} FROM STDIN (FORMAT csv, DELIMITER '|')"))?;
        session.copy_from(&copy, &mut lines(table, scale))?;
    }
    for index in INDEXES {
        session.execute(index, &[])?.rows()?;
    }
    Ok(())
}

/// What the specification puts into the queries to check the answers (2.4.x.4).
const PARAMETERS: [&[&str]; 22] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    &["GERMANY", "0.0001"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["300"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

/// Of these queries only so many rows are returned.
const LIMITS: [(i32, u32); 5] = [(2, 100), (3, 10), (10, 20), (18, 100), (21, 100)];

/// The statements of a query; one of them has the answer.
pub(crate) fn statements(number: i32) -> Vec<String> {
    let known = QueryAndAnswer::new(number, 1.0).expect("a query");
    let mut text = known.query().replace(":s", "0");
    let parameters = PARAMETERS[usize::try_from(number - 1).expect("a query number")];
    for (at, value) in parameters.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", at + 1), value);
    }
    let mut all: Vec<String> = text.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect();
    if let (Some((_, limit)), [query]) = (LIMITS.iter().find(|(own, _)| *own == number), all.as_mut_slice()) {
        query.push_str(&format!(" limit {limit}"));
    }
    all
}
