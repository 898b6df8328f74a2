/*-------------------------------------------------------------------------
 *
 * row_changes.c
 *		Finds the differences between the old and the new value of a nested column, as update
 *		operators, and applies an update's operators to fields.
 *
 * If the column were written as a whole, every number in it would get the BSON type of the SQL
 * value, and a composite value would lose the fields that its type lacks.
 *
 * Both values are converted to BSON and compared as BSON, so that the same code compares jsonb,
 * arrays and composites.  A part that reads as the old value and would be written as the same BSON
 * remains unchanged.
 *
 * Each level first tests whether paths can express its changes, and only then appends them.  If
 * they cannot, the level above writes it as a whole.  A level is also written as a whole if nothing
 * in it remains, or if too much changes.  Composites are an exception: their documents may have
 * fields that no attribute reads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* The deepest path; MongoDB stores documents of 100 levels. */
#define DEEPEST_PATH	64

/*
 * The most paths in one array or object.  MongoDB follows each path from the start, so that
 * many paths take longer than writing the whole: from 700 paths on for 10,000 integers, from
 * 150 for 100,000.  $slice also removes elements one by one: 14 s for 60,000.
 */
#define MOST_PATHS		200

/*
 * mongo_append_part
 *		Appends the bytes between two offsets of another document unchanged.  Not by iterators:
 *		libbson might change the elements that it appends.
 */
void
mongo_append_part(bson_t *document, const bson_t *source, uint32 start, uint32 end)
{
	uint32		length = sizeof(uint32) + (end - start) + 1;
	uint32		prefix = BSON_UINT32_TO_LE(length);
	uint8_t    *bytes;
	bson_t		elements;

	if (start == end)
		return;
	bytes = palloc(length);
	memcpy(bytes, &prefix, sizeof(prefix));
	memcpy(bytes + sizeof(prefix), bson_get_data(source) + start, end - start);
	bytes[length - 1] = '\0';
	if (!mongo_bson_view(&elements, bytes, length))
		elog(ERROR, "malformed document");
	mongo_concat(document, &elements);
	pfree(bytes);
}

/*
 * mongo_is_nested_type
 *		Tells whether values of this type or domain have parts: jsonb, arrays, composites.  Not
 *		json: its text keeps the order of its keys, which a change in place would not.
 */
bool
mongo_is_nested_type(Oid typid)
{
	Oid			base = mongo_base_type(typid);

	return base == JSONBOID || type_is_array(base) || type_is_rowtype(base);
}

/*
 * Tells whether a change within a value of the type can be written to its members.  It cannot for
 * json and points: the order of json's keys matters, and a point may be stored in another form than
 * it is written in.  The type of an array's further dimensions is that of the elements.
 */
static bool
can_enter(const bson_iter_t *old, const bson_iter_t *new, Oid typid)
{
	if (bson_iter_type(old) != bson_iter_type(new))
		return false;
	if (mongo_is_nested_type(typid))
		return BSON_ITER_HOLDS_DOCUMENT(new) || BSON_ITER_HOLDS_ARRAY(new);
	return BSON_ITER_HOLDS_ARRAY(new) && mongo_base_type(typid) != JSONOID;
}

/* Returns the bytes of a value, which end where the next element begins. */
static const uint8_t *
value_bytes(const bson_iter_t *value, uint32 *length)
{
	uint32		start = bson_iter_offset(unconstify(bson_iter_t *, value)) + 1 +
		bson_iter_key_len(value) + 1;

	*length = value->next_off - start;
	return value->raw + start;
}

static bool
is_same(const bson_iter_t *old, const bson_iter_t *new)
{
	uint32		old_length;
	uint32		new_length;
	const uint8_t *old_bytes = value_bytes(old, &old_length);
	const uint8_t *new_bytes = value_bytes(new, &new_length);

	return bson_iter_type(old) == bson_iter_type(new) && old_length == new_length &&
		memcmp(old_bytes, new_bytes, old_length) == 0;
}

