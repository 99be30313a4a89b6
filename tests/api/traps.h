/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to catch a thread that allocates, locks or enters the kernel. Never knows: who may. */
#ifndef TESTS_API_TRAPS_H
#define TESTS_API_TRAPS_H

#include <signal.h>

namespace traps
{

/* Calls of the calling thread to allocators and locks between start and stop. The program must be
 * linked with --wrap for each of them (local.mk). */
void count_start();
void count_stop();
int counted();
const char *first_counted(); /* its name; nullptr: none */

/* System calls of the one thread that has called arm(). They are not made: each returns at once
 * with a number that means nothing. Such a thread cannot end; its process ends by another's
 * _exit. */
extern volatile sig_atomic_t waits;  /* sched_yield and sleeps: by who has waited for long */
extern volatile sig_atomic_t others; /* all others */
extern volatile sig_atomic_t first_other;

/* From here on every system call of the calling thread traps, but the return from the handler. */
bool arm();

} // namespace traps

#endif
