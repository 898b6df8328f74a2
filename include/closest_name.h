/*-------------------------------------------------------------------------
 *
 * closest_name.h
 *		What a misspelt name was probably meant to be.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CLOSEST_NAME_H
#define MONGO_FDW_CLOSEST_NAME_H

#include "compat.h"

/* A search among names, on the caller's stack. */
typedef struct MongoClosestName
{
	const char *closest;		/* the result so far; NULL: none is close */
	const char *name;
	int			length;
	int			allowed;		/* more letters may not differ; -1: none */
} MongoClosestName;

/*
 * mongo_closest_name_begin, mongo_closest_name_try
 *		Look for what 'name' was meant to be, then offer each name that there is;
 *		both must live as long as the result is used.
 *
 * A third of the letters may differ, and at most four, so that a hint is given
 * only when it helps.  Of two that are as close it is the first.
 */
extern void mongo_closest_name_begin(MongoClosestName *search, const char *name);
extern void mongo_closest_name_try(MongoClosestName *search, const char *candidate);

#endif							/* MONGO_FDW_CLOSEST_NAME_H */
