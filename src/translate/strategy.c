/*-------------------------------------------------------------------------
 *
 * strategy.c
 *		Operators as strategies of B-trees, and what the renderers of predicates share: collations,
 *		values of dates and texts, the filters of equality and of nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* --------------- Operators and the default order of a type ---------------- */

const char *const mongo_find_operators[] = {
	[BTLessStrategyNumber] = "$lt",
	[BTLessEqualStrategyNumber] = "$lte",
	[BTEqualStrategyNumber] = "$eq",
	[BTGreaterEqualStrategyNumber] = "$gte",
	[BTGreaterStrategyNumber] = "$gt",
	[MONGO_STRATEGY_NOT_EQUAL] = "$ne",
};

/* The strategies of the negator and the commutator, by strategy. */
static const struct
{
	int			negated;
	int			commuted;
}			strategies[] =
{
	[BTLessStrategyNumber] = {BTGreaterEqualStrategyNumber, BTGreaterStrategyNumber},
	[BTLessEqualStrategyNumber] = {BTGreaterStrategyNumber, BTGreaterEqualStrategyNumber},
	[BTEqualStrategyNumber] = {MONGO_STRATEGY_NOT_EQUAL, BTEqualStrategyNumber},
	[BTGreaterEqualStrategyNumber] = {BTLessStrategyNumber, BTLessEqualStrategyNumber},
	[BTGreaterStrategyNumber] = {BTLessEqualStrategyNumber, BTLessStrategyNumber},
	[MONGO_STRATEGY_NOT_EQUAL] = {BTEqualStrategyNumber, MONGO_STRATEGY_NOT_EQUAL},
};

/*
 * mongo_default_opfamily
 *		Returns the type's default B-tree operator family: for varchar that of text, for an array
 *		array_ops, for a domain that of its base type.  InvalidOid if there is none.
 */
