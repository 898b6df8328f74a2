/*-------------------------------------------------------------------------
 *
 * command.c
 *		Writes the commands of plans.
 *
 * The order of a command's fields can be read here: find (filter, projection, sort), aggregate and
 * count, each followed by what any command may have (finish_command()).  They are templates.  When
 * the scan starts, mongo_command_bind() (src/translate/template.c) replaces the placeholders for
 * values in their filters and pipelines, and adds what depends on the run.  What depends on the
 * connection (the database, the session, the read concern, comments) is added to the message that
 * has the command, by build_message() in src/remote/wire.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "catalog/pg_type_d.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* Appends the hint of the setting mongo_fdw.hint, of the option, or to read in natural order. */
static void
append_hint(bson_t *command, const MongoTableOptions *options, bool natural)
{
	const char *hint = mongo_hint[0] != '\0' ? mongo_hint : options->hint;

	if (hint == NULL)
	{
		if (natural)
			mongo_append_template(command, "{hint: {$natural: 1}}");
		return;
	}
	if (hint[0] != '{')
	{
		mongo_append(command, "hint", mongo_utf8(mongo_to_utf8(hint)));
		return;
	}
	/* DDL has checked the option, but not the setting */
	if (hint == mongo_hint)
		DirectFunctionCall1(json_in, CStringGetDatum(hint));
	mongo_append_datum(command, "hint", -1, CStringGetTextDatum(hint), false, JSONOID, -1);
}

/*
 * Appends the fields that any command may have: collation, hint, maxTimeMS; returns it as a Const.
 */
static Const *
finish_command(bson_t *command, const MongoRelation *relation,
			   const MongoTranslation *translation, bool may_need_disk, bool hinted, bool natural)
{
	const MongoTableOptions *options = relation->options;

	if (may_need_disk && mongo_feature_enabled(options, MONGO_FEATURE_DISK_USE))
		mongo_append(command, "allowDiskUse", mongo_bool(true));
	if (translation->compares_text &&
		!mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_COLLATION))
		mongo_append_template(command, "{collation: {locale: 'simple'}}");
	if (hinted)
		append_hint(command, options, natural);
	if (options->max_time_ms > 0)
		mongo_append(command, "maxTimeMS", mongo_int32(options->max_time_ms));
	return mongo_command_to_const(command);
}

/* Tells whether a pipeline over a table reads it faster in natural order. */
static bool
reads_naturally(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	return relation->natural && relation->join == NULL && pipeline->reads_all;
}

/*
 * mongo_pipeline_command
 *		Returns {aggregate: collection, pipeline: [...], cursor: {}}.
 */
Const *
mongo_pipeline_command(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	bson_t	   *command = mongo_aggregate_command(relation->options, pipeline->stages);

	mongo_append_template(command, "{cursor: {}}");

	/*
	 * the only one that a change stream takes, whatever the server's options
	 * say
	 */
	if (relation->options->change_stream != NULL)
		mongo_append_template(command, "{readConcern: {level: 'majority'}}");
	return finish_command(command, relation, &pipeline->translation, pipeline->may_need_disk, true,
						  reads_naturally(relation, pipeline));
}

/*
 * mongo_count_command
 *		Returns {count: collection, query: filter}, for a pipeline that ends with $count.
 */
Const *
mongo_count_command(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	const bson_t *filter = pipeline->only_match;
	bson_t	   *command = mongo_from_template("{count: @1}",
											  mongo_utf8(mongo_to_utf8(relation->options->collection)));

	if (filter != NULL)
		mongo_append(command, "query", mongo_document(filter));
	return finish_command(command, relation, &pipeline->translation, false, filter != NULL,
						  reads_naturally(relation, pipeline));
}

/*
 * mongo_find_command
 *		Returns {find: collection, ...}, for a scan that reads documents.
 *
 * 'conditions' are filters (bson_t *), 'sort' may be NULL, and 'natural' adds a hint.
 */
Const *
mongo_find_command(const MongoRelation *relation, const MongoTranslation *translation,
				   List *conditions, const bson_t *projection, const bson_t *sort, bool natural)
{
	bson_t	   *command = mongo_bson_create();
	const bson_t *filter = mongo_conjunction(conditions);

	mongo_append(command, "find", mongo_utf8(mongo_to_utf8(relation->options->collection)));
	if (!bson_empty(filter))
		mongo_append(command, "filter", mongo_document(filter));
	if (!bson_empty(projection))
		mongo_append(command, "projection", mongo_document(projection));
	if (sort != NULL)
		mongo_append(command, "sort", mongo_document(sort));
	return finish_command(command, relation, translation, sort != NULL, true, natural);
}

