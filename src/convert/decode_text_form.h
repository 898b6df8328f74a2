/*-------------------------------------------------------------------------
 *
 * decode_text_form.h
 *		Types that BSON has no counterpart for, see reader.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECODE_TEXT_FORM_H
#define MONGO_FDW_DECODE_TEXT_FORM_H

#include "reader.h"

extern MongoReadFunction mongo_read_enum;
extern MongoReadFunction mongo_read_text_form;
extern MongoPrepareFunction mongo_prepare_text_form;

#endif							/* MONGO_FDW_DECODE_TEXT_FORM_H */
