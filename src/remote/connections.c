/*-------------------------------------------------------------------------
 *
 * connections.c
 *		The connections that this session has, for who asks in SQL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "connections.h"

#include "foreign/foreign.h"
#include "pool.h"

/* -------------------------------- the list ---------------------------------- */

static List *
append_clients(List *list, Oid mapping, const dlist_head *clients, bool is_active)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, clients))
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);
		const MongoConnection *connection = &client->connection;
		const MongoStream *stream = connection->transport.data_stream;
		MongoConnectionInfo *info = palloc0(sizeof(MongoConnectionInfo));

		info->serverid = client->serverid;
		info->mapping = mapping;
		info->host = stream != NULL ? pstrdup(stream->host_and_port) : NULL;
		info->role = pstrdup(client->server_type);
		info->is_active = is_active;
		info->has_cursor = client->cursors > 0;
		info->is_valid = !client->retired;
		info->in_transaction = client->in_transaction;
		info->connected_at = client->connected_at;
		info->idle_since = is_active ? 0 : client->idle_since;
		info->traffic = connection->transport.traffic;
		info->compressor = connection->compressor != NULL ? connection->compressor->name : NULL;
		info->has_tls = connection->transport.use_tls;
		list = lappend(list, info);
	}
	return list;
}

List *
mongo_connections(void)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	List	   *list = NIL;

	if (mongo_pool == NULL)
		return NIL;
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		list = append_clients(list, entry->umid, &entry->idle, false);
		list = append_clients(list, entry->umid, &entry->leased, true);
	}
	return list;
}

/* --------------------------------- closing ---------------------------------- */

/* close_idle: were some closed?  What is in use is added to *in_use, by server. */
static bool
close_idle(PoolEntry *entry, Oid serverid, List **in_use)
{
	bool		closed = false;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->idle)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (OidIsValid(serverid) && client->serverid != serverid)
			continue;
		if (client->cursors > 0)
		{
			*in_use = list_append_unique_oid(*in_use, client->serverid);
			continue;
		}
		mongo_pool_kill_orphans(entry, client);
		mongo_pool_remove_idle(entry, client);
		closed = true;
	}
	return closed;
}

static List *
note_leased(const PoolEntry *entry, Oid serverid, List *in_use)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, &entry->leased))
	{
		const MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (!OidIsValid(serverid) || client->serverid == serverid)
			in_use = list_append_unique_oid(in_use, client->serverid);
	}
	return in_use;
}

/* warn_of_use: in postgres_fdw's words. */
static void
warn_of_use(Oid serverid)
{
	ForeignServer *server = GetForeignServerExtended(serverid, FSV_MISSING_OK);

	if (server == NULL)
		ereport(WARNING,
				(errmsg("cannot close dropped server connection because it is still in use")));
	else
		ereport(WARNING,
				(errmsg("cannot close connection for server \"%s\" because it is still in use",
						server->servername)));
}

bool
mongo_connections_close(Oid serverid)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	List	   *in_use = NIL;
	ListCell   *cell;
	bool		closed = false;

	if (mongo_pool == NULL)
		return false;
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		closed |= close_idle(entry, serverid, &in_use);
		in_use = note_leased(entry, serverid, in_use);
	}
	foreach(cell, in_use)
		warn_of_use(lfirst_oid(cell));
	return closed;
}
