# SPDX-License-Identifier: Apache-2.0
# libnccl.so.2 has all of twill in it, so that it is one file to put in NCCL's place, and a program that
# uses libtwill.so too has each apart. Its folders, here and where it is installed, have nothing else.
EXTRA_DIST += src/compat/nccl.map
if NCCL_ON
ncclabidir = $(pkglibdir)/nccl
ncclabi_LTLIBRARIES = nccl/libnccl.la
ncclincludedir = $(pkgincludedir)/nccl
ncclinclude_HEADERS = include/nccl/nccl.h
noinst_LTLIBRARIES += libtwill_compat.la
endif
libtwill_compat_la_SOURCES = src/compat/compat.h \
	src/compat/result.c src/compat/handle.c src/compat/group.c src/compat/config.c src/compat/init.c \
	src/compat/environment.c src/compat/comm.c src/compat/coll.c src/compat/memory.c src/compat/rest.c
libtwill_compat_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/include/nccl
nccl_libnccl_la_SOURCES =
nodist_EXTRA_nccl_libnccl_la_SOURCES = dummy.c
nccl_libnccl_la_LIBADD = libtwill_compat.la libtwill_core.la
nccl_libnccl_la_LDFLAGS = $(AM_LDFLAGS) -version-info 2:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/src/compat/nccl.map -Wl,--exclude-libs,libcudart_static.a
nccl_libnccl_la_DEPENDENCIES = libtwill_compat.la libtwill_core.la src/compat/nccl.map
nccl_libnccl_la_LINK = $(LIBTOOL) --tag=CC --mode=link $(CC) $(AM_CFLAGS) $(CFLAGS) $(nccl_libnccl_la_LDFLAGS) $(LDFLAGS) -o $@
