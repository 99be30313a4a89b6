/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the header says of arguments. Never knows: how they are checked. */
#include "property/wrong.h"

#include <cstring>

namespace property
{

namespace
{

const size_t MANY = SIZE_MAX / 2;
const size_t COUNT = 16; /* of bytes */
const int WAYS = 22;

struct Wrong {
    uint8_t in[32 * COUNT], out[32 * COUNT];
    size_t counts[16], many[16];
    int rank, size;
    twill_comm_t comm;
    twill_stream_t stream;

    enum twill_status call(int way);
    enum twill_status call_v(int way);
};

enum twill_status Wrong::call(int way)
{
    const auto no_type = (twill_type_t)99;
    const twill_type_t byte = TWILL_INT8;
    switch (way) {
    case 0:
        return twill_all_reduce(in, out, COUNT, no_type, TWILL_SUM, comm, stream);
    case 1:
        return twill_all_reduce(in, out, COUNT, byte, (twill_redop_t)77, comm, stream);
    case 2:
        return twill_all_reduce(in, out, 4, TWILL_FLOAT32, TWILL_BOR, comm, stream);
    case 3:
        return twill_all_reduce(in, in + 1, COUNT, byte, TWILL_SUM, comm, stream);
    case 4:
        return twill_all_reduce(nullptr, out, COUNT, byte, TWILL_SUM, comm, stream);
    case 5:
        return twill_all_reduce(in, out, MANY + 2, TWILL_INT64, TWILL_SUM, comm, stream);
    case 6:
        return twill_all_reduce(in, out, COUNT, byte, TWILL_SUM, nullptr, stream);
    case 7:
        return twill_broadcast(in, out, COUNT, byte, size, comm, stream);
    case 8:
        return twill_reduce(in, out, COUNT, byte, TWILL_MAX, -1, comm, stream);
    case 9:
        return twill_reduce_scatter(in, nullptr, COUNT, byte, TWILL_SUM, comm, stream);
    case 10:
        return twill_all_gather(in, out, COUNT, (twill_type_t)-1, comm, stream);
    case 11:
        return twill_all_to_all(in, in + COUNT / 2, COUNT, byte, comm, stream);
    case 12:
        return twill_gather(in, nullptr, COUNT, byte, rank, comm, stream);
    case 13:
        return twill_scatter(nullptr, out, COUNT, byte, rank, comm, stream);
    case 14:
        return twill_send(in, COUNT, byte, size, comm, stream);
    case 15:
        return twill_recv(out, COUNT, byte, -1, comm, stream);
    default:
        return call_v(way);
    }
}

enum twill_status Wrong::call_v(int way)
{
    const twill_type_t byte = TWILL_INT8;
    switch (way) {
    case 16:
        return twill_all_gather_v(in, out, nullptr, nullptr, byte, comm, stream);
    case 17:
        return twill_reduce_scatter_v(in, out, many, nullptr, byte, TWILL_SUM, comm, stream);
    case 18:
        return twill_all_to_all_v(in, counts, nullptr, out, nullptr, nullptr, byte, comm, stream);
    case 19: { /* to itself it sends less than it receives */
        size_t fewer[16];
        std::memcpy(fewer, counts, sizeof(fewer));
        fewer[rank]--;
        return twill_all_to_all_v(in, fewer, nullptr, out, counts, nullptr, byte, comm, stream);
    }
    case 20:
        return twill_gather_v(in, COUNT, out, nullptr, nullptr, byte, rank, comm, stream);
    default:
        return twill_scatter_v(in, counts, nullptr, out, COUNT + 1, byte, rank, comm, stream);
    }
}

} // namespace

std::string wrong_call(uint64_t roll, twill_comm_t comm, twill_stream_t stream, bool in_group)
{
    Wrong wrong = {};
    wrong.comm = comm;
    wrong.stream = stream;
    std::memset(wrong.out, 0xa5, sizeof(wrong.out));
    for (int i = 0; i < 16; i++) {
        wrong.counts[i] = COUNT;
        wrong.many[i] = MANY + 2;
    }
    if (twill_comm_rank(comm, &wrong.rank) || twill_comm_size(comm, &wrong.size))
        return "no rank or size";
    const bool to_itself = !in_group && roll % 16 == 0;
    const int way = to_itself ? WAYS : (int)(roll / 16 % WAYS);
    enum twill_status status =
        to_itself ? twill_send(wrong.in, COUNT, TWILL_INT8, wrong.rank, comm, stream)
                  : wrong.call(way);
    if (status != (to_itself ? TWILL_ERR_USAGE : TWILL_ERR_INVALID))
        return "wrong call " + std::to_string(way) + ": " + twill_status_string(status);
    if (*twill_last_error(way == 6 ? nullptr : comm) == 0)
        return "wrong call " + std::to_string(way) + ": no sentence";
    for (size_t i = 0; i < sizeof(wrong.out); i++)
        if (wrong.in[i] != 0 || wrong.out[i] != 0xa5)
            return "wrong call " + std::to_string(way) + " wrote";
    if (twill_comm_async_error(comm, &status) || status != TWILL_OK)
        return "wrong call " + std::to_string(way) + " broke the communicator";
    return "";
}

} // namespace property
