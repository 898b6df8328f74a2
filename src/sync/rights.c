/*-------------------------------------------------------------------------
 *
 * rights.c
 *		Whose rights a part of the engine has, and which settings.
 *
 * Whatever could run a function of a table's owner runs with the owner's rights alone: planning,
 * reading and writing the table, the input of its types, its triggers.  The operation is
 * restricted, so that nothing in it can leave these rights, and no name is looked up in a schema
 * that somebody else may create in.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "miscadmin.h"
#include "utils/guc.h"

/* Settings that values depend on, or which rows are found. */
static const struct
{
	const char *name;
	const char *value;
}			settings[] =
{
	{"search_path", "pg_catalog, pg_temp"},
	{"DateStyle", "ISO, YMD"},
	{"IntervalStyle", "postgres"},
	{"TimeZone", "UTC"},
	{"extra_float_digits", "1"},
	{"bytea_output", "hex"},
	{"xmloption", "content"},
	{"session_replication_role", "origin"},
	{"row_security", "off"},
	{"default_tablespace", ""},
	/* the time of reads is bound in this process */
	{"max_parallel_workers_per_gather", "0"},
	{"mongo_fdw.hint", ""},
};

/*
 * sync_rights_take
 *		Gives the session the rights of 'owner', and of nobody else, until sync_rights_return() or
 *		the end of the (sub)transaction by an error.
 */
void
sync_rights_take(SyncRights *rights, Oid owner)
{
	GetUserIdAndSecContext(&rights->userid, &rights->security);
	SetUserIdAndSecContext(owner, rights->security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	rights->nest_level = NewGUCNestLevel();
	for (size_t i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i].name, settings[i].value, PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * sync_rights_return
 *		Returns to the rights and settings of before.
 */
void
sync_rights_return(const SyncRights *rights)
{
	AtEOXact_GUC(false, rights->nest_level);
	SetUserIdAndSecContext(rights->userid, rights->security);
}
