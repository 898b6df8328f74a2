/*-------------------------------------------------------------------------
 *
 * split_range.h
 *		A collection in ranges of one field, each document in exactly one.
 *
 * Ranges are told apart by $expr, whose comparisons order all BSON values of
 * whatever type and take an array as one value: n points make n + 1 ranges
 * that leave nothing out and do not overlap, as long as the same collation goes
 * with all commands.  MongoDB serves them by an index where it can, soundly but
 * for one thing (seen on 6.0): a sparse index is also taken for what has no
 * lower bound, and lacks the documents without the field.  Fields other than
 * _id therefore have a range of their own for null and missing, asked for in
 * words that no sparse index is used for.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SPLIT_RANGE_H
#define MONGO_FDW_SPLIT_RANGE_H

#include "compat.h"

/* So many that none of the participants is left with the last one for long. */
#define MONGO_RANGES_PER_PARTICIPANT	4

/*
 * mongo_append_split_pipeline
 *		Append the "pipeline" that samples the field's values.
 *
 * Its first document is of something else: the stage that gives it fails on a
 * view, which is not to be split.  The others are {_id: value}, ascending.
 */
extern void mongo_append_split_pipeline(bson_t *command, const char *collection,
										const char *field, int sample_size);

/*
 * mongo_choose_split_points
 *		From the batch that came, the points that make up to 'nranges' ranges.
 *
 * 'batch' iterates over the array.  *points becomes an array of ascending
 * values of at most 'capacity' bytes, in the current memory context; returns
 * the number of ranges, 1 when there is no point.
 */
extern int	mongo_choose_split_points(const bson_iter_t *batch, const char *field,
									  int nranges, uint32 capacity,
									  bson_t **points);

/*
 * mongo_append_split_range
 *		Append to 'match' what restricts a command to the range, from 0 in
 *		ascending order; nothing when there is one only.
 */
extern void mongo_append_split_range(const bson_t *points, const char *field,
									 int range, int nranges, bson_t *match);

#endif							/* MONGO_FDW_SPLIT_RANGE_H */
