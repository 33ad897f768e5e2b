//! New-Order (clause 2.4.2.2).

use crate::acknowledged::Change;
use crate::input::NewOrder;
use crate::statements::{
    CUSTOMER_DISCOUNT, INSERT_LINE, INSERT_NEW_ORDER, INSERT_ORDER, ITEM, NEXT_ORDER, UPDATE_STOCK, WAREHOUSE_TAX, stock_of,
};
use pagefold_lab_engine::sessions::{Connection, Done, amount, change, number, one};
use pagefold_types::Value;

/// None: an item is not there.
pub(super) fn run(connection: &mut dyn Connection, input: &NewOrder, moment: i64) -> Done<Option<Vec<Change>>> {
    let (warehouse, district) = (Value::Int(input.warehouse), Value::Int(input.district));
    let tax = number(&one(connection, WAREHOUSE_TAX, std::slice::from_ref(&warehouse))?[0])?;
    let next = one(connection, NEXT_ORDER, &[warehouse.clone(), district.clone()])?;
    let (order, tax) = (number(&next[0])?, tax + number(&next[1])?);
    let customer = one(connection, CUSTOMER_DISCOUNT, &[warehouse.clone(), district.clone(), Value::Int(input.customer)])?;
    let discount = number(&customer[0])?;
    let count = i64::try_from(input.lines.len()).expect("few lines");
    let is_local = input.lines.iter().all(|line| line.supplied_by == input.warehouse);
    let place = [Value::Int(order), district.clone(), warehouse.clone()];
    let behind = [Value::Int(input.customer), Value::Int(moment), Value::Int(count), Value::Int(i64::from(is_local))];
    change(connection, INSERT_ORDER, &[place.as_slice(), &behind].concat(), 1)?;
    change(connection, INSERT_NEW_ORDER, &place, 1)?;
    let mut total = 0;
    for (number_of, line) in (1..).zip(&input.lines) {
        let items = connection.rows(ITEM, &[Value::Int(line.item)])?;
        let Some(item) = items.first() else { return Ok(None) };
        let price = number(&item[0])?;
        let (from, of) = (Value::Int(line.supplied_by), Value::Int(line.item));
        let mut stock = one(connection, stock_of(input.district), &[from.clone(), of.clone()])?;
        let there = number(&stock[0])?;
        let left = if there >= line.quantity + 10 { there - line.quantity } else { there - line.quantity + 91 };
        let is_remote = Value::Int(i64::from(line.supplied_by != input.warehouse));
        let quantity = Value::Int(line.quantity);
        change(connection, UPDATE_STOCK, &[Value::Int(left), quantity.clone(), is_remote, from.clone(), of.clone()], 1)?;
        let costs = line.quantity * price;
        total += costs;
        let behind = [Value::Int(number_of), of, from, quantity, amount(costs), stock.swap_remove(2)];
        change(connection, INSERT_LINE, &[place.as_slice(), &behind].concat(), 1)?;
    }
    // What the terminal would show.
    std::hint::black_box(total * (10_000 - discount) * (10_000 + tax));
    Ok(Some(vec![Change::Order { warehouse: input.warehouse, district: input.district, order, moment }]))
}
