/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/peers.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emu/runtime.h"

namespace emu
{

__thread int running = -1;

namespace
{

struct Reaches {
    Reach of[DEVICES][DEVICES] = {};
    bool lies = false;
};

[[noreturn]] void refuse(const std::string &one)
{
    fprintf(stderr, "TW_EMU_PEERS has \"%s\", which is no pair of devices and what is wrong\n",
            one.c_str());
    abort();
}

Reach reach_named(const char *name)
{
    static const char *const names[] = {"fine", "absent", "closed", "lost", "stale", "wrong"};

    for (int i = 0; i <= WRONG; i++)
        if (strcmp(names[i], name) == 0)
            return (Reach)i;
    return FINE;
}

bool is(const char *device, int number)
{
    return strcmp(device, "*") == 0 || strcmp(device, std::to_string(number).c_str()) == 0;
}

void add(const std::string &one, Reaches *reaches)
{
    char from[8], to[8], name[16];

    if (sscanf(one.c_str(), "%7[0-9*]-%7[0-9*]:%15s", from, to, name) != 3 ||
        reach_named(name) == FINE)
        refuse(one);
    for (int i = 0; i < DEVICES; i++)
        for (int j = 0; j < DEVICES; j++)
            if (i != j && is(from, i) && is(to, j))
                reaches->of[i][j] = reach_named(name);
    reaches->lies = reaches->lies || reach_named(name) >= LOST;
}

Reaches read_all()
{
    const char *const variable = getenv("TW_EMU_PEERS");
    std::string text = variable != nullptr ? variable : "";
    Reaches reaches;

    while (!text.empty()) {
        const size_t end = text.find(',');
        add(text.substr(0, end), &reaches);
        text = end == std::string::npos ? "" : text.substr(end + 1);
    }
    return reaches;
}

const Reaches &reaches()
{
    static const Reaches all = read_all();
    return all;
}

Reach to(const void *at)
{
    const int peer = running >= 0 ? owner(at) : -1;
    return peer >= 0 ? reach(running, peer) : FINE;
}

} // namespace

const bool lies = reaches().lies;

Reach reach(int device, int peer) { return reaches().of[device][peer]; }

uint32_t lie_load(const uint32_t *at, uint32_t value)
{
    const Reach found = to(at);
    return found == STALE ? 0 : found == WRONG ? value ^ 0x80 : value;
}

bool lie_store(const uint32_t *at) { return to(at) == LOST; }

} // namespace emu
