# SPDX-License-Identifier: Apache-2.0
# Checks of twill's configure, one macro a concern. TW_NOTE collects the lines of the summary.

# TW_NOTE(what, finding): remember one line for TW_SUMMARY
AC_DEFUN([TW_NOTE], [AS_VAR_APPEND([tw_notes], ["  $1: $2
"])])

AC_DEFUN([TW_COMPILER_FLAGS], [
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [turn warnings into errors])],
              [], [enable_werror=no])
tw_warn="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef -Wvla"
AS_IF([test "x$enable_werror" = xyes], [tw_warn="$tw_warn -Werror"; tw_cxxwerror=-Werror])
AC_SUBST([TW_CFLAGS],
  ["-std=c11 -fvisibility=hidden -fno-strict-aliasing -ffp-contract=off -fno-math-errno $tw_warn"])
AC_SUBST([TW_CXXFLAGS], ["-std=c++17 -Wall -Wextra $tw_cxxwerror"])
AC_SEARCH_LIBS([pthread_create], [pthread])
AC_SEARCH_LIBS([dlopen], [dl])
])

AC_DEFUN([TW_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
  [AS_HELP_STRING([--enable-sanitizer=KIND], [build with a sanitizer: address (with undefined) or thread])],
  [], [enable_sanitizer=no])
AS_CASE([$enable_sanitizer],
  [no], [tw_san=],
  [address], [tw_san="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"],
  [thread], [tw_san="-fsanitize=thread -fno-omit-frame-pointer"],
  [AC_MSG_ERROR([--enable-sanitizer takes address or thread, not '$enable_sanitizer'])])
AC_SUBST([TW_SAN], [$tw_san])
AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
TW_NOTE([sanitizer], [$enable_sanitizer])
])

AC_DEFUN([TW_REQUIRED_LIBS], [
PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [],
  [AC_MSG_ERROR([hwloc 2.0 or newer is needed (Debian: libhwloc-dev)])])
PKG_CHECK_MODULES([SODIUM], [libsodium], [],
  [AC_MSG_ERROR([libsodium is needed (Debian: libsodium-dev)])])
TW_NOTE([hwloc], [$($PKG_CONFIG --modversion hwloc)])
TW_NOTE([libsodium], [$($PKG_CONFIG --modversion libsodium)])
])

# TW_OPTIONAL(name, header, library, symbol, Debian package)
AC_DEFUN([TW_OPTIONAL], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [use $1: yes, no or auto])], [], [with_$1=auto])
tw_have=no
AS_IF([test "x$with_$1" != xno], [
  tw_saved_libs=$LIBS
  AC_CHECK_HEADER([$2], [AC_CHECK_LIB([$3], [$4], [tw_have=yes])])
  LIBS=$tw_saved_libs])
AS_IF([test "x$with_$1" = xno], [TW_NOTE([$1], [off, as asked])],
      [test $tw_have = yes], [TW_NOTE([$1], [found; used by the network transports once they exist])],
      [test "x$with_$1" = xauto], [TW_NOTE([$1], [off: $2 or lib$3 was not found (Debian: $5)])],
      [AC_MSG_ERROR([--with-$1 was asked for, but $2 or lib$3 was not found (Debian: $5)])])
have_$1=$tw_have
])

# Where a CUDA toolkit keeps its parts: NVCC, tw_cuda_include, tw_cuda_lib; tw_cuda_lack: what is missing
AC_DEFUN([TW_CUDA_FIND], [
AS_CASE([$with_cuda],
  [yes|auto], [tw_cuda_path="$PATH:/usr/local/cuda/bin"; tw_cuda_where="PATH or /usr/local/cuda/bin"],
  [tw_cuda_dir=$(cd "$with_cuda" 2>/dev/null && pwd)
   tw_cuda_path="${tw_cuda_dir:-/nowhere}/bin"; tw_cuda_where="$with_cuda/bin"])
AC_PATH_PROG([NVCC], [nvcc], [], [$tw_cuda_path])
tw_cuda_include=
tw_cuda_lib=
AS_IF([test -z "$NVCC"], [tw_cuda_lack="no nvcc in $tw_cuda_where"], [
  tw_cuda_real=$(readlink -f "$NVCC")
  for tw_root in "$tw_cuda_dir" "${NVCC%/bin/nvcc}" "${tw_cuda_real%/bin/nvcc}"; do
    for tw_target in . "targets/$host_cpu-linux" targets/sbsa-linux; do
      AS_IF([test -n "$tw_root" && test -z "$tw_cuda_include" && test -f "$tw_root/$tw_target/include/cuda_runtime_api.h"],
            [tw_cuda_include=$(cd "$tw_root/$tw_target/include" && pwd)])
      for tw_lib in lib64 lib "lib/$host_cpu-linux-gnu"; do
        AS_IF([test -n "$tw_root" && test -z "$tw_cuda_lib" && test -f "$tw_root/$tw_target/$tw_lib/libcudart_static.a"],
              [tw_cuda_lib=$(cd "$tw_root/$tw_target/$tw_lib" && pwd)])
      done
    done
  done
  AS_IF([test -z "$tw_cuda_include"], [tw_cuda_lack="no cuda_runtime_api.h beside $NVCC"],
        [test -z "$tw_cuda_lib"], [tw_cuda_lack="no libcudart_static.a beside $NVCC"])])
])