Oid
mongo_default_opfamily(Oid type)
{
	if (mongo_type_kind(type) == MONGO_KIND_OBJECTID)
		return mongo_objectid_opfamily();
	return lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

/*
 * mongo_default_strategy
 *		Returns the operator's strategy in the default family of 'type', its left operand's type, or
 *		0.
 */
int
mongo_default_strategy(Oid opno, Oid type)
{
	Oid			family = mongo_default_opfamily(type);
	Oid			negator;
	int			strategy;

	if (!OidIsValid(family))
		return 0;
	strategy = get_op_opfamily_strategy(opno, family);
	if (strategy != 0)
		return strategy;
	negator = get_negator(opno);
	return OidIsValid(negator) &&
		get_op_opfamily_strategy(negator, family) == BTEqualStrategyNumber ?
		MONGO_STRATEGY_NOT_EQUAL : 0;
}

/*
 * mongo_negated_strategy
 *		Returns the strategy of the operator's negator.
 */
int
mongo_negated_strategy(int strategy)
{
	return strategies[strategy].negated;
}

/*
 * mongo_commuted_strategy
 *		Returns the strategy of the operator's commutator.
 */
int
mongo_commuted_strategy(int strategy)
{
	return strategies[strategy].commuted;
}

/*
 * mongo_is_upper_bound
 *		Tells whether it is "<" or "<=", which exclude NaN and everything above the bound.
 */
bool
mongo_is_upper_bound(int strategy)
{
	return strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
}

/*
 * mongo_asks_for_order
 *		Tells whether it is an operator other than "=" and "<>".
 */
bool
mongo_asks_for_order(int strategy)
{
	return strategy != BTEqualStrategyNumber && strategy != MONGO_STRATEGY_NOT_EQUAL;
}

/*
 * mongo_collation_suits
 *		Tells whether PostgreSQL compares text under the collation by bytes of UTF-8, as MongoDB
 *		does.  For equality any deterministic collation does; for an order C, and the database has
 *		to be in UTF-8.
 */
bool
mongo_collation_suits(Oid collation, bool ordered)
{
	return OidIsValid(collation) &&
		(ordered ? GetDatabaseEncoding() == PG_UTF8 && mongo_collate_is_c(collation) :
		 get_collation_isdeterministic(collation));
}

/*
 * mongo_depends_on_time_zone
 *		Tells whether the value's meaning depends on the session's time zone.  A plan may outlive
 *		that setting, so execution renders even a constant.
 */
bool
mongo_depends_on_time_zone(const MongoPredicate *predicate)
{
	if ((predicate->field.zone != NULL && predicate->field.zone[0] == '\0') ||
		(predicate->field.result_zone != NULL && predicate->field.result_zone[0] == '\0'))
		return true;
	return mongo_kind_of_type(predicate->value_type)->compared_as == MONGO_KIND_TIMESTAMP &&
		mongo_type_kind(OidIsValid(predicate->field.cast_type) ? predicate->field.cast_type :
						mongo_base_type(predicate->field.type)) == MONGO_KIND_TIMESTAMPTZ;
}

/*
 * mongo_timestamp_value
 *		Converts a timestamp, or a date's midnight, to a timestamp; with 'as_instant', to the
 *		instant at which the session's clock shows it.  A value out of range becomes infinity, which
 *		compares in the same way with all timestamps.
 */
Timestamp
mongo_timestamp_value(bool as_instant, Oid type, Datum value)
{
	if (type == DATEOID)
		return as_instant ? mongo_date_to_timestamptz(DatumGetDateADT(value)) :
			mongo_date_to_timestamp(DatumGetDateADT(value));
	if (type == TIMESTAMPOID && as_instant)
		return mongo_timestamp_to_timestamptz(DatumGetTimestamp(value));
	return DatumGetTimestamp(value);
}

/*
 * mongo_text_in_utf8
 *		Returns a value of the text family in UTF-8, without a NUL at its end, and sets *length.
 *		Returns NULL for bytes of SQL_ASCII that are not UTF-8, which equal no value in MongoDB.  A
 *		character that has no UTF-8 raises 22P05.
 */
const char *
mongo_text_in_utf8(Oid type, Datum value, int *length)
{
	const char *string;
	char	   *converted;

	if (type == NAMEOID)
	{
		string = NameStr(*DatumGetName(value));
		*length = strlen(string);
	}
	else
	{
		text	   *packed = DatumGetTextPP(value);

		string = VARDATA_ANY(packed);
		*length = VARSIZE_ANY_EXHDR(packed);
	}

	if (!mongo_has_utf8(string, *length))
		return NULL;
	converted = pg_server_to_any(string, *length, PG_UTF8);
	if (converted != string)
		*length = strlen(converted);
	return converted;
}

/*
 * mongo_append_equal
 *		Appends {path: {$eq: value}}, or {_id: value}, for which MongoDB does not plan, if it is
 *		equivalent: not for a regular expression or a document, which would be conditions.
 */
void
mongo_append_equal(bson_t *match, const char *path, const bson_value_t *value)
{
	if (strcmp(path, "_id") == 0)
	{
		switch (value->value_type)
		{
			case BSON_TYPE_INT32:
			case BSON_TYPE_INT64:
			case BSON_TYPE_DOUBLE:
			case BSON_TYPE_DECIMAL128:
			case BSON_TYPE_UTF8:
			case BSON_TYPE_OID:
			case BSON_TYPE_BOOL:
			case BSON_TYPE_DATE_TIME:
			case BSON_TYPE_BINARY:
				mongo_append(match, path, *value);
				return;
			default:
				break;
		}
	}
	mongo_append_condition(match, path, "$eq", *value);
}

/*
 * mongo_append_nothing
 *		Appends {path: {$in: []}}, which MongoDB plans as EOF as it matches nothing; returns
 *		MONGO_MATCH_NONE.
 */
MongoMatch
mongo_append_nothing(bson_t *match, const char *path)
{
	mongo_append_template(match, "{@1: {$in: []}}", mongo_utf8(path));
	return MONGO_MATCH_NONE;
}
