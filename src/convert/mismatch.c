/*-------------------------------------------------------------------------
 *
 * mismatch.c
 *		Values that do not fit, and bytes that are not BSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "types.h"

#include "json.h"

/* Bytes of a value shown in a message. */
#define SHOWN_VALUE_SIZE	100

/* describe_value: "a String, \"abc\"", palloc'd, in the database's encoding. */
static char *
describe_value(const bson_iter_t *iter)
{
	const char *name = mongo_bson_type_name(bson_iter_type(iter));
	const char *article = strchr("AEIOUaeiou", name[0]) ? "an" : "a";
	MongoReadContext context = {0};
	StringInfoData text;
	uint32		length;

	initStringInfo(&text);
	if (!mongo_json_append_value(&context, iter, &text, SHOWN_VALUE_SIZE))
		return psprintf("%s %s", article, name);

	length = text.len;
	return psprintf("%s %s, %s", article, name,
					mongo_cut_text(mongo_text_to_server(text.data, &length),
								   SHOWN_VALUE_SIZE));
}

bool
mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
			 const bson_iter_t *iter, const char *remark)
{
	context->mismatch = mismatch;
	context->remark = remark;
	context->holds = context->explain ? describe_value(iter) : NULL;
	return false;
}

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
