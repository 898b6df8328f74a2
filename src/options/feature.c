/*-------------------------------------------------------------------------
 *
 * feature.c
 *		What of MongoDB's language can be disabled, one row each.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"

#include "lib/stringinfo.h"
#include "settings.h"
#include "utils/varlena.h"

/*
 * 'word' is how a server names the feature when it does not know it.  Where a
 * switch is older than pushdown_disable, 'setting' and 'option' are that switch.
 */
typedef struct FeatureRow
{
	const char *name;
	const char *word;
	const bool *setting;
	bool		has_option;
	size_t		option;			/* offset in MongoTableOptions */
} FeatureRow;

#define SWITCH(setting, field) \
	&(setting), true, offsetof(MongoTableOptions, field)

/* In the order of MongoFeature. */
static const FeatureRow feature_rows[] =
{
	{"collation", .word = "collation"},
	{"count", .word = "count"},
	{"disk_use", .word = "allowDiskUse"},
	{"expr", .word = "$expr"},
	{"group", "$group", SWITCH(mongo_enable_aggregate_pushdown, enable_aggregate_pushdown)},
	{"let", .word = "let"},
	{"lookup", "$lookup", SWITCH(mongo_enable_join_pushdown, enable_join_pushdown)},
	{"sort", "$sort", SWITCH(mongo_enable_order_by_pushdown, enable_order_by_pushdown)},
};

StaticAssertDecl(lengthof(feature_rows) == MONGO_NFEATURES,
				 "each feature has its row");

bool
mongo_feature_is_disabled(uint32 pushdown_disable, MongoFeature feature)
{
	return (pushdown_disable & ((uint32) 1 << feature)) != 0;
}

bool
mongo_feature_enabled(const MongoTableOptions *options, MongoFeature feature)
{
	const FeatureRow *row = &feature_rows[feature];

	return !mongo_feature_is_disabled(options->pushdown_disable, feature) &&
		(row->setting == NULL || *row->setting) &&
		(!row->has_option || *(const bool *) ((const char *) options + row->option));
}

static int
find_feature(const char *name)
{
	for (size_t i = 0; i < lengthof(feature_rows); i++)
	{
		if (strcmp(feature_rows[i].name, name) == 0)
			return i;
	}
	return -1;
}

static char *
feature_names(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (size_t i = 0; i < lengthof(feature_rows); i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", feature_rows[i].name);
	return names.data;
}

bool
mongo_parse_features(const char *value, uint32 *pushdown_disable,
					 char **unknown, char **valid)
{
	char	   *text = pstrdup(value);
	List	   *names;
	ListCell   *cell;

	*pushdown_disable = 0;
	if (!SplitIdentifierString(text, ',', &names))
	{
		*unknown = pstrdup(value);
		*valid = feature_names();
		return false;
	}
	foreach(cell, names)
	{
		int			feature = find_feature(lfirst(cell));

		if (feature < 0)
		{
			*unknown = pstrdup(lfirst(cell));
			*valid = feature_names();
			return false;
		}
		*pushdown_disable |= (uint32) 1 << feature;
	}
	return true;
}

/* is_whole_word: "let" is not found in "outlet". */
static bool
is_whole_word(const char *message, const char *found, size_t length)
{
	return (found == message || !isalnum((unsigned char) found[-1])) &&
		!isalnum((unsigned char) found[length]);
}

const char *
mongo_feature_in_message(const char *message)
{
	for (size_t i = 0; i < lengthof(feature_rows); i++)
	{
		const char *word = feature_rows[i].word;
		const char *found = strstr(message, word);

		if (found != NULL && is_whole_word(message, found, strlen(word)))
			return feature_rows[i].name;
	}
	return NULL;
}
