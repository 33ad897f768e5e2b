"""XXH3, 64 bits, with a seed, after its specification (xxHash, doc/xxhash_spec.md)."""

import struct

M = (1 << 64) - 1
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def fold(a, b):
    product = a * b
    return (product & M) ^ (product >> 64)


def avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & M
    return h ^ h >> 32


def avalanche64(h):
    h ^= h >> 33
    h = h * P64[1] & M
    h ^= h >> 29
    h = h * P64[2] & M
    return h ^ h >> 32


def short(data, seed):
    n = len(data)
    if n == 0:
        return avalanche64(seed ^ u64(SECRET, 56) ^ u64(SECRET, 64))
    if n <= 3:
        value = data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8
        return avalanche64(value ^ ((u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M))
    if n <= 8:
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        both = u32(data, n - 4) + (u32(data, 0) << 32)
        h = both ^ ((u64(SECRET, 8) ^ u64(SECRET, 16)) - seed & M)
        h ^= (h << 49 | h >> 15) & M ^ (h << 24 | h >> 40) & M
        h = h * 0x9FB21C651E98DF25 & M
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & M
        return h ^ h >> 28
    low = u64(data, 0) ^ ((u64(SECRET, 24) ^ u64(SECRET, 32)) + seed & M)
    high = u64(data, n - 8) ^ ((u64(SECRET, 40) ^ u64(SECRET, 48)) - seed & M)
    return avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high) & M)


def mix16(data, at, secret_at, seed):
    low = u64(data, at) ^ (u64(SECRET, secret_at) + seed & M)
    high = u64(data, at + 8) ^ (u64(SECRET, secret_at + 8) - seed & M)
    return fold(low, high)


def middle(data, seed):
    n = len(data)
    h = n * P64[0] & M
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            h += mix16(data, 16 * i, 32 * i, seed) + mix16(data, n - 16 * (i + 1), 32 * i + 16, seed)
        return avalanche(h & M)
    h += sum(mix16(data, 16 * i, 16 * i, seed) for i in range(8))
    h = avalanche(h & M)
    h += sum(mix16(data, 16 * i, 16 * (i - 8) + 3, seed) for i in range(8, n // 16))
    return avalanche(h + mix16(data, n - 16, 136 - 17, seed) & M)


def long(data, seed):
    words = struct.unpack("<24Q", SECRET)
    words = [w + seed & M if i % 2 == 0 else w - seed & M for i, w in enumerate(words)]
    secret = struct.pack("<24Q", *words)
    at = [struct.unpack_from("<8Q", secret, 8 * i) for i in range(16)]
    scramble, last = struct.unpack_from("<8Q", secret, 128), struct.unpack_from("<8Q", secret, 192 - 64 - 7)
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]

    def stripe(lanes, keys):
        for i in range(8):
            key = lanes[i] ^ keys[i]
            acc[i ^ 1] += lanes[i]
            acc[i] += (key & 0xFFFFFFFF) * (key >> 32)

    stripes = (len(data) - 1) // 64
    for number, lanes in enumerate(struct.iter_unpack("<8Q", data[: 64 * stripes])):
        stripe(lanes, at[number % 16])
        if number % 16 == 15:
            for i in range(8):
                value = acc[i] & M
                acc[i] = ((value ^ value >> 47) ^ scramble[i]) * P32[0] & M
    stripe(struct.unpack("<8Q", data[-64:]), last)
    merge = struct.unpack_from("<8Q", secret, 11)
    h = len(data) * P64[0] & M
    for i in range(0, 8, 2):
        h += fold(acc[i] & M ^ merge[i], acc[i + 1] & M ^ merge[i + 1])
    return avalanche(h & M)


def xxh3(data, seed=0):
    data = bytes(data)
    return short(data, seed) if len(data) <= 16 else middle(data, seed) if len(data) <= 240 else long(data, seed)
