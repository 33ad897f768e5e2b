//! Random rows are written and read back; random bytes are read.

use super::random::{Random, setting};
use super::{copy_bytes_to, copy_from, run, session};
use pagefold_sql::Session;
use pagefold_types::Value;

const TABLE: &str = "(id INTEGER PRIMARY KEY, b BOOLEAN, s SMALLINT, l BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(20, 5), da DATE, t TIME, ts TIMESTAMP, tz TIMESTAMPTZ,
    c CHAR(5), v VARCHAR(40), x TEXT, y BYTEA, u UUID)";

/// What means something to one format or the other.
const PIECES: &[&str] = &[
    "", "a", "\\N", "N", "\\.", ".", "\\", "\\\\", "\"", "\"\"", "'", ",", "\t", "\n", "\r", "\r\n", "|", ";", "é", "船", "🚢", " ",
    "NULL", "\\x", "\\0", "x\\", "\u{8}", "\u{7f}", "\u{feff}", "{}", "t", "0",
];

fn text(random: &mut Random, most: usize) -> String {
    let mut text = String::new();
    for _ in 0..random.below(4) {
        let piece = random.one(PIECES);
        if text.chars().count() + piece.chars().count() <= most {
            text.push_str(piece);
        }
    }
    text
}

fn number(random: &mut Random) -> i64 {
    let bits = (random.below(1 << 32) as i64) << 32 | random.below(1 << 32) as i64;
    bits >> random.below(64)
}

fn double(random: &mut Random) -> f64 {
    match random.below(6) {
        0 => number(random) as f64,
        1 => f64::from_bits(number(random).cast_unsigned()),
        2 => 0.1 * random.below(100) as f64,
        3 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324][random.below(7)],
        _ => number(random) as f64 * 1e-3,
    }
}

fn row(random: &mut Random, id: i64) -> Vec<Value> {
    const DAY: i64 = 86_400_000_000;
    let double_bits = double(random);
    let values = [
        Value::Boolean(random.percent(50)),
        Value::Int(number(random) >> 48),
        Value::Int(number(random)),
        Value::Real(double(random) as f32),
        Value::Double(double_bits),
        Value::Decimal(i128::from(number(random)) * 7 % 100_000_000_000_000_000_000),
        Value::Int(number(random) % 2_000_000),
        Value::Int(number(random).rem_euclid(DAY)),
        Value::Int(number(random) % (200_000 * 365 * DAY / 1000)),
        Value::Int(number(random) % (200_000 * 365 * DAY / 1000)),
        Value::Text(text(random, 5)),
        Value::Text(text(random, 40)),
        Value::Text(text(random, 1000).repeat(if random.percent(3) { 2000 } else { 1 })),
        Value::Bytes((0..random.below(20)).map(|_| random.below(256) as u8).collect()),
        Value::Text(format!("{:08x}-0000-4000-8000-{:012x}", random.below(1 << 32), random.below(1 << 40))),
    ];
    let kept = values.into_iter().map(|value| if random.percent(15) { Value::Null } else { value });
    [Value::Int(id)].into_iter().chain(kept).collect()
}

/// Options with which all rows can be told apart.
fn options(random: &mut Random) -> (String, String) {
    let both = |options: String| (options.clone(), options);
    let header = random.one(&["", ", HEADER"]);
    if random.percent(50) {
        let delimiter = random.one(&["E'\\t'", "'|'", "','", "';'", "' '", "'N'", "'\"'", "E'\\x01'"]);
        let null = random.one(&["'\\N'", "'\\null'"]);
        let null = if delimiter == "'N'" { "'\\x'" } else { null };
        return both(format!("(FORMAT text, DELIMITER {delimiter}, NULL {null}{header})"));
    }
    let delimiter = random.one(&["','", "';'", "E'\\t'", "'.'", "'\\'", "'a'"]);
    let (quote, escape) = [("'\"'", "'\"'"), ("''''", "'\\'"), ("'\"'", "'\\'"), ("'|'", "'x'"), ("'0'", "' '")][random.below(5)];
    let null = random.one(&["''", "'NULL'", "'\\N'", "'-'"]);
    let null = if delimiter == "'\\'" { "'NULL'" } else { null };
    let base = format!("FORMAT csv, DELIMITER {delimiter}, QUOTE {quote}, ESCAPE {escape}, NULL {null}{header}");
    let forced = random.one(&["", ", FORCE_QUOTE *", ", FORCE_QUOTE (x, b)"]);
    (format!("({base}{forced})"), format!("({base})"))
}

fn rows(session: &mut Session, table: &str) -> Vec<String> {
    run(session, &format!("SELECT * FROM {table} ORDER BY id")).iter().map(|row| format!("{row:?}")).collect()
}

fn filled(random: &mut Random) -> Session {
    let mut session = session(&format!("CREATE TABLE t {TABLE}; CREATE TABLE u {TABLE}; SET work_mem = '2kB'"));
    let places: Vec<String> = (1..=16).map(|number| format!("${number}")).collect();
    let sql = format!("INSERT INTO t VALUES ({})", places.join(", "));
    for id in 0..1 + random.below(60) as i64 {
        let row = row(random, id);
        session.execute(&sql, &row).map(drop).unwrap_or_else(|e| panic!("{row:?}: {e}"));
    }
    session
}

fn seeds() -> impl Iterator<Item = Random> {
    let first = setting("PAGEFOLD_SQL_SEED", 1);
    (first..first + setting("PAGEFOLD_SQL_ROUNDS", 20)).map(|seed| Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1))
}

#[test]
fn what_is_written_is_read_back() {
    for mut random in seeds() {
        let mut session = filled(&mut random);
        let written = rows(&mut session, "t");
        for _ in 0..6 {
            let (to, from) = options(&mut random);
            let bytes = copy_bytes_to(&mut session, &format!("COPY t TO STDOUT {to}")).unwrap();
            let copied = copy_from(&mut session, &format!("COPY u FROM STDIN {from}"), bytes.as_slice());
            copied.unwrap_or_else(|e| panic!("{to}: {} {e} {:?}", e.sqlstate(), e.context()));
            assert_eq!(rows(&mut session, "u"), written, "{to}");
            run(&mut session, "DELETE FROM u");
        }
    }
}

#[test]
fn whatever_is_read_comes_whole_or_not_at_all() {
    let (mut whole, mut refused) = (0, 0);
    for mut random in seeds() {
        let mut session = filled(&mut random);
        for _ in 0..30 {
            let (to, from) = options(&mut random);
            let mut bytes = copy_bytes_to(&mut session, &format!("COPY t TO STDOUT {to}")).unwrap();
            bytes.truncate(4000);
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = random.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b"\\\"\n\r\t,.'"[random.below(8)]),
                    _ => bytes.truncate(at + 1),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            match copy_from(&mut session, &format!("COPY u FROM STDIN {from}"), bytes.as_slice()) {
                Ok(count) => {
                    assert_eq!(rows(&mut session, "u").len() as u64, count);
                    whole += 1;
                }
                Err(error) => {
                    assert!(rows(&mut session, "u").is_empty(), "{error}");
                    assert!(["22", "23"].contains(&&error.sqlstate()[..2]), "{} {error}", error.sqlstate());
                    assert!(error.context().is_some_and(|context| context.starts_with("COPY u, line ")), "{error}");
                    refused += 1;
                }
            }
            run(&mut session, "DELETE FROM u");
        }
    }
    assert!(whole > 0 && refused > 0, "{whole} {refused}");
}
