# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/property/test_property
TESTS += tests/property/test_property
TESTS_ASIDE += tests/property/test_property
tests_property_test_property_SOURCES = \
	tests/property/main.cc tests/property/case.h tests/property/case.cc tests/property/env.cc \
	tests/property/expect.h tests/property/expect.cc \
	tests/property/buffers.h tests/property/buffers.cc \
	tests/property/world.h tests/property/world.cc tests/property/ranks.h tests/property/ranks.cc \
	tests/property/trouble.cc tests/property/finale.cc tests/property/ask.cc \
	tests/property/feed.cc \
	tests/property/wrong.h tests/property/wrong.cc \
	tests/device/reference.h tests/device/reference.cc
tests_property_test_property_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests \
	-DTW_PROPERTY_PLANS='std::string("$(abs_top_srcdir)/docs/plans")'
tests_property_test_property_CXXFLAGS = $(TW_CXX_BUSY)
tests_property_test_property_LDADD = libtwill_core.la -lpthread
