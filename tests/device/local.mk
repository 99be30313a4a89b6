# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/device/test_device
TESTS += tests/device/test_device
TESTS_ASIDE += tests/device/test_device
tests_device_test_device_SOURCES = \
	tests/device/reference.h tests/device/reference.cc \
	tests/device/world.h tests/device/world.cc \
	tests/device/collective.h tests/device/collective.cc tests/plan/contract.hh \
	tests/device/test_exec.cc tests/device/test_exec_errors.cc tests/device/test_exec_plans.cc \
	tests/device/by_hand.h tests/device/test_exec_lanes.cc tests/device/test_exec_scratch.cc \
	tests/device/test_exec_value.cc \
	tests/device/kernels.h tests/device/test_convert.cc tests/device/test_reduce.cc \
	tests/device/test_reduce_16bit.cc tests/device/test_reduce_mode.cc
tests_device_test_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_device_test_device_CXXFLAGS = $(TW_CXX_BUSY) $(TW_PCH_BUSY)
tests_device_test_device_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
