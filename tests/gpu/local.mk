# SPDX-License-Identifier: Apache-2.0
# Compiled wherever there is CUDA, run where there is a device: by `./dev check --gpu`.
# What is tested, whatever it runs on: tests/emu has it too.
gpu_tests = \
	tests/gpu/roles.h tests/gpu/roles.cc tests/gpu/base.h tests/gpu/base.cc \
	tests/gpu/process.h tests/gpu/process.cc \
	tests/gpu/case.h tests/gpu/case.cc tests/gpu/data.h tests/gpu/data.cc \
	tests/gpu/world.h tests/gpu/world.cc tests/gpu/run.h tests/gpu/run.cc tests/gpu/prepared.cc \
	tests/gpu/cover.cc tests/gpu/copy.cc tests/gpu/multi.cc tests/gpu/lost.cc tests/gpu/errors.cc \
	tests/gpu/mismatch.cc tests/gpu/order.cc tests/gpu/memory.cc tests/gpu/vmm.h tests/gpu/vmm.cc tests/gpu/calls.h tests/gpu/calls.cc tests/gpu/apart.cc tests/gpu/p2p.cc \
	tests/gpu/p2p_batch.h tests/gpu/p2p_batch.cc tests/gpu/p2p_errors.cc tests/gpu/plans.cc \
	tests/property/case.h tests/device/reference.h tests/device/reference.cc
if HAVE_CUDA
check_PROGRAMS += tests/gpu/test_gpu
tests_gpu_test_gpu_SOURCES = tests/gpu/main.cc $(gpu_tests)
tests_gpu_test_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -I$(top_srcdir)/tests
tests_gpu_test_gpu_CXXFLAGS = $(TW_CXX_BUSY) $(TW_PCH_BUSY)
tests_gpu_test_gpu_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest -lpthread
endif
