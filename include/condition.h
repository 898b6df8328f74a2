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

#include "field.h"
#include "predicate.h"

/* A value that an earlier stage of the pipeline has computed. */
typedef struct MongoComputed
{
	Expr	   *expression;		/* whose value it is, found by equal() */
	const char *path;			/* where it stands in the document */
	bool		normal;			/* in the normal form of its type */
	bool		not_null;
} MongoComputed;

/*
 * What a translation reads and what it gathers.
 *
 * A value that is not a constant is evaluated by PostgreSQL, once per scan.  In a match
 * document it becomes a parameter, a placeholder {$parameter: N} that
 * command_template.h replaces by a predicate; in an aggregation expression it
 * becomes a variable, "$$p0" and so on, whose value the command's "let" has.
 *
 * All that is not set is off: {columns} translates to find's language alone.
 */
typedef struct MongoTranslation
{
	MongoColumns *columns;		/* of the tables in the document, or NULL */
	bool		use_expressions;	/* may aggregation expressions be used? */
	uint32		disabled;		/* MongoTableOptions.pushdown_disable */
	bool		need_exact;		/* a superset is of no use: make it exact */
	bool		guards_digits;	/* see mongo_translate_expression() */
	List	   *without_nan;	/* columns, of nan_bound.h, that no matched
								 * row has a NaN in, whatever is matched */
	List	   *beside;			/* conditions, or RestrictInfos, that hold for
								 * all rows that are of use */
	List	   *computed;		/* MongoComputed *, looked for first */
	List	   *parameters;		/* Expr *, one for each placeholder */
	List	   *predicates;		/* of mongo_predicate_to_list(), in step */
	List	   *variables;		/* Expr *, of "let" */
	bool		compares_text;	/* the command needs the simple collation */
	int			depth;			/* of the part in hand, below the condition */
} MongoTranslation;

/* What a translation has gathered, to go back to where a part of it fails. */
typedef struct MongoMark
{
	int			nparameters;
	int			nvariables;
	bool		compares_text;
} MongoMark;

static inline MongoMark
mongo_mark(const MongoTranslation *translation)
{
	return (MongoMark)
	{
		list_length(translation->parameters), list_length(translation->variables),
			translation->compares_text
	};
}

static inline void
mongo_return_to(MongoTranslation *translation, MongoMark mark)
{
	translation->parameters = list_truncate(translation->parameters, mark.nparameters);
	translation->predicates = list_truncate(translation->predicates, mark.nparameters);
	translation->variables = list_truncate(translation->variables, mark.nvariables);
	translation->compares_text = mark.compares_text;
}

/* What an index is asked for by a condition, the less the earlier. */
typedef enum MongoSeek
{
	MONGO_SEEK_NOTHING,
	MONGO_SEEK_RANGE,			/* <, <=, > and >= */
	MONGO_SEEK_NARROW_RANGE,	/* equality, of what reading may round */
	MONGO_SEEK_VALUES,			/* one of a list */
	MONGO_SEEK_VALUE
} MongoSeek;

/* mongo_seek_use: which of MONGO_INDEX_* an index must have for that. */
static inline int
mongo_seek_use(MongoSeek seek)
{
	return seek >= MONGO_SEEK_VALUES ? MONGO_INDEX_EQUALITY : MONGO_INDEX_RANGE;
}

/* What became of one condition. */
typedef struct MongoCondition
{
	MongoGrade	grade;
	MongoSeek	seek;
	const char *path;			/* of the one field that is sought by; NULL
								 * with MONGO_SEEK_NOTHING */
	bool		indexed;		/* an index that leads with the field, or with
								 * each of several, can find the documents */
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
