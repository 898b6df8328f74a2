/*-------------------------------------------------------------------------
 *
 * check.c
 *		mongo_fdw_check(): compares a table's definition with its collection.
 *
 * Reads a sample of the documents with the table's columns and lists the indexes.
 * Changes nothing.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "translate.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

/* Bytes of an _id that a finding quotes. */
#define SHOWN_ID_SIZE	100

/* A column that reads a field, with the values that do not fit. */
typedef struct CheckedColumn
{
	MongoColumn column;
	const SampledField *field;
	MongoRowDecoder *decoder;	/* for this column alone; NULL until needed */
	double		mismatches;
	uint32		types;			/* set of MONGO_BSON_BIT */
	char	   *example;		/* _id of a document, or NULL */
} CheckedColumn;

typedef struct Check
{
	Relation	relation;
	const MongoTableOptions *options;
	UserMapping *user;
	CheckedColumn *columns;
	int			ncolumns;
	bool		whole_document; /* is there a column __doc? */
	MongoRowDecoder *decoder;
	Datum	   *values;
	bool	   *isnull;
	FieldSample *sample;
	MemoryContext context;		/* of all this */
	MemoryContext document_context; /* reset for each document */
	ReturnSetInfo *result;
} Check;

PG_FUNCTION_INFO_V1(mongo_fdw_check);

/* ------------------------------ findings ----------------------------------- */

/*
 * Adds a row to the result.  An argument that is NULL, no types or -1 documents gives NULL;
 * 'field' is UTF-8.
 */
static void
add_finding(const Check *check, const char *finding, const char *field, const char *column,
			double documents, uint32 types, const char *detail)
{
	Datum		names[MONGO_TYPE_COUNT];
	int			count = 0;
	bool		isnull[] = {false, field == NULL, column == NULL, documents < 0, types == 0, detail == NULL};
	Datum		values[] = {
		CStringGetTextDatum(finding),
		field == NULL ? (Datum) 0 : CStringGetTextDatum(mongo_printable(field)),
		column == NULL ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(column)),
		Int64GetDatum((int64) documents),
		(Datum) 0,
		detail == NULL ? (Datum) 0 : CStringGetTextDatum(detail)
	};

	for (int i = 0; i < MONGO_TYPE_COUNT; i++)
	{
		if ((types & ((uint32) 1 << i)) != 0)
			names[count++] = CStringGetTextDatum(mongo_bson_type_name(MONGO_TYPE_OF_BIT(i)));
	}
	values[4] = PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
	tuplestore_putvalues(check->result->setResult, check->result->setDesc, values, isnull);
}

/* ------------------------------ the table ---------------------------------- */

/* Collects the columns that read a field. */
static void
list_columns(Check *check)
{
	List	   *columns = mongo_sample_columns(check->relation, MONGO_TYPE_MISMATCH_ERROR);

	check->columns = palloc0(sizeof(CheckedColumn) * Max(list_length(columns), 1));
	foreach_ptr(const MongoColumn, column, columns)
	{
		if (column->path == NULL)
			check->whole_document = true;
		else
			check->columns[check->ncolumns++].column = *column;
	}
}

/* Returns a decoder for some adjacent columns. */
static MongoRowDecoder *
create_decoder(const Check *check, const CheckedColumn *columns, int ncolumns)
{
	List	   *wanted = NIL;
	MongoRowDecoder *decoder;

	for (int i = 0; i < ncolumns; i++)
		wanted = lappend(wanted, unconstify(MongoColumn *, &columns[i].column));
	decoder = mongo_row_decoder_create(check->context, check->options->database,
									   check->options->collection, wanted,
									   check->options->canonical_json);
	mongo_row_decoder_defer_errors(decoder, MONGO_DEFER_MISMATCHES, NULL);
	return decoder;
}

static void
prepare(Check *check)
{
	check->context = CurrentMemoryContext;
	check->document_context = AllocSetContextCreate(CurrentMemoryContext,
													"mongo_fdw checked document",
													ALLOCSET_DEFAULT_SIZES);
	list_columns(check);
	check->sample = mongo_field_sample_create(false, 0);
	for (int i = 0; i < check->ncolumns; i++)
		check->columns[i].field = mongo_field_sample_find(check->sample, check->columns[i].column.path,
														  true);
	check->values = palloc0(sizeof(Datum) * Max(RelationGetDescr(check->relation)->natts, 1));
	check->isnull = palloc0(sizeof(bool) * Max(RelationGetDescr(check->relation)->natts, 1));
	check->decoder = create_decoder(check, check->columns, check->ncolumns);
	mongo_row_decoder_defer_errors(check->decoder, MONGO_DEFER_ERRORS, NULL);
}

/* ------------------------------ documents ---------------------------------- */

