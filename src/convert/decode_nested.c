/*-------------------------------------------------------------------------
 *
 * decode_nested.c
 *		Arrays, composite types and domains from BSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decode_nested.h"

#include "access/htup_details.h"
#include "bson_walk.h"
#include "encoding.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#define ACCEPTS_ARRAY(reader) \
	(((reader)->accepts & MONGO_BSON_BIT(BSON_TYPE_ARRAY)) != 0)

/*
 * Arrays
 */

/* The elements gathered so far, and the shape that they must have. */
typedef struct ArrayGathering
{
	Datum	   *values;
	bool	   *isnull;
	int			count;
	int			allocated;
	int			ndims;			/* 0: not known yet */
	int			lengths[MAXDIM];	/* -1: not known yet */
} ArrayGathering;

void
mongo_prepare_array(MongoReader *reader)
{
	reader->extra = mongo_reader_create(reader->mcxt,
										get_element_type(reader->typid),
										reader->typmod);
}

/* gather_element: one more; makes room for it if need be. */
static void
gather_element(ArrayGathering *gathering, Datum value, bool isnull)
{
	if (gathering->count == gathering->allocated)
	{
		gathering->allocated = gathering->allocated ? gathering->allocated * 2 : 16;
		if (gathering->values == NULL)
		{
			gathering->values = palloc(gathering->allocated * sizeof(Datum));
			gathering->isnull = palloc(gathering->allocated * sizeof(bool));
		}
		else
		{
			gathering->values = repalloc_huge(gathering->values,
											  gathering->allocated * sizeof(Datum));
			gathering->isnull = repalloc_huge(gathering->isnull,
											  gathering->allocated * sizeof(bool));
		}
	}
	gathering->values[gathering->count] = value;
	gathering->isnull[gathering->count] = isnull;
	gathering->count++;
}

/*
 * gather_level
 *		The elements of the Array at 'iter', which is at nesting 'depth'.
 *
 * Either all of its elements are arrays of one length or none is, and the
 * same at this depth everywhere.
 */
static bool
gather_level(const MongoReader *element, MongoReadContext *context,
			 const bson_iter_t *iter, int depth, ArrayGathering *gathering)
{
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	int			count = 0;

	while (bson_iter_next(&child))
	{
		bool		nested = bson_iter_type(&child) == BSON_TYPE_ARRAY &&
			!ACCEPTS_ARRAY(element);

		CHECK_FOR_INTERRUPTS();
		count++;

		if (nested)
		{
			if (depth + 1 >= MAXDIM)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "PostgreSQL's arrays have at most six dimensions.");
			if (gathering->ndims != 0 && depth + 1 >= gathering->ndims)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "Only some elements are arrays.");
			if (!gather_level(element, context, &child, depth + 1, gathering))
				return false;
		}
		else
		{
			Datum		value;
			bool		isnull;

			if (gathering->ndims == 0)
				gathering->ndims = depth + 1;
			if (gathering->ndims != depth + 1)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "Only some elements are arrays.");
			if (!mongo_read_value(element, context, &child, &value, &isnull))
				return false;
			gather_element(gathering, value, isnull);
		}
	}
	mongo_iter_check_end(&child, length);

	if (depth > 0 && count == 0)
		return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, iter,
							  "An empty array within an array has no form in PostgreSQL.");
	if (gathering->lengths[depth] < 0)
		gathering->lengths[depth] = count;
	if (gathering->lengths[depth] != count)
		return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, iter,
							  "The arrays in it differ in length.");
	return true;
}

bool
mongo_read_array(MONGO_READ_ARGS)
{
	const MongoReader *element = reader->extra;
	ArrayGathering gathering = {0};
	int			lower_bounds[MAXDIM];
	ArrayType  *array;

	for (int i = 0; i < MAXDIM; i++)
	{
		gathering.lengths[i] = -1;
		lower_bounds[i] = 1;
	}
	if (!gather_level(element, context, iter, 0, &gathering))
		return false;

	if (gathering.count == 0)
		array = construct_empty_array(element->typid);
	else
		array = construct_md_array(gathering.values, gathering.isnull,
								   gathering.ndims, gathering.lengths,
								   lower_bounds, element->typid,
								   element->typlen, element->typbyval,
								   element->typalign);
	*value = PointerGetDatum(array);
	return true;
}

/*
 * Composite types
 */

typedef struct CompositeReader
{
	TupleDesc	tupdesc;
	MongoReader **attributes;	/* NULL for a dropped one */
	const char **names;			/* in UTF-8 */
	int		   *name_lengths;
} CompositeReader;

