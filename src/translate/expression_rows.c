/*-------------------------------------------------------------------------
 *
 * expression_rows.c
 *		The families of operators and functions together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_rows.h"

static const MongoExpressionRow *const families[] =
{
	mongo_number_rows,
	mongo_text_rows,
	mongo_time_rows,
	mongo_array_rows,
};

const MongoExpressionRow *
mongo_expression_row(Oid function)
{
	for (size_t i = 0; i < lengthof(families); i++)
	{
		for (const MongoExpressionRow *row = families[i]; OidIsValid(row->function); row++)
		{
			if (row->function == function)
				return row;
		}
	}
	return NULL;
}

const MongoExpressionRow *
mongo_nth_expression_row(int number)
{
	for (size_t i = 0; i < lengthof(families); i++)
	{
		for (const MongoExpressionRow *row = families[i]; OidIsValid(row->function); row++)
		{
			if (number-- == 0)
				return row;
		}
	}
	return NULL;
}
