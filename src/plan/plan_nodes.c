/*-------------------------------------------------------------------------
 *
 * plan_nodes.c
 *		What plans hold for execution: the fields, and their way into a plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_nodes.h"

#include "struct_nodes.h"

#define COLUMN(kind, field)		MONGO_STRUCT_FIELD(MongoScanColumn, kind, field)
#define FINISH(kind, field)		MONGO_STRUCT_FIELD(MongoScanFinish, kind, field)
#define SCAN(kind, field)		MONGO_STRUCT_FIELD(MongoScanPlan, kind, field)
#define ASSIGNMENT(kind, field) MONGO_STRUCT_FIELD(MongoAssignment, kind, field)
#define DIRECT(kind, field)		MONGO_STRUCT_FIELD(MongoDirectPlan, kind, field)
#define JOIN(kind, field)		MONGO_STRUCT_FIELD(MongoBatchedJoin, kind, field)

static const MongoStructField column_fields[] = {
	COLUMN(NUMBER, index),
	COLUMN(STRING, name),
	COLUMN(STRING, path),
	COLUMN(STRING, collection),
	COLUMN(STRING, prefix),
	COLUMN(NUMBER, type),
	COLUMN(NUMBER, typmod),
	COLUMN(NUMBER, zero_if_empty),
};
static const MongoStructType column_type = MONGO_STRUCT_TYPE(MongoScanColumn, column_fields);

static const MongoStructField finish_fields[] = {
	FINISH(NUMBER, finish),
	FINISH(NUMBER, index),
	FINISH(NUMBER, first),
};
static const MongoStructType finish_type = MONGO_STRUCT_TYPE(MongoScanFinish, finish_fields);

static const MongoStructField scan_fields[] = {
	SCAN(STRING, database),
	SCAN(STRING, collection),
	SCAN(NODE, commands),
	SCAN(NODE, count_command),
	SCAN(NODE, predicates),
	SCAN(NUMBER, nvariables),
	SCAN(NUMBER, limit),
	SCAN(NUMBER, offset),
	SCAN(NUMBER, is_pipeline),
	SCAN(NUMBER, is_grouped),
	SCAN(NUMBER, one_row),
	SCAN(NUMBER, all_rows),
	SCAN(NUMBER, enough_rows),
	SCAN(NUMBER, fetch_size),
	SCAN(NUMBER, type_mismatch),
	SCAN(NUMBER, canonical_json),
	SCAN(STRING, joined),
	SCAN(STRING, split_field),
	MONGO_STRUCT_LIST(MongoScanPlan, columns, &column_type),
	MONGO_STRUCT_LIST(MongoScanPlan, finishes, &finish_type),
	SCAN(NODE, hiding),
	SCAN(NODE, hiding_columns),
};
const MongoStructType mongo_scan_plan_type = MONGO_STRUCT_TYPE(MongoScanPlan, scan_fields);

static const MongoStructField assignment_fields[] = {
	ASSIGNMENT(NUMBER, attnum),
	ASSIGNMENT(NUMBER, kind),
	ASSIGNMENT(NODE, keys),
};
static const MongoStructType assignment_type = MONGO_STRUCT_TYPE(MongoAssignment, assignment_fields);

static const MongoStructField direct_fields[] = {
	DIRECT(STRING, database),
	DIRECT(STRING, collection),
	DIRECT(NUMBER, operation),
	DIRECT(NODE, command),
	DIRECT(NODE, predicates),
	MONGO_STRUCT_LIST(MongoDirectPlan, assignments, &assignment_type),
	DIRECT(NUMBER, simple_collation),
	DIRECT(NUMBER, at_most_one),
	DIRECT(NUMBER, counts),
	DIRECT(NUMBER, returns),
	DIRECT(NODE, returned),
};
const MongoStructType mongo_direct_plan_type = MONGO_STRUCT_TYPE(MongoDirectPlan, direct_fields);

static const MongoStructField join_fields[] = {
	JOIN(NUMBER, type),
	JOIN(NUMBER, all_rows),
	JOIN(NUMBER, key_type),
	JOIN(NUMBER, outer_hash),
	JOIN(NUMBER, inner_hash),
	JOIN(NUMBER, collation),
};
const MongoStructType mongo_batched_join_type = MONGO_STRUCT_TYPE(MongoBatchedJoin, join_fields);
