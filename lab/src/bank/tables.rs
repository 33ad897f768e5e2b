//! The columns. A value that is never set is zeros or blanks, as its type asks for.

use super::draw::digits;
use super::words::TRANSACTION_TYPES;
use super::{BankTable, Draw, Field};

/// All tables.
pub const TABLES: [BankTable; 7] = [
    BankTable { name: "contract", per_account: 1, key_columns: 2, fields: &CONTRACT },
    BankTable { name: "payment_item", per_account: 20, key_columns: 3, fields: &PAYMENT_ITEM },
    BankTable { name: "ledger_item", per_account: 20, key_columns: 3, fields: &LEDGER_ITEM },
    BankTable { name: "balance", per_account: 5, key_columns: 4, fields: &BALANCE },
    BankTable { name: "counter", per_account: 10, key_columns: 4, fields: &COUNTER },
    BankTable { name: "order_note", per_account: 3, key_columns: 3, fields: &ORDER_NOTE },
    BankTable { name: "partner", per_account: 1, key_columns: 2, fields: &PARTNER },
];

fn client(_: &mut Draw, out: &mut String) {
    out.push_str("100");
}

fn contract(draw: &mut Draw, out: &mut String) {
    draw.contract(out);
}

/// Not set.
fn blank(_: &mut Draw, _: &mut String) {}

/// Not set: a date.
fn no_date(_: &mut Draw, out: &mut String) {
    out.push_str("00000000");
}

/// Not set: a number of ten digits.
fn no_number(_: &mut Draw, out: &mut String) {
    out.push_str("0000000000");
}

/// Not set: an amount.
fn no_amount(_: &mut Draw, out: &mut String) {
    out.push_str("00000000000000000");
}

/// Not set: a key.
fn no_key(_: &mut Draw, out: &mut String) {
    out.push_str("00000000000000000000000000000000");
}

fn set(_: &mut Draw, out: &mut String) {
    out.push('X');
}

fn rarely_set(draw: &mut Draw, out: &mut String) {
    if draw.chance(3) {
        out.push('X');
    }
}

fn currency(draw: &mut Draw, out: &mut String) {
    draw.currency(out);
}

fn amount(draw: &mut Draw, out: &mut String) {
    draw.cents(out, 17);
}

fn sign(draw: &mut Draw, out: &mut String) {
    out.push(if draw.cents < 0 { 'D' } else { 'C' });
}

fn posting_date(draw: &mut Draw, out: &mut String) {
    draw.date(out, draw.day());
}

fn value_date(draw: &mut Draw, out: &mut String) {
    let later = draw.below(3);
    draw.date(out, draw.day() + later);
}

fn timestamp(draw: &mut Draw, out: &mut String) {
    draw.date(out, draw.day());
    draw.time(out);
}

fn user(draw: &mut Draw, out: &mut String) {
    draw.user(out);
}

fn transaction_type(draw: &mut Draw, out: &mut String) {
    let kind = draw.of(&TRANSACTION_TYPES);
    out.push_str(kind);
}

fn bank_area(draw: &mut Draw, out: &mut String) {
    digits(out, draw.fact(5) % 4 + 1, 4);
}

fn branch(draw: &mut Draw, out: &mut String) {
    digits(out, draw.fact(6) % 350 + 100, 10);
}

fn product(draw: &mut Draw, out: &mut String) {
    let number = draw.fact(7) % 40;
    out.push_str(if number < 25 { "GIRO_PRIVATE" } else { "SAVINGS_" });
    digits(out, number * number / 50, 3);
}

fn account_number(draw: &mut Draw, out: &mut String) {
    draw.account_number(out, 18);
}

fn item_number(draw: &mut Draw, out: &mut String) {
    // Items of earlier months come before those of this one.
    digits(out, draw.fact(10) % 900 + draw.item + 1, 10);
}

fn past(draw: &mut Draw, out: &mut String) {
    draw.past_date(out, 11);
}

