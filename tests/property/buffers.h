/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: one rank's side of a call: its buffers, guards around them, and the call itself.
 * Never knows: which values are right. */
#ifndef TESTS_PROPERTY_BUFFERS_H
#define TESTS_PROPERTY_BUFFERS_H

#include "property/expect.h"

namespace property
{

class Buffers
{
  public:
    Buffers(const Case &c, const Call &call, int rank);
    ~Buffers();
    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;

    /* Before the call and outside of groups: makes its reduction, if it is a created one. */
    enum twill_status prepare(twill_comm_t comm);
    enum twill_status call(twill_comm_t comm, twill_stream_t stream);
    /* "": right. What must not be written is looked at too. */
    std::string check() const;
    const Call &what() const { return call_; }

  private:
    struct Side {
        std::vector<size_t> counts, displs; /* a block each; in elements */
        size_t bytes = 0;                   /* from the first block's start to the last one's end */
        std::vector<uint8_t> memory, before;
        uint8_t *at = nullptr;
    };
    bool has(bool in) const;
    size_t count_of(int block, bool in) const;
    void lay(Side *side, bool in);
    enum twill_status call_v(const void *send, void *recv, twill_comm_t comm,
                             twill_stream_t stream) const;
    enum twill_status exchange(twill_comm_t comm, twill_stream_t stream) const;
    enum twill_status message(int peer, bool send, int part, twill_comm_t comm,
                              twill_stream_t stream) const;

    Call call_;
    Scope scope_;
    int rank_; /* in the communicator */
    bool in_place_ = false;
    size_t width_;
    Side in_, out_;
    uint8_t *send_ = nullptr, *recv_ = nullptr;
    uint8_t scalar_[16] = {};
    twill_redop_t op_;
};

} // namespace property

#endif
