//! What binds tighter than what: random expressions, written with the fewest parentheses that PostgreSQL's table of precedence asks for, mean what they mean with all of them; SQLite says the
//! same of those with all, where it has the operators.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % end
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Truth,
    Number,
    Text,
}

/// Text and operands in turn: `{}` stands for an operand and the least level that it may have without parentheses.
struct Tree {
    level: u32,
    name: &'static str,
    /// How it is written, with `{}` for each operand.
    form: String,
    /// How SQLite has it; `None` where it has none.
    sqlite: Option<String>,
    /// An operand, and the least level at which it stands without parentheses.
    operands: Vec<(Tree, u32)>,
}

/// `IS NULL` and the like may stand to the left of another IS: at this level, not below.
const IS: u32 = 40;
const POSTFIX_IS: u32 = 41;
const PRIMARY: u32 = 200;

impl Tree {
    fn leaf(text: &str) -> Tree {
        Tree { level: PRIMARY, name: "", form: text.into(), sqlite: Some(text.into()), operands: Vec::new() }
    }

    fn of(level: u32, name: &'static str, form: impl Into<String>, operands: Vec<(Tree, u32)>) -> Tree {
        let form = form.into();
        Tree { level, name, sqlite: Some(form.clone()), form, operands }
    }

    fn in_sqlite(self, form: Option<&str>) -> Tree {
        Tree { sqlite: form.map(str::to_owned), ..self }
    }

    fn filled(form: &str, operands: &[String]) -> String {
        let mut operands = operands.iter();
        let mut pieces = form.split("{}");
        let first = pieces.next().unwrap().to_owned();
        pieces.fold(first, |text, piece| text + operands.next().unwrap() + piece)
    }

    fn fewest(&self) -> String {
        let written = |(operand, least): &(Tree, u32)| match operand.level >= *least {
            true => operand.fewest(),
            false => format!("({})", operand.fewest()),
        };
        Tree::filled(&self.form, &self.operands.iter().map(written).collect::<Vec<_>>())
    }

    fn all(&self) -> String {
        Tree::filled(&self.form, &self.operands.iter().map(|(operand, _)| format!("({})", operand.all())).collect::<Vec<_>>())
    }

    fn for_sqlite(&self) -> Option<String> {
        let operands = self.operands.iter().map(|(operand, _)| Some(format!("({})", operand.for_sqlite()?)));
        Some(Tree::filled(self.sqlite.as_ref()?, &operands.collect::<Option<Vec<_>>>()?))
    }

    fn count(&self, counts: &mut BTreeMap<(&'static str, &'static str), u32>) {
        for (operand, least) in &self.operands {
            if operand.level >= *least && operand.level < PRIMARY {
                *counts.entry((self.name, operand.name)).or_default() += 1;
            }
            operand.count(counts);
        }
    }
}

