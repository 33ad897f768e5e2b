//! The five transactions, as both sides run them.
//!
//! What each needs of others (clause 3.4): New-Order, Payment, Delivery and Order-Status are as if
//! one ran after the other. READ COMMITTED gives that here, because each row that decides what is
//! written is locked when it is read: the district by the UPDATE that takes the order's number,
//! stock and customers by FOR UPDATE, the oldest new order by FOR UPDATE. Other rows that they read
//! (taxes, discounts, items) never change. Order-Status and Stock-Level read one snapshot.

mod by_name;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use crate::acknowledged::Change;
use crate::input::Input;
use pagefold_lab_engine::sessions::{Access, Connection, Done};

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With these changes.
    Committed(Vec<Change>),
    /// It was to be rolled back: an item was not there.
    RolledBack,
}

/// Runs one, to its commit. `moment` marks the rows it makes: no other transaction has the same.
pub(crate) fn run(connection: &mut dyn Connection, input: &Input, moment: i64) -> Done<End> {
    let access = match input {
        Input::OrderStatus(_) | Input::StockLevel(_) => Access::Read,
        _ => Access::Write,
    };
    connection.begin(access)?;
    let ended = match input {
        Input::NewOrder(input) => new_order::run(connection, input, moment),
        Input::Payment(input) => payment::run(connection, input, moment).map(|change| Some(vec![change])),
        Input::OrderStatus(input) => order_status::run(connection, input).map(|()| Some(Vec::new())),
        Input::Delivery(input) => delivery::run(connection, *input, moment).map(Some),
        Input::StockLevel(input) => stock_level::run(connection, *input).map(|()| Some(Vec::new())),
    };
    match ended {
        Ok(Some(changes)) => connection.commit().map(|()| End::Committed(changes)),
        Ok(None) => connection.rollback().map(|()| End::RolledBack),
        Err(failure) => {
            connection.rollback()?;
            Err(failure)
        }
    }
}
