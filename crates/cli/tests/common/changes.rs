//! A table, sources that change it step by step, and what must be in it after so many.

use super::Place;
use std::collections::BTreeMap;

/// Rows of the table by key: what follows the key in a line.
pub type Rows = BTreeMap<u32, String>;

pub const KEYS: u32 = 40_000;
pub const HEADER: &str = "id,name,amount\n";

/// Numbers that look random (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }
}

/// A row's columns behind the key; names of very different lengths, so that rows move.
fn columns(random: &mut Random, cycle: u32) -> String {
    let name = ["oak", "elm tree", "a weeping willow by the water"][random.below(3) as usize].repeat(1 + random.below(3) as usize);
    format!("{name} {},{cycle}", random.below(500))
}

/// What a source does to the table, row by row; `None` deletes.
pub type Steps = Vec<(u32, Option<String>)>;

pub fn steps(random: &mut Random, cycle: u32) -> Steps {
    let (start, count) = (random.below(KEYS), 3000 + random.below(KEYS / 3));
    let stride = [1, 1, 7, 4999][random.below(4) as usize];
    let delete = random.below(3) == 0;
    let key = |i: u32| (start + i * stride) % KEYS;
    (0..count).map(|i| (key(i), (!delete).then(|| columns(random, cycle)))).collect()
}

/// What the table holds.
pub fn read(place: &Place) -> Rows {
    let rows = place.run(&["export", "db", "t", "-"]).ok();
    let rows = rows.out.lines().skip(1).map(|line| line.split_once(',').unwrap());
    rows.map(|(key, rest)| (key.parse().unwrap(), rest.to_owned())).collect()
}

pub fn apply(rows: &mut Rows, steps: &[(u32, Option<String>)]) {
    for (key, columns) in steps {
        match columns {
            Some(columns) => drop(rows.insert(*key, columns.clone())),
            None => drop(rows.remove(key)),
        }
    }
}

/// Applies transactions until the rows are those found; how many steps that took. `None` when they never are.
pub fn apply_until(rows: &mut Rows, steps: &[(u32, Option<String>)], per_transaction: usize, found: &Rows) -> Option<usize> {
    let mut done = 0;
    while found != rows {
        if done == steps.len() {
            return None;
        }
        let next = (done + per_transaction).min(steps.len());
        apply(rows, &steps[done..next]);
        done = next;
    }
    Some(done)
}

/// The table `t` with every other key, its primary key and an index on names.
pub fn load(place: &Place, random: &mut Random) -> Rows {
    let mut rows = Rows::new();
    let mut text = HEADER.to_owned();
    for key in 0..KEYS / 2 {
        rows.insert(key * 2, columns(random, 0));
        text += &format!("{},{}\n", key * 2, rows[&(key * 2)]);
    }
    place.write("t.csv", &text);
    let types = "id integer not null, name varchar(200), amount integer";
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "4K", "--columns", types]).ok();
    place.run(&["create-index", "db", "by_name", "t(name)", "--format", "fold"]).ok();
    rows
}

/// Writes the steps, all of one kind, as `upsert` or `delete` reads them.
pub fn write_source(place: &Place, name: &str, steps: &Steps) {
    let mut text = if steps[0].1.is_none() { "id\n".to_owned() } else { HEADER.to_owned() };
    for (key, columns) in steps {
        text += &columns.as_ref().map_or(format!("{key}\n"), |columns| format!("{key},{columns}\n"));
    }
    place.write(name, &text);
}
