"""A MongoDB server that breaks the wire protocol on demand.

Its handshake is that of a standalone mongod 6.0.  The collection's name, a row of
BEHAVIOURS, decides how it replies to find and getMore: with the prefix "next_", find
returns one document and an open cursor, and getMore misbehaves.

    fake_mongod.py [--replica-set] [--greeting=NAME] [--compressor=NAME] [--scram=NAME]
        [--plain=USER:PASSWORD] [--talkative] [--catalog] [--seed=NUMBER]

prints its port and serves until standard input ends.  With --replica-set it is the
primary of the replica set "rs", whose other member is down.  --greeting=NAME makes the
reply to the first "hello" a row of GREETINGS.  With --compressor=NAME it agrees to this
compressor, and collections "packed_*" return rows of PACKED.  Other commands than find
and getMore (writes) get the same reply as find for the collection that they name.

The reply to explain is a row of PLANS, the reply to saslStart one of SCRAM.  The user of
--plain can log in by PLAIN; for any other mechanism the error names the mechanism.  With
--talkative it also replies to messages that ask for no reply, as FerretDB does.  With --catalog
it replies to what IMPORT, ANALYZE, mongo_fdw_check() and change streams send, by the rows of
CATALOG.

Every good batch contains {"_id": 1, "id": 7, "info": "seven"}.
"""
import base64
import datetime
import functools
import os
import socket
import struct
import sys
import threading
import zlib
from random import Random

import bson
import bson.datetime_ms

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
DOCUMENT = {'_id': 1, 'id': 7, 'info': 'seven'}
CURSOR_ID = 4711

HELLO = {
    'ismaster': True, 'helloOk': True, 'maxBsonObjectSize': 16777216,
    'maxMessageSizeBytes': 48000000, 'maxWriteBatchSize': 100000,
    'minWireVersion': 0, 'maxWireVersion': 17, 'readOnly': False, 'ok': 1.0,
}


class Close(Exception):
    """Closes the connection now."""


class Request:
    """A command as received, and correct replies to it."""

    def __init__(self, request_id, command, seen):
        self.id = request_id
        self.command = command
        self.seen = seen        # number of earlier requests for this collection
        self.is_more = 'getMore' in command
        self.is_read = self.is_more or 'find' in command

    def cursor(self, batch=None, cursor_id=0, raw_batch=None):
        if not self.is_read:
            return bson.encode({'n': 1, 'padding': 100 * 'x', 'ok': 1.0})
        key = 'nextBatch' if self.is_more else 'firstBatch'
        collection = self.command['collection' if self.is_more else next(iter(self.command))]
        if raw_batch is None:
            raw_batch = bson.encode({str(i): d for i, d in enumerate([DOCUMENT] if batch is None else batch)})
        inner = (b'\x04' + key.encode() + b'\0' + raw_batch
                 + bson.encode({'id': bson.Int64(cursor_id), 'ns': 'db.' + collection})[4:])
        inner = struct.pack('<i', len(inner) + 4) + inner
        body = b'\x03cursor\0' + inner + bson.encode({'ok': 1.0})[4:]
        return struct.pack('<i', len(body) + 4) + body

    def message(self, body, flags=0, kind=0, length=None, response_to=None, opcode=OP_MSG):
        rest = struct.pack('<iiiIB', 1, self.id if response_to is None else response_to, opcode, flags, kind) + body
        return struct.pack('<i', len(rest) + 4 if length is None else length) + rest


def element(body, key=b'0', kind=3):
    """Returns an array of one element, as bytes."""
    content = bytes([kind]) + key + b'\0' + body
    return struct.pack('<i', len(content) + 5) + content + b'\0'


def sequence():
    content = b'documents\0' + GOOD
    return struct.pack('<i', len(content) + 4) + content


def garbage_after(body):
    """Returns the document with an invalid element appended."""
    body = body[4:-1] + b'\xee' + b'what\0' + 9 * b'\xff' + b'\0'
    return struct.pack('<i', len(body) + 4) + body


def with_bad_document(name, cut=False, **fields):
    """Returns a document that contains an unterminated or too short document."""
    nested = struct.pack('<i', 4) if cut else bson.encode({'clusterTime': bson.Timestamp(1, 1)})[:-1] + b'x'
    body = b'\x03' + name + b'\0' + nested + bson.encode(fields)[4:]
    return struct.pack('<i', len(body) + 4) + body


def open_fragment(r):
    """Returns an event of a change stream that is split, whose document is unterminated."""
    r.is_read = True
    yield r.message(r.cursor(raw_batch=element(with_bad_document(
        b'fullDocument', _id={'_data': '82AA'}, operationType='insert', splitEvent={'fragment': 1, 'of': 1}))))


def patched(data, offset, value):
    return data[:offset] + struct.pack('<i', value) + data[offset + 4:]


def in_mid_reply(r):
    yield r.message(r.cursor())[:40]
    raise Close


def after_header(r):
    yield r.message(r.cursor())[:16]
    raise Close


def at_once(r):
    raise Close
    yield


def first_time(r):
    if r.seen == 0:
        raise Close
    yield r.message(r.cursor())


def stepdown(r):
    if r.seen == 0:
        yield r.message(bson.encode({'ok': 0.0, 'code': 10107, 'codeName': 'NotWritablePrimary', 'errmsg': 'not primary'}))
    else:
        yield r.message(r.cursor())


