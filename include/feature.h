/*-------------------------------------------------------------------------
 *
 * feature.h
 *		What of MongoDB's language may be used, and what is disabled.
 *
 * Older and compatible servers lack some of it.  The option pushdown_disable
 * of servers and tables names what they lack; each name is a row of
 * src/options/feature.c, documented in docs/options.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FEATURE_H
#define MONGO_FDW_FEATURE_H

#include "compat.h"

#include "options.h"

/* In the order of the rows in feature.c. */
typedef enum MongoFeature
{
	MONGO_FEATURE_COLLATION,	/* {collation: {locale: "simple"}} */
	MONGO_FEATURE_COUNT,		/* the command count */
	MONGO_FEATURE_DISK_USE,		/* allowDiskUse */
	MONGO_FEATURE_EXPR,			/* $expr in a filter */
	MONGO_FEATURE_GROUP,		/* $group, for GROUP BY, DISTINCT, aggregates */
	MONGO_FEATURE_LET,			/* variables of a command, "let" */
	MONGO_FEATURE_LOOKUP,		/* $lookup, for joins */
	MONGO_FEATURE_SORT,			/* $sort, and the sort of find */
	MONGO_NFEATURES				/* how many there are */
} MongoFeature;

/*
 * mongo_feature_enabled
 *		May a command on this table use the feature?
 *
 * False when pushdown_disable names it, or when a switch that people know
 * under another name (enable_join_pushdown for LOOKUP,
 * enable_aggregate_pushdown for GROUP, enable_order_by_pushdown for SORT) is
 * off as a setting or an option.  mongo_fdw.enable_pushdown is another matter.
 */
extern bool mongo_feature_enabled(const MongoTableOptions *options,
								  MongoFeature feature);

/*
 * mongo_feature_is_disabled
 *		Does pushdown_disable, as MongoTableOptions has it, name the feature?
 */
extern bool mongo_feature_is_disabled(uint32 pushdown_disable, MongoFeature feature);

/*
 * mongo_parse_features
 *		The value of pushdown_disable as a set of bits.
 *
 * Names are separated by commas.  Returns false for one that is unknown, with
 * its text in *unknown and the names there are in *valid, both palloc'd.
 */
extern bool mongo_parse_features(const char *value, uint32 *pushdown_disable,
								 char **unknown, char **valid);

/*
 * mongo_feature_in_message
 *		The name of the feature that a server's complaint about something it does
 *		not know is about, or NULL.
 */
extern const char *mongo_feature_in_message(const char *message);

#endif							/* MONGO_FDW_FEATURE_H */
