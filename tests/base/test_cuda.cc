/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/cuda.h, in a build without CUDA, on a machine without a device, and on one that
 * has some. Never knows: which of the three it runs on, but by asking. */
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/cuda.h"
}
#include "config.h"

namespace
{

/* ---- where there is no device: each call says so, and that is all it does ----------------------
 */

class CudaAbsent : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        if (tw_cuda_absence() == nullptr)
            GTEST_SKIP() << "there are devices";
    }
    /* The status, and the sentence that tw_cuda_absence has. */
    static void expect_absent(enum twill_status status)
    {
        EXPECT_EQ(status, TWILL_ERR_UNSUPPORTED);
        EXPECT_STREQ(tw_fail_text(), tw_cuda_absence());
        (void)tw_fail_again(TWILL_ERR_INTERNAL, "another sentence");
    }
    int mark_ = 0;
    void *ptr_ = &mark_;
    bool flag_ = true;
    size_t bytes_ = 77;
};

TEST_F(CudaAbsent, TheSentenceSaysWhy)
{
    int driver = -1, runtime = -1;
    tw_cuda_versions(&driver, &runtime);
    const std::string why = tw_cuda_absence();
#ifdef TW_HAVE_CUDA
    EXPECT_GE(runtime, 12000);
    EXPECT_NE(why.find(driver == 0 ? "no CUDA driver" : "the CUDA driver"), std::string::npos)
        << why;
#else
    EXPECT_EQ(runtime, 0);
    EXPECT_EQ(driver, 0);
    EXPECT_EQ(why, "this build has no CUDA");
#endif
    EXPECT_EQ(tw_cuda_device_count(), 0);
    for (int i = 0; i < 3; i++)
        expect_absent(tw_cuda_ready());
}

TEST_F(CudaAbsent, AnyThreadMayAskFirst)
{
    std::vector<std::thread> all;
    for (int i = 0; i < 8; i++)
        all.emplace_back([] { expect_absent(tw_cuda_ready()); });
    for (auto &thread : all)
        thread.join();
}

TEST_F(CudaAbsent, Devices)
{
    struct tw_cuda_device found = {};
    found.major = 42;
    for (const int device : {-1, 0, 1, 1 << 30})
        expect_absent(tw_cuda_device_read(device, &found));
    EXPECT_EQ(found.major, 42);
    expect_absent(tw_cuda_peer_enable(0, 1, &flag_));
    expect_absent(tw_cuda_peer_can(0, 1, &flag_));
    EXPECT_TRUE(flag_);
    int device = 5;
    expect_absent(tw_cuda_device_find(found.uuid, &device));
    EXPECT_EQ(device, 5);
}

TEST_F(CudaAbsent, Memory)
{
    struct tw_cuda_memory memory = {TW_CUDA_MANAGED, 9, true};
    uint8_t handle[TW_CUDA_IPC_BYTES] = {7};
    expect_absent(tw_cuda_alloc(0, 100, &ptr_));
    expect_absent(tw_cuda_pinned_alloc(100, &ptr_));
    expect_absent(tw_cuda_host_pin(0, ptr_, 4096));
    expect_absent(tw_cuda_host_find(0, &mark_, &ptr_));
    tw_cuda_host_unpin(0, nullptr);
    expect_absent(tw_cuda_memory_find(&mark_, &memory));
    expect_absent(tw_cuda_memory_find(nullptr, &memory));
    expect_absent(tw_cuda_memory_range(&mark_, &ptr_, &bytes_));
    expect_absent(tw_cuda_ipc_export(&mark_, handle));
    expect_absent(tw_cuda_ipc_open(0, handle, &ptr_));
    expect_absent(tw_cuda_copy(0, &mark_, &mark_, sizeof mark_, nullptr));
    expect_absent(tw_cuda_copy_now(0, &mark_, &mark_, sizeof mark_));
    tw_cuda_free(0, nullptr);
    tw_cuda_pinned_free(nullptr);
    tw_cuda_ipc_close(0, nullptr);
    EXPECT_EQ(ptr_, &mark_);
    EXPECT_EQ(bytes_, 77u);
    EXPECT_EQ(memory.kind, TW_CUDA_MANAGED);
    EXPECT_EQ(handle[0], 7);
}

