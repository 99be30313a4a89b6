/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests run ranks as threads and as processes, and count what is left behind.
 * Never knows: what is tested. */
#ifndef TESTS_COMM_RANKS_H
#define TESTS_COMM_RANKS_H

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

extern "C" {
#include "comm/comm.h"
}

/* ---- this process ---- */

/* Descriptors and threads of this process. */
struct Count {
    int fds, threads;
};
Count count_now();
/* Waits (to a deadline) until the counts are those of `before`: the last threads may still be on
 * their way out. */
bool count_returns(const Count &before);

/* Parameters for the next use of the process's state, which must be closed. */
void set_params(const std::vector<std::pair<std::string, std::string>> &params);

struct tw_comm_args args_of(int rank, int size, const twill_unique_id &id);
twill_unique_id new_id();

/* One rank, connected; owns the communicator. */
class Comm
{
  public:
    explicit Comm(const struct tw_comm_args &args);
    ~Comm();
    Comm(const Comm &) = delete;
    Comm &operator=(const Comm &) = delete;
    enum twill_status connect();
    enum twill_status finalize();
    void free();
    std::string failure();
    struct twill_comm *get() { return comm_; }
    struct twill_comm *operator->() { return comm_; }

  private:
    struct twill_comm *comm_ = nullptr;
};

/* Runs body(rank) on `size` threads and waits for all. */
void on_threads(int size, const std::function<void(int rank)> &body);

bool contains(const std::string &text, const std::string &part);
/* What is in a file; empty where there is none. */
std::string file_text(const std::string &path);

/* Looks every millisecond until done(); an error when that takes too long. */
void wait_for(const std::function<bool()> &done);
/* Waits until the communicator has failed, for at most `ms`. */
bool fails_within(struct twill_comm *comm, int ms);
uint64_t now_ms();

/* ---- processes ---- */

struct Outcome {
    int status = 1;     /* of what was asked */
    uint64_t at_ms = 0; /* when it was known */
    char text[TW_ERROR_TEXT_BYTES] = "";
};
Outcome outcome_of(struct twill_comm *comm);

/* A pair of pipes. */
struct Wire {
    int in = -1, out = -1;
    void put(const void *data, size_t bytes) const;
    bool get(void *data, size_t bytes) const; /* false: closed */
    template <class T> void put(const T &value) const { put(&value, sizeof(value)); }
    template <class T> bool get(T *value) const { return get(value, sizeof(*value)); }
};

/* A forked process that runs body(wire) and ends with its result (0: fine). The test's process must
 * hold no state of twill when it forks. */
class Child
{
  public:
    explicit Child(const std::function<int(const Wire &)> &body);
    ~Child(); /* kills what still runs */
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    int wait(); /* exit code; 128 + signal */
    void kill(int signal);
    pid_t pid() const { return pid_; }
    Wire wire;

  private:
    pid_t pid_ = -1;
};

/* Runs body in a process of its own, whatever it leaves behind there. */
void in_child(const std::function<void()> &body);

/* The first child makes the id; all get it: children call join_id. */
twill_unique_id share_id(const Wire &wire, bool maker);
void pass_id(const std::vector<Child *> &children);

#endif
