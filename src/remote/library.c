/*-------------------------------------------------------------------------
 *
 * library.c
 *		Starting libmongoc.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "library.h"

#include "driver_log.h"
#include "driver_memory.h"

void
mongo_initialize_library(void)
{
	static bool initialized = false;

	if (initialized)
		return;
	mongo_install_allocator();
	mongo_install_log_handler();
	mongoc_init();
	(void) mongoc_handshake_data_append("mongo_fdw", NULL, NULL);
	initialized = true;
}
