/*-------------------------------------------------------------------------
 *
 * common.h
 *		What every folder uses: BSON and its memory, privileges, nodes of structs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMON_H
#define MONGO_FDW_COMMON_H

#include "compat.h"

#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/relcache.h"

/*
 * BSON documents whose life is that of a memory context.
 *
 * libbson allocates with malloc(), which an ERROR would leak.  A document made here
 * is destroyed when its memory context is reset or deleted: it must not be passed to
 * bson_destroy() or bson_steal().  Raise 53200 when out of memory.
 */

/* The alignment of a bson_t, see bson-types.h: more than palloc() promises. */
#define BSON_ALIGNMENT	128

/* bson_palloc: room for a struct with a bson_t; not to be given to pfree(). */
static inline void *
bson_palloc(MemoryContext context, Size size)
{
	return (void *) TYPEALIGN(BSON_ALIGNMENT,
							  MemoryContextAlloc(context, size + BSON_ALIGNMENT));
}

/* bson_create_in, bson_copy_in: an empty document, or a copy of another. */
extern bson_t *bson_create_in(MemoryContext context);
extern bson_t *bson_copy_in(MemoryContext context, const bson_t *source);

/*
 * bson_view, bson_view_at
 *		Read-only view of bytes, or of the document that an iterator is at, which must
 *		outlive it; false for what is no document whose length and end are right.
 */
extern bool bson_view(bson_t *view, const uint8_t *data, size_t length);
extern bool bson_view_at(bson_t *view, const bson_iter_t *iter);

/*-------------------------------------------------------------------------
 * How BSON documents are written: what has a shape as a template in MongoDB's
 * own notation, in which values stand as @1 to @9.
 *
 * bson_append_template(match, "{$or: [{@1: {$lt: @2}}, {@1: NaN}]}",
 * 					 bson_utf8(path), bson_double(bound));
 *
 * A template is read each time, for some ten instructions a character.  What is
 * written for each row, and most of what is written for each execution of a
 * prepared statement, is written by append functions.
 *
 * As libbson's own functions, these keep silent where a document would become longer
 * than 2 GB.  A fault in a template is an internal error (XX000).
 *-------------------------------------------------------------------------
 */

/*
 * Values to be written.  They refer to what they were made of, which must
 * outlive them: strings, documents and bytes are not copied.
 */

static inline bson_value_t
bson_int32(int32 number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_INT32, .value.v_int32 = number};
}

static inline bson_value_t
bson_int64(int64 number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_INT64, .value.v_int64 = number};
}

/* bson_integer: an Int32 if it is large enough. */
static inline bson_value_t
bson_integer(int64 number)
{
	return number >= PG_INT32_MIN && number <= PG_INT32_MAX ?
		bson_int32((int32) number) : bson_int64(number);
}

static inline bson_value_t
bson_double(double number)
{
	return (bson_value_t) {.value_type = BSON_TYPE_DOUBLE, .value.v_double = number};
}

static inline bson_value_t
bson_bool(bool truth)
{
	return (bson_value_t) {.value_type = BSON_TYPE_BOOL, .value.v_bool = truth};
}

static inline bson_value_t
bson_null(void)
{
	return (bson_value_t) {.value_type = BSON_TYPE_NULL};
}

/* bson_date: in milliseconds since 1970. */
static inline bson_value_t
bson_date(int64 millis)
{
	return (bson_value_t) {.value_type = BSON_TYPE_DATE_TIME, .value.v_datetime = millis};
}

static inline bson_value_t
bson_oid(const bson_oid_t *oid)
{
	return (bson_value_t) {.value_type = BSON_TYPE_OID, .value.v_oid = *oid};
}

/* bson_utf8, bson_utf8_sized: a String, in UTF-8; length in bytes. */
static inline bson_value_t
bson_utf8_sized(const char *string, size_t length)
{
	return (bson_value_t)
	{
		.value_type = BSON_TYPE_UTF8,
			.value.v_utf8 = {unconstify(char *, string), (uint32) length}
	};
}

static inline bson_value_t
bson_utf8(const char *string)
{
	return bson_utf8_sized(string, strlen(string));
}

