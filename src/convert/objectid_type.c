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

/* InvalidOid: to be looked up. */
static Oid	cached_type_oid = InvalidOid;

/* Has no invalidation come since a look-up began? */
static bool is_current = false;

/* Syscache callback: the type may be another one. */
static void
forget_type_oid(Datum arg pg_attribute_unused(), int cacheid pg_attribute_unused(),
				uint32 hashvalue pg_attribute_unused())
{
	cached_type_oid = InvalidOid;
	is_current = false;
}

Oid
mongo_objectid_type_oid(void)
{
	static bool registered = false;
	Oid			extension;
	Oid			type = InvalidOid;

	if (OidIsValid(cached_type_oid))
		return cached_type_oid;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(TYPEOID, forget_type_oid, (Datum) 0);
		registered = true;
	}

	/* kept when all has been found: the look-up may raise */
	is_current = true;
	extension = get_extension_oid("mongo_fdw", true);
	if (OidIsValid(extension))
		type = getExtensionType(extension, "objectid");
	if (is_current)
		cached_type_oid = type;
	return type;
}
