# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/algo/algo.c src/algo/algo.h \
	src/algo/crossover.c src/algo/crossover.h \
	src/algo/form.c src/algo/form.h \
	src/algo/ring.c \
	src/algo/recursive_doubling.c \
	src/algo/halving_doubling.c \
	src/algo/circulant.c \
	src/algo/direct.c \
	src/algo/ordered.c \
	src/algo/ordered_halving.c \
	src/algo/put.c \
	src/algo/two_level.c \
	src/algo/knomial.c \
	src/algo/double_tree.c \
	src/algo/bruck.c \
	src/algo/pat.c \
	src/algo/linear.c \
	src/algo/pairwise.c \
	src/algo/dissemination.c
