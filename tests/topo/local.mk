# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/topo/test_topo
TESTS += tests/topo/test_topo
TESTS_ASIDE += tests/topo/test_topo
tests_topo_test_topo_SOURCES = tests/topo/test_topo.cc
tests_topo_test_topo_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_topo_test_topo_LDADD = libtwill_core.la -lgtest_main -lgtest -lpthread
EXTRA_DIST += tests/topo/machines/h200-2gpu.xml
