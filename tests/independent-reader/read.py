#!/usr/bin/env python3
"""Reads a closed pagefold database by docs/file-format.md alone, and compares it with what the program says.

Nothing of the program is used to read: the control file, the log's last checkpoint, the catalog, rows of every
method, large values, and the entries of every index are read here. Then each table's rows are compared with
`pagefold export` (CSV), and each index's entries with the keys of the rows, by RID.

  read.py DATABASE --pagefold target/release/pagefold      compare all tables and indexes
  read.py DATABASE                                         only read, and say how much there is
  --table NAME                                             only this table and its indexes
  --no-checksums                                           believe pages (checking takes about a third of the time)
"""

import argparse
import collections
import csv
import datetime
import pathlib
import struct
import subprocess
import sys
import tempfile

import lz4block
from xxh3 import xxh3

HEADER, MAP, DATA, LEAF, NON_LEAF, DICTIONARY, LARGE, FOLDED, PREFIX = range(1, 10)


class Damaged(Exception):
    pass


def need(condition, reason):
    if not condition:
        raise Damaged(reason)


def u16(b, at):
    return b[at] | b[at + 1] << 8


def u32(b, at):
    return int.from_bytes(b[at : at + 4], "little")


def u64(b, at):
    return int.from_bytes(b[at : at + 8], "little")


def signed(b):
    return int.from_bytes(b, "little", signed=True)


class Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        self.at += n
        need(self.at <= len(self.data), "a number beyond the end")
        return self.data[self.at - n : self.at]

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def varint(self):
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def codes_of(data, count):
    """Codes of 12 bits, two in three bytes, the first in the low bits."""
    whole = int.from_bytes(data, "little")
    return [whole >> 12 * i & 4095 for i in range(count)]


