# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/api/test_api
TESTS += tests/api/test_api
tests_api_test_api_SOURCES = \
	tests/api/world.cc tests/api/world.h tests/api/data.h \
	tests/api/header_c.c tests/api/test_header.cc \
	tests/api/test_coll.cc tests/api/test_group.cc \
	tests/api/test_stream.cc tests/api/test_errors.cc \
	tests/api/test_life.cc tests/api/test_faults.cc \
	tests/api/test_mem.cc tests/api/test_choice.cc tests/api/test_algo.cc
tests_api_test_api_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_api_test_api_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
if !SANITIZER
tests_api_test_api_SOURCES += tests/api/test_limits.cc
tests_api_test_api_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc \
	-Wl,--wrap=posix_memalign,--wrap=free \
	-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock
endif