fn tree(random: &mut Random, kind: Kind, depth: u32) -> Tree {
    if depth == 0 {
        return Tree::leaf(match kind {
            Kind::Truth => random.one(&["p", "q", "true", "false", "null::boolean"]),
            Kind::Number => random.one(&["a", "b", "0", "1", "2", "3"]),
            Kind::Text => random.one(&["s", "'x'", "'y'", "'%'"]),
        })
        .without_cast();
    }
    let mut sub = |kind| tree(random, kind, depth - 1);
    match kind {
        Kind::Truth => {
            let (truth, number) = ([sub(Kind::Truth), sub(Kind::Truth), sub(Kind::Truth)], [sub(Kind::Number), sub(Kind::Number)]);
            let (text, third) = ([sub(Kind::Text), sub(Kind::Text)], sub(Kind::Number));
            let ([p, q, r], [a, b], [s, t]) = (truth, number, text);
            let not = random.one(&["", "NOT "]);
            let sign = random.one(&["=", "<>", "<", "<=", ">", ">="]);
            match random.below(15) {
                0 => Tree::of(10, "OR", "{} OR {}", vec![(p, 10), (q, 11)]),
                1 | 2 => Tree::of(20, "AND", "{} AND {}", vec![(p, 20), (q, 21)]),
                3 => Tree::of(30, "NOT", "NOT {}", vec![(p, 30)]),
                4 | 5 => Tree::of(IS, "DISTINCT", format!("{{}} IS {not}DISTINCT FROM {{}}"), vec![(p, POSTFIX_IS), (q, 50)]),
                6 => Tree::of(IS, "DISTINCT", format!("{{}} IS {not}DISTINCT FROM {{}}"), vec![(a, POSTFIX_IS), (b, 50)]),
                7 => Tree::of(POSTFIX_IS, "IS", format!("{{}} IS {not}NULL"), vec![(p, POSTFIX_IS)]),
                8 => Tree::of(POSTFIX_IS, "IS", format!("{{}} IS {not}TRUE"), vec![(p, POSTFIX_IS)]),
                9 => Tree::of(50, "=", format!("{{}} {sign} {{}}"), vec![(a, 51), (b, 51)]),
                10 => Tree::of(50, "=", format!("{{}} {sign} {{}}"), vec![(p, 51), (q, 51)]),
                11 => Tree::of(60, "BETWEEN", format!("{{}} {not}BETWEEN {{}} AND {{}}"), vec![(a, 61), (b, 61), (third, 61)]),
                12 => Tree::of(60, "IN", format!("{{}} {not}IN ({{}}, {{}})"), vec![(a, 61), (b, 0), (third, 0)]),
                13 if random.below(2) == 0 => Tree::of(70, "~~", "{} ~~ {}", vec![(s, 70), (t, 71)]).in_sqlite(Some("{} LIKE {}")),
                13 => Tree::of(60, "LIKE", format!("{{}} {not}LIKE {{}}"), vec![(s, 61), (t, 61)]),
                _ => Tree::of(PRIMARY, "CASE", "CASE WHEN {} THEN {} ELSE {} END", vec![(p, 0), (q, 0), (r, 0)]),
            }
        }
        Kind::Number => {
            let (a, b, p) = (sub(Kind::Number), sub(Kind::Number), sub(Kind::Truth));
            match random.below(10) {
                0 | 1 => Tree::of(80, "+", "{} + {}", vec![(a, 80), (b, 81)]),
                2 | 3 => Tree::of(80, "+", "{} - {}", vec![(a, 80), (b, 81)]),
                4 => Tree::of(90, "*", "{} * {}", vec![(a, 90), (b, 91)]),
                5 => Tree::of(100, "^", "{} ^ {}", vec![(a, 100), (b, 101)]).in_sqlite(None),
                6 | 7 => Tree::of(110, "sign", "- {}", vec![(a, 110)]),
                8 => Tree::of(130, "::", "{}::integer", vec![(a, 130)]).in_sqlite(Some("CAST({} AS INTEGER)")),
                _ => Tree::of(PRIMARY, "CASE", "CASE WHEN {} THEN {} ELSE {} END", vec![(p, 0), (a, 0), (b, 0)]),
            }
        }
        Kind::Text => {
            let (s, t) = (sub(Kind::Text), sub(Kind::Text));
            match random.below(3) {
                0 | 1 => Tree::of(70, "||", "{} || {}", vec![(s, 70), (t, 71)]),
                _ => Tree::of(120, "COLLATE", "{} COLLATE \"C\"", vec![(s, 121)]).in_sqlite(Some("{}")),
            }
        }
    }
}

impl Tree {
    /// SQLite has no `::`.
    fn without_cast(mut self) -> Tree {
        self.sqlite = self.sqlite.map(|form| form.replace("::boolean", ""));
        self
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Boolean(value) => u8::from(*value).to_string(),
        other => format!("{other:?}"),
    }
}

fn ours(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    let rows = session.execute(sql, &[]).and_then(pagefold_sql::Answer::rows);
    rows.map(|rows| rows.iter().map(|row| shown(&row[0])).collect()).map_err(|error| format!("{} {error}", error.sqlstate()))
}

fn theirs(sqlite: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = sqlite.prepare(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let value = |row: &rusqlite::Row<'_>| {
        Ok(match row.get::<_, rusqlite::types::Value>(0)? {
            rusqlite::types::Value::Null => "NULL".to_owned(),
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        })
    };
    statement.query_map([], value).unwrap().map(Result::unwrap).collect()
}

