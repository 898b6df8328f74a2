/*-------------------------------------------------------------------------
 *
 * option_readers.h
 *		Options read from the catalogs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTION_READERS_H
#define MONGO_FDW_OPTION_READERS_H

#include "options.h"

/*
 * mongo_read_table_options, mongo_read_column_options
 *		What mongo_table_options() and mongo_column_options() give, read from the
 *		catalogs.
 */
extern MongoTableOptions *mongo_read_table_options(Oid foreigntableid);
extern MongoColumnOptions *mongo_read_column_options(Oid foreigntableid,
													 AttrNumber attnum);

#endif							/* MONGO_FDW_OPTION_READERS_H */
