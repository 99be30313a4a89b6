/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/file.c. Never knows: who reads which files. */
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include "base/file.h"
}
#include "capture.h"

namespace
{

/* What tw_file_read says; content takes the text. */
int read_all(const std::string &path, size_t most, std::string *content)
{
    char *text = nullptr;
    size_t bytes = 77;
    const int error = tw_file_read(path.c_str(), most, &text, &bytes);
    if (error != 0) {
        EXPECT_EQ(nullptr, text);
        EXPECT_EQ(77u, bytes);
        return error;
    }
    EXPECT_NE(nullptr, text);
    content->assign(text, bytes);
    free(text);
    return 0;
}

TEST(File, IsReadWholeUpToTheMostThatIsAccepted)
{
    const Folder folder;
    const std::string path = folder.path("text");
    for (const size_t length : {0u, 1u, 16383u, 16384u, 16385u, 100000u}) {
        std::string made(length, 'x'), content;
        for (size_t i = 0; i < length; i++)
            made[i] = static_cast<char>(i * 31);
        std::ofstream(path, std::ios::binary) << made;
        for (const size_t most : {length, length + 1, static_cast<size_t>(1) << 40}) {
            EXPECT_EQ(0, read_all(path, most, &content)) << length;
            EXPECT_EQ(made, content) << length;
        }
        if (length > 0) {
            EXPECT_EQ(EFBIG, read_all(path, length - 1, &content));
            EXPECT_EQ(EFBIG, read_all(path, 0, &content));
        }
    }
}

TEST(File, ThatIsNoneOrHasNoEndIsAnError)
{
    const Folder folder;
    std::string content;
    EXPECT_EQ(ENOENT, read_all(folder.path("none"), 100, &content));
    EXPECT_EQ(ENOENT, read_all("", 100, &content));
    EXPECT_EQ(EISDIR, read_all(folder.path(""), 100, &content));
    EXPECT_EQ(EFBIG, read_all("/dev/zero", 1 << 20, &content));
    EXPECT_EQ(EFBIG, read_all("/dev/full", 1 << 20, &content));
    EXPECT_EQ(0, read_all("/dev/null", 100, &content));
    EXPECT_EQ("", content);
}

TEST(File, APipeIsEmptyWithoutAWriterAndReadToItsEndWithOne)
{
    const Folder folder;
    const std::string path = folder.path("pipe");
    std::string content = "something";
    ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
    EXPECT_EQ(0, read_all(path, 100, &content));
    EXPECT_EQ("", content);

    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    const std::string made(50000, 'y');
    ASSERT_EQ(static_cast<ssize_t>(made.size()), write(ends[1], made.data(), made.size()));
    close(ends[1]);
    EXPECT_EQ(0, read_all("/proc/self/fd/" + std::to_string(ends[0]), 1 << 20, &content));
    EXPECT_EQ(made, content);
    close(ends[0]);
}

/* The descriptor that is handed out waits for who has a pipe open for writing. */
TEST(File, OpensForReadsThatBlock)
{
    const int fd = tw_file_open("/proc/self/status");
    ASSERT_GE(fd, 0);
    EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
    close(fd);
    EXPECT_EQ(-1, tw_file_open("/nowhere/at/all"));
    EXPECT_EQ(ENOENT, errno);
}

} // namespace
