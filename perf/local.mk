# SPDX-License-Identifier: Apache-2.0
bin_PROGRAMS += perf/twill-perf
perf_twill_perf_SOURCES = perf/main.c perf/options.c perf/ops.c perf/values.c perf/check.c \
	perf/measure.c perf/sweep.c perf/report.c perf/files.c perf/plot.c perf/perf.h
perf_twill_perf_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/common
perf_twill_perf_LDADD = libtwill_cli.la libtwill.la -lm
EXTRA_DIST += perf/regret.sh
