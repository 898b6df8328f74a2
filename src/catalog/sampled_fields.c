/*-------------------------------------------------------------------------
 *
 * sampled_fields.c
 *		Collects the fields of sampled documents and their types, and derives columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

/* A nested document with more keys is used as a map, so its keys are not columns. */
#define MAP_CHILDREN	200

/*
 * What is kept of documents that may be hostile: the fields of 16 of the widest tables, with
 * names of so many bytes.
 */
#define MOST_FIELDS		(16 * MaxHeapAttributeNumber)
#define LONGEST_NAME	1000

/* More children are found by a hash table. */
#define FEW_CHILDREN	16
#define BUCKETS			128

/* Doubles represent all integers up to this one. */
#define DOUBLE_INTEGER_MAX	(INT64CONST(1) << 53)

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define ANY_NUMBER \
	(BIT(INT32) | BIT(INT64) | IMPORT_WIDE | BIT(DOUBLE) | BIT(DECIMAL128))
#define ANY_STRING		(BIT(UTF8) | BIT(SYMBOL))

/* Kinds that contain no strings, or whose strings have been checked. */
#define PLAIN_KINDS \
	(ANY_NUMBER | ANY_STRING | BIT(BOOL) | BIT(OID) | BIT(DATE_TIME) | IMPORT_UUID | \
	 BIT(BINARY) | IMPORT_UNREADABLE)

/* Narrowest first: the first row that can store all kinds seen is the type. */
static const struct
{
	uint32		holds;
	const char *type;			/* NULL: objectid, in the extension's schema */
	Oid			oid;
}			type_rows[] =
{
	{BIT(BOOL), "boolean", BOOLOID},
	{BIT(INT32), "integer", INT4OID},
	{BIT(INT32) | BIT(INT64) | IMPORT_WIDE, "bigint", INT8OID},
	{BIT(INT32) | BIT(INT64) | BIT(DOUBLE), "double precision", FLOAT8OID},
	{ANY_NUMBER, "numeric", NUMERICOID},
	{BIT(OID), NULL, InvalidOid},
	{ANY_STRING | BIT(OID), "text", TEXTOID},
	{BIT(DATE_TIME), "timestamp with time zone", TIMESTAMPTZOID},
	{IMPORT_UUID, "uuid", UUIDOID},
	{IMPORT_UUID | BIT(BINARY), "bytea", BYTEAOID},
};

#define ANYTHING	"jsonb"

/* Of a field's values, so many decide its type, and rarer ones do not fit. */
#define FREQUENT	0.9

/* The members of a record are present in at least this part of its documents, on average. */
#define RECORD_PRESENCE	0.1

/* ------------------------------ the tree ----------------------------------- */

static bool
is_named(const SampledField *field, const char *name, int length)
{
	return field->name_length == length && memcmp(field->name, name, length) == 0;
}

static SampledField **
bucket_of(const SampledField *parent, const char *name, int length)
{
	return &parent->buckets[hash_bytes((const unsigned char *) name, length) % BUCKETS];
}

/* Adds a child to its parent's hash table. */
static void
add_to_bucket(SampledField *child)
{
	SampledField **bucket = bucket_of(child->parent, child->name, child->name_length);

	child->chained = *bucket;
	*bucket = child;
}

/* Finds a child by name, beginning after 'previous' and wrapping around; or returns NULL. */
static SampledField *
child_at(const SampledField *parent, const SampledField *previous, const char *name, int length)
{
	/* documents of a collection mostly have their fields in the same order */
	SampledField *begin = previous != NULL && previous->next != NULL ? previous->next :
		parent->first_child;
	SampledField *child = begin;

	while (child != NULL && !is_named(child, name, length))
	{
		child = child->next != NULL ? child->next : parent->first_child;
		if (parent->buckets != NULL)
		{
			child = *bucket_of(parent, name, length);
			while (child != NULL && !is_named(child, name, length))
				child = child->chained;
			return child;
		}
		if (child == begin)
			return NULL;
	}
	return child;
}

/* Inserts a new child after 'previous'; NULL: as the first child. */
static SampledField *
add_child(FieldSample *sample, SampledField *parent, SampledField *previous, const char *name,
		  int length)
{
	SampledField **place = previous != NULL ? &previous->next : &parent->first_child;
	MemoryContext context = MemoryContextSwitchTo(sample->context);
	SampledField *child = palloc0(sizeof(SampledField));

	child->name = pnstrdup(name, length);
	child->name_length = length;
	child->parent = parent;
	child->next = *place;
	*place = child;
	sample->nfields++;
	if (++parent->nchildren > FEW_CHILDREN && parent->buckets != NULL)
		add_to_bucket(child);
	else if (parent->nchildren > FEW_CHILDREN)
	{
		parent->buckets = palloc0(sizeof(SampledField *) * BUCKETS);
		for (SampledField *each = parent->first_child; each != NULL; each = each->next)
			add_to_bucket(each);
	}
	MemoryContextSwitchTo(context);
	return child;
}

