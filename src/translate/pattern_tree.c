/*-------------------------------------------------------------------------
 *
 * pattern_tree.c
 *		What can be said of a pattern by looking at its tree.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pattern_tree.h"

#include "mb/pg_wchar.h"
#include "port/pg_bitutils.h"

/* More is as good as never. */
#define MANY_STEPS	1000000.0

/* Bytes of a compiled character, class and pair of brackets in PCRE, rounded up. */
#define CHARACTER_SIZE	8
#define CLASS_SIZE		48
#define GROUP_SIZE		12

MongoPatternPiece *
mongo_any_piece(int minimum, int maximum)
{
	MongoPatternPiece *piece = palloc0(sizeof(MongoPatternPiece));

	piece->set.negated = true;
	piece->minimum = minimum;
	piece->maximum = maximum;
	return piece;
}

MongoPatternPiece *
mongo_character_piece(const char *character, int bytes, bool folds)
{
	MongoPatternPiece *piece = palloc0(sizeof(MongoPatternPiece));

	piece->minimum = 1;
	piece->maximum = 1;
	if (IS_HIGHBIT_SET(*character))
	{
		piece->set.others = pnstrdup(character, bytes);
		piece->set.nothers = 1;
	}
	else
		mongo_set_add(&piece->set, *character, *character);
	if (folds)
		mongo_set_fold(&piece->set);
	return piece;
}

void
mongo_set_add(MongoCharacterSet *set, unsigned char first, unsigned char last)
{
	Assert(!IS_HIGHBIT_SET(first) && !IS_HIGHBIT_SET(last));
	for (int c = first; c <= last; c++)
		set->ascii[c / 64] |= UINT64CONST(1) << (c % 64);
}

void
mongo_set_fold(MongoCharacterSet *set)
{
	MongoCharacterSet listed = *set;

	listed.negated = false;
	for (unsigned char c = 'a'; c <= 'z'; c++)
	{
		unsigned char upper = pg_ascii_toupper(c);

		if (mongo_set_has(&listed, c) || mongo_set_has(&listed, upper))
		{
			mongo_set_add(set, c, c);
			mongo_set_add(set, upper, upper);
		}
	}
}

bool
mongo_set_has(const MongoCharacterSet *set, unsigned char ascii)
{
	bool		listed = (set->ascii[ascii / 64] >> (ascii % 64)) & 1;

	return listed != set->negated;
}

bool
mongo_set_is_any(const MongoCharacterSet *set)
{
	return set->negated && set->ascii[0] == 0 && set->ascii[1] == 0 && set->nothers == 0;
}

bool
mongo_set_is_one(const MongoCharacterSet *set)
{
	return !set->negated &&
		pg_popcount64(set->ascii[0]) + pg_popcount64(set->ascii[1]) + set->nothers == 1;
}

/* Has it characters that are not ASCII? */
static bool
has_others(const MongoCharacterSet *set)
{
	return set->negated || set->nothers > 0;
}

/* Of what is not ASCII, any two sets that have some are taken to have the same. */
static bool
sets_are_disjoint(const MongoCharacterSet *left, const MongoCharacterSet *right)
{
	for (unsigned char c = 0; c < 128; c++)
	{
		if (mongo_set_has(left, c) && mongo_set_has(right, c))
			return false;
	}
	return !(has_others(left) && has_others(right));
}

static bool piece_is_optional(const MongoPatternPiece *piece);

static bool
pieces_are_optional(const List *pieces)
{
	ListCell   *cell;

	foreach(cell, pieces)
	{
		if (!piece_is_optional(lfirst(cell)))
			return false;
	}
	return true;
}

/* piece_is_optional: does it match the empty text? */
static bool
piece_is_optional(const MongoPatternPiece *piece)
{
	ListCell   *cell;

	foreach(cell, piece->branches)
	{
		if (pieces_are_optional(lfirst(cell)))
			return true;
	}
	return piece->minimum == 0;
}

/* piece_meets: may it begin (step 1) or end (step -1) with a character of the set? */
static bool
piece_meets(const MongoPatternPiece *piece, int step, const MongoCharacterSet *set)
{
	ListCell   *cell;

	if (piece->branches == NIL)
		return !sets_are_disjoint(&piece->set, set);
	foreach(cell, piece->branches)
	{
		const List *branch = lfirst(cell);

		if (mongo_meets(branch, step > 0 ? 0 : list_length(branch) - 1, step, set, false))
			return true;
	}
	return false;
}

