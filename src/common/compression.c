/*-------------------------------------------------------------------------
 *
 * compression.c
 *		The compressors for OP_COMPRESSED messages.
 *
 * Available are those that libmongoc was built with, as it negotiates them, if their library was
 * found when mongo_fdw was built.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

/* the Makefile defines WITH_... if it finds the header and the library */
#if defined(MONGOC_ENABLE_COMPRESSION_SNAPPY) && defined(WITH_SNAPPY)
#define HAVE_SNAPPY
#endif
#if defined(MONGOC_ENABLE_COMPRESSION_ZLIB) && defined(WITH_ZLIB)
#define HAVE_ZLIB
#endif
#if defined(MONGOC_ENABLE_COMPRESSION_ZSTD) && defined(WITH_LIBZSTD)
#define HAVE_ZSTD
#endif

#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "lib/stringinfo.h"

#ifdef HAVE_SNAPPY
static bool
snappy_pack(const uint8 *source, size_t size, int level pg_attribute_unused(),
			uint8 *target,
			size_t *target_size)
{
	return snappy_compress((const char *) source, size, (char *) target,
						   target_size) == SNAPPY_OK;
}

static bool
snappy_unpack(const uint8 *source, size_t size, uint8 *target,
			  size_t target_size)
{
	size_t		announced;

	return snappy_uncompressed_length((const char *) source, size,
									  &announced) == SNAPPY_OK &&
		announced == target_size &&
		snappy_uncompress((const char *) source, size, (char *) target,
						  &announced) == SNAPPY_OK &&
		announced == target_size;
}
#endif

#ifdef HAVE_ZLIB
static size_t
zlib_bound(size_t size)
{
	return compressBound(size);
}

static bool
zlib_pack(const uint8 *source, size_t size, int level, uint8 *target,
		  size_t *target_size)
{
	uLongf		packed = *target_size;
	bool		succeeded = compress2(target, &packed, source, size,
									  level) == Z_OK;

	*target_size = packed;
	return succeeded;
}

static bool
zlib_unpack(const uint8 *source, size_t size, uint8 *target,
			size_t target_size)
{
	uLongf		unpacked = target_size;

	return uncompress(target, &unpacked, source, size) == Z_OK &&
		unpacked == target_size;
}
#endif

#ifdef HAVE_ZSTD
static bool
zstd_pack(const uint8 *source, size_t size, int level pg_attribute_unused(),
		  uint8 *target,
		  size_t *target_size)
{
	/* 0 is zstd's default level; drivers have no option for it */
	size_t		packed = ZSTD_compress(target, *target_size, source, size, 0);

	*target_size = packed;
	return !ZSTD_isError(packed);
}

static bool
zstd_unpack(const uint8 *source, size_t size, uint8 *target,
			size_t target_size)
{
	/* an error code is larger than the size of any message */
	return ZSTD_decompress(target, target_size, source, size) == target_size;
}
#endif

static const MongoCompressor compressors[] =
{
#ifdef HAVE_SNAPPY
	{"snappy", 1, snappy_max_compressed_length, snappy_pack, snappy_unpack},
#endif
#ifdef HAVE_ZLIB
	{"zlib", 2, zlib_bound, zlib_pack, zlib_unpack},
#endif
#ifdef HAVE_ZSTD
	{"zstd", 3, ZSTD_compressBound, zstd_pack, zstd_unpack},
#endif
	{.name = NULL}
};

/*
 * mongo_compressor_named
 *		Returns the compressor of this name, whose length is given, ignoring case; NULL if there
 *		is none.
 */
const MongoCompressor *
mongo_compressor_named(const char *name, size_t length)
{
	for (const MongoCompressor *each = compressors; each->name != NULL; each++)
	{
		if (strlen(each->name) == length &&
			pg_strncasecmp(each->name, name, length) == 0)
			return each;
	}
	return NULL;
}

/*
 * mongo_compressor_names
 *		Returns the names of all compressors, "snappy, zlib, zstd"; palloc'd.
 */
char *
mongo_compressor_names(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (const MongoCompressor *each = compressors; each->name != NULL; each++)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", each->name);
	return names.data;
}

/*
 * mongo_compressor_negotiated
 *		Returns the compressor that the reply to "hello" selects, or NULL.
 */
const MongoCompressor *
mongo_compressor_negotiated(const bson_t *hello)
{
	const MongoCompressor *compressor = NULL;
	bson_iter_t iter;
	bson_iter_t element;

	if (!bson_iter_init_find(&iter, hello, "compression") ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &element))
		return NULL;

	/* the server returns the names in our order of preference */
	while (compressor == NULL && bson_iter_next(&element))
	{
		uint32_t	length;
		const char *name = bson_iter_utf8(&element, &length);

		if (name != NULL)
			compressor = mongo_compressor_named(name, length);
	}
	return compressor;
}
