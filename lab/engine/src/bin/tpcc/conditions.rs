//! The twelve consistency conditions (clause 3.3.2), and two of our own. Each is a query that gives
//! the rows that violate it.
//!
//! Condition 11 is about a database that was just loaded. Here what the run has delivered is added,
//! so it holds later, too. The two of our own find changes of stock and customers that were lost.

use crate::population::LOADED;
use crate::schema::Scale;
use pagefold_lab_engine::sessions::{Connection, Done, Failure};
use pagefold_types::Value;

/// A condition.
pub(crate) struct Condition {
    pub(crate) number: usize,
    pub(crate) says: &'static str,
    pub(crate) text: &'static str,
    pub(crate) params: fn(Scale) -> Vec<Value>,
}

fn none(_: Scale) -> Vec<Value> {
    Vec::new()
}

pub(crate) const CONDITIONS: [Condition; 14] = [
    Condition {
        number: 1,
        says: "W_YTD = sum(D_YTD)",
        text: "SELECT w_id, w_ytd, sum(d_ytd) FROM warehouse LEFT JOIN district ON d_w_id = w_id
            GROUP BY w_id, w_ytd HAVING w_ytd IS DISTINCT FROM sum(d_ytd)",
        params: none,
    },
    Condition {
        number: 2,
        says: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        text: "SELECT d_w_id, d_id, d_next_o_id, newest, newest_new FROM district
            LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o
                ON o_w_id = d_w_id AND o_d_id = d_id
            LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest_new FROM new_order GROUP BY no_w_id, no_d_id) n
                ON no_w_id = d_w_id AND no_d_id = d_id
            WHERE newest IS DISTINCT FROM d_next_o_id - 1 OR newest_new <> d_next_o_id - 1",
        params: none,
    },
    Condition {
        number: 3,
        says: "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
        text: "SELECT no_w_id, no_d_id, max(no_o_id), min(no_o_id), count(*) FROM new_order GROUP BY no_w_id, no_d_id
            HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
        params: none,
    },
    Condition {
        number: 4,
        says: "sum(O_OL_CNT) = rows of ORDER-LINE",
        text: "SELECT d_w_id, d_id, said, found FROM district
            LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o
                ON o_w_id = d_w_id AND o_d_id = d_id
            LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
                ON ol_w_id = d_w_id AND ol_d_id = d_id
            WHERE said IS DISTINCT FROM found",
        params: none,
    },
    Condition {
        number: 5,
        says: "O_CARRIER_ID is NULL where there is a row of NEW-ORDER, and only there",
        text: "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders
            LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
            WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
        params: none,
    },
    Condition {
        number: 6,
        says: "O_OL_CNT = rows of ORDER-LINE of the order",
        text: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found FROM orders
            LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE o_ol_cnt IS DISTINCT FROM found",
        params: none,
    },
    Condition {
        number: 7,
        says: "OL_DELIVERY_D is NULL where O_CARRIER_ID is, and only there",
        text: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line
            LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
            WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
        params: none,
    },
    Condition {
        number: 8,
        says: "W_YTD = sum(H_AMOUNT)",
        text: "SELECT w_id, w_ytd, paid FROM warehouse
            LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id
            WHERE w_ytd IS DISTINCT FROM paid",
        params: none,
    },
    Condition {
        number: 9,
        says: "D_YTD = sum(H_AMOUNT)",
        text: "SELECT d_w_id, d_id, d_ytd, paid FROM district
            LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h
                ON h_w_id = d_w_id AND h_d_id = d_id
            WHERE d_ytd IS DISTINCT FROM paid",
        params: none,
    },
    Condition {
        number: 10,
        says: "C_BALANCE = sum(OL_AMOUNT) of what was delivered - sum(H_AMOUNT)",
        text: "SELECT c_w_id, c_d_id, c_id, c_balance, owed, paid FROM customer
            LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
            LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS owed FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            WHERE c_balance <> coalesce(owed, 0) - coalesce(paid, 0)",
        params: none,
    },
    Condition {
        number: 11,
        says: "rows of ORDER - rows of NEW-ORDER = those delivered when loaded, and since",
        text: "SELECT d_w_id, d_id, all_orders, new_orders, delivered FROM district
            LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS all_orders FROM orders GROUP BY o_w_id, o_d_id) o
                ON o_w_id = d_w_id AND o_d_id = d_id
            LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM new_order GROUP BY no_w_id, no_d_id) n
                ON no_w_id = d_w_id AND no_d_id = d_id
            LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS delivered FROM order_line
                    WHERE ol_number = 1 AND ol_delivery_d <> ? GROUP BY ol_w_id, ol_d_id) l
                ON ol_w_id = d_w_id AND ol_d_id = d_id
            WHERE coalesce(all_orders, 0) - coalesce(new_orders, 0) <> ? + coalesce(delivered, 0)",
        params: |scale| vec![Value::Int(LOADED), Value::Int(scale.first_new_order() - 1)],
    },
    Condition {
        number: 12,
        says: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of what was delivered",
        text: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, owed FROM customer
            LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS owed FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            WHERE c_balance + c_ytd_payment <> coalesce(owed, 0)",
        params: none,
    },
    Condition {
        number: 13,
        says: "S_YTD, S_ORDER_CNT, S_REMOTE_CNT are those of the lines since the load",
        text: "SELECT s_w_id, s_i_id, s_ytd, ordered, s_order_cnt, times, s_remote_cnt, remote FROM stock
            LEFT JOIN (SELECT ol_supply_w_id, ol_i_id, sum(ol_quantity) AS ordered, count(*) AS times,
                    sum(CASE WHEN ol_w_id <> ol_supply_w_id THEN 1 ELSE 0 END) AS remote
                    FROM order_line WHERE ol_o_id > ? GROUP BY ol_supply_w_id, ol_i_id) l
                ON ol_supply_w_id = s_w_id AND ol_i_id = s_i_id
            WHERE s_ytd <> coalesce(ordered, 0) OR s_order_cnt <> coalesce(times, 0) OR s_remote_cnt <> coalesce(remote, 0)",
        params: |scale| vec![Value::Int(scale.customers)],
    },
    Condition {
        number: 14,
        says: "C_PAYMENT_CNT, C_DELIVERY_CNT are those of HISTORY and of deliveries since the load",
        text: "SELECT c_w_id, c_d_id, c_id, c_payment_cnt, payments, c_delivery_cnt, deliveries FROM customer
            LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, count(*) AS payments FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
            LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, count(*) AS deliveries FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_number = 1 AND ol_delivery_d <> ? GROUP BY o_w_id, o_d_id, o_c_id) o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            WHERE c_payment_cnt <> coalesce(payments, 0) OR c_delivery_cnt <> coalesce(deliveries, 0)",
        params: |_| vec![Value::Int(LOADED)],
    },
];

impl Condition {
    /// The rows that violate it.
    pub(crate) fn violations(&self, connection: &mut dyn Connection, scale: Scale) -> Done<Vec<Vec<Value>>> {
        connection.say(self.text, &(self.params)(scale))
    }
}

/// Checks all of them, and says how long each took, in seconds.
pub(crate) fn check(connection: &mut dyn Connection, scale: Scale) -> Done<Vec<f64>> {
    let mut seconds = Vec::new();
    for condition in &CONDITIONS {
        let began = std::time::Instant::now();
        let rows = condition.violations(connection, scale)?;
        if let Some(first) = rows.first() {
            let (number, says, count) = (condition.number, condition.says, rows.len());
            return Err(Failure::fatal(format!("condition {number} ({says}) is violated by {count} rows, such as {first:?}")));
        }
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok(seconds)
}
