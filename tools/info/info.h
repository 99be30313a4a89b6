/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the parts of twill-info. Never knows: how a graph is found. */
#ifndef TW_TOOLS_INFO_INFO_H
#define TW_TOOLS_INFO_INFO_H

#include <stdio.h>

#include "device/probe.h"
#include "topo/graph.h"

/* "text" */
void info_json_text(FILE *out, const char *text);
/* "name": "text" and what comes behind it. */
void info_json_string(FILE *out, const char *name, const char *text, const char *behind);

/* What lies between the GPUs of a graph's first host: NVLink, NUMA nodes, NICs and the ring. */
enum twill_status info_gpus_print(FILE *out, const struct tw_topo_graph *graph);
/* The same as the value of a JSON object. */
enum twill_status info_gpus_json(FILE *out, const struct tw_topo_graph *graph);

/* Which of `count` CUDA devices get at each other's memory, and why others do not. gaps:
 * [count][count], of the first index to the second. */
void info_reach_print(FILE *out, int count, const enum tw_gap *gaps);
/* The same as the value of a JSON object: a list of pairs. */
void info_reach_json(FILE *out, int count, const enum tw_gap *gaps);

/* Which NCCL the program at a path would load, or the process of a number has loaded. @return the
 * exit status */
int info_nccl(const char *what);

#endif