/*
 * Return the child with this name, inserted after 'previous' if it is new.
 *
 * Returns NULL, and sets a flag of the parent, if it cannot be a column of its own.
 */
static SampledField *
child_for_key(FieldSample *sample, SampledField *parent, SampledField *previous, const char *name,
			  int most)
{
	int			length = (int) strlen(name);
	SampledField *child = child_at(parent, previous, name, length);

	if (child != NULL)
		return child;
	/* can a path contain the name? */
	if (length == 0 || strchr(name, '.') != NULL || !mongo_text_is_valid(name, length))
	{
		parent->unnameable = true;
		if (sample->for_import)
			return NULL;
	}
	if (parent->nchildren >= most || sample->nfields >= MOST_FIELDS || length > LONGEST_NAME)
	{
		parent->overflow = true;
		return NULL;
	}
	return add_child(sample, parent, previous, name, length);
}

/*
 * mongo_field_sample_create
 *		Returns an empty sample, in the current memory context.
 */
FieldSample *
mongo_field_sample_create(bool for_import, int nesting)
{
	FieldSample *sample = palloc0(sizeof(FieldSample));

	sample->for_import = for_import;
	sample->nesting = nesting;
	sample->context = CurrentMemoryContext;
	return sample;
}

static SampledField *
last_child(const SampledField *parent)
{
	SampledField *child = parent->first_child;

	while (child != NULL && child->next != NULL)
		child = child->next;
	return child;
}

/*
 * mongo_field_sample_find
 *		Returns the field at a path (UTF-8), or NULL if no document had it.
 *
 * With 'add' the field becomes a requested one: it is created if needed, and documents are examined
 * down to its level.
 */
SampledField *
mongo_field_sample_find(FieldSample *sample, const char *path, bool add)
{
	SampledField *field = &sample->root;
	int			nesting = 0;

	for (const char *name = path;; nesting++)
	{
		int			length = (int) strcspn(name, ".");
		SampledField *child = child_at(field, NULL, name, length);

		if (child == NULL && !add)
			return NULL;
		field->is_above |= add;
		field = child != NULL ? child : add_child(sample, field, last_child(field), name, length);
		if (name[length] == '\0')
			break;
		name += length + 1;
	}
	if (add && field->path == NULL)
	{
		field->path = pstrdup(path);
		sample->nesting = Max(sample->nesting, nesting);
	}
	return field;
}

/* ------------------------------ values ------------------------------------- */

/*
 * Does the value contain a string or key that neither text nor jsonb can store?
 */
static bool
has_unreadable(const bson_iter_t *value)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw imported value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(scratch);
	bool		readable = mongo_json_show_value(value, false, 0) != NULL;

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(scratch);
	return !readable;
}

/* Classifies a value; 0 for null and undefined. */
static uint32
kinds_of_value(const FieldSample *sample, const bson_iter_t *iter)
{
	const int64 epoch = MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
	uint32		kinds = MONGO_BSON_BIT(bson_iter_type(iter));
	uint32_t	length;
	const char *text;
	const uint8_t *data;
	bson_subtype_t subtype;
	int64		number;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_NULL:
		case BSON_TYPE_UNDEFINED:
			return 0;
		case BSON_TYPE_INT32:
			/* other whole numbers may be larger */
			return sample->is_complete ? kinds : kinds | BIT(INT64);
		case BSON_TYPE_INT64:
			number = bson_iter_int64(iter);
			return sample->is_complete && number <= DOUBLE_INTEGER_MAX &&
				number >= -DOUBLE_INTEGER_MAX ? kinds : kinds | IMPORT_WIDE;
		case BSON_TYPE_UTF8:
		case BSON_TYPE_SYMBOL:
			text = BSON_ITER_HOLDS_UTF8(iter) ? bson_iter_utf8(iter, &length) :
				bson_iter_symbol(iter, &length);
			return mongo_text_is_valid(text, length) ? kinds : kinds | IMPORT_UNREADABLE;
		case BSON_TYPE_DATE_TIME:
			number = bson_iter_date_time(iter);
			return number >= MIN_TIMESTAMP / 1000 + epoch &&
				number < END_TIMESTAMP / 1000 + epoch ? kinds : IMPORT_OTHER;
		case BSON_TYPE_BINARY:
			bson_iter_binary(iter, &subtype, &length, &data);
			return length == 16 && (subtype == BSON_SUBTYPE_UUID ||
									subtype == BSON_SUBTYPE_UUID_DEPRECATED) ? IMPORT_UUID : kinds;
		default:
			return kinds;
	}
}

