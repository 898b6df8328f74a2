/*-------------------------------------------------------------------------
 *
 * frame.c
 *		Is this a message that a server may send us?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "frame.h"

#define FLAG_MORE_TO_COME	0x2
#define REQUIRED_FLAGS		0xffff	/* bits that a receiver must understand */

const char *
mongo_frame_check_header(const uint8 *header, uint32 request_id)
{
	uint32		length = get_int32(header);

	/* the smallest is an OP_MSG with an empty document */
	if (length < BODY_OFFSET + SMALLEST_DOCUMENT || length > LARGEST_MESSAGE)
		return "The message length is out of bounds.";
	if (get_int32(header + 8) != request_id)
		return "The message answers another request.";
	return NULL;
}

const char *
mongo_frame_check_message(const uint8 *message, size_t length)
{
	uint32		flags = get_int32(message + HEADER_SIZE);

	if (flags & FLAG_MORE_TO_COME)
		return "The message announces another one that was not asked for.";
	if (flags & REQUIRED_FLAGS)
		return "The message has flags that were not asked for.";
	if (message[HEADER_SIZE + 4] != 0)
		return "The message does not begin with a document.";
	if (get_int32(message + BODY_OFFSET) != length - BODY_OFFSET)
		return "The document does not fill the message.";
	if (message[length - 1] != '\0')
		return "The document is not terminated.";
	return NULL;
}

const char *
mongo_frame_check_compressed(const uint8 *message, const MongoCompressor *compressor,
							 size_t *expanded_size)
{
	uint32		size = get_int32(message + HEADER_SIZE + 4);
	const MongoCompressor *used = mongo_compressor_with_id(message[HEADER_SIZE + 8]);

	if (get_int32(message + HEADER_SIZE) != OP_MSG)
		return "The compressed message is not an OP_MSG.";
	if (used == NULL || (compressor != NULL && compressor != used))
		return "The message is compressed in a way that was not agreed on.";
	if (size < BODY_OFFSET - HEADER_SIZE + SMALLEST_DOCUMENT ||
		size > LARGEST_MESSAGE - HEADER_SIZE)
		return "The uncompressed size is out of bounds.";
	*expanded_size = HEADER_SIZE + size;
	return NULL;
}

const char *
mongo_frame_expand(const uint8 *message, size_t length, uint8 *target,
				   size_t expanded_size)
{
	const MongoCompressor *compressor = mongo_compressor_with_id(message[HEADER_SIZE + 8]);

	memcpy(target, message, HEADER_SIZE);
	put_int32(target, expanded_size);
	put_int32(target + 12, get_int32(message + HEADER_SIZE));
	if (!compressor->uncompress(message + COMPRESSED_OFFSET,
								length - COMPRESSED_OFFSET,
								target + HEADER_SIZE,
								expanded_size - HEADER_SIZE))
		return "The message cannot be uncompressed to the size it announces.";
	return mongo_frame_check_message(target, expanded_size);
}
