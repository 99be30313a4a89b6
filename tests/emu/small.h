/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: communicators whose lines are so short and whose slots so few that little data goes
 * through them often, and whose counters stand where a test wants them. Never knows: which calls
 * are made. */
#ifndef TESTS_EMU_SMALL_H
#define TESTS_EMU_SMALL_H

#include <memory>
#include <vector>

#include "gpu/case.h"
#include "gpu/world.h"

namespace emu
{

/* How data gets to peers that it does not get to by lines. */
enum Way { DIRECT, RINGS, REGISTERED, WAYS };

struct Shape {
    int size = 2, placement = 0;
    Way way = DIRECT;
    uint32_t line_bytes = 256; /* of a block that goes by lines, at most */
    uint32_t slots = 8;        /* of rings to a peer */
    uint32_t start = 0;        /* of all counters */
    bool copies = false;       /* copy engines serve what is large and moves, in groups */
    int cheap = -1;            /* enum tw_cost_proto that serves whatever it can; -1: as built in */
    uint32_t chunk_bytes = 0;  /* of sums that two ranks push; 0: they do not */
};
std::string text(const Shape &shape);

class Small
{
  public:
    explicit Small(const Shape &shape);
    Small(const Small &) = delete;
    Small &operator=(const Small &) = delete;
    gpu::World &world() { return world_; }
    /* Sizes of cases near the shape's borders; buffers lie where they are registered, if they are.
     */
    gpu::Limits limits() const;
    void destroy();

  private:
    void enlist();
    void shorten();
    void age();
    void part();

    Shape shape_;
    gpu::World world_;
    std::vector<twill_reg_t> regs_;
};

} // namespace emu

#endif
