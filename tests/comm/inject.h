/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests make thin calls fail, or answer what they cannot be made to answer here. They
 * are replaced when the test is linked (--wrap).
 * Never knows: who calls them. */
#ifndef TESTS_COMM_INJECT_H
#define TESTS_COMM_INJECT_H

namespace inject
{

/* Of the calling thread's calls: after `fine` more that succeed, one fails. */
void thread_fails(int fine);
void alloc_fails(int fine);
/* Nothing fails any more in the calling thread. @return false: what was to fail was never called */
bool done();

/* The next `count` sockets that any thread asks who is at the other end belong to another user. */
void foreign_peers(int count);
/* How many of them are left. */
int foreign_left();

} // namespace inject

#endif