fn end_of_time(_: &mut Draw, out: &mut String) {
    out.push_str("99991231");
}

const CONTRACT: [Field; 46] = [
    ("client", 3, client),
    ("contract", 32, contract),
    ("bank_area", 4, bank_area),
    ("account_number", 18, account_number),
    ("product", 20, product),
    ("product_version", 4, |_, out| out.push_str("0001")),
    ("branch", 10, branch),
    ("partner", 10, |draw, out| digits(out, 1_000_000_000 + draw.account * 3 + draw.fact(12) % 3, 10)),
    ("currency", 5, currency),
    ("status", 2, |draw, out| out.push_str(if draw.fact(13) % 20 == 0 { "40" } else { "20" })),
    ("valid_from", 8, past),
    ("valid_to", 8, end_of_time),
    ("opened", 8, past),
    ("closed", 8, no_date),
    ("closing_reason", 4, blank),
    ("cost_centre", 10, |draw, out| digits(out, 4_000 + draw.fact(6) % 350, 10)),
    ("statement_cycle", 4, |draw, out| out.push_str(if draw.chance(70) { "M001" } else { "D001" })),
    ("statement_medium", 2, |draw, out| out.push_str(if draw.chance(60) { "EL" } else { "PR" })),
    ("statement_last", 8, |draw, out| draw.date(out, 0)),
    ("statement_number", 10, |draw, out| digits(out, draw.fact(14) % 250, 10)),
    ("settlement_cycle", 4, |_, out| out.push_str("Q001")),
    ("settlement_last", 8, |_, out| out.push_str("20190331")),
    ("settlement_next", 8, |_, out| out.push_str("20190630")),
    ("overdraft_limit", 17, |draw, out| {
        let limit = if draw.chance(40) { (draw.skewed(20) + 1) * 50_000 } else { 0 };
        digits(out, limit, 17);
    }),
    ("overdraft_to", 8, no_date),
    ("limit_external", 17, no_amount),
    ("limit_internal", 17, no_amount),
    ("interest_group", 6, |draw, out| digits(out, draw.fact(7) % 12, 6)),
    ("fee_group", 6, |draw, out| digits(out, draw.fact(7) % 9, 6)),
    ("tax_group", 4, |_, out| out.push_str("0001")),
    ("dunning_level", 2, |_, out| out.push_str("00")),
    ("dunning_last", 8, no_date),
    ("lock_debit", 1, rarely_set),
    ("lock_credit", 1, blank),
    ("lock_reason", 4, blank),
    ("lock_to", 8, no_date),
    ("reference_account", 18, blank),
    ("note", 40, blank),
    ("external_number", 34, |draw, out| {
        out.push_str("DE");
        digits(out, draw.fact(15) % 97, 2);
        out.push_str("37040044");
        draw.account_number(out, 10);
    }),
    ("created_on", 8, past),
    ("created_by", 12, |draw, out| digits(out, 100 + draw.fact(16) % 900, 12)),
    ("changed_on", 8, posting_date),
    ("changed_by", 12, user),
    ("changed_at", 14, timestamp),
    ("version", 6, |draw, out| digits(out, draw.fact(17) % 40 + 1, 6)),
    ("archived", 1, blank),
];

