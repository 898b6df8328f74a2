/*-------------------------------------------------------------------------
 *
 * clauses.c
 *		The clauses of a scan, classified by who tests them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clauses.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "encode.h"
#include "encoding.h"
#include "feature.h"
#include "relation.h"
#include "security.h"
#include "settings.h"

#include "catalog/pg_type_d.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

static const MongoKnownCondition *
find_known(const List *known, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, known)
	{
		const MongoKnownCondition *one = lfirst(cell);

		if (one->rinfo == rinfo)
			return one;
	}
	return NULL;
}

/* translate_clause: a restriction of a table, or a clause of a join. */
static MongoGrade
translate_clause(MongoTranslation *translation, RelOptInfo *baserel, RestrictInfo *rinfo,
				 bson_t *match)
{
	if (!mongo_enable_pushdown)
		return MONGO_NOT_SHIPPABLE;
	return baserel != NULL ?
		mongo_translate_restriction(translation, baserel, rinfo, match).grade :
		mongo_translate_condition(translation, rinfo->clause, match).grade;
}

static MongoSentClause *
sent_clause(Expr *clause, bson_t *match)
{
	MongoSentClause *sent = palloc(sizeof(MongoSentClause));

	sent->clause = clause;
	sent->match = match;
	return sent;
}

void
mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel,
					   List *known, List *scan_clauses, MongoScanClauses *clauses)
{
	List	   *conjuncts = NIL;
	ListCell   *cell;

	memset(clauses, 0, sizeof(*clauses));
	foreach(cell, scan_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		const MongoKnownCondition *earlier = find_known(known, rinfo);
		bson_t	   *match;
		MongoGrade	grade;

		/* pseudoconstants become a gating Result node */
		if (rinfo->pseudoconstant)
			continue;
		if (earlier != NULL &&
			(earlier->grade == MONGO_EXACT || !translation->need_exact))
		{
			match = earlier->match;
			grade = earlier->grade;
		}
		else
		{
			match = bson_create_in(CurrentMemoryContext);
			grade = translate_clause(translation, baserel, rinfo, match);
		}
		if (grade != MONGO_NOT_SHIPPABLE && !bson_empty(match))
		{
			conjuncts = lappend(conjuncts, match);
			clauses->sent = lappend(clauses->sent, sent_clause(rinfo->clause, match));
		}
		if (grade == MONGO_EXACT)
		{
			clauses->exact = lappend(clauses->exact, rinfo->clause);
			continue;
		}
		if (baserel != NULL && mongo_hides_rows(baserel, rinfo))
			clauses->hiding = lappend_int(clauses->hiding, list_length(clauses->local));
		clauses->local = lappend(clauses->local, rinfo->clause);
	}

	clauses->filter = bson_create_in(CurrentMemoryContext);
	mongo_append_conjuncts(clauses->filter, conjuncts);
}

void
mongo_append_conjuncts(bson_t *filter, const List *conjuncts)
{
	BsonArray	branches;
	ListCell   *cell;

	if (list_length(conjuncts) == 1)
		bson_concat(filter, linitial(conjuncts));
	if (list_length(conjuncts) <= 1)
		return;
	branches = bson_array_create();
	foreach(cell, conjuncts)
		bson_array_append(&branches, bson_document(lfirst(cell)));
	BSON_APPEND_ARRAY(filter, "$and", branches.bson);
}

void
mongo_append_collation(bson_t *command, const MongoTranslation *translation)
{
	if (translation->compares_text &&
		!mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_COLLATION))
		bson_append_template(command, "{collation: {locale: 'simple'}}");
}

void
mongo_append_hint(bson_t *command, const MongoTableOptions *options)
{
	const char *hint = mongo_hint[0] != '\0' ? mongo_hint : options->hint;

	if (hint == NULL)
		return;
	if (hint[0] != '{')
	{
		BSON_APPEND_UTF8(command, "hint", mongo_to_utf8(hint));
		return;
	}
	/* what DDL has checked of the option */
	if (hint == mongo_hint)
		DirectFunctionCall1(json_in, CStringGetDatum(hint));
	mongo_append_datum(command, "hint", -1, CStringGetTextDatum(hint), false, JSONOID, -1);
}

void
mongo_append_max_time(bson_t *command, const MongoTableOptions *options)
{
	if (options->max_time_ms > 0)
		BSON_APPEND_INT32(command, "maxTimeMS", options->max_time_ms);
}
