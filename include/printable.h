/*-------------------------------------------------------------------------
 *
 * printable.h
 *		What came from elsewhere, as text that may be shown.
 *
 * MongoDB may cut its own messages in mid-character and quotes documents in
 * them, so neither UTF-8 nor the absence of control bytes can be relied on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PRINTABLE_H
#define MONGO_FDW_PRINTABLE_H

#include "compat.h"

/*
 * mongo_printable
 *		A C string without control bytes but line ends and tabs, valid in the
 *		database's encoding; '?' stands for what cannot be shown.
 *
 * Palloc'd in the current memory context.  Raises nothing but lack of memory.
 */
extern char *mongo_printable(const char *text);

/* The same of the first 'length' bytes, up to a zero byte. */
extern char *mongo_printable_bytes(const char *text, size_t length);

#endif							/* MONGO_FDW_PRINTABLE_H */
