//! What terminals were told is committed, and whether it is there.
//!
//! Each row that a run makes has a moment of its own, so each change can be found again. A process
//! that is going to be killed writes its acknowledgements to files, a line each, after the commit
//! has returned: what is written outlives it.

use crate::population::LOADED;
use pagefold_lab_engine::sessions::{Connection, Done, Failure, number};
use pagefold_types::Value;
use std::collections::HashMap;

/// A change that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Order { warehouse: i64, district: i64, order: i64, moment: i64 },
    Payment { moment: i64, amount: i64 },
    Delivery { warehouse: i64, district: i64, order: i64, moment: i64 },
}

impl Change {
    pub(crate) fn line(&self) -> String {
        match self {
            Change::Order { warehouse, district, order, moment } => format!("O {warehouse} {district} {order} {moment}\n"),
            Change::Payment { moment, amount } => format!("P {moment} {amount}\n"),
            Change::Delivery { warehouse, district, order, moment } => format!("D {warehouse} {district} {order} {moment}\n"),
        }
    }

    fn of_line(line: &str) -> Option<Change> {
        let (kind, numbers) = line.split_once(' ')?;
        let numbers: Vec<i64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        match (kind, numbers.as_slice()) {
            ("O", &[warehouse, district, order, moment]) => Some(Change::Order { warehouse, district, order, moment }),
            ("P", &[moment, amount]) => Some(Change::Payment { moment, amount }),
            ("D", &[warehouse, district, order, moment]) => Some(Change::Delivery { warehouse, district, order, moment }),
            _ => None,
        }
    }
}

/// The changes of a file. What a killed process has not written whole counts as not told.
pub(crate) fn read(text: &str) -> Option<Vec<Change>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(Change::of_line).collect()
}

/// Warehouse, district, number.
type OrderKey = (i64, i64, i64);

/// All that were told.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    orders: HashMap<OrderKey, i64>,
    payments: HashMap<i64, i64>,
    deliveries: HashMap<OrderKey, i64>,
}

/// What was found of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// There, as told: orders, payments, deliveries.
    pub(crate) there: [usize; 3],
    /// There, and nobody was told.
    pub(crate) untold: [usize; 3],
    /// Told, and not there, or otherwise.
    pub(crate) missing: [usize; 3],
}

impl Acknowledged {
    pub(crate) fn add(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            match change {
                Change::Order { warehouse, district, order, moment } => _ = self.orders.insert((warehouse, district, order), moment),
                Change::Payment { moment, amount } => _ = self.payments.insert(moment, amount),
                Change::Delivery { warehouse, district, order, moment } => {
                    self.deliveries.insert((warehouse, district, order), moment);
                }
            }
        }
    }

    /// Compares them with the tables.
    pub(crate) fn compare(&self, connection: &mut dyn Connection) -> Done<Found> {
        let loaded = [Value::Int(LOADED)];
        let mut found = Found::default();
        let orders = connection.say("SELECT o_w_id, o_d_id, o_id, o_entry_d FROM orders WHERE o_entry_d <> ?", &loaded)?;
        found.note(0, &self.orders, keyed(&orders)?);
        let payments = connection.say("SELECT h_date, h_amount FROM history WHERE h_date <> ?", &loaded)?;
        let payments = payments.iter().map(|row| Ok((number(&row[0])?, number(&row[1])?))).collect::<Done<Vec<_>>>()?;
        found.note(1, &self.payments, payments);
        let text = "SELECT DISTINCT ol_w_id, ol_d_id, ol_o_id, ol_delivery_d FROM order_line WHERE ol_delivery_d <> ?";
        found.note(2, &self.deliveries, keyed(&connection.say(text, &loaded)?)?);
        Ok(found)
    }
}

fn keyed(rows: &[Vec<Value>]) -> Done<Vec<(OrderKey, i64)>> {
    rows.iter().map(|row| Ok(((number(&row[0])?, number(&row[1])?, number(&row[2])?), number(&row[3])?))).collect()
}

impl Found {
    fn note<K: Copy + Eq + std::hash::Hash>(&mut self, at: usize, told: &HashMap<K, i64>, rows: Vec<(K, i64)>) {
        let are: HashMap<K, i64> = rows.iter().copied().collect();
        self.there[at] = told.iter().filter(|(key, value)| are.get(key) == Some(value)).count();
        self.missing[at] = told.len() - self.there[at];
        // A key that is there twice counts as a row too many.
        self.untold[at] = rows.len() - are.len() + are.iter().filter(|(key, value)| told.get(key) != Some(value)).count();
    }

    /// Is nothing missing, and no more there untold than transactions were open when the end came?
    pub(crate) fn check(&self, may_miss: bool, open: usize) -> Done<()> {
        let untold = [open, open, open * 10];
        let is_right = (may_miss || self.missing == [0; 3]) && self.untold.iter().zip(untold).all(|(found, most)| *found <= most);
        if is_right { Ok(()) } else { Err(Failure::fatal(format!("acknowledged changes: {self}"))) }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [orders, payments, deliveries] = self.there;
        write!(f, "{orders} orders, {payments} payments, {deliveries} deliveries are there as told")?;
        let three = |of: [usize; 3]| format!("{}, {}, {}", of[0], of[1], of[2]);
        write!(f, "; missing {}; there and not told {}", three(self.missing), three(self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written_and_a_torn_one_is_left() {
        let all = [
            Change::Order { warehouse: 1, district: 2, order: 3, moment: 4 },
            Change::Payment { moment: 5, amount: -6 },
            Change::Delivery { warehouse: 7, district: 8, order: 9, moment: 10 },
        ];
        let text: String = all.iter().map(Change::line).collect();
        assert_eq!(read(&text), Some(all.to_vec()));
        assert_eq!(read(&text[..text.len() - 1]), Some(all[..2].to_vec()));
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(read("O 1 2\n"), None);
    }

    #[test]
    fn what_is_missing_or_too_many_is_counted() {
        let mut found = Found::default();
        found.note(1, &HashMap::from([(1, 10), (2, 20), (3, 30)]), vec![(1, 10), (2, 21), (4, 40), (4, 40)]);
        assert_eq!((found.there[1], found.missing[1], found.untold[1]), (1, 2, 3));
        assert!(found.check(false, 9).is_err() && found.check(true, 3).is_ok() && found.check(true, 2).is_err());
    }
}