TEST_F(CudaAbsent, MemoryOfOtherKinds)
{
    struct tw_cuda_access access = {TW_CUDA_POOL, 8};
    struct tw_cuda_span span = {};
    const int devices[] = {0};
    int fd = 9;
    expect_absent(tw_cuda_access_find(0, &mark_, sizeof mark_, devices, 1, &access));
    expect_absent(tw_cuda_access_give(0, &mark_, sizeof mark_, devices, 1));
    expect_absent(tw_cuda_piece_find(0, &mark_, &ptr_, &bytes_));
    expect_absent(tw_cuda_piece_export(0, &mark_, &fd));
    expect_absent(tw_cuda_span_reserve(0, 4096, &span));
    expect_absent(tw_cuda_span_map(0, &span, 0, 0));
    tw_cuda_span_free(0, &span);
    EXPECT_EQ(access.lacking, 8);
    EXPECT_EQ(ptr_, &mark_);
    EXPECT_EQ(bytes_, 77u);
    EXPECT_EQ(fd, 9);
    EXPECT_EQ(span.base, nullptr);
}

TEST_F(CudaAbsent, StreamsAndEvents)
{
    expect_absent(tw_cuda_stream_create(0, &ptr_));
    expect_absent(tw_cuda_stream_wait(0, nullptr));
    expect_absent(tw_cuda_stream_query(0, nullptr, &flag_));
    expect_absent(tw_cuda_stream_capturing(0, nullptr, &flag_));
    expect_absent(tw_cuda_capture_last(0, nullptr, 1, &ptr_));
    expect_absent(tw_cuda_event_create(0, &ptr_));
    expect_absent(tw_cuda_event_record(0, &mark_, nullptr));
    expect_absent(tw_cuda_event_await(0, &mark_, nullptr));
    expect_absent(tw_cuda_event_done(0, &mark_, &flag_));
    tw_cuda_stream_destroy(0, nullptr);
    tw_cuda_event_destroy(0, nullptr);
    EXPECT_EQ(ptr_, &mark_);
    EXPECT_TRUE(flag_);
}

/* ---- where there are some ----------------------------------------------------------------------
 */

#define OK(call) ASSERT_EQ((call), TWILL_OK) << tw_fail_text()

class CudaDevice : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        if (tw_cuda_absence() != nullptr)
            GTEST_SKIP() << tw_cuda_absence();
        last_ = tw_cuda_device_count() - 1;
    }
    int last_ = 0;
};

constexpr size_t kBytes = 3 * 1000 * 1000 + 7;

TEST_F(CudaDevice, AreDescribed)
{
    int driver = 0, runtime = 0;
    tw_cuda_versions(&driver, &runtime);
    EXPECT_GE(driver, 12000);
    EXPECT_GE(runtime, 12000);
    OK(tw_cuda_ready());
    std::string seen;
    for (int device = 0; device <= last_; device++) {
        struct tw_cuda_device found;
        OK(tw_cuda_device_read(device, &found));
        EXPECT_GT(strlen(found.name), 0u);
        EXPECT_EQ(strspn(found.pci, "0123456789abcdef:."), strlen(found.pci)) << found.pci;
        EXPECT_GE(strlen(found.pci), 12u);
        EXPECT_GT(found.multiprocessors, 0);
        EXPECT_GE(found.threads_each, 512);
        EXPECT_GE(found.major, 5);
        EXPECT_GT(found.bytes, (size_t)1 << 28);
        const std::string uuid((const char *)found.uuid, sizeof found.uuid);
        EXPECT_EQ(seen.find(uuid), std::string::npos) << "two devices with one uuid";
        seen += uuid;
    }
    struct tw_cuda_device none;
    for (const int device : {-1, last_ + 1, 1 << 30}) {
        EXPECT_EQ(tw_cuda_device_read(device, &none), TWILL_ERR_INVALID);
        EXPECT_NE(std::string(tw_fail_text()).find(std::to_string(device)), std::string::npos);
    }
}

