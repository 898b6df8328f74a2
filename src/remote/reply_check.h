/*-------------------------------------------------------------------------
 *
 * reply_check.h
 *		Is a reply's document one that libmongoc survives?
 *
 * libmongoc takes for granted that nested documents are whole and that some
 * fields have the type that MongoDB gives them: 1.23.1 aborts the process, or
 * reads through a null pointer or beyond a buffer, where a server sends others;
 * and it hashes a password as many times as a server asks for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REPLY_CHECK_H
#define MONGO_FDW_REPLY_CHECK_H

#include "compat.h"

/*
 * mongo_reply_check
 *		The document of a reply, 'length' bytes that its frame says are one.
 *
 * Gives NULL when all is well, and else what is wrong, a sentence for DETAIL
 * that is never freed.  Neither raises nor allocates.  How deep the server
 * nests does not matter: only the levels that libmongoc enters are looked at.
 */
extern const char *mongo_reply_check(const uint8 *document, size_t length);

#endif							/* MONGO_FDW_REPLY_CHECK_H */
