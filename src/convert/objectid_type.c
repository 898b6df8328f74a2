/*-------------------------------------------------------------------------
 *
 * objectid_type.c
 *		The OID of the SQL type objectid.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "objectid_type.h"

#include "catalog/dependency.h"
#include "commands/extension.h"
#include "utils/inval.h"
#include "utils/syscache.h"

static Oid	cached_type_oid = InvalidOid;
static bool cached_type_valid = false;

/* Syscache callback: the type may be another one. */
static void
forget_type_oid(Datum arg pg_attribute_unused(), int cacheid pg_attribute_unused(),
				uint32 hashvalue pg_attribute_unused())
{
	cached_type_valid = false;
}

Oid
mongo_objectid_type_oid(void)
{
	static bool registered = false;
	Oid			extension;
	Oid			type = InvalidOid;

	if (cached_type_valid)
		return cached_type_oid;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(TYPEOID, forget_type_oid, (Datum) 0);
		registered = true;
	}

	/* valid from here, so that an invalidation during the look-up counts */
	cached_type_valid = true;
	cached_type_oid = InvalidOid;
	extension = get_extension_oid("mongo_fdw", true);
	if (OidIsValid(extension))
		type = getExtensionType(extension, "objectid");
	if (OidIsValid(type))
		cached_type_oid = type;
	else
		cached_type_valid = false;	/* may be about to be created */
	return type;
}
