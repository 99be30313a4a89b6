# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/channel/test_channel
TESTS += tests/channel/test_channel
tests_channel_test_channel_SOURCES = tests/channel/chans.h tests/channel/test_channel.cc \
	tests/channel/test_channel_alone.cc tests/channel/test_memory.cc tests/conform/shared.h
tests_channel_test_channel_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_channel_test_channel_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lpthread
