/*-------------------------------------------------------------------------
 *
 * objectid_type.c
 *		The OID of the SQL type objectid.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "objectid_type.h"

#include "objectid.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/syscache.h"

/* InvalidOid: to be looked up. */
static Oid	cached_type_oid = InvalidOid;
static Oid	cached_opfamily = InvalidOid;

/* Has no invalidation come since a look-up began? */
static bool is_current = false;

/* Syscache callback: the type or its order may be another one. */
static void
forget(Datum arg pg_attribute_unused(), int cacheid pg_attribute_unused(),
	   uint32 hashvalue pg_attribute_unused())
{
	cached_type_oid = InvalidOid;
	cached_opfamily = InvalidOid;
	is_current = false;
}

static void
begin_remembering(void)
{
	static bool registered = false;

	if (registered)
		return;
	CacheRegisterSyscacheCallback(TYPEOID, forget, (Datum) 0);
	CacheRegisterSyscacheCallback(CLAOID, forget, (Datum) 0);
	registered = true;
}

Oid
mongo_objectid_type_oid(void)
{
	Oid			extension;
	Oid			type = InvalidOid;

	if (OidIsValid(cached_type_oid))
		return cached_type_oid;

	begin_remembering();

	/* kept when all has been found: the look-up may raise */
	is_current = true;
	extension = get_extension_oid("mongo_fdw", true);
	if (OidIsValid(extension))
		type = getExtensionType(extension, "objectid");
	if (is_current)
		cached_type_oid = type;
	return type;
}

/* is_our_function: a function in C that is mongo_objectid_in()? */
static bool
is_our_function(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Datum		symbol;
	bool		isnull;
	bool		result = false;
	FmgrInfo	info;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
		result = !isnull && strcmp(TextDatumGetCString(symbol), "mongo_objectid_in") == 0;
	}
	ReleaseSysCache(tuple);
	if (!result)
		return false;
	fmgr_info(function, &info);
	return info.fn_addr == mongo_objectid_in;
}

bool
mongo_is_objectid_type(Oid typid)
{
	HeapTuple	tuple;
	Form_pg_type type;
	Oid			input = InvalidOid;

	if (OidIsValid(cached_type_oid))
		return typid == cached_type_oid;

	begin_remembering();
	is_current = true;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(typid));
	if (!HeapTupleIsValid(tuple))
		return false;
	type = (Form_pg_type) GETSTRUCT(tuple);
	if (type->typtype == TYPTYPE_BASE && type->typlen == MONGO_OBJECTID_SIZE)
		input = type->typinput;
	ReleaseSysCache(tuple);
	if (!OidIsValid(input) || !is_our_function(input))
		return false;
	if (is_current)
		cached_type_oid = typid;
	return true;
}

/* find_opfamily: of the operator class that the extension's script makes; or InvalidOid. */
static Oid
find_opfamily(Oid typid)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(typid));
	Oid			namespace;
	Form_pg_opclass class;
	Oid			family = InvalidOid;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	namespace = ((Form_pg_type) GETSTRUCT(tuple))->typnamespace;
	ReleaseSysCache(tuple);

	tuple = SearchSysCache3(CLAAMNAMENSP, ObjectIdGetDatum(BTREE_AM_OID),
							CStringGetDatum("objectid_ops"), ObjectIdGetDatum(namespace));
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	if (class->opcdefault && class->opcintype == typid)
		family = class->opcfamily;
	ReleaseSysCache(tuple);
	return family;
}

Oid
mongo_objectid_opfamily(Oid typid)
{
	Oid			family;

	if (OidIsValid(cached_opfamily) && typid == cached_type_oid)
		return cached_opfamily;

	begin_remembering();
	is_current = true;
	family = find_opfamily(typid);
	if (is_current && typid == cached_type_oid)
		cached_opfamily = family;
	return family;
}