bool
mongo_meets(const List *pieces, int from, int step, const MongoCharacterSet *set, bool open)
{
	for (int i = from; i >= 0 && i < list_length(pieces); i += step)
	{
		const MongoPatternPiece *piece = list_nth(pieces, i);

		if (piece_meets(piece, step, set))
			return true;
		if (!piece_is_optional(piece))
			return false;
	}
	return open;
}

/* piece_length: in characters; -1 if matches differ in length. */
static int
piece_length(const MongoPatternPiece *piece)
{
	int			length = 1;
	ListCell   *cell;

	if (piece->minimum != piece->maximum)
		return -1;
	foreach(cell, piece->branches)
	{
		int			of_branch = mongo_pieces_length(lfirst(cell));

		if (of_branch < 0 || (foreach_current_index(cell) > 0 && of_branch != length))
			return -1;
		length = of_branch;
	}
	return length * piece->minimum;
}

int
mongo_pieces_length(const List *pieces)
{
	int			length = 0;
	ListCell   *cell;

	foreach(cell, pieces)
	{
		int			of_piece = piece_length(lfirst(cell));

		if (of_piece < 0)
			return -1;
		length += of_piece;
	}
	return length;
}

/* group_steps: of one time that its branches are tried. */
static double
group_steps(const MongoPatternPiece *piece, double following)
{
	double		steps = 0;
	ListCell   *cell;

	foreach(cell, piece->branches)
		steps += 2 + mongo_pieces_steps(lfirst(cell), following);
	return Min(steps, MANY_STEPS);
}

/*
 * piece_steps: PCRE counts each place that it might have to come back to.  A
 * character as often as possible, never to be given back, is none.
 */
static double
piece_steps(const MongoPatternPiece *piece, double following)
{
	double		steps = following;

	if (piece->branches == NIL)
	{
		if (piece->maximum == MONGO_UNBOUNDED || piece->maximum == piece->minimum)
			return following;
		return (piece->maximum - piece->minimum + 1) * (1 + following);
	}
	if (piece->maximum == MONGO_UNBOUNDED)
		return MANY_STEPS;
	for (int i = piece->minimum; i < piece->maximum; i++)
		steps = 1 + following + group_steps(piece, steps);
	for (int i = 0; i < piece->minimum; i++)
		steps = group_steps(piece, steps);
	return steps;
}

double
mongo_pieces_steps(const List *pieces, double following)
{
	double		steps = following;

	for (int i = list_length(pieces) - 1; i >= 0; i--)
		steps = Min(piece_steps(list_nth(pieces, i), steps), MANY_STEPS);
	return steps;
}

static double
piece_size(const MongoPatternPiece *piece)
{
	int			times = Max(piece->minimum, piece->maximum);
	double		size = 0;
	ListCell   *cell;

	/* a class is written once, but PostgreSQL has a state for each time */
	if (piece->branches == NIL)
		return CHARACTER_SIZE * Max(times, 1) +
			(mongo_set_is_one(&piece->set) || mongo_set_is_any(&piece->set) ?
			 0 : CLASS_SIZE + CHARACTER_SIZE * piece->set.nothers);
	foreach(cell, piece->branches)
		size += GROUP_SIZE + mongo_pieces_size(lfirst(cell));
	return (GROUP_SIZE + size) * Max(times, 1);
}

double
mongo_pieces_size(const List *pieces)
{
	double		size = 0;
	ListCell   *cell;

	foreach(cell, pieces)
		size += piece_size(lfirst(cell));
	return size;
}

/*
 * piece_may_be_hex: may it match hexadecimal digits only, as the text of an ObjectId
 * does?
 */
static bool
piece_may_be_hex(const MongoPatternPiece *piece)
{
	ListCell   *cell;

	if (piece->minimum == 0)
		return true;
	if (piece->branches == NIL)
	{
		for (const char *digit = "0123456789abcdef"; *digit != '\0'; digit++)
		{
			if (mongo_set_has(&piece->set, *digit))
				return true;
		}
		return false;
	}
	foreach(cell, piece->branches)
	{
		if (mongo_pieces_may_be_hex(lfirst(cell)))
			return true;
	}
	return false;
}

bool
mongo_pieces_may_be_hex(const List *pieces)
{
	ListCell   *cell;

	foreach(cell, pieces)
	{
		if (!piece_may_be_hex(lfirst(cell)))
			return false;
	}
	return true;
}
