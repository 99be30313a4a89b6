/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls with one bad argument. Never knows: other ranks. */
#ifndef TESTS_PROPERTY_WRONG_H
#define TESTS_PROPERTY_WRONG_H

#include <string>

#include "twill.h"

namespace property
{

/* One of them, by roll. in_group: a group is open in this thread. "", or what is wrong with what
 * came of it. */
std::string wrong_call(uint64_t roll, twill_comm_t comm, twill_stream_t stream, bool in_group);

} // namespace property

#endif
