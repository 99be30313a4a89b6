# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += src/topo/topo.c src/topo/topo.h \
	src/topo/graph.c src/topo/graph.h src/topo/check.c src/topo/check.h src/topo/path.c src/topo/map.c src/topo/map.h \
	src/topo/place.c src/topo/build.c src/topo/typical.c src/topo/build.h src/topo/synthetic.c \
	src/topo/recipe.c src/topo/recipe.h src/topo/recipes.c \
	src/topo/same.c src/topo/measured.c src/topo/measured.h \
	src/topo/xml_scan.c src/topo/xml_scan.h src/topo/xml_read.c src/topo/xml_write.c src/topo/xml.h \
	src/topo/discover.c src/topo/discover_pci.c src/topo/discover_nvlink.c src/topo/nvml.c src/topo/nvml_wait.c src/topo/nvml.h src/topo/sysfs.c src/topo/discover.h \
	src/topo/line.c src/topo/line.h src/topo/probe.c src/topo/probe.h src/topo/probe_copy.c src/topo/probe_copy.h src/topo/cache.c \
	src/topo/ring.c src/topo/ring.h src/topo/self.c src/topo/self.h src/topo/plain.c src/topo/plain.h
