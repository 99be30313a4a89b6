# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/plan/test_plan tests/plan/test_mutate
TESTS += tests/plan/test_plan tests/plan/test_mutate
TESTS_ASIDE += tests/plan/test_plan tests/plan/test_mutate
tests_plan_test_plan_SOURCES = \
	tests/plan/test_plan.cc \
	tests/plan/test_builder.cc \
	tests/plan/test_compose.cc \
	tests/plan/test_text.cc \
	tests/plan/plans.hh \
	tests/plan/test_cost.cc tests/plan/test_cost_table.cc tests/plan/test_cost_proto.cc tests/plan/test_cost_graph.cc \
	tests/plan/test_check_plans.cc \
	tests/plan/test_check_faults.cc \
	tests/plan/test_check_validate.cc \
	tests/plan/hand.cc tests/plan/hand.hh \
	tests/plan/naive.cc tests/plan/naive.hh tests/plan/contract.hh
tests_plan_test_plan_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_plan_test_plan_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
tests_plan_test_mutate_SOURCES = \
	tests/plan/test_mutate.cc \
	tests/plan/mutate.cc tests/plan/mutate.hh \
	tests/plan/hand.cc tests/plan/hand.hh \
	tests/plan/naive.cc tests/plan/naive.hh tests/plan/contract.hh
tests_plan_test_mutate_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_plan_test_mutate_CXXFLAGS = $(TW_CXX_BUSY) $(TW_PCH_BUSY)
tests_plan_test_mutate_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
