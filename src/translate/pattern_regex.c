/*-------------------------------------------------------------------------
 *
 * pattern_regex.c
 *		Trees of patterns as regular expressions for MongoDB.
 *
 * PCRE tries one way after another and gives up after some 200,000 steps at one
 * place of the text; find takes that for "does not match".  So an expression must not
 * need a step for each character of a long text.  PCRE counts no step for going on to
 * the next place, for a character, and for characters that are taken as often as
 * possible and never given back ("[0-9]*+").
 *
 * It only matters whether there is a match.  So an optional piece is left out where
 * any text may precede or follow, such as "x*" beside ".*".  Then ".*" divides a branch
 * into segments.  The first and the last one have their places, and a segment alone is
 * searched for by PCRE itself.  Between two ".*" the first place that fits is as good
 * as any later one if all matches have one length: "(?>.*?text)", a step for each
 * character and no way back.
 *
 * Within a segment a character may be repeated without limit if it cannot come next:
 * then all there are of it are taken.  In an expression that is searched for it must
 * not come before either, or each character would be looked at from many places.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 * https://www.pcre.org/original/doc/html/pcrepattern.html
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "pattern_tree.h"

/* Steps that are always few enough. */
#define MAX_STEPS			500

/* Likewise, for each character that is searched. */
#define MAX_SEARCH_STEPS	60

/* Of a compiled expression, for which PCRE has 65,536 bytes. */
#define MAX_SIZE			50000

/* Of the expression; MongoDB takes about 32,000 bytes. */
#define MAX_LENGTH			30000

/* What stands before, between or after the ".*"s. */
typedef struct Segment
{
	List	   *pieces;
	bool		open_start;		/* any text may come before */
	bool		open_end;
	int			length;			/* in characters, or -1 */
	StringInfoData text;
} Segment;

/* MongoDB does not look for a prefix where there is a "|", escaped or not. */
static void
append_character(StringInfo text, char c)
{
	if (isalnum((unsigned char) c) || c == ' ')
		appendStringInfoChar(text, c);
	else if (iscntrl((unsigned char) c) || c == '|')
		appendStringInfo(text, "\\x%02x", c);
	else
		appendStringInfo(text, "\\%c", c);
}

/* append_class: a bracket expression of all characters of the set. */
static void
append_class(StringInfo text, const MongoCharacterSet *set)
{
	appendStringInfoString(text, set->negated ? "[^" : "[");
	for (int c = 1; c < 128; c++)
	{
		int			last = c;

		if (mongo_set_has(set, c) == set->negated)
			continue;
		while (last + 1 < 128 && mongo_set_has(set, last + 1) != set->negated)
			last++;
		append_character(text, c);
		if (last > c + 1)
			appendStringInfoChar(text, '-');
		if (last > c)
			append_character(text, last);
		c = last;
	}
	if (set->others != NULL)
		appendStringInfoString(text, set->others);
	appendStringInfoChar(text, ']');
}

/*
 * append_set: of what is quantified a class even of one character, as MongoDB
 * takes the letters before "{0,1}" for a prefix.
 */
static void
append_set(StringInfo text, const MongoCharacterSet *set, bool quantified)
{
	if (mongo_set_is_any(set))
		appendStringInfoChar(text, '.');
	else if (quantified || !mongo_set_is_one(set))
		append_class(text, set);
	else if (set->others != NULL)
		appendStringInfoString(text, set->others);
	else
	{
		for (int c = 1; c < 128; c++)
		{
			if (mongo_set_has(set, c))
				append_character(text, c);
		}
	}
}

/* append_quantifier: without backtracking (*+ and ++) where there is no upper limit. */
static void
append_quantifier(StringInfo text, const MongoPatternPiece *piece)
{
	if (piece->maximum == MONGO_UNBOUNDED && piece->minimum <= 1)
		appendStringInfoString(text, piece->minimum == 0 ? "*+" : "++");
	else if (piece->maximum == MONGO_UNBOUNDED)
		appendStringInfo(text, "{%d,}+", piece->minimum);
	else if (piece->minimum == 0 && piece->maximum == 1)
		appendStringInfoChar(text, '?');
	else if (piece->minimum != piece->maximum)
		appendStringInfo(text, "{%d,%d}", piece->minimum, piece->maximum);
	else if (piece->minimum != 1)
		appendStringInfo(text, "{%d}", piece->minimum);
}

