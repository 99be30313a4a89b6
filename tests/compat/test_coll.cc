/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each call leaves in whose buffer. Never knows: how. */
#include <algorithm>
#include <functional>

#include "data.h"
#include "ranks.h"

using data::Buffer;
using ranks::Rank;

/* Small enough that every type holds every sum and product of up to four ranks. */
static double value_of(int rank, size_t i) { return 1 + (rank + (int)i) % 2; }

static const size_t count = 11;

static void fill(Buffer &buffer, size_t elements, int rank)
{
    for (size_t i = 0; i < elements; i++)
        buffer.put(i, value_of(rank, i));
}

/* What element i of the reduction of all ranks' fill() is. */
static double reduced(int op, int size, size_t i, int type)
{
    double sum = 0, product = 1, most = 0, least = 9;
    for (int rank = 0; rank < size; rank++) {
        const double value = value_of(rank, i);
        sum += value;
        product *= value;
        most = std::max(most, value);
        least = std::min(least, value);
    }
    const double mean = data::is_float(type) ? sum / size : (double)(int)(sum / size);
    const double all[] = {sum, product, most, least, mean};
    return all[op];
}

/* body for each type. */
static void each_type(const std::function<void(ncclDataType_t)> &body)
{
    for (int type = 0; type < ncclNumTypes; type++) {
        SCOPED_TRACE("type " + std::to_string(type));
        body((ncclDataType_t)type);
    }
}

static void each_type_and_op(const std::function<void(ncclDataType_t, ncclRedOp_t)> &body)
{
    each_type([&](ncclDataType_t type) {
        for (int op = 0; op < ncclNumOps; op++) {
            SCOPED_TRACE("op " + std::to_string(op));
            body(type, (ncclRedOp_t)op);
        }
    });
}

/* Three do not divide evenly: a mean of theirs is not exact. */
static bool exact(int size, int op) { return op != ncclAvg || size != 3; }

static void check_all_reduce(const Rank &r, ncclComm_t comm)
{
    each_type_and_op([&](ncclDataType_t type, ncclRedOp_t op) {
        Buffer in(type, count), out(type, count);
        fill(in, count, r.rank);
        EXPECT_NCCL(ncclAllReduce(in.at(), out.at(), count, type, op, comm, nullptr));
        EXPECT_NCCL(ncclAllReduce(in.at(), in.at(), count, type, op, comm, nullptr));
        for (size_t i = 0; exact(r.size, op) && i < count; i++) {
            EXPECT_TRUE(out.holds(i, reduced(op, r.size, i, type))) << i;
            EXPECT_TRUE(in.holds(i, reduced(op, r.size, i, type))) << i << " in place";
        }
    });
}

static void check_reduce(const Rank &r, ncclComm_t comm)
{
    const int root = r.size - 1;
    each_type_and_op([&](ncclDataType_t type, ncclRedOp_t op) {
        Buffer in(type, count), out(type, count);
        fill(in, count, r.rank);
        EXPECT_NCCL(ncclReduce(in.at(), r.rank == root ? out.at() : nullptr, count, type, op, root,
                               comm, nullptr));
        for (size_t i = 0; r.rank == root && exact(r.size, op) && i < count; i++)
            EXPECT_TRUE(out.holds(i, reduced(op, r.size, i, type))) << i;
    });
}

static void check_reduce_scatter(const Rank &r, ncclComm_t comm)
{
    each_type_and_op([&](ncclDataType_t type, ncclRedOp_t op) {
        const size_t own = (size_t)r.rank * count;
        Buffer in(type, (size_t)r.size * count), out(type, count);
        fill(in, (size_t)r.size * count, r.rank);
        EXPECT_NCCL(ncclReduceScatter(in.at(), out.at(), count, type, op, comm, nullptr));
        EXPECT_NCCL(ncclReduceScatter(in.at(), in.at(own), count, type, op, comm, nullptr));
        for (size_t i = 0; exact(r.size, op) && i < count; i++) {
            EXPECT_TRUE(out.holds(i, reduced(op, r.size, own + i, type))) << i;
            EXPECT_TRUE(in.holds(own + i, reduced(op, r.size, own + i, type))) << i << " in place";
        }
    });
}

