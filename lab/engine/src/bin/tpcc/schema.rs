//! The nine tables of the specification's clause 1.3, their keys, and how large they are.
//!
//! The texts are read by both sides. SQLite keeps amounts as whole numbers of cents, and moments as
//! whole numbers of microseconds: it has no type for either.

/// How much a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) warehouses: i64,
    pub(crate) items: i64,
    /// Customers of a district, and orders that it begins with.
    pub(crate) customers: i64,
    /// The population was shrunk to a part of so many.
    pub(crate) divisor: i64,
}

/// Districts of a warehouse.
pub(crate) const DISTRICTS: i64 = 10;

impl Scale {
    pub(crate) fn new(warehouses: i64, divisor: i64) -> Scale {
        // An order has up to 15 lines, and a tenth of the orders has a tenth of these.
        Scale { warehouses, items: (100_000 / divisor).max(100), customers: (3000 / divisor).max(30), divisor }
    }

    /// The first order of a district that is not delivered yet: 900 of 3,000 are not.
    pub(crate) fn first_new_order(&self) -> i64 {
        self.customers * 7 / 10 + 1
    }

    /// Last names are of the numbers up to this one.
    pub(crate) fn last_name_max(&self) -> i64 {
        self.customers.min(1000) - 1
    }
}

/// A table: its columns and key, and its foreign keys.
struct Table {
    name: &'static str,
    columns: &'static str,
    foreign_keys: &'static str,
    /// SQLite keeps rows this short in the key itself, where that is said.
    is_short: bool,
}

const TABLES: [Table; 9] = [
    Table {
        name: "warehouse",
        columns: "w_id INTEGER NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL,
            w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, w_zip CHAR(9) NOT NULL,
            w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id)",
        foreign_keys: "",
        is_short: false,
    },
    Table {
        name: "district",
        columns: "d_id INTEGER NOT NULL, d_w_id INTEGER NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL,
            d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL,
            d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INTEGER NOT NULL, PRIMARY KEY (d_w_id, d_id)",
        foreign_keys: ", FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)",
        is_short: false,
    },
    Table {
        name: "customer",
        columns: "c_id INTEGER NOT NULL, c_d_id INTEGER NOT NULL, c_w_id INTEGER NOT NULL, c_first VARCHAR(16) NOT NULL,
            c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL,
            c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL,
            c_phone CHAR(16) NOT NULL, c_since TIMESTAMP NOT NULL, c_credit CHAR(2) NOT NULL,
            c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL,
            c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INTEGER NOT NULL, c_delivery_cnt INTEGER NOT NULL,
            c_data VARCHAR(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id)",
        foreign_keys: ", FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)",
        is_short: false,
    },
    Table {
        name: "history",
        columns: "h_c_id INTEGER NOT NULL, h_c_d_id INTEGER NOT NULL, h_c_w_id INTEGER NOT NULL, h_d_id INTEGER NOT NULL,
            h_w_id INTEGER NOT NULL, h_date TIMESTAMP NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL",
        foreign_keys: ", FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id),
            FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)",
        is_short: false,
    },
    Table {
        name: "item",
        columns: "i_id INTEGER NOT NULL, i_im_id INTEGER NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
            i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)",
        foreign_keys: "",
        is_short: false,
    },
    Table {
        name: "stock",
        columns: "s_i_id INTEGER NOT NULL, s_w_id INTEGER NOT NULL, s_quantity INTEGER NOT NULL, s_dist_01 CHAR(24) NOT NULL,
            s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL,
            s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
            s_dist_10 CHAR(24) NOT NULL, s_ytd INTEGER NOT NULL, s_order_cnt INTEGER NOT NULL, s_remote_cnt INTEGER NOT NULL,
            s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)",
        foreign_keys: ", FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id), FOREIGN KEY (s_i_id) REFERENCES item (i_id)",
        is_short: false,
    },
    Table {
        name: "orders",
        columns: "o_id INTEGER NOT NULL, o_d_id INTEGER NOT NULL, o_w_id INTEGER NOT NULL, o_c_id INTEGER NOT NULL,
            o_entry_d TIMESTAMP NOT NULL, o_carrier_id INTEGER, o_ol_cnt INTEGER NOT NULL, o_all_local INTEGER NOT NULL,
            PRIMARY KEY (o_w_id, o_d_id, o_id)",
        foreign_keys: ", FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
        is_short: true,
    },
    Table {
        name: "new_order",
        columns: "no_o_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, no_w_id INTEGER NOT NULL,
            PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
        foreign_keys: ", FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
        is_short: true,
    },
    Table {
        name: "order_line",
        columns: "ol_o_id INTEGER NOT NULL, ol_d_id INTEGER NOT NULL, ol_w_id INTEGER NOT NULL, ol_number INTEGER NOT NULL,
            ol_i_id INTEGER NOT NULL, ol_supply_w_id INTEGER NOT NULL, ol_delivery_d TIMESTAMP, ol_quantity INTEGER NOT NULL,
            ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
        foreign_keys: ", FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id),
            FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)",
        is_short: true,
    },
];

/// Customers by their last name, and orders by their customer: the keys alone do not find these.
const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE UNIQUE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

/// What makes the tables. `behind` is what stands behind the columns, of a short row or another.
pub(crate) fn definitions(foreign_keys: bool, behind: impl Fn(bool) -> String) -> Vec<String> {
    let table = |table: &Table| {
        let foreign_keys = if foreign_keys { table.foreign_keys } else { "" };
        format!("CREATE TABLE {} ({}{foreign_keys}){}", table.name, table.columns, behind(table.is_short))
    };
    TABLES.iter().map(table).chain(INDEXES.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_population_is_that_of_the_specification() {
        let scale = Scale::new(2, 1);
        assert_eq!((scale.items, scale.customers, scale.first_new_order(), scale.last_name_max()), (100_000, 3000, 2101, 999));
    }
}
