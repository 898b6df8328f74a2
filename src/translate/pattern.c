/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		LIKE and POSIX patterns as PCRE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include <ctype.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/*-------------------------------------------------------------------------
 * LIKE, ILIKE, starts_with() and "~" as conditions of find.
 *
 * In the regular expression "." matches line feeds too, and a literal prefix is
 * a range of an index.
 *
 * Where case does not matter ASCII alone folds under a C collation, and so do classes
 * like [Aa]; PCRE's option "i" would fold other letters as well.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 *-------------------------------------------------------------------------
 */

/* No sensible pattern comes near. */
#define MAX_PATTERN_LENGTH	4000

static const MongoPatternFunction functions[] =
{
	{F_TEXTLIKE, .kind = MONGO_PATTERN_LIKE},
	{F_TEXTNLIKE, .kind = MONGO_PATTERN_LIKE, .negated = true},
	{F_NAMELIKE, .kind = MONGO_PATTERN_LIKE},
	{F_NAMENLIKE, .kind = MONGO_PATTERN_LIKE, .negated = true},
	{F_TEXTICLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true},
	{F_TEXTICNLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true, .negated = true},
	{F_NAMEICLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true},
	{F_NAMEICNLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true, .negated = true},
	{F_TEXTREGEXEQ, .kind = MONGO_PATTERN_POSIX},
	{F_TEXTREGEXNE, .kind = MONGO_PATTERN_POSIX, .negated = true},
	{F_NAMEREGEXEQ, .kind = MONGO_PATTERN_POSIX},
	{F_NAMEREGEXNE, .kind = MONGO_PATTERN_POSIX, .negated = true},
	{F_TEXTICREGEXEQ, .kind = MONGO_PATTERN_POSIX, .folds = true},
	{F_TEXTICREGEXNE, .kind = MONGO_PATTERN_POSIX, .folds = true, .negated = true},
	{F_NAMEICREGEXEQ, .kind = MONGO_PATTERN_POSIX, .folds = true},
	{F_NAMEICREGEXNE, .kind = MONGO_PATTERN_POSIX, .folds = true, .negated = true},
	{F_STARTS_WITH, .kind = MONGO_PATTERN_PREFIX},
};

const MongoPatternFunction *
mongo_pattern_function(Oid function)
{
	for (size_t i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].function == function)
			return &functions[i];
	}
	return NULL;
}

/* The branches of a pattern; NIL when they are not shippable. */
static List *
parse_pattern(const MongoPatternFunction *function, Node *node, Oid collation)
{
	const Const *constant = (Const *) node;
	text	   *packed;
	const char *string;
	int			length;

	/* a character is one there; it must not be a byte here */
	if (!IsA(node, Const) || constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation) ||
		(function->folds && !mongo_ctype_is_c(collation)))
		return NIL;
	packed = DatumGetTextPP(constant->constvalue);
	string = VARDATA_ANY(packed);
	length = VARSIZE_ANY_EXHDR(packed);
	if (length > MAX_PATTERN_LENGTH)
		return NIL;
	switch (function->kind)
	{
		case MONGO_PATTERN_LIKE:
			return mongo_parse_like(string, length, function->folds);
		case MONGO_PATTERN_PREFIX:
			return mongo_parse_prefix(string, length);
		case MONGO_PATTERN_POSIX:
			return mongo_parse_posix(string, length, function->folds,
									 mongo_ctype_is_c(collation));
	}
	return NIL;
}

static const char *
in_utf8(const StringInfoData *text)
{
	return pg_server_to_any(text->data, text->len, PG_UTF8);
}

/* append_pattern_match: a text that the expression matches, or one that it does not. */
static void
append_pattern_match(const char *path, const MongoRegularExpression *expression, bool positive,
					 bson_t *match)
{
	bson_value_t regex = bson_regex(in_utf8(&expression->text), "s");

	if (!positive)
		bson_append_template(match, "{@1: {$not: @2, $ne: null}}", bson_utf8(path), regex);
	else if (expression->prefix.len > 0)
		bson_append_template(match, "{@1: {$all: [@2, @3]}}", bson_utf8(path),
							 bson_regex(in_utf8(&expression->prefix), "s"), regex);
	else
		BSON_APPEND_VALUE(match, path, &regex);
}

/*
 * append_regex_or_objectid: a regular expression looks at Strings only; an ObjectId
 * may match, too.
 */
static void
append_regex_or_objectid(const char *path, const MongoRegularExpression *expression,
						 bson_t *match)
{
	bson_t	   *matches = bson_create_in(CurrentMemoryContext);

	append_pattern_match(path, expression, true, matches);
	bson_append_template(match, "{$or: [@1, {@2: {$type: 'objectId'}}]}",
						 bson_document(matches), bson_utf8(path));
}

