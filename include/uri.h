/*-------------------------------------------------------------------------
 *
 * uri.h
 *		From options to what libmongoc wants to know.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_URI_H
#define MONGO_FDW_URI_H

#include "compat.h"

#include "options.h"

/*
 * mongo_uri_create
 *		The URI of 'options'; the caller owns it (mongoc_uri_destroy()).
 *
 * Built with libmongoc's setters, so that no value needs percent-encoding:
 * user name and password are taken literally.  Without a user name and a
 * mechanism there is no authentication, whatever else is given.  Credentials are
 * looked up in authentication_database, else in the URI's authSource, else in
 * "admin" (the driver's default), or in $external where the mechanism wants that.
 * Raises 08001 for what libmongoc does not accept, never showing the password,
 * 22023 for an option uri that holds a secret, and what a password_file raises.
 */
extern mongoc_uri_t *mongo_uri_create(const MongoConnectionOptions *options);

/*
 * mongo_uri_take_socket_timeout
 *		The URI's socketTimeoutMS, else the option socket_timeout_ms; 0: no limit.
 *
 * Our streams observe it, for libmongoc's waits and our own alike.  In the URI
 * it is replaced by what makes libmongoc wait for ever: by default it would
 * wait for five minutes, and it takes 0 for the default (seen in the source of
 * 1.23.1 and 2.6: mongoc_uri_get_option_as_int32()).
 */
extern int	mongo_uri_take_socket_timeout(mongoc_uri_t *uri,
										  const MongoConnectionOptions *options);

/*
 * mongo_uri_ssl_options
 *		TLS settings of options and URI together; false when TLS is off.
 *
 * A server option wins over the URI's.  The strings stay those of 'options'
 * and 'uri'.  TLS is on with ssl, with tls=true in the URI, and with any tls*
 * option there, as the URI options specification has it.
 */
extern bool mongo_uri_ssl_options(const MongoConnectionOptions *options,
								  const mongoc_uri_t *uri,
								  mongoc_ssl_opt_t *ssl_options);

/*
 * mongo_uri_is_single
 *		Will libmongoc treat this as one server (topology type Single)?
 */
extern bool mongo_uri_is_single(const mongoc_uri_t *uri);

#endif							/* MONGO_FDW_URI_H */