static void check_broadcast(const Rank &r, ncclComm_t comm)
{
    const int root = r.size / 2;
    each_type([&](ncclDataType_t type) {
        Buffer in(type, count), out(type, count), both(type, count);
        fill(in, count, r.rank);
        fill(both, count, r.rank);
        EXPECT_NCCL(ncclBroadcast(r.rank == root ? in.at() : nullptr, out.at(), count, type, root,
                                  comm, nullptr));
        EXPECT_NCCL(ncclBcast(both.at(), count, type, root, comm, nullptr));
        for (size_t i = 0; i < count; i++) {
            EXPECT_TRUE(out.holds(i, value_of(root, i))) << i;
            EXPECT_TRUE(both.holds(i, value_of(root, i))) << i << " in place";
        }
    });
}

static void check_all_gather(const Rank &r, ncclComm_t comm)
{
    each_type([&](ncclDataType_t type) {
        const size_t own = (size_t)r.rank * count, all = (size_t)r.size * count;
        Buffer in(type, count), out(type, all), both(type, all);
        fill(in, count, r.rank);
        memcpy(both.at(own), in.at(), count * data::bytes_of(type));
        EXPECT_NCCL(ncclAllGather(in.at(), out.at(), count, type, comm, nullptr));
        EXPECT_NCCL(ncclAllGather(both.at(own), both.at(), count, type, comm, nullptr));
        for (size_t i = 0; i < all; i++) {
            EXPECT_TRUE(out.holds(i, value_of((int)(i / count), i % count))) << i;
            EXPECT_TRUE(both.holds(i, value_of((int)(i / count), i % count))) << i;
        }
    });
}

static void check_all_to_all(const Rank &r, ncclComm_t comm)
{
    each_type([&](ncclDataType_t type) {
        const size_t all = (size_t)r.size * count;
        Buffer in(type, all), out(type, all);
        fill(in, all, r.rank);
        EXPECT_NCCL(ncclAlltoAll(in.at(), out.at(), count, type, comm, nullptr));
        for (size_t i = 0; i < all; i++)
            EXPECT_TRUE(
                out.holds(i, value_of((int)(i / count), (size_t)r.rank * count + i % count)))
                << i;
    });
}

static void check_gather_and_scatter(const Rank &r, ncclComm_t comm)
{
    const int root = r.size - 1;
    const bool is_root = r.rank == root;
    each_type([&](ncclDataType_t type) {
        const size_t own = (size_t)r.rank * count, all = (size_t)r.size * count;
        Buffer in(type, count), many(type, all), out(type, count);
        fill(in, count, r.rank);
        EXPECT_NCCL(
            ncclGather(in.at(), is_root ? many.at() : nullptr, count, type, root, comm, nullptr));
        for (size_t i = 0; is_root && i < all; i++)
            EXPECT_TRUE(many.holds(i, value_of((int)(i / count), i % count))) << i;
        fill(many, all, root);
        EXPECT_NCCL(
            ncclScatter(is_root ? many.at() : nullptr, out.at(), count, type, root, comm, nullptr));
        for (size_t i = 0; i < count; i++)
            EXPECT_TRUE(out.holds(i, value_of(root, own + i))) << i;
    });
}

