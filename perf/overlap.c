/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls beside matrix products: how much time either takes alone and while the other runs.
 * Never knows: CUDA, whose calls they are.
 *
 * Products run on a stream of their own, one for each device of the team, however many of its ranks
 * share the device. A lap begins with one call and one product that are not timed; behind both the
 * timed ones start together. There is an event behind the last call and one behind every product.
 * The host makes calls and products in turn and waits for nothing until all are made, since a call
 * may wait for those of other ranks, of which this thread has to make some.
 *
 * Beside means all the time: products go on until the last call has ended on every device, or the
 * lap is made again with more products, or with fewer calls. Of products only those count that
 * ended before the last call did. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "perf_cuda.h"
#include "team.h"

#define ALONE_PRODUCTS 32
#define LEAST_PRODUCTS 16 /* that a lap's calls last for, if so many calls are possible */
#define MOST_PRODUCTS 512
#define MOST_CALLS 256
#define AHEAD 2 /* products that the host makes ahead of calls */

/* What a rank has, and the first one of each device besides. */
struct perf_beside {
    void *begin, *end; /* owned events around the timed calls */
    int leader;        /* first rank of the team on the device */
    bool leads;
    void *stream;                    /* owned, as all below */
    void *stamps[MOST_PRODUCTS + 1]; /* events: before the first product, behind each */
    int stamp_count;
    struct perf_product product;
};

struct lap {
    int calls, products;
};

/* ---- life ------------------------------------------------------------------------------------ */

static bool memory_create(int device, struct perf_product *product)
{
    return perf_cuda_alloc(device, PERF_PRODUCT_A_BYTES, &product->a) &&
           perf_cuda_alloc(device, PERF_PRODUCT_B_BYTES, &product->b) &&
           perf_cuda_alloc(device, PERF_PRODUCT_C_BYTES, &product->c) &&
           perf_cuda_alloc(device, sizeof(unsigned), &product->wrong);
}

/* One product, right to the last element. */
static bool product_try(const struct perf_beside *beside, int device)
{
    const struct perf_product *product = &beside->product;
    unsigned wrong = 1;
    bool good = perf_cuda_product_fill(device, product, beside->stream) &&
                perf_cuda_product_start(device, product, beside->stream) &&
                perf_cuda_product_compare(device, product, beside->stream) &&
                perf_cuda_copy(&wrong, product->wrong, sizeof(wrong), beside->stream);
    good = perf_cuda_stream_wait(beside->stream) && good;
    if (good && wrong)
        fprintf(stderr, "twill-perf: the matrix product on device %d has %u wrong elements\n",
                device, wrong);
    return good && !wrong;
}

static bool beside_create(const struct perf_team *team, int i)
{
    struct perf_beside *beside = &team->beside[i];
    int device = team->ranks[i].device;
    if (!perf_cuda_event_create(device, &beside->begin) ||
        !perf_cuda_event_create(device, &beside->end))
        return false;
    while (team->ranks[beside->leader].device != device)
        beside->leader++;
    beside->leads = beside->leader == i;
    if (!beside->leads)
        return true;
    if (!perf_cuda_stream_create(device, false, &beside->stream))
        return false;
    for (; beside->stamp_count <= MOST_PRODUCTS; beside->stamp_count++)
        if (!perf_cuda_event_create(device, &beside->stamps[beside->stamp_count]))
            return false;
    return memory_create(device, &beside->product) && product_try(beside, device);
}

static bool beside_destroy(const struct perf_team *team, int i)
{
    const struct perf_beside *beside = &team->beside[i];
    const struct perf_product *product = &beside->product;
    void *const memory[] = {product->a, product->b, product->c, product->wrong};
    bool good = true;
    if (beside->begin)
        good &= perf_cuda_event_destroy(beside->begin);
    if (beside->end)
        good &= perf_cuda_event_destroy(beside->end);
    for (int k = 0; k < beside->stamp_count; k++)
        good &= perf_cuda_event_destroy(beside->stamps[k]);
    for (size_t k = 0; k < sizeof(memory) / sizeof(memory[0]); k++)
        if (memory[k])
            good &= perf_cuda_free(team->ranks[i].device, memory[k]);
    if (beside->stream)
        good &= perf_cuda_stream_destroy(beside->stream);
    return good;
}

