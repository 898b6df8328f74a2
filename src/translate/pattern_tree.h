/*-------------------------------------------------------------------------
 *
 * pattern_tree.h
 *		Patterns, whatever they are written in, as trees.
 *
 * Only for the modules of patterns; others need pattern.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PATTERN_TREE_H
#define MONGO_FDW_PATTERN_TREE_H

#include "compat.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* The characters listed, or with 'negated' all others. */
typedef struct MongoCharacterSet
{
	bool		negated;
	uint64		ascii[2];		/* character c is bit c % 64 of word c / 64 */
	const char *others;			/* in the server's encoding; NULL: none */
	int			nothers;		/* how many characters these are */
} MongoCharacterSet;

#define MONGO_UNBOUNDED	(-1)

/* One thing that a text must hold next: a character, or one of several branches. */
typedef struct MongoPatternPiece
{
	MongoCharacterSet set;
	List	   *branches;		/* Lists of pieces, which may be NIL; NIL
								 * here: it is a character of the set */
	int			minimum;		/* how often */
	int			maximum;		/* or MONGO_UNBOUNDED */
} MongoPatternPiece;

/* One of several that a text may match. */
typedef struct MongoPatternBranch
{
	List	   *pieces;
	bool		at_start;		/* only where the text starts */
	bool		at_end;			/* only where the text ends */
} MongoPatternBranch;

/* A piece that is any character, as often as said. */
extern MongoPatternPiece *mongo_any_piece(int minimum, int maximum);

/*
 * mongo_character_piece
 *		A piece that is the one character of 'bytes' bytes in the server's
 *		encoding; with 'folds' an ASCII letter in either case.
 */
extern MongoPatternPiece *mongo_character_piece(const char *character, int bytes, bool folds);

/* Add an ASCII character, or all from 'first' to 'last'. */
extern void mongo_set_add(MongoCharacterSet *set, unsigned char first, unsigned char last);

/* Add the other case of each ASCII letter. */
extern void mongo_set_fold(MongoCharacterSet *set);

/* mongo_set_is_one, mongo_set_is_any: one character alone; all of them */
extern bool mongo_set_is_one(const MongoCharacterSet *set);
extern bool mongo_set_is_any(const MongoCharacterSet *set);
extern bool mongo_set_has(const MongoCharacterSet *set, unsigned char ascii);

/*
 * mongo_meets
 *		May a character of the set be the first one that is matched by the pieces from
 *		'from' on, or with 'step' -1 the last one by those up to it?
 *
 * True when in doubt; 'open' where there may be none.
 */
extern bool mongo_meets(const List *pieces, int from, int step,
						const MongoCharacterSet *set, bool open);

/* mongo_pieces_length: in characters, of all that they match; -1 if that differs. */
extern int	mongo_pieces_length(const List *pieces);

/*
 * mongo_pieces_steps
 *		At most so many steps PCRE takes to find that they do not match at one
 *		place, if what follows takes 'following'; no more than a million.
 */
extern double mongo_pieces_steps(const List *pieces, double following);

/* mongo_pieces_size: about so many bytes of a compiled expression. */
extern double mongo_pieces_size(const List *pieces);

/* mongo_pieces_may_be_hex: do they match some text of hexadecimal digits as ObjectIds have? */
extern bool mongo_pieces_may_be_hex(const List *pieces);

/*
 * mongo_parse_like, mongo_parse_prefix, mongo_parse_posix
 *		A pattern of LIKE, the argument of starts_with(), or a regular expression
 *		of "~", as MongoPatternBranches.
 *
 * 'folds': ASCII letters match in either case.  NIL for what PostgreSQL itself
 * raises an error on and, of regular expressions, for all that pattern_posix.c
 * does not say is the same here and there.  'c_ctype': classes like \d are of a C
 * collation.
 */
extern List *mongo_parse_like(const char *string, int length, bool folds);
extern List *mongo_parse_prefix(const char *string, int length);
extern List *mongo_parse_posix(const char *string, int length, bool folds, bool c_ctype);

/* Characters of a text that PCRE gets through for sure, a step for each. */
#define MONGO_SAFE_LENGTH	60000

/* What a regular expression for MongoDB says and needs. */
typedef struct MongoRegularExpression
{
	StringInfoData text;		/* for option "s", in the server's encoding */
	StringInfoData prefix;		/* "^" and what it begins with, when "|" keeps
								 * MongoDB from seeing that; else empty */
	int			safe_length;	/* longer texts may be too much for PCRE; 0:
								 * none is */
} MongoRegularExpression;

/*
 * mongo_write_regular_expression
 *		Branches as PCRE's; false if none does it in few steps.
 *
 * The pieces are shortened to what matters.  With 'admits_long', texts that are too long match as
 * well; otherwise they may match or not.
 */
extern bool mongo_write_regular_expression(List *branches, bool admits_long,
										   MongoRegularExpression *result);

#endif							/* MONGO_FDW_PATTERN_TREE_H */
