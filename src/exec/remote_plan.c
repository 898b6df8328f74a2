/*-------------------------------------------------------------------------
 *
 * remote_plan.c
 *		What the reply to MongoDB's command explain says, as lines of text.
 *
 * A find, count, update or delete has {queryPlanner: {winningPlan: PLAN}}.  An
 * aggregate has that, too, when all of it runs in one engine, and otherwise
 * {stages: [{$cursor: {queryPlanner: ...}}, {$group: ...}, ...]}.  A PLAN is
 * {stage: NAME, inputStage: PLAN, ...} for the classic engine and {queryPlan:
 * PLAN, slotBasedPlan: ...} for the slot-based one.  Statistics of execution
 * stand beside each queryPlanner, and in $lookup stages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_plan.h"

#include "bson_memory.h"
#include "encoding.h"
#include "json_read.h"
#include "miscadmin.h"
#include "printable.h"
#include "utils/builtins.h"

/* A line need not show the whole of a long filter. */
#define LONGEST_DETAIL		300

/* Nobody's plan is so deep or long; a reply may be anything. */
#define DEEPEST_PLAN		100
#define LONGEST_PLAN		1000

/* What is shown of a stage, in this order, after its name. */
static const struct
{
	const char *field;
	const char *label;
	const char *unless;			/* a value that goes without saying */
}			stage_details[] =
{
	{"indexName", "using", NULL},
	{"indexBounds", "bounds", NULL},
	{"direction", "direction", "forward"},
	{"filter", "filter", NULL},
	{"sortPattern", "key", NULL},
	{"limitAmount", "limit", NULL},
	{"skipAmount", "skip", NULL},
};

/* Where a stage's inputs are: a document, or an array of them. */
static const char *const stage_inputs[] = {
	"queryPlan", "inputStage", "inputStages", "outerStage", "innerStage",
	"winningPlan", "shards"
};

/* What a stage of a pipeline says of its own reading. */
static const char *const pipeline_details[] = {"indexesUsed", "collectionScans"};

typedef struct PlanReader
{
	List	   *lines;
	MongoExamined *examined;
} PlanReader;

static void read_planner(PlanReader *reader, const bson_iter_t *document, int depth);

/* find_field: in a document that an iterator is at. */
static bool
find_field(const bson_iter_t *document, const char *name, bson_iter_t *field)
{
	return bson_iter_recurse(document, field) && bson_iter_find(field, name);
}

/* value_text: a value of any type, compact. */
static char *
value_text(const bson_iter_t *value)
{
	char	   *text;

	if (BSON_ITER_HOLDS_UTF8(value))
		return mongo_cut_text(mongo_printable(bson_iter_utf8(value, NULL)), LONGEST_DETAIL);
	text = mongo_json_show_value(value, LONGEST_DETAIL);
	return text != NULL ? text : pstrdup("...");
}

/* add_line: indented as EXPLAIN does it; lines beyond LONGEST_PLAN are left out. */
static void
add_line(PlanReader *reader, int depth, const char *text)
{
	StringInfoData line;

	if (list_length(reader->lines) >= LONGEST_PLAN)
		return;
	initStringInfo(&line);
	if (depth > 0)
	{
		appendStringInfoSpaces(&line, depth * 2);
		appendStringInfoString(&line, "->  ");
	}
	appendStringInfoString(&line, text);
	reader->lines = lappend(reader->lines, line.data);
}

/* stage_line: "IXSCAN using a_1, bounds { ... }"; false when it is no stage. */
static bool
stage_line(PlanReader *reader, const bson_iter_t *stage, int depth)
{
	StringInfoData line;
	bson_iter_t field;
	const char *separator = " ";

	if (!find_field(stage, "stage", &field) || !BSON_ITER_HOLDS_UTF8(&field))
		return false;

	initStringInfo(&line);
	appendStringInfoString(&line, value_text(&field));
	for (size_t i = 0; i < lengthof(stage_details); i++)
	{
		char	   *text;

		if (!find_field(stage, stage_details[i].field, &field))
			continue;
		text = value_text(&field);
		if (stage_details[i].unless != NULL && strcmp(text, stage_details[i].unless) == 0)
			continue;
		appendStringInfo(&line, "%s%s %s", separator, stage_details[i].label, text);
		separator = ", ";
	}
	add_line(reader, depth, line.data);
	return true;
}

