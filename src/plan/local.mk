# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/plan/plan.c src/plan/plan.h \
	src/plan/builder.c \
	src/plan/validate.c src/plan/validate_step.c src/plan/validate.h
