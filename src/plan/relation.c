/*-------------------------------------------------------------------------
 *
 * relation.c
 *		What planning knows of a foreign table: its size, and what of its
 *		restrictions MongoDB can test.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "relation.h"

#include "bson_memory.h"
#include "derived.h"
#include "feature.h"
#include "guards.h"
#include "index_use.h"
#include "match_document.h"
#include "nan_bound.h"
#include "plan.h"
#include "planning_state.h"
#include "row_count.h"
#include "score.h"
#include "security.h"
#include "settings.h"
#include "user_mapping.h"

#include "access/table.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

/* Of a collection that nobody has told us anything about. */
#define DEFAULT_ROWS	1000

static MongoRelation *
create_table_relation(RelOptInfo *baserel, Oid foreigntableid)
{
	MongoRelation *relation = palloc0(sizeof(MongoRelation));

	relation->relid = foreigntableid;
	relation->serverid = baserel->serverid;
	relation->userid = baserel->userid ? baserel->userid : GetUserId();
	relation->options = mongo_table_options(foreigntableid);
	relation->columns = mongo_columns_create(CurrentMemoryContext, foreigntableid,
											 baserel->relid, baserel->max_attr,
											 relation->options->type_mismatch);
	relation->columns->statistics = mongo_statistics_of(foreigntableid);
	if (mongo_is_derived(relation->options))
		relation->columns->derivation = relation->options;
	relation->can_be_exact = -1;
	return relation;
}

MongoTranslation
mongo_translation_of(const MongoRelation *relation)
{
	MongoTranslation translation = {.columns = relation->columns};

	translation.use_expressions = mongo_feature_enabled(relation->options,
														MONGO_FEATURE_EXPR);
	translation.disabled = relation->options->pushdown_disable;
	translation.without_nan = relation->without_nan;
	translation.beside = relation->restrictions;
	return translation;
}

/*
 * total_rows: how many documents the collection holds, or rows are derived from it.
 *
 * What a user asks for by use_remote_estimate comes first, then what ANALYZE
 * has seen, which pg_upgrade makes PostgreSQL forget, then what estimated_rows says.
 */
static double
total_rows(const MongoRelation *relation, const RelOptInfo *baserel)
{
	const MongoTableOptions *options = relation->options;

	if (options->use_remote_estimate)
		return mongo_remote_row_count(mongo_user_mapping(relation->userid,
														 relation->serverid), options);
	if (baserel->tuples > 0 || (baserel->tuples == 0 && baserel->pages > 0))
		return baserel->tuples;
	if (relation->columns->statistics != NULL)
		return relation->columns->statistics->documents;
	if (options->estimated_rows >= 0)
		return options->estimated_rows;
	return DEFAULT_ROWS;
}

/* note_known keeps a translation for the plan, if it stands by itself. */
static void
note_known(MongoRelation *relation, MongoTranslation *translation,
		   RestrictInfo *rinfo, MongoGrade grade, bson_t *match)
{
	MongoKnownCondition *known;

	if (grade == MONGO_NOT_SHIPPABLE || translation->parameters != NIL ||
		translation->variables != NIL || translation->compares_text)
		return;
	known = palloc(sizeof(MongoKnownCondition));
	known->rinfo = rinfo;
	known->grade = grade;
	known->match = match;
	relation->known = lappend(relation->known, known);
}

/*
 * add_guards: to what hides rows, that its columns fit; false when that cannot be
 * said.
 */
static bool
add_guards(const MongoRelation *relation, const RestrictInfo *rinfo, bson_t *match)
{
	bson_t	   *conditions = bson_create_in(CurrentMemoryContext);
	int			count;

	BSON_APPEND_DOCUMENT(conditions, "0", match);
	count = mongo_append_guards(conditions, 1, relation->columns,
								list_make1(rinfo->clause),
								mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR));
	if (count > 1)
	{
		bson_reinit(match);
		BSON_APPEND_ARRAY(match, "$and", conditions);
	}
	return count > 0;
}