/*
 * Returns {aggregate: ...} for a pipeline table: the stages that make its rows, then the clauses
 * of a find as stages.  Adds parameters to 'translation'.
 */
static Const *
pipeline_table_command(const MongoRelation *relation, MongoTranslation *translation,
					   const MongoScanClauses *clauses, const bson_t *condition,
					   const bson_t *projection, const bson_t *sort)
{
	MongoPipeline pipeline = {
		.translation = *translation, .stages = mongo_bson_create()
	};

	mongo_pipeline_make_rows(&pipeline, relation, clauses);
	if (!bson_empty0(condition))
		mongo_pipeline_append(&pipeline, "$match", condition);
	if (!bson_empty0(sort))
		mongo_pipeline_append(&pipeline, "$sort", sort);
	if (!bson_empty(projection))
		mongo_pipeline_append(&pipeline, "$project", projection);
	if (relation->options->split_events)
		mongo_pipeline_append(&pipeline, "$changeStreamSplitLargeEvent", mongo_bson_create());
	*translation = pipeline.translation;
	return mongo_pipeline_command(relation, &pipeline);
}

/*
 * mongo_scan_commands
 *		Returns the command (Const) of a scan of one table, or several for a split sort
 *		(MongoSortPart), which run one by one.
 *
 * An empty projection is none.  'natural' adds the hint {$natural: 1}, unless the user gives one.
 * Adds the parameters of a pipeline's user to 'translation'.
 */
List *
mongo_scan_commands(RelOptInfo *baserel, MongoTranslation *translation,
					const MongoScanClauses *clauses, const bson_t *projection, List *pathkeys,
					bool natural)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoOrder	order = {.nparts = 1};
	List	   *commands = NIL;

	if (pathkeys != NIL && !mongo_find_order(baserel, pathkeys, &order))
		elog(ERROR, "sort key is not a field");
	for (int i = 0; i < order.nparts; i++)
	{
		bson_t	   *condition = NULL;
		bson_t	   *sort = NULL;
		List	   *conditions = bson_empty(clauses->filter) ? NIL : list_make1(unconstify(bson_t *, clauses->filter));

		if (pathkeys != NIL)
		{
			condition = mongo_bson_create();
			sort = mongo_bson_create();
			mongo_append_order(relation, &order, i, condition, sort);
		}
		if (clauses->unwinds)
			conditions = mongo_document_conditions(relation, translation, clauses);
		if (!bson_empty0(condition))
			conditions = lappend(conditions, condition);
		commands = lappend(commands, mongo_is_pipeline_table(relation->options) && !clauses->unwinds ?
						   pipeline_table_command(relation, translation, clauses, condition, projection,
												  sort) :
						   mongo_find_command(relation, translation, conditions, projection,
											  bson_empty0(sort) ? NULL : sort, natural));
	}
	return commands;
}

/*
 * mongo_direct_command
 *		Returns {filter: ..., projection: ...} for an UPDATE or DELETE as one command, of the find
 *		that would scan its rows.
 *
 * The filter has type checks of the fields that it tests, the 'quals'; returns NULL if there is no
 * such check.  If type mismatches read as NULL, exact filters need no type checks.  Sets
 * *simple_collation if the find has that.
 */
Const *
mongo_direct_command(const Const *find_command, const MongoRelation *relation, List *quals,
					 const MongoDirectPlan *direct, bool *simple_collation)
{
	const bson_t *find = mongo_command_from_const(find_command);
	bson_t	   *command = mongo_bson_create();
	bson_t	   *conditions = mongo_bson_create();
	bson_iter_t iter;
	int			index = 0;

	*simple_collation = bson_has_field(find, "collation");
	if (bson_iter_init_find(&iter, find, "filter"))
	{
		mongo_append_iter(conditions, "0", &iter);
		index = 1;
	}
	if (!mongo_mismatches_are(relation, MONGO_TYPE_MISMATCH_NULL))
		index = mongo_append_column_checks(conditions, index, relation->columns, quals,
										   mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR));
	if (index < 0)
		return NULL;

	if (index == 1)
		mongo_append_iter(command, "filter", &iter);
	else
		mongo_append_template(command, index == 0 ? "{filter: {}}" : "{filter: {$and: @1}}",
							  mongo_array(conditions));
	if (direct->returns)
		mongo_append_projection(command, "projection", relation->columns, direct->returned);
	return mongo_command_to_const(command);
}