def lost(code, times):
    """Returns empty batches and an open cursor, which each getMore loses, so many times."""
    def answer(r):
        if r.seen >= 2 * times:
            yield r.message(r.cursor())
        elif not r.is_more:
            yield r.message(r.cursor([], CURSOR_ID))
        elif code is None:
            raise Close
        else:
            yield r.message(bson.encode({'ok': 0.0, 'code': code, 'errmsg': 'lost'}))
    return answer


def byte_by_byte(r):
    for byte in r.message(r.cursor()):
        yield bytes([byte])


def empty_batches(r):
    yield r.message(r.cursor() if r.seen >= 5 else r.cursor([], CURSOR_ID))


def with_unknown_fields(body):
    """Returns a reply, with a field after the cursor's and another before the reply's."""
    reply = bson.decode(body)
    if 'cursor' in reply:
        reply['cursor'] |= {'partialResultsReturned': False, 'atClusterTime': bson.Timestamp(1, 1), 'metrics': {'keysExamined': 1}}
    return bson.encode({'metrics': {'executionMicros': bson.Int64(5)}, **reply, 'opTime': {'ts': bson.Timestamp(1, 1), 't': bson.Int64(1)}})


def error(**fields):
    return lambda r: [r.message(bson.encode({'ok': 0.0, **fields}))]


def written(**fields):
    return lambda r: [r.message(bson.encode({'n': 1, **fields, 'ok': 1.0}))]


# Once set, no client can connect.
gone = threading.Event()


def written_and_gone(**fields):
    def replies(r):
        gone.set()
        return written(errorLabels=['RetryableWriteError'], **fields)(r)
    return replies


def argument(name, default=None):
    return next((a.split('=', 1)[1] for a in sys.argv if a.startswith('--%s=' % name)), default)


# One value of each BSON type that Python can encode, for mutated().
EVERYTHING = bson.encode({
    '_id': bson.ObjectId('5f1e2d3c4b5a69788796a5b4'), 'double': 1.5, 'string': 'h\u00e9llo \U0010ffff',
    'document': {'a': 1, 'b': {'c': 'x'}}, 'numbers': [1, 2, None], 'matrix': [[1, 2], [3, 4]],
    'binary': bson.Binary(b'\0\1\xff', 0x80), 'old_binary': bson.Binary(b'abc', 2),
    'uuid': bson.Binary(bytes(16), 4), 'boolean': True, 'date': bson.datetime_ms.DatetimeMS(1577934245123),
    'null': None, 'regex': bson.Regex('a"b', 'im'), 'code': bson.Code('f()'),
    'scoped': bson.Code('g()', {'a': 1}), 'int': -5, 'timestamp': bson.Timestamp(7, 8),
    'long': bson.Int64(2 ** 62), 'decimal': bson.Decimal128('1.10'), 'lowest': bson.MinKey(),
    'highest': bson.MaxKey(), 'address': {'city': 'Ulm', 'zip': 1, 'tags': ['a', 'b']},
    'objects': [{'p': 1}, {'p': 'x'}]})
ODD_BYTES = (0, 1, 2, 3, 4, 5, 0x0c, 0x0d, 0x0f, 0x13, 0x7f, 0x80, 0xff)
ODD_LENGTHS = (0, 1, 4, 5, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff)


def mutated(number, source=EVERYTHING):
    """Returns the source with some bytes damaged; the same for the same number."""
    random = Random(number)
    data = bytearray(source)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(4, len(data) - 1)
        what = random.randrange(4)
        if what == 0:
            data[at] = random.choice(ODD_BYTES + (random.randrange(256),))
        elif what == 1:
            length = random.choice(ODD_LENGTHS + (len(data) - at, len(data) - at - 4, len(data) - at - 5))
            data[at:at + 4] = struct.pack('<I', length & 0xffffffff)
        elif what == 2:
            del data[at:at + random.choice((1, 4, 20))]
        else:
            data[at:at] = random.randbytes(random.choice((1, 4)))
        data = data if len(data) > 10 else bytearray(source)
    data[:4] = struct.pack('<i', len(data))
    data[-1] = 0
    return bytes(data)


def spoilt(message, random):
    """Returns a message with some bytes changed, removed or inserted."""
    data = bytearray(message)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        # as often in the header as in the document
        at = random.randrange(min(len(data), random.choice((21, 70, len(data)))))
        what = random.randrange(5)
        if what == 0:
            data[at] = random.choice(ODD_BYTES + (random.randrange(256),))
        elif what == 1:
            length = random.choice(ODD_LENGTHS + (len(data), len(data) - 1, len(data) - 16, len(data) - 21, 47_000_000))
            data[at:at + 4] = struct.pack('<I', length & 0xffffffff)
        elif what == 2:
            del data[at:at + random.choice((1, 4, 20))]
        elif what == 3:
            data[at:at] = random.randbytes(random.choice((1, 4, 100)))
        else:
            data[at] ^= 1 << random.randrange(8)
        data = data or bytearray(1)
    if random.random() < 0.7:
        data[:4] = struct.pack('<I', len(data))
    return bytes(data)


