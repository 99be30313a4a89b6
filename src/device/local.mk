# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/device/fpenv.h \
	src/device/reduce.c src/device/reduce.h src/device/reduce_rows.h src/device/reduce_vec.h \
	src/device/reduce_portable.c src/device/reduce_avx2.c src/device/reduce_avx512.c
