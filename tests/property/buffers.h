/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: one rank's side of a call: its buffers, guards around them, and the call itself.
 * Never knows: which values are right. */
#ifndef TESTS_PROPERTY_BUFFERS_H
#define TESTS_PROPERTY_BUFFERS_H

#include <algorithm>

#include "property/expect.h"

namespace property
{

/* Memory of the heap, or of twill_mem_alloc. */
class Bytes
{
  public:
    Bytes() = default;
    ~Bytes();
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
    void make(size_t size, uint8_t value, bool mapped); /* once */
    uint8_t *data() { return at_; }
    size_t size() const { return size_; }
    const uint8_t *begin() const { return at_; }
    const uint8_t *end() const { return at_ + size_; }

  private:
    uint8_t *at_ = nullptr;
    size_t size_ = 0;
    bool mapped_ = false;
};

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
    std::string check() const { return look(true); }
    /* What a call that failed must leave alone. */
    std::string check_rest() const { return look(false); }
    /* The reduction that it created may be used again. */
    void keep_op(bool keeps) { keeps_op_ = keeps; }
    /* Nothing was moved yet. */
    bool is_untouched() const { return in_.is_as_before() && out_.is_as_before(); }
    const Call &what() const { return call_; }
    /* What the call reads, in one piece; its values must be there when it runs. */
    uint8_t *input() { return send_; }
    size_t input_bytes() const { return in_.bytes; }
    void hide_input();
    Bytes &memory() { return in_.memory; }

  private:
    struct Side {
        std::vector<size_t> counts, displs; /* a block each; in elements */
        size_t bytes = 0;                   /* from the first block's start to the last one's end */
        Bytes memory;
        std::vector<uint8_t> before;
        bool is_as_before() const
        {
            return std::equal(memory.begin(), memory.end(), before.begin());
        }
        uint8_t *at = nullptr;
    };
    bool has(bool in) const;
    std::string look(bool at_result) const;
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
    bool mapped_;
    bool in_place_ = false, keeps_op_ = false;
    size_t width_;
    Side in_, out_;
    uint8_t *send_ = nullptr, *recv_ = nullptr;
    uint8_t scalar_[16] = {};
    twill_redop_t op_;
};

} // namespace property

#endif
