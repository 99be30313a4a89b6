/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where the parts of a machine lie in a picture. Never knows: hwloc, files. */
#ifndef TWILL_TOPO_DRAW_H
#define TWILL_TOPO_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "svg.h"
#include "topo.h"

struct drawing {
    const struct tw_topo_machine *machine; /* borrowed */
    struct family family;
    struct svg_box *boxes; /* owned, [nnodes]; [0] is the whole machine */
};

/* Sizes of all parts; false: no memory. */
bool drawing_init(struct drawing *drawing, const struct tw_topo_machine *machine);
void drawing_fini(struct drawing *drawing);
/* Once: where the machine's corner lies. */
void drawing_place(struct drawing *drawing, int x, int y);
void drawing_draw(FILE *out, const struct drawing *drawing);

#endif
