/*-------------------------------------------------------------------------
 *
 * expression_parts.h
 *		What the sources of expressions, src/translate/expression*.c, have of each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPRESSION_PARTS_H
#define MONGO_FDW_EXPRESSION_PARTS_H

#include "compat.h"

#include "expression_rows.h"

/*
 * Parts of mongo_test_of_node() and mongo_value_of_node(), by kinds of nodes:
 * boolean logic; CASE and its like; casts by way of text; = ANY and <> ALL.
 */
extern bool mongo_logic_test(const MongoScope *scope, Node *node, bool wanted,
							 MongoValue *value);
extern bool mongo_logic_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value);
extern bool mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
								   MongoValue *value);

/*
 * mongo_collation_suits
 *		Does the call's collation mean to PostgreSQL what comparing bytes does?
 *
 * Only what the flags MONGO_ROW_BYTEWISE and MONGO_ROW_C_COLLATION ask for.
 */
extern bool mongo_collation_suits(Oid collation, int flags);

/* to_char(timestamp, format) with a constant format of numbers and separators. */
extern bool mongo_to_char(const MongoCall *call, MongoValue *result);

extern bool mongo_array_element(const MongoScope *scope, SubscriptingRef *node,
								MongoValue *value);

/*
 * mongo_variable
 *		A value that is known when the scan starts, as a variable of "let".
 *
 * False where it might be needless to evaluate it, and fail.
 */
extern bool mongo_variable(const MongoScope *scope, Node *node, MongoValue *value);

/*
 * mongo_date_bound
 *		A date or timestamp that PostgreSQL knows, as what "x OP value" compares x with.
 */
extern bool mongo_date_bound(const MongoScope *scope, int strategy, Node *node,
							 MongoValue *value);

/*
 * mongo_literal
 *		A constant; false when it has no BSON form that is the same value.
 */
extern bool mongo_literal(const Const *constant, MongoValue *value);

/*
 * mongo_same
 *		Not IS DISTINCT FROM, a boolean that is never null; 'operator' is "=".
 */
extern bool mongo_same(const MongoScope *scope, Oid operator, List *args,
					   Oid collation, MongoValue *value);

/*
 * mongo_compare
 *		"left OP right" in three values, OP as in mongo_find_operators, of two
 *		nodes whose types share a family of operators.
 */
extern bool mongo_compare(const MongoScope *scope, int strategy, Node *left,
						  Node *right, Oid collation, MongoValue *value);

/* The same as a test of mongo_test_of_node() for TRUE. */
extern bool mongo_compare_test(const MongoScope *scope, int strategy, Node *left,
							   Node *right, Oid collation, MongoValue *value);

/*
 * mongo_comparison_strategy
 *		Of an operator that compares values by the default order of types with
 *		a normal form; 0 for any other.
 */
extern int	mongo_comparison_strategy(Oid operator);

/*
 * mongo_computed_value, mongo_field_value, mongo_local_value
 *		The leaves: what an earlier stage has computed; a column; and what needs no
 *		document, in place if it is constant, else as a variable.
 *
 * What is inside json is no leaf: MongoDB would gather it from arrays as well.
 */
extern bool mongo_computed_value(const MongoTranslation *translation, Node *node,
								 MongoValue *value);
extern bool mongo_field_value(MongoTranslation *translation, Node *node,
							  MongoValue *value);
extern bool mongo_local_value(const MongoScope *scope, Node *node, MongoValue *value);

/*
 * mongo_is_same_reading
 *		Do the two types make the same of a document's value?
 */
extern bool mongo_is_same_reading(Oid type, Oid relabelled);

#endif							/* MONGO_FDW_EXPRESSION_PARTS_H */
