/*-------------------------------------------------------------------------
 *
 * options_internal.h
 *		Declarations that the files of src/options share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTIONS_INTERNAL_H
#define MONGO_FDW_OPTIONS_INTERNAL_H

#include "common.h"
#include "options.h"

/* -------------------------------- options.c --------------------------------- */

/* Kinds of objects that take options, as bits. */
#define ON_SERVER	0x01
#define ON_MAPPING	0x02
#define ON_TABLE	0x04
#define ON_COLUMN	0x08
#define ON_IMPORT	0x10		/* IMPORT FOREIGN SCHEMA */

/* The struct in options.h that stores an option's value. */
typedef enum MongoOptionTarget
{
	TARGET_CONNECTION,
	TARGET_TABLE,
	TARGET_COLUMN,
	TARGET_IMPORT,
	TARGET_NONE					/* it is accepted, and has no effect */
} MongoOptionTarget;

typedef struct MongoOption MongoOption;

typedef void MongoOptionParser (const MongoOption *option, const char *value, void *field);
typedef void MongoOptionCheck (const MongoOption *option, const char *value);

/*
 * A row of the option table.  'objects' may have the option.  'parse' converts its text and
 * stores the value at 'offset' in the target struct, or raises.  'check' does what only DDL
 * has to check.  'initial' is the default; without one the field is zero.  'min', 'max'
 * and 'choices' are the limits or words that 'parse' accepts.  DDL takes no text of more than
 * 'longest' bytes, or without it MONGO_LONGEST_OPTION.
 */
struct MongoOption
{
	const char *name;
	int			objects;
	MongoOptionParser *parse;
	MongoOptionCheck *check;	/* NULL: none */
	MongoOptionTarget target;
	size_t		offset;
	const char *initial;
	double		min;
	double		max;
	const char *const *choices;
	size_t		longest;
};

extern const MongoOption mongo_option_table[];
extern const int mongo_option_count;

extern const MongoOption *mongo_find_option(const char *name, int object);
extern const MongoOption *mongo_require_option(const char *name, int object);

/* --------------------------------- login.c ---------------------------------- */

/* The names of mechanisms as 'choices', which end with NULL. */
extern const char *const mongo_auth_mechanism_names[];

extern char *mongo_uri_printable(const char *message, bool is_error);

/* -------------------------------- settings.c -------------------------------- */

extern MongoOptionParser mongo_parse_features;
extern MongoOptionParser mongo_parse_obsolete;

#endif							/* MONGO_FDW_OPTIONS_INTERNAL_H */
