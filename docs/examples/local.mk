# SPDX-License-Identifier: Apache-2.0
# The guide's programs; tests/guide runs them.
EXAMPLES = docs/examples/grid docs/examples/neighbours docs/examples/one_thread docs/examples/ranks \
	docs/examples/stream docs/examples/uneven docs/examples/weighted
EXTRA_PROGRAMS += $(EXAMPLES)
CLEANFILES += $(EXAMPLES)
docs_examples_grid_LDADD = libtwill.la
docs_examples_neighbours_LDADD = libtwill.la
docs_examples_one_thread_LDADD = libtwill.la
docs_examples_ranks_LDADD = libtwill.la
docs_examples_stream_LDADD = libtwill.la
docs_examples_uneven_LDADD = libtwill.la
docs_examples_weighted_LDADD = libtwill.la
if TESTS_ON
check_PROGRAMS += $(EXAMPLES)
endif
