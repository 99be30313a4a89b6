# SPDX-License-Identifier: Apache-2.0
# The kernels' own sources, the host's code for devices and tests/gpu, all on the processor: for machines without a
# GPU. Needs no CUDA; where there is one, the headers here come before its own. Not with a sanitizer: the threads of
# a block are fibers, whose stacks AddressSanitizer and ThreadSanitizer would have to be told of at every switch.
emu_kernels = tests/emu/device.h tests/emu/device/cuda/ptx.cuh tests/emu/block.h tests/emu/block.cc \
	tests/emu/cu_move.cc tests/emu/cu_copy.cc tests/emu/cu_p2p.cc tests/emu/cu_reduce_int.cc tests/emu/cu_reduce_long.cc \
	tests/emu/cu_reduce_float.cc tests/emu/cu_reduce_half.cc tests/emu/cu_reduce_quarter.cc
emu_runtime = tests/emu/cuda.h tests/emu/cuda_runtime.h tests/emu/cuda_runtime_api.h tests/emu/runtime.h \
	tests/emu/device.cc tests/emu/memory.h tests/emu/memory.cc tests/emu/vmm.cc tests/emu/stream.h tests/emu/stream.cc tests/emu/graph.cc tests/emu/work.h tests/emu/work.cc \
	tests/emu/kernels.cc tests/emu/cu_launch.cc tests/emu/cu_probe.cc tests/emu/peers.h tests/emu/peers.cc \
	src/base/cuda_rt.h src/base/cuda_rt.c src/base/cuda_rt_ipc.c src/base/cuda_rt_memory.c src/base/cuda_rt_reach.c src/base/cuda_rt_stream.c src/base/cuda_rt_vmm.c
if EMULATION
EMU_CPPFLAGS = -I$(top_srcdir)/tests/emu -I$(top_srcdir)/tests $(AM_CPPFLAGS)
check_LTLIBRARIES += tests/emu/libkernels.la
tests_emu_libkernels_la_SOURCES = $(emu_kernels)
tests_emu_libkernels_la_CPPFLAGS = $(EMU_CPPFLAGS)
tests_emu_libkernels_la_CXXFLAGS = $(TW_CXXFLAGS) -fno-strict-aliasing -ffp-contract=off -Wno-unknown-pragmas \
	-Wno-missing-field-initializers
# templates for twelve types: at most so much optimization, or compiling takes minutes; without any, running does
tests/emu/libkernels_la-%.lo: CXXFLAGS += -O1

check_PROGRAMS += tests/emu/test_emu
tests_emu_test_emu_SOURCES = $(emu_runtime) $(gpu_tests) tests/emu/main.cc \
	tests/emu/small.h tests/emu/small.cc tests/emu/cases.cc tests/emu/around.cc tests/comm/topo_file.h tests/emu/packets.cc tests/emu/copies.cc tests/emu/pushes.cc tests/emu/trouble.cc tests/emu/reach.cc
tests_emu_test_emu_CPPFLAGS = $(EMU_CPPFLAGS) $(GTEST_CFLAGS)
tests_emu_test_emu_CXXFLAGS = $(TW_CXX_BUSY) $(TW_PCH_BUSY) -fno-strict-aliasing
tests_emu_test_emu_LDADD = tests/emu/libkernels.la libtwill_core.la $(GTEST_LIBS) -lgtest -lpthread
TESTS += tests/emu/test_emu
TESTS_ASIDE += tests/emu/test_emu
endif
