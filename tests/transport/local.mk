# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/transport/test_transport
TESTS += tests/transport/test_transport
tests_transport_test_transport_SOURCES = tests/transport/test_slots.cc tests/transport/test_memory.cc
tests_transport_test_transport_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_transport_test_transport_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lpthread