/* The members of two documents, or elements of two arrays, that differ. */
typedef struct Differences
{
	bson_iter_t old;
	bson_iter_t new;
	bool		has_old;		/* does the old one have the member? */
	bool		has_new;
	bool		in_new;			/* still at the members of the new one? */
	int			same;			/* number of equal members so far */
} Differences;

static Differences
differences(const bson_iter_t *old, const bson_iter_t *new)
{
	Differences result = {.in_new = true};

	if (!bson_iter_recurse(old, &result.old) || !bson_iter_recurse(new, &result.new))
		elog(ERROR, "malformed document");
	return result;
}

/* Moves forward to the member if there is one; both have the same order. */
static bool
move_to_member(bson_iter_t *at, const char *key)
{
	bson_iter_t found = *at;

	if (!bson_iter_find(&found, key))
		return false;
	*at = found;
	return true;
}

/* Finds the next new or changed member, and then the next removed one. */
static bool
next_difference(Differences *at, const bson_iter_t *old, const bson_iter_t *new)
{
	while (at->in_new && bson_iter_next(&at->new))
	{
		CHECK_FOR_INTERRUPTS();
		at->has_new = true;
		at->has_old = move_to_member(&at->old, bson_iter_key(&at->new));
		if (!at->has_old || !is_same(&at->old, &at->new))
			return true;
		at->same++;
	}
	if (at->in_new)
	{
		at->in_new = at->has_new = false;
		at->has_old = bson_iter_recurse(old, &at->old) && bson_iter_recurse(new, &at->new);
	}
	while (bson_iter_next(&at->old))
	{
		CHECK_FOR_INTERRUPTS();
		if (!move_to_member(&at->new, bson_iter_key(&at->old)))
			return true;
	}
	return false;
}

/* Returns the type of an attribute or element, even one that is an inner array. */
static Oid
type_of_member(const bson_iter_t *whole, Oid typid, const char *key)
{
	Oid			base = mongo_base_type(typid);
	Oid			element = get_element_type(base);

	if (OidIsValid(element))
		return element;
	if (BSON_ITER_HOLDS_ARRAY(whole) || !type_is_rowtype(base))
		return typid;
	base = get_typ_typrelid(base);
	return get_atttype(base, get_attnum(base, mongo_from_utf8(key)));
}

/*
 * Tells whether paths can express the changes, and these are not too many.  In a document, no path
 * can name a key such as "a.b".  In an array, some element must remain, and elements cannot be cut
 * off together with changes inside it.  The documents of composites, 'typid', may have fields that
 * no attribute reads.
 */
static bool
can_express(const bson_iter_t *old, const bson_iter_t *new, Oid typid)
{
	Oid			element = get_base_element_type(typid);
	bool		is_limited = !type_is_rowtype(OidIsValid(element) ? element : typid);
	int			changed = 0;
	int			changed_within = 0;
	int			entered = 0;
	int			gone = 0;
	Differences at = differences(old, new);

	while (next_difference(&at, old, new))
	{
		const char *key = bson_iter_key(at.has_new ? &at.new : &at.old);

		if (BSON_ITER_HOLDS_DOCUMENT(new) &&
			(key[0] == '\0' || key[0] == '$' || strchr(key, '.') != NULL))
			return false;

		/* libbson drops unknown options of a Regex */
		if ((++changed > MOST_PATHS && is_limited) ||
			(at.has_new && BSON_ITER_HOLDS_REGEX(&at.new)))
			return false;
		changed_within += at.has_old && at.has_new;
		entered += at.has_old && at.has_new &&
			can_enter(&at.old, &at.new, type_of_member(new, typid, key));
		gone += !at.has_new;
	}
	return BSON_ITER_HOLDS_DOCUMENT(new) ||
		(at.same + entered > 0 && (gone == 0 || changed_within == 0));
}

