/*-------------------------------------------------------------------------
 *
 * elements.h
 *		Conditions on the elements of arrays, asked of the documents that hold them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ELEMENTS_H
#define MONGO_FDW_ELEMENTS_H

#include "compat.h"

#include "condition.h"

/* What documents are asked for before their arrays are unwound. */
typedef struct MongoElements
{
	MongoTranslation *translation;	/* gathers the parameters */
	List	   *paths;			/* char *, in the order of unwinding */
	List	  **within;			/* for each: conditions of one element, bson_t * */
	List	   *conditions;		/* of the document, bson_t * */
} MongoElements;

extern void mongo_elements_begin(MongoElements *elements, MongoTranslation *translation,
								 List *paths);

/*
 * mongo_elements_add
 *		Ask for documents in which an element at path number 'number' may meet
 *		'match', which is a condition on the rows after it is unwound.
 *
 * What matches is a superset of the documents that have such rows.  Nothing is asked
 * for where that cannot be said in find's language, or where a row without the
 * element would do.
 */
extern void mongo_elements_add(MongoElements *elements, int number, const bson_t *match);

/*
 * mongo_elements_end
 *		The conditions on documents, bson_t *, NIL for none.
 */
extern List *mongo_elements_end(MongoElements *elements);

#endif							/* MONGO_FDW_ELEMENTS_H */