TEST_F(CudaDevice, MemoryIsZeroedCopiedAndFound)
{
    void *memory = nullptr, *base = nullptr;
    size_t bytes = 0;
    struct tw_cuda_memory found;
    OK(tw_cuda_alloc(last_, kBytes, &memory));
    std::vector<unsigned char> host(kBytes, 9), back(kBytes, 9);
    OK(tw_cuda_copy_now(last_, back.data(), memory, kBytes));
    EXPECT_EQ(back, std::vector<unsigned char>(kBytes, 0));
    for (size_t i = 0; i < kBytes; i++)
        host[i] = (unsigned char)(i * 7 + i / 251);
    OK(tw_cuda_copy_now(last_, memory, host.data(), kBytes));
    OK(tw_cuda_copy_now(last_, back.data(), memory, kBytes));
    EXPECT_EQ(back, host);
    for (const size_t at : {(size_t)0, (size_t)1, kBytes - 1}) {
        OK(tw_cuda_memory_find(static_cast<char *>(memory) + at, &found));
        EXPECT_EQ(found.kind, TW_CUDA_DEVICE);
        EXPECT_EQ(found.device, last_);
        EXPECT_FALSE(found.apart);
        OK(tw_cuda_memory_range(static_cast<char *>(memory) + at, &base, &bytes));
        EXPECT_EQ(base, memory);
        EXPECT_GE(bytes, kBytes);
    }
    uint8_t handle[TW_CUDA_IPC_BYTES];
    EXPECT_EQ(tw_cuda_ipc_export(memory, handle), TWILL_OK) << tw_fail_text();
    tw_cuda_free(last_, memory);
    OK(tw_cuda_memory_find(memory, &found));
    EXPECT_EQ(found.kind, TW_CUDA_PLAIN) << "freed";
}

TEST_F(CudaDevice, HostMemoryIsPlainOrPinned)
{
    struct tw_cuda_memory found = {TW_CUDA_MANAGED, 5, true};
    void *pinned = nullptr, *base = nullptr;
    size_t bytes = 0;
    uint8_t handle[TW_CUDA_IPC_BYTES];
    int local = 0;
    for (const void *plain : {(const void *)&local, (const void *)nullptr, (const void *)16}) {
        OK(tw_cuda_memory_find(plain, &found));
        EXPECT_EQ(found.kind, TW_CUDA_PLAIN);
        EXPECT_EQ(found.device, -1);
        EXPECT_EQ(tw_cuda_memory_range(plain, &base, &bytes), TWILL_ERR_INVALID);
        EXPECT_EQ(tw_cuda_ipc_export(plain, handle), TWILL_ERR_UNSUPPORTED);
    }
    OK(tw_cuda_pinned_alloc(kBytes, &pinned));
    for (size_t i = 0; i < kBytes; i++)
        ASSERT_EQ(static_cast<char *>(pinned)[i], 0);
    OK(tw_cuda_memory_find(static_cast<char *>(pinned) + 5, &found));
    EXPECT_EQ(found.kind, TW_CUDA_PINNED);
    EXPECT_EQ(found.device, -1);
    tw_cuda_pinned_free(pinned);
    OK(tw_cuda_memory_find(pinned, &found));
    EXPECT_EQ(found.kind, TW_CUDA_PLAIN);
}

