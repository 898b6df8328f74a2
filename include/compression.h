/*-------------------------------------------------------------------------
 *
 * compression.h
 *		The compressors that OP_COMPRESSED messages may name.
 *
 * Those that libmongoc was built with, since it is libmongoc that negotiates, and
 * whose libraries were there when we were built.
 *
 * https://github.com/mongodb/specifications (OP_COMPRESSED)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMPRESSION_H
#define MONGO_FDW_COMPRESSION_H

#include "compat.h"

/*
 * One compressor.  'id' is what messages call it.
 *
 * compress() needs room for bound(size) bytes, which *target_size says, and
 * sets it to those used; 'level' is zlib's, -1 its default.  uncompress() is
 * true only when the source gives exactly target_size bytes, and never writes
 * beyond them.  Neither raises.
 */
typedef struct MongoCompressor
{
	const char *name;
	uint8		id;
	size_t		(*bound) (size_t size);
	bool		(*compress) (const uint8 *source, size_t size, int level,
							 uint8 *target, size_t *target_size);
	bool		(*uncompress) (const uint8 *source, size_t size,
							   uint8 *target, size_t target_size);
} MongoCompressor;

/*
 * mongo_compressor_named
 *		The compressor of that name, letters in either case; NULL: there is none.
 *
 * 'length' is the name's; it need not be terminated.
 */
extern const MongoCompressor *mongo_compressor_named(const char *name,
													 size_t length);

/*
 * mongo_compressor_with_id
 *		The compressor that messages call so; NULL: there is none.
 */
extern const MongoCompressor *mongo_compressor_with_id(uint8 id);

/*
 * mongo_compressor_names
 *		The names of all there are, "snappy, zlib, zstd"; palloc'd.
 */
extern char *mongo_compressor_names(void);

/*
 * mongo_compressor_negotiated
 *		What the server agreed to in its answer to "hello"; NULL: nothing.
 */
extern const MongoCompressor *mongo_compressor_negotiated(const bson_t *hello);

#endif							/* MONGO_FDW_COMPRESSION_H */