#[test]
fn the_fewest_parentheses_mean_what_all_mean() {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    let mut session = Database::new(Arc::new(engine)).session();
    let sqlite = rusqlite::Connection::open_in_memory().unwrap();
    session.execute("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER, p BOOLEAN, q BOOLEAN, s TEXT)", &[]).unwrap();
    sqlite.execute("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER, p INTEGER, q INTEGER, s TEXT)", []).unwrap();
    let insert = "INSERT INTO t VALUES (1, 0, 1, true, false, 'x'), (2, 1, NULL, false, NULL, 'xy'), (3, 2, 3, NULL, true, NULL), \
                  (4, NULL, 2, true, true, ''), (5, 3, 0, false, false, 'y')";
    session.execute(insert, &[]).unwrap();
    sqlite.execute(insert, []).unwrap();
    let mut random = Random(7);
    let (mut counts, mut errors, mut with_sqlite) = (BTreeMap::new(), 0, 0);
    for _ in 0..1_500 {
        let depth = 1 + u32::try_from(random.below(3)).unwrap();
        let tree = tree(&mut random, Kind::Truth, depth);
        tree.count(&mut counts);
        let select = |text: &str| format!("SELECT {text} FROM t ORDER BY id");
        let (fewest, all) = (tree.fewest(), tree.all());
        let answer = ours(&mut session, &select(&fewest));
        assert_eq!(answer, ours(&mut session, &select(&all)), "{fewest}\n{all}");
        match (answer, tree.for_sqlite()) {
            (Err(error), _) => {
                assert!(error.starts_with("22") || error.starts_with("42"), "{fewest}: {error}");
                errors += 1;
            }
            (Ok(answer), Some(text)) => {
                assert_eq!(answer, theirs(&sqlite, &select(&text)), "{fewest}\n{text}");
                with_sqlite += 1;
            }
            (Ok(_), None) => {}
        }
    }
    println!("{counts:?} {errors} {with_sqlite}");
    assert!(errors < 200 && with_sqlite > 700, "{errors} errors, {with_sqlite} compared with SQLite");
    for pair in [
        ("OR", "DISTINCT"),
        ("AND", "DISTINCT"),
        ("NOT", "DISTINCT"),
        ("DISTINCT", "="),
        ("DISTINCT", "BETWEEN"),
        ("DISTINCT", "+"),
        ("IS", "="),
        ("BETWEEN", "+"),
        ("LIKE", "||"),
        ("~~", "||"),
        ("^", "sign"),
        ("sign", "::"),
    ] {
        assert!(counts.get(&pair).is_some_and(|count| *count >= 3), "{pair:?}: {counts:?}");
    }
}

#[test]
fn what_ends_the_right_side_of_is_distinct_from() {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    let mut session = Database::new(Arc::new(engine)).session();
    for (text, answer) in [
        ("true is distinct from true or true", "1"),
        ("1 IS/**/NOT\n DISTINCT -- \n FROM 2 and false", "0"),
        ("1 is distinct from 2 and 1 is distinct from 1 or true", "1"),
        ("not 1 is distinct from 1 and false", "0"),
        ("1 is distinct from 1 + 1 and true", "1"),
        ("case when 1 is distinct from 1 or true then 1 else 2 end = 1", "1"),
        ("'ab' ~~ 'a%' || 'b' is distinct from 'trueb' or false", "0"),
        ("2 ^ -1 ^ 2 = 0.25", "1"),
        ("-2 ^ 2 = 4", "1"),
    ] {
        assert_eq!(ours(&mut session, &format!("select {text}")), Ok(vec![answer.to_owned()]), "{text}");
    }
    // As the catalog keeps it.
    session.execute("create table c (a integer, b integer, check (a is distinct from 1 or b = 1))", &[]).unwrap();
    session.execute("insert into c values (1, 1), (2, 2), (null, null)", &[]).unwrap();
    assert!(ours(&mut session, "insert into c values (1, 2) returning a").unwrap_err().starts_with("23514"));
    session.execute("delete from c where a is not distinct from null or b = 2", &[]).unwrap();
    assert_eq!(ours(&mut session, "select count(*) from c"), Ok(vec!["Int(1)".to_owned()]));
}
