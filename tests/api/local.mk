# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/api/test_api
TESTS += tests/api/test_api
tests_api_test_api_SOURCES = \
	tests/api/world.cc tests/api/world.h tests/api/data.h \
	tests/api/test_coll.cc tests/api/test_group.cc \
	tests/api/test_stream.cc tests/api/test_errors.cc
tests_api_test_api_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_api_test_api_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
