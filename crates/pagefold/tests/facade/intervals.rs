//! INTERVAL in rows of programs: every method, as a key, in conditions.

use pagefold::{DataType, Database, Interval, Method, TableDefinition, column};

fn days(days: i32) -> Interval {
    Interval { days, ..Interval::ZERO }
}

#[test]
fn rows_with_intervals_by_every_method() {
    for method in Method::ALL {
        let database = Database::in_memory().unwrap();
        let t = database.begin();
        let definition = TableDefinition::new()
            .column("span", DataType::Interval)
            .column("id", DataType::Integer)
            .nullable("other", DataType::Interval)
            .primary_key(["span"]);
        let table = t.create_table("spans", definition.method(method).page_bytes(4096)).unwrap();
        let other = |id: i32| (id % 3 > 0).then_some(Interval { months: -id, days: id, micros: i64::MIN });
        for id in 1..=600 {
            // What is equal to no other one, in other parts each time.
            let span = if id % 30 == 0 { Interval { months: id / 30, ..Interval::ZERO } } else { days(id) };
            table.insert((span, id, other(id))).unwrap();
        }
        assert!(table.insert((days(30), 1, None::<Interval>)).is_err(), "a month is there");
        let row = table.get(days(30)).unwrap().unwrap();
        assert_eq!(row.get::<Interval>("span").unwrap(), Interval { months: 1, ..Interval::ZERO });
        assert_eq!(row.get::<Option<Interval>>("other").unwrap(), other(30));
        let row = table.get("720:00:00").unwrap().unwrap();
        assert_eq!(row.into::<(Interval, i32)>().unwrap(), (Interval { months: 1, ..Interval::ZERO }, 30));
        assert_eq!(table.range(days(29)..=days(31)).unwrap().count(), 3);
        assert_eq!(table.filter("span > '1 mon' and other is not null").unwrap().count(), 380);
        assert_eq!(table.filter(column("span").at_most(Interval { months: 1, ..Interval::ZERO })).unwrap().count(), 30);
        assert!(table.update(days(31), [("other", days(7))]).unwrap());
        assert_eq!(table.get(days(31)).unwrap().unwrap().get::<Interval>("other").unwrap(), days(7));
        assert!(table.delete(Interval { months: 2, ..Interval::ZERO }).unwrap() && table.get(days(60)).unwrap().is_none());
        assert!(table.get(days(1)).unwrap().unwrap().get::<i64>("span").unwrap_err().to_string().contains("an interval"));
        t.commit().unwrap();
    }
}