# What kernels are compiled for: machine code for each capability, and PTX for those that are not listed.
# It is made from the PTX of the lowest capability, and from 9.0 on of the lowest of these, from which on
# kernels can begin early (src/device/cuda/wire.h): no more than two, as compiling to PTX takes most of the
# time. Of the list that nobody asked for, only what this nvcc knows.
AC_DEFUN([TW_CUDA_ARCH], [
tw_cuda_arch=
tw_cuda_known=$("$NVCC" --list-gpu-code 2>/dev/null | tr '\n' ' ')
AS_IF([test "x$with_cuda_arch" = xdefault], [
  for tw_arch in 80 90 100; do
    AS_CASE([" $tw_cuda_known"], [*" sm_$tw_arch "*], [tw_cuda_arch="$tw_cuda_arch $tw_arch"])
  done],
  [tw_cuda_arch=$(echo " $with_cuda_arch" | tr ',' ' ' | sed 's/  */ /g; s/ $//')])
tw_cuda_ptx= tw_cuda_early=
for tw_arch in $tw_cuda_arch; do
  tw_number=$(echo "$tw_arch" | sed 's/@<:@af@:>@$//') # 90a, 100f: variants that are not listed
  AS_CASE([" $tw_cuda_known"], [*" sm_$tw_number "*], [],
          [AC_MSG_ERROR([--with-cuda-arch: $NVCC compiles for $tw_cuda_known, not for '$tw_arch'])])
  AS_IF([test "$tw_number" -lt "${tw_cuda_ptx:-1000}"], [tw_cuda_ptx=$tw_number])
  AS_IF([test "$tw_number" -ge 90 && test "$tw_number" -lt "${tw_cuda_early:-1000}"], [tw_cuda_early=$tw_number])
done
AS_IF([test -z "$tw_cuda_ptx"], [tw_cuda_lack="$NVCC compiles for none of 80, 90 and 100"])
NVCC_ARCH="-gencode arch=compute_$tw_cuda_ptx,code=compute_$tw_cuda_ptx"
tw_cuda_ptxs=$tw_cuda_ptx
AS_IF([test "${tw_cuda_early:-$tw_cuda_ptx}" != "$tw_cuda_ptx"],
      [tw_cuda_ptxs="$tw_cuda_ptx and $tw_cuda_early"
       NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$tw_cuda_early,code=compute_$tw_cuda_early"])
for tw_arch in $tw_cuda_arch; do
  tw_number=$(echo "$tw_arch" | sed 's/@<:@af@:>@$//')
  AS_IF([test "$tw_number" -ge 90], [tw_made_of=$tw_cuda_early], [tw_made_of=$tw_cuda_ptx])
  NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$tw_made_of,code=sm_$tw_arch"
done
])

# The parts work together, with this compiler.
AC_DEFUN([TW_CUDA_TRY], [
AS_CASE([$tw_cuda_include], [/usr/include], [], [CUDA_CPPFLAGS="-isystem $tw_cuda_include"])
CUDA_LIBS="-L$tw_cuda_lib -lcudart_static -lrt -lpthread -ldl"
tw_saved_cppflags=$CPPFLAGS
tw_saved_libs=$LIBS
CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
LIBS="$CUDA_LIBS $LIBS"
AC_MSG_CHECKING([whether CUDA's static runtime links])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda.h>
#include <cuda_runtime_api.h>]], [[void *entry;
    return cudaGetDriverEntryPointByVersion("cuInit", &entry, 12000, cudaEnableDefault, NULL);]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   tw_cuda_lack="the runtime in $tw_cuda_lib does not link (it has to be CUDA 12.5 or newer; config.log says more)"])
CPPFLAGS=$tw_saved_cppflags
LIBS=$tw_saved_libs
AS_IF([test -z "$tw_cuda_lack"], [
  AC_MSG_CHECKING([whether $NVCC compiles for$tw_cuda_arch])
  AS_ECHO(["__global__ void tw_probe(int *word) { *word = 1; }"]) >conftest.cu
  AS_IF(["$NVCC" -std=c++17 $NVCC_ARCH $NVCCFLAGS -c conftest.cu -o conftest.$OBJEXT >&AS_MESSAGE_LOG_FD 2>&1],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     tw_cuda_lack="$NVCC cannot compile (config.log says why; NVCCFLAGS='-ccbin COMPILER' names it another host compiler)"])
  rm -f conftest.cu conftest.$OBJEXT])
])

AC_DEFUN([TW_CUDA], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [CUDA toolkit: yes, no, auto or its folder])],
            [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch],
  [AS_HELP_STRING([--with-cuda-arch="80 90 100"],
    [compute capabilities that kernels are compiled for, and for others as PTX of the lowest, and of the lowest from 90 on])],
  [], [with_cuda_arch=default])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags of the CUDA compiler])
