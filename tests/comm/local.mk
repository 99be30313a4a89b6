# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/comm/test_comm
TESTS += tests/comm/test_comm
tests_comm_test_comm_SOURCES = tests/comm/test_comm.cc tests/comm/test_split.cc tests/comm/test_proc.cc tests/comm/test_id.cc \
	tests/comm/bootstrap.cc tests/comm/bootstrap.h tests/comm/test_bootstrap.cc tests/comm/test_bootstrap_abort.cc \
	tests/comm/test_bootstrap_hello.cc tests/comm/test_bootstrap_kill.cc tests/comm/test_bootstrap_lost.cc \
	tests/comm/test_bootstrap_users.cc tests/comm/test_control.cc tests/comm/test_control_link.cc \
	tests/comm/calls.h tests/comm/test_record.cc tests/comm/test_record_mismatch.cc tests/comm/test_record_wait.cc \
	tests/comm/test_env.cc tests/comm/test_ops.cc tests/comm/test_plans.cc \
	tests/comm/test_progress.cc tests/comm/test_retire.cc tests/comm/test_staging.cc \
	tests/comm/test_facts.cc tests/comm/test_choose.cc tests/comm/test_user_plans.cc \
	tests/comm/inject.cc tests/comm/inject.h \
	tests/comm/test_group.cc tests/comm/test_stream.cc tests/comm/test_event.cc tests/comm/test_fuse.cc \
	tests/comm/test_memory.cc tests/comm/test_gpu_pairs.cc tests/comm/test_roll.cc tests/comm/test_shrink.cc \
	tests/comm/ranks.cc tests/comm/ranks.h tests/api/world.cc tests/api/world.h
tests_comm_test_comm_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_comm_test_comm_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lpthread
tests_comm_test_comm_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pthread_create,--wrap=getsockopt,--wrap=tw_alloc \
	-Wl,--wrap=tw_chan_reserve,--wrap=tw_chan_commit,--wrap=tw_chan_release

# Ranks on devices, on a CUDA that is made up: fake_gpu.cc and fake_vmm.cc have all of base/cuda.h and device/cuda/launch.h, so
# that of the library's own none is linked
check_PROGRAMS += tests/comm/test_gpu_ranks
TESTS += tests/comm/test_gpu_ranks
tests_comm_test_gpu_ranks_SOURCES = tests/comm/test_gpu_blocks.cc tests/comm/test_gpu_call.cc tests/comm/test_gpu_copy.cc \
	tests/comm/test_gpu_life.cc tests/comm/test_gpu_selftest.cc tests/comm/test_gpu_cut.cc tests/comm/test_probe.cc tests/comm/test_gpu_reg.cc tests/comm/test_gpu_budget.cc tests/comm/test_gpu_early.cc tests/comm/test_gpu_shape.cc tests/comm/test_gpu_cost.cc tests/comm/test_gpu_order.cc tests/comm/topo_file.h tests/comm/test_gpu_staging.cc tests/comm/test_gpu_team.cc \
	tests/comm/test_gpu_watch.cc tests/comm/test_gpu_reach.cc tests/comm/fake_vmm.cc tests/comm/fake_vmm.h tests/comm/fake_gpu.cc tests/comm/fake_probe.cc tests/comm/fake_gpu.h \
	tests/comm/gpu_ranks.h tests/comm/ranks.cc tests/comm/ranks.h
tests_comm_test_gpu_ranks_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
tests_comm_test_gpu_ranks_LDADD = libtwill_core.la $(GTEST_LIBS) -lgtest_main -lpthread
