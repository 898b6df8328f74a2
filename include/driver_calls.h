/*-------------------------------------------------------------------------
 *
 * driver_calls.h
 *		Counts the calls of libmongoc that are on the stack.
 *
 * libmongoc does not support longjmp(), so an ERROR must not cross its frames.
 * mongo_driver_depth is not zero while libmongoc's frames are on the stack.  These macros
 * increment it around each function that we call and that may allocate memory.  Functions
 * that only read a URI, a description or a concern are not listed.  If memory runs out in a
 * function that is missing here, an ERROR would cross it, so a build for tests fails
 * (scripts/build.sh).
 *
 * Arguments are evaluated inside, so they must not raise errors.
 *
 * compat.h includes this file at its end, so every file does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DRIVER_CALLS_H
#define MONGO_FDW_DRIVER_CALLS_H

/* The number of calls of libmongoc that are in progress, nested in each other. */
extern int	mongo_driver_depth;

#define MONGO_IN_DRIVER(function, ...) \
	({ \
		__auto_type mongo_driver_result = (mongo_driver_depth++, function(__VA_ARGS__)); \
		mongo_driver_depth--; \
		mongo_driver_result; \
	})
#define MONGO_IN_DRIVER_VOID(function, ...) \
	((void) mongo_driver_depth++, function(__VA_ARGS__), (void) mongo_driver_depth--)

#define mongoc_apm_callbacks_new(...) MONGO_IN_DRIVER(mongoc_apm_callbacks_new, __VA_ARGS__)
#define mongoc_client_get_handshake_description(...) MONGO_IN_DRIVER(mongoc_client_get_handshake_description, __VA_ARGS__)
#define mongoc_client_get_uri(...) MONGO_IN_DRIVER(mongoc_client_get_uri, __VA_ARGS__)
#define mongoc_client_new_from_uri_with_error(...) MONGO_IN_DRIVER(mongoc_client_new_from_uri_with_error, __VA_ARGS__)
#define mongoc_client_select_server(...) MONGO_IN_DRIVER(mongoc_client_select_server, __VA_ARGS__)
#define mongoc_client_set_apm_callbacks(...) MONGO_IN_DRIVER(mongoc_client_set_apm_callbacks, __VA_ARGS__)
#define mongoc_client_set_error_api(...) MONGO_IN_DRIVER(mongoc_client_set_error_api, __VA_ARGS__)
#define mongoc_handshake_data_append(...) MONGO_IN_DRIVER(mongoc_handshake_data_append, __VA_ARGS__)
#define mongoc_read_concern_new(...) MONGO_IN_DRIVER(mongoc_read_concern_new, __VA_ARGS__)
#define mongoc_read_concern_set_level(...) MONGO_IN_DRIVER(mongoc_read_concern_set_level, __VA_ARGS__)
#define mongoc_read_prefs_copy(...) MONGO_IN_DRIVER(mongoc_read_prefs_copy, __VA_ARGS__)
#define mongoc_read_prefs_new(...) MONGO_IN_DRIVER(mongoc_read_prefs_new, __VA_ARGS__)
#define mongoc_ssl_opt_get_default(...) MONGO_IN_DRIVER(mongoc_ssl_opt_get_default, __VA_ARGS__)
#define mongoc_stream_close(...) MONGO_IN_DRIVER(mongoc_stream_close, __VA_ARGS__)
#define mongoc_stream_read(...) MONGO_IN_DRIVER(mongoc_stream_read, __VA_ARGS__)
#define mongoc_stream_should_retry(...) MONGO_IN_DRIVER(mongoc_stream_should_retry, __VA_ARGS__)
#define mongoc_stream_tls_new_with_hostname(...) MONGO_IN_DRIVER(mongoc_stream_tls_new_with_hostname, __VA_ARGS__)
#define mongoc_stream_writev(...) MONGO_IN_DRIVER(mongoc_stream_writev, __VA_ARGS__)
#define mongoc_topology_description_has_readable_server(...) MONGO_IN_DRIVER(mongoc_topology_description_has_readable_server, __VA_ARGS__)
#define mongoc_uri_copy(...) MONGO_IN_DRIVER(mongoc_uri_copy, __VA_ARGS__)
#define mongoc_uri_new_with_error(...) MONGO_IN_DRIVER(mongoc_uri_new_with_error, __VA_ARGS__)
#define mongoc_uri_set_appname(...) MONGO_IN_DRIVER(mongoc_uri_set_appname, __VA_ARGS__)
#define mongoc_uri_set_auth_mechanism(...) MONGO_IN_DRIVER(mongoc_uri_set_auth_mechanism, __VA_ARGS__)
#define mongoc_uri_set_auth_source(...) MONGO_IN_DRIVER(mongoc_uri_set_auth_source, __VA_ARGS__)
#define mongoc_uri_set_compressors(...) MONGO_IN_DRIVER(mongoc_uri_set_compressors, __VA_ARGS__)
#define mongoc_uri_set_mechanism_properties(...) MONGO_IN_DRIVER(mongoc_uri_set_mechanism_properties, __VA_ARGS__)
#define mongoc_uri_set_option_as_bool(...) MONGO_IN_DRIVER(mongoc_uri_set_option_as_bool, __VA_ARGS__)
#define mongoc_uri_set_option_as_int32(...) MONGO_IN_DRIVER(mongoc_uri_set_option_as_int32, __VA_ARGS__)
#define mongoc_uri_set_option_as_utf8(...) MONGO_IN_DRIVER(mongoc_uri_set_option_as_utf8, __VA_ARGS__)
#define mongoc_uri_set_password(...) MONGO_IN_DRIVER(mongoc_uri_set_password, __VA_ARGS__)
#define mongoc_uri_set_username(...) MONGO_IN_DRIVER(mongoc_uri_set_username, __VA_ARGS__)
#define mongoc_write_concern_append(...) MONGO_IN_DRIVER(mongoc_write_concern_append, __VA_ARGS__)
#define mongoc_write_concern_new(...) MONGO_IN_DRIVER(mongoc_write_concern_new, __VA_ARGS__)

