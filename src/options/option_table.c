/*-------------------------------------------------------------------------
 *
 * option_table.c
 *		The options, one row each.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_table.h"

#include <limits.h>

#include "auth_mechanism.h"
#include "option_checks.h"
#include "option_values.h"

/* In the order of MongoTypeMismatch. */
static const char *const type_mismatches[] = {"error", "null", NULL};

/* In the order of MongoInsertMode. */
static const char *const insert_modes[] = {"insert", "upsert", "ignore", NULL};

/* In the order of MongoTransactions. */
static const char *const transaction_modes[] = {"auto", "off", "required", NULL};

static const char *const read_concerns[] = {
	"local", "available", "majority", "linearizable", "snapshot", NULL
};

#define CONNECTION(field) \
	.target = TARGET_CONNECTION, .offset = offsetof(MongoConnectionOptions, field)
#define TABLE(field) \
	.target = TARGET_TABLE, .offset = offsetof(MongoTableOptions, field)
#define COLUMN(field) \
	.target = TARGET_COLUMN, .offset = offsetof(MongoColumnOptions, field)
#define BETWEEN(low, high) \
	.min = (low), .max = (high)

const MongoOption mongo_option_table[] =
{
	/* where the server is, and who we are there */
	{"uri", ON_SERVER, mongo_parse_name, mongo_check_uri, CONNECTION(uri)},
	{"address", ON_SERVER, mongo_parse_name, mongo_check_address, CONNECTION(address), "127.0.0.1"},
	{"port", ON_SERVER, mongo_parse_port, NULL, CONNECTION(port), "27017", BETWEEN(0, 65535)},
	{"replica_set", ON_SERVER, mongo_parse_name, NULL, CONNECTION(replica_set)},
	{"read_preference", ON_SERVER, mongo_parse_read_mode, NULL, CONNECTION(read_mode), .choices = mongo_read_preferences},
	{"authentication_database", ON_SERVER | ON_MAPPING, mongo_parse_name, NULL, CONNECTION(authentication_database)},
	{"auth_mechanism", ON_SERVER | ON_MAPPING, mongo_parse_word, mongo_check_mechanism, CONNECTION(auth_mechanism), .choices = mongo_auth_mechanism_names},
	{"auth_properties", ON_SERVER, mongo_parse_name, mongo_check_open_properties, CONNECTION(auth_properties)},
	{"auth_properties", ON_MAPPING, mongo_parse_name, mongo_check_properties, CONNECTION(auth_properties)},
	{"username", ON_MAPPING, mongo_parse_name, NULL, CONNECTION(username)},
	{"password", ON_MAPPING, mongo_parse_string, NULL, CONNECTION(password)},
	{"password_file", ON_MAPPING, mongo_parse_name, mongo_check_file, CONNECTION(password_file)},

	/* TLS */
	{"ssl", ON_SERVER, mongo_parse_boolean, NULL, CONNECTION(ssl), "false"},
	{"pem_file", ON_SERVER | ON_MAPPING, mongo_parse_name, mongo_check_file, CONNECTION(pem_file)},
	{"pem_pwd", ON_SERVER | ON_MAPPING, mongo_parse_string, NULL, CONNECTION(pem_pwd)},
	{"ca_file", ON_SERVER, mongo_parse_name, mongo_check_file, CONNECTION(ca_file)},
	{"ca_dir", ON_SERVER, mongo_parse_name, mongo_check_file, CONNECTION(ca_dir)},
	{"crl_file", ON_SERVER, mongo_parse_name, mongo_check_file, CONNECTION(crl_file)},
	{"weak_cert_validation", ON_SERVER, mongo_parse_boolean, NULL, CONNECTION(weak_cert_validation), "false"},

	/* how connections behave */
	{"appname", ON_SERVER, mongo_parse_name, NULL, CONNECTION(appname), "mongo_fdw"},
	{"application_name", ON_SERVER, mongo_parse_name, NULL, CONNECTION(appname)},
	{"comment", ON_SERVER, mongo_parse_name, NULL, CONNECTION(comment)},
	{"connect_timeout_ms", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(connect_timeout_ms), BETWEEN(1, INT_MAX)},
	{"server_selection_timeout_ms", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(server_selection_timeout_ms), BETWEEN(1, INT_MAX)},
	{"socket_timeout_ms", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(socket_timeout_ms), "0", BETWEEN(0, INT_MAX)},
	{"keepalives_idle", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(tcp.keepalives_idle), "60", BETWEEN(0, 32767)},
	{"keepalives_interval", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(tcp.keepalives_interval), "10", BETWEEN(0, 32767)},
	{"keepalives_count", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(tcp.keepalives_count), "6", BETWEEN(0, 127)},
	{"tcp_user_timeout", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(tcp.user_timeout), "120000", BETWEEN(0, INT_MAX)},
	{"compressors", ON_SERVER, mongo_parse_name, mongo_check_compressors, CONNECTION(compressors)},
	{"keep_connections", ON_SERVER, mongo_parse_boolean, NULL, CONNECTION(keep_connections), "true"},
	{"async_connections", ON_SERVER, mongo_parse_integer, NULL, CONNECTION(async_connections), "4", BETWEEN(1, 1000)},
	{"max_connections", ON_SERVER, mongo_parse_integer, mongo_check_max_connections, CONNECTION(max_connections), "0", BETWEEN(0, 100000)},
	{"idle_timeout", ON_SERVER, mongo_parse_duration, NULL, CONNECTION(idle_timeout), "0", BETWEEN(0, INT_MAX)},

	/* which collection */
	{"database", ON_TABLE, mongo_parse_name, NULL, TABLE(database), "test"},
	{"collection", ON_TABLE, mongo_parse_name, NULL, TABLE(collection)},
	{"pipeline", ON_TABLE, mongo_parse_name, mongo_check_pipeline, TABLE(pipeline)},
	{"unwind", ON_TABLE, mongo_parse_name, mongo_check_unwind, TABLE(unwind)},
	{"ordinality", ON_TABLE, mongo_parse_name, mongo_check_ordinality, TABLE(ordinality)},
	{"unwind_empty", ON_TABLE, mongo_parse_boolean, NULL, TABLE(unwind_empty), "false"},
	{"allow_javascript", ON_SERVER, mongo_parse_boolean, NULL, TABLE(allow_javascript), "false"},

	/* planning */
	{"estimated_rows", ON_SERVER | ON_TABLE, mongo_parse_number, NULL, TABLE(estimated_rows), "-1", BETWEEN(0, 1e15)},
	{"use_remote_estimate", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(use_remote_estimate), "false"},
	{"fdw_startup_cost", ON_SERVER | ON_TABLE, mongo_parse_number, NULL, TABLE(fdw_startup_cost), "25", BETWEEN(0, 1e15)},
	{"fdw_tuple_cost", ON_SERVER | ON_TABLE, mongo_parse_number, NULL, TABLE(fdw_tuple_cost), "0.1", BETWEEN(0, 1e15)},
	{"fdw_lookup_cost", ON_SERVER | ON_TABLE, mongo_parse_number, NULL, TABLE(fdw_lookup_cost), "5", BETWEEN(0, 1e15)},
	{"remote_parallelism", ON_SERVER | ON_TABLE, mongo_parse_number, NULL, TABLE(remote_parallelism), "1", BETWEEN(0, 1000)},
	{"parallel_field", ON_TABLE, mongo_parse_path, NULL, TABLE(parallel_field), "_id"},
	{"hint", ON_TABLE, mongo_parse_name, mongo_check_hint, TABLE(hint)},
	{"enable_join_pushdown", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(enable_join_pushdown), "true"},
	{"enable_aggregate_pushdown", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(enable_aggregate_pushdown), "true"},
	{"enable_order_by_pushdown", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(enable_order_by_pushdown), "true"},
	{"pushdown_disable", ON_SERVER | ON_TABLE, mongo_parse_feature_set, NULL, TABLE(pushdown_disable)},

	/* reading */
	{"read_preference", ON_TABLE, mongo_parse_read_mode, NULL, TABLE(read_mode), .choices = mongo_read_preferences},
	{"comment", ON_TABLE, mongo_parse_name, NULL, TABLE(comment)},
	{"fetch_size", ON_SERVER | ON_TABLE, mongo_parse_integer, NULL, TABLE(fetch_size), BETWEEN(1, INT_MAX)},
	{"type_mismatch", ON_SERVER | ON_TABLE, mongo_parse_choice, NULL, TABLE(type_mismatch), "error", .choices = type_mismatches},
	{"max_time_ms", ON_SERVER | ON_TABLE, mongo_parse_duration, NULL, TABLE(max_time_ms), "0", BETWEEN(0, INT_MAX)},
	{"canonical_json", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(canonical_json), "false"},
	{"count_from_metadata", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(count_from_metadata), "false"},
	{"analyze_sampling", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(analyze_sampling), "true"},
	{"async_capable", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(async_capable), "true"},

	/* writing */
	{"updatable", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(updatable), "true"},
	{"truncatable", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(truncatable), "true"},
	{"batch_size", ON_SERVER | ON_TABLE, mongo_parse_integer, NULL, TABLE(batch_size), "10000", BETWEEN(1, 100000)},
	{"write_null", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(write_null), "false"},
	{"generated_id", ON_SERVER | ON_TABLE, mongo_parse_boolean, NULL, TABLE(generated_id), "false"},
	{"insert_mode", ON_TABLE, mongo_parse_choice, NULL, TABLE(insert_mode), "insert", .choices = insert_modes},
	{"key_columns", ON_TABLE, mongo_parse_name, mongo_check_key_columns, TABLE(key_columns)},
	{"transactions", ON_SERVER, mongo_parse_choice, NULL, CONNECTION(transactions), "auto", .choices = transaction_modes},
	{"write_concern", ON_SERVER, mongo_parse_name, mongo_check_write_concern, CONNECTION(write_concern)},
	{"read_concern", ON_SERVER, mongo_parse_word, NULL, CONNECTION(read_concern), .choices = read_concerns},

	/* columns; column_name is what a fork of the older wrapper calls a path */
	{"path", ON_COLUMN, mongo_parse_path, NULL, COLUMN(path)},
	{"column_name", ON_COLUMN, mongo_parse_path, NULL, COLUMN(path)},
	{"indexed", ON_COLUMN, mongo_parse_indexed, NULL, COLUMN(indexed)},
	{"bson_type", ON_COLUMN, mongo_parse_bson_type, NULL, COLUMN(bson_type), .choices = mongo_bson_type_choices},
};

const int	mongo_option_count = lengthof(mongo_option_table);

bool
mongo_option_is_text(const MongoOption *option)
{
	return option->parse == mongo_parse_string || option->parse == mongo_parse_name ||
		option->parse == mongo_parse_path || option->parse == mongo_parse_word;
}

const MongoOption *
mongo_find_option(const char *name, int object)
{
	for (size_t i = 0; i < lengthof(mongo_option_table); i++)
	{
		if ((mongo_option_table[i].objects & object) != 0 &&
			strcmp(mongo_option_table[i].name, name) == 0)
			return &mongo_option_table[i];
	}
	return NULL;
}