have_cuda=no
tw_cuda_lack=
tw_cuda_dir=
CUDA_CPPFLAGS=
CUDA_LIBS=
AS_IF([test "x$with_cuda" = xno], [NVCC=], [
  TW_CUDA_FIND
  AS_IF([test -z "$tw_cuda_lack"], [TW_CUDA_ARCH])
  AS_IF([test -z "$tw_cuda_lack"], [TW_CUDA_TRY])
  AS_IF([test -z "$tw_cuda_lack"], [have_cuda=yes], [CUDA_CPPFLAGS=; CUDA_LIBS=])])
AS_IF([test "x$with_cuda" = xno], [TW_NOTE([cuda], [off, as asked])],
      [test $have_cuda = yes],
      [TW_NOTE([cuda], [$NVCC, kernels for$tw_cuda_arch and PTX of $tw_cuda_ptxs; $tw_cuda_lib/libcudart_static.a])
       AC_DEFINE([TW_HAVE_CUDA], [1], [build with CUDA])],
      [test "x$with_cuda" = xauto], [TW_NOTE([cuda], [off: $tw_cuda_lack])],
      [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for, but: $tw_cuda_lack])])
AC_SUBST([NVCC_ARCH])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBS])
AS_IF([test "x$enable_werror" = xyes], [AC_SUBST([NVCC_WERROR], ["--Werror all-warnings"])])
AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
])

AC_DEFUN([TW_OPTIONAL_LIBS], [
TW_OPTIONAL([verbs], [infiniband/verbs.h], [ibverbs], [ibv_get_device_list], [libibverbs-dev])
TW_OPTIONAL([rdmacm], [rdma/rdma_cma.h], [rdmacm], [rdma_create_id], [librdmacm-dev])
TW_OPTIONAL([ucx], [ucp/api/ucp.h], [ucp], [ucp_get_version], [libucx-dev])
AS_IF([test $have_cuda = yes], [tw_cuda_option=" cuda-arch=$(echo $tw_cuda_arch | tr ' ' ',')"])
AC_DEFINE_UNQUOTED([TW_BUILD_FOUND], ["cuda=$have_cuda verbs=$have_verbs rdmacm=$have_rdmacm ucx=$have_ucx"],
                   [optional parts that configure found])
AC_DEFINE_UNQUOTED([TW_BUILD_OPTIONS], ["sanitizer=$enable_sanitizer werror=$enable_werror$tw_cuda_option"],
                   [options given to configure])
])

AC_DEFUN([TW_TESTS], [
AC_ARG_ENABLE([tests], [AS_HELP_STRING([--disable-tests], [do not build the tests])], [], [enable_tests=yes])
AS_IF([test "x$enable_tests" = xyes], [
  PKG_CHECK_MODULES([GTEST], [gtest], [],
    [AC_MSG_ERROR([GoogleTest is needed by the tests (Debian: libgtest-dev), or configure --disable-tests])])
  TW_NOTE([tests], [GoogleTest $($PKG_CONFIG --modversion gtest)])],
  [TW_NOTE([tests], [off, as asked])])
AM_CONDITIONAL([TESTS_ON], [test "x$enable_tests" = xyes])
AC_ARG_ENABLE([quick-tests],
  [AS_HELP_STRING([--enable-quick-tests],
    [compile the tests in a short time: a precompiled header; optimised only where that shortens the whole])],
  [], [enable_quick_tests=no])
AM_CONDITIONAL([QUICK_TESTS], [test "x$enable_quick_tests" = xyes])
AC_ARG_ENABLE([emulation],
  [AS_HELP_STRING([--disable-emulation], [do not build the tests that run kernels on the processor])],
  [], [enable_emulation=yes])
AM_CONDITIONAL([EMULATION], [test "x$enable_emulation" = xyes && test "x$enable_sanitizer" = xno])
# clang instantiates the header's templates once with it; gcc does not know the option
AC_LANG_PUSH([C++])
tw_saved_cxxflags=$CXXFLAGS
CXXFLAGS=-fpch-instantiate-templates
AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_SUBST([TW_PCH_FLAGS], [-fpch-instantiate-templates])])
CXXFLAGS=$tw_saved_cxxflags
AC_LANG_POP([C++])
])

AC_DEFUN([TW_NCCL], [
AC_ARG_ENABLE([nccl], [AS_HELP_STRING([--disable-nccl], [do not build libnccl.so.2, the drop-in for NCCL])],
              [], [enable_nccl=yes])
AS_IF([test "x$enable_nccl" = xyes], [TW_NOTE([nccl], [libnccl.so.2 and nccl.h])], [TW_NOTE([nccl], [off, as asked])])
AM_CONDITIONAL([NCCL_ON], [test "x$enable_nccl" = xyes])
])

AC_DEFUN([TW_SUMMARY], [
AS_ECHO(["
twill $PACKAGE_VERSION: $CC, prefix $prefix
$tw_notes"])
])
