# SPDX-License-Identifier: Apache-2.0

# docs/params.md is written from the table of parameters; tests/params compares the two
EXTRA_DIST += docs/algorithms.md
EXTRA_DIST += docs/architecture.md
EXTRA_DIST += docs/choice.md
EXTRA_DIST += docs/cost.md
EXTRA_DIST += docs/gpu.md
EXTRA_DIST += docs/guide.md
EXTRA_DIST += docs/nccl.md
EXTRA_DIST += docs/numbers.md
EXTRA_DIST += docs/params.md
EXTRA_DIST += docs/plan.md
EXTRA_DIST += docs/roadmap.md
EXTRA_DIST += docs/topology.md
EXTRA_DIST += docs/user-plans.md
EXTRA_DIST += docs/plans/star.plan docs/plans/chain.plan docs/plans/neighbour.plan
EXTRA_PROGRAMS = docs/params_gen
docs_params_gen_SOURCES = docs/params_gen.c
docs_params_gen_LDADD = libtwill_core.la
CLEANFILES += docs/params_gen
.PHONY: update-docs
update-docs: docs/params_gen
	docs/params_gen > $(srcdir)/docs/params.md
if TESTS_ON
check_PROGRAMS += docs/params_gen
endif

dist_man_MANS += docs/man/twill-info.1
dist_man_MANS += docs/man/twill-perf.1
dist_man_MANS += docs/man/twill-run.1
dist_man_MANS += docs/man/twill-sim.1
dist_man_MANS += docs/man/twill-topo.1
dist_man_MANS += docs/man/twill-tune.1
