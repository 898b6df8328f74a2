/*-------------------------------------------------------------------------
 *
 * interrupt.h
 *		What is pending for this backend, seen from inside libmongoc's frames.
 *
 * ProcessInterrupts() raises ERROR or FATAL, whose longjmp or exit must not
 * cross libmongoc's frames.  A wait there asks instead whether it would raise,
 * fails if so, and CHECK_FOR_INTERRUPTS() does the raising when libmongoc has
 * unwound.  The flags are those of ProcessInterrupts() in tcop/postgres.c of
 * PostgreSQL 15 to 18.
 *
 * Private to src/remote.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INTERRUPT_H
#define MONGO_FDW_INTERRUPT_H

#include "compat.h"

/*
 * mongo_interrupt_serve
 *		Do what others or PostgreSQL wait for and what ends no statement: process
 *		signal barriers, and the look whether the client is still there.
 *
 * Nothing where interrupts are held.  May raise what a barrier raises, so only
 * within PG_TRY.
 */
extern void mongo_interrupt_serve(void);

/*
 * mongo_interrupt_is_due
 *		Would ProcessInterrupts() raise something that ends the statement or the
 *		session?
 *
 * With 'although_held' also where interrupts are held and it would do nothing.
 * Never raises.
 */
extern bool mongo_interrupt_is_due(bool although_held);

#endif							/* MONGO_FDW_INTERRUPT_H */
