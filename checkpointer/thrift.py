"""The few forms of Thrift's compact protocol that Parquet's headers need."""


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte.

    >>> varint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return value.to_bytes(1)
    return bytes((value & 0x7F | 0x80,)) + varint(value >> 7)


def zigzag(value: int) -> bytes:
    """A number that is not negative, as signed ones are written."""
    return varint(2 * value)


def text(value: bytes) -> bytes:
    """A string: its length, its bytes."""
    return varint(len(value)) + value


def list_head(size: int, of: int) -> bytes:
    """What stands before the elements of a list of type `of`: 0x6 for i64, 0xC for structs.

    >>> list_head(3, 0xC).hex(), list_head(20, 0xC).hex()
    ('3c', 'fc14')
    """
    return bytes((size << 4 | of,)) if size < 15 else bytes((0xF0 | of,)) + varint(size)
