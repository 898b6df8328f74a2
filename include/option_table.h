/*-------------------------------------------------------------------------
 *
 * option_table.h
 *		Every option of servers, user mappings, tables and columns: the rows.
 *
 * For src/options, and for src/catalog/describe.c; everybody else includes
 * options.h.  Who may give an option, how its text is read, where the value
 * goes and what holds when nothing is said stand in one row.  A new option is
 * a row in src/options/option_table.c, a field in options.h, and lines in
 * docs/options.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTION_TABLE_H
#define MONGO_FDW_OPTION_TABLE_H

#include "options.h"

/* Kinds of objects that take options, as bits. */
#define ON_SERVER	0x01
#define ON_MAPPING	0x02
#define ON_TABLE	0x04
#define ON_COLUMN	0x08

/* Which of the structs in options.h a value is read into. */
typedef enum MongoOptionTarget
{
	TARGET_CONNECTION,
	TARGET_TABLE,
	TARGET_COLUMN
} MongoOptionTarget;

typedef struct MongoOption MongoOption;

typedef void MongoOptionParser (const MongoOption *option, const char *value, void *field);
typedef void MongoOptionCheck (const MongoOption *option, const char *value);

/*
 * One option.  'parse' stores the value of a text into its field, or raises;
 * 'check' is what only DDL has to know.  A NULL 'initial' leaves the field
 * zero.  'choices' are the words that mongo_parse_choice and mongo_parse_word
 * allow.
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

/*
 * mongo_find_option
 *		The row of an option that objects of this kind (ON_SERVER, ...) take, or
 *		NULL.
 */
extern const MongoOption *mongo_find_option(const char *name, int object);

/*
 * mongo_option_is_text
 *		Is the option's field a const char *?
 */
extern bool mongo_option_is_text(const MongoOption *option);

#endif							/* MONGO_FDW_OPTION_TABLE_H */
