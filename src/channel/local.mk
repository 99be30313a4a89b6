# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/channel/channel.c src/channel/channel.h src/channel/chan.h src/channel/peers.c src/channel/pass.c src/channel/memory.c