/* Tells whether a value is {type: "Point", coordinates: [...]} or another geometry of RFC 7946. */
static bool
is_geometry(const bson_iter_t *document)
{
	static const char *const types[] = {
		"Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon",
		"GeometryCollection"
	};
	bson_iter_t type;
	bson_iter_t content;

	if (!bson_iter_recurse(document, &type) || !bson_iter_find(&type, "type") ||
		!BSON_ITER_HOLDS_UTF8(&type))
		return false;
	for (size_t i = 0; i < lengthof(types); i++)
	{
		if (strcmp(bson_iter_utf8(&type, NULL), types[i]) == 0)
			return bson_iter_recurse(document, &content) &&
				bson_iter_find(&content, i == lengthof(types) - 1 ? "geometries" : "coordinates") &&
				BSON_ITER_HOLDS_ARRAY(&content);
	}
	return false;
}

/* Counts a value by the lowest of its kinds, or else by its type. */
static void
count_value(SampledField *field, const bson_iter_t *value, uint32 kinds)
{
	uint32		counted = kinds & ~IMPORT_UNREADABLE;

	if (counted == 0)
		counted = MONGO_BSON_BIT(bson_iter_type(value));
	field->counts[pg_rightmost_one_pos32(counted)]++;
}

static void observe_members(FieldSample *sample, SampledField *parent, bson_iter_t *iter,
							uint32 length, int nesting, int most);

/* Adds a value, and for an import also what it contains.  Returns the value's kinds. */
static uint32
observe_value(FieldSample *sample, SampledField *field, const bson_iter_t *value, int nesting)
{
	uint32		kinds = sample->for_import ? kinds_of_value(sample, value) : 0;
	bool		descends = BSON_ITER_HOLDS_DOCUMENT(value) && nesting > 0;
	bson_iter_t iter;
	uint32		length;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	field->kinds |= kinds;
	if (kinds == BIT(ARRAY))
	{
		if (field->elements == NULL)
			field->elements = palloc0(sizeof(SampledField));
		length = mongo_iter_descend(value, &iter);
		while (bson_iter_next(&iter))
			count_value(field->elements, &iter, observe_value(sample, field->elements, &iter, nesting));
		if (!mongo_iter_is_at_end(&iter, length))
			field->kinds |= IMPORT_UNREADABLE;
		field->kinds |= field->elements->kinds & IMPORT_UNREADABLE;
	}
	else if (!descends && (kinds & ~PLAIN_KINDS) != 0 && has_unreadable(value))
		field->kinds |= IMPORT_UNREADABLE;
	if (descends)
	{
		field->is_geometry |= sample->for_import && is_geometry(value);
		length = mongo_iter_descend(value, &iter);
		observe_members(sample, field, &iter, length, nesting - 1, MAP_CHILDREN);
	}
	return kinds;
}

/*
 * Adds the members of the document at 'iter'.  What is in one of them that no
 * column can hold is in the document, too; but the whole document is no column.
 */
static void
observe_members(FieldSample *sample, SampledField *parent, bson_iter_t *iter, uint32 length,
				int nesting, int most)
{
	SampledField *previous = NULL;
	uint64		list = ++sample->lists;

	while (bson_iter_next(iter))
	{
		SampledField *child = child_for_key(sample, parent, previous, bson_iter_key(iter), most);
		uint32		kinds;

		CHECK_FOR_INTERRUPTS();
		if (child == NULL)
		{
			/* it is in the column for the whole document */
			if (sample->for_import && (has_unreadable(iter) ||
									   !mongo_text_is_valid(bson_iter_key(iter), strlen(bson_iter_key(iter)))))
				parent->kinds |= IMPORT_UNREADABLE;
			continue;
		}
		previous = child;
		kinds = observe_value(sample, child, iter, nesting);
		/* if a key is repeated, only its first value counts */
		if (child->seen_in != list)
		{
			child->seen_in = list;
			child->last_type = bson_iter_type(iter);
			count_value(child, iter, kinds);
		}
		if (parent != &sample->root)
			parent->kinds |= child->kinds & IMPORT_UNREADABLE;
	}
	if (!mongo_iter_is_at_end(iter, length))
		parent->kinds |= IMPORT_UNREADABLE;
}

