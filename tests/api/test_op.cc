/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what bitwise and created reductions promise. Never knows: how they are computed. */
#include "data.h"
#include "world.h"

namespace
{

/* Bits of 0 to 8 in each type, by its definition. */
uint64_t whole(twill_type_t type, unsigned value)
{
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e, 0x50};
    static const uint8_t e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47, 0x48};
    static const uint16_t half[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                    0x4500, 0x4600, 0x4700, 0x4800};
    const float single = (float)value;
    const double both = value;
    uint32_t word;
    uint64_t bits;
    switch (type) {
    case TWILL_FLOAT8E4M3:
        return e4m3[value];
    case TWILL_FLOAT8E5M2:
        return e5m2[value];
    case TWILL_FLOAT16:
        return half[value];
    case TWILL_BFLOAT16:
    case TWILL_FLOAT32:
        memcpy(&word, &single, 4);
        return type == TWILL_FLOAT32 ? word : word >> 16;
    case TWILL_FLOAT64:
        memcpy(&bits, &both, 8);
        return bits;
    default:
        return value;
    }
}

std::vector<unsigned char> filled(twill_type_t type, size_t count, unsigned value)
{
    const uint64_t bits = whole(type, value);
    const size_t bytes = data::type_bytes(type);
    std::vector<unsigned char> out(count * bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(&out[i * bytes], &bits, bytes);
    return out;
}

twill_redop_t create(twill_type_t type, unsigned value, twill_comm_t comm)
{
    const uint64_t scalar = whole(type, value);
    twill_redop_t op = TWILL_SUM;
    EXPECT_OK(twill_op_create_premul_sum(&op, &scalar, type, TWILL_SCALAR_VALUE, comm), comm);
    EXPECT_GE(op, TWILL_OP_CREATED);
    return op;
}

/* Each rank with its own scalar and handle; destroyed right after the call; in place or not. */
TEST(Op, CreatedSumsOfEveryType)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        for (int i = 0; i < rank.rank; i++) /* handles differ */
            create(TWILL_INT8, 1, comm);
        for (int t = 0; t < reference::type_count; t++) {
            const twill_type_t type = (twill_type_t)t;
            for (size_t count : {(size_t)1, (size_t)37, (size_t)100003}) {
                const std::vector<unsigned char> in = filled(type, count, 2);
                std::vector<unsigned char> out = in;
                const twill_redop_t op = create(type, (unsigned)rank.rank, comm);
                const void *send = count == 37 ? out.data() : in.data();
                ASSERT_OK(twill_all_reduce(send, out.data(), count, type, op, comm, nullptr), comm);
                ASSERT_OK(twill_op_destroy(op, comm), comm);
                EXPECT_EQ(out, filled(type, count, 0 * 2 + 1 * 2 + 2 * 2)) << "type " << t;
                EXPECT_EQ(in, filled(type, count, 2));
            }
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr); /* of some that were not destroyed, too */
    });
}

