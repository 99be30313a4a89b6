/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    while (dir != nullptr && readdir(dir) != nullptr)
        count++;
    if (dir != nullptr)
        closedir(dir);
    return count;
}

/* A sanitizer's own thread starts with the first one: it is there before anything is counted. */
static void first_thread()
{
    static bool done = false;
    if (!done)
        std::thread([] {}).join();
    done = true;
}

Count count_now()
{
    first_thread();
    return Count{entries("/proc/self/fd"), entries("/proc/self/task")};
}

uint64_t now_ms()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool count_returns(const Count &before)
{
    uint64_t until = now_ms() + 10000;
    for (;;) {
        Count now = count_now();
        if (now.fds == before.fds && now.threads == before.threads)
            return true;
        if (now_ms() > until) {
            ADD_FAILURE() << "descriptors " << before.fds << " -> " << now.fds << ", threads "
                          << before.threads << " -> " << now.threads;
            return false;
        }
        poll(nullptr, 0, 2);
    }
}

void set_params(const std::vector<std::pair<std::string, std::string>> &params)
{
    tw_params_reset();
    for (const auto &param : params)
        EXPECT_EQ(TWILL_OK, tw_param_set(param.first.c_str(), param.second.c_str()));
}

struct tw_comm_args args_of(int rank, int size, const twill_unique_id &id)
{
    struct tw_comm_args args = {};
    args.rank = rank;
    args.size = size;
    args.id = id;
    args.blocking = 1;
    args.device = TWILL_DEVICE_HOST;
    strcpy(args.name, "test");
    return args;
}

twill_unique_id new_id()
{
    twill_unique_id id = {};
    EXPECT_EQ(TWILL_OK, tw_id_create(&id)) << tw_fail_text();
    return id;
}

Comm::Comm(const struct tw_comm_args &args)
{
    EXPECT_EQ(TWILL_OK, tw_comm_prepare(&args, &comm_)) << tw_fail_text();
}
Comm::~Comm() { free(); }
enum twill_status Comm::connect() { return tw_comm_connect(&comm_, 1, true); }
enum twill_status Comm::finalize() { return tw_comm_finalize(comm_); }
void Comm::free()
{
    tw_comm_free(comm_);
    comm_ = nullptr;
}
std::string Comm::failure()
{
    pthread_mutex_lock(&comm_->lock);
    std::string text = comm_->failure;
    pthread_mutex_unlock(&comm_->lock);
    return text;
}

void on_threads(int size, const std::function<void(int)> &body)
{
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; rank++)
        threads.emplace_back(body, rank);
    for (auto &thread : threads)
        thread.join();
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

std::string file_text(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

void wait_for(const std::function<bool()> &done)
{
    uint64_t until = now_ms() + 10000;
    while (!done() && now_ms() < until)
        poll(nullptr, 0, 1);
    EXPECT_TRUE(done());
}

bool fails_within(struct twill_comm *comm, int ms)
{
    /* readable from the first failure on */
    struct pollfd polled = {comm->cancel_fd, POLLIN, 0};
    return poll(&polled, 1, ms) == 1 && tw_comm_status(comm) != TWILL_OK;
}

Outcome outcome_of(struct twill_comm *comm)
{
    Outcome outcome;
    outcome.status = tw_comm_status(comm);
    outcome.at_ms = now_ms();
    pthread_mutex_lock(&comm->lock);
    memcpy(outcome.text, comm->failure, sizeof(outcome.text));
    pthread_mutex_unlock(&comm->lock);
    return outcome;
}

void Wire::put(const void *data, size_t bytes) const
{
    ssize_t written = write(out, data, bytes);
    (void)written; /* who is killed does not read */
}

bool Wire::get(void *data, size_t bytes) const
{
    size_t used = 0;
    while (used < bytes) {
        ssize_t got = read(in, (char *)data + used, bytes - used);
        if (got <= 0)
            return false;
        used += (size_t)got;
    }
    return true;
}

/* Failed expectations of this test so far; a child's copy begins with its parent's. */
static int failures()
{
    const ::testing::TestResult *result =
        ::testing::UnitTest::GetInstance()->current_test_info()->result();
    int count = 0;
    for (int i = 0; i < result->total_part_count(); i++)
        count += result->GetTestPartResult(i).failed();
    return count;
}

/* The control thread may give up the last reference at any time, and a thread of its own close the
 * process's state then. A reference that is kept waits for a closing and lets none begin, so that
 * no thread is seen ended and not yet joined when the process ends. */
static void closing_hold()
{
    struct tw_proc *proc = nullptr;
    (void)tw_proc_get(&proc);
}

Child::Child(const std::function<int(const Wire &)> &body)
{
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        abort();
    pid_ = fork();
    if (pid_ == 0) {
        Wire own;
        own.in = down[0];
        own.out = up[1];
        close(down[1]);
        close(up[0]);
        signal(SIGPIPE, SIG_IGN);
        alarm(60); /* a hang ends as one */
        const int before = failures();
        int code = body(own);
        closing_hold();
        if (code == 0 && failures() > before)
            code = 99;
        _exit(code);
    }
    close(down[0]);
    close(up[1]);
    wire.in = up[0];
    wire.out = down[1];
}

Child::~Child()
{
    if (pid_ > 0) {
        kill(SIGKILL);
        wait();
    }
    close(wire.in);
    close(wire.out);
}

void Child::kill(int signal)
{
    if (pid_ > 0)
        ::kill(pid_, signal);
}

int Child::wait()
{
    int status = 0;
    if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_)
        return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void in_child(const std::function<void()> &body)
{
    Child child([&](const Wire &) {
        body();
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

twill_unique_id share_id(const Wire &wire, bool maker)
{
    twill_unique_id id = {};
    if (maker) {
        id = new_id();
        wire.put(id);
    } else {
        EXPECT_TRUE(wire.get(&id));
    }
    return id;
}

void pass_id(const std::vector<Child *> &children)
{
    twill_unique_id id = {};
    ASSERT_TRUE(children[0]->wire.get(&id));
    for (size_t i = 1; i < children.size(); i++)
        children[i]->wire.put(id);
}
