/*-------------------------------------------------------------------------
 *
 * bson_write.h
 *		How BSON documents are written.
 *
 * One call of BSON_APPEND_INT32() and its like says enough for itself.  What
 * has a shape is written as a template in MongoDB's own notation, in which
 * values stand as @1 to @9:
 *
 *		bson_append_template(match, "{$or: [{@1: {$lt: @2}}, {@1: NaN}]}",
 *							 bson_utf8(path), bson_double(bound));
 *
 * A template is read each time, for some ten instructions a character.  What is
 * written for each row, and most of what is written for each execution of a
 * prepared statement, is written by append functions.
 *
 * None of these functions allocates memory but libbson's for the document, and
 * where a comment says so.  As libbson's own, they keep silent where a document
 * would become longer than 2 GB.  A fault in a template is an internal error
 * (XX000).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BSON_WRITE_H
#define MONGO_FDW_BSON_WRITE_H

#include "compat.h"

/*
 * Values to be written.  They refer to what they were made of, which must
 * outlive them: strings, documents, ObjectIds and bytes are not copied.
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

/*
 * bson_append_condition
 *		Append {path: {operator: value}}.
 */
extern void bson_append_condition(bson_t *document, const char *path,
								  const char *operator, bson_value_t value);

/*
 * bson_append_template
 *		Append the members of a template, which is an object, to a document.
 *
 * bson_append_member
 *		Append what a template, of any kind, says as one member.
 *
 * bson_from_template
 *		A document of its own in the current memory context; of an array too, as
 *		libbson has it.
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
 * An array being written, which knows the key of its next element.
 *
 * Either of its own, bson_array_create(), or inside a document: {.bson = &child}
 * after BSON_APPEND_ARRAY_BEGIN(document, key, &child).
 */
typedef struct BsonArray
{
	bson_t	   *bson;			/* to be appended to by these functions only */
	uint32		count;			/* of elements */
} BsonArray;

/* bson_array_create: an empty array in the current memory context. */
extern BsonArray bson_array_create(void);

/* bson_array_append: one more element. */
extern void bson_array_append(BsonArray *array, bson_value_t value);

/* bson_array_append_template: one more, of any kind, as a template says. */
#define bson_array_append_template(array, template, ...) \
	bson_array_append_template_values(array, template, BSON_VALUES(__VA_ARGS__))
extern void bson_array_append_template_values(BsonArray *array, const char *template,
											  const bson_value_t *values, int nvalues);

/*
 * bson_array_begin_document, bson_array_end_document
 *		One more, a document to be appended to in between, and nothing else.
 */
extern void bson_array_begin_document(BsonArray *array, bson_t *document);
extern void bson_array_end_document(BsonArray *array, bson_t *document);

#endif							/* MONGO_FDW_BSON_WRITE_H */
