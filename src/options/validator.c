/*-------------------------------------------------------------------------
 *
 * validator.c
 *		What CREATE and ALTER may say: refuse options that are unknown, out of
 *		place, bad or contradictory.
 *
 * Runs at DDL time and never touches the network.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_checks.h"

#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "closest_name.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "utils/builtins.h"

/* The catalogs whose rows carry options, as the validator is told of them. */
static const struct
{
	Oid			catalog;
	int			object;
}			catalog_objects[] =
{
	{ForeignServerRelationId, ON_SERVER},
	{UserMappingRelationId, ON_MAPPING},
	{ForeignTableRelationId, ON_TABLE},
	{AttributeRelationId, ON_COLUMN},
};

/* Options that say the same thing twice when both are given. */
static const struct
{
	const char *first;
	const char *second;
}			contradictory_options[] =
{
	{"uri", "address"},
	{"uri", "port"},
	{"uri", "replica_set"},
	{"uri", "read_preference"},
	{"uri", "ssl"},
	{"uri", "write_concern"},
	{"uri", "read_concern"},
	{"uri", "compressors"},
	{"password", "password_file"},
	{"appname", "application_name"},
	{"path", "column_name"},
};

/* object_of_catalog is 0 for the wrapper itself, which takes no options. */
static int
object_of_catalog(Oid catalog)
{
	for (size_t i = 0; i < lengthof(catalog_objects); i++)
	{
		if (catalog_objects[i].catalog == catalog)
			return catalog_objects[i].object;
	}
	return 0;
}

/* given: the value of an option, or NULL. */
static const char *
given(List *definitions, const char *name)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, name) == 0)
			return defGetString(lfirst(cell));
	}
	return NULL;
}

/* What statements call an object of each kind, for hints. */
static const struct
{
	int			object;
	const char *name;
}			object_names[] =
{
	{ON_SERVER, "servers"},
	{ON_MAPPING, "user mappings"},
	{ON_TABLE, "foreign tables"},
	{ON_COLUMN, "columns"},
};

/* closest_option is the name that 'name' was probably meant to be, or NULL. */
static const char *
closest_option(const char *name, int object)
{
	MongoClosestName search;

	mongo_closest_name_begin(&search, name);
	for (int i = 0; i < mongo_option_count; i++)
	{
		if (mongo_option_table[i].objects & object)
			mongo_closest_name_try(&search, mongo_option_table[i].name);
	}
	return search.closest;
}

/* owners_of_option: "servers and user mappings", which have it; NULL: nothing has. */
static const char *
owners_of_option(const char *name)
{
	const char *owners = NULL;

	for (size_t i = 0; i < lengthof(object_names); i++)
	{
		if (mongo_find_option(name, object_names[i].object) != NULL)
			owners = owners == NULL ? object_names[i].name :
				psprintf("%s and %s", owners, object_names[i].name);
	}
	return owners;
}

pg_noreturn static void report_unknown_option(const char *name, int object);

/*
 * report_unknown_option
 *		Say which name it may have been meant to be, or what has such an option.
 */
static void
report_unknown_option(const char *name, int object)
{
	const char *owners = owners_of_option(name);
	const char *closest = closest_option(name, object);

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 object == 0 ? errhint("There are no valid options in this context.") :
			 owners != NULL ? errhint("It is an option of %s.", owners) :
			 closest != NULL ? errhint("Perhaps you meant the option \"%s\".", closest) : 0));
}

/* check_contradictions: raise for options of which one makes the other needless. */
static void
check_contradictions(List *definitions)
{
	for (size_t i = 0; i < lengthof(contradictory_options); i++)
	{
		const char *first = contradictory_options[i].first;
		const char *second = contradictory_options[i].second;

		if (given(definitions, first) != NULL && given(definitions, second) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("options \"%s\" and \"%s\" cannot be given together",
							first, second),
					 errhint("Remove \"%s\"; \"%s\" can say the same.",
							 second, first)));
	}
}

/*
 * mongo_fdw_validator
 *		Refuse options that are unknown, out of place, bad or contradictory.
 */
PG_FUNCTION_INFO_V1(mongo_fdw_validator);

Datum
mongo_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *definitions = untransformRelOptions(PG_GETARG_DATUM(0));
	int			object = object_of_catalog(PG_GETARG_OID(1));
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = mongo_find_option(definition->defname, object);
		const char *value;
		union
		{
			const char *string;
			double		number;
			int			integer;
			uint32		features;
			mongoc_read_mode_t read_mode;
			bool		boolean;
		}			ignored;

		if (option == NULL)
			report_unknown_option(definition->defname, object);

		value = defGetString(definition);
		option->parse(option, value, &ignored);
		if (option->check != NULL)
			option->check(option, value);
	}

	check_contradictions(definitions);
	if (object == ON_TABLE)
		mongo_check_unwind_options(given(definitions, "unwind"),
								   given(definitions, "ordinality"),
								   given(definitions, "unwind_empty"));

	PG_RETURN_VOID();
}
