/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *		What is fuzzed: functions that take bytes from the network, from
 *		documents, or from users' words.
 *
 * Not part of the extension: built with FUZZ=1 only, see t/fuzz/fuzz.py.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FUZZ_H
#define MONGO_FDW_FUZZ_H

#include "compat.h"

/* One thing to fuzz. */
typedef struct FuzzTarget
{
	const char *name;

	/* once, in a memory context that stays; NULL: nothing to prepare */
	void		(*prepare) (void);

	/*
	 * One input, in a memory context of its own.  May raise any error but
	 * XX000.  What is wrong beyond that is told by fuzz_check().
	 */
	void		(*run) (const uint8_t *data, size_t size);
} FuzzTarget;

/* The last one has no name. */
extern const FuzzTarget fuzz_targets[];

/* End the process as a crash does, naming what did not hold. */
extern void fuzz_check(bool holds, const char *what);

#endif							/* MONGO_FDW_FUZZ_H */