/* Returns a document's _id as JSON, or NULL. */
static char *
id_of(const Check *check, const uint8_t *data, uint32 length)
{
	bson_iter_t iter;
	char	   *text;

	if (!bson_iter_init_from_data(&iter, data, length) || !bson_iter_find(&iter, "_id"))
		return NULL;
	text = mongo_json_show_value(&iter, false, SHOWN_ID_SIZE);
	return text != NULL ? MemoryContextStrdup(check->context, mongo_printable(text)) : NULL;
}

/* Tells whether an error is one of an input function or a constraint about a value. */
static bool
is_about_data(int sqlstate)
{
	int			category = ERRCODE_TO_CATEGORY(sqlstate);

	return category == ERRCODE_DATA_EXCEPTION ||
		category == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION;
}

/* The arguments and result of fit(). */
typedef struct Fitting
{
	const Check *check;
	CheckedColumn *column;
	const uint8_t *data;
	uint32		length;
	bool		fits;
} Fitting;

static void
fit(void *argument)
{
	Fitting    *fitting = argument;
	MongoRowDecoder *decoder = fitting->column->decoder;

	mongo_row_decode(decoder, fitting->data, fitting->length, fitting->check->values,
					 fitting->check->isnull);
	fitting->fits = bms_is_empty(mongo_row_decoder_mismatches(decoder));
}

/*
 * Does a document fit this column, whose type may raise errors?
 *
 * Runs in a subtransaction, because any code may raise these errors.
 */
static bool
fits_alone(const Check *check, CheckedColumn *column, const uint8_t *data, uint32 length)
{
	Fitting		fitting = {check, column, data, length, false};
	ErrorData  *error;

	if (column->decoder == NULL)
		column->decoder = create_decoder(check, column, 1);
	return mongo_try(fit, &fitting, is_about_data, &error) && fitting.fits;
}

/* Adds a document to the sample, and counts mismatches of columns. */
static void
check_document(Check *check, const uint8_t *data, uint32 length)
{
	const Bitmapset *mismatches;
	bool		deferred;

	mongo_field_sample_observe(check->sample, data, length);
	if (check->ncolumns == 0)
		return;
	mongo_row_decode(check->decoder, data, length, check->values, check->isnull);
	mismatches = mongo_row_decoder_mismatches(check->decoder);
	deferred = mongo_row_decoder_deferred(check->decoder);
	for (int i = 0; i < check->ncolumns; i++)
	{
		CheckedColumn *column = &check->columns[i];

		if (!bms_is_member(column->column.index, mismatches) &&
			(!deferred || fits_alone(check, column, data, length)))
			continue;
		column->mismatches++;
		column->types |= mongo_sampled_field_last_type(check->sample, column->field);
		if (column->example == NULL)
			column->example = id_of(check, data, length);
	}
}

/*
 * Reads a sample.
 *
 * A table's domains may call any function.  The caller who has the rights of the table's owner is
 * protected from that, as by ANALYZE: they run with the owner's rights alone, and look up no name
 * in the caller's schemas.  Otherwise the owner must be protected from the caller's settings and
 * temporary objects, so that they run with the caller's rights, as in a query.
 */
static void
check_documents(Check *check, int sample)
{
	Oid			owner = check->relation->rd_rel->relowner;
	bool		as_owner = owner != GetUserId() && has_privs_of_role(GetUserId(), owner);
	bool		has_more = mongo_fetch_row_count(check->user, check->options) > sample;
	MongoCursor *cursor = mongo_sample_open(check->user, check->options, has_more ? sample : 0,
											SAMPLE_AT_RANDOM, NULL,
											SAMPLE_BATCH, NULL);
	const uint8_t *data;
	uint32		length;

	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		MemoryContext previous;
		Oid			user;
		int			security;
		int			level;

		CHECK_FOR_INTERRUPTS();

		MemoryContextReset(check->document_context);
		previous = MemoryContextSwitchTo(check->document_context);
		GetUserIdAndSecContext(&user, &security);
		level = NewGUCNestLevel();
		if (as_owner)
		{
			SetUserIdAndSecContext(owner, security | SECURITY_RESTRICTED_OPERATION);
			(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_SAVE, true, 0, false);
		}
		check_document(check, data, length);
		AtEOXact_GUC(false, level);
		SetUserIdAndSecContext(user, security);
		MemoryContextSwitchTo(previous);
	}
	mongo_cursor_close(cursor);
}

/* ------------------------------ the result --------------------------------- */

/* Returns a detail, with a name that was probably meant; both may be NULL. */
static const char *
perhaps(const char *detail, const char *meant)
{
	return meant == NULL ? detail :
		psprintf("%s%sperhaps \"%s\"", detail == NULL ? "" : detail, detail == NULL ? "" : ", ", meant);
}

