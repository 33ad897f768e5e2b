//! What terminals ask for (clauses 2.4.1 to 2.8.1), and in which mix (clause 5.2.4.2).

use crate::random::{Constants, Draw};
use crate::schema::{DISTRICTS, Scale};

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

pub(crate) const KINDS: [Kind; 5] = [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

/// How many cards of each kind a deck has.
const DECK: [(Kind, usize); 5] =
    [(Kind::NewOrder, 45), (Kind::Payment, 43), (Kind::OrderStatus, 4), (Kind::Delivery, 4), (Kind::StockLevel, 4)];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "New-Order",
            Kind::Payment => "Payment",
            Kind::OrderStatus => "Order-Status",
            Kind::Delivery => "Delivery",
            Kind::StockLevel => "Stock-Level",
        }
    }
}

/// A deck of 100 cards; it is shuffled anew when it is used up.
#[derive(Default)]
pub(crate) struct Deck(Vec<Kind>);

impl Deck {
    pub(crate) fn next(&mut self, draw: &mut Draw) -> Kind {
        if self.0.is_empty() {
            self.0 = DECK.iter().flat_map(|(kind, count)| vec![*kind; *count]).collect();
            draw.shuffle(&mut self.0);
        }
        self.0.pop().expect("a card")
    }
}

/// A line of a new order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) item: i64,
    pub(crate) supplied_by: i64,
    pub(crate) quantity: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct NewOrder {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer: i64,
    /// The last one may name an item that is not there: the transaction is rolled back then.
    pub(crate) lines: Vec<Line>,
}

/// A customer by number, or the middle one of a last name.
#[derive(Clone, Debug)]
pub(crate) enum Customer {
    Number(i64),
    LastName(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Payment {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    /// Where the customer lives: in 15 % elsewhere.
    pub(crate) of: (i64, i64),
    pub(crate) customer: Customer,
    /// In cents.
    pub(crate) amount: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderStatus {
    pub(crate) of: (i64, i64),
    pub(crate) customer: Customer,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) warehouse: i64,
    pub(crate) carrier: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StockLevel {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) threshold: i64,
}

/// What a terminal asks for next.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// A terminal: at home in a district of a warehouse, as Stock-Level asks for.
pub(crate) struct Terminal {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) scale: Scale,
    pub(crate) constants: Constants,
}

impl Terminal {
    pub(crate) fn input(&self, kind: Kind, draw: &mut Draw) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order(draw)),
            Kind::Payment => Input::Payment(self.payment(draw)),
            Kind::OrderStatus => {
                let of = (self.warehouse, draw.between(1, DISTRICTS));
                Input::OrderStatus(OrderStatus { of, customer: self.customer(draw) })
            }
            Kind::Delivery => Input::Delivery(Delivery { warehouse: self.warehouse, carrier: draw.between(1, 10) }),
            Kind::StockLevel => {
                let threshold = draw.between(10, 20);
                Input::StockLevel(StockLevel { warehouse: self.warehouse, district: self.district, threshold })
            }
        }
    }

    /// 60 % by last name.
    fn customer(&self, draw: &mut Draw) -> Customer {
        if draw.one_of(60) {
            Customer::LastName(draw.last_name(&self.constants, self.scale.last_name_max()))
        } else {
            Customer::Number(draw.customer(&self.constants, self.scale.customers))
        }
    }

    /// Another warehouse, if there is one.
    fn elsewhere(&self, draw: &mut Draw) -> i64 {
        if self.scale.warehouses == 1 {
            return self.warehouse;
        }
        let other = draw.between(1, self.scale.warehouses - 1);
        other + i64::from(other >= self.warehouse)
    }

    fn new_order(&self, draw: &mut Draw) -> NewOrder {
        let count = draw.between(5, 15);
        let is_rolled_back = draw.one_of(1);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: draw.item(&self.constants, self.scale.items),
                supplied_by: if draw.one_of(1) { self.elsewhere(draw) } else { self.warehouse },
                quantity: draw.between(1, 10),
            })
            .collect();
        if let (true, Some(last)) = (is_rolled_back, lines.last_mut()) {
            last.item = self.scale.items + 1;
        }
        let district = draw.between(1, DISTRICTS);
        let customer = draw.customer(&self.constants, self.scale.customers);
        NewOrder { warehouse: self.warehouse, district, customer, lines }
    }

    fn payment(&self, draw: &mut Draw) -> Payment {
        let district = draw.between(1, DISTRICTS);
        let of = if draw.one_of(15) { (self.elsewhere(draw), draw.between(1, DISTRICTS)) } else { (self.warehouse, district) };
        let customer = self.customer(draw);
        Payment { warehouse: self.warehouse, district, of, customer, amount: draw.between(100, 500_000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_specification() {
        let mut draw = Draw::new(5, 5);
        let constants = Constants::of_load(&mut draw);
        let terminal = Terminal { warehouse: 2, district: 3, scale: Scale::new(4, 1), constants };
        let mut deck = Deck::default();
        let (mut orders, mut rolled_back, mut named, mut remote, mut payments) = (0, 0, 0, 0, 0);
        for _ in 0..100_000 {
            match terminal.input(deck.next(&mut draw), &mut draw) {
                Input::NewOrder(order) => {
                    orders += 1;
                    rolled_back += i32::from(order.lines.last().is_some_and(|line| line.item > 100_000));
                    assert!((5..=15).contains(&order.lines.len()));
                }
                Input::Payment(payment) => {
                    payments += 1;
                    named += i32::from(matches!(payment.customer, Customer::LastName(_)));
                    remote += i32::from(payment.of.0 != 2);
                }
                _ => {}
            }
        }
        assert_eq!((orders, payments), (45_000, 43_000));
        assert!((300..600).contains(&rolled_back), "{rolled_back}");
        assert!((25_000..26_600).contains(&named), "{named}");
        assert!((6_000..6_900).contains(&remote), "{remote}");
    }
}