const PAYMENT_ITEM: [Field; 58] = [
    ("client", 3, client),
    ("contract", 32, contract),
    ("item_number", 10, item_number),
    ("item", 32, |draw, out| draw.key(out, 2, draw.number)),
    ("bank_area", 4, bank_area),
    ("account_number", 18, account_number),
    ("posting_date", 8, posting_date),
    ("value_date", 8, value_date),
    ("entry_date", 8, posting_date),
    ("business_date", 8, posting_date),
    ("amount", 17, amount),
    ("currency", 5, currency),
    ("sign", 1, sign),
    ("amount_transaction", 17, amount),
    ("currency_transaction", 5, currency),
    ("exchange_rate", 12, |_, out| out.push_str("000000100000")),
    ("exchange_type", 4, |_, out| out.push('M')),
    ("transaction_type", 6, transaction_type),
    ("medium", 4, |draw, out| out.push_str(if draw.chance(85) { "BTCH" } else { "ONLN" })),
    ("posting_kind", 2, |_, out| out.push_str("01")),
    ("status", 2, |draw, out| out.push_str(if draw.chance(98) { "30" } else { "35" })),
    ("reversed", 1, rarely_set),
    ("reversal_item", 32, no_key),
    ("reversal_reason", 4, blank),
    ("order", 32, |draw, out| draw.key(out, 3, draw.number / 4)),
    ("order_item", 6, |draw, out| digits(out, draw.number % 4 + 1, 6)),
    ("payment_note", 32, no_key),
    ("other_bank", 15, |draw, out| draw.bank(out)),
    ("other_country", 3, |_, out| out.push_str("DE")),
    ("other_account", 18, |draw, out| draw.other_account(out, 10)),
    ("other_name", 35, |draw, out| draw.person(out)),
    ("purpose", 27, |draw, out| draw.purpose(out)),
    ("purpose_2", 27, |draw, out| {
        if draw.chance(25) {
            draw.purpose(out);
        }
    }),
    ("primary_note", 10, |draw, out| digits(out, draw.below(9_000) + 1_000, 10)),
    ("text_key", 4, |draw, out| digits(out, draw.skewed(12) + 50, 4)),
    ("cheque_number", 13, |_, out| out.push_str("0000000000000")),
    ("card_number", 19, blank),
    ("standing_order", 10, no_number),
    ("collective", 10, no_number),
    ("fee_amount", 17, no_amount),
    ("fee_currency", 5, blank),
    ("tax_amount", 17, no_amount),
    ("tax_code", 2, blank),
    ("hold_number", 10, no_number),
    ("hold_to", 8, no_date),
    ("limit_checked", 1, set),
    ("limit_overridden", 1, rarely_set),
    ("settlement_date", 8, |_, out| out.push_str("20190630")),
    ("settled", 1, blank),
    ("statement_date", 8, no_date),
    ("statement_number", 10, no_number),
    ("ledger_group", 10, |draw, out| digits(out, draw.skewed(30) + 1, 10)),
    ("ledger_transfer", 8, no_date),
    ("created_by", 12, user),
    ("created_at", 14, timestamp),
    ("program", 20, |draw, out| out.push_str(if draw.chance(85) { "PAYMENT_ORDER_EXEC" } else { "POSTING_ONLINE" })),
    ("reserve_1", 10, blank),
    ("reserve_2", 20, blank),
];

const LEDGER_ITEM: [Field; 34] = [
    ("client", 3, client),
    ("contract", 32, contract),
    ("item_number", 10, item_number),
    ("ledger_date", 8, posting_date),
    ("ledger_group", 10, |draw, out| digits(out, draw.skewed(30) + 1, 10)),
    ("ledger_account", 10, |draw, out| digits(out, 2_100_000 + draw.skewed(60) * 10, 10)),
    ("company", 4, |_, out| out.push_str("0001")),
    ("business_area", 4, blank),
    ("profit_centre", 10, |draw, out| digits(out, 4_000 + draw.fact(6) % 350, 10)),
    ("segment", 10, |_, out| out.push_str("RETAIL")),
    ("variant", 6, |_, out| out.push_str("000001")),
    ("amount", 17, amount),
    ("currency", 5, currency),
    ("amount_local", 17, amount),
    ("currency_local", 5, |_, out| out.push_str("EUR")),
    ("amount_group", 17, no_amount),
    ("currency_group", 5, blank),
    ("sign", 1, sign),
    ("transaction_type", 6, transaction_type),
    ("posting_date", 8, posting_date),
    ("value_date", 8, value_date),
    ("payment_item", 32, |draw, out| draw.key(out, 2, draw.number)),
    ("document", 10, no_number),
    ("document_year", 4, |_, out| out.push_str("0000")),
    ("document_item", 6, |_, out| out.push_str("000000")),
    ("transfer_run", 10, |draw, out| digits(out, 190_600 + draw.day(), 10)),
    ("transfer_status", 1, |_, out| out.push('1')),
    ("reversed", 1, blank),
    ("assignment", 18, blank),
    ("text", 30, blank),
    ("tax_code", 2, blank),
    ("tax_amount", 17, no_amount),
    ("created_at", 14, timestamp),
    ("created_by", 12, user),
];

