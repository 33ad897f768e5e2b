//! Stock-Level (clause 2.8.2.2): items of the last 20 orders of which little is left.

use crate::input::StockLevel;
use crate::statements::{DISTRICT_NEXT, LOW_STOCK};
use pagefold_lab_engine::sessions::{Connection, Done, number, one};
use pagefold_types::Value;

pub(super) fn run(connection: &mut dyn Connection, input: StockLevel) -> Done<()> {
    let (warehouse, district) = (Value::Int(input.warehouse), Value::Int(input.district));
    let next = number(&one(connection, DISTRICT_NEXT, &[warehouse.clone(), district.clone()])?[0])?;
    let orders = [Value::Int(next), Value::Int(next - 20)];
    let params = [&[warehouse.clone(), district], orders.as_slice(), &[warehouse, Value::Int(input.threshold)]].concat();
    one(connection, LOW_STOCK, &params).map(drop)
}