def spoilt_reply(r, make=None):
    """Sends a damaged reply, the same for the same number of earlier requests; then closes."""
    random = Random(r.seen + int(argument('seed', '0')))
    message = b''.join(make(r)) if make else r.message(r.cursor(2 * [DOCUMENT], random.choice((0, CURSOR_ID))))
    yield spoilt(message, random)
    raise Close


def deep(levels, kind):
    """Returns nested documents (kind 3) or arrays (4), as field "v" of a document."""
    sizes = range(5 + 8 * levels, 4, -8)
    nested = b''.join(struct.pack('<i', size) + bytes([kind]) + b'0\0' for size in sizes[:-1])
    nested += struct.pack('<i', 5) + b'\0' * (levels + 1)
    return element(nested, b'v', kind)


# A good document, whose bytes are then damaged.
GOOD = bson.encode(DOCUMENT)

BEHAVIOURS = {
    'good': lambda r: [r.message(r.cursor())],
    'byte_by_byte': byte_by_byte,
    'empty_batches': empty_batches,
    'close_first_time': first_time,
    'stepdown_first_time': stepdown,

    **{'lost_%d' % code: lost(code, 1) for code in (43, 136, 175, 237, 10107)},
    'lost_connection': lost(None, 1),
    'lost_twice': lost(43, 2),
    'lost_connection_twice': lost(None, 2),
    'other_error': lost(2, 1),

    'length_zero': lambda r: [r.message(r.cursor(), length=0)],
    'length_15': lambda r: [r.message(r.cursor(), length=15)],
    'length_negative': lambda r: [r.message(r.cursor(), length=-1)],
    'length_huge': lambda r: [r.message(r.cursor(), length=0x7fffffff)],
    'length_too_short': lambda r: [r.message(r.cursor(), length=60)],
    'header_only': lambda r: [r.message(b'', length=21)],
    'wrong_response_to': lambda r: [r.message(r.cursor(), response_to=r.id + 1)],
    'wrong_opcode': lambda r: [r.message(r.cursor(), opcode=OP_REPLY)],
    'compressed': lambda r: [r.message(r.cursor(), opcode=2012)],
    'more_to_come': lambda r: [r.message(r.cursor(), flags=2)],
    'checksum': lambda r: [r.message(r.cursor() + b'abcd', flags=1)],
    'unknown_flag': lambda r: [r.message(r.cursor(), flags=0x20)],
    'section_kind_1': lambda r: [r.message(r.cursor(), kind=1)],
    'two_replies': lambda r: [2 * r.message(r.cursor())],
    'document_too_long': lambda r: [r.message(patched(r.cursor(), 0, 100000))],
    'document_too_short': lambda r: [r.message(patched(r.cursor(), 0, 20))],
    'not_bson': lambda r: [r.message(b'\x30\0\0\0' + 43 * b'\xff' + b'\0')],
    'no_ok': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'id': bson.Int64(0), 'ns': 'db.c'}}))],
    'two_bodies': lambda r: [r.message(r.cursor() + b'\0' + r.cursor())],
    'body_and_sequence': lambda r: [r.message(r.cursor() + b'\1' + sequence())],
    'section_kind_2': lambda r: [r.message(r.cursor(), kind=2)],
    'section_kind_255': lambda r: [r.message(r.cursor(), kind=255)],
    'batch_of_another_type': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': {'0': DOCUMENT}, 'nextBatch': 5, 'id': bson.Int64(0), 'ns': 'db.c'}, 'ok': 1.0}))],
    'id_of_another_type': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'id': 'x', 'ns': 'db.c'}, 'ok': 1.0}))],
    'id_double': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'id': 1.5, 'ns': 'db.c'}, 'ok': 1.0}))],
    'no_id': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'ns': 'db.c'}, 'ok': 1.0}))],
    'garbage_after_cursor': lambda r: [r.message(garbage_after(r.cursor()))],
    'empty_document': lambda r: [r.message(bson.encode({}))],
    'no_cursor': lambda r: [r.message(bson.encode({'ok': 1.0}))],
    'cursor_of_another_type': lambda r: [r.message(bson.encode({'cursor': 'x', 'ok': 1.0}))],
    'no_batch': lambda r: [r.message(bson.encode({'cursor': {'id': bson.Int64(0), 'ns': 'db.c'}, 'ok': 1.0}))],
    'no_namespace': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'id': bson.Int64(1), 'ns': ''}, 'ok': 1.0}))],
    'namespace_too_long': lambda r: [r.message(bson.encode({'cursor': {'firstBatch': [], 'nextBatch': [], 'id': bson.Int64(1), 'ns': 'db.' + 1000 * 'x'}, 'ok': 1.0}))],
    'element_too_long': lambda r: [r.message(r.cursor(raw_batch=element(patched(GOOD, 0, len(GOOD) + 1))))],
    'element_huge': lambda r: [r.message(r.cursor(raw_batch=element(patched(GOOD, 0, 0x7fffffff))))],
    'element_negative': lambda r: [r.message(r.cursor(raw_batch=element(patched(GOOD, 0, -5))))],
    'element_not_terminated': lambda r: [r.message(r.cursor(raw_batch=element(GOOD[:-1] + b'x')))],
    'element_of_another_type': lambda r: [r.message(r.cursor(raw_batch=element(b'\1\0\0\0', kind=16)))],
    'element_key_open': lambda r: [r.message(r.cursor(raw_batch=struct.pack('<i', 10) + b'\3xxxx\0'))],
    'element_without_value': lambda r: [r.message(r.cursor(raw_batch=element(b'')))],
    'garbage_document': lambda r: [r.message(r.cursor(raw_batch=element(b'\x20\0\0\0' + 27 * b'\xfe' + b'\0')))],
    'string_too_long': lambda r: [r.message(r.cursor(raw_batch=element(GOOD.replace(struct.pack('<i', 6) + b'seven', struct.pack('<i', 6000) + b'seven'))))],
    'mutated': lambda r: [r.message(r.cursor(raw_batch=element(mutated(r.seen))))],
    'spoilt': spoilt_reply,
    'deep_documents': lambda r: [r.message(r.cursor(raw_batch=element(deep(1000000, 3))))],
    'deep_arrays': lambda r: [r.message(r.cursor(raw_batch=element(deep(1000000, 4))))],

    'cluster_time_open': lambda r: [r.message(with_bad_document(b'$clusterTime', n=1, ok=1.0))],
    'cluster_time_short': lambda r: [r.message(with_bad_document(b'$clusterTime', cut=True, n=1, ok=1.0))],
    'topology_version_open': lambda r: [r.message(with_bad_document(b'topologyVersion', ok=0.0, code=10107))],
    'write_concern_error_open': lambda r: [r.message(with_bad_document(b'writeConcernError', n=1, ok=1.0))],
    'write_concern_error_text': written(writeConcernError='text'),
    'write_concern_error_code_zero': written(writeConcernError={'code': 0}),
    'labels_text': written(errorLabels='text'),
    'code_zero': error(code=0, errmsg='nothing'),
    'code_of_33_bits': error(code=bson.Int64(2 ** 32), errmsg='nothing'),
    'write_errors_of_odd_types': written(writeErrors=[7, {'index': 'x', 'code': {}, 'errmsg': 5}, 'x']),
    'write_errors_out_of_range': written(writeErrors=[{'index': 2 ** 31 - 1, 'code': 11000, 'errmsg': 'x'}]),
    'write_errors_negative': written(writeErrors=[{'index': -7, 'code': 11000, 'errmsg': 'x'}]),
    'upserted_negative': written(upserted=[{'index': -7, '_id': 1}]),
    'upserted_out_of_range': written(upserted=[{'index': 2 ** 31 - 1, '_id': 1}]),

    'refused_and_gone': written_and_gone(writeErrors=[{'index': 99, 'code': 11000, 'errmsg': 'x'}]),
    'duplicate_and_gone': written_and_gone(writeErrors=[{'index': 0, 'code': 11000, 'errmsg': 'x'}],
                                           writeConcernError={'code': 91, 'errmsg': 'x'}),

    'close_at_once': at_once,
    'close_after_header': after_header,
    'close_in_mid_reply': in_mid_reply,

    'cursor_not_found': error(code=43, codeName='CursorNotFound', errmsg='cursor id 4711 not found'),
    'unknown_stage': error(code=40324, codeName='Location40324', errmsg="Unrecognized pipeline stage name: '$set'"),
    'unknown_expression': error(code=168, codeName='InvalidPipelineOperator',
                                errmsg="Invalid $project :: caused by :: Unrecognized expression '$dateTrunc'"),
    'unknown_accumulator': error(code=15952, codeName='Location15952', errmsg="unknown group operator '$top'"),
    'lacks_collation': error(code=238, codeName='NotImplemented', errmsg='find: support for field "collation" with value &{map[locale:1]} is not implemented yet'),
    # of FerretDB 2
    'lacks_collation_of_find': error(code=1, codeName='InternalError', errmsg='collation is not supported in the find command yet.'),
    'lacks_collation_of_update': error(code=115, codeName='CommandNotSupported', errmsg="BSON field 'update.updates.collation' is not yet supported"),
    'lacks_operator': error(code=238, codeName='NotImplemented', errmsg='Invalid $match :: caused by :: The operator $eq is not implemented yet'),
    'lacks_stage': error(code=238, codeName='NotImplemented', errmsg='`aggregate` stage "$sample" is not implemented yet'),
    # of MongoDB 7 and 8
    'unknown_fields': lambda r: [r.message(with_unknown_fields(r.cursor()))],
    # a time series collection, whose cursor is that of its buckets
    'series_x': lambda r: [r.message(r.cursor(cursor_id=CURSOR_ID).replace(b'db.series_x', b'db.bucket_x'))],
    'bucket_x': lambda r: [r.message(r.cursor())],
    'temporarily_unavailable': error(code=365, codeName='TemporarilyUnavailable', errmsg='dirty or stuck cache'),
    'overloaded': error(code=462, codeName='IngressRequestRateLimitExceeded', errmsg='too many requests',
                        errorLabels=['SystemOverloadedError', 'RetryableError']),
    'too_large_for_cache': error(code=388, codeName='TransactionTooLargeForCache', errmsg='transaction is too large'),
    'error_without_code': error(errmsg='something went wrong'),
    'fragment_open': open_fragment,
    'error_of_odd_types': error(code='x', codeName=5, errmsg=bson.Int64(3)),
    'error_not_utf8': lambda r: [r.message(bson.encode({'ok': 0.0, 'code': 2, 'errmsg': 'QQQQ'}).replace(b'QQQQ', b'\xff\xfe\xc3\x01'))],
}