static inline bson_value_t
bson_regex(const char *pattern, const char *options)
{
	return (bson_value_t)
	{
		.value_type = BSON_TYPE_REGEX,
			.value.v_regex = {unconstify(char *, pattern), unconstify(char *, options)}
	};
}

static inline bson_value_t
bson_binary(bson_subtype_t subtype, const uint8_t *bytes, uint32 length)
{
	return (bson_value_t)
	{
		.value_type = BSON_TYPE_BINARY,
			.value.v_binary = {unconstify(uint8_t *, bytes), length, subtype}
	};
}

static inline bson_value_t
bson_document(const bson_t *document)
{
	return (bson_value_t)
	{
		.value_type = BSON_TYPE_DOCUMENT,
			.value.v_doc = {unconstify(uint8_t *, bson_get_data(document)), document->len}
	};
}

/* bson_array: a document whose keys are "0", "1" and so on, as an array. */
static inline bson_value_t
bson_array(const bson_t *array)
{
	bson_value_t value = bson_document(array);

	value.value_type = BSON_TYPE_ARRAY;
	return value;
}

/* bson_field: "$path", the field's value in an expression; palloc'd. */
extern bson_value_t bson_field(const char *path);

/* bson_first: the value of the document's first element, which it must have. */
extern bson_value_t bson_first(const bson_t *document);

/* bson_append_condition: {path: {operator: value}}. */
extern void bson_append_condition(bson_t *document, const char *path,
								  const char *operator, bson_value_t value);

/*
 * bson_append_template: the members of a template, which is an object.
 * bson_append_member: what a template of any kind says, as one member.
 * bson_from_template: a document, or an array, in the current memory context.
 *
 * In templates keys and operators stand without quotes.  Values are integers,
 * 'strings' (without escapes), true, false, null, NaN, inf, min and max for
 * MinKey and MaxKey, objects, arrays, and @1 to @9 for the values that follow.
 * @1 may also stand for a key, and must then be a string.
 */
#define bson_append_template(document, template, ...) \
	bson_append_template_values(document, template, BSON_VALUES(__VA_ARGS__))
#define bson_append_member(document, key, template, ...) \
	bson_append_member_values(document, key, template, BSON_VALUES(__VA_ARGS__))
#define bson_from_template(template, ...) \
	bson_from_template_values(template, BSON_VALUES(__VA_ARGS__))

#define BSON_VALUES(...) \
	(const bson_value_t[]) {__VA_ARGS__}, \
	(int) (sizeof((const bson_value_t[]) {__VA_ARGS__}) / sizeof(bson_value_t))

/* The same with the values in an array. */
extern void bson_append_template_values(bson_t *document, const char *template,
										const bson_value_t *values, int nvalues);
extern void bson_append_member_values(bson_t *document, const char *key,
									  const char *template,
									  const bson_value_t *values, int nvalues);
extern bson_t *bson_from_template_values(const char *template,
										 const bson_value_t *values, int nvalues);

/*
 * An array being written, which knows the key of its next element: of its own, or in a
 * document, {.bson = &child} after BSON_APPEND_ARRAY_BEGIN(document, key, &child).
 */
typedef struct BsonArray
{
	bson_t	   *bson;			/* to be appended to by these functions only */
	uint32		count;			/* of elements */
} BsonArray;

/* bson_array_create: an empty array in the current memory context. */
extern BsonArray bson_array_create(void);

/* One more element: a value, or of any kind, as a template says. */
extern void bson_array_append(BsonArray *array, bson_value_t value);
#define bson_array_append_template(array, template, ...) \
	bson_array_append_template_values(array, template, BSON_VALUES(__VA_ARGS__))
extern void bson_array_append_template_values(BsonArray *array, const char *template,
											  const bson_value_t *values, int nvalues);

/* One more, a document to be appended to in between, and nothing else. */
extern void bson_array_begin_document(BsonArray *array, bson_t *document);
extern void bson_array_end_document(BsonArray *array, bson_t *document);

/*
 * A compressor that OP_COMPRESSED messages may name by 'id'; one that libmongoc was built
 * with, as it negotiates, and whose library was there when we were built.
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

/* The compressor of a name, in either case; NULL: there is none. */
extern const MongoCompressor *mongo_compressor_named(const char *name, size_t length);

