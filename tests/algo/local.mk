# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/algo/test_algo
TESTS += tests/algo/test_algo
TESTS_ASIDE += tests/algo/test_algo
tests_algo_test_algo_SOURCES = \
	tests/algo/test_algo.cc \
	tests/algo/test_model.cc \
	tests/algo/test_check.cc \
	tests/algo/test_cost.cc tests/algo/test_order.cc \
	tests/algo/test_crossover.cc \
	tests/algo/test_only_rank.cc tests/algo/test_relabel.cc \
	tests/algo/cases.hh tests/algo/model.hh tests/plan/contract.hh
tests_algo_test_algo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(GTEST_CFLAGS)
tests_algo_test_algo_CXXFLAGS = $(TW_CXX_BUSY) $(TW_PCH_BUSY)
tests_algo_test_algo_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