const BALANCE: [Field; 16] = [
    ("client", 3, client),
    ("contract", 32, contract),
    ("balance_type", 4, |draw, out| digits(out, draw.item + 1, 4)),
    ("balance_date", 8, |draw, out| draw.date(out, draw.day())),
    ("currency", 5, currency),
    ("balance", 17, |draw, out| digits(out, draw.fact(20) % 1_000_000 + draw.cents.unsigned_abs(), 17)),
    ("sign", 1, |draw, out| out.push(if draw.fact(21) % 5 == 0 { 'D' } else { 'C' })),
    ("balance_value", 17, |draw, out| digits(out, draw.fact(20) % 1_000_000, 17)),
    ("debits", 17, |draw, out| digits(out, draw.cents.unsigned_abs() * 3, 17)),
    ("credits", 17, |draw, out| {
        let sum = if draw.chance(60) { draw.skewed(5_000_000) } else { 0 };
        digits(out, sum, 17);
    }),
    ("items", 10, |draw, out| {
        let count = draw.skewed(60);
        digits(out, count, 10);
    }),
    ("item_last", 10, item_number),
    ("posting_last", 8, posting_date),
    ("hold_amount", 17, no_amount),
    ("hold_count", 6, |_, out| out.push_str("000000")),
    ("changed_at", 14, timestamp),
];

const COUNTER: [Field; 13] = [
    ("client", 3, client),
    ("contract", 32, contract),
    ("counter", 8, |draw, out| {
        out.push_str(
            ["FEE_DEB", "FEE_CRD", "ATM_OWN", "ATM_OTH", "STMT", "CARD", "TRF_ONL", "TRF_PAP", "STO", "CHQ"][draw.item as usize % 10],
        );
    }),
    ("period_from", 8, |_, out| out.push_str("20190401")),
    ("period_to", 8, |_, out| out.push_str("20190630")),
    ("value", 15, |draw, out| {
        let count = if draw.chance(55) { draw.skewed(90) } else { 0 };
        digits(out, count, 15);
    }),
    ("value_free", 15, |draw, out| {
        let count = draw.skewed(10);
        digits(out, count, 15);
    }),
    ("amount", 17, |draw, out| {
        let sum = if draw.chance(30) { draw.cents.unsigned_abs() } else { 0 };
        digits(out, sum, 17);
    }),
    ("currency", 5, currency),
    ("unit", 3, blank),
    ("closed", 1, blank),
    ("changed_on", 8, posting_date),
    ("changed_at", 14, timestamp),
];

