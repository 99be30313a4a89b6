# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/api/api.h src/api/check.c src/api/config.c \
	src/api/comm.c src/api/split.c src/api/memory.c src/api/coll.h src/api/coll.c src/api/coll_v.c \
	src/api/op.c src/api/p2p.c src/api/group.c src/api/stream.c src/api/event.c \
	src/api/mem.c src/api/error.c src/api/version.c src/api/choice.c
