/*-------------------------------------------------------------------------
 *
 * condition.h
 *		SQL conditions as match documents of MongoDB's find language.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONDITION_H
#define MONGO_FDW_CONDITION_H

#include "compat.h"

#include "columns.h"
#include "predicate.h"

/*
 * What a translation reads and what it gathers.
 *
 * A value that is not a constant becomes a parameter: an expression to be
 * evaluated here, once per scan, and in the match document a placeholder
 * {$parameter: N} that template.h replaces.
 */
typedef struct MongoTranslation
{
	MongoColumns *columns;
	List	   *parameters;		/* Expr *, one for each placeholder */
	List	   *predicates;		/* of mongo_predicate_to_list(), in step */
	bool		compares_text;	/* the command needs the simple collation */
	int			depth;			/* of the part in hand, below the condition */
} MongoTranslation;

/* What became of one condition. */
typedef struct MongoCondition
{
	MongoGrade	grade;
	bool		indexed;		/* an index can find the documents */
	bool		unique;			/* one document matches, or hardly more */
	bool		one_value;		/* ... for only one BSON value is meant */
} MongoCondition;

#define MONGO_PARAMETER_KEY	"$parameter"

/*
 * mongo_translate_condition
 *		Write to 'match', an empty document, when 'clause' is true.
 *
 * With grade MONGO_NOT_SHIPPABLE, 'match' is left in any state and
 * 'translation' is as it was.  Nothing is evaluated but constants; 'clause'
 * is not modified, but the parameters point into it.
 */
extern MongoCondition mongo_translate_condition(MongoTranslation *translation,
												Expr *clause, bson_t *match);

#endif							/* MONGO_FDW_CONDITION_H */
