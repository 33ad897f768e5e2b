//! Conditions: read, evaluated as a naive evaluator does, and their index ranges never lose a row.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Rng, refs, row, stored, value};
use pagefold_types::{
    Column, ColumnName, Condition, DataType, Direction, KeyLayout, Operand, Predicate, RowLayout, Schema, Value, ValueRef, column, not,
    text,
};

/// A condition and its meaning, NOT not pushed anywhere.
enum Tree {
    Compare(usize, &'static str, Value),
    Columns(usize, &'static str, usize),
    Null(usize),
    In(usize, Vec<Value>),
    Between(usize, Value, Value),
    Starts(usize, String),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn holds(operator: &str, a: &Value, b: &Value) -> Option<bool> {
    if *a == Value::Null || *b == Value::Null {
        return None;
    }
    Some(match operator {
        "=" => a == b,
        "<>" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    })
}

impl Tree {
    fn eval(&self, row: &[Value]) -> Option<bool> {
        match self {
            Tree::Compare(c, operator, v) => holds(operator, &row[*c], v),
            Tree::Columns(a, operator, b) => holds(operator, &row[*a], &row[*b]),
            Tree::Null(c) => Some(row[*c] == Value::Null),
            Tree::In(c, values) => {
                let each: Vec<Option<bool>> = values.iter().map(|v| holds("=", &row[*c], v)).collect();
                if each.contains(&Some(true)) {
                    Some(true)
                } else if each.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            Tree::Between(c, low, high) => and(holds(">=", &row[*c], low), holds("<=", &row[*c], high)),
            Tree::Starts(c, prefix) => match &row[*c] {
                Value::Text(s) => Some(s.starts_with(prefix.as_str())),
                _ => None,
            },
            Tree::Not(t) => t.eval(row).map(|b| !b),
            Tree::And(a, b) => and(a.eval(row), b.eval(row)),
            Tree::Or(a, b) => and(a.eval(row).map(|b| !b), b.eval(row).map(|b| !b)).map(|b| !b),
        }
    }

    /// The same, built of values.
    fn built(&self, schema: &Schema) -> Condition {
        let name = |c: usize| column(schema.columns()[c].name.as_str());
        let literal = |c: usize, v: &Value| Operand::of(v.as_ref(), &schema.columns()[c].data_type);
        let compare = |left: ColumnName, operator: &str, right: Operand| match operator {
            "=" => left.equal_to(right),
            "<>" => left.not_equal_to(right),
            "<" => left.less_than(right),
            "<=" => left.at_most(right),
            ">" => left.greater_than(right),
            _ => left.at_least(right),
        };
        match self {
            Tree::Compare(c, operator, v) => compare(name(*c), operator, literal(*c, v)),
            Tree::Columns(a, operator, b) => compare(name(*a), operator, name(*b).into()),
            Tree::Null(c) => name(*c).is_null(),
            Tree::In(c, values) => name(*c).in_list(values.iter().map(|v| literal(*c, v))),
            Tree::Between(c, low, high) => name(*c).between(literal(*c, low), literal(*c, high)),
            Tree::Starts(c, prefix) => name(*c).like(format!("{prefix}%")),
            Tree::Not(t) => not(t.built(schema)),
            Tree::And(a, b) => a.built(schema).and(b.built(schema)),
            Tree::Or(a, b) => a.built(schema).or(b.built(schema)),
        }
    }

    fn text(&self, schema: &Schema) -> String {
        let name = |c: usize| &schema.columns()[c].name;
        let literal = |c: usize, v: &Value| format!("'{}'", text::to_text(v.as_ref(), &schema.columns()[c].data_type).replace('\'', "''"));
        match self {
            Tree::Compare(c, operator, v) => format!("{} {operator} {}", name(*c), literal(*c, v)),
            Tree::Columns(a, operator, b) => format!("{} {operator} {}", name(*a), name(*b)),
            Tree::Null(c) => format!("{} IS NULL", name(*c)),
            Tree::In(c, values) => format!("{} in ({})", name(*c), values.iter().map(|v| literal(*c, v)).collect::<Vec<_>>().join(", ")),
            Tree::Between(c, low, high) => format!("{} between {} and {}", name(*c), literal(*c, low), literal(*c, high)),
            Tree::Starts(c, prefix) => format!("{} like '{prefix}%'", name(*c)),
            Tree::Not(t) => format!("not ({})", t.text(schema)),
            Tree::And(a, b) => format!("({}) AND ({})", a.text(schema), b.text(schema)),
            Tree::Or(a, b) => format!("({}) or ({})", a.text(schema), b.text(schema)),
        }
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn tree(rng: &mut Rng, schema: &Schema, rows: &[Vec<Value>], depth: u32) -> Tree {
    if depth > 0 && rng.below(3) > 0 {
        let a = Box::new(tree(rng, schema, rows, depth - 1));
        return match rng.below(4) {
            0 => Tree::Not(a),
            1 => Tree::Or(a, Box::new(tree(rng, schema, rows, depth - 1))),
            _ => Tree::And(a, Box::new(tree(rng, schema, rows, depth - 1))),
        };
    }
    let c = rng.below(schema.len() as u64) as usize;
    let data_type = schema.columns()[c].data_type;
    // Literals mostly from the rows, so that equalities hold now and then. A NaN has no one text; it reads back as a NaN.
    let literal = |rng: &mut Rng| {
        let from_row = &rows[rng.below(rows.len() as u64) as usize][c];
        let v = if rng.below(4) == 0 || *from_row == Value::Null { value(rng, &data_type) } else { from_row.clone() };
        stored(&v, &data_type)
    };
    match rng.below(8) {
        0 => Tree::Null(c),
        1 => Tree::In(c, (0..=rng.below(4)).map(|_| literal(rng)).collect()),
        2 => Tree::Between(c, literal(rng), literal(rng)),
        3 => {
            let other: Vec<usize> = (0..schema.len()).filter(|o| schema.columns()[*o].data_type == data_type).collect();
            Tree::Columns(c, OPERATORS[rng.below(6) as usize], other[rng.below(other.len() as u64) as usize])
        }
        4 if matches!(data_type, DataType::Varchar(_)) => {
            let Value::Text(s) = literal(rng) else { unreachable!("text") };
            Tree::Starts(c, s.chars().take(rng.below(3) as usize).filter(|c| !"%_\\'".contains(*c)).collect())
        }
        _ => Tree::Compare(c, OPERATORS[rng.below(6) as usize], literal(rng)),
    }
}

#[test]
fn evaluation_and_ranges() {
    let mut rng = Rng(21);
    let (mut counts, mut bounded, mut outside, mut exact) = ([0u32; 3], 0u32, 0u64, [0u64; 2]);
    for _ in 0..10_000 {
        let schema = common::schema(&mut rng, 4);
        let layout = RowLayout::new(&schema).unwrap();
        let rows: Vec<Vec<Value>> =
            (0..10).map(|_| row(&mut rng, &schema).iter().zip(schema.columns()).map(|(v, c)| stored(v, &c.data_type)).collect()).collect();
        let tree = tree(&mut rng, &schema, &rows, 3);
        let text = tree.text(&schema);
        let predicate = Predicate::parse(&text, &schema).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        // Built, it is the same condition; and printed it is read as itself.
        let built = tree.built(&schema);
        let printed = built.to_string();
        assert_eq!(Condition::parse(&printed).unwrap_or_else(|e| panic!("{printed}: {e}")), built, "{printed}");
        let parsed = Condition::parse(&text).unwrap();
        assert_eq!(Condition::parse(&parsed.to_string()).unwrap(), parsed, "{text}");
        let built = built.bind(&schema).unwrap_or_else(|e| panic!("{printed}: {e}"));
        let directions = [Direction::Ascending, Direction::Descending];
        let columns: Vec<(usize, Direction)> =
            (0..1 + rng.below(3)).map(|_| (rng.below(schema.len() as u64) as usize, directions[rng.below(2) as usize])).collect();
        let keys = KeyLayout::new(&schema, &columns).with_limit("i", if rng.chance(5) { 10 } else { 1_000 });
        let (ranges, is_exact) = predicate.key_ranges_and_exactness(&keys);
        assert!(ranges.windows(2).all(|pair| pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start)), "apart and ascending: {text}");
        bounded += u32::from(ranges.len() != 1 || !ranges[0].start.is_empty() || ranges[0].end.is_some());
        for row in &rows {
            let expected = tree.eval(row);
            let found = predicate.eval(|c| Ok::<_, ()>(row[c].as_ref())).unwrap();
            assert_eq!(found, expected, "{text} for {row:?}");
            assert_eq!(built.eval(|c| Ok::<_, ()>(row[c].as_ref())).unwrap(), expected, "{printed} for {row:?}");
            counts[match expected {
                None => 0,
                Some(false) => 1,
                Some(true) => 2,
            }] += 1;
            let mut record = Vec::new();
            layout.encode(&refs(row), &mut record).unwrap();
            assert_eq!(predicate.matches(&layout, &record).unwrap(), expected == Some(true));
            let mut key = Vec::new();
            if keys.encode_from_values(&refs(row), &mut key).is_ok() {
                let inside = ranges.iter().any(|r| r.start <= key && r.end.as_ref().is_none_or(|end| key < *end));
                assert!(inside || expected != Some(true), "{text} for {row:?} with {columns:?}: {ranges:?}");
                outside += u64::from(!inside);
                assert!(!is_exact || !inside || expected == Some(true), "exact: {text} for {row:?} with {columns:?}: {ranges:?}");
                exact[usize::from(inside)] += u64::from(is_exact);
            }
        }
    }
    assert!(counts.iter().all(|n| *n > 5_000) && bounded > 3_000 && outside > 10_000, "{counts:?} {bounded} {outside}");
    assert!(exact.iter().all(|n| *n > 1_000), "rows outside and inside of exact ranges: {exact:?}");
}

fn people() -> Schema {
    Schema::new(vec![
        Column::new("id", DataType::Integer, false),
        Column::new("name", DataType::Varchar(None), true),
        Column::new("born", DataType::Date, true),
        Column::new("alive", DataType::Boolean, true),
        Column::new("price", DataType::Decimal { precision: 9, scale: 2 }, true),
        Column::new("first name", DataType::Char(4), true),
    ])
    .unwrap()
}

#[test]
fn forms() {
    let row =
        [Value::Int(7), Value::Text("it's".into()), Value::Int(0), Value::Boolean(true), Value::Decimal(150), Value::Text("ab  ".into())];
    let holds = |text: &str| {
        Predicate::parse(text, &people()).unwrap_or_else(|e| panic!("{text}: {e}")).eval(|c| Ok::<_, ()>(row[c].as_ref())).unwrap()
            == Some(true)
    };
    for yes in [
        "id = 7",
        "id==7",
        "7 = id",
        "6 < id",
        "id >= 3 and \"name\" = 'it''s'",
        "name = 'it''s'",
        "ID != 8",
        "alive",
        "not (not alive)",
        "alive = true",
        "born = date '1970-01-01'",
        "born < '1970-01-02'",
        "price = 1.5",
        "price between 1 and 2",
        "`first name` = 'ab'",
        "\"first name\" = 'ab'",
        "\"first name\" like 'a_'",
        "id in (1, 7)",
        "id not in (1, 2)",
        "name is not null",
        "not name is null",
        "name like 'it%s'",
        "name not like '%x%'",
        "id = 1 or id = 2 or id = 7 and alive",
        "not id = 1 and alive",
        "name > 'it' and name < 'iu'",
        "id > -1",
        "name like 'it!%s' escape '!' or name like 'it_s' escape ''",
        "\"name\" > `name` or id = 7",
    ] {
        assert!(holds(yes), "{yes}");
    }
    for no in [
        "id <> 7",
        "not alive",
        "id = 1 or id = 2",
        "(id = 7 or id = 1) and not alive",
        "name like 'it'",
        "id not between 1 and 9",
        "\"first name\" < 'ab'",
    ] {
        assert!(!holds(no), "{no}");
    }
}

#[test]
fn errors_name_the_place() {
    for (text, position, part) in [
        ("", 1, "the condition ends here"),
        ("id", 1, "it is INTEGER, not BOOLEAN"),
        ("id =", 5, "the condition ends here"),
        ("id = 3 4", 8, "found 4"),
        ("nme = 3", 1, "unknown column \"nme\""),
        ("id = 'x'", 6, "\"x\" is not INTEGER"),
        ("name = 3", 8, "written in quotes, '3'"),
        ("id = name", 6, "two types"),
        ("name = x", 8, "unknown column"),
        ("name like 'x\\'", 11, "ends with the character"),
        ("name like 'x' escape '!!'", 22, "one character"),
        ("name = x'0g'", 8, "hexadecimal"),
        ("name = x'00'", 8, "cannot be compared with bytes"),
        ("1 = 1", 1, "neither side"),
        ("(id = 1", 8, "closing parenthesis"),
        ("id = 1)", 7, "found )"),
        ("name = 'x", 8, "not closed"),
        ("id ! 3", 4, "not an operator"),
        ("id = 1 and", 11, "ends here"),
        ("id = 1.2.3", 6, "not a number"),
        ("id between 1 or 2", 14, "expected and"),
        ("id in ()", 8, "found )"),
        ("id like 'x'", 1, "column of text"),
        ("name like 3", 11, "pattern in quotes"),
        ("id is 3", 7, "expected null"),
        ("id = 1 ; drop", 8, "no meaning"),
        ("äö = 3", 1, "unknown column"),
        ("id not 3", 4, "behind not"),
    ] {
        let error = Predicate::parse(text, &people()).map(|_| ()).expect_err(text);
        assert_eq!(error.position, Some(position), "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let deep = "(".repeat(100_000) + "id = 1";
    assert!(Predicate::parse(&deep, &people()).unwrap_err().message.contains("levels"));
    let deep = "not ".repeat(100_000) + "alive";
    assert!(Predicate::parse(&deep, &people()).unwrap_err().message.contains("levels"));
    let wide = vec!["id = 1"; 50_000].join(" or ");
    assert!(Predicate::parse(&wide, &people()).is_ok());
}

#[test]
fn built_conditions_say_what_is_wrong() {
    let wrong = |condition: Condition| condition.bind(&people()).map(|_| ()).unwrap_err().to_string();
    assert!(wrong(column("nme").equal_to(3)).starts_with("condition: unknown column \"nme\""));
    assert!(wrong(column("name").equal_to(3)).contains("column \"name\" is VARCHAR and cannot be compared with the number 3"));
    assert!(wrong(column("price").at_least(f64::NAN)).contains("\"NaN\" is not DECIMAL(9,2)"));
    assert!(wrong(column("born").equal_to(true)).contains("column \"born\" is DATE"));
    assert!(wrong(column("name").equal_to(vec![1u8])).contains("bytes"));
    assert!(wrong(column("id").like("x%")).contains("\"id\" is INTEGER"));
    let mut deep = column("alive").is_true();
    for _ in 0..100_000 {
        deep = !deep.and(column("id").equal_to(1));
    }
    assert!(wrong(deep).contains("levels"));
    let wide = Condition::any((0..100_000).map(|i| column("id").equal_to(i)));
    assert!(wide.bind(&people()).is_ok());
    // As deep as text can be, and one level more.
    let mut condition = column("alive").is_true();
    for level in 1.. {
        let deeper = !condition.clone();
        let bound = deeper.bind(&people());
        assert_eq!(bound.is_ok(), Condition::parse(&format!("not {condition}")).is_ok(), "level {level}");
        if bound.is_err() {
            assert_eq!(level, 100);
            break;
        }
        condition = deeper;
    }
}

#[test]
fn numbers_of_other_types_compare_exactly() {
    let schema = Schema::new(vec![
        Column::new("i", DataType::Integer, true),
        Column::new("d", DataType::Decimal { precision: 9, scale: 2 }, true),
        Column::new("wide", DataType::Decimal { precision: 38, scale: 0 }, true),
        Column::new("x", DataType::Double, true),
        Column::new("r", DataType::Real, true),
        Column::new("b", DataType::BigInt, true),
    ])
    .unwrap();
    let most = 10i128.pow(38) - 1;
    let row = [Value::Int(85), Value::Decimal(150), Value::Decimal(most), Value::Double(0.1), Value::Real(0.5), Value::Int(i64::MAX)];
    let says = |text: &str, row: &[Value]| {
        let predicate = Predicate::parse(text, &schema).unwrap_or_else(|e| panic!("{text}: {e}"));
        predicate.eval(|c| Ok::<_, ()>(row[c].as_ref())).unwrap()
    };
    for yes in [
        "i < 85.5",
        "i > 84.9999999999999999999999999999999999999",
        "not i = 85.5",
        "i <> 85.5",
        "i in (85.5, 85.0)",
        "i not in (85.5)",
        "i between 84.5 and 85.5",
        "i < 99999999999",
        "i > -1e400",
        "i = 8.5e1",
        "d < 1.505",
        "d >= 1.495",
        "d <> 1.505",
        "d = 1.50000000000000000000000000000000000000000000000",
        "d < 1e300",
        "wide > 99999999999999999999999999999999999998.5",
        "wide < 1e38",
        "x = 0.1",
        "x < 1e400",
        "x > -1e400",
        "r = 0.5",
        "b > 9223372036854775806.5",
        "b < 9223372036854775807.5",
        "b <> 9223372036854775808",
        "i > d",
        "wide > b",
        "x < r",
        "i < b",
    ] {
        assert_eq!(says(yes, &row), Some(true), "{yes}");
        assert_eq!(says(&format!("not ({yes})"), &row), Some(false), "not {yes}");
        assert_eq!(says(yes, &vec![Value::Null; 6]), None, "{yes} of NULL");
    }
    for (special, above) in [(f64::NAN, true), (f64::INFINITY, true), (f64::NEG_INFINITY, false)] {
        let mut row = row.to_vec();
        row[3] = Value::Double(special);
        assert_eq!(says("x > 1e400", &row), Some(above));
        assert_eq!(says("x > -1e400", &row), Some(above));
    }
    // Neither text nor a column of another kind is a number.
    for no in ["i = x", "d < r", "i = 'x'", "d = 'NaN'"] {
        assert!(Predicate::parse(no, &schema).is_err(), "{no}");
    }
    assert_eq!(column("d").equal_to(1.5).bind(&schema).unwrap().eval(|c| Ok::<_, ()>(row[c].as_ref())), Ok(Some(true)));
    let none: Option<i32> = None;
    assert_eq!(column("d").equal_to(none).bind(&schema).unwrap().eval(|c| Ok::<_, ()>(row[c].as_ref())), Ok(None));
}

/// What PostgreSQL says of NULL.
#[test]
fn null_is_unknown() {
    let of = |id: i64, name: Value| {
        move |text: &str| {
            let row = [Value::Int(id), name.clone(), Value::Null, Value::Null, Value::Null, Value::Null];
            Predicate::parse(text, &people()).unwrap().eval(|c| Ok::<ValueRef<'_>, ()>(row[c].as_ref())).unwrap()
        }
    };
    let says = of(7, Value::Null);
    for (text, expected) in [
        ("id = null", None),
        ("not id = null", None),
        ("id in (7, null)", Some(true)),
        ("id in (8, null)", None),
        ("id not in (7, null)", Some(false)),
        ("id not in (8, null)", None),
        ("id between 8 and null", Some(false)),
        ("id between 1 and null", None),
        ("id not between 8 and null", Some(true)),
        ("name like 'x'", None),
        ("name not like 'x'", None),
        ("name = 'x' or id = 7", Some(true)),
        ("name = 'x' and id = 8", Some(false)),
        ("name = 'x' and id = 7", None),
        ("name <> 'x' or id = 8", None),
        ("not (name = 'x' or id = 8)", None),
        ("not (name = 'x' and id = 8)", Some(true)),
        ("alive", None),
        ("not alive", None),
        ("true", Some(true)),
        ("not true or alive", None),
        ("false and alive", Some(false)),
        ("price = 1.505", None),
        ("price <> 1.505", None),
    ] {
        assert_eq!(says(text), expected, "{text}");
    }
}

#[test]
fn noise_is_refused_without_a_panic() {
    let mut rng = Rng(22);
    let parts = [
        "id", "name", "=", "<", "(", ")", "and", "or", "not", "in", "between", "like", "null", "is", ",", "3", "'x'", "\"", "`", "-", "1e",
        "é", "true",
    ];
    for _ in 0..100_000 {
        let n = rng.below(12);
        let text: Vec<&str> = (0..n).map(|_| parts[rng.below(parts.len() as u64) as usize]).collect();
        let _ = Predicate::parse(&text.join(if rng.chance(2) { " " } else { "" }), &people());
    }
}

#[test]
fn ranges_are_narrow() {
    let schema = people();
    let keys = KeyLayout::new(&schema, &[(0, Direction::Ascending), (1, Direction::Descending)]);
    let key = |id: i64, name: &str| {
        let mut out = Vec::new();
        keys.encode(&[Value::Int(id).as_ref(), Value::Text(name.into()).as_ref()], &mut out).unwrap();
        out
    };
    let ranges = |text: &str| Predicate::parse(text, &schema).unwrap().key_ranges(&keys);
    let exact = ranges("id = 7 and name = 'x'");
    assert_eq!((exact.len(), &exact[0].start), (1, &key(7, "x")));
    assert_eq!(ranges("id in (3, 1, 3) and name >= 'b' and name < 'd'").len(), 2);
    let between = ranges("id = 7 and name >= 'b' and name < 'd'");
    let inside = |k: &[u8]| between[0].start.as_slice() <= k && between[0].end.as_deref().is_none_or(|e| k < e);
    assert!(inside(&key(7, "b")) && inside(&key(7, "czz")) && !inside(&key(7, "d")) && !inside(&key(7, "azz")) && !inside(&key(8, "c")));
    let like = ranges("id = 7 and name like 'b%'");
    assert!(
        like[0].start <= key(7, "bzz")
            && like[0].end.as_ref().unwrap() > &key(7, "b")
            && like[0].start > key(7, "c")
            && like[0].end.as_ref().unwrap() <= &key(7, "a")
    );
    assert!(ranges("id > 7 and id < 5").is_empty());
    assert!(ranges("id > 2147483647").iter().all(|r| r.start.is_empty() || r.start > key(i64::from(i32::MAX), "")));
    let everything = ranges("name = 'x' or id = 3");
    assert_eq!((everything.len(), everything[0].start.len(), &everything[0].end), (1, 0, &None));
    // Keys of several columns, each once; what stands beside them bounds each.
    let pairs = ranges("(id = 7 and name = 'x') or (id = 3 and name = 'y') or (name = 'x' and id = 7)");
    assert_eq!(pairs.iter().map(|range| range.start.clone()).collect::<Vec<_>>(), [key(3, "y"), key(7, "x")]);
    assert_eq!(ranges("(id = 7 and name = 'x' or id = 8) and name in ('x', 'y')").len(), 3);
    assert_eq!(ranges("id = 7 or id = 7 and name > 'x'"), ranges("id = 7"));
    assert_eq!(ranges("id > 7 or id < 9").len(), 1);
    // Who looks still asks: of the columns behind, and of what is beside.
    let condition = Predicate::parse("id = 7 and name = 'x' or id = 3", &schema).unwrap();
    assert!(!condition.key_ranges_and_exactness(&keys).1);
}

/// Double quotes behind an operator: a column where there is one, else text.
#[test]
fn double_quotes_behind_an_operator() {
    let schema = Schema::new(vec![Column::new("a", DataType::Varchar(None), false), Column::new("b b", DataType::Varchar(None), false)]);
    let schema = schema.unwrap();
    for text in ["a = \"x\"", "a in (\"x\", 'y')", "a like \"x%\"", "a between \"x\" and \"y\""] {
        assert_eq!(Condition::parse(text).unwrap().bind(&schema).unwrap().columns(), [0], "{text}");
    }
    assert_eq!(Condition::parse("a = \"b b\"").unwrap().bind(&schema).unwrap().columns(), [0, 1]);
    assert!(Condition::parse("a = x").unwrap().bind(&schema).is_err());
    assert!(Condition::parse("\"x\" = a and \"y\" = 'z'").unwrap().bind(&schema).is_err());
}