const ORDER_NOTE: [Field; 13] = [
    ("client", 3, client),
    ("order", 32, |draw, out| draw.key(out, 3, draw.account)),
    ("note_number", 4, |draw, out| digits(out, draw.item + 1, 4)),
    ("kind", 2, |draw, out| out.push_str(if draw.chance(80) { "01" } else { "02" })),
    ("language", 2, |_, out| out.push_str("DE")),
    ("line_1", 35, |draw, out| draw.purpose(out)),
    ("line_2", 35, |draw, out| {
        if draw.chance(50) {
            draw.purpose(out);
        }
    }),
    ("line_3", 35, |draw, out| {
        if draw.chance(35) {
            draw.person(out);
        }
    }),
    ("line_4", 35, |draw, out| {
        if draw.chance(20) {
            draw.street(out);
            out.push(' ');
            draw.city(out);
        }
    }),
    ("line_5", 35, blank),
    ("end_to_end", 35, |draw, out| {
        if draw.chance(40) {
            out.push_str("NOTPROVIDED");
        } else {
            let number = draw.below(1_000_000_000_000);
            digits(out, number, 16);
        }
    }),
    ("mandate", 35, |draw, out| {
        if draw.chance(30) {
            out.push_str("MD");
            let number = draw.below(100_000_000);
            digits(out, number, 10);
        }
    }),
    ("created_at", 14, timestamp),
];

const PARTNER: [Field; 42] = [
    ("client", 3, client),
    ("partner", 10, |draw, out| digits(out, 1_000_000_000 + draw.account * 3, 10)),
    ("partner_key", 32, |draw, out| draw.key(out, 4, draw.account)),
    ("kind", 1, |draw, out| out.push(if draw.fact(30) % 12 == 0 { '2' } else { '1' })),
    ("group", 4, |_, out| out.push_str("0001")),
    ("partner_external", 20, blank),
    ("search_1", 20, |draw, out| draw.last_name(out)),
    ("search_2", 20, |draw, out| draw.first_name(out)),
    ("title", 4, |draw, out| out.push_str(if draw.chance(50) { "0001" } else { "0002" })),
    ("academic_title", 4, |draw, out| {
        if draw.chance(3) {
            out.push_str("0001");
        }
    }),
    ("locked", 1, blank),
    ("archived", 1, blank),
    ("organisation_1", 40, blank),
    ("organisation_2", 40, blank),
    ("organisation_3", 40, blank),
    ("organisation_4", 40, blank),
    ("legal_form", 2, blank),
    ("industry", 10, blank),
    ("last_name", 40, |draw, out| draw.last_name(out)),
    ("first_name", 40, |draw, out| draw.first_name(out)),
    ("birth_name", 40, |draw, out| {
        if draw.chance(20) {
            draw.last_name(out);
        }
    }),
    ("middle_name", 40, blank),
    ("birth_date", 8, |draw, out| {
        let days = draw.below(70 * 336);
        digits(out, (1930 + days / 336) * 10_000 + (days / 28 % 12 + 1) * 100 + days % 28 + 1, 8);
    }),
    ("birth_place", 40, |draw, out| {
        if draw.chance(30) {
            draw.city(out);
        }
    }),
    ("death_date", 8, no_date),
    ("sex", 1, |draw, out| out.push(if draw.chance(50) { '1' } else { '2' })),
    ("marital_status", 1, |draw, out| digits(out, draw.fact(31) % 4, 1)),
    ("nationality", 3, |draw, out| out.push_str(if draw.fact(32) % 10 == 0 { "TR" } else { "DE" })),
    ("language", 2, |_, out| out.push_str("DE")),
    ("occupation", 4, |draw, out| digits(out, draw.fact(33) % 25, 4)),
    ("employer", 35, blank),
    ("street", 60, |draw, out| draw.street(out)),
    ("house_number", 10, |draw, out| {
        let number = draw.skewed(150) + 1;
        out.push_str(&number.to_string());
    }),
    ("postal_code", 10, |draw, out| {
        let code = draw.below(8_000) * 11 + 1_067;
        digits(out, code, 5);
    }),
    ("city", 40, |draw, out| draw.city(out)),
    ("country", 3, |_, out| out.push_str("DE")),
    ("region", 3, |draw, out| digits(out, draw.fact(34) % 16 + 1, 2)),
    ("address_key", 32, |draw, out| draw.key(out, 5, draw.account)),
    ("created_on", 8, past),
    ("created_by", 12, user),
    ("changed_on", 8, no_date),
    ("changed_by", 12, blank),
];
