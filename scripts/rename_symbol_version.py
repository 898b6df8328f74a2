"""Make a program use another version of a library's symbols: FILE OLD NEW, of the same length.

For a mongod that was built with Debian 9's libcurl, whose functions have not changed since.
"""
import struct
import sys


def elf_hash(name):
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ ((value & 0xf0000000) >> 24)) & 0x0fffffff
    return value


def main():
    path, old, new = sys.argv[1:]
    with open(path, "rb") as file:
        data = bytearray(file.read())
    offset, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind != 0x6ffffffe:		# SHT_GNU_verneed
            continue
        place = bytes(data[start:start + length]).find(struct.pack("<I", elf_hash(old)))
        strings = sections[link][4]
        if place < 0:
            return
        name = strings + struct.unpack_from("<I", data, start + place + 8)[0]
        assert data[name:name + len(old)] == old.encode() and len(old) == len(new)
        struct.pack_into("<I", data, start + place, elf_hash(new))
        data[name:name + len(old)] = new.encode()
    with open(path, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
