/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how this program starts itself anew, and talks in lines with what it has started.
 * Never knows: what is said. */
#ifndef TESTS_GPU_PROCESS_H
#define TESTS_GPU_PROCESS_H

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "twill.h"

namespace gpu
{

typedef std::vector<std::pair<std::string, std::string>> Env;

/* A process of this program, with arguments of its own; its descriptor 0 is a line to this one. */
class Child
{
  public:
    explicit Child(const std::vector<std::string> &args, const Env &env = {});
    ~Child(); /* kills what still runs */
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    void say(const std::string &line);
    /* The next line; throws when there is none within `seconds`. */
    std::string hear(double seconds);
    /* Exit status; 128 + signal; -1: it still runs after `seconds`. */
    int wait(double seconds);
    void kill(int signal);

  private:
    pid_t pid_ = -1;
    int fd_ = -1;
    std::string heard_;
};

/* ---- in the child ---- */

void say(const std::string &line);
std::string hear(double seconds = 60);

/* A communicator of ranks of several processes, of which this one has `here` from `first` on: by an
 * id that the process with rank 0 makes, and that the parent hands on. */
std::vector<twill_comm_t> join_by_id(int size, int first, int here, int device);
/* The same, with a device for each of them. */
std::vector<twill_comm_t> join_by_id(int size, int first, const std::vector<int> &devices);
/* In the parent. */
void pass_id(std::vector<Child *> children);

std::string hex(const void *bytes, size_t count);

} // namespace gpu

#endif
