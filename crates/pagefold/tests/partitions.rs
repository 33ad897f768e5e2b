//! A partitioned table answers as one that is not divided, and its partitions come and go beneath those who use it.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold::{
    DataType, Database, Error, IndexDefinition, Isolation, Method, PartitionDefinition, Result, Row, Table, TableDefinition,
    TransactionOptions, Value,
};

fn definition() -> TableDefinition {
    TableDefinition::new()
        .column("id", DataType::Integer)
        .column("day", DataType::Integer)
        .nullable("text", DataType::Varchar(None))
        .primary_key(["day", "id"])
}

fn below(day: i32) -> PartitionDefinition {
    PartitionDefinition::below(format!("d{day}"), day)
}

fn divided() -> TableDefinition {
    let methods = Method::ALL.into_iter().cycle();
    let limits = [10, 20, 30, 40, 50, 60].into_iter().zip(methods);
    let definition =
        limits.fold(definition().partition_by(["day"]), |definition, (day, method)| definition.partition(below(day).method(method)));
    definition.partition(PartitionDefinition::rest("rest").page_bytes(4096))
}

/// Numbers that look random and are always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as i32
    }
}

/// How often a page was asked for.
fn asked(database: &Database) -> u64 {
    let tables = database.engine().tables().unwrap();
    let of_tables = tables.iter().flat_map(|table| table.data_sets().map(|data_set| data_set.counters().getpages).collect::<Vec<u64>>());
    of_tables.chain(database.engine().indexes().unwrap().iter().map(|index| index.data_set().counters().getpages)).sum()
}

fn rows(found: impl Iterator<Item = Result<Row>>) -> Vec<Vec<Value>> {
    found.map(|row| row.unwrap().values().to_vec()).collect()
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

/// What two tables say of the same question.
fn compare(random: &mut Random, one: &Table<'_>, many: &Table<'_>) {
    let (a, b) = (random.below(80), random.below(80));
    let (low, high) = (a.min(b), a.max(b));
    assert_eq!(rows(one.range::<i32>(low..high).unwrap()), rows(many.range::<i32>(low..high).unwrap()));
    assert_eq!(rows(one.range((low, 5)..=(high, 9)).unwrap()), rows(many.range((low, 5)..=(high, 9)).unwrap()));
    assert_eq!(sorted(rows(one.scan().unwrap())), sorted(rows(many.scan().unwrap())));
    let condition = format!("day >= {low} and day < {high} and id <> 7 or day = 3");
    assert_eq!(sorted(rows(one.filter(&*condition).unwrap())), sorted(rows(many.filter(&*condition).unwrap())), "{condition}");
    // In the order of another index, which goes across the partitions; forward, backward and with a limit.
    let limit = u64::try_from(random.below(30)).unwrap();
    for backward in [false, true] {
        for index in ["by_text", "by_id"] {
            let of = |table: &Table<'_>, name: &str| {
                let select = table.by(name).unwrap().select(["text", "day", "id"]).unwrap().filter("id < 40").unwrap().limit(limit);
                let select = if backward { select.backward().unwrap() } else { select };
                rows(select.rows().unwrap())
            };
            assert_eq!(of(one, &format!("one_{index}")), of(many, &format!("many_{index}")), "{index} {backward}");
        }
        let of = |table: &Table<'_>| {
            let select = table.select(["id", "day"]).unwrap().range::<i32>(low..).unwrap();
            rows(if backward { select.backward().unwrap() } else { select }.limit(limit).rows().unwrap())
        };
        assert_eq!(of(one), of(many));
    }
    let keys: Vec<(i32, i32)> = (0..10).map(|_| (random.below(80), random.below(50))).collect();
    let of = |table: &Table<'_>| rows(table.select(["text", "id"]).unwrap().keys(keys.clone()).unwrap().rows().unwrap());
    assert_eq!(of(one), of(many));
    for key in &keys {
        assert_eq!(one.get(*key).unwrap().map(|row| row.values().to_vec()), many.get(*key).unwrap().map(|row| row.values().to_vec()));
        assert_eq!(one.get(key.0).unwrap().map(|row| row.values().to_vec()), many.get(key.0).unwrap().map(|row| row.values().to_vec()));
        let by = |table: &Table<'_>, name: &str| table.by(name).unwrap().get(key.1).unwrap().map(|row| row.values()[0].clone());
        assert_eq!(by(one, "one_by_id"), by(many, "many_by_id"));
    }
}

