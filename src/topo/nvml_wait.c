/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a thread that asks NVML, and for how long it is waited for. Never knows: what is asked. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "topo/nvml.h"

/* What the two threads share; whoever is the last to need it frees it. */
struct errand {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, left; /* the thread has its answer; nobody waits for it any more */
    bool said;
    char library[1024];
    char why[TW_TOPO_NVML_WHY_BYTES];
    struct tw_topo_nvml found;
};

static struct errand *errand_create(const char *library)
{
    struct errand *errand = calloc(1, sizeof(*errand));
    pthread_condattr_t attr;
    if (!errand || strlen(library) >= sizeof(errand->library) || pthread_condattr_init(&attr)) {
        free(errand);
        return NULL;
    }
    memcpy(errand->library, library, strlen(library) + 1);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&errand->ended, &attr);
    (void)pthread_mutex_init(&errand->lock, NULL);
    (void)pthread_condattr_destroy(&attr);
    return errand;
}

static void errand_destroy(struct errand *errand)
{
    (void)pthread_cond_destroy(&errand->ended);
    (void)pthread_mutex_destroy(&errand->lock);
    free(errand);
}

static void *errand_run(void *arg)
{
    struct errand *errand = arg;
    bool said = tw_topo_nvml_read(errand->library, &errand->found, errand->why);
    (void)pthread_mutex_lock(&errand->lock);
    errand->said = said;
    errand->done = true;
    bool left = errand->left;
    (void)pthread_cond_signal(&errand->ended);
    (void)pthread_mutex_unlock(&errand->lock);
    if (left)
        errand_destroy(errand);
    return NULL;
}

/* Without signals: they are for the program's own threads. */
static int errand_start(struct errand *errand)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&errand->thread, NULL, errand_run, errand);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* @return whether there is an answer; if not, the errand is the thread's */
static bool errand_await(struct errand *errand, uint64_t limit_ns)
{
    uint64_t until_ns = tw_now_ns() + limit_ns;
    const struct timespec until = {(time_t)(until_ns / TW_NS_S), (long)(until_ns % TW_NS_S)};
    int error = 0;
    (void)pthread_mutex_lock(&errand->lock);
    while (!errand->done && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&errand->ended, &errand->lock, &until);
    bool done = errand->done;
    errand->left = !done;
    if (!done)
        (void)pthread_detach(errand->thread);
    (void)pthread_mutex_unlock(&errand->lock);
    return done;
}

bool tw_topo_nvml_ask(const char *library, uint64_t limit_ns, struct tw_topo_nvml *found,
                      char why[TW_TOPO_NVML_WHY_BYTES])
{
    struct errand *errand = errand_create(library);
    int error = errand ? errand_start(errand) : ENOMEM;
    if (error) {
        (void)snprintf(why, TW_TOPO_NVML_WHY_BYTES, "no thread can ask it: errno %d", error);
        if (errand)
            errand_destroy(errand);
        return false;
    }
    if (!errand_await(errand, limit_ns)) {
        (void)snprintf(why, TW_TOPO_NVML_WHY_BYTES, "no answer within %.3g s",
                       (double)limit_ns / 1e9);
        return false;
    }
    (void)pthread_join(errand->thread, NULL);
    bool said = errand->said;
    memcpy(found, &errand->found, sizeof(*found));
    memcpy(why, errand->why, sizeof(errand->why));
    errand_destroy(errand);
    return said;
}
