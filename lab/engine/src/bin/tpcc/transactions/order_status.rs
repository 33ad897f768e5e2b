//! Order-Status (clause 2.6.2.2).

use super::by_name;
use crate::input::OrderStatus;
use crate::statements::{CUSTOMER_STATUS, LAST_ORDER, LINES};
use pagefold_lab_engine::sessions::{Connection, Done, Failure, number, one};
use pagefold_types::Value;

pub(super) fn run(connection: &mut dyn Connection, input: &OrderStatus) -> Done<()> {
    let id = by_name::customer(connection, input.of, &input.customer)?;
    let (warehouse, district) = (Value::Int(input.of.0), Value::Int(input.of.1));
    let key = [warehouse.clone(), district.clone(), Value::Int(id)];
    one(connection, CUSTOMER_STATUS, &key)?;
    // Each customer has an order from the beginning.
    let order = one(connection, LAST_ORDER, &key)?;
    let lines = connection.rows(LINES, &[warehouse, district, order[0].clone()])?;
    // What one snapshot shows fits together: conditions 6 and 7, of this order.
    let is_delivered = !matches!(order[2], Value::Null);
    let as_order = |line: &Vec<Value>| matches!(line[4], Value::Null) != is_delivered;
    if i64::try_from(lines.len()).expect("few") != number(&order[3])? || !lines.iter().all(as_order) {
        return Err(Failure::fatal(format!("Order-Status saw {lines:?} of the order {order:?} of {key:?}")));
    }
    Ok(())
}
