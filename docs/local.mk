# SPDX-License-Identifier: Apache-2.0

# docs/params.md is written from the table of parameters; tests/params compares the two
EXTRA_DIST += docs/architecture.md docs/params.md docs/plan.md docs/roadmap.md docs/choice.md docs/user-plans.md \
	docs/plans/star.plan docs/plans/chain.plan docs/plans/neighbour.plan
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

dist_man_MANS += docs/man/twill-run.1 docs/man/twill-perf.1 docs/man/twill-info.1