static void
report_columns(const Check *check)
{
	for (int i = 0; i < check->ncolumns; i++)
	{
		const CheckedColumn *column = &check->columns[i];
		double		counts[MONGO_TYPE_COUNT];
		uint32		types;

		if (column->mismatches > 0)
			add_finding(check, "values that do not fit", column->column.path,
						column->column.name, column->mismatches, column->types,
						column->example == NULL ? NULL :
						psprintf("for example where _id is %s", column->example));
		else if (check->sample->documents > 0 &&
				 mongo_sampled_field_counts(column->field, counts, &types) == 0)
			add_finding(check, "column without field", column->column.path,
						column->column.name, 0, 0,
						perhaps(NULL, mongo_nearest_field(check->sample, column->column.path)));
	}
}

/* Reports top-level fields, and siblings of read fields, without column. */
static void
report_fields(const Check *check, const SampledField *parent, const char *prefix)
{
	for (const SampledField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *path = psprintf("%s%s", prefix, field->name);
		double		counts[MONGO_TYPE_COUNT];
		uint32		types;
		double		documents = mongo_sampled_field_counts(field, counts, &types);

		if (field->path != NULL)
			continue;
		if (field->is_above)
			report_fields(check, field, psprintf("%s.", path));
		else
			add_finding(check, "field without column", path, NULL, documents, types, NULL);
	}
}

/* Returns a usable index that begins with this path, or NULL. */
static const MongoIndex *
leading_index(const MongoStatistics *indexes, const char *path)
{
	for (int i = 0; i < indexes->nindexes; i++)
	{
		const MongoIndex *index = &indexes->indexes[i];

		if (index->uses != 0 && mongo_key_covers(&index->keys[0], path))
			return index;
	}
	return NULL;
}

/* Reports where the collection's indexes differ from those planning assumes. */
static void
report_indexes(const Check *check, const MongoStatistics *indexes)
{
	const MongoStatistics *statistics = mongo_statistics_of(RelationGetRelid(check->relation));

	for (int i = 0; i < check->ncolumns; i++)
	{
		const CheckedColumn *column = &check->columns[i];
		const char *path = column->column.path;
		MongoTristate indexed = mongo_column_options(RelationGetRelid(check->relation),
													 column->column.index + 1)->indexed;
		bool		known = indexed == MONGO_NOT_GIVEN ?
			mongo_index_uses(statistics, path) != 0 : indexed == MONGO_YES;
		const MongoIndex *found = leading_index(indexes, path);

		/*
		 * The planner assumes an index on _id anyway, and option indexed
		 * 'false' is intentional.
		 */
		if (known == (found != NULL) || strcmp(path, "_id") == 0 ||
			indexed == MONGO_NO)
			continue;
		add_finding(check, known ? "missing index" : "unknown index", path, column->column.name,
					-1, 0, found == NULL ? NULL :
					psprintf("index \"%s\"", mongo_printable(found->name)));
	}
}

/*
 * Adds a row for each finding to the result.
 *
 * Raises 42809 for a table of another wrapper, 42501 without SELECT on it or without USAGE on its
 * server, as it shows fields that are no columns, 22023 for a sample size below 1.
 */
static void
check_table(Check *check, int sample)
{
	Relation	relation = check->relation;
	Oid			relid = RelationGetRelid(relation);
	Oid			serverid = mongo_require_own_table(relation);
	MongoStatistics indexes;
	const char *refusal;
	IndexListing listing;

	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, RelationGetRelationName(relation));
	if (sample < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a sample must have at least one document")));
	check->options = mongo_table_options(relid);
	check->user = mongo_caller_mapping(GetForeignServer(serverid));

	listing = mongo_list_indexes(check->user, check->options->database, check->options->collection,
								 &indexes, &refusal);
	if (listing == INDEXES_OF_NOTHING)
		add_finding(check, "collection does not exist", NULL, NULL, -1, 0,
					perhaps(psprintf("%s.%s", check->options->database, check->options->collection),
							mongo_nearest_collection(check->user, check->options->database,
													 check->options->collection)));
	else if (mongo_column_facts(relid)->parameters == NIL && check->options->change_stream == NULL)
	{
		prepare(check);
		check_documents(check, sample);
		if (!check->whole_document)
			report_fields(check, &check->sample->root, "");
		report_columns(check);
		/* MongoDB uses no index for the rows that stages produce */
		if (listing == INDEXES_LISTED && !mongo_is_pipeline_table(check->options))
			report_indexes(check, &indexes);
	}
}

/*
 * mongo_fdw_check
 *		mongo_fdw_check(table regclass, sample int): returns a row for each finding.
 *
 * Raises what check_table() raises.
 */
Datum
mongo_fdw_check(PG_FUNCTION_ARGS)
{
	Check		check = {.relation = table_open(PG_GETARG_OID(0), AccessShareLock)};

	InitMaterializedSRF(fcinfo, 0);
	check.result = (ReturnSetInfo *) fcinfo->resultinfo;
	check_table(&check, PG_GETARG_INT32(1));
	table_close(check.relation, AccessShareLock);
	return (Datum) 0;
}
