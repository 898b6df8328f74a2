/*-------------------------------------------------------------------------
 *
 * pattern_like.c
 *		Patterns of LIKE and starts_with() as trees.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html#FUNCTIONS-LIKE
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pattern_tree.h"

#include "mb/pg_wchar.h"

List *
mongo_parse_like(const char *string, int length, bool folds)
{
	MongoPatternBranch *branch = palloc0(sizeof(MongoPatternBranch));
	const char *end = string + length;

	branch->at_start = true;
	branch->at_end = true;
	while (string < end)
	{
		MongoPatternPiece *piece;
		int			bytes = 1;

		if (*string == '%')
			piece = mongo_any_piece(0, MONGO_UNBOUNDED);
		else if (*string == '_')
			piece = mongo_any_piece(1, 1);
		else
		{
			if (*string == '\\' && ++string >= end)
				return NIL;
			bytes = Min(pg_mblen(string), end - string);
			piece = mongo_character_piece(string, bytes, folds);
		}
		branch->pieces = lappend(branch->pieces, piece);
		string += bytes;
	}
	return list_make1(branch);
}

List *
mongo_parse_prefix(const char *string, int length)
{
	MongoPatternBranch *branch = palloc0(sizeof(MongoPatternBranch));
	const char *end = string + length;

	branch->at_start = true;
	while (string < end)
	{
		int			bytes = Min(pg_mblen(string), end - string);

		branch->pieces = lappend(branch->pieces,
								 mongo_character_piece(string, bytes, false));
		string += bytes;
	}
	return list_make1(branch);
}
