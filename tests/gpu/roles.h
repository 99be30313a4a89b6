/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what this program does when it is started as a part of one of its own tests.
 * Never knows: which test. */
#ifndef TESTS_GPU_ROLES_H
#define TESTS_GPU_ROLES_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpu
{

class World;

/* Was the program started for a role, which it has then played? */
bool has_role(int argc, char **argv, int *status);
/* The watchdog knows which test goes on. */
void watch_tests();

/* Exit status: 0: fine. What they throw is printed, and 1. */
int role_cover(const std::vector<std::string> &args);
int role_victim(const std::vector<std::string> &args);
int role_first(const std::vector<std::string> &args);
int role_p2p(const std::vector<std::string> &args);
int role_cut(const std::vector<std::string> &args);
int role_plans(const std::vector<std::string> &args);
int role_copy(const std::vector<std::string> &args);
int role_pool(const std::vector<std::string> &args);
int role_mapped(const std::vector<std::string> &args);
int role_pieces(const std::vector<std::string> &args);

/* The cover's cases for the ranks of several processes, each of which calls it with the same
 * numbers. What goes wrong is printed, and 1. */
int cover_ranks(World *world, uint64_t first, uint64_t cases, size_t buffer_bytes);

} // namespace gpu

#endif