/* is_text_field: declared as one of the types that read Strings as they are. */
static bool
is_text_field(const MongoField *field)
{
	return mongo_compares_text(getBaseType(field->type));
}

/* is_short_field: can it only hold texts that PCRE gets through? */
static bool
is_short_field(const MongoField *field, int safe_length)
{
	Oid			type = getBaseType(field->type);

	return safe_length == 0 || (type == NAMEOID && safe_length >= NAMEDATALEN) ||
		(type == VARCHAROID && field->typmod >= (int32) VARHDRSZ &&
		 field->typmod - (int32) VARHDRSZ <= safe_length);
}

/* May the text of an ObjectId match? */
static bool
may_be_objectid(const List *branches)
{
	ListCell   *cell;

	foreach(cell, branches)
	{
		const MongoPatternBranch *branch = lfirst(cell);
		int			length = mongo_pieces_length(branch->pieces);

		if (branch->at_start && branch->at_end && length >= 0 &&
			length != MONGO_OBJECTID_TEXT_LENGTH)
			continue;
		if (mongo_pieces_may_be_hex(branch->pieces))
			return true;
	}
	return false;
}

const char *
mongo_pattern_expression(const MongoPatternFunction *function, Node *node, Oid collation)
{
	List	   *branches = parse_pattern(function, node, collation);
	MongoRegularExpression expression;

	if (branches == NIL || !mongo_write_regular_expression(branches, false, &expression) ||
		(expression.safe_length > 0 && expression.safe_length < MONGO_SAFE_LENGTH))
		return NULL;
	return in_utf8(&expression.text);
}

/* may_begin: may a text that one of the branches matches begin so? */
static bool
may_begin(const void *context, char first)
{
	MongoCharacterSet set = {0};
	ListCell   *cell;

	mongo_set_add(&set, (unsigned char) first, (unsigned char) first);
	foreach(cell, (const List *) context)
	{
		const MongoPatternBranch *branch = lfirst(cell);

		if (!branch->at_start || mongo_meets(branch->pieces, 0, 1, &set, true))
			return true;
	}
	return false;
}

/* json_text_pattern: the text of what is inside json, a superset. */
static MongoGrade
json_text_pattern(const MongoField *field, List *branches, bson_t *match)
{
	MongoRegularExpression expression;
	BsonArray	conditions = bson_array_create();
	bson_t		string;

	if (!mongo_write_regular_expression(branches, true, &expression))
		return MONGO_NOT_SHIPPABLE;
	bson_array_begin_document(&conditions, &string);
	append_pattern_match(field->path, &expression, true, &string);
	bson_array_end_document(&conditions, &string);
	mongo_append_other_json(&conditions, field->path, may_begin, branches);
	BSON_APPEND_ARRAY(match, "$or", conditions.bson);
	return MONGO_SUPERSET;
}

MongoGrade
mongo_translate_pattern(const MongoField *field, Oid function_oid, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const MongoPatternFunction *function = mongo_pattern_function(function_oid);
	MongoRegularExpression expression;
	List	   *branches;
	bool		positive;
	bool		is_short;
	bool		admits_objectid;

	bool		is_json = field->type == JSONOID && field->operator_type == TEXTOID;

	if (function == NULL || (!is_text_field(field) && !is_json) ||
		!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return MONGO_NOT_SHIPPABLE;
	branches = parse_pattern(function, node, collation);
	positive = function->negated != wanted;
	if (is_json)
		return branches != NIL && positive ? json_text_pattern(field, branches, match) :
			MONGO_NOT_SHIPPABLE;
	if (branches == NIL || !mongo_write_regular_expression(branches, false, &expression))
		return MONGO_NOT_SHIPPABLE;

	is_short = is_short_field(field, expression.safe_length);
	if (positive && !is_short)
		mongo_write_regular_expression(branches, true, &expression);
	admits_objectid = field->bson_type != BSON_TYPE_UTF8 && may_be_objectid(branches);
	if (admits_objectid && positive)
		append_regex_or_objectid(field->path, &expression, match);
	else
		append_pattern_match(field->path, &expression, positive, match);
	return admits_objectid || !is_short ? MONGO_SUPERSET : MONGO_EXACT;
}

/*-------------------------------------------------------------------------
 * Patterns of LIKE and starts_with() as trees.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html#FUNCTIONS-LIKE
 *-------------------------------------------------------------------------
 */

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

/*-------------------------------------------------------------------------
 * Trees of patterns as regular expressions for MongoDB.
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
 *-------------------------------------------------------------------------
 */

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
