/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a graph's form as XML (docs/topology.md). Never knows: hwloc's XML. */
#ifndef TW_TOPO_XML_H
#define TW_TOPO_XML_H

#include <stddef.h>

#include "topo/graph.h"

#define TW_TOPO_XML_VERSION 1u
#define TW_TOPO_XML_BYTES_MOST ((size_t)64 << 20)

/**
 * A sealed graph as text. Reading it gives an equal graph, writing that the same text, byte by
 * byte.
 *
 * @param text  out; owned by the caller (free), NUL-terminated; untouched on error
 * @return TWILL_OK; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_xml_write(const struct tw_topo_graph *graph, char **text, size_t *bytes);

/**
 * A graph from text that may be anything; sealed.
 *
 * @param source  for errors: the file's name
 * @param graph   out; owned by the caller; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID with the line and what is wrong; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_xml_read(struct tw_topo_graph **graph, const char *source,
                                   const char *text, size_t bytes);

/** As above from a file ("-": standard input) of at most TW_TOPO_XML_BYTES_MOST. TWILL_ERR_SYSTEM
 * when it cannot be read. */
enum twill_status tw_topo_xml_load(struct tw_topo_graph **graph, const char *path);

#endif
