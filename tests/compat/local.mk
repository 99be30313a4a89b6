# SPDX-License-Identifier: Apache-2.0
# Programs that know nothing but nccl.h, and run on the built libnccl.so.2.
EXTRA_DIST += tests/compat/names
dist_check_SCRIPTS += tests/compat/symbols
if NCCL_ON
TESTS += tests/compat/symbols
TESTS_ASIDE += tests/compat/symbols
check_PROGRAMS += tests/compat/basic_c tests/compat/basic_cxx tests/compat/test_compat tests/compat/test_inside
TESTS += tests/compat/basic_c tests/compat/basic_cxx tests/compat/test_compat tests/compat/test_inside
endif
TW_NCCL_INCLUDE = -I$(top_srcdir)/include/nccl $(CUDA_CPPFLAGS)

tests_compat_basic_c_SOURCES = tests/compat/basic.c
tests_compat_basic_c_CPPFLAGS = $(TW_NCCL_INCLUDE)
tests_compat_basic_c_CFLAGS = $(AM_CFLAGS) -std=c99 -pedantic
tests_compat_basic_c_LDADD = nccl/libnccl.la
tests_compat_basic_c_LDFLAGS = $(AM_LDFLAGS) -no-install -Wl,--enable-new-dtags

tests_compat_basic_cxx_SOURCES = tests/compat/basic_cxx.cc
tests_compat_basic_cxx_CPPFLAGS = $(TW_NCCL_INCLUDE)
tests_compat_basic_cxx_CXXFLAGS = $(TW_CXXFLAGS) $(TW_SAN) -pedantic
tests_compat_basic_cxx_LDADD = nccl/libnccl.la
tests_compat_basic_cxx_LDFLAGS = $(AM_LDFLAGS) -no-install

tests_compat_test_compat_SOURCES = tests/compat/ranks.h tests/compat/ranks.cc tests/compat/data.h \
	tests/compat/test_abi.cc tests/compat/test_coll.cc tests/compat/test_errors.cc tests/compat/test_group.cc \
	tests/compat/test_life.cc tests/compat/test_memory.cc
tests_compat_test_compat_CPPFLAGS = $(TW_NCCL_INCLUDE) $(GTEST_CFLAGS)
tests_compat_test_compat_LDADD = nccl/libnccl.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
tests_compat_test_compat_LDFLAGS = $(AM_LDFLAGS) -no-install

# what a program cannot see: it has the objects, and twill's own interface beside them
tests_compat_test_inside_SOURCES = tests/compat/ranks.h tests/compat/ranks.cc \
	tests/compat/test_inside.cc tests/compat/test_environment.cc
tests_compat_test_inside_CPPFLAGS = $(AM_CPPFLAGS) $(TW_NCCL_INCLUDE) $(GTEST_CFLAGS)
tests_compat_test_inside_LDADD = libtwill_compat.la libtwill_core.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
