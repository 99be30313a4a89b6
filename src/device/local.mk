# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/device/fpenv.h \
	src/device/reduce.c src/device/reduce.h src/device/reduce_rows.h src/device/reduce_vec.h \
	src/device/vec.h src/device/vec_float.h \
	src/device/reduce_portable.c src/device/reduce_avx2.c src/device/reduce_avx512.c \
	src/device/convert.c src/device/convert.h \
	src/device/exec.c src/device/exec.h src/device/exec_state.h \
	src/device/exec_shape.c src/device/exec_bind.c src/device/exec_bind_program.c \
	src/device/exec_step.c src/device/exec_value.c

# Kernels (.cu) and what they share (.h, .cuh) in a build with CUDA; in one without, what answers in
# their place. All is distributed.
cuda_sources =
cuda_stand_in =
if HAVE_CUDA
libtwill_core_la_SOURCES += $(cuda_sources)
else
libtwill_core_la_SOURCES += $(cuda_stand_in)
endif
