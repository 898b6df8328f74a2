/*-------------------------------------------------------------------------
 *
 * server_session.c
 *		The session that a client's own messages write in.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "server_session.h"

#include "bson_memory.h"
#include "utils/timestamp.h"

#define UUID_SIZE			16
#define MS_PER_MINUTE		60000

/* make_lsid: with a random UUID (version 4 of RFC 4122). */
static void
make_lsid(bson_t *lsid)
{
	uint8		uuid[UUID_SIZE];

	if (!pg_strong_random(uuid, sizeof(uuid)))
		elog(ERROR, "could not generate random values");
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	bson_reinit(lsid);
	BSON_APPEND_BINARY(lsid, "id", BSON_SUBTYPE_UUID, uuid, sizeof(uuid));
}

/* is_stale: does the server forget it within a minute, as far as we know? */
static bool
is_stale(const MongoServerSession *session)
{
	return TimestampDifferenceExceeds(session->used_at, GetCurrentTimestamp(),
									  (session->minutes - 1) * MS_PER_MINUTE);
}

const bson_t *
mongo_server_session_use(MongoServerSession *session, MemoryContext context)
{
	if (session->minutes <= 0)
		return NULL;
	if (session->lsid == NULL || is_stale(session))
	{
		if (session->lsid == NULL)
			session->lsid = bson_create_in(context);
		make_lsid(session->lsid);
		session->number = 0;
	}
	session->used_at = GetCurrentTimestamp();
	return session->lsid;
}
