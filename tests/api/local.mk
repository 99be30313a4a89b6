# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/api/test_api
TESTS += tests/api/test_api
tests_api_test_api_SOURCES = \
	tests/api/world.cc tests/api/world.h tests/api/data.h \
	tests/device/reference.h tests/device/reference.cc \
	tests/api/header_c.c tests/api/test_header.cc \
	tests/api/test_coll.cc tests/api/vcase.cc tests/api/vcase.h tests/api/test_coll_v.cc tests/api/test_deterministic.cc \
	tests/api/test_op.cc tests/api/test_group.cc \
	tests/api/test_stream.cc tests/api/test_errors.cc \
	tests/api/test_life.cc tests/api/test_device.cc tests/api/test_faults.cc \
	tests/api/test_mem.cc tests/api/test_choice.cc tests/api/test_algo.cc tests/api/test_split.cc \
	tests/api/test_shrink.cc tests/api/test_event.cc tests/api/test_memory.cc tests/api/test_fuse.cc tests/api/test_above.cc
tests_api_test_api_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -I$(top_srcdir)/tests
tests_api_test_api_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lgtest -lpthread
if !SANITIZER
tests_api_test_api_SOURCES += tests/api/test_huge.cc tests/api/test_limits.cc tests/api/traps.cc tests/api/traps.h
tests_api_test_api_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=free \
	-Wl,--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=strdup,--wrap=strndup \
	-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock \
	-Wl,--wrap=pthread_mutex_timedlock,--wrap=pthread_mutex_unlock \
	-Wl,--wrap=mtx_lock,--wrap=mtx_trylock \
	-Wl,--wrap=pthread_rwlock_rdlock,--wrap=pthread_rwlock_wrlock,--wrap=pthread_rwlock_unlock \
	-Wl,--wrap=pthread_rwlock_tryrdlock,--wrap=pthread_rwlock_trywrlock \
	-Wl,--wrap=pthread_spin_lock,--wrap=pthread_spin_trylock \
	-Wl,--wrap=pthread_cond_wait,--wrap=pthread_cond_timedwait \
	-Wl,--wrap=pthread_cond_signal,--wrap=pthread_cond_broadcast \
	-Wl,--wrap=pthread_once,--wrap=call_once \
	-Wl,--wrap=sem_wait,--wrap=sem_trywait,--wrap=sem_timedwait,--wrap=sem_post
endif
