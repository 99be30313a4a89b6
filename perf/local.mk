# SPDX-License-Identifier: Apache-2.0
bin_PROGRAMS += perf/twill-perf
perf_twill_perf_SOURCES = perf/main.c perf/options.c perf/names.c perf/ops.c perf/values.c perf/expect.c \
	perf/check.c perf/measure.c perf/team.c perf/place.c perf/place_host.c perf/place_cuda.c perf/gpu.c \
	perf/overlap.c perf/lib_twill.c perf/lib_nccl.c perf/nccl_api.c perf/sweep.c perf/report.c perf/files.c perf/plot.c \
	perf/perf_cuda.h perf/product.h perf/nccl_api.h perf/gpu.h perf/perf.h perf/team.h
perf_twill_perf_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/common
perf_twill_perf_LDADD = libtwill_cli.la libtwill.la -lm
# the runtime is linked statically, a second time: the library's own copy is hidden
if HAVE_CUDA
perf_twill_perf_SOURCES += perf/cuda_rt.c
noinst_LTLIBRARIES += libtwill_product.la
libtwill_product_la_SOURCES = perf/product.cu
libtwill_product_la_LIBADD =
perf_twill_perf_LDADD += libtwill_product.la $(CUDA_LIBS)
else
perf_twill_perf_SOURCES += perf/cuda_none.c
endif
EXTRA_DIST += perf/regret.sh perf/ratios.py perf/overlap.py perf/bench_gpu.sh \
	perf/cuda_rt.c perf/cuda_none.c perf/product.cu
