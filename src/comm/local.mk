# SPDX-License-Identifier: Apache-2.0
libtwill_core_la_SOURCES += \
	src/comm/comm.c src/comm/comm.h \
	src/comm/proc.c src/comm/proc.h \
	src/comm/id.c src/comm/env.c src/comm/meeting.h \
	src/comm/bootstrap.c src/comm/bootstrap_tree.c \
	src/comm/bootstrap_meet.c src/comm/bootstrap_meet_fail.c src/comm/bootstrap_meet_life.c \
	src/comm/bootstrap_meet.h \
	src/comm/bootstrap_hello.c src/comm/bootstrap_links.c src/comm/bootstrap_chan.c src/comm/bootstrap_gpu.c src/comm/bootstrap.h \
	src/comm/control.c src/comm/control_loop.c src/comm/control_link.c src/comm/control_door.c \
	src/comm/control_life.c src/comm/control.h \
	src/comm/record.c src/comm/record_board.c src/comm/record_text.c src/comm/record.h \
	src/comm/record_foreign.c src/comm/record_view.c src/comm/record_view.h \
	src/comm/ops.c src/comm/ops.h src/comm/run.c \
	src/comm/plans.c src/comm/plans_make.c src/comm/plans_read.c src/comm/plans_file.c src/comm/plans_p2p.c src/comm/plans.h \
	src/comm/facts.c src/comm/facts.h src/comm/choose.c src/comm/choose_table.c src/comm/choose.h src/comm/simulate.c \
	src/comm/progress.c src/comm/stream.c \
	src/comm/group.c src/comm/group.h src/comm/group_run.c src/comm/retire.c \
	src/comm/split.c src/comm/split_gone.c src/comm/split.h src/comm/shrink.c src/comm/roll.c src/comm/roll.h \
	src/comm/gpu.c src/comm/gpu_call.c src/comm/gpu_copy.c src/comm/gpu_copy_group.c src/comm/gpu_copy_start.c src/comm/gpu_copy_p2p.c src/comm/gpu_copy_p2p.h src/comm/gpu_copy.h src/comm/gpu_pairs.c src/comm/gpu_plan.c src/comm/gpu_p2p.c src/comm/gpu_p2p_cut.c src/comm/gpu_p2p.h \
	src/comm/gpu_reg.c src/comm/gpu_pieces.c src/comm/gpu_reach.c src/comm/gpu_reg.h src/comm/gpu_shape.c src/comm/gpu_cost.c src/comm/gpu_blocks.c src/comm/gpu_device.c src/comm/gpu_early.c src/comm/gpu_layout.c src/comm/gpu_stream.c src/comm/gpu_device.h \
	src/comm/gpu_order.c src/comm/gpu_order.h src/comm/gpu_selftest.c src/comm/gpu_selftest.h src/comm/gpu_cut.c \
	src/comm/gpu_team.c src/comm/gpu_watch.c src/comm/gpu.h \
	src/comm/event.c src/comm/fuse.c src/comm/memory.c src/comm/memory.h
