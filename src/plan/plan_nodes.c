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
#define SCAN(kind, field)		MONGO_STRUCT_FIELD(MongoScanPlan, kind, field)
#define DIRECT(kind, field)		MONGO_STRUCT_FIELD(MongoDirectPlan, kind, field)

static const MongoStructField column_fields[] = {
	COLUMN(STRING, name),
	COLUMN(STRING, path),
	COLUMN(STRING, collection),
	COLUMN(STRING, prefix),
	MONGO_STRUCT_NUMBERS(MongoScanColumn, index, zero_if_empty),
};
static const MongoStructType column_type = MONGO_STRUCT_TYPE(MongoScanColumn, column_fields);

static const MongoStructField finish_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoScanFinish, finish, first),
};
static const MongoStructType finish_type = MONGO_STRUCT_TYPE(MongoScanFinish, finish_fields);

static const MongoStructField scan_fields[] = {
	SCAN(STRING, database),
	SCAN(STRING, collection),
	SCAN(NODE, commands),
	SCAN(NODE, count_command),
	SCAN(NODE, predicates),
	MONGO_STRUCT_NUMBERS(MongoScanPlan, nvariables, canonical_json),
	SCAN(STRING, comment),
	SCAN(STRING, joined),
	SCAN(STRING, split_field),
	MONGO_STRUCT_LIST(MongoScanPlan, columns, &column_type),
	MONGO_STRUCT_LIST(MongoScanPlan, finishes, &finish_type),
	SCAN(NODE, hash_functions),
	SCAN(NODE, local_columns),
	SCAN(NODE, hiding),
	SCAN(NODE, hiding_columns),
};
const MongoStructType mongo_scan_plan_type = MONGO_STRUCT_TYPE(MongoScanPlan, scan_fields);

static const MongoStructField assignment_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoAssignment, kind, attnum),
	MONGO_STRUCT_FIELD(MongoAssignment, NODE, keys),
};
static const MongoStructType assignment_type = MONGO_STRUCT_TYPE(MongoAssignment, assignment_fields);

static const MongoStructField direct_fields[] = {
	DIRECT(STRING, database),
	DIRECT(STRING, collection),
	DIRECT(NODE, command),
	DIRECT(NODE, predicates),
	MONGO_STRUCT_LIST(MongoDirectPlan, assignments, &assignment_type),
	MONGO_STRUCT_NUMBERS(MongoDirectPlan, operation, returns),
	DIRECT(NODE, returned),
};
const MongoStructType mongo_direct_plan_type = MONGO_STRUCT_TYPE(MongoDirectPlan, direct_fields);

static const MongoStructField key_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoBatchedColumn, type, asked),
};
static const MongoStructType key_type = MONGO_STRUCT_TYPE(MongoBatchedColumn, key_fields);

static const MongoStructField join_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoBatchedJoin, type, all_rows),
	MONGO_STRUCT_LIST(MongoBatchedJoin, columns, &key_type),
};
const MongoStructType mongo_batched_join_type = MONGO_STRUCT_TYPE(MongoBatchedJoin, join_fields);
