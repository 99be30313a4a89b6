# SPDX-License-Identifier: Apache-2.0
# What all programs share. twill-perf has it too and links libtwill alone, so the one file of src that
# it needs is compiled into it here.
noinst_LTLIBRARIES += libtwill_cli.la
libtwill_cli_la_SOURCES = tools/common/cli.c tools/common/cli.h src/base/value.c
cli_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/common
libtwill_cli_la_CPPFLAGS = $(cli_cppflags)

bin_PROGRAMS += tools/twill-run
tools_twill_run_SOURCES = tools/run/main.c tools/run/options.c tools/run/keeper.c \
	tools/run/spawn.c tools/run/output.c tools/run/family.c tools/run/run.h
tools_twill_run_CPPFLAGS = $(cli_cppflags)
tools_twill_run_LDADD = libtwill_cli.la libtwill_core.la

bin_PROGRAMS += tools/twill-info
tools_twill_info_SOURCES = tools/info/main.c tools/info/gpus.c tools/info/reach.c tools/info/json.c tools/info/nccl.c tools/info/info.h
tools_twill_info_CPPFLAGS = $(cli_cppflags) -I$(top_srcdir)/tools/info
tools_twill_info_LDADD = libtwill_cli.la libtwill.la libtwill_core.la

bin_PROGRAMS += tools/twill-topo
tools_twill_topo_SOURCES = tools/topo/main.c tools/topo/text.c tools/topo/picture.c \
	tools/topo/draw.c tools/topo/svg.c tools/topo/topo.h tools/topo/draw.h tools/topo/svg.h
tools_twill_topo_CPPFLAGS = $(cli_cppflags)
tools_twill_topo_LDADD = libtwill_cli.la libtwill_core.la
sim_sources = tools/sim/machine.c tools/sim/job.c tools/sim/samples.c tools/sim/pool.c tools/sim/sim.h
bin_PROGRAMS += tools/twill-sim
tools_twill_sim_SOURCES = tools/sim/main.c tools/sim/options.c tools/sim/sweep.c \
	tools/sim/against.c tools/sim/report.c $(sim_sources)
tools_twill_sim_CPPFLAGS = $(cli_cppflags) -I$(top_srcdir)/tools/sim
tools_twill_sim_LDADD = libtwill_cli.la libtwill_core.la -lm

bin_PROGRAMS += tools/twill-tune
tools_twill_tune_SOURCES = tools/tune/main.c tools/tune/options.c tools/tune/measure.c \
	tools/tune/fit.c tools/tune/solve.c tools/tune/program.c \
	tools/tune/device.c tools/tune/device_calls.c tools/tune/device_fit.c tools/tune/device_measure.c \
	tools/tune/tune.h $(sim_sources)
tools_twill_tune_CPPFLAGS = $(cli_cppflags) -I$(top_srcdir)/tools/sim
tools_twill_tune_LDADD = libtwill_cli.la libtwill_core.la -lm