void
mongo_prepare_composite(MongoReader *reader)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->mcxt);
	CompositeReader *composite = palloc0(sizeof(CompositeReader));
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(reader->typid, reader->typmod);

	composite->tupdesc = tupdesc;
	composite->attributes = palloc0(Max(tupdesc->natts, 1) * sizeof(MongoReader *));
	composite->names = palloc0(Max(tupdesc->natts, 1) * sizeof(char *));
	composite->name_lengths = palloc0(Max(tupdesc->natts, 1) * sizeof(int));
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);

		if (attribute->attisdropped)
			continue;
		composite->attributes[i] = mongo_reader_create(reader->mcxt,
													   attribute->atttypid,
													   attribute->atttypmod);
		composite->names[i] = mongo_to_utf8(NameStr(attribute->attname));
		composite->name_lengths[i] = strlen(composite->names[i]);
	}
	reader->extra = composite;
	MemoryContextSwitchTo(caller);
}

/* find_attribute: the attribute a field belongs to, or -1; looks from 'start' on. */
static int
find_attribute(const CompositeReader *composite, const bson_iter_t *iter, int start)
{
	int			natts = composite->tupdesc->natts;
	int			length = bson_iter_key_len(iter);

	for (int i = 0; i < natts; i++)
	{
		int			number = (start + i) % natts;

		if (composite->attributes[number] != NULL &&
			composite->name_lengths[number] == length &&
			memcmp(composite->names[number], bson_iter_key(iter), length) == 0)
			return number;
	}
	return -1;
}

bool
mongo_read_composite(MONGO_READ_ARGS)
{
	const CompositeReader *composite = reader->extra;
	int			natts = composite->tupdesc->natts;
	Datum	   *values = palloc0(Max(natts, 1) * sizeof(Datum));
	bool	   *isnull = palloc(Max(natts, 1) * sizeof(bool));
	bool	   *found = palloc0(Max(natts, 1) * sizeof(bool));
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	int			next = 0;

	memset(isnull, true, Max(natts, 1) * sizeof(bool));
	while (bson_iter_next(&child))
	{
		int			number = find_attribute(composite, &child, next);

		CHECK_FOR_INTERRUPTS();
		if (number < 0 || found[number])
			continue;
		found[number] = true;
		next = number + 1;
		if (!mongo_read_value(composite->attributes[number], context, &child,
							  &values[number], &isnull[number]))
			return false;
	}
	mongo_iter_check_end(&child, length);

	*value = HeapTupleGetDatum(heap_form_tuple(composite->tupdesc, values, isnull));
	return true;
}

/*
 * Domains
 */

typedef struct DomainReader
{
	MongoReader *base;
	DomainConstraintRef constraints;
	ExprContext *econtext;
} DomainReader;

void
mongo_prepare_domain(MongoReader *reader)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->mcxt);
	DomainReader *domain = palloc0(sizeof(DomainReader));
	int32		typmod = reader->typmod;
	Oid			base = getBaseTypeAndTypmod(reader->typid, &typmod);

	domain->base = mongo_reader_create(reader->mcxt, base, typmod);
	reader->accepts = domain->base->accepts;
	InitDomainConstraintRef(reader->typid, &domain->constraints, reader->mcxt, true);
	domain->econtext = CreateStandaloneExprContext();
	reader->extra = domain;
	MemoryContextSwitchTo(caller);
}

/*
 * The constraints are run here rather than by domain_check(), which would
 * raise: under type_mismatch 'null' a value that breaks one reads as NULL.
 */
bool
mongo_read_domain(MONGO_READ_ARGS)
{
	DomainReader *domain = reader->extra;
	ExprContext *econtext = domain->econtext;
	bool		fits = true;
	ListCell   *cell;

	if (!domain->base->read(domain->base, context, iter, value))
		return false;

	UpdateDomainConstraintRef(&domain->constraints);
	foreach(cell, domain->constraints.constraints)
	{
		DomainConstraintState *constraint = lfirst(cell);

		if (constraint->constrainttype != DOM_CONSTRAINT_CHECK)
			continue;			/* NOT NULL: the value is not */
		if (context->defers_checks)
		{
			context->deferred = true;
			break;
		}
		econtext->domainValue_datum =
			MakeExpandedObjectReadOnly(*value, false,
									   domain->constraints.tcache->typlen);
		econtext->domainValue_isNull = false;
		if (!ExecCheck(constraint->check_exprstate, econtext))
		{
			fits = false;
			break;
		}
	}
	ReScanExprContext(econtext);

	if (!fits)
		return mongo_mismatch(context, MONGO_MISMATCH_DOMAIN, iter,
							  "The value breaks a constraint of the domain.");
	return true;
}