/* Does the work of mongo_append_changes() at each level. */
static bool
append_changes(const MongoUpdateOperators *operators, const char *path, const bson_iter_t *old,
			   const bson_iter_t *new, Oid typid, int depth)
{
	Differences at;

	if (depth >= DEEPEST_PATH || !can_enter(old, new, typid) || !can_express(old, new, typid))
		return false;
	at = differences(old, new);
	while (next_difference(&at, old, new))
	{
		const char *key = bson_iter_key(at.has_new ? &at.new : &at.old);
		const char *place = psprintf("%s.%s", path, key);

		if (!at.has_new && BSON_ITER_HOLDS_ARRAY(new))
		{
			mongo_append_template(operators->push, "{@1: {$each: [], $slice: @2}}",
								  mongo_utf8(path), mongo_int32(atoi(key)));
			return true;
		}
		if (!at.has_new)
			mongo_append(operators->unset, place, mongo_bool(true));
		else if (!at.has_old ||
				 !append_changes(operators, place, &at.old, &at.new,
								 type_of_member(new, typid, key), depth + 1))
			mongo_append_iter(operators->set, place, &at.new);
	}
	return true;
}

/*
 * mongo_append_changes
 *		Appends the operators that change the field at 'path' from the old to the new value, both
 *		not NULL and of this nested type.  Returns false and appends nothing if the field must be
 *		written as a whole.
 *
 * If paths can express the change, parts that would be written as the same BSON are not written.
 * Elements that move within an array are written, and so is an object in which a key changes that a
 * path cannot name ("a.b", "$a").  Raises the errors of encoding.
 */
bool
mongo_append_changes(MongoUpdateOperators *operators, const char *path, Datum old_value,
					 Datum new_value, Oid typid, int32 typmod)
{
	bson_t	   *values = mongo_bson_create();
	bson_iter_t from;
	bson_iter_t to;

	mongo_append_datum(values, "old", -1, old_value, false, typid, typmod);
	mongo_append_datum(values, "new", -1, new_value, false, typid, typmod);
	if (!bson_iter_init_find(&from, values, "old") || !bson_iter_init_find(&to, values, "new"))
		elog(ERROR, "malformed document");
	return is_same(&from, &to) || append_changes(operators, path, &from, &to, typid, 0);
}

/* --------------- Fields as an update's operators leave them --------------- */

/* MongoDB refuses to add more elements than these for one beyond an array's end. */
#define MOST_ADDED		1500000

/* Comparator of paths by components; MongoDB adds missing fields in this order. */
static int
compare_paths(const ListCell *a, const ListCell *b)
{
	const char *left = lfirst(a);
	const char *right = lfirst(b);

	for (;;)
	{
		size_t		left_length = strcspn(left, ".");
		size_t		right_length = strcspn(right, ".");
		int			order = memcmp(left, right, Min(left_length, right_length));

		if (left_length != right_length &&
			(order == 0 || (left_length == strspn(left, "0123456789") &&
							right_length == strspn(right, "0123456789"))))
			order = left_length < right_length ? -1 : 1;
		if (order != 0 || left[left_length] == '\0' || right[right_length] == '\0')
			return order;
		left += left_length + 1;
		right += right_length + 1;
	}
}

/*
 * Appends the members of a document or array as an operator with this path leaves them: "$set" with
 * its value, "$unset", or "$push", which keeps only the first elements.
 */
