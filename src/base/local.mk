# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/base/status.c src/base/status.h \
	src/base/log.c src/base/log.h \
	src/base/param.c src/base/param.h src/base/param.def \
	src/base/value.c src/base/value.h \
	src/base/mem.c src/base/pool.c src/base/mem.h \
	src/base/time.c src/base/time.h \
	src/base/sock.c src/base/prove.c src/base/sock.h \
	src/base/host.c src/base/address.c src/base/host.h \
	src/base/file.c src/base/file.h \
	src/base/cpus.c src/base/cpus.h \
	src/base/launcher.c src/base/launcher.h \
	src/base/cuda.h
if HAVE_CUDA
libtwill_core_la_SOURCES += src/base/cuda_rt.c src/base/cuda_rt_ipc.c src/base/cuda_rt_memory.c src/base/cuda_rt_reach.c src/base/cuda_rt_stream.c \
	src/base/cuda_rt_vmm.c src/base/cuda_rt.h
else
libtwill_core_la_SOURCES += src/base/cuda_none.c
endif
