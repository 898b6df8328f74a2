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

/* ------------------------- The rows of options.c --------------------------- */

/* Kinds of objects that take options, as bits. */
#define ON_SERVER	0x01
#define ON_MAPPING	0x02
#define ON_TABLE	0x04
#define ON_COLUMN	0x08
#define ON_IMPORT	0x10		/* IMPORT FOREIGN SCHEMA */

/* Which of the structs in options.h a value is read into. */
typedef enum MongoOptionTarget
{
	TARGET_CONNECTION,
	TARGET_TABLE,
	TARGET_COLUMN,
	TARGET_IMPORT
} MongoOptionTarget;

typedef struct MongoOption MongoOption;

typedef void MongoOptionParser (const MongoOption *option, const char *value, void *field);
typedef void MongoOptionCheck (const MongoOption *option, const char *value);

/*
 * One option: who may give it, how its text is read ('parse' stores it into its field,
 * or raises), what only DDL has to check, where the value goes, what holds when nothing
 * is said (NULL leaves the field zero), and the bounds or words that are allowed.
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
};

extern const MongoOption mongo_option_table[];
extern const int mongo_option_count;

/* mongo_find_option: one that objects of this kind (ON_SERVER, ...) take; or NULL. */
extern const MongoOption *mongo_find_option(const char *name, int object);

/* The names, as option tables want them: with NULL for an end. */
extern const char *const mongo_auth_mechanism_names[];

/*
 * mongo_uri_printable
 *		libmongoc's message about a URI up to the first thing that it quotes, and that, too,
 *		if it is an option's name; palloc'd.
 *
 * In a warning, that is about a URI which holds no secret, it may also be a word of
 * letters alone, as a misspelt option is.
 */
extern char *mongo_uri_printable(const char *message, bool is_error);

/*
 * mongo_require_option
 *		The row of an option that objects of this kind take.  Raises HV00D where there is
 *		none, with the name that may have been meant.
 */
extern const MongoOption *mongo_require_option(const char *name, int object);

/* mongo_parse_features: a set of MongoFeature, of names with commas between; raises 22023. */
extern MongoOptionParser mongo_parse_features;

#endif							/* MONGO_FDW_OPTIONS_INTERNAL_H */
