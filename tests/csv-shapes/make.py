#!/usr/bin/env python3
"""Writes 100 CSV files of odd shapes, the same ones every time: make.py DIR

Each has a name that says what is odd, and what a person would say of it: names in the first line or not,
the columns' types (by family), the rows.
"""

import gzip
import json
import pathlib
import sys

# name -> (bytes, {"header": bool, "rows": n, "types": "int text ..."}); `extension` by the name behind a dot.
SHAPES = {}


def shape(name, text, header, rows, types, encoding="utf-8"):
    data = text if isinstance(text, bytes) else text.encode(encoding)
    SHAPES[name] = (data, {"header": header, "rows": rows, "types": types})


def lines(*rows, end="\n"):
    return end.join(rows) + end


def build():
    # Names or not
    shape("header-and-numbers", lines("id,price", "1,2.50", "2,3.25"), True, 2, "int decimal")
    shape("no-header-numbers", lines("1,2.50", "2,3.25"), False, 2, "int decimal")
    shape("header-all-text", lines("name,town", "Ann,Bonn", "Bob,Rome", "Cid,Oslo"), True, 3, "text text")
    shape("no-header-all-text-repeats", lines("Ann,Bonn", "Bob,Bonn", "Cid,Rome"), False, 3, "text text")
    shape("no-header-all-text-same-first", lines("red,apple", "red,cherry", "yellow,lemon"), False, 3, "text text")
    shape("header-empty-name", lines("id,,town", "1,x,Bonn", "2,y,Rome"), True, 2, "int text text")
    shape("header-first-name-empty", lines(",name", "0,Ann", "1,Bob"), True, 2, "int text")
    shape("header-double-name", lines("id,id,name", "1,7,Ann", "2,8,Bob"), True, 2, "int int text")
    shape("header-double-name-text", lines("name,name", "Ann,Bonn", "Bob,Rome"), True, 2, "text text")
    shape("header-numbers-as-names", lines("country,2019,2020", "France,1.5,1.6", "Spain,1.1,1.2"), True, 2, "text decimal decimal")
    shape("header-with-blanks", lines("id, name ,town", "1,Ann,Bonn", "2,Bob,Rome"), True, 2, "int text text")
    shape("header-quoted", lines('"id","full name"', '1,"Ann, A."', '2,"Bob, B."'), True, 2, "int text")
    shape("header-only", lines("id,name,town"), False, 1, "text text text")
    shape("one-row-of-numbers", lines("1,2,3"), False, 1, "int int int")
    shape("header-missing-values-word", lines("id,score", "1,n/a", "2,5", "3,7"), True, 3, "int text")
    shape("first-row-missing-word", lines("1,n/a,x", "2,5,y", "3,7,z"), False, 3, "int text text")
    shape("first-row-empty-field", lines("1,,x", "2,5,y", "3,7,z"), False, 3, "int int text")
    shape("header-of-booleans", lines("name,active", "Ann,true", "Bob,false"), True, 2, "text bool")
    shape("header-of-dates", lines("name,born", "Ann,2001-02-03", "Bob,1999-12-31"), True, 2, "text date")
    shape("header-long-sentence", lines("a " * 80 + ",b", "x,y", "z,w"), False, 3, "text text")
    shape("header-case-only", lines("ID,Id,id", "1,2,3", "4,5,6"), True, 2, "int int int")
    shape("header-like-a-code", lines("code,kind", "A1,x", "B2,y", "C3,x"), True, 3, "text text")
    shape("one-column-words", lines("apple", "pear", "plum", "fig"), False, 4, "text")
    shape("one-column-numbers-header", lines("n", "1", "2", "3"), True, 3, "int")
    shape("one-column-blank-lines", lines("n", "1", "", "3"), True, 3, "int")
    shape("bom", "\ufeff" + lines("id,name", "1,Ann", "2,Bob"), True, 2, "int text")
    # Delimiters
    shape("semicolon", lines("id;name", "1;Ann", "2;Bob"), True, 2, "int text")
    shape("semicolon-decimal-comma", lines("name;price;rate", "Ann;1,50;2,5", "Bob;2,25;3,5"), True, 2, "text text text")
    shape("semicolon-no-header-comma", lines("Ann;1,50", "Bob;2,25"), False, 2, "text text")
    shape("tab-in-csv", lines("id\tname", "1\tAnn, A.", "2\tBob, B."), True, 2, "int text")
    shape("bar-in-csv", lines("id|name|town", "1|Ann|Bonn", "2|Bob|Rome"), True, 2, "int text text")
    shape("tsv.tsv", lines("id\tname", "1\tAnn", "2\tBob"), True, 2, "int text")
    shape("tsv-with-commas.tsv", lines("name\tlist", "a\t1,2", "b\t3,4"), True, 2, "text text")
    shape("comma-in-tsv.tsv", lines("id,name", "1,Ann", "2,Bob"), True, 2, "int text")
    shape("txt-semicolon.txt", lines("id;name", "1;Ann", "2;Bob"), True, 2, "int text")
    shape("list-within-field", lines("id,tags", "1,a|b|c", "2,d|e|f"), True, 2, "int text")
    shape("list-within-field-no-header", lines("1,a|b|c", "2,d|e|f"), False, 2, "int text")
    shape("time-has-colons", lines("at;what", "10:00:00;x", "11:30:00;y"), True, 2, "time text")
    shape("semicolon-within-quotes", lines('id,note', '1,"a;b;c"', '2,"d;e;f"'), True, 2, "int text")
    shape("trailing-delimiter", lines("id,name,", "1,Ann,", "2,Bob,"), True, 2, "int text text")
    shape("blank-behind-comma", lines("id, name, n", "1, Ann, 5", "2, Bob, 6"), True, 2, "int text int")
    shape("blank-before-quote", lines('id, note', '1, "a, b"', '2, "c, d"'), True, 2, "int text")
    shape("wide", lines(",".join(f"c{i}" for i in range(120)), ",".join(str(i) for i in range(120))), True, 1, " ".join(["int"] * 120))
    shape("single-field-with-commas-quoted", lines('"a, b"', '"c, d"', '"e, f"'), False, 3, "text")
    # Quotes
    shape("quotes-doubled", lines('id,said', '1,"say ""hi"""', '2,"no"'), True, 2, "int text")
    shape("quotes-escaped", lines('id,said', '1,"say \\"hi\\""', '2,"no, \\"no\\""'), True, 2, "int text")
    shape("single-quotes", lines("id,note", "1,'a, b'", "2,'c, d'"), True, 2, "int text")
    shape("apostrophes", lines("id,note", "1,it's", "2,'twas fine"), True, 2, "int text")
    shape("inches", lines('id,size', '1,5" pipe', '2,6" pipe'), True, 2, "int text")
    shape("quote-all", lines('"id","n"', '"1","5"', '"2",""'), True, 2, "int int")
    shape("quoted-line-ends", 'id,note\n1,"two\nlines"\n2,"three\n\nlines"\n', True, 2, "int text")
    shape("quoted-crlf", 'id,note\r\n1,"two\r\nlines"\r\n2,x\r\n', True, 2, "int text")
    shape("quote-in-the-middle", lines("id,note", '1,a"b"c', "2,d"), True, 2, "int text")
    shape("empty-quoted-text", lines("id,note", '1,""', "2,", "3,x"), True, 3, "int text")
    # Line ends
    shape("crlf", lines("id,name", "1,Ann", "2,Bob", end="\r\n"), True, 2, "int text")
    shape("cr-alone", lines("id,name", "1,Ann", "2,Bob", end="\r"), True, 2, "int text")
    shape("no-last-line-end", "id,name\n1,Ann\n2,Bob", True, 2, "int text")
    shape("blank-lines", "id,name\n\n1,Ann\n\n2,Bob\n\n", True, 2, "int text")
    shape("blank-lines-first", "\n\nid,name\n1,Ann\n2,Bob\n", True, 2, "int text")
    shape("mixed-line-ends", "id,name\r\n1,Ann\n2,Bob\r\n", True, 2, "int text")
    # Numbers
    shape("leading-zeros", lines("zip,n", "01234,1", "98765,2"), True, 2, "text int")
    shape("plus-signs", lines("phone,n", "+49301,1", "+49302,2"), True, 2, "text int")
    shape("points-first", lines("x,y", "-.5,1", ".25,2"), True, 2, "decimal int")
    shape("points-last", lines("x,y", "5.,1", "7.25,2"), True, 2, "decimal int")
    shape("mixed-scales", lines("price", "1.5", "2.50", "3"), True, 3, "decimal")
    shape("coordinates", lines("lat,lon", "-6.081689834590001,145.391998291", "53.1,7.5"), True, 2, "double double")
    shape("exponents", lines("x", "1e5", "2.5E-3"), True, 2, "double")
    shape("nan-and-infinity", lines("x", "NaN", "1.5", "-Infinity"), True, 3, "double")
    shape("big-integers", lines("n", "3000000000", "5"), True, 2, "int")
    shape("huge-integers", lines("n", "18446744073709551615", "5"), True, 2, "decimal")
    shape("longer-than-38-digits", lines("n", "9" * 45, "5"), True, 2, "text")
    shape("thousands", lines('n,m', '"1,000",1', '"2,500",2'), True, 2, "text int")
    shape("currency", lines("price,n", "$5.00,1", "$7.25,2"), True, 2, "text int")
    shape("percent", lines("share,n", "5%,1", "7%,2"), True, 2, "text int")
    shape("hexadecimal", lines("h,n", "0x1F,1", "0x2A,2"), True, 2, "text int")
    shape("negative-zero", lines("x,n", "-0,1", "5,2"), True, 2, "double int")
    shape("versions", lines("version,n", "1.9.0,1", "1.10.2,2"), True, 2, "text int")
    shape("null-words", lines("id,v", "1,NULL", "2,5"), True, 2, "int text")
    shape("backslash-n", lines("id,v", "1,\\N", "2,5"), True, 2, "int text")
    shape("true-and-false", lines("a,b", "True,FALSE", "False,TRUE"), True, 2, "bool bool")
    shape("yes-and-no", lines("a,n", "yes,1", "no,2"), True, 2, "text int")
    shape("zeros-and-ones", lines("flag", "0", "1", "1"), True, 3, "int")
    # Dates and times
    shape("iso-dates", lines("d,n", "2024-01-31,1", "2023-12-01,2"), True, 2, "date int")
    shape("iso-t", lines("at,n", "2024-01-31T10:00:00,1", "2024-02-01T11:30:00,2"), True, 2, "timestamp int")
    shape("iso-tz", lines("at,n", "2024-01-31T10:00:00Z,1", "2024-02-01T11:30:00Z,2"), True, 2, "timestamptz int")
    shape("iso-offset", lines("at,n", "2024-01-31T10:00:00+02:00,1", "2024-02-01T11:30:00-05:00,2"), True, 2, "timestamptz int")
    shape("iso-fractions", lines("at", "2024-01-31 10:00:00.5", "2024-02-01 11:30:00.123456"), True, 2, "timestamp")
    shape("german-dates", lines("d;n", "31.01.2024;1", "01.02.2024;2"), True, 2, "date int")
    shape("slashes-day-first", lines("d,n", "31/01/2024,1", "01/02/2024,2"), True, 2, "date int")
    shape("slashes-month-first", lines("d,n", "01/31/2024,1", "02/01/2024,2"), True, 2, "date int")
    shape("slashes-ambiguous", lines("d,n", "01/02/2024,1", "03/04/2024,2"), True, 2, "text int")
    shape("year-first-slashes", lines("d,n", "2024/01/31,1", "2024/2/1,2"), True, 2, "date int")
    shape("month-names", lines("d,n", "31-Jan-2024,1", "01-Feb-2024,2"), True, 2, "date int")
    shape("twelve-hours", lines("at,n", "1/31/2024 3:45:00 PM,1", "2/1/2024 9:05:00 AM,2"), True, 2, "timestamp int")
    shape("times", lines("t,n", "10:00:00,1", "23:59:59,2"), True, 2, "time int")
    shape("impossible-date", lines("d,n", "2024-02-30,1", "2024-01-01,2"), True, 2, "text int")
    # The rest
    shape("uuids", lines("u,n", "6ba7b810-9dad-11d1-80b4-00c04fd430c8,1", "6BA7B811-9DAD-11D1-80B4-00C04FD430C8,2"), True, 2, "uuid int")
    shape("other-letters", lines("Größe,naïve", "1,Ä", "2,Ö"), True, 2, "int text")
    shape("title-line-before", lines("Report of March", "id,name,town", "1,Ann,Bonn", "2,Bob,Rome", "3,Cid,Oslo", "4,Dan,Cork", "5,Eve,Lima", "6,Fay,Pau", "7,Gus,Nice", "8,Hal,Metz", "9,Ina,Brno"), None, None, None)
    shape("ragged-row", lines("id,name", "1,Ann", "2,Bob,extra", "3,Cid"), None, None, None)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, (data, said) in SHAPES.items():
        file = name if "." in name else name + ".csv"
        (folder / file).write_bytes(data)
        expected[file] = said
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    return expected


build()

if __name__ == "__main__":
    print(len(write(pathlib.Path(sys.argv[1]))), "files")