bool perf_overlap_begin(struct perf_team *team)
{
    bool good = true;
    team->beside = calloc((size_t)team->count, sizeof(*team->beside));
    if (!team->beside) {
        fprintf(stderr, "twill-perf: rank %d: out of memory\n", team->ranks[0].rank);
        return false;
    }
    for (int i = 0; i < team->count && good; i++)
        good = beside_create(team, i);
    /* CUDA may let an allocation wait for a kernel, and a call's waits for all ranks */
    return good && perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier");
}

bool perf_overlap_end(struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count && team->beside; i++)
        good &= beside_destroy(team, i);
    free(team->beside);
    team->beside = NULL;
    return good;
}

/* ---- a lap ----------------------------------------------------------------------------------- */

static bool product_start(const struct perf_team *team, int i, int stamp)
{
    const struct perf_beside *beside = &team->beside[i];
    if (!beside->leads)
        return true;
    return perf_cuda_product_start(team->ranks[i].device, &beside->product, beside->stream) &&
           perf_cuda_event_record(beside->stamps[stamp], beside->stream);
}

/* Products number first to last - 1 of every device. */
static bool products_start(const struct perf_team *team, int first, int last)
{
    bool good = true;
    for (int k = first; k < last; k++)
        for (int i = 0; i < team->count && good; i++)
            good = product_start(team, i, k + 1);
    return good;
}

/* One call and one product; what comes behind them begins together. */
static bool gate(const struct perf_team *team, const struct perf_case *c, const struct lap *lap)
{
    bool good = !lap->calls || team->library->call(team, c);
    for (int i = 0; i < team->count && good; i++)
        good = product_start(team, i, 0);
    for (int i = 0; i < team->count && good; i++) {
        const struct perf_beside *beside = &team->beside[i];
        void *stream = team->ranks[i].stream;
        good = perf_cuda_event_await(team->beside[beside->leader].stamps[0], stream) &&
               perf_cuda_event_record(beside->begin, stream);
    }
    for (int i = 0; i < team->count && good; i++) {
        const struct perf_beside *beside = &team->beside[i];
        if (beside->leads)
            good = perf_cuda_event_await(beside->begin, beside->stream) &&
                   perf_cuda_event_record(beside->stamps[0], beside->stream);
    }
    return good;
}

static bool calls_end(const struct perf_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!perf_cuda_event_record(team->beside[i].end, team->ranks[i].stream))
            return false;
    return true;
}

/* The last product is made behind the last call. */
static bool lap_make(const struct perf_team *team, const struct perf_case *c, const struct lap *lap)
{
    bool good = true;
    int made = 0;
    for (int k = 0; k < lap->calls && good; k++) {
        int due = AHEAD + (int)((long long)lap->products * k / lap->calls);
        due = due < lap->products ? due : lap->products - 1;
        good = products_start(team, made, due) && team->library->call(team, c);
        made = due;
    }
    return good && calls_end(team) && products_start(team, made, lap->products);
}

static bool settle(const struct perf_team *team)
{
    bool good = team->place->settle(team);
    for (int i = 0; i < team->count && good; i++)
        good = !team->beside[i].leads || perf_cuda_stream_wait(team->beside[i].stream);
    return good;
}

static bool lap_run(const struct perf_team *team, const struct perf_case *c, const struct lap *lap)
{
    return settle(team) && perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier") &&
           gate(team, c, lap) && lap_make(team, c, lap) && settle(team);
}

/* ---- figures --------------------------------------------------------------------------------- */

enum figure {
    CALL_US,
    PRODUCT_US,
    COVER, /* time of all calls, of that of all products: above 1 the last ones were alone */
    FIGURES
};

