/*-------------------------------------------------------------------------
 *
 * bson_walk.c
 *		Going through documents that a server sent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_walk.h"

void
mongo_report_bad_bson(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("MongoDB sent a document that is not valid BSON")));
}

/*
 * libbson ends an iteration in one way for the end of a document and for
 * bytes it cannot make out; only where it stopped tells them apart.
 */
void
mongo_iter_check_end(const bson_iter_t *iter, uint32 length)
{
	if (iter->err_off != 0 || iter->off != length - 1)
		mongo_report_bad_bson();
}

uint32
mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child)
{
	const uint8_t *data;
	uint32_t	length;

	if (bson_iter_type(iter) == BSON_TYPE_ARRAY)
		bson_iter_array(iter, &length, &data);
	else
		bson_iter_document(iter, &length, &data);

	if (!bson_iter_init_from_data(child, data, length))
		mongo_report_bad_bson();
	return length;
}