# Replies compressed by zlib, good and bad; 48 MB of zeros become 48 kB.
def packed(r, body=None, size=None, compressor=2, opcode=OP_MSG, spoil=lambda data: data):
    plain = r.message(r.cursor() if body is None else body)[16:]
    data = struct.pack('<iiB', opcode, len(plain) if size is None else size, compressor) + spoil(zlib.compress(plain))
    return [struct.pack('<iiii', 16 + len(data), 1, r.id, OP_COMPRESSED) + data]


def bomb(r, size):
    data = struct.pack('<iiB', OP_MSG, size, 2) + zlib.compress(bytes(100_000_000))
    return [struct.pack('<iiii', 16 + len(data), 1, r.id, OP_COMPRESSED) + data]


PACKED = {
    'good': packed,
    'not_packed': lambda r: [r.message(r.cursor())],
    'size_zero': lambda r: packed(r, size=0),
    'size_small': lambda r: packed(r, size=30),
    'size_large': lambda r: packed(r, size=5000),
    'size_huge': lambda r: packed(r, size=0x7fffffff),
    'size_negative': lambda r: packed(r, size=-1),
    'bomb': lambda r: bomb(r, 40_000_000),
    'bomb_announced': lambda r: bomb(r, 100_000_000),
    'no_compressor': lambda r: packed(r, compressor=0),
    'another_compressor': lambda r: packed(r, compressor=1),
    'unknown_compressor': lambda r: packed(r, compressor=77),
    'twice': lambda r: packed(r, opcode=OP_COMPRESSED),
    'other_opcode': lambda r: packed(r, opcode=OP_REPLY),
    'garbage': lambda r: packed(r, spoil=lambda data: b'\xff' * len(data)),
    'cut': lambda r: packed(r, spoil=lambda data: data[:-9]),
    'nothing': lambda r: packed(r, spoil=lambda data: b''),
    'one_byte': lambda r: packed(r, spoil=lambda data: b'x'),
    'spoilt': lambda r: spoilt_reply(r, packed),
    'bad_inside': lambda r: packed(r, patched(r.cursor(), 0, 100000)),
}


