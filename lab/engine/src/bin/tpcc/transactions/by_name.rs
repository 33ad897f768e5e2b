//! The customer of a last name: of several the middle one, by their first names, rounded up.

use crate::input::Customer;
use crate::statements::CUSTOMERS_BY_NAME;
use pagefold_lab_engine::sessions::{Connection, Done, Failure, number, texts};
use pagefold_types::Value;

pub(super) fn customer(connection: &mut dyn Connection, (warehouse, district): (i64, i64), customer: &Customer) -> Done<i64> {
    let name = match customer {
        Customer::Number(number) => return Ok(*number),
        Customer::LastName(name) => name,
    };
    let params = [Value::Int(warehouse), Value::Int(district), texts(name.as_str())];
    let rows = connection.rows(CUSTOMERS_BY_NAME, &params)?;
    let Some(row) = rows.get(rows.len().div_ceil(2).saturating_sub(1)) else {
        return Err(Failure::fatal(format!("no customer of {params:?}")));
    };
    number(&row[0])
}