#define mongoc_apm_callbacks_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_apm_callbacks_destroy, __VA_ARGS__)
#define mongoc_apm_set_topology_changed_cb(...) MONGO_IN_DRIVER_VOID(mongoc_apm_set_topology_changed_cb, __VA_ARGS__)
#define mongoc_client_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_client_destroy, __VA_ARGS__)
#define mongoc_client_set_ssl_opts(...) MONGO_IN_DRIVER_VOID(mongoc_client_set_ssl_opts, __VA_ARGS__)
#define mongoc_client_set_stream_initiator(...) MONGO_IN_DRIVER_VOID(mongoc_client_set_stream_initiator, __VA_ARGS__)
#define mongoc_init(...) MONGO_IN_DRIVER_VOID(mongoc_init, __VA_ARGS__)
#define mongoc_log_set_handler(...) MONGO_IN_DRIVER_VOID(mongoc_log_set_handler, __VA_ARGS__)
#define mongoc_read_concern_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_read_concern_destroy, __VA_ARGS__)
#define mongoc_read_prefs_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_read_prefs_destroy, __VA_ARGS__)
#define mongoc_read_prefs_set_mode(...) MONGO_IN_DRIVER_VOID(mongoc_read_prefs_set_mode, __VA_ARGS__)
#define mongoc_read_prefs_set_tags(...) MONGO_IN_DRIVER_VOID(mongoc_read_prefs_set_tags, __VA_ARGS__)
#define mongoc_server_description_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_server_description_destroy, __VA_ARGS__)
#define mongoc_stream_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_stream_destroy, __VA_ARGS__)
#define mongoc_uri_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_uri_destroy, __VA_ARGS__)
#define mongoc_uri_set_read_concern(...) MONGO_IN_DRIVER_VOID(mongoc_uri_set_read_concern, __VA_ARGS__)
#define mongoc_uri_set_read_prefs_t(...) MONGO_IN_DRIVER_VOID(mongoc_uri_set_read_prefs_t, __VA_ARGS__)
#define mongoc_uri_set_write_concern(...) MONGO_IN_DRIVER_VOID(mongoc_uri_set_write_concern, __VA_ARGS__)
#define mongoc_write_concern_destroy(...) MONGO_IN_DRIVER_VOID(mongoc_write_concern_destroy, __VA_ARGS__)
#define mongoc_write_concern_set_w(...) MONGO_IN_DRIVER_VOID(mongoc_write_concern_set_w, __VA_ARGS__)
#define mongoc_write_concern_set_wtag(...) MONGO_IN_DRIVER_VOID(mongoc_write_concern_set_wtag, __VA_ARGS__)

#endif							/* MONGO_FDW_DRIVER_CALLS_H */
