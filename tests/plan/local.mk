# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/plan/test_plan
TESTS += tests/plan/test_plan
tests_plan_test_plan_SOURCES = \
	tests/plan/test_check_plans.cc \
	tests/plan/hand.cc tests/plan/hand.hh \
	tests/plan/naive.cc tests/plan/naive.hh
tests_plan_test_plan_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_plan_test_plan_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
