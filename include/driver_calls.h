/*-------------------------------------------------------------------------
 *
 * driver_calls.h
 *		Each call of libmongoc, so that it is known when its frames are below.
 *
 * libmongoc knows nothing of longjmp(): an ERROR must not cross its frames.
 * Whether they are on the stack is what mongo_driver_depth tells, which these
 * macros count up around each function that we call.  Memory that runs out in a
 * function that is not listed would raise an ERROR through it, so a build for
 * tests fails (scripts/build.sh).
 *
 * Arguments are evaluated inside, so they must not raise.
 *
 * Included at the end of compat.h, and thereby everywhere.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DRIVER_CALLS_H
#define MONGO_FDW_DRIVER_CALLS_H

/* How many calls of libmongoc are under way, one inside the other. */
extern int	mongo_driver_depth;

#define mongo_in_driver(call) \
	({ \
		__auto_type mongo_driver_result = (mongo_driver_depth++, (call)); \
		mongo_driver_depth--; \
		mongo_driver_result; \
	})
#define mongo_in_driver_void(call) \
	((void) mongo_driver_depth++, (call), (void) mongo_driver_depth--)

#define mongoc_client_get_handshake_description(...) \
	mongo_in_driver(mongoc_client_get_handshake_description(__VA_ARGS__))
#define mongoc_client_get_uri(...) \
	mongo_in_driver(mongoc_client_get_uri(__VA_ARGS__))
#define mongoc_client_new_from_uri_with_error(...) \
	mongo_in_driver(mongoc_client_new_from_uri_with_error(__VA_ARGS__))
#define mongoc_client_select_server(...) \
	mongo_in_driver(mongoc_client_select_server(__VA_ARGS__))
#define mongoc_client_set_error_api(...) \
	mongo_in_driver(mongoc_client_set_error_api(__VA_ARGS__))
#define mongoc_handshake_data_append(...) \
	mongo_in_driver(mongoc_handshake_data_append(__VA_ARGS__))
#define mongoc_read_concern_get_level(...) \
	mongo_in_driver(mongoc_read_concern_get_level(__VA_ARGS__))
#define mongoc_read_concern_new(...) \
	mongo_in_driver(mongoc_read_concern_new(__VA_ARGS__))
#define mongoc_read_concern_set_level(...) \
	mongo_in_driver(mongoc_read_concern_set_level(__VA_ARGS__))
#define mongoc_read_prefs_get_max_staleness_seconds(...) \
	mongo_in_driver(mongoc_read_prefs_get_max_staleness_seconds(__VA_ARGS__))
#define mongoc_read_prefs_get_mode(...) \
	mongo_in_driver(mongoc_read_prefs_get_mode(__VA_ARGS__))
#define mongoc_read_prefs_get_tags(...) \
	mongo_in_driver(mongoc_read_prefs_get_tags(__VA_ARGS__))
#define mongoc_read_prefs_new(...) \
	mongo_in_driver(mongoc_read_prefs_new(__VA_ARGS__))
#define mongoc_server_description_hello_response(...) \
	mongo_in_driver(mongoc_server_description_hello_response(__VA_ARGS__))
#define mongoc_server_description_host(...) \
	mongo_in_driver(mongoc_server_description_host(__VA_ARGS__))
#define mongoc_server_description_id(...) \
	mongo_in_driver(mongoc_server_description_id(__VA_ARGS__))
#define mongoc_server_description_type(...) \
	mongo_in_driver(mongoc_server_description_type(__VA_ARGS__))
#define mongoc_ssl_opt_get_default(...) \
	mongo_in_driver(mongoc_ssl_opt_get_default(__VA_ARGS__))
#define mongoc_stream_check_closed(...) \
	mongo_in_driver(mongoc_stream_check_closed(__VA_ARGS__))
#define mongoc_stream_close(...) \
	mongo_in_driver(mongoc_stream_close(__VA_ARGS__))
#define mongoc_stream_flush(...) \
	mongo_in_driver(mongoc_stream_flush(__VA_ARGS__))
#define mongoc_stream_read(...) \
	mongo_in_driver(mongoc_stream_read(__VA_ARGS__))
#define mongoc_stream_setsockopt(...) \
	mongo_in_driver(mongoc_stream_setsockopt(__VA_ARGS__))