def packed(data, at, width, count):
    """Numbers of `width` bits one behind the other."""
    if width == 0:
        return [0] * count
    end = at + (width * count + 7) // 8
    need(end <= len(data), "packed numbers beyond the area")
    if width == 8:
        return list(data[at:end])
    mask, numbers = (1 << width) - 1, []
    for first in range(0, count, 64):
        n = min(64, count - first)
        start = at + first * width // 8
        word = int.from_bytes(data[start : start + (n * width + 7) // 8], "little")
        for _ in range(n):
            numbers.append(word & mask)
            word >>= width
    return numbers


# Database, control file, log


class Database:
    def __init__(self, directory, checksums=True):
        self.directory, self.checksums = pathlib.Path(directory), checksums
        self.pages_read = 0
        self.control()
        self.checkpoint()

    def control(self):
        data = (self.directory / "control").read_bytes()
        slots = []
        for number in range(2):
            slot = data[4096 * number : 4096 * (number + 1)]
            if slot[8:16] == b"pgfoldcf" and xxh3(slot[8:], number) == u64(slot, 0):
                need(u32(slot, 16) == 1, "another version of the format")
                slots.append(slot)
        need(slots, "no control slot is valid")
        slot = max(slots, key=lambda slot: u64(slot, 24))
        self.id = slot[32:48]
        self.catalog_file, self.catalog_writes = u32(slot, 48), u32(slot, 52)
        self.checkpoint_at = u64(slot, 64)
        self.log_id = slot[72:88] if any(slot[72:88]) else self.id

    def checkpoint(self):
        """What the last checkpoint says of data sets: by file id, and added partitions by object."""
        self.header_writes, self.partitions, self.has_checkpoint = {}, [], False
        self.committed = {}
        if self.checkpoint_at == 0:
            return
        self.has_checkpoint = True
        log = Log(self)
        kind, body, _ = log.record(self.checkpoint_at)
        need(kind == 19, "the control slot names no checkpoint")
        c = Cursor(body)
        start = c.varint()
        c.varint()
        need(c.varint() == 0, "transactions were running: the database was not closed")
        for _ in range(c.varint()):
            file, writes, object_id, partition = c.varint(), c.varint(), c.varint(), c.varint()
            self.header_writes[file] = writes
            self.partitions.append((object_id, partition, file))
        need(c.varint() == 0, "something is left to be removed: the database was not closed")
        need(c.varint() == 0, "definitions were running: the database was not closed")
        for _ in range(c.varint()):
            undo, object_id = c.number(1), c.varint()
            need(undo in (9, 10), "a definition that is none")
            self.committed[object_id] = c.take(c.varint()) if undo == 9 else None
        need(c.at == len(body), "a checkpoint of another length")
        self.log_records = 0
        for kind in log.kinds(start):
            need(kind in (19, 255), f"a record of kind {kind} is to be redone: the database was not closed")
            self.log_records += 1

    def data_set(self, file, header_writes, exactly):
        return DataSet(self, file, header_writes, exactly)


class Log:
    def __init__(self, database):
        self.directory = database.directory / "log"
        first = min(p for p in self.directory.iterdir() if p.suffix == ".pfl" and not p.name.startswith("spare"))
        with open(first, "rb") as file:
            header = file.read(4096)
        need(xxh3(header[8:]) == u64(header, 0) and header[8:16] == b"pgfoldlg", "header of a log segment")
        need(header[40:56] == database.log_id, "a segment of another log")
        self.capacity = u64(header, 24) - 4096
        self.seed = xxh3(database.log_id)

    def bytes(self, at, n):
        out = b""
        while n > len(out):
            segment, offset = divmod(at + len(out), self.capacity)
            path = self.directory / f"{segment:016x}.pfl"
            if not path.exists():
                break
            with open(path, "rb") as file:
                file.seek(4096 + offset)
                part = file.read(min(n - len(out), self.capacity - offset))
            out += part
            if not part:
                break
        return out

    def record(self, at):
        """Kind, body and end of the record that starts at a position; None where none is valid."""
        head = self.bytes(at, 13)
        length = u32(head, 8) if len(head) == 13 else 0
        if not 13 <= length <= 13 + (64 << 20):
            return None
        data = self.bytes(at, length)
        if len(data) < length or xxh3(data[8:], xxh3(struct.pack("<Q", at), self.seed)) != u64(data, 0):
            return None
        return data[12], data[13:], at + length

    def kinds(self, at):
        while True:
            record = self.record(at)
            if record is None:
                return
            yield record[0]
            at = record[2]


# Data sets


class DataSet:
    def __init__(self, database, file, header_writes, exactly):
        self.database, self.file = database, file
        self.path = database.directory / "data" / f"{file:08x}.pfd"
        self.bytes = self.path.read_bytes()
        self.page_bytes = u32(self.bytes, 52)
        need(self.page_bytes in range(2048, 32769, 2048), "page size")
        header = self.page(0, (HEADER,), mapped=False)
        need(header[32:40] == b"pagefold" and u32(header, 40) == file, "header page")
        writes = u32(header, 20)
        need(writes == header_writes if exactly else writes >= header_writes, f"{self.path}: write counter {writes}, known {header_writes}")
        self.object, self.kind, self.partition = u32(header, 44), header[48], u16(header, 50)
        self.leaf_bytes, self.pages, self.leaves = u32(header, 56), u32(header, 60), u32(header, 64)
        self.rows, self.root, self.levels, self.keys = u64(header, 68), u32(header, 76), u16(header, 80), u64(header, 84)
        self.dictionaries = {}
        per_map = (self.page_bytes - 32) // 4
        self.words, total = {}, 0
        for number in range(1, self.pages, per_map):
            page = self.page(number, (MAP,), mapped=False)
            total += u32(page, 20)
            for i in range(u16(page, 26)):
                self.words[number + i] = u32(page, 32 + 4 * i)
        need(total == u64(header, 92), f"{self.path}: writes of the space map")
        for i in range(header[49]):
            version, _, first, length = struct.unpack_from("<HHII", header, 100 + 12 * i)
            self.dictionaries[version] = Dictionary(self.chain(first, DICTIONARY, version)[:length], version)

    def page(self, number, types, mapped=True):
        page = self.bytes[number * self.page_bytes : (number + 1) * self.page_bytes]
        need(len(page) == self.page_bytes and u32(page, 16) == number, f"{self.path}: page {number}")
        need(page[24] in types, f"{self.path}: page {number} is of type {page[24]}")
        need(page[25] == 1 or (page[24] == DATA and page[25] == 2), "version of a page")
        if self.database.checksums:
            seed = xxh3(self.database.id + struct.pack("<II", self.file, number))
            need(xxh3(page[8:], seed) == u64(page, 0), f"{self.path}: checksum of page {number}")
        if mapped:
            need(self.words[number] >> 8 == u32(page, 20) & 0xFFFFFF, f"{self.path}: write counter of page {number}")
        self.database.pages_read += 1
        return page

    def chain(self, number, page_type, owner):
        parts = []
        while number:
            page = self.page(number, (page_type,))
            need(u32(page, 36) == len(parts) and u32(page, 40) == owner, "a page of another chain")
            parts.append(page[44 : u16(page, 28)])
            number = u32(page, 32)
        return b"".join(parts)

    def data_pages(self):
        """Numbers of data pages with rows, by the classes of the space map."""
        for number in range(1, self.pages):
            if 2 <= self.words[number] & 255 <= 254:
                yield number


class Dictionary:
    def __init__(self, data, version):
        c = Cursor(data)
        need(c.number(1) == 1, "version of a dictionary's serial form")
        self.version, self.huffman = version, c.number(1) == 1
        count = c.number(2)
        self.tokens, token = [], b""
        for _ in range(count):
            lengths = c.number(1)
            shared, own = lengths & 15, lengths >> 4
            own = c.number(1) if own == 15 else own
            token = token[:shared] + c.take(own + 1)
            self.tokens.append(token)
        need(all(a < b for a, b in zip(self.tokens, self.tokens[1:])), "tokens in order")
        if self.huffman:
            nibbles = c.take((count + 1) // 2)
            lengths = [(nibbles[i // 2] >> 4 * (i % 2) & 15) + 1 for i in range(count)]
            self.by_bits, word, last = [None] * 65536, 0, 0
            for length, rank in sorted((length, rank) for rank, length in enumerate(lengths)):
                word <<= length - last
                last = length
                first = word << 16 - length
                self.by_bits[first : first + (1 << 16 - length)] = [(length, self.tokens[rank])] * (1 << 16 - length)
                word += 1
        need(c.at == len(data), "length of a dictionary")

    def expand(self, data, codes12):
        if codes12 or not self.huffman:
            tokens = self.tokens
            return b"".join([tokens[code] for code in codes_of(data, len(data) * 8 // 12)])
        left, bits, parts = 8 * len(data), int.from_bytes(data, "big") << 16, []
        bits |= 0xFFFF
        while left > 0:
            length, token = self.by_bits[bits >> left & 0xFFFF]
            if length > left:
                break
            left -= length
            parts.append(token)
        return b"".join(parts)

    def string(self, data, first, last):
        tokens, whole = self.tokens, int.from_bytes(data[first * 12 // 8 : (last * 12 + 7) // 8], "little")
        shift = 4 if first % 2 else 0
        return b"".join([tokens[whole >> shift + 12 * i & 4095] for i in range(last - first)])


# Records


class Column:
    def __init__(self, name, type_name, nullable):
        self.name, self.type_name, self.nullable = name, type_name, nullable
        base, _, arguments = type_name.partition("(")
        numbers = [int(n) for n in arguments.rstrip(")").split(",")] if arguments else []
        self.base, self.numbers = base.strip(), numbers
        self.variable = self.base in ("CHAR", "VARCHAR", "BYTEA")
        fixed = {"BOOLEAN": 1, "SMALLINT": 2, "INTEGER": 4, "DATE": 4, "BIGINT": 8, "TIMESTAMP": 8, "REAL": 4, "DOUBLE": 8, "DOUBLE PRECISION": 8, "UUID": 16}
        if self.base == "DECIMAL":
            limit, self.width = 10 ** numbers[0] - 1, 1
            while limit > (1 << 8 * self.width - 1) - 1:
                self.width += 1
        elif self.base == "TIME":
            self.width = 4 if numbers and numbers[0] <= 3 else 8
        elif not self.variable:
            self.width = fixed[self.base]
        self.is_float = self.base in ("REAL", "DOUBLE", "DOUBLE PRECISION")
        self.is_number = not self.variable and self.base != "UUID" and self.width <= 8
        self.texts = {}

    def text(self, value):
        """The text that CSV has of a value (bytes as in the record; None is NULL)."""
        found = self.texts.get(value)
        if found is None:
            found = self.make_text(value)
            if len(self.texts) < 1 << 20:
                self.texts[value] = found
        return found

    def make_text(self, value):
        base = self.base
        if value is None:
            return None
        if base in ("CHAR", "VARCHAR"):
            return value.decode()
        if base == "BYTEA":
            return "\\x" + value.hex()
        if base == "UUID":
            h = value.hex()
            return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        if base == "REAL":
            return float(struct.unpack("<f", value)[0])
        if self.is_float:
            return float(struct.unpack("<d", value)[0])
        number = signed(value)
        if base == "BOOLEAN":
            return "true" if number else "false"
        if base == "DATE":
            return (datetime.date(1970, 1, 1) + datetime.timedelta(days=number)).isoformat()
        if base == "DECIMAL" and len(self.numbers) > 1 and self.numbers[1]:
            scale = self.numbers[1]
            digits = str(abs(number)).rjust(scale + 1, "0")
            return ("-" if number < 0 else "") + digits[:-scale] + "." + digits[-scale:]
        if base in ("TIME", "TIMESTAMP"):
            digits = self.numbers[0] if self.numbers else 6
            seconds, units = divmod(number, 10**digits)
            days, seconds = divmod(seconds, 86400)
            text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{units:0{digits}}" if digits else "")
            if base == "TIME":
                return text
            return f"{datetime.date(1970, 1, 1) + datetime.timedelta(days=days)} {text}"
        return str(number)


class Table:
    def __init__(self, database, object_id, name, method):
        self.database, self.object, self.name, self.method = database, object_id, name, method
        self.columns, self.key, self.files = [], [], {}

    def attach(self):
        """The layout of the record, and the partitions."""
        self.nullable = [i for i, c in enumerate(self.columns) if c.nullable]
        self.null_bytes = (len(self.nullable) + 7) // 8
        at, self.spans, self.variables = self.null_bytes, {}, []
        for i, column in enumerate(self.columns):
            if column.variable:
                self.variables.append(i)
            else:
                self.spans[i] = (at, at + column.width)
                at += column.width
        self.ends_at = at
        self.partitions = {p: self.database.data_set(file, writes, exactly) for p, (file, writes, exactly) in sorted(self.files.items())}

    def nulls(self, bitmap):
        return {c for k, c in enumerate(self.nullable) if bitmap[k // 8] >> k % 8 & 1}

    def values(self, record):
        """The columns of a record, as their bytes in it."""
        nulls = self.nulls(record) if self.null_bytes else ()
        values = [None] * len(self.columns)
        for i, (start, end) in self.spans.items():
            values[i] = record[start:end]
        start = self.ends_at + 2 * len(self.variables)
        for k, i in enumerate(self.variables):
            end = u16(record, self.ends_at + 2 * k)
            value = record[start : end & 0x7FFF]
            need(start <= end & 0x7FFF <= len(record), "end offset of a value")
            values[i] = self.large(value) if end & 0x8000 and i not in nulls else value
            start = end & 0x7FFF
        need(start == len(record) or not self.variables, "a record of another length")
        for i in nulls:
            values[i] = None
        return values

    def compact(self, record):
        count = len(self.columns)
        nulls = self.nulls(record) if self.null_bytes else ()
        lengths = self.null_bytes
        at = lengths + (count + 1) // 2 + 2 * ((count + 15) // 16 - 1)
        nibbles = [record[lengths + i // 2] >> 4 * (i % 2) & 15 for i in range(count)]
        long = at + sum(2 if n == 15 else n for n in nibbles)
        values = []
        for column, nibble, i in zip(self.columns, nibbles, range(count)):
            is_large = False
            if nibble == 15:
                end = u16(record, at)
                value, is_large, long = record[long : end & 0x7FFF], end >> 15, end & 0x7FFF
                at += 2
            else:
                value = record[at : at + nibble]
                at += nibble
            if i in nulls:
                value = None
            elif is_large:
                value = self.large(value)
            elif column.is_float:
                value = value.rjust(column.width, b"\0")
            elif column.base == "CHAR":
                value += b" " * (column.numbers[0] - len(value.decode()))
            elif not column.variable and column.base != "UUID":
                value = signed(value).to_bytes(column.width, "little", signed=True)
            values.append(value)
        return values

    def large(self, reference):
        need(len(reference) == 16, "a reference has 16 bytes")
        first, length, rest = u32(reference, 0), u32(reference, 4), u64(reference, 8)
        partition, tag = rest >> 32 & 4095, rest & 0xFFFFFFFF | rest >> 44 << 32
        stored = self.partitions[partition].chain(first, LARGE, tag & 0xFFFFFFFF)
        need(xxh3(stored) >> 12 == tag, "tag of a large value")
        at, out = 0, []
        while at < len(stored):
            size, kept, flag = u32(stored, at), u32(stored, at + 4), stored[at + 8]
            body = stored[at + 9 : at + 8 + kept]
            need(flag in (0, 1), "flag of a block")
            out.append(body if flag == 0 else lz4block.expand(body, size))
            need(len(out[-1]) == size, "length of a block")
            at += 8 + kept
        value = b"".join(out)
        need(len(value) == length, "length of a large value")
        return value

    def body(self, data_set, form, data):
        if form == 0:
            return self.values(data)
        if form == 0x7FFF:
            return self.compact(data)
        return self.values(data_set.dictionaries[form & 0x7FFF].expand(data, form >> 15))

    def rows(self):
        """RID (partition, page, slot) and values of each row."""
        for partition, data_set in self.partitions.items():
            need(data_set.object == self.object and data_set.partition == partition, "a file of another table")
            for number in data_set.data_pages():
                page = data_set.page(number, (DATA,))
                rows = self.plain_page if page[25] == 1 else self.column_page
                seen = 0
                for slot, rid, values in rows(data_set, page):
                    seen += 1
                    yield rid or (partition, number, slot), values

    def stored(self, data_set, page, kind, data):
        """Home RID or None, and values; None of a forward pointer."""
        if kind == 1:
            return None, self.values(data)
        own = u16(page, 32)
        if kind == 2:
            return None, self.body(data_set, own, data)
        tag = data[0]
        if tag == 1:
            return None
        if tag == 2:
            return None, self.values(data[2 : 2 + data[1]])
        if tag == 3:
            return None, self.body(data_set, u16(data, 1), data[3:])
        if tag == 4:
            return rid_of(int.from_bytes(data[1:8], "big")), self.body(data_set, u16(data, 8), data[10:])
        if 16 <= tag <= 23:
            return None, self.body(data_set, own, data[1 : 1 + tag - 16])
        need(24 <= tag <= 28, "first byte of a stored row")
        return None, self.body(data_set, u16(data, 1), data[3 : 3 + tag - 24])

    def plain_page(self, data_set, page):
        end, used = len(page), 0
        for slot in range(u16(page, 26)):
            first, second = u16(page, end - 4 * slot - 4), u16(page, end - 4 * slot - 2)
            kind = first >> 15 | second >> 15 << 1
            if kind == 0:
                continue
            used += 1
            at = first & 0x7FFF
            found = self.stored(data_set, page, kind, page[at : at + (second & 0x7FFF)])
            if found:
                yield slot, found[0], found[1]
        need(used == u16(page, 34), "rows of a page")

    def column_page(self, data_set, page):
        slots, end = u16(page, 26), len(page)
        area_bytes, entry_count, version, flags = struct.unpack_from("<4H", page, 36)
        area = page[44 : 44 + area_bytes]
        range_count, sparse = flags & 0x7FFF, flags >> 15
        ranges, end = [], end - 12 * range_count
        for i in range(range_count):
            at = end + 12 * i
            ranges.append((u16(page, at) & 0xFFF, page[at + 1] >> 7, u16(page, at + 2), rid_of(int.from_bytes(page[at + 4 : at + 11], "big"))))
        row_count = u16(area, 0) if area else 0
        n, row_of = row_count, range(row_count)
        if sparse:
            end -= 2
            n = u16(page, end)
            end -= (n + 7) // 8
            row_of, row = [], 0
            for i in range(n):
                row_of.append(row)
                row += page[end + i // 8] >> i % 8 & 1
            need(row == row_count, "the map has a bit for each row of the area")
        end -= (n + 3) // 4
        states = [page[end + i // 4] >> 2 * (i % 4) & 3 for i in range(n)]
        end -= 6 * entry_count
        entries = {}
        for i in range(entry_count):
            word, at, length = struct.unpack_from("<3H", page, end + 6 * i)
            entries[word & 0xFFF] = (word >> 12 & 3, word >> 14 & 1, page[at : at + length])
        columns = Area(self, area, data_set.dictionaries.get(version)).columns() if area else []
        used = 0
        for slot in range(slots):
            state = states[slot] if slot < n else 3 if slot in entries else 0
            home = None
            for first, hosted, count, other in ranges:
                if hosted and first <= slot < first + count:
                    home = (other[0], other[1], other[2] + slot - first)
            if state == 1:
                used += 1
                row = row_of[slot]
                values = [column[row] for column in columns]
                yield slot, home, [self.large(v) if type(v) is Reference else v for v in values]
            elif state == 3:
                kind, ghost, data = entries[slot]
                if ghost:
                    continue
                used += 1
                found = self.stored(data_set, page, kind, data)
                if found:
                    yield slot, found[0] or home, found[1]
        need(used == u16(page, 34), "rows of a page by column")


class Reference(bytes):
    """To a large value. It is followed for rows that are there only: that of a hidden value leads nowhere."""


class Area:
    def __init__(self, table, area, dictionary):
        self.table, self.area, self.dictionary = table, area, dictionary
        self.rows = u16(area, 0)
        need(1 <= self.rows <= 4096 and u16(area, 2) == len(table.columns) and u16(area, 4) == len(area), "header of an area")
        self.numbers = {}

    def bitmap(self, at):
        return [self.area[at + i // 8] >> i % 8 & 1 for i in range(self.rows)]

    def columns(self):
        return [self.column(number, column) for number, column in enumerate(self.table.columns)]

    def column(self, number, column):
        tag, width, at, _ = struct.unpack_from("<BBHI", self.area, 6 + 8 * number)
        encoding, rows = tag & 15, self.rows
        need(encoding in (0, 1, 2, 3, 4, 5, 8, 9, 10, 11) and width <= 64, "encoding of a column")
        if encoding == 0:
            return [None] * rows
        need((encoding < 8) == column.is_number, "encoding of another kind of column")
        nulls = self.bitmap(at - (rows + 7) // 8) if tag & 16 else None
        if encoding < 8:
            self.numbers[number] = values = self.ints(number, tag, encoding, width, at)
            mask, size = (1 << 8 * column.width) - 1, column.width
            values = [(value & mask).to_bytes(size, "little") for value in values]
        else:
            large = self.bitmap(at - (rows + 7) // 8 * (2 if nulls else 1)) if tag & 128 else None
            values = self.strings(number, encoding, width, at, nulls)
            if column.base == "CHAR":
                values = [value + b" " * (column.numbers[0] - len(value.decode())) if not (large and large[i]) else value for i, value in enumerate(values)]
            if large:
                values = [Reference(v) if large[i] else v for i, v in enumerate(values)]
        return [None if null else value for value, null in zip(values, nulls)] if nulls else values

    def ints(self, number, tag, encoding, width, at):
        area, rows, entry = self.area, self.rows, 6 + 8 * number
        numbers = packed(area, at, width, rows)
        if tag & 32:
            need(encoding in (1, 3, 5), "exceptions of an encoding without")
            e = at + (rows * width + 7) // 8
            count, size = u16(area, e), area[e + 2]
            for i in range(count):
                place = e + 3 + 2 * count + size * i
                numbers[u16(area, e + 3 + 2 * i)] = signed(area[place : place + size])
        outside = u16(area, entry + 4) if tag & 64 else None
        if encoding in (2, 3, 4):
            need(outside is not None, "no parameters")
        if outside is not None:
            base = signed(area[outside : outside + 8])
        else:
            base = signed(area[entry + 4 : entry + 8]) if encoding == 1 else signed(area[entry + 4 : entry + 6])
        if encoding == 1:
            return [base + r for r in numbers]
        if encoding == 2:
            factor = u64(area, outside + 8)
            return [base + factor * r for r in numbers]
        if encoding == 3:
            slope = signed(area[outside + 8 : outside + 16])
            return [base + (slope * i >> 16) + r for i, r in enumerate(numbers)]
        if encoding == 4:
            offset, count, bits = u16(area, outside + 8), u16(area, outside + 10), area[outside + 12]
            entries = packed(area, offset, bits, count)
            return [base + entries[r if r < count else 0] for r in numbers]
        partner = u16(area, outside + 8) if outside is not None else u16(area, entry + 6)
        need(partner in self.numbers and partner < number, "partner of a difference")
        return [value + base + r for value, r in zip(self.numbers[partner], numbers)]

    def strings(self, number, encoding, width, at, nulls):
        area, entry = self.area, 6 + 8 * number
        outside = u16(area, entry + 4)
        slope, base, heap, prefix = struct.unpack_from("<IiHH", area, outside)
        if encoding >= 10:
            ends_at, count, bits = struct.unpack_from("<HHB", area, outside + 12)
            ends = packed(area, ends_at, bits, count)
        else:
            ends = packed(area, at, width, self.rows)
        ends = [base + (slope * (k + 1) >> 16) + end for k, end in enumerate(ends)]
        starts = [0, *ends[:-1]]
        if encoding in (8, 10):
            begin = area[heap - prefix : heap]
            strings = [begin + area[heap + start : heap + end] for start, end in zip(starts, ends)]
        else:
            need(self.dictionary is not None and not self.dictionary.huffman, "dictionary of string codes")
            data, string = area[heap:], self.dictionary.string
            strings = [string(data, start, end) for start, end in zip(starts, ends)]
        if encoding >= 10:
            return [strings[r] for r in packed(area, at, width, self.rows)]
        return strings


def rid_of(number):
    return number >> 44, number >> 12 & 0xFFFFFFFF, number & 0xFFF


# Indexes


class Index:
    def __init__(self, database, object_id, table, name, unique, format_name):
        self.database, self.object, self.table, self.name = database, object_id, table, name
        self.unique, self.format, self.key, self.files = unique, format_name, [], {}

    def key_of(self, values):
        """The key of a row."""
        out = []
        for number, descending in self.key:
            column, value = self.table.columns[number], values[number]
            part = b""
            if column.nullable:
                part = b"\0" if value is not None else b"\1"
            if value is not None:
                part += self.encoded(column, value)
            out.append(bytes(255 - byte for byte in part) if descending else part)
        return b"".join(out)

    @staticmethod
    def encoded(column, value):
        if column.base in ("VARCHAR", "BYTEA"):
            return value.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") + b"\0"
        if column.base in ("CHAR", "UUID", "BOOLEAN"):
            return value
        turned = bytearray(reversed(value))
        if column.is_float:
            number = struct.unpack("<f" if column.width == 4 else "<d", value)[0]
            if number == 0:
                turned = bytearray(column.width)
            elif number != number:
                raise Damaged("NaN is not compared here")
            if turned[0] & 128:
                return bytes(255 - byte for byte in turned)
        turned[0] ^= 128
        return bytes(turned)

    def entries(self):
        """Key and RID of each entry, in order, leaf by leaf."""
        (file, writes, exactly), = self.files.values()
        data_set = self.database.data_set(file, writes, exactly)
        need(data_set.object == self.object and data_set.kind == 3, "a file of another index")
        self.rids, self.keys, self.leaves = data_set.rows, data_set.keys, 0
        number = data_set.root
        if not number:
            return
        for _ in range(data_set.levels - 1):
            page = data_set.page(number, (NON_LEAF,))
            self.check_non_leaf(page)
            number = u32(page, 36)
        while number:
            page = data_set.page(number, (LEAF, FOLDED, PREFIX))
            self.leaves += 1
            reader = {LEAF: self.plain, FOLDED: self.folded, PREFIX: self.prefix}[page[24]]
            yield from reader(page)
            number = u32(page, 40)
        need(self.leaves == data_set.leaves, "number of leaves")

    @staticmethod
    def check_non_leaf(page):
        previous = b""
        for i in range(u16(page, 26)):
            at = u16(page, len(page) - 10 * (i + 1))
            separator = page[at + 2 : at + 2 + u16(page, at)]
            need(previous < separator, "separators in order")
            previous = separator

    def plain(self, page):
        single, fixed = page[32] & 1, u16(page, 34)
        at = 56
        for _ in range(u16(page, 26)):
            length, rids = fixed, 1
            if not fixed:
                length = u16(page, at)
                at += 2
            if not single:
                rids = u16(page, at)
                at += 2
            key = page[at : at + length]
            at += length
            for _ in range(rids):
                yield key, rid_of(int.from_bytes(page[at : at + 7], "big"))
                at += 7
        need(at == u16(page, 28), "end of a leaf")

    def folded(self, page):
        single, slot_bits, fixed = page[32] & 1, page[33], u16(page, 34)
        c, key, last = Cursor(page, 56), b"", 0

        def number():
            first = c.number(1)
            more = 0
            while more < 8 and first >> 7 - more & 1:
                more += 1
            value = first & (0x7F >> more)
            for byte in c.take(more):
                value = value << 8 | byte
            return value

        def rid(linear):
            page_number = linear >> slot_bits
            return page_number >> 32, page_number & 0xFFFFFFFF, linear & (1 << slot_bits) - 1

        for _ in range(u16(page, 26)):
            token = c.number(1)
            if fixed:
                added, code = token >> 4, token & 15
                if added == 15:
                    added += number()
                more = 0 if single else number()
                dropped = added
            else:
                second = c.number(1)
                dropped, added, more, code = token >> 4, token & 15, second >> 4, second & 15
                if dropped == 15:
                    dropped += number()
                if added == 15:
                    added += number()
                if more == 15:
                    more += number()
            kept = fixed - added if fixed else len(key) - dropped
            key = key[:kept] + c.take(added)
            need(code < 15, "an RID code that is kept")
            if code <= 3:
                last += code + 1
            elif code <= 10:
                last += c.number(code - 3)
            else:
                last -= c.number((1, 3, 5, 7)[code - 11])
            yield key, rid(last)
            for _ in range(more):
                last += number() + 1
                yield key, rid(last)
        need(c.at == u16(page, 28), "end of a folded leaf")

    def prefix(self, page):
        fixed, shared = u16(page, 34), u16(page, 36)
        need(u16(page, 38) == len(page), "page size of a prefix leaf")
        begin = page[48 : 48 + shared]
        for i in range(u16(page, 26)):
            at = len(page) - 6 * (i + 1)
            head = page[at + 2 : at + 6][::-1]  # a number, so its bytes lie the other way round
            yield from self.block(page, u16(page, at), head, begin, fixed)

    @staticmethod
    def block(page, at, head, begin, fixed):
        c = Cursor(page, at)
        first, second, third, slots = c.number(1), c.number(1), c.number(1), c.number(2)
        pairs, ascending, entries = (first & 127) + 1, first >> 7, (second & 127) + 1
        form, count_bits, base_bytes = third & 3, third >> 2 & 7, third >> 5
        slots, window = (slots & 0xFFF) + 1, (slots >> 12) + 1
        rid_bits, gap_bits = c.number(1), c.number(1)
        length = fixed or c.number(2)
        rest = length - len(begin)
        key = begin + (head[:rest] if rest <= 4 else head + c.take(rest - 4))
        mask = code_bits = 0
        if form in (1, 2):
            code_bits, behind = c.number(1), c.number(1)
            mask = int.from_bytes(c.take(window), "big")
        base = c.number(base_bytes)
        bits = int.from_bytes(page[c.at :], "little")
        used = 0

        def take(width):
            nonlocal used
            used += width
            return bits >> used - width & (1 << width) - 1

        codes = [take(code_bits) for _ in range(entries - 1)] if form in (1, 2) else []
        counts = [take(count_bits) + 1 for _ in range(entries)]
        if entries == 1:
            counts = [pairs]
        need(sum(counts) == pairs, "pairs of a block")
        firsts = [] if ascending else [take(rid_bits) for _ in range(entries)]
        gaps = [take(gap_bits) for _ in range(pairs - 1 if ascending else pairs - entries)]
        c.at += (used + 7) // 8
        keys = [key]
        if form in (1, 2):
            start = len(key) - behind - window
            places = [b for b in range(8 * window) if mask >> b & 1]
            whole = int.from_bytes(key[start : start + window], "big")
            code = sum((whole >> b & 1) << k for k, b in enumerate(places))
            first_code = code
            for number in codes:
                code = (code if form == 2 else first_code) + number
                value = whole & ~mask
                for k, b in enumerate(places):
                    value |= (code >> k & 1) << b
                keys.append(key[:start] + value.to_bytes(window, "big") + key[start + window :])
        elif form == 3:
            for _ in range(entries - 1):
                token = c.number(1)
                if fixed:
                    added = token if token < 255 else c.number(2)
                    dropped = added
                else:
                    dropped, added = token >> 4, token & 15
                    dropped = c.number(2) if dropped == 15 else dropped
                    added = c.number(2) if added == 15 else added
                keys.append(keys[-1][: len(keys[-1]) - dropped] + c.take(added))
        linear, gap = base, iter(gaps)
        started = False
        for entry, key in enumerate(keys):
            for i in range(counts[entry]):
                if not ascending and i == 0:
                    linear = base + firsts[entry]
                elif started:
                    linear += next(gap) + 1
                started = True
                page_number, slot = divmod(linear, slots)
                yield key, (page_number >> 32, page_number & 0xFFFFFFFF, slot)


# Catalog


def attributes(data):
    """Tags and values; tags ascend."""
    c, last = Cursor(data), 0
    while c.at < len(data):
        tag, length = c.varint(), c.varint()
        need(tag >= last, "attributes are not by tag")
        last = tag
        yield tag, c.take(length)


def number(data):
    c = Cursor(data)
    value = c.varint()
    need(c.at == len(data), "a number of another length")
    return value


def definitions(database):
    """Definitions by object: those of the catalog's rows, and what the checkpoint says otherwise."""
    space = Table(database, 0, "catalog", "none")
    space.columns = [Column("row", "BYTEA", False)]
    space.files = {0: (database.catalog_file, database.catalog_writes, True)}
    space.attach()
    parts = collections.defaultdict(dict)
    for _, (row,) in space.rows():
        kind, object_id, part, count = struct.unpack_from("<BIHH", row)
        need(kind == 1 and part < count, "a row of the catalog")
        need((part, count) not in parts[object_id], "a part of a definition twice")
        parts[object_id][part, count] = row[9:]
    found = {}
    for object_id, rows in parts.items():
        count = len(rows)
        need(sorted(rows) == [(part, count) for part in range(count)], f"object {object_id}: a part is missing")
        found[object_id] = b"".join(rows[part, count] for part in range(count))
    for object_id, definition in database.committed.items():
        found.pop(object_id, None)
        if definition is not None:
            found[object_id] = definition
    return found


class Definition:
    def __init__(self, object_id, data):
        need(data[0] == 1, "a definition of another form")
        self.object_id, self.kind, self.columns, self.key, self.files, one = object_id, data[1], [], [], [], {}
        need(1 <= self.kind <= 5 or self.kind >= 128, f"object {object_id}: a kind that must be known")
        for tag, value in attributes(data[2:]):
            if tag == 5:
                column = dict(attributes(value))
                need(set(column) <= {1, 3, 5}, "a column with more than name, type and NULL")
                self.columns.append(Column(column[1].decode(), column[3].decode(), 5 in column))
            elif tag == 21:
                c = Cursor(value)
                while c.at < len(value):
                    self.key.append((c.varint(), c.number(1)))
            elif tag == 27:
                c = Cursor(value)
                self.files.append((c.varint(), c.varint(), c.varint()))
            else:
                # Comments, constraints and what else is said: nothing of it changes what is stored.
                known = tag in (1, 3, 7, 9, 11, 13, 15, 17, 19, 23, 25, 65, 67, 69, 75, 77)
                need(self.kind >= 128 or known or tag % 2 == 0, f"object {object_id}: attribute {tag} must be known")
                one[tag] = value
        self.name, self.one = one[1].decode(), one

    def text(self, tag):
        return self.one[tag].decode()


def catalog(database):
    found = [Definition(object_id, data) for object_id, data in sorted(definitions(database).items())]
    tables, indexes = {}, {}
    for d in found:
        if d.kind == 1:
            table = tables[d.object_id] = Table(database, d.object_id, d.name, d.text(7))
            table.columns, table.key = d.columns, d.key
    for d in found:
        if d.kind == 2:
            table = tables[number(d.one[3])]
            indexes[d.object_id] = Index(database, d.object_id, table, d.name, int(23 in d.one), d.text(25))
            indexes[d.object_id].key = d.key
    objects = {**tables, **indexes}
    for d in found:
        for partition, file, writes in d.files:
            known = max(writes, database.header_writes.get(file, 0))
            objects[d.object_id].files[partition] = (file, known, not database.has_checkpoint)
    for object_id, partition, file in database.partitions:
        if object_id in tables and partition not in tables[object_id].files:
            tables[object_id].files[partition] = (file, database.header_writes[file], False)
    for table in tables.values():
        table.attach()
    return tables, indexes


# Comparing


def exported(program, database, table):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "table.csv"
        done = subprocess.run([program, "export", database, table.name, path], capture_output=True, text=True)
        need(done.returncode == 0, f"export: {done.stderr}")
        with open(path, newline="", encoding="utf-8") as file:
            yield from parse_csv(file.read())


def parse_csv(text):
    """Rows of CSV behind its head; a field without quotes and without characters is NULL."""
    rows = csv_rows(text)
    next(rows)
    yield from rows


def csv_rows(text):
    if '"' not in text:
        for line in text.splitlines():
            yield tuple(field or None for field in line.split(","))
        return
    at, row, end = 0, [], len(text)
    while at < end:
        if text[at] == '"':
            parts = []
            while True:
                close = text.index('"', at + 1)
                parts.append(text[at + 1 : close])
                at = close + 1
                if at < end and text[at] == '"':
                    parts.append('"')
                    continue
                break
            row.append("".join(parts))
        else:
            stop = at
            while stop < end and text[stop] not in ",\n\r":
                stop += 1
            row.append(text[at:stop] or None)
            at = stop
        if at < end and text[at] == ",":
            at += 1
            if at == end or text[at] in "\r\n":
                row.append(None)
            else:
                continue
        while at < end and text[at] in "\r\n":
            at += 1
        yield tuple(row)
        row = []


def number_of(column, text):
    """A number with a fraction as the column has it."""
    number = float(text)
    return struct.unpack("<f", struct.pack("<f", number))[0] if column.width == 4 else number


def compare(database, table, program):
    """Rows read, by RID; compared with the export."""
    rows = dict()
    for rid, values in table.rows():
        need(rid not in rows, f"{table.name}: RID {rid} twice")
        rows[rid] = values
    need(len(rows) == sum(d.rows for d in table.partitions.values()), f"{table.name}: number of rows")
    if program:
        columns = table.columns
        mine = ([column.text(value) for column, value in zip(columns, values)] for values in rows.values())
        theirs = list(exported(program, database.directory, table))
        need(len(theirs) == len(rows), f"{table.name}: {len(rows)} rows read, {len(theirs)} exported")
        floats = [i for i, column in enumerate(columns) if column.is_float]
        theirs = ([number_of(columns[i], v) if v is not None and i in floats else v for i, v in enumerate(row)] for row in theirs) if floats else theirs
        left = collections.Counter(map(tuple, mine))
        left.subtract(map(tuple, theirs))
        for row, count in left.items():
            need(count == 0, f"{table.name}: {'only read' if count > 0 else 'only exported'}: {row}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--pagefold")
    parser.add_argument("--table")
    parser.add_argument("--no-checksums", action="store_true")
    arguments = parser.parse_args()
    database = Database(arguments.database, not arguments.no_checksums)
    tables, indexes = catalog(database)
    all_rows = all_entries = 0
    for table in sorted(tables.values(), key=lambda table: table.name):
        if arguments.table not in (None, table.name):
            continue
        rows = compare(database, table, arguments.pagefold)
        all_rows += len(rows)
        print(f"{table.name}: {table.method}, {len(rows)} rows{', as exported' if arguments.pagefold else ''}", flush=True)
        for index in (index for index in indexes.values() if index.table is table):
            found = list(index.entries())
            need(len(found) == index.rids, f"{index.name}: number of RIDs")
            need(all(a < b for a, b in zip(found, found[1:])), f"{index.name}: order")
            wanted = sorted((index.key_of(values), rid) for rid, values in rows.items())
            need(found == wanted, f"{index.name}: entries and rows differ")
            need(len({key for key, _ in found}) == index.keys, f"{index.name}: number of keys")
            all_entries += len(found)
            print(f"  {index.name}: {index.format}, {len(found)} entries of {index.keys} keys, those of the rows", flush=True)
    print(f"{len(tables)} tables, {all_rows} rows, {all_entries} index entries, {database.pages_read} pages: no difference")


if __name__ == "__main__":
    try:
        main()
    except Damaged as error:
        sys.exit(f"difference: {error}")
