# SPDX-License-Identifier: Apache-2.0
# the programs are run; of their code only twill-perf's numbers are linked
check_PROGRAMS += tests/tools/test_tools
TESTS += tests/tools/test_tools
tests_tools_test_tools_SOURCES = tests/tools/test_run.cc tests/tools/test_perf.cc \
	tests/tools/test_perf_outside.cc \
	tests/tools/test_info.cc tests/tools/test_sim.cc tests/tools/test_values.cc tests/tools/command.h \
	perf/values.c perf/ops.c perf/options.c
tests_tools_test_tools_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -I$(top_srcdir)/perf -I$(top_srcdir)/tools/common \
	-DBUILD_DIR='"$(abs_top_builddir)"' -DSOURCE_DIR='"$(abs_top_srcdir)"'
tests_tools_test_tools_LDADD = libtwill_cli.la libtwill.la -lgtest_main -lgtest -lutil -lm -lpthread