def greeting(request_id, body=None, length=None, response_to=None, count=1, opcode=OP_REPLY, end=b''):
    body = bson.encode(HELLO) if body is None else body
    rest = struct.pack('<iiiiqii', 1, request_id if response_to is None else response_to, opcode, 8, 0, 0, count) + body + end
    return struct.pack('<i', len(rest) + 4 if length is None else length) + rest


def greeting_message(request_id, **how):
    return Request(request_id, {}, 0).message(bson.encode(HELLO), **how)


greetings_sent = 0


def spoilt_greeting(request_id):
    global greetings_sent
    greetings_sent += 1
    random = Random(greetings_sent + int(argument('seed', '0')))
    return spoilt(random.choice((greeting, greeting_message))(request_id), random)


GREETINGS = {
    'good': greeting,
    'spoilt': spoilt_greeting,
    'length_zero': lambda i: greeting(i, length=0),
    'length_20': lambda i: greeting(i, length=20),
    'length_30': lambda i: greeting(i, length=30),
    'length_negative': lambda i: greeting(i, length=-1),
    'length_huge': lambda i: greeting(i, length=0x7fffffff),
    'another_request': lambda i: greeting(i, response_to=i + 1),
    'count_0': lambda i: greeting(i, count=0),
    'count_huge': lambda i: greeting(i, count=0x7fffffff),
    'document_long': lambda i: greeting(i, body=patched(bson.encode(HELLO), 0, 100000)),
    'document_short': lambda i: greeting(i, body=patched(bson.encode(HELLO), 0, 20)),
    'document_open': lambda i: greeting(i, body=bson.encode(HELLO)[:-1] + b'x'),
    'not_bson': lambda i: greeting(i, body=b'\x30\0\0\0' + 43 * b'\xff' + b'\0'),
    'unknown_opcode': lambda i: greeting(i, opcode=4711),
    'insert': lambda i: greeting(i, opcode=2002),
    'query': lambda i: greeting(i, opcode=2004),
    'message_short': lambda i: greeting_message(i, length=60),
    'message_section_1': lambda i: greeting_message(i, kind=1),
    'message_empty': lambda i: struct.pack('<iiiiiBi', 25, 1, i, OP_MSG, 0, 0, 0),
    'compressed_size_huge': lambda i: struct.pack('<iiiiiiB', 35, 1, i, OP_COMPRESSED, OP_MSG, 0x7fffffff, 0) + bytes(10),
    'compressed_overflow': lambda i: struct.pack('<iiiiiiB', 1025, 1, i, OP_COMPRESSED, OP_REPLY, 10, 0) + bytes(1000),
    'compressed_nothing': lambda i: struct.pack('<iiii', 16, 1, i, OP_COMPRESSED),
}


def greeting_with(**fields):
    return lambda i: greeting(i, body=bson.encode({**HELLO, **fields}))