/*
 * mongo_field_sample_observe
 *		Adds one document.  Raises 08P01 for bytes that are not BSON.
 */
void
mongo_field_sample_observe(FieldSample *sample, const uint8_t *data, uint32 length)
{
	bson_iter_t iter;

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	sample->documents++;
	sample->lists_before = sample->lists;
	observe_members(sample, &sample->root, &iter, length, sample->nesting, MaxHeapAttributeNumber);
}

/* ------------------------------ types -------------------------------------- */

/* Returns how many values have one of these kinds, by which they are counted. */
static double
number_of_values(const SampledField *field, uint32 kinds)
{
	double		result = 0;

	for (int i = 0; i < IMPORT_KINDS; i++)
		result += (kinds & ((uint32) 1 << i)) != 0 ? field->counts[i] : 0;
	return result;
}

/* Adds values that do not fit: those of these kinds. */
static void
add_misfits(ImportMisfits *misfits, const SampledField *field, uint32 kinds)
{
	misfits->values = number_of_values(field, field->kinds);
	misfits->count += number_of_values(field, kinds);
	for (int i = 0; i < IMPORT_KINDS; i++)
		misfits->kinds |= field->counts[i] > 0 ? kinds & ((uint32) 1 << i) : 0;
}

/*
 * Returns the number of the narrowest type that can store all kinds of values that were seen and
 * those in 'held'; else of one that can store 'held' and most values, if they are frequent.
 * -1: only jsonb fits.  Adds the values that do not fit to *misfits.
 */
static int
scalar_type(const SampledField *field, uint32 held, ImportMisfits *misfits)
{
	uint32		seen = field->kinds & ~IMPORT_UNREADABLE;
	uint32		read = 0;
	double		most = 0;
	int			best = -1;

	for (int i = 0; i < (int) lengthof(type_rows) && (seen | held) != 0; i++)
	{
		uint32		fitting = seen & type_rows[i].holds;
		double		count;

		if (((seen | held) & ~type_rows[i].holds) == 0)
			return i;
		/* numbers that the sample may have missed count, too */
		if ((seen & BIT(INT64) & ~type_rows[i].holds) != 0)
			fitting &= ~BIT(INT32);
		if ((seen & IMPORT_WIDE & ~type_rows[i].holds) != 0)
			fitting &= ~BIT(INT64);
		count = number_of_values(field, fitting);
		if ((held & ~type_rows[i].holds) == 0 && count > most &&
			count >= FREQUENT * number_of_values(field, seen))
		{
			best = i;
			most = count;
			read = fitting;
		}
	}
	if (best >= 0)
		add_misfits(misfits, field, seen & ~read);
	return best;
}

/*
 * mongo_import_kinds_of_type
 *		Returns the kinds of values that a column of a type can store.
 *
 * 0 for jsonb and for types that an import does not choose.
 */
uint32
mongo_import_kinds_of_type(Oid type)
{
	for (size_t i = 0; i < lengthof(type_rows); i++)
	{
		if (type == (OidIsValid(type_rows[i].oid) ? type_rows[i].oid : mongo_objectid_type_oid()))
			return type_rows[i].holds;
	}
	return 0;
}

/*
 * Tells whether a document's members become columns: it is a record, not a map, most of whose
 * keys are in few documents.
 */
static bool
is_record(const SampledField *document)
{
	double		present = 0;

	for (const SampledField *child = document->first_child; child != NULL; child = child->next)
		present += number_of_values(child, PG_UINT32_MAX);
	return document->first_child != NULL && !document->overflow && !document->unnameable &&
		!document->is_geometry &&
		present >= RECORD_PRESENCE * document->nchildren * number_of_values(document, BIT(DOCUMENT));
}

/*
 * mongo_is_array_of_documents
 *		Tells whether a field was an array of documents, and nothing else, with members that can be
 *		columns.
 */
bool
mongo_is_array_of_documents(const SampledField *field)
{
	const SampledField *elements = field->elements;

	return (field->kinds & ~IMPORT_UNREADABLE) == BIT(ARRAY) && elements != NULL &&
		(elements->kinds & ~IMPORT_UNREADABLE) == BIT(DOCUMENT) && is_record(elements);
}

/*
 * mongo_import_field_type
 *		Returns the narrowest type for all values seen, as SQL, or for nine tenths of them if only
 *		jsonb could store all.
 *
 * NULL for a document whose members become columns.  The type can also store values of the kinds
 * 'held', which are those of elements if they include BIT(ARRAY).  'objectid_type' is the SQL name
 * of the type objectid.  Sets *misfits unless that is NULL.  The result is palloc'd or static.
 */
