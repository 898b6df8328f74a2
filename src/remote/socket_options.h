/*-------------------------------------------------------------------------
 *
 * socket_options.h
 *		What a socket to MongoDB is told: when its other end counts as dead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SOCKET_OPTIONS_H
#define MONGO_FDW_SOCKET_OPTIONS_H

#include "compat.h"

#include "options.h"

/*
 * mongo_set_socket_options
 *		Send at once, probe the other end when idle, give up one that is silent.
 *
 * 'family' is that of the address; a Unix-domain socket needs none of this.
 * An option that the operating system does not know or take is passed over:
 * none is worth failing for.
 */
extern void mongo_set_socket_options(pgsocket sock, int family,
									 const MongoTcpOptions *options);

#endif							/* MONGO_FDW_SOCKET_OPTIONS_H */
