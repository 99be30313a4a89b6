/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "gpu/base.h"

extern char **environ;

namespace gpu
{

/* ---- starting ----------------------------------------------------------------------------------
 */

static std::vector<std::string> environment(const Env &env)
{
    std::vector<std::string> out;

    for (char **at = environ; *at != nullptr; at++) {
        const std::string one = *at;
        bool replaced = false;
        for (const auto &entry : env)
            replaced |= one.compare(0, entry.first.size() + 1, entry.first + "=") == 0;
        if (!replaced)
            out.push_back(one);
    }
    for (const auto &entry : env)
        out.push_back(entry.first + "=" + entry.second);
    return out;
}

static std::vector<char *> pointers(std::vector<std::string> *words)
{
    std::vector<char *> out;
    for (std::string &word : *words)
        out.push_back(&word[0]);
    out.push_back(nullptr);
    return out;
}

Child::Child(const std::vector<std::string> &args, const Env &env)
{
    std::vector<std::string> words = {"test_gpu"}, variables = environment(env);
    posix_spawn_file_actions_t actions;
    int ends[2];

    words.insert(words.end(), args.begin(), args.end());
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw Failure("socketpair failed");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    const int error = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                                  pointers(&words).data(), pointers(&variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    fd_ = ends[0];
    if (error != 0) {
        pid_ = -1;
        close(fd_);
        throw Failure(format("posix_spawn: %s", strerror(error)));
    }
}

Child::~Child()
{
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close(fd_);
}

void Child::kill(int signal)
{
    if (pid_ > 0)
        ::kill(pid_, signal);
}

int Child::wait(double seconds)
{
    int status = 0;

    if (pid_ <= 0 || !within(seconds, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }))
        return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- lines -------------------------------------------------------------------------------------
 */

static void line_say(int fd, const std::string &line)
{
    const std::string text = line + "\n";
    if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) != (ssize_t)text.size())
        throw Failure("the other process is gone: " + line);
}

static std::string line_hear(int fd, std::string *heard, double seconds)
{
    const double until = now_s() + seconds;
    size_t end;

    while ((end = heard->find('\n')) == std::string::npos) {
        struct pollfd ready = {fd, POLLIN, 0};
        char some[4096];
        const double left = until - now_s();

        if (left <= 0 || poll(&ready, 1, (int)(left * 1000) + 1) < 0)
            throw Failure("the other process says nothing");
        if (ready.revents == 0)
            continue;
        const ssize_t got = recv(fd, some, sizeof some, 0);
        if (got <= 0)
            throw Failure("the other process has ended");
        heard->append(some, (size_t)got);
    }
    const std::string line = heard->substr(0, end);
    heard->erase(0, end + 1);
    return line;
}

void Child::say(const std::string &line) { line_say(fd_, line); }
std::string Child::hear(double seconds) { return line_hear(fd_, &heard_, seconds); }

void say(const std::string &line) { line_say(0, line); }
std::string hear(double seconds)
{
    static std::string heard;
    return line_hear(0, &heard, seconds);
}

/* ---- meeting -----------------------------------------------------------------------------------
 */

std::string hex(const void *bytes, size_t count)
{
    std::string out;
    for (size_t i = 0; i < count; i++)
        out += format("%02x", ((const unsigned char *)bytes)[i]);
    return out;
}

static twill_unique_id from_hex(const std::string &text)
{
    twill_unique_id id;
    if (text.size() != 2 * sizeof id.bytes)
        throw Failure("no id: " + text);
    for (size_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (char)std::stoi(text.substr(2 * i, 2), nullptr, 16);
    return id;
}

std::vector<twill_comm_t> join_by_id(int size, int first, const std::vector<int> &devices)
{
    std::vector<twill_comm_t> comms(devices.size());
    twill_unique_id id;

    if (first == 0) {
        TWILL(twill_get_unique_id(&id), nullptr);
        say(hex(id.bytes, sizeof id.bytes));
    } else {
        id = from_hex(hear());
    }
    grouped([&] {
        for (size_t i = 0; i < devices.size(); i++) {
            struct twill_config config = TWILL_CONFIG_INIT;
            config.device = devices[i];
            TWILL(twill_comm_init(&comms[i], size, &id, first + (int)i, &config), nullptr);
        }
    });
    return comms;
}

std::vector<twill_comm_t> join_by_id(int size, int first, int here, int device)
{
    return join_by_id(size, first, std::vector<int>((size_t)here, device));
}

void pass_id(std::vector<Child *> children)
{
    const std::string id = children[0]->hear(60);
    for (size_t i = 1; i < children.size(); i++)
        children[i]->say(id);
}

} // namespace gpu
