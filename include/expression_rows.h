/*-------------------------------------------------------------------------
 *
 * expression_rows.h
 *		The tables of operators and functions behind expression.h.
 *
 * A row says how one function of PostgreSQL looks in MongoDB: a template in
 * which the translated arguments stand.  Each family of functions has its rows
 * in a file of its own, src/translate/expression_*.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPRESSION_ROWS_H
#define MONGO_FDW_EXPRESSION_ROWS_H

#include "compat.h"

#include "expression.h"

/* One call of a function with a row. */
typedef struct MongoCall
{
	const MongoScope *scope;
	Node	   *node;			/* OpExpr or FuncExpr */
	List	   *args;
	Oid			collation;		/* that it uses */
	const struct MongoExpressionRow *row;
} MongoCall;

/* What a row needs and gives, beside its template. */
#define MONGO_ROW_RAW_ARGUMENTS	0x01	/* takes raw values */
#define MONGO_ROW_RAW_RESULT	0x02	/* gives a raw value */
#define MONGO_ROW_NULL_GUARD	0x04	/* is null where an argument is null,
										 * which MongoDB's operator is not by
										 * itself */
#define MONGO_ROW_DIGITS		0x08	/* exact if the result's digits are
										 * known to fit into a Decimal128 */
#define MONGO_ROW_CHARACTERS	0x10	/* counts characters, which are
										 * MongoDB's if the database is in
										 * UTF-8 */
#define MONGO_ROW_BYTEWISE		0x20	/* its collation must be deterministic */
#define MONGO_ROW_C_COLLATION	0x40	/* its collation must be C */

typedef struct MongoExpressionRow
{
	Oid			function;
	const char *template;		/* of mongo_expand_template(); or NULL */
	int			flags;

	/* What a template cannot say: translates the whole call.  Or NULL. */
	bool		(*translate) (const MongoCall *call, MongoValue *result);
} MongoExpressionRow;

/*
 * mongo_expression_row
 *		The row of a function, or NULL.
 */
extern const MongoExpressionRow *mongo_expression_row(Oid function);

/*
 * mongo_nth_expression_row
 *		A row by its number, counted from 0 through all tables; NULL behind the last.
 */
extern const MongoExpressionRow *mongo_nth_expression_row(int number);

/* The tables, each ended by a row without a function. */
extern const MongoExpressionRow mongo_number_rows[];
extern const MongoExpressionRow mongo_text_rows[];
extern const MongoExpressionRow mongo_time_rows[];
extern const MongoExpressionRow mongo_array_rows[];

#endif							/* MONGO_FDW_EXPRESSION_ROWS_H */
