/*-------------------------------------------------------------------------
 *
 * common.h
 *		Used by all folders: BSON and its memory, privileges, structs as nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMON_H
#define MONGO_FDW_COMMON_H

#include "compat.h"

#include "lib/ilist.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/relcache.h"

/* Iterates over a dlist_head, as foreach_ptr() does; the body may remove the current element. */
#define foreach_dlist(type, member, variable, list) \
	for (bool variable##_once = true; variable##_once;) \
		for (type *variable = NULL; variable##_once; variable##_once = false) \
			for (dlist_node *variable##_next = (list)->head.next; \
				 variable##_next != NULL && variable##_next != &(list)->head && \
				 (variable = dlist_container(type, member, variable##_next), \
				  variable##_next = variable##_next->next, true);)

/* ------------------------------- bson_write.c ------------------------------ */

/* The alignment of a bson_t (bson-types.h), which is more than palloc() guarantees. */
#define MONGO_BSON_ALIGNMENT	128

/*
 * mongo_bson_palloc
 *		Returns space for a struct that contains a bson_t; it must not be passed to pfree().
 */
static inline void *
mongo_bson_palloc(MemoryContext context, Size size)
{
	return (void *) TYPEALIGN(MONGO_BSON_ALIGNMENT,
							  MemoryContextAlloc(context, size + MONGO_BSON_ALIGNMENT));
}

extern void mongo_appended(bool appended);
extern bson_t *mongo_bson_create_in(MemoryContext context);
extern bson_t *mongo_bson_copy_in(MemoryContext context, const bson_t *source);
extern bool mongo_bson_view(bson_t *view, const uint8_t *data, size_t length);
extern bool mongo_bson_view_at(bson_t *view, const bson_iter_t *iter);

static inline bson_t *
mongo_bson_create(void)
{
	return mongo_bson_create_in(CurrentMemoryContext);
}

/*-------------------------------------------------------------------------
 * Writing BSON documents.  A template shows the shape of a document in MongoDB's notation,
 * with @1 to @9 for values.
 *
 * mongo_append_template(match, "{$or: [{@1: {$lt: @2}}, {@1: NaN}]}",
 * 					 mongo_utf8(path), mongo_double(bound));
 *
 * A template is parsed each time, at a cost of some ten instructions per character.
 * Therefore append functions write what is needed for each row, and most of what is needed
 * for each execution of a prepared statement.
 *
 * A document that would exceed 1 GB raises 54000, a malformed template an internal error (XX000).
 *-------------------------------------------------------------------------
 */

/*
 * The type of a value in an array: bson_value_t without its alignment, which on processors of
 * 32 bits does not divide its size.
 */
typedef struct _bson_value_t BsonValue;

/*
 * Constructors of values.  A value refers to its argument, which must outlive it: strings,
 * documents and bytes are not copied.
 */

static inline bson_value_t
mongo_int32(int32 number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_INT32, .value.v_int32 = number};
}

static inline bson_value_t
mongo_int64(int64 number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_INT64, .value.v_int64 = number};
}

/* Returns an Int32 if the number fits, else an Int64. */
static inline bson_value_t
mongo_integer(int64 number)
{
	return number >= PG_INT32_MIN && number <= PG_INT32_MAX ?
		mongo_int32((int32) number) : mongo_int64(number);
}

static inline bson_value_t
mongo_double(double number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_DOUBLE, .value.v_double = number};
}

static inline bson_value_t
mongo_bool(bool truth)
{
	return (bson_value_t) {.value_type = BSON_TYPE_BOOL, .value.v_bool = truth};
}

static inline bson_value_t
mongo_null(void)
{
	return (bson_value_t) {.value_type = BSON_TYPE_NULL};
}

/* Returns a Date, of milliseconds since 1970. */
static inline bson_value_t
mongo_date(int64 millis)
{
	return (bson_value_t) {.value_type = BSON_TYPE_DATE_TIME, .value.v_datetime = millis};
}

/* Returns a Timestamp, of seconds since 1970 << 32 | number within the second. */
static inline bson_value_t
mongo_timestamp(uint64 time)
{
	return (bson_value_t) {.value_type = BSON_TYPE_TIMESTAMP,
		.value.v_timestamp = {(uint32) (time >> 32), (uint32) time}};
}

/* Returns a Timestamp as such a number; 0 if the value is none. */
static inline uint64
mongo_time_at(const bson_iter_t *iter)
{
	uint32_t	seconds = 0;
	uint32_t	increment = 0;

	if (BSON_ITER_HOLDS_TIMESTAMP(iter))
		bson_iter_timestamp(iter, &seconds, &increment);
	return (uint64) seconds << 32 | increment;
}

static inline bson_value_t
mongo_oid(const bson_oid_t *oid)
{
	return (bson_value_t) {.value_type = BSON_TYPE_OID, .value.v_oid = *oid};
}

/* Return a String, whose text is in UTF-8; length in bytes. */
static inline bson_value_t
mongo_utf8_sized(const char *string, size_t length)
{
	return (bson_value_t) {.value_type = BSON_TYPE_UTF8,
		.value.v_utf8 = {unconstify(char *, string), (uint32) length}};
}

static inline bson_value_t
mongo_utf8(const char *string)
{
	return mongo_utf8_sized(string, strlen(string));
}

static inline bson_value_t
mongo_regex(const char *pattern, const char *options)
{
	return (bson_value_t) {.value_type = BSON_TYPE_REGEX,
		.value.v_regex = {unconstify(char *, pattern), unconstify(char *, options)}};
}

static inline bson_value_t
mongo_binary(bson_subtype_t subtype, const uint8_t *bytes, uint32 length)
{
	return (bson_value_t) {.value_type = BSON_TYPE_BINARY,
		.value.v_binary = {unconstify(uint8_t *, bytes), length, subtype}};
}

static inline bson_value_t
mongo_document(const bson_t *document)
{
	return (bson_value_t) {.value_type = BSON_TYPE_DOCUMENT,
		.value.v_doc = {unconstify(uint8_t *, bson_get_data(document)), document->len}};
}

/* Returns a document with the keys "0", "1" and so on as an array. */
static inline bson_value_t
mongo_array(const bson_t *array)
{
	bson_value_t value = mongo_document(array);

	value.value_type = BSON_TYPE_ARRAY;
	return value;
}

/*
 * Append a value, or begin and end a document or an array in the document.  Raise 54000.  Where
 * a key's length is known, or the value is not at hand as one, libbson's own functions append,
 * within mongo_appended().
 */

static inline void
mongo_append(bson_t *document, const char *key, bson_value_t value)
{
	mongo_appended(bson_append_value(document, key, (int) strlen(key), &value));
}

static inline void
mongo_append_document_begin(bson_t *document, const char *key, bson_t *child)
{
	mongo_appended(bson_append_document_begin(document, key, (int) strlen(key), child));
}

static inline void
mongo_append_document_end(bson_t *document, bson_t *child)
{
	mongo_appended(bson_append_document_end(document, child));
}

static inline void
mongo_append_array_begin(bson_t *document, const char *key, bson_t *child)
{
	mongo_appended(bson_append_array_unsafe_begin(document, key, (int) strlen(key), child));
}

static inline void
mongo_append_array_end(bson_t *document, bson_t *child)
{
	mongo_appended(bson_append_array_end(document, child));
}

/* Appends the value at an iterator; its own key if 'key' is NULL. */
static inline void
mongo_append_iter(bson_t *document, const char *key, const bson_iter_t *iter)
{
	mongo_appended(bson_append_iter(document, key, key == NULL ? 0 : (int) strlen(key), iter));
}

/* Appends all elements of 'source'. */
static inline void
mongo_concat(bson_t *document, const bson_t *source)
{
	mongo_appended(bson_concat(document, source));
}

/*
 * mongo_append_template() appends the members of a template, which is an object.
 * mongo_append_member() appends a template of any kind as one member.  mongo_from_template()
 * returns a document, or an array, in the current memory context.
 *
 * In templates keys and operators have no quotes.  Values are integers, 'strings' (without
 * escapes), true, false, null, NaN, inf, min and max for MinKey and MaxKey, objects, arrays,
 * and @1 to @9 for the values that follow the template.  @1 may also be a key; it must be a
 * string then.
 */
#define mongo_append_template(document, text, ...) \
	mongo_append_template_values(document, text, MONGO_VALUES(__VA_ARGS__))
#define mongo_append_member(document, key, text, ...) \
	mongo_append_member_values(document, key, text, MONGO_VALUES(__VA_ARGS__))
#define mongo_from_template(text, ...) \
	mongo_from_template_values(text, MONGO_VALUES(__VA_ARGS__))

#define MONGO_VALUES(...) \
	(const BsonValue[]) {__VA_ARGS__}, \
	(int) (sizeof((const BsonValue[]) {__VA_ARGS__}) / sizeof(BsonValue))

/*
 * An array being written, with the key of its next element.  It is created by
 * mongo_array_create(), or in a document by {.bson = &child} after
 * mongo_append_array_begin(document, key, &child).
 */
typedef struct BsonArray
{
	bson_t	   *bson;			/* only these functions may append to it */
	uint32		count;			/* elements so far */
} BsonArray;

#define mongo_array_append_template(array, text, ...) \
	mongo_array_append_template_values(array, text, MONGO_VALUES(__VA_ARGS__))

extern void mongo_append_template_values(bson_t *document, const char *text,
										 const BsonValue *values, int nvalues);
extern void mongo_append_member_values(bson_t *document, const char *key, const char *text,
									   const BsonValue *values, int nvalues);
extern bson_t *mongo_from_template_values(const char *text,
										  const BsonValue *values, int nvalues);
extern void mongo_append_condition(bson_t *document, const char *path,
								   const char *operator_name, bson_value_t value);
extern bson_value_t mongo_field_path(const char *path);
extern bson_value_t mongo_first_value(const bson_t *document);
extern BsonArray mongo_array_create(void);
extern void mongo_array_append(BsonArray *array, bson_value_t value);
extern void mongo_array_append_template_values(BsonArray *array, const char *text,
											   const BsonValue *values, int nvalues);
extern void mongo_array_begin_document(BsonArray *array, bson_t *document);
extern void mongo_array_end_document(BsonArray *array, bson_t *document);

/* Cluster times are seconds << 32 | number within the second. */
extern char *mongo_format_cluster_time(uint64 time);
extern uint64 mongo_parse_cluster_time(const char *text);

/* ----------------------------- privileges.c ---------------------------- */

/* The tables whose documents are processed, as errors quote them; lives on the caller's stack. */
typedef struct MongoErrorSource
{
	ErrorContextCallback callback;
	List	   *relids;			/* OIDs of foreign tables */
	const char *function;		/* function with a quotable argument, or NULL */
} MongoErrorSource;

extern bool mongo_may_read(Oid relid, const char *column);
extern void mongo_push_error_source(MongoErrorSource *source, List *relids);
extern void mongo_pop_error_source(MongoErrorSource *source);
extern List *mongo_error_tables(void);
extern const char *mongo_error_function(void);
extern bool mongo_may_quote(const char *column);
extern bool mongo_may_quote_field(const char *field);

/* ------------------------------ compression.c ------------------------------ */

/*
 * A compressor, which OP_COMPRESSED messages identify by 'id'.
 *
 * compress() needs space for bound(size) bytes, which *target_size specifies, and sets
 * *target_size to the size used; 'level' is zlib's, -1 is its default.  uncompress()
 * returns true only if the source gives exactly target_size bytes, and never writes beyond
 * them.  Neither raises errors.
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

extern const MongoCompressor *mongo_compressor_named(const char *name, size_t length);
extern char *mongo_compressor_names(void);
extern const MongoCompressor *mongo_compressor_negotiated(const bson_t *hello);

/* --------------------------------- driver.c -------------------------------- */

/*
 * libmongoc's latest warning or error line; callers that read it set it to "" before.  Some
 * causes, such as a certificate that cannot be read, appear only in the log.
 */
#define MONGO_DRIVER_MESSAGE_SIZE	512
extern char mongo_driver_message[MONGO_DRIVER_MESSAGE_SIZE];

/* While set, libmongoc's lines are not logged, as they may quote a secret. */
extern bool mongo_driver_log_is_held;

/*
 * mongo_driver_is_entered
 *		Tells whether frames of libmongoc are on the stack, or were abandoned.
 *
 * At the end of a transaction or of the process it is true if that is reached from within a
 * call, or if mongo_protect() has abandoned one.  libmongoc may hold its locks then.
 */
static inline bool
mongo_driver_is_entered(void)
{
	return mongo_driver_depth > 0;
}

/* Returns the size that libbson and libmongoc allocate for so many bytes. */
static inline size_t
mongo_memory_grown(size_t size)
{
	return bson_next_power_of_two(size);
}

extern void mongo_skip_destructors(void);
pg_noreturn extern void mongo_memory_report(size_t size);
extern void mongo_driver_check(void);
extern void mongo_install_allocator(void);
extern void mongo_memory_check(size_t size);
extern bool mongo_protect(void (*function) (void *), void *argument);
extern void mongo_install_log_handler(void);
extern char *mongo_printable(const char *text);

/* ------------------------------ struct_nodes.c ----------------------------- */

/*
 * Structs as nodes in a plan, which is copied.
 * A table lists the struct's fields that are kept; the others are zero when the struct is
 * read.
 */

typedef enum MongoFieldKind
{
	MONGO_FIELD_NUMBERS,		/* adjacent bools, ints, enums, Oids and other
								 * numbers */
	MONGO_FIELD_STRING,			/* char *, may be NULL */
	MONGO_FIELD_NODE,			/* a node, or a List of nodes or numbers */
	MONGO_FIELD_STRUCTS			/* a List of palloc'd structs */
} MongoFieldKind;

typedef struct MongoStructField
{
	MongoFieldKind kind;
	size_t		offset;
	size_t		size;			/* of all the numbers */
	const struct MongoStructType *element;	/* of MONGO_FIELD_STRUCTS */
} MongoStructField;

typedef struct MongoStructType
{
	size_t		size;
	const MongoStructField *fields;
	int			nfields;
} MongoStructType;

/*
 * Macros for the rows of such a table, and for the struct with the table 'fields'.  A row of
 * numbers contains all fields from 'first' to 'last'.  They must have no padding between
 * them, as it would be copied.
 */
#define MONGO_STRUCT_FIELD(type, kind, field) \
	{MONGO_FIELD_##kind, offsetof(type, field), sizeof(((type *) NULL)->field), NULL}
#define MONGO_STRUCT_NUMBERS(type, first, last) \
	{MONGO_FIELD_NUMBERS, offsetof(type, first), \
	offsetof(type, last) + sizeof(((type *) NULL)->last) - offsetof(type, first), NULL}
#define MONGO_STRUCT_LIST(type, field, element) \
	{MONGO_FIELD_STRUCTS, offsetof(type, field), sizeof(List *), element}
#define MONGO_STRUCT_TYPE(type, fields) \
	{sizeof(type), fields, lengthof(fields)}

extern List *mongo_struct_to_list(const MongoStructType *type, const void *source);
extern void *mongo_struct_from_list(const MongoStructType *type, const List *list);

/* ------------------------------- nearest.c --------------------------------- */

extern const char *mongo_nearest_name(const List *names, const char *name);

/* ---------------------------- subtransaction.c ----------------------------- */

extern bool mongo_try(void (*function) (void *), void *argument,
					  bool (*is_expected) (int sqlstate), ErrorData **error);

#endif							/* MONGO_FDW_COMMON_H */
