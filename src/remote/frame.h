/*-------------------------------------------------------------------------
 *
 * frame.h
 *		Is this a message that a server may send us?
 *
 * The checks of what stands around a reply's document.  They neither raise nor
 * wait: they give NULL when all is well, and else what is wrong, a sentence for
 * DETAIL that is never freed.
 *
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FRAME_H
#define MONGO_FDW_FRAME_H

#include "compat.h"

#include "compression.h"
#include "port/pg_bswap.h"

#define OP_REPLY			1	/* answers libmongoc's first "hello" */
#define OP_COMPRESSED		2012
#define OP_MSG				2013

#define HEADER_SIZE			16	/* messageLength requestID responseTo opCode */
#define BODY_OFFSET			(HEADER_SIZE + 4 + 1)	/* flagBits, section kind */
#define SMALLEST_DOCUMENT	5

/* OP_COMPRESSED: originalOpcode, uncompressedSize, compressorId, then the rest */
#define COMPRESSED_OFFSET	(HEADER_SIZE + 4 + 4 + 1)

/* maxMessageSizeBytes, and 16 kB for what a command has of its own */
#define LARGEST_MESSAGE		(48000000 + 16384)

#if PG_BIGENDIAN
#define little_endian32(x)	pg_bswap32(x)
#else
#define little_endian32(x)	(x)
#endif

static inline void
put_int32(uint8 *destination, uint32 value)
{
	value = little_endian32(value);
	memcpy(destination, &value, 4);
}

static inline uint32
get_int32(const uint8 *source)
{
	uint32		value;

	memcpy(&value, source, 4);
	return little_endian32(value);
}

/*
 * mongo_frame_check_header
 *		The first HEADER_SIZE bytes of an answer to 'request_id'.
 *
 * The opcode is the caller's to check.
 */
extern const char *mongo_frame_check_header(const uint8 *header,
											uint32 request_id);

/*
 * mongo_frame_check_message
 *		A whole OP_MSG of 'length' bytes, as its header has it: exactly one
 *		document, beginning at BODY_OFFSET, and nothing else.
 */
extern const char *mongo_frame_check_message(const uint8 *message,
											 size_t length);

/*
 * mongo_frame_check_compressed
 *		A whole OP_COMPRESSED, whose header has been checked; *expanded_size is
 *		what it will be, with a header.
 *
 * 'compressor' is what it must be compressed with; NULL: any that there is.
 */
extern const char *mongo_frame_check_compressed(const uint8 *message,
												const MongoCompressor *compressor,
												size_t *expanded_size);

/*
 * mongo_frame_expand
 *		Uncompress what mongo_frame_check_compressed() has found good into
 *		'target', which has room for 'expanded_size' bytes.
 */
extern const char *mongo_frame_expand(const uint8 *message, size_t length,
									  uint8 *target, size_t expanded_size);

#endif							/* MONGO_FDW_FRAME_H */
