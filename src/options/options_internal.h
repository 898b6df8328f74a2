/*-------------------------------------------------------------------------
 *
 * options_internal.h
 *		What the files of src/options share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTIONS_INTERNAL_H
#define MONGO_FDW_OPTIONS_INTERNAL_H

#include "compat.h"
#include "options.h"

/* ---------- What DDL checks of an option's value beyond its form ---------- */

/*
 * Checks that only DDL has need of.  They raise 22023, 42501 where an option
 * gives away what the database server may read or be, and 22P02 for what is no
 * JSON.
 */
extern MongoOptionCheck mongo_check_uri;
extern MongoOptionCheck mongo_check_address;
extern MongoOptionCheck mongo_check_file;
extern MongoOptionCheck mongo_check_max_connections;
extern MongoOptionCheck mongo_check_mechanism;
extern MongoOptionCheck mongo_check_open_properties;
extern MongoOptionCheck mongo_check_properties;
extern MongoOptionCheck mongo_check_write_concern;
extern MongoOptionCheck mongo_check_compressors;
extern MongoOptionCheck mongo_check_hint;
extern MongoOptionCheck mongo_check_pipeline;
extern MongoOptionCheck mongo_check_unwind;
extern MongoOptionCheck mongo_check_ordinality;
extern MongoOptionCheck mongo_check_key_columns;

/*
 * mongo_require_option
 *		The row of an option that objects of this kind take.  Raises HV00D where there is
 *		none, with the name that may have been meant.
 */
extern const MongoOption *mongo_require_option(const char *name, int object);

/* ------------- How the text of an option is read, by its kind ------------- */

/*
 * Kinds of values: each reads 'value' into 'field' or raises 22023 (for
 * mongo_parse_port 22P02 and 22003), saying what is allowed.  Texts are not
 * copied.
 *
 *		string	const char *; any text, the empty one too
 *		name	const char *; not empty
 *		path	const char *; field names with dots between them
 *		boolean	bool
 *		indexed	MongoIndexed: a boolean that may also be left open
 *		integer	int, from min to max
 *		number	double, likewise
 *		duration	int: milliseconds, likewise; with a unit as in PostgreSQL's settings
 *		port	int, likewise; 0 stands for the initial value
 *		choice	int: the place among 'choices', which is an enum's value
 *		read_mode	mongoc_read_mode_t, of a name in mongo_read_preferences
 *		bson_type	bson_type_t, of a name in mongo_bson_type_choices
 *		feature_set	uint32: names of options.h with commas between them
 *		word	const char *: the choice as it is spelt there
 */
extern MongoOptionParser mongo_parse_string;
extern MongoOptionParser mongo_parse_name;
extern MongoOptionParser mongo_parse_path;
extern MongoOptionParser mongo_parse_boolean;
extern MongoOptionParser mongo_parse_indexed;
extern MongoOptionParser mongo_parse_bson_type;
extern MongoOptionParser mongo_parse_integer;
extern MongoOptionParser mongo_parse_duration;
extern MongoOptionParser mongo_parse_number;
extern MongoOptionParser mongo_parse_port;
extern MongoOptionParser mongo_parse_choice;
extern MongoOptionParser mongo_parse_word;
extern MongoOptionParser mongo_parse_read_mode;
extern MongoOptionParser mongo_parse_feature_set;

/* https://www.mongodb.com/docs/manual/core/read-preference/; ends with NULL */
extern const char *const mongo_read_preferences[];

/* What the option bson_type takes; ends with NULL */
extern const char *const mongo_bson_type_choices[];

#endif							/* MONGO_FDW_OPTIONS_INTERNAL_H */
