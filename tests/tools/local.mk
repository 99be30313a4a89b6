# SPDX-License-Identifier: Apache-2.0
# the programs are run; of their code only twill-perf's numbers are linked
check_PROGRAMS += tests/tools/test_tools
TESTS += tests/tools/test_tools
tests_tools_test_tools_SOURCES = tests/tools/test_run.cc tests/tools/test_perf.cc \
	tests/tools/test_perf_outside.cc tests/tools/test_perf_gpu.cc \
	tests/tools/test_info.cc tests/tools/test_sim.cc tests/tools/test_tune_gpu.cc tests/tools/test_values.cc tests/tools/command.h \
	perf/values.c perf/ops.c perf/options.c perf/names.c
tests_tools_test_tools_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -I$(top_srcdir)/perf -I$(top_srcdir)/tools/common \
	-DBUILD_DIR='"$(abs_top_builddir)"' -DSOURCE_DIR='"$(abs_top_srcdir)"' $(TW_NCCL_BUILT)
if NCCL_ON
TW_NCCL_BUILT = -DTW_NCCL_BUILT=1
endif
tests_tools_test_tools_LDADD = libtwill_cli.la libtwill.la -lgtest_main -lgtest -lutil -lm -lpthread

# twill-perf on a CUDA and an NCCL that are made up, so that it is tested where there are none
check_PROGRAMS += tests/tools/perf_fake
tests_tools_perf_fake_SOURCES = perf/main.c perf/options.c perf/names.c perf/ops.c perf/values.c perf/expect.c \
	perf/check.c perf/measure.c perf/team.c perf/place.c perf/place_host.c perf/place_cuda.c perf/gpu.c \
	perf/overlap.c perf/lib_twill.c perf/lib_nccl.c perf/nccl_api.c perf/sweep.c perf/report.c perf/files.c perf/plot.c \
	tests/tools/fake_cuda.c tests/tools/fake_cuda.h
tests_tools_perf_fake_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/perf -I$(top_srcdir)/tools/common
tests_tools_perf_fake_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_tools_perf_fake_LDADD = libtwill_cli.la libtwill.la -lm
check_LTLIBRARIES += tests/tools/fake_nccl.la
tests_tools_fake_nccl_la_SOURCES = tests/tools/fake_nccl.c
tests_tools_fake_nccl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
