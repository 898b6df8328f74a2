/*-------------------------------------------------------------------------
 *
 * field.h
 *		The field that an expression reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FIELD_H
#define MONGO_FDW_FIELD_H

#include "compat.h"

#include "lib/stringinfo.h"

#include "columns.h"

/*
 * mongo_field_of_node
 *		The field that 'node' reads: a column, as mongo_column_of_node() has it,
 *		or a chain of accessors (->, ->>, #>, #>>, subscripts) with
 *		constant keys on a json or jsonb column.
 *
 * Returns false for anything else, and for the whole-document column.
 */
extern bool mongo_field_of_node(MongoColumns *columns, Node *node,
								MongoField *field);

/*
 * mongo_any_element
 *		Any element of the array that 'node' reads, as a field of the elements' type;
 *		false for what is no array.
 */
extern bool mongo_any_element(MongoColumns *columns, Node *node, MongoField *field);

/*
 * mongo_operand_of_node
 *		The field that 'node' reads, the element of an array with a constant
 *		subscript, what is inside json cast to another type, or the text within a
 *		wrapper of Extended JSON.
 */
extern bool mongo_operand_of_node(MongoColumns *columns, Node *node,
								  MongoField *field);

/*
 * mongo_append_json_key
 *		Append "." and one constant key, text or int4, of a json or jsonb value to
 *		a path; false when it has no place there, as a key with a dot or an index
 *		from the end.
 */
extern bool mongo_append_json_key(StringInfo path, Oid type, Datum value);

#endif							/* MONGO_FDW_FIELD_H */
