/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which arguments and states are errors and what stays usable. Never knows: how it is
 * checked. */
#include <climits>
#include <cstdint>

#include "world.h"

extern "C" {
#include "comm/comm.h"
}

namespace
{

void says(twill_comm_t comm, const char *part)
{
    EXPECT_NE(world::text(comm).find(part), std::string::npos)
        << "\"" << world::text(comm) << "\" does not say \"" << part << "\"";
}

TEST(Errors, HandlesThatAreNone)
{
    world::run_alone([] {
        int x = 0;
        enum twill_status status;
        alignas(64) static char zeros[16384];
        twill_comm_t foreign = reinterpret_cast<twill_comm_t>(zeros);
        for (twill_comm_t comm : {(twill_comm_t) nullptr, foreign}) {
            EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      TWILL_ERR_INVALID);
            says(nullptr, comm ? "no communicator" : "NULL");
            EXPECT_EQ(twill_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, 0, comm, nullptr),
                      TWILL_ERR_INVALID);
            EXPECT_EQ(twill_broadcast(&x, &x, 1, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_reduce_scatter(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      TWILL_ERR_INVALID);
            EXPECT_EQ(twill_all_gather(&x, &x, 1, TWILL_INT32, comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_all_to_all(&x, &x, 1, TWILL_INT32, comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_send(&x, 1, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_recv(&x, 1, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_finalize(comm), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_abort(comm), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_async_error(comm, &status), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_rank(comm, &x), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_size(comm, &x), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_comm_device(comm, &x), TWILL_ERR_INVALID);
            twill_reg_t reg;
            EXPECT_EQ(twill_register(comm, &x, 4, &reg), TWILL_ERR_INVALID);
            EXPECT_EQ(twill_deregister(comm, nullptr), TWILL_ERR_INVALID);
        }
        EXPECT_OK(twill_comm_destroy(nullptr), nullptr);
        EXPECT_EQ(twill_comm_destroy(foreign), TWILL_ERR_INVALID);
        EXPECT_STRNE(twill_last_error(foreign), "");
    });
}

TEST(Errors, InitArguments)
{
    world::run_alone([] {
        twill_unique_id id;
        twill_comm_t comm = nullptr;
        EXPECT_EQ(twill_get_unique_id(nullptr), TWILL_ERR_INVALID);
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        EXPECT_EQ(twill_comm_init(nullptr, 1, &id, 0, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_init(&comm, 1, nullptr, 0, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_init(&comm, 0, &id, 0, nullptr), TWILL_ERR_INVALID);
        says(nullptr, "size is 0");
        for (int size : {65537, INT_MAX, INT_MIN}) {
            EXPECT_EQ(twill_comm_init(&comm, size, &id, 0, nullptr), TWILL_ERR_INVALID) << size;
            says(nullptr, "must be 1 to 65536");
            twill_comm_t *untouched = &comm; /* as if there were room for so many */
            EXPECT_EQ(twill_comm_init_all(untouched, size, nullptr, nullptr), TWILL_ERR_INVALID);
        }
        EXPECT_EQ(twill_comm_init(&comm, 2, &id, 2, nullptr), TWILL_ERR_INVALID);
        says(nullptr, "rank 2 is out of range");
        EXPECT_EQ(twill_comm_init(&comm, 2, &id, -1, nullptr), TWILL_ERR_INVALID);
        twill_unique_id garbage;
        memset(&garbage, 0x5a, sizeof garbage);
        EXPECT_EQ(twill_comm_init(&comm, 1, &garbage, 0, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_init_all(nullptr, 1, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_init_all(&comm, 0, nullptr, nullptr), TWILL_ERR_INVALID);
        const int nonsense = -7; /* devices: test_device.cc */
        EXPECT_EQ(twill_comm_init_all(&comm, 1, &nonsense, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_init_env(nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(comm, nullptr);
    });
}

TEST(Errors, ConfigFields)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr;
        auto init = [&](const twill_config &config) {
            const enum twill_status status = twill_comm_init_all(&comm, 1, nullptr, &config);
            if (status == TWILL_OK) {
                EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
            }
            return status;
        };
        twill_config config = TWILL_CONFIG_INIT;
        EXPECT_EQ(init(config), TWILL_OK);
        config.magic = 1;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        config = TWILL_CONFIG_INIT;
        config.size = 8;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        config = TWILL_CONFIG_INIT;
        config.blocking = 2;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        says(nullptr, "blocking is 2");
        config = TWILL_CONFIG_INIT;
        config.device = -5; /* others: test_device.cc */
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        config = TWILL_CONFIG_INIT;
        config.deterministic = 1;
        EXPECT_EQ(init(config), TWILL_OK);
        config.deterministic = 2;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        says(nullptr, "deterministic is 2");
        config = TWILL_CONFIG_INIT;
        config.channels = 1000;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        config.channels = 2;
        EXPECT_EQ(init(config), TWILL_OK);
        config.max_sms = -1;
        EXPECT_EQ(init(config), TWILL_ERR_INVALID);
        says(nullptr, "max_sms is -1, must be 0 (no bound), a number of multiprocessors");
        config.max_sms = 1; /* of no effect on the host */
        EXPECT_EQ(init(config), TWILL_OK);
        config.name = "the name of a communicator that is longer than any message has room for, "
                      "and is cut";
        EXPECT_EQ(init(config), TWILL_OK);
    });
}

/* Callers that were compiled with another header. */
TEST(Errors, ConfigOfOlderAndNewerCallers)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr;
        twill_config old = TWILL_CONFIG_INIT;
        old.size =
            offsetof(twill_config, device); /* knows `blocking` only: the rest is no config */
        old.version = 100;
        old.device = 77;
        old.deterministic = 77;
        old.channels = 77777;
        old.max_sms = -77;
        old.name = reinterpret_cast<const char *>(8);
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, &old), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        struct {
            twill_config known;
            int32_t unknown[8];
        } newer = {TWILL_CONFIG_INIT, {1, 2, 3, 4, 5, 6, 7, 8}};
        newer.known.size = sizeof newer;
        newer.known.version = TWILL_VERSION + 100;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, &newer.known), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Errors, CollectiveArgumentsLeaveTheCommunicatorHealthy)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        float x[64] = {}, y[64] = {};
        const size_t most = SIZE_MAX / sizeof(float) + 1;
        EXPECT_EQ(twill_all_reduce(nullptr, y, 1, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "sendbuf is NULL");
        EXPECT_EQ(twill_all_reduce(x, nullptr, 1, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_all_reduce(x, y, most, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_all_gather(x, y, SIZE_MAX / 8, TWILL_FLOAT32, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "more than memory");
        EXPECT_EQ(twill_all_reduce(x, y, 1, (twill_type_t)12, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "12 is no type");
        EXPECT_EQ(twill_all_reduce(x, y, 1, (twill_type_t)-1, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_all_reduce(x, y, 1, TWILL_FLOAT32, (twill_redop_t)8, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "8 is no reduction");
        EXPECT_EQ(twill_all_reduce(x, y, 1, TWILL_FLOAT32, (twill_redop_t)-1, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "-1 is no reduction");
        EXPECT_EQ(twill_all_reduce(x, y, 1, TWILL_FLOAT8E4M3, TWILL_BOR, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "bor is of integers, not of float8e4m3");
        EXPECT_EQ(twill_broadcast(x, y, 1, TWILL_FLOAT32, 2, comm, nullptr), TWILL_ERR_INVALID);
        says(comm, "root 2 is out of range");
        EXPECT_EQ(twill_reduce(x, y, 1, TWILL_FLOAT32, TWILL_SUM, -1, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_all_reduce(x, x + 1, 8, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        says(comm, "overlap");
        EXPECT_EQ(twill_all_to_all(x, x + 8, 8, TWILL_FLOAT32, comm, nullptr), TWILL_ERR_INVALID);
        says(comm, "are not in place");
        EXPECT_EQ(twill_all_gather(x + 8 * (1 - rank.rank), x, 8, TWILL_FLOAT32, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_reduce_scatter(x, x + 8 * (1 - rank.rank), 8, TWILL_FLOAT32, TWILL_SUM,
                                       comm, nullptr),
                  TWILL_ERR_INVALID);
        char no_stream[4096] = {};
        EXPECT_EQ(twill_barrier(comm, no_stream), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_send(x, 1, TWILL_FLOAT32, 2, comm, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_recv(x, 1, TWILL_FLOAT32, -1, comm, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_send(nullptr, 1, TWILL_FLOAT32, 1 - rank.rank, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_recv(x, most, TWILL_FLOAT32, 1 - rank.rank, comm, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_send(x, 1, TWILL_FLOAT32, rank.rank, comm, nullptr), TWILL_ERR_USAGE);
        EXPECT_EQ(twill_comm_rank(comm, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_async_error(comm, nullptr), TWILL_ERR_INVALID);
        enum twill_status status = TWILL_ERR_INTERNAL;
        EXPECT_OK(twill_comm_async_error(comm, &status), comm);
        EXPECT_EQ(status, TWILL_OK);
        x[0] = 2;
        EXPECT_OK(twill_all_reduce(x, y, 1, TWILL_FLOAT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_EQ(y[0], 4.0f);
        /* buffers that are ignored may be anything */
        EXPECT_OK(
            twill_broadcast(rank.rank == 0 ? x : nullptr, y, 1, TWILL_FLOAT32, 0, comm, nullptr),
            comm);
        EXPECT_OK(twill_reduce(x, rank.rank == 0 ? y : nullptr, 1, TWILL_FLOAT32, TWILL_SUM, 0,
                               comm, nullptr),
                  comm);
        EXPECT_OK(twill_all_reduce(nullptr, nullptr, 0, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  comm);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Errors, LastErrorIsOfThreadAndCommunicator)
{
    world::run_alone([] {
        twill_comm_t a, b;
        ASSERT_OK(twill_comm_init_all(&a, 1, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(&b, 1, nullptr, nullptr), nullptr);
        EXPECT_STREQ(twill_last_error(a), "");
        EXPECT_EQ(twill_barrier(nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_STREQ(twill_last_error(a), "");
        EXPECT_EQ(twill_comm_rank(a, nullptr), TWILL_ERR_INVALID);
        says(a, "comm_rank");
        EXPECT_STREQ(twill_last_error(b), "");
        says(nullptr, "barrier");
        world::threads(1, [&](int) { EXPECT_STREQ(twill_last_error(a), ""); });
        ASSERT_OK(twill_comm_abort(b), b);
        world::threads(1, [&](int) { says(b, "aborted"); });
        EXPECT_OK(twill_comm_destroy(a), nullptr);
        EXPECT_OK(twill_comm_destroy(b), nullptr);
    });
}

/* What a thread keeps of a communicator that another one has destroyed is not a new one's, which
 * may be at the same address. */
TEST(Errors, LastErrorIsNotInheritedByAddress)
{
    world::run_alone([] {
        static struct twill_comm place;
        uint64_t keys[2] = {};
        for (uint64_t &key : keys) {
            twill_comm_t comm = nullptr;
            ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
            key = tw_comm_key(comm);
            ASSERT_OK(twill_comm_destroy(comm), nullptr);
        }
        place.magic = TW_COMM_MAGIC;
        place.key = keys[0];
        EXPECT_EQ(twill_comm_rank(&place, nullptr), TWILL_ERR_INVALID);
        says(&place, "comm_rank");
        place.key = keys[1];
        EXPECT_STREQ(twill_last_error(&place), "");
        EXPECT_EQ(twill_comm_size(&place, nullptr), TWILL_ERR_INVALID);
        says(&place, "comm_size");
    });
}

TEST(Errors, ParametersFreezeWithTheFirstUse)
{
    world::run_alone([] {
        EXPECT_EQ(twill_param_set(nullptr, "1"), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_set("WARN", nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_set("STAGNIG", "1M"), TWILL_ERR_INVALID);
        says(nullptr, "STAGING");
        EXPECT_EQ(twill_param_set("STAGING", "lots"), TWILL_ERR_INVALID);
        EXPECT_OK(twill_param_set("STAGING", "16M"), nullptr);
        EXPECT_OK(twill_param_set("ALGO", "no_such"), nullptr);
        twill_comm_t comm = nullptr;
        EXPECT_EQ(twill_comm_init_all(&comm, 1, nullptr, nullptr), TWILL_ERR_INVALID);
        says(nullptr, "ring"); /* the known ones are listed */
        EXPECT_EQ(twill_param_set("ALGO", ""), TWILL_ERR_USAGE);
        int version = 0;
        EXPECT_OK(twill_version(&version), nullptr);
        EXPECT_EQ(version, TWILL_VERSION);
        EXPECT_EQ(twill_version(nullptr), TWILL_ERR_INVALID);
    });
}

} // namespace