/* read_plan: a PLAN, or an array of them, and what is below. */
static void
read_plan(PlanReader *reader, const bson_iter_t *plan, int depth)
{
	bson_iter_t field;

	CHECK_FOR_INTERRUPTS();
	if (depth > DEEPEST_PLAN)
		return;
	if (BSON_ITER_HOLDS_ARRAY(plan))
	{
		if (!bson_iter_recurse(plan, &field))
			return;
		while (bson_iter_next(&field))
			read_plan(reader, &field, depth);
		return;
	}
	if (!BSON_ITER_HOLDS_DOCUMENT(plan))
		return;

	if (stage_line(reader, plan, depth))
		depth++;
	for (size_t i = 0; i < lengthof(stage_inputs); i++)
	{
		if (find_field(plan, stage_inputs[i], &field))
			read_plan(reader, &field, depth);
	}
}

/* Add a number of the reply, if it is there, to what has been examined. */
static void
add_number(const bson_iter_t *document, const char *name, int64 *sum)
{
	bson_iter_t field;

	if (find_field(document, name, &field) && BSON_ITER_HOLDS_NUMBER(&field))
		*sum = Max(*sum, 0) + bson_iter_as_int64(&field);
}

static void
add_statistics(PlanReader *reader, const bson_iter_t *document)
{
	add_number(document, "totalKeysExamined", &reader->examined->keys);
	add_number(document, "totalDocsExamined", &reader->examined->documents);
	add_number(document, "executionTimeMillis", &reader->examined->milliseconds);
}

/* read_pipeline_stage: {$group: ..., and statistics}, above what is below it. */
static void
read_pipeline_stage(PlanReader *reader, const bson_iter_t *stage, int depth)
{
	StringInfoData line;
	bson_iter_t field;

	if (!bson_iter_recurse(stage, &field) || !bson_iter_next(&field))
		return;
	if (strcmp(bson_iter_key(&field), "$cursor") == 0)
	{
		read_planner(reader, &field, depth);
		return;
	}
	initStringInfo(&line);
	appendStringInfo(&line, "%s %s", mongo_printable(bson_iter_key(&field)),
					 value_text(&field));
	for (size_t i = 0; i < lengthof(pipeline_details); i++)
	{
		if (find_field(stage, pipeline_details[i], &field))
			appendStringInfo(&line, ", %s %s", pipeline_details[i], value_text(&field));
	}
	add_line(reader, depth, line.data);
	add_statistics(reader, stage);
}

/* read_pipeline: the last stage is at the top, as in PostgreSQL's plans. */
static void
read_pipeline(PlanReader *reader, const bson_iter_t *stages, int depth)
{
	List	   *before = reader->lines;
	List	   *lines = NIL;
	int			nstages = 0;
	bson_iter_t stage;

	if (!BSON_ITER_HOLDS_ARRAY(stages) || !bson_iter_recurse(stages, &stage))
		return;
	while (bson_iter_next(&stage))
		nstages++;
	if (nstages > DEEPEST_PLAN)
		return;

	bson_iter_recurse(stages, &stage);
	while (bson_iter_next(&stage))
	{
		reader->lines = NIL;
		if (BSON_ITER_HOLDS_DOCUMENT(&stage))
			read_pipeline_stage(reader, &stage, depth + --nstages);
		lines = list_concat(reader->lines, lines);
	}
	reader->lines = list_concat(before, lines);
}

/* read_planner: {queryPlanner: ..., executionStats: ...} and the like. */
static void
read_planner(PlanReader *reader, const bson_iter_t *document, int depth)
{
	bson_iter_t field;
	bson_iter_t plan;

	if (find_field(document, "queryPlanner", &field) &&
		find_field(&field, "winningPlan", &plan))
		read_plan(reader, &plan, depth);
	else if (find_field(document, "stages", &field))
		read_pipeline(reader, &field, depth);

	if (find_field(document, "executionStats", &field) &&
		BSON_ITER_HOLDS_DOCUMENT(&field))
		add_statistics(reader, &field);
}

List *
mongo_remote_plan_lines(const bson_t *reply, MongoExamined *examined)
{
	PlanReader	reader = {NIL, examined};
	bson_t	   *wrapper = bson_create_in(CurrentMemoryContext);
	bson_iter_t document;
	bson_iter_t shards;

	*examined = (MongoExamined)
	{
		-1, -1, -1
	};
	BSON_APPEND_DOCUMENT(wrapper, "", reply);
	if (!bson_iter_init(&document, wrapper) || !bson_iter_next(&document))
		return NIL;

	read_planner(&reader, &document, 0);

	/* a pipeline on a sharded cluster: one plan for each shard, by its name */
	if (find_field(&document, "shards", &shards) &&
		BSON_ITER_HOLDS_DOCUMENT(&shards))
	{
		bson_iter_t shard;

		bson_iter_recurse(&shards, &shard);
		while (bson_iter_next(&shard))
		{
			add_line(&reader, 0, psprintf("shard %s",
										  mongo_printable(bson_iter_key(&shard))));
			read_planner(&reader, &shard, 1);
		}
	}
	return reader.lines;
}
