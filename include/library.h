/*-------------------------------------------------------------------------
 *
 * library.h
 *		Starting libmongoc.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LIBRARY_H
#define MONGO_FDW_LIBRARY_H

#include "compat.h"

/*
 * mongo_initialize_library
 *		Start libmongoc, unless this process or its postmaster has done so.
 */
extern void mongo_initialize_library(void);

#endif							/* MONGO_FDW_LIBRARY_H */
