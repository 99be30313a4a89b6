# SPDX-License-Identifier: Apache-2.0
# Checks of the whole tree; the rooms' tests are in the folders below. ThreadSanitizer lets every process, of
# which some tests start dozens, sleep before it ends, for threads that still run: a tenth of its second will do.
AM_TESTS_ENVIRONMENT = \
	MAKE='$(MAKE)'; export MAKE; CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; TW_SAN='$(TW_SAN)'; export TW_SAN; \
	TSAN_OPTIONS="atexit_sleep_ms=100 $$TSAN_OPTIONS"; export TSAN_OPTIONS;
dist_check_SCRIPTS += tests/guide tests/layers tests/pages tests/params tests/symbols tests/install/run
EXTRA_DIST += dev .ci/run .clang-format .clang-tidy .cppcheck
TESTS += tests/guide tests/layers tests/pages tests/params tests/symbols tests/install/run
TESTS_ASIDE += tests/layers tests/pages tests/params tests/symbols tests/install/run

# The tests in two parts: those whose result does not depend on what else the machine does (they
# compute, and wait for nobody), and the others, which want the cores to themselves.
check-aside:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(TESTS_ASIDE)'
check-alone:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out $(TESTS_ASIDE),$(TESTS))'

# TW_PCH_BUSY is for tests with TW_CXX_BUSY that use GoogleTest: to each level of optimization its own
# compiled header, or the compiler takes none. No TW_PCH, neither.
EXTRA_DIST += tests/pch.hh
if QUICK_TESTS
AM_CXXFLAGS += -O0 $(TW_PCH)
TW_CXX_BUSY += -O1
TW_PCH = -Winvalid-pch -include tests/pch.hh
TW_PCH_BUSY = $(TW_PCH:pch.hh=pch_busy.hh)
TW_PCH_COMPILE = $(CXX) $(GTEST_CFLAGS) $(CPPFLAGS) $(TW_CXXFLAGS) $(TW_SAN)
BUILT_SOURCES += tests/pch.hh.gch tests/pch_busy.hh.gch
CLEANFILES += tests/pch.hh.gch tests/pch_busy.hh.gch
tests/pch.hh.gch: $(srcdir)/tests/pch.hh Makefile
	@$(MKDIR_P) tests
	$(AM_V_CXX)$(TW_PCH_COMPILE) -O0 $(CXXFLAGS) $(TW_PCH_FLAGS) -x c++-header $(srcdir)/tests/pch.hh -o $@
tests/pch_busy.hh.gch: $(srcdir)/tests/pch.hh Makefile
	@$(MKDIR_P) tests
	$(AM_V_CXX)$(TW_PCH_COMPILE) -O1 $(CXXFLAGS) $(TW_PCH_FLAGS) -x c++-header $(srcdir)/tests/pch.hh -o $@
endif