const char *
mongo_import_field_type(const SampledField *field, uint32 held, const char *objectid_type,
						ImportMisfits *misfits)
{
	static const SampledField no_elements = {0};
	uint32		kinds = field->kinds & ~IMPORT_UNREADABLE;
	double		arrays = number_of_values(field, kinds & BIT(ARRAY));
	bool		is_array = arrays >= FREQUENT * number_of_values(field, kinds) &&
		(held == 0 ? arrays > 0 : (held & BIT(ARRAY)) != 0);
	ImportMisfits found = {0};
	const char *type;
	int			row = -1;

	if (held == 0 && kinds == BIT(DOCUMENT) && is_record(field))
		return NULL;
	if (is_array)
		row = scalar_type(field->elements != NULL ? field->elements : &no_elements,
						  held & ~BIT(ARRAY), &found);
	else if ((held & BIT(ARRAY)) == 0)
		row = scalar_type(field, held, &found);
	if (row >= 0 && is_array && (kinds & ~BIT(ARRAY)) != 0)
		add_misfits(&found, field, kinds & ~BIT(ARRAY));
	if (misfits != NULL)
		*misfits = found;
	if (row < 0)
		return ANYTHING;
	type = type_rows[row].type != NULL ? type_rows[row].type : objectid_type;
	return is_array ? psprintf("%s[]", type) : type;
}

/* ------------------------------ counts ------------------------------------- */

/*
 * mongo_sampled_field_counts
 *		Returns how many documents have the field, also as a null.
 *
 * Sets 'counts' to their numbers by type, and *types to the set of its types except null and
 * undefined.  If part of a requested field's path is an array, the whole path counts as an array,
 * because a column cannot read the array's elements.
 */
double
mongo_sampled_field_counts(const SampledField *field, double counts[MONGO_TYPE_COUNT], uint32 *types)
{
	double		documents = 0;

	memcpy(counts, field->counts, sizeof(double) * MONGO_TYPE_COUNT);
	/* an array counts for the whole path: columns do not read its elements */
	if (field->path != NULL)
	{
		for (const SampledField *above = field->parent; above != NULL; above = above->parent)
			counts[BSON_TYPE_ARRAY] += above->counts[BSON_TYPE_ARRAY];
	}
	*types = 0;
	for (int i = 0; i < MONGO_TYPE_COUNT; i++)
	{
		documents += counts[i];
		if (counts[i] > 0 && i != BSON_TYPE_NULL && i != BSON_TYPE_UNDEFINED)
			*types |= (uint32) 1 << i;
	}
	return documents;
}

/*
 * mongo_sampled_field_last_type
 *		Returns the field's type in the last document as a set; 0 if that document lacks it.
 *
 * Arrays in its path count as for mongo_sampled_field_counts().
 */
uint32
mongo_sampled_field_last_type(const FieldSample *sample, const SampledField *field)
{
	if (field->seen_in > sample->lists_before)
		return MONGO_BSON_BIT(field->last_type);
	while ((field = field->parent) != NULL)
	{
		if (field->seen_in > sample->lists_before && field->last_type == BSON_TYPE_ARRAY)
			return BIT(ARRAY);
	}
	return 0;
}

/* ------------------------------ names -------------------------------------- */

/*
 * mongo_nearest_field
 *		Returns the path of a field that was probably meant by this path (UTF-8), and that no
 *		column reads.
 *
 * NULL if there is none.  Palloc'd or static, in the database's encoding.
 */
const char *
mongo_nearest_field(FieldSample *sample, const char *path)
{
	const char *last = strrchr(path, '.');
	const SampledField *parent = last == NULL ? &sample->root :
		mongo_field_sample_find(sample, pnstrdup(path, last - path), false);
	List	   *names = NIL;
	const char *name;

	for (const SampledField *field = parent == NULL ? NULL : parent->first_child; field != NULL;
		 field = field->next)
	{
		if (field->path == NULL && !field->is_above &&
			mongo_text_is_valid(field->name, field->name_length))
			names = lappend(names, unconstify(char *, mongo_from_utf8(field->name)));
	}
	name = mongo_nearest_name(names, mongo_from_utf8(last == NULL ? path : last + 1));
	list_free(names);
	return name == NULL || last == NULL ? name :
		psprintf("%s.%s", mongo_from_utf8(pnstrdup(path, last - path)), name);
}