/* mongo_compressor_names: of all there are, "snappy, zlib, zstd"; palloc'd. */
extern char *mongo_compressor_names(void);

/* mongo_compressor_negotiated: what the reply to "hello" agrees to; NULL: none. */
extern const MongoCompressor *mongo_compressor_negotiated(const bson_t *hello);

/* -------------- What libmongoc has to say beside its results -------------- */

/*
 * mongo_install_log_handler
 *		Send libmongoc's log lines to elog.  Before libmongoc is used; again does no harm.
 */
extern void mongo_install_log_handler(void);

/*
 * libmongoc's newest warning or error line, which whoever is interested sets to "" before.
 * Some causes (a certificate that cannot be read) reach the log only.
 */
#define MONGO_DRIVER_MESSAGE_SIZE	512
extern char mongo_driver_message[MONGO_DRIVER_MESSAGE_SIZE];

/* Nothing of libmongoc's is logged now, as it may quote a secret. */
extern bool mongo_driver_log_is_held;

/*-------------------------------------------------------------------------
 * What becomes of libbson and libmongoc when memory runs out.
 *
 * libbson aborts the process when malloc() fails, and a backend that aborts
 * takes the whole server down.  So the allocator under it is ours
 * (bson_mem_set_vtable), on top of malloc() and free(), as libmongoc has
 * allocated before it can be told.  Where there is no memory it
 *
 * - gives from a reserve what is small, so that cleaning up succeeds;
 * - raises ERROR 53200 where our own code has called libbson;
 * - ends the session by FATAL 53200 where libmongoc's frames are below, as they
 * 	 cannot be unwound.  What it was doing is left as it is then: nothing
 * 	 enters libmongoc any more (mongo_driver_is_entered).
 * - does neither in mongo_protect(), for what cleans up and for the end of a
 * 	 transaction, in which PostgreSQL bears neither ERROR nor FATAL.
 *
 * To end the session is for what nobody foresaw: who is about to hand libmongoc
 * something large asks first whether there is room for it.
 *-------------------------------------------------------------------------
 */

/* mongo_install_allocator: before libbson is used; again does no harm. */
extern void mongo_install_allocator(void);

/*
 * mongo_driver_is_entered
 *		Are frames of libmongoc on the stack?
 *
 * At the end of a transaction or of the process they are where that exits from within a
 * call, or mongo_protect() has left one behind.  libmongoc may hold its locks then.
 */
static inline bool
mongo_driver_is_entered(void)
{
	return mongo_driver_depth > 0;
}

/*
 * mongo_driver_check
 *		Before libmongoc is entered: end the session by FATAL 53200 where
 *		mongo_protect() has left it behind.
 */
extern void mongo_driver_check(void);

/*
 * mongo_memory_check
 *		Raise 53200 unless there are so many bytes and the reserve is full; refills it.
 *
 * For the beginning of what must not run out of memory later on.  Does
 * mongo_driver_check(), too.
 */
extern void mongo_memory_check(size_t size);

/* mongo_memory_report: raise 53200 in the words of palloc(). */
pg_noreturn extern void mongo_memory_report(size_t size);

/*
 * mongo_protect
 *		Call a function where lack of memory may neither be raised nor end the process
 *		at once; false when libbson or libmongoc had none.
 *
 * What the function was doing is left as it is then.  If that was in libmongoc, the
 * session is about to end, after a WARNING 53200: when the transaction that is being
 * ended has been.  Where libmongoc must not be entered any more, false and nothing is
 * called.  Fills the reserve first, if it can.  Other errors pass through.
 */
extern bool mongo_protect(void (*function) (void *), void *argument);

/* mongo_memory_grown: what libbson and libmongoc allocate to hold so many bytes. */
static inline size_t
mongo_memory_grown(size_t size)
{
	return bson_next_power_of_two(size);
}

/* mongo_skip_destructors: of libraries, at exit, as something of theirs may be in use. */
extern void mongo_skip_destructors(void);

