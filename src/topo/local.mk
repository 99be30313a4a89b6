# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += src/topo/topo.c src/topo/topo.h