GREETINGS.update({
    'hosts_of_numbers': greeting_with(setName='rs', hosts=[1, 2]),
    'hosts_without_port': greeting_with(setName='rs', hosts=['']),
    'hosts_of_colons': greeting_with(setName='rs', hosts=['a:1:2']),
    'hosts_bracket': greeting_with(setName='rs', hosts=['a]:1']),
    'hosts_nothing': greeting_with(setName='rs', hosts=['[]:1']),
    'hosts_open': greeting_with(setName='rs', hosts=['[::1']),
    'hosts_long': greeting_with(setName='rs', hosts=['a' * 300 + ':1']),
    'hosts_many': greeting_with(setName='rs', hosts=[f'127.0.0.1:{port}' for port in range(1, 3000)]),
    'passives_of_numbers': greeting_with(setName='rs', hosts=[], passives=[None]),
    'compression_of_numbers': greeting_with(compression=[1]),
    'authentication_text': greeting_with(speculativeAuthenticate='text'),
    'code_zero': greeting_with(ok=0.0, code=0),
    'cluster_time_open': lambda i: greeting(i, body=with_bad_document(b'$clusterTime', **HELLO)),
})


# MongoDB 7.0 to 8.2, with the fields that their hello has gained.
GREETINGS.update({f'wire_{version}': greeting_with(
    maxWireVersion=version, connectionId=7, localTime=datetime.datetime(2026, 1, 1), logicalSessionTimeoutMinutes=30,
    topologyVersion={'processId': bson.ObjectId(), 'counter': bson.Int64(0)}, saslSupportedMechs=['SCRAM-SHA-256'],
    maxMessageSizeBytes=48000000, isImplicitDefaultMajorityWC=True, cwwc={'w': 'majority'})
    for version in range(21, 28)})


# Replies to a client's nonce.
SCRAM = {
    'iterations': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i=2147483647' % nonce,
    'iterations_too_many': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i=100001' % nonce,
    'iterations_many': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i=100000' % nonce,
    'lost': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i=5000' % nonce,
    'shutdown': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i=5000' % nonce,
    'attribute_cut': lambda nonce: b'r=%sX,s=MTIzNDU2Nzg5MDEyMzQ1Ng==,i' % nonce,
    'attribute_alone': lambda nonce: b'v',
}


def sasl_start(command):
    if command['mechanism'].startswith('SCRAM'):
        return scram(command)
    payload = command['payload']
    payload = base64.b64decode(payload) if isinstance(payload, str) else bytes(payload)
    user, _, password = argument('plain', ':').partition(':')
    if payload == b'\0' + user.encode() + b'\0' + password.encode():
        return bson.encode({'conversationId': 1, 'done': True, 'payload': b'', 'ok': 1.0})
    begun = '' if command['mechanism'] == 'PLAIN' else ' %d bytes, %s' % (len(payload), payload[:12].hex())
    return bson.encode({'ok': 0.0, 'code': 18, 'codeName': 'AuthenticationFailed',
                        'errmsg': '%s of %s failed:%s' % (command['mechanism'], command['$db'], begun)})


def scram(command):
    nonce = command['payload'].split(b'r=')[1]
    return bson.encode({'conversationId': 1, 'done': False, 'ok': 1.0,
                        'payload': bson.Binary(SCRAM[argument('scram')](nonce))})


def scan_plan(filter):
    return {'queryPlanner': {'winningPlan': {'stage': 'FETCH', 'filter': filter, 'inputStage': {
        'stage': 'IXSCAN', 'indexName': 'a_1', 'direction': 'backward', 'indexBounds': {'a': ['[1, 2]']}}}},
        'executionStats': {'totalKeysExamined': 2, 'totalDocsExamined': bson.Int64(1), 'executionTimeMillis': 3}}


def nested_plan(levels):
    plan = {'stage': 'FETCH'}
    for _ in range(levels):
        plan = {'stage': 'FETCH', 'inputStage': plan}
    return {'queryPlanner': {'winningPlan': plan}}


LOOKUP = {'$lookup': {'from': 'b', 'as': 'c'}, 'totalKeysExamined': bson.Int64(5), 'totalDocsExamined': bson.Int64(6),
          'indexesUsed': ['_id_']}
PLANS = {
    'plan_shards': {'shards': {'east': {'stages': [{'$cursor': scan_plan({'x': 1})}, LOOKUP]},
                               'west': scan_plan({'x': 2})}},
    'plan_merge': {'queryPlanner': {'winningPlan': {'stage': 'SHARD_MERGE', 'shards': [
        {'shardName': 'east', 'winningPlan': {'stage': 'COLLSCAN'}},
        {'shardName': 'west', 'winningPlan': {'queryPlan': {'stage': 'IDHACK'}}}]}}},
    'plan_long': scan_plan({'x': {'$in': ['h\u00e9' * 10] * 100}}),
    'plan_nested': nested_plan(90),
    'plan_express': {'explainVersion': '1', 'queryPlanner': {'winningPlan': {
        'isCached': False, 'stage': 'EXPRESS_IXSCAN', 'keyPattern': "{ '_id': 1 }", 'indexName': '_id_'}}},
    'plan_slots': {'explainVersion': '2', 'queryPlanner': {'winningPlan': {
        'isCached': False, 'queryPlan': {'stage': 'GROUP', 'planNodeId': 3, 'inputStage': {'stage': 'COLLSCAN', 'planNodeId': 1}},
        'slotBasedPlan': {'slots': '$$RESULT=s3', 'stages': '[1] scan s1'}}}},
    'plan_missing': {'hello': 'world'},
    'plan_of_odd_types': {'queryPlanner': {'winningPlan': [1, {'stage': 5}, {'stage': 'FETCH', 'inputStage': 'x'}]},
                          'stages': 7, 'shards': [], 'executionStats': 3},
    'plan_not_utf8': {'queryPlanner': {'winningPlan': {'stage': 'FETCH', 'filter': bson.Binary(b'\0')}}},
}


