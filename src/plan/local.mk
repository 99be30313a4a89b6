# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/plan/plan.c src/plan/plan.h \
	src/plan/builder.c \
	src/plan/compose.c src/plan/relabel.c \
	src/plan/text.c src/plan/text_parse.c src/plan/text.h \
	src/plan/text_reader.c src/plan/text_reader.h \
	src/plan/validate.c src/plan/validate_step.c src/plan/validate.h \
	src/plan/check.c src/plan/check.h src/plan/check_mem.c src/plan/check_expr.c \
	src/plan/check_cut.c src/plan/check_link.c src/plan/check_layout.c src/plan/check_run.c src/plan/check_step.c \
	src/plan/check_clock.c src/plan/check_access.c src/plan/check_goal.c src/plan/check_fault.c \
	src/plan/cost.c src/plan/cost.h src/plan/cost_param.def src/plan/cost_rows.c src/plan/cost_proto.c src/plan/cost_table.c \
	src/plan/cost_link.c src/plan/cost_prog.h src/plan/cost_rates.c src/plan/cost_run.c src/plan/cost_sim.h \
	src/plan/cost_heap.c src/plan/cost_flat.c src/plan/cost_graph.c
