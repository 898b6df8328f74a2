/*-------------------------------------------------------------------------
 *
 * driver_log.h
 *		What libmongoc has to say beside its results.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DRIVER_LOG_H
#define MONGO_FDW_DRIVER_LOG_H

/*
 * mongo_install_log_handler
 *		Send libmongoc's own log lines to elog instead of stderr.
 *
 * To be called before libmongoc is used for anything; again does no harm.
 */
extern void mongo_install_log_handler(void);

/*
 * mongo_last_driver_message, mongo_forget_driver_message
 *		libmongoc's newest warning or error line, "" when forgotten since; valid
 *		until the next.
 *
 * Some causes (a certificate file that cannot be read) reach the log only.
 */
extern const char *mongo_last_driver_message(void);
extern void mongo_forget_driver_message(void);

/*
 * mongo_hold_driver_log
 *		Log nothing of what libmongoc says until called with false; its newest
 *		message is kept all the same.  For what may quote a secret.
 */
extern void mongo_hold_driver_log(bool hold);

#endif							/* MONGO_FDW_DRIVER_LOG_H */
