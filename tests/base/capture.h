/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to read what the log wrote. Never knows: what it should have written. */
#ifndef TESTS_BASE_CAPTURE_H
#define TESTS_BASE_CAPTURE_H

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

/* A folder of its own, emptied of the files made through path() and removed at the end. */
class Folder
{
  public:
    Folder()
    {
        const char *tmp = std::getenv("TMPDIR");
        name_ = std::string(tmp != nullptr ? tmp : "/tmp") + "/twill-test-XXXXXX";
        if (mkdtemp(&name_[0]) == nullptr)
            std::abort();
    }
    ~Folder() { (void)!std::system(("rm -rf '" + name_ + "'").c_str()); }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    std::string path(const std::string &file) const { return name_ + "/" + file; }

  private:
    std::string name_;
};

inline std::string text_of(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

#endif
