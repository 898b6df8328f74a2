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
	void		(*parse) (const MongoOption *option, const char *value, void *field);
	void		(*check) (const MongoOption *option, const char *value);
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

/*
 * mongo_read_table_options, mongo_read_column_options
 *		What mongo_table_options() and mongo_column_options() give, read from the
 *		catalogs.
 */
extern MongoTableOptions *mongo_read_table_options(Oid foreigntableid);
extern MongoColumnOptions *mongo_read_column_options(Oid foreigntableid,
													 AttrNumber attnum);

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
 *		feature_set	uint32: names of feature.h with commas between them
 *		word	const char *: the choice as it is spelt there
 */
extern void mongo_parse_string(const MongoOption *option, const char *value,
							   void *field);
extern void mongo_parse_name(const MongoOption *option, const char *value,
							 void *field);
extern void mongo_parse_path(const MongoOption *option, const char *value,
							 void *field);
extern void mongo_parse_boolean(const MongoOption *option, const char *value,
								void *field);
extern void mongo_parse_indexed(const MongoOption *option, const char *value,
								void *field);
extern void mongo_parse_integer(const MongoOption *option, const char *value,
								void *field);
extern void mongo_parse_duration(const MongoOption *option, const char *value,
								 void *field);
extern void mongo_parse_number(const MongoOption *option, const char *value,
							   void *field);
extern void mongo_parse_port(const MongoOption *option, const char *value,
							 void *field);
extern void mongo_parse_choice(const MongoOption *option, const char *value,
							   void *field);
extern void mongo_parse_word(const MongoOption *option, const char *value,
							 void *field);
extern void mongo_parse_feature_set(const MongoOption *option, const char *value,
									void *field);

/*
 * Checks that only DDL has need of.  They raise 22023, 42501 where an option
 * gives away what the database server may read or be, and 22P02 for what is no
 * JSON.
 */
extern void mongo_check_uri(const MongoOption *option, const char *value);
extern void mongo_check_file(const MongoOption *option, const char *value);
extern void mongo_check_write_concern(const MongoOption *option, const char *value);
extern void mongo_check_compressors(const MongoOption *option, const char *value);
extern void mongo_check_hint(const MongoOption *option, const char *value);

#endif							/* MONGO_FDW_OPTION_TABLE_H */
