# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/base/test_base
TESTS += tests/base/test_base
tests_base_test_base_SOURCES = \
	tests/base/capture.h \
	tests/base/fault.cc tests/base/fault.h \
	tests/base/test_cpus.cc \
	tests/base/test_cuda.cc \
	tests/base/test_file.cc \
	tests/base/test_host.cc \
	tests/base/test_address.cc \
	tests/base/test_launcher.cc \
	tests/base/test_log.cc \
	tests/base/test_mem.cc \
	tests/base/test_param.cc \
	tests/base/test_pool.cc \
	tests/base/test_prove.cc \
	tests/base/test_sock.cc \
	tests/base/test_status.cc \
	tests/base/test_time.cc \
	tests/base/test_value.cc
tests_base_test_base_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
# faults are injected where the linker lets a test step between base and libc
tests_base_test_base_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=memfd_create,--wrap=ftruncate \
	-Wl,--wrap=mmap,--wrap=calloc,--wrap=aligned_alloc
tests_base_test_base_LDADD = libtwill_core.la -lgtest_main $(GTEST_LIBS)
