//! Delivery (clause 2.7.4.2): the oldest new order of each district, all in one transaction. It is
//! not queued.

use crate::acknowledged::Change;
use crate::input::Delivery;
use crate::schema::DISTRICTS;
use crate::statements::{DELETE_NEW_ORDER, DELIVER_CUSTOMER, DELIVER_LINES, DELIVER_ORDER, OLDEST_NEW_ORDER, SUM_LINES};
use pagefold_lab_engine::sessions::{Connection, Done, amount, change, number, one};
use pagefold_types::Value;

pub(super) fn run(connection: &mut dyn Connection, input: Delivery, moment: i64) -> Done<Vec<Change>> {
    let mut delivered = Vec::new();
    let warehouse = Value::Int(input.warehouse);
    for district_number in 1..=DISTRICTS {
        let district = Value::Int(district_number);
        let oldest = connection.rows(OLDEST_NEW_ORDER, &[warehouse.clone(), district.clone()])?;
        // A district may have none.
        let Some(oldest) = oldest.first() else { continue };
        let key = [warehouse.clone(), district.clone(), oldest[0].clone()];
        change(connection, DELETE_NEW_ORDER, &key, 1)?;
        let order = one(connection, DELIVER_ORDER, &[&[Value::Int(input.carrier)], key.as_slice()].concat())?;
        let lines = number(&order[1])?.unsigned_abs();
        change(connection, DELIVER_LINES, &[&[Value::Int(moment)], key.as_slice()].concat(), lines)?;
        let sum = number(&one(connection, SUM_LINES, &key)?[0])?;
        let [_, _, id] = key;
        change(connection, DELIVER_CUSTOMER, &[amount(sum), warehouse.clone(), district, order[0].clone()], 1)?;
        let (warehouse, order) = (input.warehouse, number(&id)?);
        delivered.push(Change::Delivery { warehouse, district: district_number, order, moment });
    }
    Ok(delivered)
}
