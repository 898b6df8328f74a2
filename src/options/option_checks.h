/*-------------------------------------------------------------------------
 *
 * option_checks.h
 *		What DDL checks of an option's value beyond its form.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTION_CHECKS_H
#define MONGO_FDW_OPTION_CHECKS_H

#include "option_table.h"

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
 * mongo_check_unwind_options
 *		What of the options of one table only makes sense together: 'unwind',
 *		'ordinality' and 'unwind_empty' are their values, NULL where not given.
 *		Raises 22023.
 */
extern void mongo_check_unwind_options(const char *unwind, const char *ordinality,
									   const char *unwind_empty);

#endif							/* MONGO_FDW_OPTION_CHECKS_H */