static void check_send_recv(const Rank &r, ncclComm_t comm)
{
    const int next = (r.rank + 1) % r.size, last = (r.rank + r.size - 1) % r.size;
    each_type([&](ncclDataType_t type) {
        Buffer in(type, count), out(type, count);
        fill(in, count, r.rank);
        EXPECT_NCCL(ncclGroupStart()); /* to itself, where it is alone */
        EXPECT_NCCL(ncclSend(in.at(), count, type, next, comm, nullptr));
        EXPECT_NCCL(ncclRecv(out.at(), count, type, last, comm, nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        for (size_t i = 0; i < count; i++)
            EXPECT_TRUE(out.holds(i, value_of(last, i))) << i;
    });
}

static void check_created(const Rank &r, ncclComm_t comm)
{
    each_type([&](ncclDataType_t type) {
        for (const ncclScalarResidence_t where : {ncclScalarHostImmediate, ncclScalarDevice}) {
            Buffer in(type, count), out(type, count), scalar(type, 1);
            ncclRedOp_t op = ncclSum;
            fill(in, count, r.rank);
            scalar.put(0, 2);
            EXPECT_NCCL(ncclRedOpCreatePreMulSum(&op, scalar.at(), type, where, comm));
            EXPECT_GE((int)op, (int)ncclNumOps);
            if (where == ncclScalarHostImmediate)
                scalar.put(0, 1); /* it was read */
            EXPECT_NCCL(ncclGroupStart());
            EXPECT_NCCL(ncclAllReduce(in.at(), out.at(), count, type, op, comm, nullptr));
            EXPECT_NCCL(ncclRedOpDestroy(op, comm)); /* right after the call */
            EXPECT_NCCL(ncclGroupEnd());
            for (size_t i = 0; i < count; i++)
                EXPECT_TRUE(out.holds(i, 2 * reduced(ncclSum, r.size, i, type))) << i;
            EXPECT_EQ(ncclAllReduce(in.at(), out.at(), count, type, op, comm, nullptr),
                      ncclInvalidArgument)
                << "it is destroyed";
        }
    });
}

using Check = void (*)(const Rank &, ncclComm_t);
struct Named {
    const char *name;
    Check check;
};
static const Named all[] = {
    {"AllReduce", check_all_reduce},
    {"Reduce", check_reduce},
    {"ReduceScatter", check_reduce_scatter},
    {"Broadcast", check_broadcast},
    {"AllGather", check_all_gather},
    {"AlltoAll", check_all_to_all},
    {"GatherAndScatter", check_gather_and_scatter},
    {"SendRecv", check_send_recv},
    {"PreMulSum", check_created},
};

class NcclColl : public ::testing::TestWithParam<std::tuple<size_t, int, bool>>
{
};

/* Every type and operation, ranks as processes and as threads. */
TEST_P(NcclColl, EveryTypeAndOperation)
{
    const auto [which, size, threads] = GetParam();
    const Check check = all[which].check;
    const ranks::Body body = [check](const Rank &r) {
        ncclComm_t comm = r.init();
        check(r, comm);
        EXPECT_NCCL(ncclCommDestroy(comm));
    };
    if (threads)
        ranks::threads(size, body);
    else
        ranks::processes(size, body);
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclColl,
                         ::testing::Combine(::testing::Range<size_t>(0, sizeof all / sizeof *all),
                                            ::testing::Values(1, 2, 3, 4), ::testing::Bool()),
                         [](const auto &info) {
                             return std::string(all[std::get<0>(info.param)].name) +
                                    std::to_string(std::get<1>(info.param)) +
                                    (std::get<2>(info.param) ? "threads" : "processes");
                         });

/* Several MiB, so that it goes in pieces. */
TEST(NcclLarge, AllReduce)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        const size_t many = (size_t)3 << 20;
        std::vector<float> buffer(many, (float)(r.rank + 1));
        EXPECT_NCCL(
            ncclAllReduce(buffer.data(), buffer.data(), many, ncclFloat, ncclSum, comm, nullptr));
        EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 3.0f), (ptrdiff_t)many);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* A collective of nothing is dropped: rank 1 does not make it. A message of nothing is one. */
TEST(NcclZero, CollectivesAreDroppedAndMessagesMatch)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        float one = 1;
        if (r.rank == 0) {
            EXPECT_NCCL(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm, nullptr));
            EXPECT_NCCL(ncclBroadcast(nullptr, nullptr, 0, ncclFloat, 1, comm, nullptr));
            EXPECT_NCCL(ncclAllGather(nullptr, nullptr, 0, ncclFloat, comm, nullptr));
            EXPECT_EQ(
                ncclAllReduce(nullptr, nullptr, 0, (ncclDataType_t)12, ncclSum, comm, nullptr),
                ncclInvalidArgument);
            EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, (ncclRedOp_t)7, comm, nullptr),
                      ncclInvalidArgument);
            EXPECT_EQ(ncclBroadcast(nullptr, nullptr, 0, ncclFloat, 2, comm, nullptr),
                      ncclInvalidArgument);
            EXPECT_NCCL(ncclSend(nullptr, 0, ncclFloat, 1, comm, nullptr));
        } else {
            EXPECT_NCCL(ncclRecv(nullptr, 0, ncclFloat, 0, comm, nullptr));
        }
        EXPECT_NCCL(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr));
        EXPECT_EQ(one, 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclZero, AMessageOfNothingDoesNotMatchOneOfSomething)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        float one = 1;
        const ncclResult_t result = r.rank == 0 ? ncclSend(&one, 0, ncclFloat, 1, comm, nullptr)
                                                : ncclRecv(&one, 1, ncclFloat, 0, comm, nullptr);
        if (r.rank == 1) {
            EXPECT_EQ(result, ncclInvalidUsage) << ranks::text();
        }
        r.meet(0);
        EXPECT_NCCL(ncclCommAbort(comm));
    });
}
