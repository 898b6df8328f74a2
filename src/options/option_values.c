/*-------------------------------------------------------------------------
 *
 * option_values.c
 *		How the text of an option is read, by its kind.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_values.h"

#include "feature.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/* mongo_parse_string takes any text, the empty one too. */
void
mongo_parse_string(const MongoOption *option pg_attribute_unused(),
				   const char *value, void *field)
{
	*(const char **) field = value;
}

void
mongo_parse_name(const MongoOption *option, const char *value, void *field)
{
	if (value[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" must not be empty", option->name)));

	*(const char **) field = value;
}

/* mongo_parse_path takes field names with dots between them. */
void
mongo_parse_path(const MongoOption *option, const char *value, void *field)
{
	size_t		length = strlen(value);

	if (length == 0 || value[0] == '.' || value[length - 1] == '.' ||
		strstr(value, "..") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid path for option \"%s\": \"%s\"", option->name, value),
				 errdetail("A path is one or more field names with single dots between them, like \"address.city\".")));

	*(const char **) field = value;
}

/* mongo_parse_boolean takes what PostgreSQL takes as a boolean anywhere. */
void
mongo_parse_boolean(const MongoOption *option, const char *value, void *field)
{
	if (!parse_bool(value, (bool *) field))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s requires a Boolean value", option->name),
				 errdetail("\"%s\" is neither true nor false.", value),
				 errhint("Valid values are true, on, yes, 1 and false, off, no, 0.")));
}

/* mongo_parse_indexed takes the same; what is not said at all is a third answer. */
void
mongo_parse_indexed(const MongoOption *option, const char *value, void *field)
{
	bool		indexed;

	mongo_parse_boolean(option, value, &indexed);
	*(MongoIndexed *) field = indexed ? MONGO_INDEXED_YES : MONGO_INDEXED_NO;
}

void
mongo_parse_integer(const MongoOption *option, const char *value, void *field)
{
	int			number;

	if (!parse_int(value, &number, 0, NULL) ||
		number < option->min || number > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for integer option \"%s\": %s",
						option->name, value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = number;
}

void
mongo_parse_duration(const MongoOption *option, const char *value, void *field)
{
	const char *hint = NULL;
	int			number;

	if (!parse_int(value, &number, GUC_UNIT_MS, &hint) ||
		number < option->min || number > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": %s", option->name, value),
				 hint ? errhint("%s", _(hint)) :
				 errhint("Valid values are durations from %.0f to %.0f milliseconds.",
						 option->min, option->max)));

	*(int *) field = number;
}

void
mongo_parse_number(const MongoOption *option, const char *value, void *field)
{
	double		number;

	/* written so that NaN is refused */
	if (!parse_real(value, &number, 0, NULL) ||
		!(number >= option->min && number <= option->max))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for floating point option \"%s\": %s",
						option->name, value),
				 errhint("Valid values are numbers from %g to %g.",
						 option->min, option->max)));

	*(double *) field = number;
}

/* mongo_parse_port: existing definitions use 0 for "the usual one". */
void
mongo_parse_port(const MongoOption *option, const char *value, void *field)
{
	char	   *end;
	long		port;

	errno = 0;
	port = strtol(value, &end, 10);

	if (end == value || *end != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));
	if (errno == ERANGE || port < option->min || port > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("port value \"%s\" is out of range", value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = port != 0 ? (int) port : atoi(option->initial);
}

/* find_choice is the place of 'value' among the option's words, or raises. */
static int
find_choice(const MongoOption *option, const char *value)
{
	StringInfoData valid;

	for (int i = 0; option->choices[i] != NULL; i++)
	{
		if (pg_strcasecmp(option->choices[i], value) == 0)
			return i;
	}

	initStringInfo(&valid);
	for (int i = 0; option->choices[i] != NULL; i++)
		appendStringInfo(&valid, "%s%s", i > 0 ? ", " : "", option->choices[i]);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
			 errhint("Valid values are: %s.", valid.data)));
}

/* mongo_parse_choice stores the word's place, which is its enum's value. */
void
mongo_parse_choice(const MongoOption *option, const char *value, void *field)
{
	StaticAssertStmt(sizeof(MongoTypeMismatch) == sizeof(int),
					 "enums are read as integers");
	*(int *) field = find_choice(option, value);
}

/* mongo_parse_word stores the word itself, as MongoDB spells it. */
void
mongo_parse_word(const MongoOption *option, const char *value, void *field)
{
	*(const char **) field = option->choices[find_choice(option, value)];
}

const char *const mongo_read_preferences[] = {
	"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest", NULL
};

/* In the same order. */
static const mongoc_read_mode_t read_modes[] = {
	MONGOC_READ_PRIMARY, MONGOC_READ_PRIMARY_PREFERRED, MONGOC_READ_SECONDARY,
	MONGOC_READ_SECONDARY_PREFERRED, MONGOC_READ_NEAREST
};

void
mongo_parse_read_mode(const MongoOption *option, const char *value, void *field)
{
	*(mongoc_read_mode_t *) field = read_modes[find_choice(option, value)];
}

const char *
mongo_read_mode_name(mongoc_read_mode_t mode)
{
	for (size_t i = 0; i < lengthof(read_modes); i++)
	{
		if (read_modes[i] == mode)
			return mongo_read_preferences[i];
	}
	return mongo_read_preferences[0];
}

/* What a column can be declared to hold, as MongoDB's $type calls it. */
const char *const mongo_bson_type_choices[] = {
	"objectId", "string", "int", "long", "double", "decimal", "bool", "date", "binData", NULL
};

/* In the same order. */
static const bson_type_t bson_type_codes[] = {
	BSON_TYPE_OID, BSON_TYPE_UTF8, BSON_TYPE_INT32, BSON_TYPE_INT64, BSON_TYPE_DOUBLE,
	BSON_TYPE_DECIMAL128, BSON_TYPE_BOOL, BSON_TYPE_DATE_TIME, BSON_TYPE_BINARY
};

void
mongo_parse_bson_type(const MongoOption *option, const char *value, void *field)
{
	*(bson_type_t *) field = bson_type_codes[find_choice(option, value)];
}

void
mongo_parse_feature_set(const MongoOption *option, const char *value, void *field)
{
	char	   *unknown;
	char	   *valid;

	if (!mongo_parse_features(value, (uint32 *) field, &unknown, &valid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
				 errdetail("There is no feature \"%s\".", unknown),
				 errhint("Valid values are names from this list, separated by commas: %s.",
						 valid)));
}