TEST_F(CudaDevice, HostMemoryIsPinnedAfterwards)
{
    const size_t bytes = 1 << 20;
    struct tw_cuda_memory found;
    void *shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *at = nullptr;
    ASSERT_NE(shared, MAP_FAILED);
    OK(tw_cuda_host_pin(last_, shared, bytes));
    EXPECT_NE(tw_cuda_host_pin(last_, shared, bytes), TWILL_OK) << "twice";
    OK(tw_cuda_memory_find(shared, &found));
    EXPECT_EQ(found.kind, TW_CUDA_PINNED);
    for (int device = 0; device <= last_; device++) {
        const int number = 1000 + device;
        int back = 0;
        OK(tw_cuda_host_find(device, shared, &at));
        OK(tw_cuda_copy_now(device, at, &number, sizeof number));
        OK(tw_cuda_copy_now(device, &back, at, sizeof back));
        EXPECT_EQ(back, number);
        EXPECT_EQ(*static_cast<int *>(shared), number);
    }
    tw_cuda_host_unpin(last_, shared);
    OK(tw_cuda_memory_find(shared, &found));
    EXPECT_EQ(found.kind, TW_CUDA_PLAIN);
    munmap(shared, bytes);
}

TEST_F(CudaDevice, AreFoundByWhatOthersCallThem)
{
    struct tw_cuda_device found;
    int device = -7;
    for (int i = 0; i <= last_; i++) {
        OK(tw_cuda_device_read(i, &found));
        OK(tw_cuda_device_find(found.uuid, &device));
        EXPECT_EQ(device, i);
    }
    found.uuid[3] ^= 1;
    OK(tw_cuda_device_find(found.uuid, &device));
    EXPECT_EQ(device, -1);
}

TEST_F(CudaDevice, OutOfMemoryIsSaid)
{
    void *memory = &memory;
    EXPECT_EQ(tw_cuda_alloc(last_, (size_t)1 << 50, &memory), TWILL_ERR_NOMEM);
    EXPECT_EQ(memory, &memory);
    EXPECT_NE(std::string(tw_fail_text()).find("cudaErrorMemoryAllocation"), std::string::npos);
    EXPECT_EQ(tw_cuda_alloc(last_ + 1, 1, &memory), TWILL_ERR_INVALID);
    EXPECT_EQ(tw_cuda_alloc(-1, 1, &memory), TWILL_ERR_INVALID);
    OK(tw_cuda_alloc(last_, 1, &memory)); /* nothing is left behind */
    tw_cuda_free(last_, memory);
}

TEST_F(CudaDevice, StreamsAndEventsKeepOrder)
{
    void *stream = nullptr, *other = nullptr, *event = nullptr, *a = nullptr, *b = nullptr;
    bool flag = true;
    OK(tw_cuda_alloc(last_, kBytes, &a));
    OK(tw_cuda_alloc(last_, kBytes, &b));
    OK(tw_cuda_stream_create(last_, &stream));
    OK(tw_cuda_stream_create(last_, &other));
    OK(tw_cuda_event_create(last_, &event));
    std::vector<unsigned char> host(kBytes, 3), back(kBytes, 9);
    OK(tw_cuda_copy_now(last_, a, host.data(), kBytes));
    OK(tw_cuda_copy(last_, b, a, kBytes, stream));
    OK(tw_cuda_event_record(last_, event, stream));
    OK(tw_cuda_event_await(last_, event, other));
    OK(tw_cuda_copy(last_, a, b, kBytes, other));
    OK(tw_cuda_copy(last_, a, b, 0, other));
    OK(tw_cuda_stream_wait(last_, other));
    OK(tw_cuda_event_done(last_, event, &flag));
    EXPECT_TRUE(flag);
    OK(tw_cuda_stream_query(last_, stream, &flag));
    EXPECT_TRUE(flag);
    for (void *asked : {stream, (void *)nullptr}) {
        flag = true;
        OK(tw_cuda_stream_capturing(last_, asked, &flag));
        EXPECT_FALSE(flag);
    }
    OK(tw_cuda_copy_now(last_, back.data(), a, kBytes));
    EXPECT_EQ(back, host);
    tw_cuda_event_destroy(last_, event);
    tw_cuda_stream_destroy(last_, stream);
    tw_cuda_stream_destroy(last_, other);
    tw_cuda_free(last_, a);
    tw_cuda_free(last_, b);
}

