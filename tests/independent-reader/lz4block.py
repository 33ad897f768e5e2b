"""Expands one LZ4 block, after its specification (lz4, doc/lz4_Block_format.md)."""


def expand(data, size):
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        total = nibble
        if nibble == 15:
            while True:
                byte = data[at]
                at += 1
                total += byte
                if byte != 255:
                    break
        return total

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at >= len(data):
            break
        back = data[at] | data[at + 1] << 8
        at += 2
        count = length(token & 15) + 4
        start = len(out) - back
        if start < 0 or back == 0 or len(out) + count > size:
            raise ValueError("no LZ4 block")
        while count:
            part = out[start : start + count]
            out += part
            count -= len(part)
            start += len(part)
    return bytes(out)