static void
append_changed(bson_t *result, const bson_t *members, bool is_array, const char *path,
			   const char *operator, const bson_iter_t *operand)
{
	uint32		length = strcspn(path, ".");
	const char *key = pnstrdup(path, length);
	const char *rest = path[length] == '.' ? path + length + 1 : NULL;
	bool		pushes = strcmp(operator, "$push") == 0;
	bool		sets = strcmp(operator, "$set") == 0;
	bson_iter_t at;
	bool		found = bson_iter_init_find(&at, members, key);
	uint32		start = found ? bson_iter_offset(&at) : members->len - 1;
	uint32		end = found ? at.next_off : members->len - 1;
	bool		into_array = found && BSON_ITER_HOLDS_ARRAY(&at);
	bson_t		inner;
	bson_t		child;
	bson_iter_t into;

	check_stack_depth();
	mongo_append_part(result, members, sizeof(uint32), start);
	for (int i = is_array && sets && !found ? bson_count_keys(members) : PG_INT32_MAX, added = 0;
		 i < atoi(key) && added < MOST_ADDED; i++, added++)
	{
		char		number[12];

		CHECK_FOR_INTERRUPTS();
		pg_ltoa(i, number);
		mongo_append(result, number, mongo_null());
	}
	if ((rest != NULL || pushes) && (into_array || (found && BSON_ITER_HOLDS_DOCUMENT(&at))))
	{
		length = mongo_iter_descend(&at, &into);
		if (!mongo_bson_view(&inner, into.raw, length))
			elog(ERROR, "malformed document");
		if (into_array)
			mongo_append_array_begin(result, key, &child);
		else
			mongo_append_document_begin(result, key, &child);
		if (rest != NULL)
			append_changed(&child, &inner, into_array, rest, operator, operand);
		else if (bson_iter_recurse(operand, &into) && bson_iter_find(&into, "$slice"))
			mongo_append_part(&child, &inner, sizeof(uint32),
							  bson_iter_init_find(&at, &inner, psprintf("%d", bson_iter_int32(&into))) ?
							  bson_iter_offset(&at) : inner.len - 1);
		mongo_append_document_end(result, &child);
	}
	else if (rest != NULL && found)
		mongo_append_part(result, members, start, end); /* MongoDB will refuse */
	else if (rest != NULL && sets)
	{
		mongo_append_document_begin(result, key, &child);
		append_changed(&child, mongo_bson_create(), false, rest, operator, operand);
		mongo_append_document_end(result, &child);
	}
	else if (sets)
		mongo_append_iter(result, key, operand);
	else if (found && is_array)
		mongo_append(result, key, mongo_null());
	mongo_append_part(result, members, end, members->len - 1);
}

/*
 * mongo_changed_fields
 *		Returns the fields as the operators of mongo_row_to_update() leave those in, at and around
 *		'path' (NULL: all), in the current memory context.  Sets *is_whole to false if an operator
 *		changes only a part of the field at 'path'.
 */
bson_t *
mongo_changed_fields(bson_t *fields, const bson_t *update, const char *path, bool *is_whole)
{
	MemoryContext caller_context = CurrentMemoryContext;
	MemoryContext last = NULL;
	bson_iter_t operator;
	bson_iter_t operand;

	bson_iter_init(&operator, update);
	while (bson_iter_next(&operator))
	{
		List	   *paths = NIL;

		for (bson_iter_recurse(&operator, &operand); bson_iter_next(&operand);)
			paths = lappend(paths, unconstify(char *, bson_iter_key(&operand)));
		list_sort(paths, compare_paths);
		foreach_ptr(const char, changed, paths)
		{
			bool		is_part = path == NULL || mongo_path_is_under(changed, path);
			MemoryContext context;
			bson_t	   *next;

			if ((!is_part && !mongo_path_is_under(path, changed)) ||
				!bson_iter_recurse(&operator, &operand) || !bson_iter_find(&operand, changed))
				continue;
			*is_whole &= path != NULL && (!is_part || strcmp(path, changed) == 0);
			/* of large documents, only the last is kept */
			CHECK_FOR_INTERRUPTS();
			context = AllocSetContextCreate(caller_context, "mongo_fdw changed", ALLOCSET_SMALL_SIZES);
			MemoryContextSwitchTo(context);
			next = mongo_bson_create_in(context);
			append_changed(next, fields, false, changed, bson_iter_key(&operator), &operand);
			MemoryContextSwitchTo(caller_context);
			fields = next;
			if (last != NULL)
				MemoryContextDelete(last);
			last = context;
		}
	}
	return fields;
}