def explained(collection, seen):
    """Returns the reply to explain."""
    if collection == 'plan_mutated':
        return mutated(seen, bson.encode({**PLANS['plan_shards'], **scan_plan({'y': [1]}), 'ok': 1.0}))
    reply = bson.encode({**PLANS[collection], 'ok': 1.0})
    return reply.replace(b'FETCH', b'FE\xffCH') if collection == 'plan_not_utf8' else reply


EVENT = {'_id': {'_data': '82AA'}, 'operationType': 'insert', 'documentKey': {'_id': 1}, 'fullDocument': DOCUMENT}


@functools.cache
def many_fields(count):
    """Returns a document of as many fields, each with its own name."""
    body = b''.join(b'\x10%x\0\0\0\0\0' % number for number in range(count)) + b'\0'
    return struct.pack('<i', len(body) + 4) + body


def tree(levels, width, name=''):
    return {f'{name}{number}': tree(levels - 1, width, f'{name}{number}_') if levels > 1 else number for number in range(width)}


def documents_of(command, name):
    """Returns what a good server has for a command of IMPORT, ANALYZE or mongo_fdw_check()."""
    if name == 'listCollections':
        return [{'name': 'good', 'type': 'collection'}, {'name': 'view', 'type': 'view'}]
    if name == 'listIndexes':
        return [{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}, {'v': 2, 'key': {'id': 1, 'info': -1}, 'name': 'id_1'}]
    if '$changeStream' in (command.get('pipeline') or [{}])[0]:
        return 3 * [EVENT, {**EVENT, 'splitEvent': {'fragment': 1, 'of': 2}}, {**EVENT, 'splitEvent': {'fragment': 2, 'of': 2}}]
    if '$bsonSize' in str(command):
        return [{'_id': None, 'bytes': 40.5}]
    return 3 * [{**DOCUMENT, 'part': {'a': [1, {'b': 'x'}], 'c': 1.5}}]


ODD_VALUES = [float('inf'), float('nan'), -1, 0, 2 ** 62, -2 ** 63, '', 'x' * 100000, [], {}, None, True, bson.MinKey(),
              bson.ObjectId(), bson.Decimal128('NaN'), [[[[]]]], {'a': {'a': {'a': 1}}}, bson.Binary(bytes(16), 4), 'a.$b', 'id']


