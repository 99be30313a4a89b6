# SPDX-License-Identifier: Apache-2.0
# topologies of hosts that exist, for twill-topo --load and what prices plans on them
topologiesdir = $(pkgdatadir)/topologies
dist_topologies_DATA = data/topologies/h200-2gpu.xml
