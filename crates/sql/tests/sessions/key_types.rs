//! Foreign keys between columns of two types: each pair that is taken, both ways round, with each action, with an index of the child and without.

use super::{database, fails, run};
use pagefold_sql::Session;
use pagefold_types::Value;

/// Types of which each refers to each of its group, and two values that all of them have.
const GROUPS: [(&[&str], [&str; 2]); 5] = [
    (&["CHAR(5)", "CHAR(8)", "CHAR(3)"], ["'x'", "'yé'"]),
    (&["VARCHAR(5)", "VARCHAR(8)", "TEXT"], ["'x'", "'y '"]),
    (&["SMALLINT", "INTEGER", "BIGINT"], ["7", "-8"]),
    (&["DECIMAL(5,2)", "DECIMAL(9,2)"], ["1.50", "-2.25"]),
    (&["DATE"], ["DATE '2020-02-29'", "DATE '1999-01-01'"]),
];

/// How many rows of the child have a value, or NULL.
fn count(session: &mut Session, value: &str) -> i64 {
    let condition = if value == "NULL" { "IS NULL".to_owned() } else { format!("= {value}") };
    match run(session, &format!("SELECT count(*) FROM c WHERE c {condition}"))[0][0] {
        Value::Int(count) => count,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn actions_between_columns_of_two_types() {
    let mut pairs = 0;
    for (types, [one, two]) in GROUPS {
        for (parent, child) in types.iter().flat_map(|parent| types.iter().map(move |child| (*parent, *child))) {
            pairs += 1;
            let database = database();
            let mut session = database.session();
            for (number, action) in ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"].into_iter().enumerate() {
                let what = format!("{parent} {child} {action}");
                run(&mut session, &format!("CREATE TABLE p (p {parent} PRIMARY KEY)"));
                run(&mut session, &format!("CREATE TABLE c (c {child} DEFAULT {two} REFERENCES p ON DELETE {action} ON UPDATE {action})"));
                if number % 2 == pairs % 2 {
                    run(&mut session, "CREATE INDEX c_c ON c (c)");
                }
                let fill = |session: &mut Session| {
                    run(session, "DELETE FROM c");
                    run(session, "DELETE FROM p");
                    run(session, &format!("INSERT INTO p VALUES ({one}), ({two})"));
                    run(session, &format!("INSERT INTO c VALUES ({one}), ({one}), (NULL)"));
                };
                let third = match one {
                    "'x'" => "'z'",
                    "7" => "9",
                    "1.50" => "3.75",
                    _ => "DATE '2021-03-04'",
                };
                fill(&mut session);
                let (delete, update) = (format!("DELETE FROM p WHERE p = {one}"), format!("UPDATE p SET p = {third} WHERE p = {one}"));
                match action {
                    "NO ACTION" | "RESTRICT" => {
                        assert_eq!(fails(&mut session, &delete), "23503", "{what}");
                        assert_eq!(fails(&mut session, &update), "23503", "{what}");
                        assert_eq!(count(&mut session, one), 2, "{what}");
                    }
                    _ => {
                        run(&mut session, &delete);
                        let left = ["CASCADE", "SET NULL", "SET DEFAULT"].map(|a| a == action);
                        let expected = if left[0] {
                            (0, 1, 0)
                        } else if left[1] {
                            (0, 3, 0)
                        } else {
                            (0, 1, 2)
                        };
                        let found = (count(&mut session, one), count(&mut session, "NULL"), count(&mut session, two));
                        assert_eq!(found, expected, "{what}");
                        fill(&mut session);
                        run(&mut session, &update);
                        let now = ["CASCADE", "SET NULL", "SET DEFAULT"].into_iter().zip([third, "NULL", two]).find(|(a, _)| *a == action);
                        let now = now.unwrap().1;
                        assert_eq!(count(&mut session, one), 0, "{what}");
                        assert_eq!(count(&mut session, now), 2 + i64::from(now == "NULL"), "{what}");
                    }
                }
                run(&mut session, "DROP TABLE c");
                run(&mut session, "DROP TABLE p");
            }
        }
    }
    assert_eq!(pairs, 32);
}

#[test]
fn a_key_that_a_narrower_child_cannot_have() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE p (p CHAR(8) PRIMARY KEY)");
    run(&mut session, "CREATE TABLE c (c CHAR(3) REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE)");
    run(&mut session, "INSERT INTO p VALUES ('abc'), ('abcdef')");
    run(&mut session, "INSERT INTO c VALUES ('abc')");
    run(&mut session, "DELETE FROM p WHERE p = 'abcdef'");
    assert_eq!(count(&mut session, "'abc'"), 1);
    assert_eq!(fails(&mut session, "UPDATE p SET p = 'abcd'"), "22001");
    run(&mut session, "UPDATE p SET p = 'ab'");
    assert_eq!(run(&mut session, "SELECT c || '.', length(c) FROM c"), [[Value::Text("ab.".into()), Value::Int(2)]]);
    // VARCHAR has its blanks.
    run(&mut session, "CREATE TABLE q (q VARCHAR(8) PRIMARY KEY)");
    run(&mut session, "CREATE TABLE d (d VARCHAR(2) REFERENCES q ON DELETE CASCADE)");
    run(&mut session, "INSERT INTO q VALUES ('ab'), ('ab ')");
    run(&mut session, "INSERT INTO d VALUES ('ab')");
    run(&mut session, "DELETE FROM q WHERE q = 'ab '");
    assert_eq!(run(&mut session, "SELECT count(*) FROM d"), [[Value::Int(1)]]);
}
