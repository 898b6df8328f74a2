/*-------------------------------------------------------------------------
 *
 * hash_keys.c
 *		Evaluates and hashes the keys of a join, and requests documents with their values.
 *
 * Batched joins and hashed scans look up rows by them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

/*
 * mongo_hash_keys_create
 *		Returns the state of a plan's keys (MongoHashKey), in the current memory context.
 *
 * From index 'first' on, 'expressions' are the ExprStates of the outer sides, then of the inner
 * sides.
 */
MongoHashKeys *
mongo_hash_keys_create(const List *plan_keys, const List *expressions, int first)
{
	MongoHashKeys *keys = palloc0(sizeof(MongoHashKeys));

	keys->nkeys = list_length(plan_keys);
	keys->keys = palloc0(sizeof(MongoKeyState) * keys->nkeys);
	for (int i = 0; i < keys->nkeys; i++)
	{
		MongoKeyState *key = &keys->keys[i];
		const MongoHashKey *plan = list_nth(plan_keys, i);

		key->outer = list_nth(expressions, first + i);
		key->inner = list_nth(expressions, first + keys->nkeys + i);
		fmgr_info(plan->outer_hash, &key->outer_hash);
		fmgr_info(plan->inner_hash, &key->inner_hash);
		key->collation = plan->collation;
		key->type = plan->type;
		get_typlenbyvalalign(key->type, &key->length, &key->by_value, &key->align);
		keys->nasked += plan->asked;
	}
	if (keys->nasked == 0)
		return keys;
	keys->record = CreateTemplateTupleDesc(keys->nasked);
	for (int i = 0; i < keys->nasked; i++)
		TupleDescInitEntry(keys->record, i + 1, NULL, get_array_type(keys->keys[i].type), -1, 0);
	TupleDescFinalize(keys->record);
	keys->record = BlessTupleDesc(keys->record);
	return keys;
}

/*
 * mongo_hash_keys
 *		Evaluates all keys of one side, in per-tuple memory, and sets *hash to their hash value.
 *
 * Returns false if a key is NULL, which is equal to nothing.
 */
bool
mongo_hash_keys(MongoHashKeys *keys, ExprContext *econtext, bool is_outer, uint32 *hash)
{
	/* hash functions may detoast, which allocates */
	MemoryContext old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		isnull = false;

	*hash = 0;
	for (int i = 0; i < keys->nkeys && !isnull; i++)
	{
		MongoKeyState *key = &keys->keys[i];

		key->value = ExecEvalExpr(is_outer ? key->outer : key->inner, econtext, &isnull);
		if (isnull)
			break;
		if (is_outer && key->length == -1)
			key->value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(key->value));
		key->hash = DatumGetUInt32(FunctionCall1Coll(is_outer ? &key->outer_hash : &key->inner_hash,
													 key->collation, key->value));
		*hash = hash_combine(*hash, key->hash);
	}
	MemoryContextSwitchTo(old_context);
	return !isnull;
}

/*
 * mongo_asked_size
 *		Returns the bytes of the last values of the keys whose values are requested.
 */
Size
mongo_asked_size(const MongoHashKeys *keys)
{
	Size		size = 0;

	for (int i = 0; i < keys->nasked; i++)
		size += datumGetSize(keys->keys[i].value, keys->keys[i].by_value, keys->keys[i].length);
	return size;
}

/*
 * mongo_ask_for_keys
 *		Sets the value of the CaseTestExpr of a scan with this expression context to a record, in
 *		the current memory context.
 *
 * It has, for each key whose values are requested, an array of nvalues[key] of values[key].
 */
void
mongo_ask_for_keys(const MongoHashKeys *keys, Datum *const *values, const int *nvalues,
				   ExprContext *econtext)
{
	Datum	   *arrays = palloc(sizeof(Datum) * keys->nasked);
	bool	   *nulls = palloc0(sizeof(bool) * keys->nasked);

	for (int i = 0; i < keys->nasked; i++)
	{
		const MongoKeyState *key = &keys->keys[i];

		arrays[i] = PointerGetDatum(construct_array(values[i], nvalues[i], key->type,
													key->length, key->by_value, key->align));
	}
	econtext->caseValue_datum = HeapTupleGetDatum(heap_form_tuple(keys->record, arrays, nulls));
	econtext->caseValue_isNull = false;
}
