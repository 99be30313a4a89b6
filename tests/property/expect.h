/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what goes into a call and what must come out, by the arithmetic of device/reference.h.
 * Never knows: where it lies, twill's reductions. */
#ifndef TESTS_PROPERTY_EXPECT_H
#define TESTS_PROPERTY_EXPECT_H

#include "property/case.h"

namespace property
{

/* A call on one of its communicators; root and counts are of its ranks. */
class Scope
{
  public:
    Scope(const Call &call, const Place &at, bool deterministic);

    int size() const { return size_; }
    int root() const { return root_; }
    uint64_t seed() const { return seed_; }
    /* A block of a rank's input. Values repeat after a prime number of elements. */
    void fill(uint8_t *at, size_t count, int rank, int block) const;
    /* A block of a rank's output: "", or the first element that is wrong. */
    std::string compare(const uint8_t *at, size_t count, int rank, int block) const;
    /* Of a created sum. */
    uint64_t scalar(int rank) const;

  private:
    uint64_t input(int rank, int block, size_t i) const;
    uint64_t exact_input(int rank, size_t i, uint64_t bits) const;
    uint64_t leaf(int rank, int block, size_t i) const;
    uint64_t tree(int first, int count, int block, size_t i) const;
    uint64_t reduced(int block, size_t i) const;
    bool is_exact() const;
    std::string compare_near(const uint8_t *at, size_t count, int block) const;
    std::string compare_exact(const uint8_t *at, const std::vector<uint8_t> &want,
                              size_t count) const;

    Call call_;
    int size_, root_;
    bool deterministic_;
    uint64_t seed_;
};

} // namespace property

#endif
