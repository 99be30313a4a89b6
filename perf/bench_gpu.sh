#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Knows: which sweeps set twill's time on GPUs against NCCL's. Never knows: how either is made.
#
# Usage, in the folder above the build's: perf/bench_gpu.sh BUILD FOLDER (./dev bench --gpu does it)
#
# In rounds, so that what else the machine does falls on all alike, each form of run measures twill
# and NCCL one after the other; FOLDER gets a CSV file of each sweep and ratios.txt, which perf/ratios.py
# makes of them. From the environment:
#   BENCH_OPS      all_reduce all_gather reduce_scatter all_to_all broadcast send_recv
#   BENCH_SIZES    8,2K,32K,512K,8M,128M,1G
#   BENCH_FORMS    one two threads: one thread with -g, processes, a thread each (in streams only)
#   BENCH_MODES    graph stream
#   BENCH_ROUNDS   3; 0: no sweeps against each other and no checks
#   BENCH_SECONDS  280: after these no further round begins, nor any further check
#   BENCH_RANKS    2
#   BENCH_OVERLAP  1: calls beside matrix products too, into overlap.txt, by perf/overlap.py (before the rounds)
#   BENCH_NCCL     NCCL's library, where the dynamic linker does not find it; none: twill alone
set -u
LC_ALL=C
export LC_ALL
[ $# = 2 ] || {
    echo "usage: perf/bench_gpu.sh BUILD FOLDER" >&2
    exit 2
}
build=$1 folder=$2 here=$(dirname "$0")
ops=${BENCH_OPS:-all_reduce all_gather reduce_scatter all_to_all broadcast send_recv}
sizes=${BENCH_SIZES:-8,2K,32K,512K,8M,128M,1G}
forms=${BENCH_FORMS:-one two threads}
modes=${BENCH_MODES:-graph stream}
rounds=${BENCH_ROUNDS:-3}
seconds=${BENCH_SECONDS:-280}
ranks=${BENCH_RANKS:-2}
begin=$(date +%s)
mkdir -p "$folder"
rm -f "$folder"/gpu-*.csv "$folder"/gpu-*.log "$folder/ratios.txt" "$folder/overlap.txt"

