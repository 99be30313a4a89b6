# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/tools/test_run
TESTS += tests/tools/test_run
tests_tools_test_run_SOURCES = tests/tools/test_run.cc tests/tools/command.h
tests_tools_test_run_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -DBUILD_DIR='"$(abs_top_builddir)"'
tests_tools_test_run_LDADD = -lgtest_main -lgtest -lpthread
