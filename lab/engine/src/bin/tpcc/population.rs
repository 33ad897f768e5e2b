//! The population that a run begins with (clause 4.3.3.1).

use crate::random::{Constants, Draw, last_name};
use crate::schema::{DISTRICTS, Scale};
use pagefold_lab_engine::sessions::{Access, Connection, Done, amount, texts};
use pagefold_types::Value;

/// The moment of all that was there before the run, in microseconds: 2024-01-01.
pub(crate) const LOADED: i64 = 1_704_067_200_000_000;

/// Rows of a transaction.
const BATCH: usize = 1000;

/// Inserts rows, some of them in each transaction.
struct Inserts<'a> {
    connection: &'a mut dyn Connection,
    text: String,
    open: usize,
}

impl Inserts<'_> {
    fn row(&mut self, values: &[Value]) -> Done<()> {
        if self.open == 0 {
            self.connection.begin(Access::Write)?;
        }
        self.connection.say(&self.text, values)?;
        self.open += 1;
        if self.open == BATCH { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Done<()> {
        if self.open > 0 {
            self.connection.commit()?;
        }
        self.open = 0;
        Ok(())
    }
}

/// Rows of a table, as many as `make` hands over.
fn fill(
    connection: &mut dyn Connection,
    table: &str,
    columns: usize,
    make: impl FnOnce(&mut dyn FnMut(&[Value]) -> Done<()>) -> Done<()>,
) -> Done<()> {
    let text = format!("INSERT INTO {table} VALUES ({})", vec!["?"; columns].join(", "));
    let mut inserts = Inserts { connection, text, open: 0 };
    make(&mut |values| inserts.row(values))?;
    inserts.commit()
}

/// Fills all tables. Gives the constants that the last names were drawn with.
pub(crate) fn load(connection: &mut dyn Connection, scale: Scale, seed: u64) -> Done<Constants> {
    let mut draw = Draw::new(seed, 0);
    let constants = Constants::of_load(&mut draw);
    items(connection, scale, &mut draw)?;
    for warehouse in 1..=scale.warehouses {
        warehouse_row(connection, scale, &mut draw, warehouse)?;
        stock(connection, scale, &mut draw, warehouse)?;
        for district in 1..=DISTRICTS {
            customers(connection, scale, &mut draw, (warehouse, district), &constants)?;
            orders(connection, scale, &mut draw, (warehouse, district))?;
        }
    }
    Ok(constants)
}

fn items(connection: &mut dyn Connection, scale: Scale, draw: &mut Draw) -> Done<()> {
    fill(connection, "item", 5, |row| {
        (1..=scale.items).try_for_each(|id| {
            let (name, price) = (draw.text(14, 24), draw.between(100, 10_000));
            row(&[Value::Int(id), Value::Int(draw.between(1, 10_000)), texts(name), amount(price), texts(draw.data())])
        })
    })
}

/// Two streets, city, state, postal code.
fn address(draw: &mut Draw) -> [Value; 5] {
    let (first, second, city) = (draw.text(10, 20), draw.text(10, 20), draw.text(10, 20));
    [texts(first), texts(second), texts(city), texts(draw.text(2, 2)), texts(draw.zip())]
}

fn warehouse_row(connection: &mut dyn Connection, scale: Scale, draw: &mut Draw, warehouse: i64) -> Done<()> {
    fill(connection, "warehouse", 9, |row| {
        let mut values = vec![Value::Int(warehouse), texts(draw.text(6, 10))];
        values.extend(address(draw));
        values.extend([amount(draw.between(0, 2000)), amount(DISTRICTS * paid(scale))]);
        row(&values)
    })?;
    fill(connection, "district", 11, |row| {
        (1..=DISTRICTS).try_for_each(|district| {
            let mut values = vec![Value::Int(district), Value::Int(warehouse), texts(draw.text(6, 10))];
            values.extend(address(draw));
            values.extend([amount(draw.between(0, 2000)), amount(paid(scale)), Value::Int(scale.customers + 1)]);
            row(&values)
        })
    })
}

/// What the customers of a district have paid: 10.00 each.
fn paid(scale: Scale) -> i64 {
    scale.customers * 1000
}

fn stock(connection: &mut dyn Connection, scale: Scale, draw: &mut Draw, warehouse: i64) -> Done<()> {
    fill(connection, "stock", 17, |row| {
        (1..=scale.items).try_for_each(|item| {
            let mut values = vec![Value::Int(item), Value::Int(warehouse), Value::Int(draw.between(10, 100))];
            values.extend((0..DISTRICTS).map(|_| texts(draw.text(24, 24))));
            values.extend([Value::Int(0), Value::Int(0), Value::Int(0), texts(draw.data())]);
            row(&values)
        })
    })
}

fn customers(
    connection: &mut dyn Connection,
    scale: Scale,
    draw: &mut Draw,
    (warehouse, district): (i64, i64),
    constants: &Constants,
) -> Done<()> {
    fill(connection, "customer", 21, |row| {
        (1..=scale.customers).try_for_each(|id| {
            let last = if id <= 1000 { last_name(id - 1) } else { draw.last_name(constants, scale.last_name_max()) };
            let first = draw.text(8, 16);
            let mut values = vec![Value::Int(id), Value::Int(district), Value::Int(warehouse), texts(first), texts("OE"), texts(last)];
            values.extend(address(draw));
            let credit = if draw.one_of(10) { "BC" } else { "GC" };
            values.extend([texts(draw.digits(16)), Value::Int(LOADED), texts(credit), amount(5_000_000)]);
            values.extend([amount(draw.between(0, 5000)), amount(-1000), amount(1000), Value::Int(1), Value::Int(0)]);
            values.push(texts(draw.text(300, 500)));
            row(&values)
        })
    })?;
    fill(connection, "history", 8, |row| {
        (1..=scale.customers).try_for_each(|id| {
            let (warehouse, district) = (Value::Int(warehouse), Value::Int(district));
            let values = [Value::Int(id), district.clone(), warehouse.clone(), district, warehouse, Value::Int(LOADED), amount(1000)];
            row(&[values.as_slice(), &[texts(draw.text(12, 24))]].concat())
        })
    })
}

fn orders(connection: &mut dyn Connection, scale: Scale, draw: &mut Draw, (warehouse, district): (i64, i64)) -> Done<()> {
    let mut of: Vec<i64> = (1..=scale.customers).collect();
    draw.shuffle(&mut of);
    let lines: Vec<i64> = of.iter().map(|_| draw.between(5, 15)).collect();
    let place = [Value::Int(district), Value::Int(warehouse)];
    let is_new = |order: i64| order >= scale.first_new_order();
    let numbered = |all: &[i64]| (1..).zip(all.to_vec()).collect::<Vec<(i64, i64)>>();
    fill(connection, "orders", 8, |row| {
        numbered(&of).into_iter().zip(&lines).try_for_each(|((order, customer), lines)| {
            let carrier = if is_new(order) { Value::Null } else { Value::Int(draw.between(1, 10)) };
            let behind = [Value::Int(customer), Value::Int(LOADED), carrier, Value::Int(*lines), Value::Int(1)];
            row(&[&[Value::Int(order)], place.as_slice(), &behind].concat())
        })
    })?;
    fill(connection, "order_line", 10, |row| {
        numbered(&lines).into_iter().try_for_each(|(order, lines)| {
            (1..=lines).try_for_each(|line| {
                let (delivered, cents) = if is_new(order) { (Value::Null, draw.between(1, 999_999)) } else { (Value::Int(LOADED), 0) };
                let item = Value::Int(draw.between(1, scale.items));
                let behind = [Value::Int(line), item, Value::Int(warehouse), delivered, Value::Int(5), amount(cents)];
                row(&[&[Value::Int(order)], place.as_slice(), &behind, &[texts(draw.text(24, 24))]].concat())
            })
        })
    })?;
    fill(connection, "new_order", 3, |row| {
        (scale.first_new_order()..=scale.customers).try_for_each(|order| row(&[&[Value::Int(order)], place.as_slice()].concat()))
    })
}
