/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a described machine becomes a file for TWILL_TOPO_FILE. Never knows: who reads it. */
#ifndef TESTS_COMM_TOPO_FILE_H
#define TESTS_COMM_TOPO_FILE_H

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
#include "topo/xml.h"
}

/* A file with a text, gone afterwards. */
class TopoFile
{
  public:
    /* As twill-topo --xml writes it. */
    static std::string text_of(const char *machine)
    {
        struct tw_topo_graph *graph = nullptr;
        char *text = nullptr;
        size_t bytes = 0;
        std::string copy;

        if (tw_topo_synthetic(&graph, machine) == TWILL_OK &&
            tw_topo_xml_write(graph, &text, &bytes) == TWILL_OK)
            copy.assign(text, bytes);
        free(text);
        tw_topo_graph_free(graph);
        return copy;
    }
    explicit TopoFile(const std::string &text)
    {
        const int fd = mkstemp(path_);

        if (fd < 0 || write(fd, text.data(), text.size()) != (ssize_t)text.size())
            abort();
        close(fd);
    }
    ~TopoFile() { (void)unlink(path_); }
    TopoFile(const TopoFile &) = delete;
    TopoFile &operator=(const TopoFile &) = delete;
    const char *path() const { return path_; }

  private:
    char path_[32] = "/tmp/twill-test-topo-XXXXXX";
};

#endif
