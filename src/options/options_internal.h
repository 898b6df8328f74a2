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

/* mongo_parse_path: field names with dots between them, a const char *; or raises 22023. */
extern MongoOptionParser mongo_parse_path;

#endif							/* MONGO_FDW_OPTIONS_INTERNAL_H */
