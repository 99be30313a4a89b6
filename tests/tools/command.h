/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to run a program and look at what it did. Never knows: which program. */
#ifndef TW_TESTS_TOOLS_COMMAND_H
#define TW_TESTS_TOOLS_COMMAND_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

inline bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* A program with its output in pipes; one stream, 1 or 2, may be a terminal instead. */
class Command
{
  public:
    explicit Command(const std::vector<std::string> &argv, const std::string &input = "",
                     const std::vector<std::string> &environment = {}, int terminal = 0)
    {
        int out_pipe[2], err_pipe[2], in_pipe[2];
        if (open_stream(out_pipe, terminal == 1) || open_stream(err_pipe, terminal == 2) ||
            pipe2(in_pipe, O_CLOEXEC))
            abort();
        pid = fork();
        if (pid == 0) {
            /* a background job of a shell starts with some of these ignored, and passes it on */
            for (int each : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
                signal(each, SIG_DFL);
            dup2(in_pipe[0], 0);
            dup2(out_pipe[1], 1);
            dup2(err_pipe[1], 2);
            for (const std::string &e : environment)
                putenv(const_cast<char *>(e.c_str()));
            std::vector<char *> args;
            for (const std::string &a : argv)
                args.push_back(const_cast<char *>(a.c_str()));
            args.push_back(nullptr);
            execvp(args[0], args.data());
            _exit(127);
        }
        close(out_pipe[1]);
        close(err_pipe[1]);
        close(in_pipe[0]);
        fds_[0] = out_pipe[0];
        fds_[1] = err_pipe[0];
        auto before = signal(SIGPIPE, SIG_IGN); /* a program need not read its input */
        if (write(in_pipe[1], input.data(), input.size()) < 0 && errno != EPIPE)
            abort();
        signal(SIGPIPE, before);
        close(in_pipe[1]);
    }
    ~Command()
    {
        if (pid > 0 && !waited_) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        close(fds_[0]);
        close(fds_[1]);
    }
    Command(const Command &) = delete;
    Command &operator=(const Command &) = delete;

    /* Read until the condition holds or everything is closed. */
    bool read_until(const std::function<bool()> &done)
    {
        bool open[2] = {true, true};
        while (!done() && (open[0] || open[1])) {
            struct pollfd set[2] = {{open[0] ? fds_[0] : -1, POLLIN, 0},
                                    {open[1] ? fds_[1] : -1, POLLIN, 0}};
            if (poll(set, 2, 60000) <= 0)
                break;
            for (int i = 0; i < 2; i++) {
                if (!set[i].revents)
                    continue;
                char text[4096];
                ssize_t n = read(fds_[i], text, sizeof(text));
                if (n > 0)
                    (i ? err : out).append(text, (size_t)n);
                else
                    open[i] = false;
            }
        }
        return done();
    }
    bool read_lines(size_t lines)
    {
        return read_until([&] { return split(out).size() >= lines && out.back() == '\n'; });
    }

    /* To the end: 0-255, or 1000 + signal when a signal ended it. */
    int finish()
    {
        read_until([] { return false; });
        int status = 0;
        waitpid(pid, &status, 0);
        waited_ = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }

    static std::vector<std::string> split(const std::string &text)
    {
        std::vector<std::string> lines;
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);)
            lines.push_back(line);
        return lines;
    }

    pid_t pid = -1;
    std::string out, err;

  private:
    static int open_stream(int fds[2], bool terminal)
    {
        if (!terminal)
            return pipe2(fds, O_CLOEXEC);
        return openpty(&fds[0], &fds[1], nullptr, nullptr, nullptr) ||
               fcntl(fds[0], F_SETFD, FD_CLOEXEC) || fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    }

    int fds_[2];
    bool waited_ = false;
};

/* Is the program there? Where every tool is wanted (CI=true), a missing one is a failure. */
inline bool have_tool(const std::string &name)
{
    Command which({"sh", "-c", "command -v \"$0\"", name});
    if (which.finish() == 0)
        return true;
    const char *ci = getenv("CI");
    if (ci && std::string(ci) == "true")
        ADD_FAILURE() << name << " is missing, and CI=true wants every tool";
    return false;
}

/* State and parent of a process; 'X' when there is none. */
inline char process_state(pid_t pid, pid_t *parent)
{
    std::string path = "/proc/" + std::to_string(pid) + "/stat";
    char text[512] = "", state = 'X';
    FILE *file = fopen(path.c_str(), "r");
    if (!file)
        return 'X';
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = 0;
    fclose(file);
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1, " %c %d", &state, parent) == 2 ? state : 'X';
}

/* In the order of their start. */
inline std::vector<pid_t> children_of(pid_t parent)
{
    std::vector<pid_t> children;
    DIR *proc = opendir("/proc");
    if (!proc)
        return children;
    while (struct dirent *entry = readdir(proc)) {
        pid_t pid = (pid_t)atoi(entry->d_name), its_parent = -1;
        if (pid > 0 && process_state(pid, &its_parent) != 'X' && its_parent == parent)
            children.push_back(pid);
    }
    closedir(proc);
    std::sort(children.begin(), children.end());
    return children;
}

/* Running: exists and is no zombie. */
inline bool process_runs(pid_t pid)
{
    pid_t parent;
    char state = process_state(pid, &parent);
    return state != 'Z' && state != 'X';
}

/* Wait for something that must come; false after 30 s. */
inline bool comes_true(const std::function<bool()> &condition)
{
    for (int i = 0; i < 30000; i++) {
        if (condition())
            return true;
        struct timespec ms = {0, 1000000}; /* between two looks */
        nanosleep(&ms, nullptr);
    }
    return false;
}

#endif