# NCCL's library: what the dynamic linker finds, or beside a toolkit, or as python has it.
nccl_find() {
    case ${BENCH_NCCL:-} in
    none) return ;;
    ?*) echo "nccl=$BENCH_NCCL" && return ;;
    esac
    ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2' && echo nccl && return
    for file in /usr/local/cuda*/lib*/libnccl.so.2 /usr/lib/*/libnccl.so.2 \
        $(python3 -c 'import nvidia.nccl as n; print(n.__path__[0] + "/lib/libnccl.so.2")' 2>/dev/null); do
        [ -e "$file" ] && echo "nccl=$file" && return
    done
}
nccl=$(nccl_find)
[ -n "$nccl" ] || echo 'bench: no libnccl.so.2 was found (BENCH_NCCL): twill alone is measured'

# NCCL 2.28.3 ends with an illegal address in a broadcast from symmetric windows
windowed=
for op in $ops; do
    case $op in
    broadcast | send_recv) ;;
    *) windowed="$windowed $op" ;;
    esac
done

over() { [ $(($(date +%s) - begin)) -ge "$seconds" ]; }

# sweep FORM NAME OPTIONS...: one sweep into gpu-NAME.csv and .log
sweep() {
    form=$1 name=$2
    shift 2
    case $form in
    one) set -- "$build/perf/twill-perf" "$@" -g "$ranks" ;;
    threads) set -- "$build/perf/twill-perf" "$@" -t "$ranks" ;;
    two) set -- "$build/tools/twill-run" -n "$ranks" "$build/perf/twill-perf" "$@" ;;
    *)
        echo "bench: there is no form $form" >&2
        exit 2
        ;;
    esac
    # a sweep that hangs shall not take the others' time
    # shellcheck disable=SC2086 # a list
    timeout -k 5 60 "$@" $ops --device cuda --csv "$folder/gpu-$name.csv" >"$folder/gpu-$name.log" 2>&1 || {
        echo "bench: $name failed (status $?); the end of its log:"
        tail -n 4 "$folder/gpu-$name.log"
        rm -f "$folder/gpu-$name.csv"
    }
}

# pair FORM MODE ROUND: twill's memory kinds, and NCCL's
pair() {
    form=$1 mode=$2 round=$3
    case $mode in
    graph) how='-G 5' ;;
    *) how='-G 0' ;;
    esac
    common="$how --sizes $sizes -n 20 -w 5 -c 0 --volume 2G"
    registrations=0
    [ "$form" != two ] || registrations='0 1 2' # of one process all memory is in reach
    for r in $registrations; do
        # shellcheck disable=SC2086 # options
        sweep "$form" "$form-$mode-twill-R$r-$round" $common -R "$r"
    done
    [ -n "$nccl" ] || return 0
    # shellcheck disable=SC2086
    sweep "$form" "$form-$mode-nccl-R0-$round" $common -R 0 --peer "$nccl"
    all=$ops ops=$windowed
    # shellcheck disable=SC2086
    [ -z "$ops" ] || sweep "$form" "$form-$mode-nccl-R2-$round" $common -R 2 --peer "$nccl"
    ops=$all
}

# beside FORM PRIORITY RUN OPERATION [VARIABLE=VALUE]... [-- OPTIONS]: 128 MiB beside products
beside() (
    form=$1 name=overlap-$1-$2-$3 priority=$2 ops=$4
    shift 4
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        export "${1?}"
        shift
    done
    [ $# = 0 ] || shift
    over || sweep "$form" "$name" --overlap="$priority" --sizes 128M -n 20 -w 5 -c 0 "$@"
)

# overlap FORM PRIORITY: what takes fewer multiprocessors loses less, and takes less
overlap() {
    registered=0
    [ "$1" != two ] || registered=2 # of one process all memory is in reach
    beside "$1" "$2" twill all_reduce -- -R $registered
    beside "$1" "$2" twill-16-SMs all_reduce TWILL_MAX_SMS=16 -- -R $registered
    beside "$1" "$2" twill-stores all_gather TWILL_COPY_ENGINE=off -- -R $registered
    beside "$1" "$2" twill-16-SMs-stores all_gather TWILL_COPY_ENGINE=off TWILL_MAX_SMS=16 -- -R $registered
    beside "$1" "$2" twill-copies all_gather TWILL_COPY_ENGINE=prefer -- -R $registered
    [ -n "$nccl" ] || return 0
    beside "$1" "$2" nccl-R0 'all_reduce all_gather' -- -R 0 --peer "$nccl"
    beside "$1" "$2" nccl-R0-16-channels 'all_reduce all_gather' NCCL_MAX_NCHANNELS=16 -- -R 0 --peer "$nccl"
    beside "$1" "$2" nccl-R2 'all_reduce all_gather' -- -R 2 --peer "$nccl"
}

if [ "${BENCH_OVERLAP:-0}" = 1 ]; then
    for form in $forms; do
        [ "$form" != threads ] || continue
        for priority in equal first; do
            overlap "$form" "$priority"
        done
    done
    python3 "$here/overlap.py" "$folder" | tee "$folder/overlap.txt"
    echo "bench: overlap done after $(($(date +%s) - begin)) s"
fi

round=1
while [ "$round" -le "$rounds" ] && ! over; do
    for form in $forms; do
        for mode in $modes; do
            [ "$form $mode" = 'threads graph' ] || pair "$form" "$mode" "$round"
        done
    done
    echo "bench: round $round of $rounds done after $(($(date +%s) - begin)) s"
    round=$((round + 1))
done

[ "$rounds" -gt 0 ] || exit 0
# What is fast must be right too: small sizes, in place and not.
for form in $forms; do
    over || sweep "$form" "$form-graph-check" -G 1 -b 8 -e 8M -f 64 -n 5 -w 1 -c 1
done
cat "$folder"/gpu-*-check.log 2>/dev/null | grep 'wrong elements' | sed 's/^#/bench: checked:/'

python3 "$here/ratios.py" "$folder" | tee "$folder/ratios.txt"