/* Of a device: of its products those that ended within the first window_us. */
static bool product_figures(const struct perf_beside *beside, const struct lap *lap,
                            double window_us, double *figures)
{
    double first_us = 0, last_us = 0, mean_us = 0;
    if (!perf_cuda_event_us(beside->begin, beside->stamps[0], &first_us))
        return false;
    for (int k = 1; k <= lap->products; k++) {
        if (!perf_cuda_event_us(beside->begin, beside->stamps[k], &last_us))
            return false;
        if (k == 1 || last_us <= window_us)
            mean_us = (last_us - first_us) / k;
    }
    figures[PRODUCT_US] = fmax(figures[PRODUCT_US], mean_us);
    if (lap->calls)
        figures[COVER] = fmax(figures[COVER], last_us > 0 ? window_us / last_us : INFINITY);
    return true;
}

/* A lap, and what it says: of the slowest rank or device of all members. */
static bool lap_time(const struct perf_team *team, const struct perf_case *c, const struct lap *lap,
                     double figures[FIGURES])
{
    for (int f = 0; f < FIGURES; f++)
        figures[f] = 0;
    if (!lap_run(team, c, lap))
        return false;
    for (int i = 0; i < team->count; i++) {
        const struct perf_beside *beside = &team->beside[i];
        double us = INFINITY; /* without calls every product counts */
        if (lap->calls) {
            if (!perf_cuda_event_us(beside->begin, beside->end, &us))
                return false;
            figures[CALL_US] = fmax(figures[CALL_US], us / lap->calls);
        }
        if (beside->leads && !product_figures(beside, lap, us, figures))
            return false;
    }
    return perf_team_most(team, figures, FIGURES);
}

/* So many calls that they last for LEAST_PRODUCTS, and products to last twice as long. */
static struct lap lap_guess(const struct perf_team *team, const struct perf_row *row)
{
    double calls = perf_options_calls(team->options, row->c.size_bytes), products = 1;
    if (row->time_us > 0 && row->product_us > 0) {
        double each = row->product_us / row->time_us; /* calls that last for a product */
        calls = fmax(calls, ceil(LEAST_PRODUCTS * each));
        calls = fmin(calls, ceil(0.25 * MOST_PRODUCTS * each));
        products = ceil(2 * fmin(calls, MOST_CALLS) / each);
    }
    return (struct lap){.calls = (int)fmin(calls, MOST_CALLS),
                        .products = (int)fmin(products + LEAST_PRODUCTS, MOST_PRODUCTS)};
}

/* More of the lap's time for products. @return false when there is no more */
static bool lap_stretch(struct lap *lap)
{
    if (2 * lap->products <= MOST_PRODUCTS)
        lap->products *= 2;
    else if (lap->products < MOST_PRODUCTS)
        lap->products = MOST_PRODUCTS;
    else if (lap->calls > 1)
        lap->calls /= 2;
    else
        return false;
    return true;
}

bool perf_overlap_measure(struct perf_team *team, const struct perf_case *c, struct perf_row *row)
{
    const struct lap alone = {.products = ALONE_PRODUCTS};
    double figures[FIGURES];
    if (!lap_time(team, c, &alone, figures))
        return false;
    row->product_us = figures[PRODUCT_US];
    struct lap lap = lap_guess(team, row);
    do {
        if (!lap_time(team, c, &lap, figures))
            return false;
    } while (figures[COVER] > 1 && lap_stretch(&lap));
    if (figures[COVER] > 1) {
        fprintf(stderr,
                "twill-perf: --overlap: a call of %zu bytes beside products lasts longer than %d\n",
                c->size_bytes, lap.products);
        return false;
    }
    row->beside_us = figures[CALL_US];
    row->product_beside_us = figures[PRODUCT_US];
    return true;
}

double perf_overlap_loss(double alone_us, double beside_us)
{
    return alone_us > 0 ? (beside_us / alone_us - 1) * 100 : 0;
}

double perf_overlap_together(const struct perf_row *row)
{
    if (row->beside_us <= 0 || row->product_beside_us <= 0)
        return 0;
    return row->time_us / row->beside_us + row->product_us / row->product_beside_us;
}