/* append_pieces: of a segment, or of a branch in a group */
static void
append_pieces(StringInfo text, const List *pieces)
{
	ListCell   *cell;
	ListCell   *branch;

	foreach(cell, pieces)
	{
		const MongoPatternPiece *piece = lfirst(cell);

		if (piece->branches == NIL)
			append_set(text, &piece->set, piece->minimum != 1 || piece->maximum != 1);
		else
		{
			foreach(branch, piece->branches)
			{
				appendStringInfoString(text, branch == list_head(piece->branches) ? "(?:" : "|");
				append_pieces(text, lfirst(branch));
			}
			appendStringInfoChar(text, ')');
		}
		append_quantifier(text, piece);
	}
}

/* Is there something without a limit in the group? */
static bool
group_is_bounded(const MongoPatternPiece *group)
{
	ListCell   *branch;
	ListCell   *cell;

	foreach(branch, group->branches)
	{
		foreach(cell, (List *) lfirst(branch))
		{
			const MongoPatternPiece *piece = lfirst(cell);

			if (piece->maximum == MONGO_UNBOUNDED || !group_is_bounded(piece))
				return false;
		}
	}
	return true;
}

/* Can no character that is repeated without limit come next as well? */
static bool
repeats_are_clear(const Segment *segment)
{
	ListCell   *cell;

	foreach(cell, segment->pieces)
	{
		const MongoPatternPiece *piece = lfirst(cell);
		int			i = foreach_current_index(cell);

		if (!group_is_bounded(piece))
			return false;
		if (piece->maximum == MONGO_UNBOUNDED &&
			(piece->branches != NIL ||
			 mongo_meets(segment->pieces, i + 1, 1, &piece->set, segment->open_end) ||
			 (segment->open_start &&
			  mongo_meets(segment->pieces, i - 1, -1, &piece->set, true))))
			return false;
	}
	return true;
}

/*
 * shorten: where any text may come before or after, as few of the first or last
 * piece as possible are enough.
 */
static void
shorten(Segment *segment)
{
	while (segment->open_start && segment->pieces != NIL)
	{
		MongoPatternPiece *piece = linitial(segment->pieces);

		piece->maximum = piece->minimum;
		if (piece->maximum > 0)
			break;
		segment->pieces = list_delete_first(segment->pieces);
	}
	while (segment->open_end && segment->pieces != NIL)
	{
		MongoPatternPiece *piece = llast(segment->pieces);

		piece->maximum = piece->minimum;
		if (piece->maximum > 0)
			break;
		segment->pieces = list_delete_last(segment->pieces);
	}
}

/*
 * read_segments: of a branch; the first one stands where the text starts, the
 * last one where it ends, and either may be empty for any text.  One segment
 * alone does both.  NIL if it cannot be written.
 */
static List *
read_segments(const MongoPatternBranch *branch)
{
	Segment    *segment = palloc0(sizeof(Segment));
	List	   *segments = list_make1(segment);
	List	   *written = NIL;
	ListCell   *cell;

	if (!branch->at_start)
		segments = lappend(segments, segment = palloc0(sizeof(Segment)));
	foreach(cell, branch->pieces)
	{
		MongoPatternPiece *piece = lfirst(cell);

		if (piece->branches == NIL && mongo_set_is_any(&piece->set) &&
			piece->maximum == MONGO_UNBOUNDED)
		{
			if (piece->minimum > 0)
				segment->pieces = lappend(segment->pieces,
										  mongo_any_piece(piece->minimum, piece->minimum));
			segments = lappend(segments, segment = palloc0(sizeof(Segment)));
		}
		else
			segment->pieces = lappend(segment->pieces, piece);
	}
	if (!branch->at_end)
		segments = lappend(segments, palloc0(sizeof(Segment)));

	foreach(cell, segments)
	{
		bool		first = cell == list_head(segments);
		bool		last = foreach_current_index(cell) == list_length(segments) - 1;

		segment = lfirst(cell);
		segment->open_start = !first;
		segment->open_end = !last;
		shorten(segment);
		if (!repeats_are_clear(segment))
			return NIL;
		segment->length = mongo_pieces_length(segment->pieces);
		initStringInfo(&segment->text);
		append_pieces(&segment->text, segment->pieces);
		if (first || last || segment->pieces != NIL)
			written = lappend(written, segment);
	}
	return written;
}

