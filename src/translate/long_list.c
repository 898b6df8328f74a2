/*-------------------------------------------------------------------------
 *
 * long_list.c
 *		Lists of values that are longer than a command may be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "long_list.h"

#include "bson_write.h"
#include "comparison.h"

#include "access/stratnum.h"
#include "utils/array.h"
#include "utils/typcache.h"

/* The least and the greatest of an array's values, in the predicate's order. */
typedef struct Span
{
	Datum		least;
	Datum		greatest;
	bool		found;
} Span;

/* The least and the greatest element, in the order of the type; NULLs are passed over. */
static Span
find_span(const MongoPredicate *predicate, ArrayType *array)
{
	TypeCacheEntry *type = lookup_type_cache(ARR_ELEMTYPE(array), TYPECACHE_CMP_PROC_FINFO);
	Span		span = {0};
	ArrayIterator iterator;
	Datum		value;
	bool		isnull;

	if (!OidIsValid(type->cmp_proc))
		return span;
	iterator = array_create_iterator(array, 0, NULL);
	while (array_iterate(iterator, &value, &isnull))
	{
		if (isnull)
			continue;
		if (!span.found ||
			DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, predicate->collation,
											value, span.least)) < 0)
			span.least = value;
		if (!span.found ||
			DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, predicate->collation,
											value, span.greatest)) > 0)
			span.greatest = value;
		span.found = true;
	}
	array_free_iterator(iterator);
	return span;
}

/* append_span_end: "column OP value" as one of the conditions. */
static void
append_span_end(const MongoPredicate *predicate, int strategy, Datum value,
				BsonArray *conditions)
{
	MongoPredicate bound = *predicate;
	bson_t		condition;

	bound.form = MONGO_PREDICATE_SCALAR;
	bound.strategy = strategy;
	bson_array_begin_document(conditions, &condition);
	mongo_predicate_render(&bound, value, false, &condition);
	bson_array_end_document(conditions, &condition);
}

void
mongo_predicate_render_span(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	MongoPredicate ordered = *predicate;
	bson_t		list;
	BsonArray	conditions = {.bson = &list};
	Span		span;

	ordered.form = MONGO_PREDICATE_SCALAR;
	ordered.strategy = BTGreaterEqualStrategyNumber;
	/* instants need not stand in the order of the times that clocks show */
	if (predicate->form != MONGO_PREDICATE_ANY || mongo_depends_on_time_zone(predicate) ||
		mongo_predicate_grade(&ordered) == MONGO_NOT_SHIPPABLE)
		return;
	span = find_span(predicate, DatumGetArrayTypeP(value));
	if (!span.found)
		return;
	BSON_APPEND_ARRAY_BEGIN(match, "$and", &list);
	append_span_end(predicate, BTGreaterEqualStrategyNumber, span.least, &conditions);
	append_span_end(predicate, BTLessEqualStrategyNumber, span.greatest, &conditions);
	bson_append_array_end(match, &list);
}
