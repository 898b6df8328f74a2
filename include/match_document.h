/*-------------------------------------------------------------------------
 *
 * match_document.h
 *		mongo_match(): a user's own match document as a condition; mongo_score():
 *		what MongoDB has found it to be worth.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_MATCH_DOCUMENT_H
#define MONGO_FDW_MATCH_DOCUMENT_H

#include "compat.h"

#include "condition.h"

/*
 * mongo_translate_match
 *		If this is mongo_match(table, constant) over the only table of the translation,
 *		write to 'match' where it is true (wanted) or false.
 *
 * What the document says is for MongoDB to judge.  Raises 22023 for what is no
 * document, and 42501 without USAGE on the server, and for JavaScript as
 * mongo_append_pipeline() does.
 */
extern bool mongo_translate_match(const MongoTranslation *translation, const FuncExpr *node,
								  bool wanted, bson_t *match);

/*
 * mongo_names_match
 *		Is there a call of mongo_match() in the expression?  A walker; 'context' is not
 *		used.
 */
extern bool mongo_names_match(Node *node, void *context);

/*
 * mongo_is_score
 *		Is this mongo_score() of the whole row of that range table entry?
 */
extern bool mongo_is_score(const Node *node, Index varno);

#endif							/* MONGO_FDW_MATCH_DOCUMENT_H */
