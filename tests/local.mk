# SPDX-License-Identifier: Apache-2.0
# Checks of the whole tree; the rooms' tests are in the folders below.
AM_TESTS_ENVIRONMENT = \
	MAKE='$(MAKE)'; export MAKE; CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; TW_SAN='$(TW_SAN)'; export TW_SAN;
dist_check_SCRIPTS += tests/layers tests/params tests/symbols tests/install/run
EXTRA_DIST += tests/install/user.c dev .ci/run .clang-format .clang-tidy .cppcheck
TESTS += tests/layers tests/params tests/symbols tests/install/run
