//! Rows like those of real tables, by seed: the same seed gives the same rows.

/// A splitmix64 generator (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const WORDS: [&str; 70] = [
    "furiously",
    "carefully",
    "quickly",
    "blithely",
    "slyly",
    "fluffily",
    "ruthlessly",
    "express",
    "regular",
    "final",
    "ironic",
    "special",
    "pending",
    "unusual",
    "even",
    "bold",
    "silent",
    "daring",
    "close",
    "brave",
    "deposits",
    "requests",
    "accounts",
    "packages",
    "instructions",
    "theodolites",
    "foxes",
    "pinto beans",
    "ideas",
    "dependencies",
    "excuses",
    "platelets",
    "asymptotes",
    "courts",
    "dolphins",
    "multipliers",
    "sauternes",
    "warthogs",
    "frets",
    "dinos",
    "attainments",
    "somas",
    "braids",
    "hockey players",
    "sleep",
    "wake",
    "are",
    "cajole",
    "haggle",
    "nag",
    "use",
    "boost",
    "affix",
    "detect",
    "integrate",
    "maintain",
    "nod",
    "was",
    "lose",
    "sublate",
    "solve",
    "thrash",
    "promise",
    "engage",
    "hinder",
    "print",
    "about the",
    "above the",
    "according to the",
    "across the",
];

/// A row of LINEITEM as text: 16 fields between bars, 122 bytes in the mean.
pub(crate) fn line_item(random: &mut Random, number: usize) -> Vec<u8> {
    let (quantity, price) = (1 + random.below(50), 90_000 + random.below(110_000));
    let date = |random: &mut Random| format!("{}-{:02}-{:02}", 1992 + random.below(7), 1 + random.below(12), 1 + random.below(28));
    let mut comment = String::new();
    let len = 10 + random.below(34);
    while comment.len() < len + 4 {
        comment.push_str(random.one_of(&WORDS));
        comment.push_str(random.one_of(&[" ", " ", " ", " ", ". ", ", "]));
    }
    let start = random.below(4);
    let total = price * quantity;
    format!(
        "{}|{}|{}|{}|{quantity}|{}.{:02}|0.{:02}|0.{:02}|{}|{}|{}|{}|{}|{}|{}|{}",
        number / 4 + number / 32 * 24 + 1,
        1 + random.below(200_000),
        1 + random.below(10_000),
        number % 4 + 1,
        total / 100,
        total % 100,
        random.below(11),
        random.below(9),
        random.one_of(&["N", "N", "R", "A"]),
        random.one_of(&["O", "F"]),
        date(random),
        date(random),
        date(random),
        random.one_of(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
        random.one_of(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
        &comment[start..start + len],
    )
    .into_bytes()
}

/// A payment of a bank as a record of CHAR columns of fixed width, padded with blanks or zeros: 252 bytes.
pub(crate) fn payment(random: &mut Random, number: usize) -> Vec<u8> {
    let names = ["MUELLER", "SCHMIDT", "SCHNEIDER", "FISCHER", "WEBER", "MEYER", "WAGNER", "BECKER", "SCHULZ", "HOFFMANN"];
    let kinds = ["SALARY", "RENT", "INSURANCE PREMIUM", "TRANSFER", "STANDING ORDER", "CARD PAYMENT", "CASH WITHDRAWAL", "INTEREST"];
    let account = random.below(100_000_000);
    let day = format!("2009{:02}{:02}", 1 + random.below(12), 1 + random.below(28));
    let name = format!("{} {}", names[random.below(names.len())], random.one_of(&["ANNA", "PETER", "MARIA", "HANS", "EVA", "KARL"]));
    let digits = 4 + random.below(18);
    let cents = random.below(1 << digits);
    format!(
        "{:<3}{:<4}{account:020}{number:012}{day}{day}{day}{:06}{cents:017}{:<5}{:<35}{:<27}{:<40}{:<10}{:<4}{:<12}{:<15}{:<18}",
        "100",
        "BKK1",
        random.below(240_000),
        random.one_of(&["EUR", "EUR", "EUR", "EUR", "USD", "CHF"]),
        name,
        kinds[random.below(kinds.len())],
        if random.below(3) == 0 { format!("INVOICE {}", random.below(1_000_000)) } else { String::new() },
        random.one_of(&["50010517", "37040044", "10010010", "70020270"]),
        random.one_of(&["", "01", "02", "X"]),
        random.one_of(&["BATCH0001", "BATCH0002", "ONLINE"]),
        "",
        random.one_of(&["", "", "", "CHECKED"]),
    )
    .into_bytes()
}