MongoCondition
mongo_translate_restriction(MongoTranslation *translation, RelOptInfo *baserel,
							RestrictInfo *rinfo, bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoMark	before = mongo_mark(translation);
	MongoCondition condition = mongo_translate_condition(translation, rinfo->clause, match);
	bool		promotable = condition.grade == MONGO_NOT_SHIPPABLE ||
		mongo_is_securely_promotable(baserel, rinfo, match);

	if (promotable && condition.grade == MONGO_EXACT && mongo_hides_rows(baserel, rinfo) &&
		relation->options->type_mismatch == MONGO_TYPE_MISMATCH_ERROR &&
		!add_guards(relation, rinfo, match))
	{
		/* PostgreSQL then tests what comes as well */
		condition.grade = MONGO_SUPERSET;
		promotable = !translation->need_exact;
	}
	if (promotable)
		return condition;

	mongo_return_to(translation, before);
	return (MongoCondition) {.grade = MONGO_NOT_SHIPPABLE};
}

/*
 * classify_restrictions finds the restrictions that MongoDB can test, and
 * from them the numbers of documents that come and that are looked at.
 */
static void
classify_restrictions(PlannerInfo *root, RelOptInfo *baserel,
					  MongoRelation *relation)
{
	MongoTranslation translation;
	List	   *remote = NIL;
	bool		unique = false;
	ListCell   *cell;

	relation->without_nan = mongo_columns_without_nan(baserel->baserestrictinfo);
	relation->restrictions = list_copy(baserel->baserestrictinfo);
	translation = mongo_translation_of(relation);
	relation->all_exact = true;
	foreach(cell, baserel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		bson_t	   *match = bson_create_in(CurrentMemoryContext);
		MongoCondition condition = {.grade = MONGO_NOT_SHIPPABLE};

		/* what the translation checks is this user's privilege */
		if (mongo_names_match((Node *) rinfo->clause, NULL))
			relation->names_match = root->glob->dependsOnRole = true;
		if (mongo_enable_pushdown)
			condition = mongo_translate_restriction(&translation, baserel, rinfo, match);
		note_known(relation, &translation, rinfo, condition.grade, match);
		if (condition.grade != MONGO_EXACT)
			relation->all_exact = false;
		if (condition.grade == MONGO_NOT_SHIPPABLE)
			continue;
		remote = lappend(remote, rinfo);
		relation->sought = mongo_note_sought(relation->sought, rinfo, &condition);
		unique |= condition.unique;
	}

	relation->remote_rows = clamp_row_est(baserel->tuples *
										  clauselist_selectivity(root, remote, baserel->relid,
																 JOIN_INNER, NULL));
	relation->examined_rows = unique ? 1 :
		mongo_examined_rows(root, baserel, relation->sought);
	relation->remote_rows = Min(relation->remote_rows, relation->examined_rows);
	baserel->rows = Min(baserel->rows, relation->remote_rows);
}

bool
mongo_can_be_exact(RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoTranslation translation = mongo_translation_of(relation);
	ListCell   *cell;

	if (relation->all_exact || relation->can_be_exact >= 0)
		return relation->all_exact || relation->can_be_exact > 0;

	translation.need_exact = true;
	relation->can_be_exact = mongo_enable_pushdown;
	foreach(cell, baserel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		bson_t	   *match = bson_create_in(CurrentMemoryContext);

		if (relation->can_be_exact &&
			mongo_translate_restriction(&translation, baserel, rinfo, match).grade != MONGO_EXACT)
			relation->can_be_exact = false;
	}
	return relation->can_be_exact;
}

void
mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel,
						   Oid foreigntableid)
{
	MemoryContext old_context = mongo_enter_planning(baserel);
	MongoRelation *relation = create_table_relation(baserel, foreigntableid);

	mongo_keep_planning_state(baserel, relation);
	mongo_note_barriers(root, baserel);
	relation->analyzed_rows = Max(baserel->tuples, 0);
	baserel->tuples = total_rows(relation, baserel);
	set_baserel_size_estimates(root, baserel);
	classify_restrictions(root, baserel, relation);
	mongo_note_score(root, baserel);
	MemoryContextSwitchTo(old_context);
}