TEST(Op, CreatedSumsInReduceAndReduceScatterAndAlone)
{
    world::run_all(4, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        const twill_redop_t op = create(TWILL_INT32, (unsigned)rank.rank + 1, comm);
        std::vector<int32_t> x(4 * 1000, 3), y(1000, -1);
        ASSERT_OK(twill_reduce(x.data(), y.data(), 1000, TWILL_INT32, op, 2, comm, nullptr), comm);
        EXPECT_EQ(y, std::vector<int32_t>(1000, rank.rank == 2 ? 30 : -1));
        ASSERT_OK(twill_reduce_scatter(x.data(), y.data(), 1000, TWILL_INT32, op, comm, nullptr),
                  comm);
        EXPECT_EQ(y, std::vector<int32_t>(1000, 30));
        twill_comm_t alone;
        ASSERT_OK(twill_comm_init_all(&alone, 1, nullptr, nullptr), nullptr);
        const twill_redop_t twice = create(TWILL_INT32, 2, alone);
        ASSERT_OK(twill_all_reduce(y.data(), y.data(), 1000, TWILL_INT32, twice, alone, nullptr),
                  alone);
        EXPECT_EQ(y, std::vector<int32_t>(1000, 60)) << "one rank multiplies too";
        EXPECT_OK(twill_comm_destroy(alone), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Copied when a call is made: on a stream and in a group the handle is gone when the call runs. */
TEST(Op, OutlivedByItsCalls)
{
    world::run_streams(2, [](const world::Rank &rank, twill_comm_t comm, twill_stream_t stream) {
        std::vector<float> x(1 << 20, 1), y(100, 1), z(100, 1);
        if (rank.rank == 1)
            rank.meet(0); /* nothing of rank 0 can have run before */
        twill_redop_t op = create(TWILL_FLOAT32, 3, comm);
        ASSERT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT32, op, comm, stream),
                  comm);
        ASSERT_OK(twill_all_reduce(y.data(), y.data(), 100, TWILL_FLOAT32, op, comm, stream), comm);
        ASSERT_OK(twill_op_destroy(op, comm), comm);
        op = create(TWILL_FLOAT32, 5, comm);
        if (rank.rank == 0)
            rank.meet(0);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_all_reduce(z.data(), z.data(), 100, TWILL_FLOAT32, op, comm, stream), comm);
        ASSERT_OK(twill_op_destroy(op, comm), comm);
        ASSERT_OK(twill_group_end(), nullptr);
        ASSERT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_EQ(x, std::vector<float>(1 << 20, 6));
        EXPECT_EQ(y, std::vector<float>(100, 6));
        EXPECT_EQ(z, std::vector<float>(100, 10));
    });
}

/* A scalar by pointer is what its memory holds when the call runs, not when it was made. */
TEST(Op, ScalarByPointerIsReadWhenTheCallRuns)
{
    world::run_streams(2, [](const world::Rank &rank, twill_comm_t comm, twill_stream_t stream) {
        double scalar = 1;
        twill_redop_t op;
        ASSERT_OK(
            twill_op_create_premul_sum(&op, &scalar, TWILL_FLOAT64, TWILL_SCALAR_POINTER, comm),
            comm);
        std::vector<double> first(1 << 19, 1), x(100, 1);
        if (rank.rank == 1)
            rank.meet(0);
        /* rank 0's first call waits for rank 1, and its second for the first */
        ASSERT_OK(twill_all_reduce(first.data(), first.data(), first.size(), TWILL_FLOAT64,
                                   TWILL_SUM, comm, stream),
                  comm);
        ASSERT_OK(twill_all_reduce(x.data(), x.data(), 100, TWILL_FLOAT64, op, comm, stream), comm);
        if (rank.rank == 0) {
            scalar = 7;
            EXPECT_EQ(twill_stream_query(stream), TWILL_INPROGRESS);
            rank.meet(0);
        }
        ASSERT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_EQ(x, std::vector<double>(100, 8));
        scalar = 2;
        ASSERT_OK(twill_all_reduce(x.data(), x.data(), 100, TWILL_FLOAT64, op, comm, nullptr),
                  comm);
        EXPECT_EQ(x, std::vector<double>(100, 32));
    });
}

void says(twill_comm_t comm, const char *part)
{
    EXPECT_NE(world::text(comm).find(part), std::string::npos) << world::text(comm);
}

