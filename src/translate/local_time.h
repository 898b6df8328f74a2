/*-------------------------------------------------------------------------
 *
 * local_time.h
 *		Conditions on what clocks show: ::date, date_trunc() and the year of a time.
 *
 * Clocks in a zone show a time before another one in a few ranges of instants, mostly
 * in one, which are known when the value and the session's time zone are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LOCAL_TIME_H
#define MONGO_FDW_LOCAL_TIME_H

#include "compat.h"

#include "field.h"
#include "predicate.h"

/*
 * mongo_constant_word
 *		A constant text in lower case, such as the name of a unit or of a time zone;
 *		palloc'd.  NULL for any other node.
 */
extern const char *mongo_constant_word(Node *node);

/*
 * mongo_constant_zone
 *		The name of a time zone if the node is a constant that PostgreSQL knows and that
 *		is no abbreviation, whose meaning is a setting; palloc'd, or NULL.
 */
extern const char *mongo_constant_zone(Node *node);

/*
 * mongo_local_time_of_node
 *		The field whose local time 'node' is, or is a function of; false for anything
 *		else.  A plain date or timestamp is that when it is compared with an instant,
 *		of which 'value_type' tells.
 */
extern bool mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type,
									 MongoField *field);

/*
 * mongo_local_time_grade, mongo_render_local_time
 *		Of a predicate with a clock: see mongo_predicate_grade() and
 *		mongo_predicate_render(); 'value' is a scalar.
 *
 * A time zone that is not known raises 22023.
 */
extern MongoGrade mongo_local_time_grade(const MongoPredicate *predicate);
extern MongoMatch mongo_render_local_time(const MongoPredicate *predicate, Datum value,
										  bson_t *match);

#endif							/* MONGO_FDW_LOCAL_TIME_H */
