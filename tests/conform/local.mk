# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/conform/test_conform
TESTS += tests/conform/test_conform
tests_conform_test_conform_SOURCES = tests/conform/test_fifo.cc tests/conform/test_rma.cc \
	tests/conform/test_ep.cc tests/conform/test_hostile.cc tests/conform/test_death.cc \
	tests/conform/pair.h tests/conform/shared.h
tests_conform_test_conform_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_conform_test_conform_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lpthread