#define mongoc_stream_should_retry(...) \
	mongo_in_driver(mongoc_stream_should_retry(__VA_ARGS__))
#define mongoc_stream_timed_out(...) \
	mongo_in_driver(mongoc_stream_timed_out(__VA_ARGS__))
#define mongoc_stream_tls_handshake_block(...) \
	mongo_in_driver(mongoc_stream_tls_handshake_block(__VA_ARGS__))
#define mongoc_stream_tls_new_with_hostname(...) \
	mongo_in_driver(mongoc_stream_tls_new_with_hostname(__VA_ARGS__))
#define mongoc_stream_writev(...) \
	mongo_in_driver(mongoc_stream_writev(__VA_ARGS__))
#define mongoc_uri_copy(...) \
	mongo_in_driver(mongoc_uri_copy(__VA_ARGS__))
#define mongoc_uri_get_appname(...) \
	mongo_in_driver(mongoc_uri_get_appname(__VA_ARGS__))
#define mongoc_uri_get_auth_mechanism(...) \
	mongo_in_driver(mongoc_uri_get_auth_mechanism(__VA_ARGS__))
#define mongoc_uri_get_auth_source(...) \
	mongo_in_driver(mongoc_uri_get_auth_source(__VA_ARGS__))
#define mongoc_uri_get_hosts(...) \
	mongo_in_driver(mongoc_uri_get_hosts(__VA_ARGS__))
#define mongoc_uri_get_mechanism_properties(...) \
	mongo_in_driver(mongoc_uri_get_mechanism_properties(__VA_ARGS__))
#define mongoc_uri_get_option_as_bool(...) \
	mongo_in_driver(mongoc_uri_get_option_as_bool(__VA_ARGS__))
#define mongoc_uri_get_option_as_int32(...) \
	mongo_in_driver(mongoc_uri_get_option_as_int32(__VA_ARGS__))
#define mongoc_uri_get_option_as_utf8(...) \
	mongo_in_driver(mongoc_uri_get_option_as_utf8(__VA_ARGS__))
#define mongoc_uri_get_password(...) \
	mongo_in_driver(mongoc_uri_get_password(__VA_ARGS__))
#define mongoc_uri_get_read_concern(...) \
	mongo_in_driver(mongoc_uri_get_read_concern(__VA_ARGS__))
#define mongoc_uri_get_read_prefs_t(...) \
	mongo_in_driver(mongoc_uri_get_read_prefs_t(__VA_ARGS__))
#define mongoc_uri_get_replica_set(...) \
	mongo_in_driver(mongoc_uri_get_replica_set(__VA_ARGS__))
#define mongoc_uri_get_srv_hostname(...) \
	mongo_in_driver(mongoc_uri_get_srv_hostname(__VA_ARGS__))
#define mongoc_uri_get_srv_service_name(...) \
	mongo_in_driver(mongoc_uri_get_srv_service_name(__VA_ARGS__))
#define mongoc_uri_get_tls(...) \
	mongo_in_driver(mongoc_uri_get_tls(__VA_ARGS__))
#define mongoc_uri_get_username(...) \
	mongo_in_driver(mongoc_uri_get_username(__VA_ARGS__))
#define mongoc_uri_has_option(...) \
	mongo_in_driver(mongoc_uri_has_option(__VA_ARGS__))
#define mongoc_uri_new_with_error(...) \
	mongo_in_driver(mongoc_uri_new_with_error(__VA_ARGS__))
#define mongoc_uri_option_is_bool(...) \
	mongo_in_driver(mongoc_uri_option_is_bool(__VA_ARGS__))
#define mongoc_uri_option_is_int32(...) \
	mongo_in_driver(mongoc_uri_option_is_int32(__VA_ARGS__))
#define mongoc_uri_option_is_utf8(...) \
	mongo_in_driver(mongoc_uri_option_is_utf8(__VA_ARGS__))
#define mongoc_uri_set_appname(...) \
	mongo_in_driver(mongoc_uri_set_appname(__VA_ARGS__))
#define mongoc_uri_set_auth_mechanism(...) \
	mongo_in_driver(mongoc_uri_set_auth_mechanism(__VA_ARGS__))
