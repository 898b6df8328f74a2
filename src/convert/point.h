/*-------------------------------------------------------------------------
 *
 * point.h
 *		The type point as a GeoJSON Point: https://www.rfc-editor.org/rfc/rfc7946
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_POINT_H
#define MONGO_FDW_POINT_H

#include "encode.h"
#include "reader.h"

/*
 * mongo_read_point
 *		From a GeoJSON Point, an array of two numbers, as older geospatial
 *		indexes take it, or a String in the type's text form.
 *
 * Its reader is prepared by mongo_prepare_text_form().
 */
extern MongoReadFunction mongo_read_point;

/*
 * mongo_write_point
 *		{type: "Point", coordinates: [x, y]}, of two Doubles.
 */
extern MongoWriteFunction mongo_write_point;

#endif							/* MONGO_FDW_POINT_H */
