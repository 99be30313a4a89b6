/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the headers that most tests include, to be compiled once (configure --enable-quick-tests).
 * Never knows: twill. A test includes what it uses all the same: without that option, or with
 * make's TW_PCH= as in distcheck of ./dev check --all, this file is not there. */
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>