/* append_last: far enough from the end, and then what stands before it */
static bool
append_last(StringInfo text, const Segment *last)
{
	if (last->pieces == NIL)
		return true;
	if (last->length < 0)
		return false;
	appendStringInfo(text, "(?=.{%d}).*+(?<=%s)", last->length, last->text.data);
	return true;
}

/*
 * write_search: a branch with segments between its first and last one.  The first
 * place is good enough only for what has one length, or if nothing follows.
 */
static bool
write_search(const List *segments, bool admits_long, MongoRegularExpression *result)
{
	StringInfo	text = &result->text;
	const Segment *first = linitial(segments);
	const Segment *last = llast(segments);
	int			ninner = list_length(segments) - 2;
	double		steps = 1;

	if (first->length < 0)
		return false;
	for (int i = 1; i <= ninner; i++)
	{
		const Segment *inner = list_nth(segments, i);

		if (inner->length < 0 && (i < ninner || last->pieces != NIL))
			return false;
		steps += mongo_pieces_steps(inner->pieces, 1) - 1;
	}
	if (steps > MAX_SEARCH_STEPS)
		return false;
	result->safe_length = MONGO_SAFE_LENGTH / steps;

	appendStringInfo(text, mongo_pieces_steps(first->pieces, 0) > 0 ? "^(?>%s)" : "^%s",
					 first->text.data);
	if (admits_long)
		appendStringInfo(text, "(?:.{%d}|", result->safe_length);
	for (int i = 1; i <= ninner; i++)
		appendStringInfo(text, "(?>.*?%s)", ((Segment *) list_nth(segments, i))->text.data);
	if (!append_last(text, last))
		return false;
	if (admits_long)
		appendStringInfoChar(text, ')');
	return true;
}

/* write_branch: false if no regular expression says the same in few steps. */
static bool
write_branch(const List *segments, bool admits_long, MongoRegularExpression *result)
{
	const Segment *first = linitial(segments);
	const Segment *last = llast(segments);

	/* "$" would match before a final line feed as well */
	if (list_length(segments) == 1)
		appendStringInfo(&result->text, "^%s\\z", first->text.data);
	else if (list_length(segments) == 3 && first->pieces == NIL && last->pieces == NIL)
		appendStringInfoString(&result->text, ((Segment *) lsecond(segments))->text.data);
	else if (list_length(segments) > 2)
		return write_search(segments, admits_long, result);
	else if (first->pieces == NIL && last->length < 0)
		appendStringInfo(&result->text, "%s\\z", last->text.data);
	else
	{
		appendStringInfo(&result->text, "^%s", first->text.data);
		return append_last(&result->text, last);
	}
	return true;
}

/* write_prefix: the characters that all which matches begins with */
static void
write_prefix(const Segment *first, StringInfo prefix)
{
	ListCell   *cell;

	foreach(cell, first->pieces)
	{
		const MongoPatternPiece *piece = lfirst(cell);

		if (piece->branches != NIL || !mongo_set_is_one(&piece->set) ||
			piece->minimum != 1 || piece->maximum != 1)
			return;
		if (prefix->len == 0)
			appendStringInfoChar(prefix, '^');
		append_set(prefix, &piece->set, false);
	}
}

bool
mongo_write_regular_expression(List *branches, bool admits_long,
							   MongoRegularExpression *result)
{
	double		steps = 0;
	double		size = 0;
	ListCell   *cell;
	ListCell   *of_branch;

	initStringInfo(&result->text);
	initStringInfo(&result->prefix);
	result->safe_length = 0;
	foreach(cell, branches)
	{
		List	   *segments = read_segments(lfirst(cell));
		double		of_segments = 1;

		if (segments == NIL)
			return false;

		/* what is small takes little to count its steps, too */
		foreach(of_branch, segments)
			size += mongo_pieces_size(((Segment *) lfirst(of_branch))->pieces);
		if (size > MAX_SIZE)
			return false;
		foreach(of_branch, segments)
			of_segments *= mongo_pieces_steps(((Segment *) lfirst(of_branch))->pieces, 1);
		steps += of_segments;
		if (steps > MAX_STEPS)
			return false;

		if (cell != list_head(branches))
			appendStringInfoChar(&result->text, '|');
		if (!write_branch(segments, admits_long, result) ||
			(result->safe_length > 0 && list_length(branches) > 1))
			return false;
		if (list_length(branches) == 1 && strchr(result->text.data, '|') != NULL)
			write_prefix(linitial(segments), &result->prefix);
	}
	return result->text.len <= MAX_LENGTH;
}
