//! Payment (clause 2.5.2.2).

use super::by_name;
use crate::acknowledged::Change;
use crate::input::Payment;
use crate::statements::{CUSTOMER_TO_PAY, INSERT_HISTORY, PAY, PAY_BADLY, PAY_DISTRICT, PAY_WAREHOUSE};
use pagefold_lab_engine::sessions::{Connection, Done, amount, change, one, text, texts};
use pagefold_types::Value;

const CREDIT: usize = 10;
const DATA: usize = 14;
/// Characters that are kept of a customer's data.
const DATA_CHARS: usize = 500;

pub(super) fn run(connection: &mut dyn Connection, input: &Payment, moment: i64) -> Done<Change> {
    let (warehouse, district) = (Value::Int(input.warehouse), Value::Int(input.district));
    let pays = amount(input.amount);
    let of_warehouse = one(connection, PAY_WAREHOUSE, &[pays.clone(), warehouse.clone()])?;
    let of_district = one(connection, PAY_DISTRICT, &[pays.clone(), warehouse.clone(), district.clone()])?;
    let id = by_name::customer(connection, input.of, &input.customer)?;
    let key = [Value::Int(input.of.0), Value::Int(input.of.1), Value::Int(id)];
    let customer = one(connection, CUSTOMER_TO_PAY, &key)?;
    if text(&customer[CREDIT])? == "BC" {
        let (at, own) = (input.of, (input.district, input.warehouse));
        let data = format!("{id} {} {} {} {} {}|{}", at.1, at.0, own.0, own.1, input.amount, text(&customer[DATA])?);
        let data: String = data.chars().take(DATA_CHARS).collect();
        change(connection, PAY_BADLY, &[&[pays.clone(), pays.clone(), texts(data)], key.as_slice()].concat(), 1)?;
    } else {
        change(connection, PAY, &[&[pays.clone(), pays.clone()], key.as_slice()].concat(), 1)?;
    }
    let data = format!("{}    {}", text(&of_warehouse[0])?, text(&of_district[0])?);
    let [of_warehouse, of_district, id] = key;
    let behind = [district, warehouse, Value::Int(moment), pays, texts(data)];
    change(connection, INSERT_HISTORY, &[&[id, of_district, of_warehouse], behind.as_slice()].concat(), 1)?;
    Ok(Change::Payment { moment, amount: input.amount })
}