def odd(value, random):
    """Returns a reply with another value in some place."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        value = {other: odd(one, random) if other == key else one for other, one in value.items()}
        return {(random.choice(('', 'a.b', '$x', 'x' * 5000)) if other == key and random.random() < 0.2 else other): one
                for other, one in value.items()}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return value[:at] + [odd(value[at], random)] + value[at + 1:] * random.choice((1, 1, 1000))
    return random.choice(ODD_VALUES)


def cursor_reply(command, name, documents, cursor_id=0):
    return {'cursor': {'nextBatch' if name == 'getMore' else 'firstBatch': documents, 'id': bson.Int64(cursor_id),
                       'ns': command['$db'] + '.good'}, 'ok': 1.0}


def catalog_good(command, name, seen, documents=None):
    if name == 'count':
        return bson.encode({'n': 3, 'ok': 1.0})
    if name == 'explain':
        return bson.encode({'queryPlanner': {'winningPlan': {'stage': 'FETCH', 'inputStage': {'isMultiKey': False}}}, 'ok': 1.0})
    return bson.encode(cursor_reply(command, name, documents_of(command, name) if documents is None else documents))


def catalog_spoilt(command, name, seen):
    random = Random(seen + int(argument('seed', '0')))
    what = random.randrange(4)
    reply = {'n': 3, 'ok': 1.0} if name == 'count' else \
        cursor_reply(command, name, documents_of(command, name), random.choice((0, 0, CURSOR_ID)))
    if what == 0:
        return bson.encode(reply)
    return mutated(seen, bson.encode(reply)) if what == 1 else bson.encode({key: odd(value, random) if key == random.choice(list(reply)) else value for key, value in reply.items()})


def catalog_only(wanted, make, cursor_id=0):
    """Returns good replies, but for commands of this name."""
    def reply(command, name, seen):
        if name not in (wanted, 'getMore'):
            return catalog_good(command, name, seen)
        made = make(seen)
        return made if isinstance(made, bytes) else bson.encode(cursor_reply(command, name, made, cursor_id))
    return reply


def raw_document(document):
    """Returns the reply of a cursor with one document."""
    batch = element(document)
    inner = b'\x04firstBatch\0' + batch + bson.encode({'id': bson.Int64(0), 'ns': 'db.good'})[4:]
    body = b'\x03cursor\0' + struct.pack('<i', len(inner) + 4) + inner + bson.encode({'ok': 1.0})[4:]
    return struct.pack('<i', len(body) + 4) + body


# Replies by database, which is the collection where there is none.
CATALOG = {
    'good': catalog_good,
    'spoilt': catalog_spoilt,
    'fields': catalog_only('aggregate', lambda seen: raw_document(many_fields(2_000_000))),
    'tree': catalog_only('aggregate', lambda seen: [tree(4, 20)]),
    'names': catalog_only('listCollections', lambda seen: [{'name': 80 * 'x' + str(number), 'type': 'collection'}
                                                           for number in range(30000)]),
    'endless_names': catalog_only('listCollections', lambda seen: [{'name': f'{seen}_{number}', 'type': 'collection'}
                                                                   for number in range(3000)], CURSOR_ID),
    'indexes': catalog_only('listIndexes', lambda seen: [{'key': {f'k{key}': 1 for key in range(50)}, 'name': f'i{number}'}
                                                         for number in range(20000)]),
    'infinite': lambda command, name, seen: bson.encode({'n': float('inf'), 'ok': 1.0}) if name == 'count' else
    catalog_good(command, name, seen),
    'long_error': lambda command, name, seen: bson.encode({'ok': 0.0, 'code': 2, 'errmsg': 40_000_000 * 'x'}),
    'fragments': catalog_only('aggregate', lambda seen: [{**EVENT, f'f{seen}': 1_000_000 * 'x',
                                                          'splitEvent': {'fragment': 1, 'of': 2 ** 40}}], CURSOR_ID),
}


def receive(connection, size):
    data = b''
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise Close
        data += part
    return data


def answer_greeting(request_id, opcode):
    if opcode == OP_QUERY:
        return GREETINGS[argument('greeting', 'good')](request_id)
    return greeting_message(request_id)


def receive_message(connection):
    """Receives one request; returns its id, opcode and uncompressed body."""
    length, request_id, _, opcode = struct.unpack('<iiii', receive(connection, 16))
    body = receive(connection, length - 16)
    if opcode == OP_COMPRESSED:
        opcode, size, _ = struct.unpack('<iiB', body[:9])
        body = zlib.decompress(body[9:])
        assert len(body) == size
    return request_id, opcode, body


def behaviour(collection):
    if collection.startswith('packed_'):
        return PACKED[collection.removeprefix('packed_')]
    return BEHAVIOURS[collection]


def serve(connection, seen):
    try:
        while True:
            request_id, opcode, body = receive_message(connection)
            # a section of another kind may follow, such as the documents of an insert
            command = bson.decode(body[5:5 + struct.unpack('<i', body[5:9])[0]]) if opcode == OP_MSG else {}
            name = next(iter(command), None)
            collection = command.get('collection' if name == 'getMore' else name)
            if '--catalog' in sys.argv and command.get('$db') in CATALOG and name != 'killCursors':
                database = command['$db']
                seen[database] = seen.get(database, 0) + 1
                reply = CATALOG[database](command, name, seen[database])
                connection.sendall(Request(request_id, command, 0).message(reply))
                continue
            if 'explain' in command:
                collection = command['explain']['find']
                request = Request(request_id, command, 0)
                connection.sendall(request.message(explained(collection, seen.get(collection, 0))))
                seen[collection] = seen.get(collection, 0) + 1
                continue
            if name == 'saslStart':
                connection.sendall(Request(request_id, command, 0).message(sasl_start(command)))
                continue
            if name == 'saslContinue' and argument('scram') == 'lost':
                raise Close
            if name == 'saslContinue' and argument('scram') == 'shutdown':
                connection.sendall(Request(request_id, command, 0).message(bson.encode({
                    'ok': 0.0, 'errmsg': 'interrupted at shutdown', 'code': 11600, 'codeName': 'InterruptedAtShutdown'})))
                continue
            if name not in ('find', 'getMore', 'insert', 'update', 'delete') and collection != 'fragment_open':
                if not (opcode == OP_MSG and struct.unpack('<I', body[:4])[0] & 2) or '--talkative' in sys.argv:
                    connection.sendall(answer_greeting(request_id, opcode))
                if argument('greeting') == 'spoilt':
                    raise Close
                continue

            request = Request(request_id, command, seen.get(collection, 0))
            seen[collection] = seen.get(collection, 0) + 1
            if collection.startswith('next_') and request.is_read and not request.is_more:
                connection.sendall(request.message(request.cursor(cursor_id=CURSOR_ID)))
                continue
            for part in behaviour(collection.removeprefix('next_'))(request):
                connection.sendall(part)
    except (Close, OSError):
        pass
    finally:
        connection.close()


def accept(listener, seen):
    while True:
        connection, _ = listener.accept()
        if gone.is_set():
            connection.close()
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection, seen), daemon=True).start()


def main():
    listener = socket.create_server(('127.0.0.1', 0))
    if '--replica-set' in sys.argv:
        me = '127.0.0.1:%d' % listener.getsockname()[1]
        HELLO.update(setName='rs', setVersion=1, electionId=bson.ObjectId(), secondary=False,
                     logicalSessionTimeoutMinutes=30, primary=me, me=me, hosts=[me, '127.0.0.1:1'],
                     lastWrite={'lastWriteDate': datetime.datetime.now()})
    if argument('compressor'):
        HELLO['compression'] = [argument('compressor')]
    threading.Thread(target=accept, args=(listener, {}), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == '__main__':
    main()
