/*-------------------------------------------------------------------------
 *
 * bind.h
 *		The parameters of a plan's command, and their values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BIND_H
#define MONGO_FDW_BIND_H

#include "compat.h"

#include "command_template.h"
#include "nodes/execnodes.h"

/*
 * mongo_prepare_parameters
 *		Have the template know its parameters, of a plan's 'predicates'.
 */
extern void mongo_prepare_parameters(MongoCommandTemplate *template, const List *predicates);

/*
 * mongo_bind_parameters
 *		mongo_command_bind() with the values of the first of 'expressions', ExprStates.
 */
extern MongoMatch mongo_bind_parameters(const MongoCommandTemplate *template,
										const List *expressions, ExprContext *econtext,
										bool *widened, bson_t *command);

#endif							/* MONGO_FDW_BIND_H */
