//! The statements of the five transactions.
//!
//! SQLite is given the same texts without FOR UPDATE, which it does not know: there one transaction
//! at a time changes anything.
//!
//! Amounts that are added have their type said: a parameter beside a DECIMAL(12,2) is taken for one
//! with 16 digits behind the point, and a `Value::Decimal` does not say how many it has.

use pagefold_lab_engine::sessions::{Query, numbered};

/// Declares each statement with its name.
macro_rules! statements {
    ($($name:ident = $text:literal;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "names of constants that are numbered")]
        #[derive(Clone, Copy)]
        enum Number { $($name,)* Count }
        $(pub(crate) const $name: Query = Query { number: Number::$name as usize, text: $text };)*
        /// How many there are.
        pub(crate) const COUNT: usize = Number::Count as usize;
        pub(crate) static TEXTS: [&str; COUNT] = [$($text,)*];
    };
}

statements! {
    WAREHOUSE_TAX = "SELECT w_tax FROM warehouse WHERE w_id = ?";
    NEXT_ORDER = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? RETURNING d_next_o_id - 1, d_tax";
    CUSTOMER_DISCOUNT = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    INSERT_ORDER = "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (?, ?, ?, ?, ?, NULL, ?, ?)";
    INSERT_NEW_ORDER = "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)";
    ITEM = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    STOCK_01 = "SELECT s_quantity, s_data, s_dist_01 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_02 = "SELECT s_quantity, s_data, s_dist_02 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_03 = "SELECT s_quantity, s_data, s_dist_03 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_04 = "SELECT s_quantity, s_data, s_dist_04 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_05 = "SELECT s_quantity, s_data, s_dist_05 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_06 = "SELECT s_quantity, s_data, s_dist_06 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_07 = "SELECT s_quantity, s_data, s_dist_07 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_08 = "SELECT s_quantity, s_data, s_dist_08 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_09 = "SELECT s_quantity, s_data, s_dist_09 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    STOCK_10 = "SELECT s_quantity, s_data, s_dist_10 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    UPDATE_STOCK = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";
    INSERT_LINE = "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
        ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)";
    PAY_WAREHOUSE = "UPDATE warehouse SET w_ytd = w_ytd + CAST(? AS DECIMAL(12,2)) WHERE w_id = ?
        RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";
    PAY_DISTRICT = "UPDATE district SET d_ytd = d_ytd + CAST(? AS DECIMAL(12,2)) WHERE d_w_id = ? AND d_id = ?
        RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";
    CUSTOMERS_BY_NAME = "SELECT c_id, c_first FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    CUSTOMER_TO_PAY = "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
        c_credit, c_credit_lim, c_discount, c_balance, c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    PAY = "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + CAST(? AS DECIMAL(12,2)), c_payment_cnt = c_payment_cnt + 1
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    PAY_BADLY = "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + CAST(? AS DECIMAL(12,2)),
        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    INSERT_HISTORY = "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    CUSTOMER_STATUS = "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    LAST_ORDER = "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?
        ORDER BY o_id DESC LIMIT 1";
    LINES = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    OLDEST_NEW_ORDER = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    DELETE_NEW_ORDER = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    DELIVER_ORDER = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? RETURNING o_c_id, o_ol_cnt";
    DELIVER_LINES = "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    SUM_LINES = "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    DELIVER_CUSTOMER = "UPDATE customer SET c_balance = c_balance + CAST(? AS DECIMAL(12,2)), c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    DISTRICT_NEXT = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    LOW_STOCK = "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ?
        AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?";
}

/// Parameters of a statement.
pub(crate) fn parameters(query: Query) -> usize {
    query.text.matches('?').count()
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Query> {
    numbered(&TEXTS)
}

/// The statements that read a row of stock, for each district.
const STOCK: [Query; 10] = [STOCK_01, STOCK_02, STOCK_03, STOCK_04, STOCK_05, STOCK_06, STOCK_07, STOCK_08, STOCK_09, STOCK_10];

/// The statement that reads a row of stock for a district.
pub(crate) fn stock_of(district: i64) -> Query {
    STOCK[usize::try_from(district - 1).expect("a district")]
}