#[test]
fn the_same_as_a_table_that_is_not_divided() {
    let database = Database::in_memory().unwrap();
    let t = database.begin();
    t.create_table("one", definition()).unwrap();
    t.create_table("many", divided()).unwrap();
    for table in ["one", "many"] {
        t.create_index(&format!("{table}_by_text"), table, IndexDefinition::new(["text", "day", "id"])).unwrap();
        t.create_index(&format!("{table}_by_id"), table, IndexDefinition::new(["id", "text"]).descending("day")).unwrap();
    }
    t.commit().unwrap();
    let mut random = Random(7);
    let mut moved = 0;
    for round in 0..120 {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][round % 3];
        let t = database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() });
        let (one, many) = (t.table("one").unwrap(), t.table("many").unwrap());
        for _ in 0..40 {
            let (id, day) = (random.below(50), random.below(80));
            let text = ["alpha", "beta", "gamma", "delta"][random.below(4) as usize].repeat(1 + random.below(9) as usize);
            let outcome = |result: Result<bool>| result.map_err(|error| error.sqlstate());
            match random.below(6) {
                0 | 1 => {
                    let insert = |table: &Table<'_>| outcome(table.insert((id, day, text.as_str())).map(|()| true));
                    assert_eq!(insert(&one), insert(&many));
                }
                2 => assert_eq!(outcome(one.upsert((id, day, text.as_str()))), outcome(many.upsert((id, day, text.as_str())))),
                3 => assert_eq!(outcome(one.delete((day, id))), outcome(many.delete((day, id)))),
                4 => {
                    let update = |table: &Table<'_>| outcome(table.update((day, id), [("text", text.as_str())]));
                    assert_eq!(update(&one), update(&many));
                }
                _ => {
                    // To another day: to another partition, or to a key that is taken.
                    let to = random.below(80);
                    let update = |table: &Table<'_>| outcome(table.update((day, id), [("day", to)]));
                    let done = update(&one);
                    moved += i32::from(done == Ok(true) && to / 10 != day / 10);
                    assert_eq!(done, update(&many));
                }
            }
        }
        compare(&mut random, &one, &many);
        if round % 5 == 4 {
            t.rollback().unwrap();
        } else {
            t.commit().unwrap();
        }
    }
    assert!(moved > 50, "{moved} rows moved");
}

#[test]
fn only_the_partitions_that_can_have_rows_are_read() {
    let database = Database::in_memory().unwrap();
    let t = database.begin();
    let table = t.create_table("many", divided()).unwrap();
    (0..80).for_each(|day| (0..50).for_each(|id| table.insert((id, day, format!("{day} {id}"))).unwrap()));
    t.commit().unwrap();
    let getpages = |read: &dyn Fn(&Table<'_>) -> usize, of: &str| {
        let t = database.begin();
        let table = t.table(of).unwrap();
        read(&table);
        let before = asked(&database);
        (read(&table), asked(&database) - before)
    };
    let questions: [&dyn Fn(&Table<'_>) -> usize; 4] = [
        &|table| table.filter("day = 25").unwrap().count(),
        &|table| table.filter("day between 21 and 28 and text like '2%'").unwrap().count(),
        &|table| table.range(22..24).unwrap().count(),
        &|table| usize::from(table.get((23, 5)).unwrap().is_some()),
    ];
    for question in questions {
        assert_eq!(getpages(question, "many"), getpages(question, "many/d30"));
    }
    let (found, read) = getpages(&|table| table.filter("day < 0").unwrap().count(), "many");
    assert_eq!((found, read > 0), (0, true));
    let (found, read) = getpages(&|table| table.filter("day > 5 and day < 3").unwrap().count(), "many");
    assert_eq!((found, read), (0, 0), "no partition can have such a row");
}

#[test]
fn partitions_go_and_come_beneath_a_transaction() {
    let database = Database::in_memory().unwrap();
    let limits = [10, 20, 30].into_iter().fold(definition().partition_by(["day"]), |definition, day| definition.partition(below(day)));
    let t = database.begin();
    let table = t.create_table("sales", limits).unwrap();
    (0..30).for_each(|day| table.insert((1, day, "row")).unwrap());
    t.commit().unwrap();
    let (now, old) =
        (database.begin(), database.begin_with(TransactionOptions { isolation: Isolation::RepeatableRead, ..Default::default() }));
    let (live, former) = (now.table("sales").unwrap(), old.table("sales").unwrap());
    assert_eq!((live.scan().unwrap().count(), former.scan().unwrap().count()), (30, 30));
    let open = live.scan().unwrap();
    let t = database.begin();
    assert_eq!(t.rotate_partition("sales", &below(40)).unwrap(), "d10");
    t.commit().unwrap();
    assert_eq!(live.partitions().unwrap(), ["d20", "d30", "d40"]);
    assert_eq!(former.partitions().unwrap(), ["d10", "d20", "d30"]);
    assert_eq!((live.scan().unwrap().count(), former.scan().unwrap().count(), open.count()), (20, 30, 30));
    assert!(live.get((5, 1)).unwrap().is_none() && former.get((5, 1)).unwrap().is_some());
    live.insert((1, 35, "new")).unwrap();
    assert!(matches!(live.insert((1, 5, "too old")), Err(Error::OutOfRange { .. })));
    assert!(former.insert((1, 35, "new")).is_err());
    now.commit().unwrap();
    drop(old);
    // DDL of the table as a whole.
    let t = database.begin();
    assert_eq!(t.truncate_table("sales").unwrap().scan().unwrap().count(), 0);
    t.create_index("by_text", "sales", IndexDefinition::new(["text"])).unwrap();
    // Unique over all partitions.
    let table = t.table("sales").unwrap();
    [25, 35].into_iter().for_each(|day| table.insert((1, day, "row")).unwrap());
    let refused = t.create_index("by_text_only", "sales", IndexDefinition::new(["text"]).unique());
    assert!(matches!(refused, Err(Error::DuplicateKey { .. })), "{refused:?}");
    t.drop_index("by_text").unwrap();
    t.drop_table("sales").unwrap();
    assert!(matches!(t.table("sales"), Err(Error::Unknown { .. })));
    t.commit().unwrap();
    let refused = database.begin().table("sales").unwrap_err();
    assert!(refused.to_string().contains("no table \"sales\""), "{refused}");
}