#define mongoc_uri_set_auth_source(...) \
	mongo_in_driver(mongoc_uri_set_auth_source(__VA_ARGS__))
#define mongoc_uri_set_compressors(...) \
	mongo_in_driver(mongoc_uri_set_compressors(__VA_ARGS__))
#define mongoc_uri_set_mechanism_properties(...) \
	mongo_in_driver(mongoc_uri_set_mechanism_properties(__VA_ARGS__))
#define mongoc_uri_set_option_as_bool(...) \
	mongo_in_driver(mongoc_uri_set_option_as_bool(__VA_ARGS__))
#define mongoc_uri_set_option_as_int32(...) \
	mongo_in_driver(mongoc_uri_set_option_as_int32(__VA_ARGS__))
#define mongoc_uri_set_option_as_utf8(...) \
	mongo_in_driver(mongoc_uri_set_option_as_utf8(__VA_ARGS__))
#define mongoc_uri_set_password(...) \
	mongo_in_driver(mongoc_uri_set_password(__VA_ARGS__))
#define mongoc_uri_set_username(...) \
	mongo_in_driver(mongoc_uri_set_username(__VA_ARGS__))
#define mongoc_uri_get_write_concern(...) \
	mongo_in_driver(mongoc_uri_get_write_concern(__VA_ARGS__))
#define mongoc_uri_unescape(...) \
	mongo_in_driver(mongoc_uri_unescape(__VA_ARGS__))
#define mongoc_write_concern_append(...) \
	mongo_in_driver(mongoc_write_concern_append(__VA_ARGS__))
#define mongoc_write_concern_get_w(...) \
	mongo_in_driver(mongoc_write_concern_get_w(__VA_ARGS__))
#define mongoc_write_concern_is_default(...) \
	mongo_in_driver(mongoc_write_concern_is_default(__VA_ARGS__))
#define mongoc_write_concern_new(...) \
	mongo_in_driver(mongoc_write_concern_new(__VA_ARGS__))

#define mongoc_client_destroy(...) \
	mongo_in_driver_void(mongoc_client_destroy(__VA_ARGS__))
#define mongoc_client_set_ssl_opts(...) \
	mongo_in_driver_void(mongoc_client_set_ssl_opts(__VA_ARGS__))
#define mongoc_client_set_stream_initiator(...) \
	mongo_in_driver_void(mongoc_client_set_stream_initiator(__VA_ARGS__))
#define mongoc_init(...) \
	mongo_in_driver_void(mongoc_init(__VA_ARGS__))
#define mongoc_log_set_handler(...) \
	mongo_in_driver_void(mongoc_log_set_handler(__VA_ARGS__))
#define mongoc_read_concern_destroy(...) \
	mongo_in_driver_void(mongoc_read_concern_destroy(__VA_ARGS__))
#define mongoc_read_prefs_destroy(...) \
	mongo_in_driver_void(mongoc_read_prefs_destroy(__VA_ARGS__))
#define mongoc_server_description_destroy(...) \
	mongo_in_driver_void(mongoc_server_description_destroy(__VA_ARGS__))
#define mongoc_stream_destroy(...) \
	mongo_in_driver_void(mongoc_stream_destroy(__VA_ARGS__))
#define mongoc_uri_destroy(...) \
	mongo_in_driver_void(mongoc_uri_destroy(__VA_ARGS__))
#define mongoc_uri_set_read_concern(...) \
	mongo_in_driver_void(mongoc_uri_set_read_concern(__VA_ARGS__))
#define mongoc_uri_set_read_prefs_t(...) \
	mongo_in_driver_void(mongoc_uri_set_read_prefs_t(__VA_ARGS__))
#define mongoc_uri_set_write_concern(...) \
	mongo_in_driver_void(mongoc_uri_set_write_concern(__VA_ARGS__))
#define mongoc_write_concern_destroy(...) \
	mongo_in_driver_void(mongoc_write_concern_destroy(__VA_ARGS__))
#define mongoc_write_concern_set_w(...) \
	mongo_in_driver_void(mongoc_write_concern_set_w(__VA_ARGS__))
#define mongoc_write_concern_set_wtag(...) \
	mongo_in_driver_void(mongoc_write_concern_set_wtag(__VA_ARGS__))

#endif							/* MONGO_FDW_DRIVER_CALLS_H */
