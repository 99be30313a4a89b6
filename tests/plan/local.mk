# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/plan/test_plan
TESTS += tests/plan/test_plan
tests_plan_test_plan_SOURCES = \
	tests/plan/test_plan.cc \
	tests/plan/test_builder.cc \
	tests/plan/test_compose.cc \
	tests/plan/test_text.cc \
	tests/plan/plans.hh
tests_plan_test_plan_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_plan_test_plan_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
