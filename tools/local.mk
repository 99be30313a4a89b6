# SPDX-License-Identifier: Apache-2.0
bin_PROGRAMS += tools/twill-run
tools_twill_run_SOURCES = tools/run/main.c tools/run/options.c tools/run/keeper.c \
	tools/run/spawn.c tools/run/output.c tools/run/family.c tools/run/run.h
tools_twill_run_LDADD = libtwill_core.la

bin_PROGRAMS += tools/twill-info
tools_twill_info_SOURCES = tools/info/main.c
tools_twill_info_LDADD = libtwill.la libtwill_core.la

bin_PROGRAMS += tools/twill-topo
tools_twill_topo_SOURCES = tools/topo/main.c tools/topo/text.c tools/topo/picture.c \
	tools/topo/draw.c tools/topo/svg.c tools/topo/topo.h tools/topo/draw.h tools/topo/svg.h
tools_twill_topo_LDADD = libtwill_core.la
