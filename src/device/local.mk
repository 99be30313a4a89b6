# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/device/fpenv.h \
	src/device/reduce.c src/device/reduce.h src/device/reduce_rows.h src/device/reduce_vec.h \
	src/device/vec.h src/device/vec_float.h \
	src/device/reduce_portable.c src/device/reduce_avx2.c src/device/reduce_avx512.c \
	src/device/convert.c src/device/convert.h \
	src/device/exec.c src/device/exec.h src/device/exec_state.h src/device/exec_gpu.c src/device/exec_gpu.h \
	src/device/exec_shape.c src/device/exec_bind.c src/device/exec_bind_program.c \
	src/device/exec_step.c src/device/exec_value.c \
	src/device/probe.c src/device/probe_all.c src/device/probe.h

# Kernels (.cu) and what they share (.h, .cuh) in a build with CUDA; in one without, what answers in
# their place. All is distributed.
cuda_sources = src/device/cuda/probe.cu src/device/cuda/probe.h src/device/cuda/launch.cu src/device/cuda/launch.h src/device/cuda/wire.h \
	src/device/cuda/kernels.cuh src/device/cuda/ptx.cuh src/device/cuda/data.cuh \
	src/device/cuda/place.cuh src/device/cuda/sync.cuh src/device/cuda/call.cuh \
	src/device/cuda/line.cuh src/device/cuda/move_line.cuh src/device/cuda/ring.cuh src/device/cuda/slot.cuh src/device/cuda/move.cu src/device/cuda/copy.cu \
	src/device/cuda/p2p.cuh src/device/cuda/p2p.cu \
	src/device/cuda/number.cuh src/device/cuda/value.cuh src/device/cuda/adder.cuh \
	src/device/cuda/turn.cuh src/device/cuda/plan.cuh \
	src/device/cuda/reduce_line.cuh src/device/cuda/reduce_ring.cuh src/device/cuda/reduce_direct.cuh \
	src/device/cuda/push.cuh src/device/cuda/reduce.cuh src/device/cuda/reduce_int.cu src/device/cuda/reduce_long.cu \
	src/device/cuda/reduce_float.cu src/device/cuda/reduce_half.cu src/device/cuda/reduce_quarter.cu
cuda_stand_in = src/device/cuda/probe_none.c src/device/cuda/probe.h src/device/cuda/launch_none.c src/device/cuda/launch.h src/device/cuda/wire.h
if HAVE_CUDA
libtwill_core_la_SOURCES += $(cuda_sources)
else
libtwill_core_la_SOURCES += $(cuda_stand_in)
endif
