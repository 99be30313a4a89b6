/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how memory that was mapped by cuMemMap comes to other processes: piece by piece, each by a
 * descriptor that the owner's process hands out over its connections.
 * Never knows: what is registered, calls. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "base/cuda.h"
#include "channel/channel.h"
#include "comm/gpu_reg.h"

enum twill_status tw_gpu_pieces_count(const struct tw_gpu *gpu, const void *ptr, size_t bytes,
                                      struct tw_gpu_pieces *pieces)
{
    const char *const end = (const char *)ptr + bytes;
    void *base = NULL;
    size_t whole = 0;
    enum twill_status status = TWILL_OK;

    memset(pieces, 0, sizeof(*pieces));
    for (const char *at = ptr; at < end && !tw_failed(status); at = (char *)base + whole) {
        status = tw_cuda_piece_find(gpu->device, at, &base, &whole);
        if (pieces->count == 0)
            pieces->offset = (uint64_t)(at - (char *)base);
        pieces->count++;
        pieces->bytes += whole;
    }
    return status;
}

/* ---- a round -----------------------------------------------------------------------------------
 */

struct out {
    const char *at; /* in the next piece */
    uint32_t left;  /* pieces */
    struct tw_chan_offer offers[TW_GPU_PIECES_ROUND];
};

static enum twill_status piece_offer(struct tw_gpu *gpu, struct out *out,
                                     struct tw_gpu_round *round)
{
    void *base = NULL;
    size_t whole = 0;
    int fd = -1;
    enum twill_status status = tw_cuda_piece_find(gpu->device, out->at, &base, &whole);

    if (!tw_failed(status))
        status = tw_cuda_piece_export(gpu->device, out->at, &fd);
    if (!tw_failed(status))
        status = tw_chan_offer(gpu->comm->chan, fd, &out->offers[round->count]);
    if (tw_failed(status))
        return status;
    memcpy(round->piece[round->count].token, out->offers[round->count].token,
           sizeof(round->piece[0].token));
    round->piece[round->count].bytes = whole;
    round->count++;
    out->at = (char *)base + whole;
    out->left--;
    return TWILL_OK;
}

static enum twill_status pieces_offer(struct tw_gpu *gpu, struct out *out,
                                      struct tw_gpu_round *round)
{
    enum twill_status status = TWILL_OK;

    while (out->left > 0 && round->count < TW_GPU_PIECES_ROUND && !tw_failed(status))
        status = piece_offer(gpu, out, round);
    return status;
}

static void pieces_withdraw(struct out *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tw_chan_withdraw(&out->offers[i]);
}

static enum twill_status pieces_take(struct tw_gpu *gpu, int peer, const struct tw_gpu_round *round,
                                     struct tw_cuda_span *span)
{
    enum twill_status status = TWILL_OK;

    if (round->count > TW_GPU_PIECES_ROUND)
        return tw_fail(TWILL_ERR_PEER, "rank %d hands out %u pieces of memory at once", peer,
                       round->count);
    for (uint32_t i = 0; i < round->count && !tw_failed(status); i++) {
        int fd = -1;

        status = tw_chan_take(gpu->comm->chan, peer, round->piece[i].token, &fd);
        if (!tw_failed(status)) {
            status = tw_cuda_span_map(gpu->device, span, round->piece[i].bytes, fd);
            (void)close(fd);
        }
    }
    return status;
}

static bool any_failed(int size, const struct tw_gpu_round *rounds)
{
    for (int r = 0; r < size; r++)
        if (tw_failed((enum twill_status)rounds[r].status))
            return true;
    return false;
}

/* All that ranks have told in this round. */
static enum twill_status round_take(struct tw_gpu *gpu, const struct tw_gpu_pieces *pieces,
                                    const struct tw_gpu_round *rounds, struct tw_cuda_span *spans)
{
    enum twill_status status = TWILL_OK;

    for (int r = 0; r < gpu->comm->size && !tw_failed(status); r++) {
        if (gpu->here[r] || rounds[r].count == 0)
            continue;
        if (spans[r].base == NULL)
            status = tw_cuda_span_reserve(gpu->device, pieces[r].bytes, &spans[r]);
        if (!tw_failed(status))
            status = pieces_take(gpu, r, &rounds[r], &spans[r]);
    }
    return status;
}

/* ---- all of them -------------------------------------------------------------------------------
 */

static uint32_t rounds_count(int size, const struct tw_gpu_pieces *pieces)
{
    uint32_t most = 0;

    for (int r = 0; r < size; r++)
        most = pieces[r].count > most ? pieces[r].count : most;
    return most / TW_GPU_PIECES_ROUND + (most % TW_GPU_PIECES_ROUND != 0);
}

/* Has everything come that was announced? */
static enum twill_status spans_check(const struct tw_gpu *gpu, const struct tw_gpu_pieces *pieces,
                                     const struct tw_cuda_span *spans)
{
    for (int r = 0; r < gpu->comm->size; r++)
        if (!gpu->here[r] && spans[r].mapped != pieces[r].bytes)
            return tw_fail(TWILL_ERR_PEER,
                           "rank %d handed out %zu bytes of memory, not %llu: it was mapped anew "
                           "meanwhile",
                           r, spans[r].mapped, (unsigned long long)pieces[r].bytes);
    return TWILL_OK;
}

enum twill_status tw_gpu_pieces_pass(struct tw_gpu *gpu, const void *ptr,
                                     const struct tw_gpu_pieces *pieces, enum twill_status mine,
                                     struct tw_gpu_round *rounds, struct tw_cuda_span *spans)
{
    struct twill_comm *comm = gpu->comm;
    struct out out = {.at = ptr, .left = pieces[comm->rank].count};
    uint32_t left = rounds_count(comm->size, pieces);
    bool stopped = false;

    while (left-- > 0 && !stopped) {
        struct tw_gpu_round round = {0};

        if (!tw_failed(mine))
            mine = pieces_offer(gpu, &out, &round);
        round.status = mine;
        enum twill_status status = tw_gpu_reg_gather(comm, &round, rounds, sizeof(round));
        stopped = tw_failed(status) || any_failed(comm->size, rounds);
        if (!stopped) {
            mine = round_take(gpu, pieces, rounds, spans);
            /* what is offered stays until everybody has taken it */
            const struct tw_gpu_round taken = {.status = mine};
            status = tw_gpu_reg_gather(comm, &taken, rounds, sizeof(taken));
            stopped = tw_failed(status) || any_failed(comm->size, rounds);
        }
        pieces_withdraw(&out, round.count);
        if (tw_failed(status) && !tw_failed(mine))
            mine = status;
    }
    return tw_failed(mine) || stopped ? mine : spans_check(gpu, pieces, spans);
}
