# SPDX-License-Identifier: Apache-2.0
# twill-topo is run too, and what twill-info says of GPUs is linked: what they show is this room's
check_PROGRAMS += tests/topo/test_topo
TESTS += tests/topo/test_topo
TESTS_ASIDE += tests/topo/test_topo
tests_topo_test_topo_SOURCES = tests/topo/test_topo.cc tests/topo/test_graph.cc \
	tests/topo/test_synthetic.cc tests/topo/test_place.cc tests/topo/test_path.cc \
	tests/topo/test_xml.cc tests/topo/test_discover.cc tests/topo/test_measured.cc \
	tests/topo/test_probe.cc tests/topo/test_cache.cc tests/topo/test_tool.cc tests/topo/test_self.cc tests/topo/test_plain.cc \
	tests/topo/test_typical.cc tests/topo/test_nvml.cc tests/topo/test_ring.cc \
	tests/topo/test_info.cc tools/info/gpus.c tools/info/reach.c tools/info/json.c \
	tests/topo/graphs.hh
tests_topo_test_topo_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS) -I$(top_srcdir)/tests/tools -I$(top_srcdir)/tools/info \
	-DBUILD_DIR='"$(abs_top_builddir)"' -DSOURCE_DIR='"$(abs_top_srcdir)"'
tests_topo_test_topo_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=geteuid
tests_topo_test_topo_LDADD = libtwill_core.la -lgtest_main -lgtest -lpthread
EXTRA_DIST += tests/topo/machines/h200-2gpu.xml tests/topo/machines/two-gpus.xml

# what stands for NVIDIA's management library
check_LTLIBRARIES += tests/topo/fake_nvml.la
tests_topo_fake_nvml_la_SOURCES = tests/topo/fake_nvml.c
tests_topo_fake_nvml_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