TEST(Op, ArgumentErrors)
{
    world::run_alone([] {
        twill_comm_t comms[2];
        ASSERT_OK(twill_comm_init_all(comms, 2, nullptr, nullptr), nullptr);
        twill_comm_t comm = comms[0];
        twill_redop_t op = TWILL_MAX;
        float scalar = 2, x = 1, y = 0;
        const auto made = [&](twill_redop_t *out, const void *from, int type, int where) {
            return twill_op_create_premul_sum(out, from, (twill_type_t)type, (twill_scalar_t)where,
                                              comm);
        };
        EXPECT_EQ(made(nullptr, &scalar, TWILL_FLOAT32, 1), TWILL_ERR_INVALID);
        says(comm, "output is NULL");
        EXPECT_EQ(made(&op, nullptr, TWILL_FLOAT32, 0), TWILL_ERR_INVALID);
        says(comm, "scalar is NULL");
        EXPECT_EQ(made(&op, &scalar, 12, 1), TWILL_ERR_INVALID);
        says(comm, "12 is no type");
        EXPECT_EQ(made(&op, &scalar, TWILL_FLOAT32, 2), TWILL_ERR_INVALID);
        says(comm, "2 is no residence");
        EXPECT_EQ(
            twill_op_create_premul_sum(&op, &scalar, TWILL_FLOAT32, TWILL_SCALAR_VALUE, nullptr),
            TWILL_ERR_INVALID);
        EXPECT_EQ(op, TWILL_MAX) << "written on success only";
        ASSERT_OK(made(&op, &scalar, TWILL_FLOAT32, 1), comm);
        const auto call = [&](twill_redop_t which, twill_type_t type, twill_comm_t where) {
            return twill_all_reduce(&x, &y, 1, type, which, where, nullptr);
        };
        EXPECT_EQ(call(op, TWILL_INT32, comm), TWILL_ERR_INVALID);
        says(comm, "is of float32, not of int32");
        EXPECT_EQ(call(op, TWILL_FLOAT32, comms[1]), TWILL_ERR_INVALID);
        says(comms[1], "is no reduction of communicator");
        EXPECT_EQ(twill_op_destroy(op, comms[1]), TWILL_ERR_INVALID);
        EXPECT_OK(twill_op_destroy(op, comm), comm);
        EXPECT_EQ(call(op, TWILL_FLOAT32, comm), TWILL_ERR_INVALID);
        says(comm, "or one that was destroyed");
        EXPECT_EQ(twill_op_destroy(op, comm), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_op_destroy(TWILL_SUM, comm), TWILL_ERR_INVALID);
        says(comm, "0 is no created reduction");
        EXPECT_EQ(twill_op_destroy((twill_redop_t)-1, comm), TWILL_ERR_INVALID);
        EXPECT_EQ(call(TWILL_BXOR, TWILL_FLOAT32, comm), TWILL_ERR_INVALID);
        says(comm, "bxor is of integers, not of float32");
        EXPECT_EQ(y, 0);
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_OK(twill_comm_finalize(comms[0]), comms[0]);
        EXPECT_OK(twill_comm_finalize(comms[1]), comms[1]);
        EXPECT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(made(&op, &scalar, TWILL_FLOAT32, 1), TWILL_ERR_USAGE);
        for (twill_comm_t each : comms)
            EXPECT_OK(twill_comm_destroy(each), nullptr);
    });
}

TEST(Op, BitwiseOfIntegers)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        const uint64_t mine[] = {0xff00ff00ff00ff0e, 0x0ff00ff00ff00ff6, 0x33333333333333f5};
        for (const twill_type_t type :
             {TWILL_INT8, TWILL_UINT8, TWILL_INT32, TWILL_UINT32, TWILL_INT64, TWILL_UINT64}) {
            const size_t count = 40000 / data::type_bytes(type);
            const std::vector<uint64_t> in(5000, mine[rank.rank]);
            std::vector<uint64_t> out(5000);
            ASSERT_OK(
                twill_all_reduce(in.data(), out.data(), count, type, TWILL_BAND, comm, nullptr),
                comm);
            EXPECT_EQ(out, std::vector<uint64_t>(5000, mine[0] & mine[1] & mine[2]));
            ASSERT_OK(
                twill_all_reduce(in.data(), out.data(), count, type, TWILL_BOR, comm, nullptr),
                comm);
            EXPECT_EQ(out, std::vector<uint64_t>(5000, mine[0] | mine[1] | mine[2]));
            ASSERT_OK(
                twill_all_reduce(in.data(), out.data(), count, type, TWILL_BXOR, comm, nullptr),
                comm);
            EXPECT_EQ(out, std::vector<uint64_t>(5000, mine[0] ^ mine[1] ^ mine[2]));
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Not every rank uses a created sum: named on every rank. */
TEST(Op, ACreatedSumDoesNotMatchASum)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        const twill_redop_t op = rank.rank == 0 ? TWILL_SUM : create(TWILL_INT8, 1, comm);
        int8_t x[8] = {}, y[8];
        EXPECT_EQ(twill_all_reduce(x, y, 8, TWILL_INT8, op, comm, nullptr), TWILL_ERR_MISMATCH);
        says(comm, "int8 premul_sum");
        says(comm, "int8 sum");
        if (rank.rank == 1) {
            EXPECT_OK(twill_op_destroy(op, comm), comm) << "in any state";
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