/*
 * mongo_may_leave_partition
 *		Is the table a partition, and one of these columns (attribute numbers) in what
 *		its bounds ask for?
 *
 * PostgreSQL moves a row that an UPDATE takes out of its partition's bounds, but not out
 * of a foreign partition: there it would stay, where no query looks for it.
 */
extern bool mongo_may_leave_partition(Relation relation, const List *attributes);

/*
 * mongo_printable
 *		What of a text may be shown in the database's encoding; '?' stands for the rest.
 *		Palloc'd; raises nothing but lack of memory.
 *
 * MongoDB may cut its messages in mid-character and quotes documents in them, so neither
 * UTF-8 nor the absence of control bytes can be relied on.
 */
extern char *mongo_printable(const char *text);

/*-------------------------------------------------------------------------
 * Who may see the values that a message quotes?
 *
 * MongoDB's errors quote values of documents ("Failed to parse number 'x'", the
 * key that is there already), and so do ours about documents that do not fit.
 * PostgreSQL shows a row's values in an error only to who may read them:
 * BuildIndexValueDescription() and ExecBuildSlotValueDescription() ask for SELECT
 * on the columns, and that no policies apply.  So do we.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_may_read
 *		May the current user see any row's value of this column, or of all columns
 *		(NULL), of the foreign table or of a table that it is a partition of?
 *
 * Columns of partitions and of their parents are the same by name.
 */
extern bool mongo_may_read(Oid relid, const char *column);

/* The tables whose documents are at work; lives on the caller's stack. */
typedef struct MongoAtWork
{
	ErrorContextCallback callback;
	List	   *relids;			/* OIDs of foreign tables */
	const char *function;		/* whose argument is sent as it is; or NULL */
} MongoAtWork;

/*
 * mongo_begin_work, mongo_end_work
 *		What is raised in between may quote documents of these tables, or what the user
 *		has given to work->function.
 *
 * An ERROR ends it as well.  'relids' must live until then.
 */
extern void mongo_begin_work(MongoAtWork *work, List *relids);
extern void mongo_end_work(MongoAtWork *work);

/* Of the innermost work that has not ended; NULL, NIL outside. */
extern const char *mongo_function_at_work(void);
extern List *mongo_tables_at_work(void);

/*
 * mongo_may_quote
 *		May a message that is raised now quote this column of the documents at work,
 *		or anything of them (NULL)?  It may when no tables are: ANALYZE and the SQL
 *		functions have privileges of their own.
 */
extern bool mongo_may_quote(const char *column);

/* mongo_query_log_level: of mongo_fdw.log_remote_query; values are shown to superusers. */
extern int	mongo_query_log_level(void);

/*
 * Structs as nodes that a plan can hold, as it is copied, and written and read again for
 * parallel workers.  A table of the struct's fields says which of them are kept; the
 * others are zero when the struct is read back.
 */

typedef enum MongoFieldKind
{
	MONGO_FIELD_NUMBERS,		/* bools, ints, enums, Oids and the like that
								 * stand one behind the other */
	MONGO_FIELD_STRING,			/* char *, may be NULL */
	MONGO_FIELD_NODE,			/* a node, or a List of nodes or numbers */
	MONGO_FIELD_STRUCTS			/* a List of palloc'd structs */
} MongoFieldKind;

typedef struct MongoStructField
{
	MongoFieldKind kind;
	size_t		offset;
	size_t		size;			/* of all numbers */
	const struct MongoStructType *element;	/* of MONGO_FIELD_STRUCTS */
} MongoStructField;

typedef struct MongoStructType
{
	size_t		size;
	const MongoStructField *fields;
	int			nfields;
} MongoStructType;

/*
 * For rows of such a table, and the struct with a table 'fields'.  A row of numbers
 * has all fields from the first to the last one: numbers, with no padding between
 * them, which would be copied as it is.
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

/*
 * mongo_struct_to_list, mongo_struct_from_list
 *		The fields of a struct as a List, and a struct, palloc'd, of such a List.
 *
 * The List has copies of the strings, and shares the nodes.  The struct shares both
 * with the List.
 */
extern List *mongo_struct_to_list(const MongoStructType *type, const void *source);
extern void *mongo_struct_from_list(const MongoStructType *type, const List *list);

#endif							/* MONGO_FDW_COMMON_H */
