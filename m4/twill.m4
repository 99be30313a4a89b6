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

AC_DEFUN([TW_OPTIONAL_LIBS], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [CUDA toolkit: yes, no, auto or its folder])],
            [], [with_cuda=auto])
NVCC=
have_cuda=no
AS_IF([test "x$with_cuda" != xno], [
  AS_CASE([$with_cuda], [yes|auto], [tw_cuda_path="$PATH:/usr/local/cuda/bin"], [tw_cuda_path="$with_cuda/bin"])
  AC_PATH_PROG([NVCC], [nvcc], [], [$tw_cuda_path])])
AS_IF([test -n "$NVCC"], [have_cuda=yes])
AS_IF([test "x$with_cuda" = xno], [TW_NOTE([cuda], [off, as asked])],
      [test $have_cuda = yes], [TW_NOTE([cuda], [found $NVCC; used by the device kernels once they exist])],
      [test "x$with_cuda" = xauto], [TW_NOTE([cuda], [off: no nvcc in PATH or /usr/local/cuda/bin])],
      [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for, but no nvcc was found])])
TW_OPTIONAL([verbs], [infiniband/verbs.h], [ibverbs], [ibv_get_device_list], [libibverbs-dev])
TW_OPTIONAL([rdmacm], [rdma/rdma_cma.h], [rdmacm], [rdma_create_id], [librdmacm-dev])
TW_OPTIONAL([ucx], [ucp/api/ucp.h], [ucp], [ucp_get_version], [libucx-dev])
AC_DEFINE_UNQUOTED([TW_BUILD_FOUND], ["cuda=$have_cuda verbs=$have_verbs rdmacm=$have_rdmacm ucx=$have_ucx"],
                   [optional parts that configure found])
AC_DEFINE_UNQUOTED([TW_BUILD_OPTIONS], ["sanitizer=$enable_sanitizer werror=$enable_werror"],
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
# clang instantiates the header's templates once with it; gcc does not know the option
AC_LANG_PUSH([C++])
tw_saved_cxxflags=$CXXFLAGS
CXXFLAGS=-fpch-instantiate-templates
AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_SUBST([TW_PCH_FLAGS], [-fpch-instantiate-templates])])
CXXFLAGS=$tw_saved_cxxflags
AC_LANG_POP([C++])
])

AC_DEFUN([TW_SUMMARY], [
AS_ECHO(["
twill $PACKAGE_VERSION: $CC, prefix $prefix
$tw_notes"])
])
