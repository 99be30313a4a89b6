# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/base/status.c src/base/status.h