TEST_F(CudaDevice, PeersAreEnabledTwice)
{
    bool can = false;
    OK(tw_cuda_peer_enable(0, 0, &can));
    EXPECT_TRUE(can);
    if (last_ == 0)
        GTEST_SKIP() << "one device";
    bool again = false;
    OK(tw_cuda_peer_enable(0, last_, &can));
    OK(tw_cuda_peer_enable(0, last_, &again));
    EXPECT_EQ(can, again);
    OK(tw_cuda_peer_can(0, last_, &again));
    EXPECT_EQ(can, again);
    OK(tw_cuda_peer_can(last_, last_, &can));
    EXPECT_TRUE(can);
}

#ifdef TW_HAVE_CUDA
} // namespace
#include <cuda_runtime_api.h>
namespace
{

TEST_F(CudaDevice, TheThreadsDeviceStaysAndNoErrorStaysBehind)
{
    for (int mine = 0; mine <= last_; mine++) {
        std::thread([mine, this] {
            int now = -1;
            void *memory = nullptr;
            ASSERT_EQ(cudaSetDevice(mine), cudaSuccess);
            for (int device = 0; device <= last_; device++) {
                OK(tw_cuda_alloc(device, 100, &memory));
                tw_cuda_free(device, memory);
                EXPECT_EQ(tw_cuda_alloc(device, (size_t)1 << 50, &memory), TWILL_ERR_NOMEM);
                ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
                EXPECT_EQ(now, mine);
                EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
            }
        }).join();
    }
}

TEST_F(CudaDevice, AThreadThatChoseNoneStaysOnTheFirst)
{
    std::thread([this] {
        int now = -1;
        void *memory = nullptr;
        OK(tw_cuda_alloc(last_, 100, &memory));
        ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
        EXPECT_EQ(now, 0);
        tw_cuda_free(last_, memory);
    }).join();
}

TEST_F(CudaDevice, MemoryIsHadWhileAGraphIsCaptured)
{
    void *stream = nullptr, *memory = nullptr;
    bool flag = false;
    OK(tw_cuda_stream_create(last_, &stream));
    ASSERT_EQ(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeGlobal),
              cudaSuccess);
    OK(tw_cuda_stream_capturing(last_, stream, &flag));
    EXPECT_TRUE(flag);
    OK(tw_cuda_alloc(last_, kBytes, &memory));
    struct tw_cuda_stream found = {};
    void *node = stream, *again = nullptr;
    OK(tw_cuda_stream_look(last_, stream, &found));
    OK(tw_cuda_capture_last(last_, stream, found.capture, &node));
    EXPECT_EQ(node, nullptr) << "there is none yet";
    ASSERT_EQ(cudaMemsetAsync(memory, 0, 4, (cudaStream_t)stream), cudaSuccess);
    OK(tw_cuda_capture_last(last_, stream, found.capture, &node));
    OK(tw_cuda_capture_last(last_, stream, found.capture, &again));
    EXPECT_NE(node, nullptr);
    EXPECT_EQ(node, again);
    OK(tw_cuda_capture_last(last_, stream, found.capture + 1, &again));
    EXPECT_EQ(again, nullptr) << "another capture";
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture((cudaStream_t)stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    OK(tw_cuda_stream_capturing(last_, stream, &flag));
    EXPECT_FALSE(flag);
    tw_cuda_free(last_, memory);
    tw_cuda_stream_destroy(last_, stream);
}

TEST_F(CudaDevice, TheDefaultStreamDuringAnothersCapture)
{
    cudaStream_t stream = nullptr;
    bool flag = false;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess); /* one that waits for the default stream */
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(tw_cuda_stream_capturing(0, nullptr, &flag), TWILL_ERR_USAGE);
    EXPECT_NE(std::string(tw_fail_text()).find("default stream of device 0"), std::string::npos);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "asking ended the capture";
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}
#endif

} // namespace
