#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Knows: how to set the time of the library's choice against that of every algorithm. Never knows:
# how either is made.
#
# Usage, in the build's top folder:
#   srcdir/perf/regret.sh [-n RANKS] [-b BYTES] [-e BYTES] [-f FACTOR] [-i CALLS] [-r ROUNDS] [-t COLUMN] [COLLECTIVE...]
#
# Rounds are interleaved: each runs the choice and then every algorithm that serves the collective, so
# that what else the machine does falls on all alike. Of a sweep the median time of a single call
# counts (-t names another column of the CSV; where ranks outnumber CPUs the least one is of a call
# that found its peers a call ahead), of the rounds the least: a virtual machine may be twice as slow
# for seconds. The regret of a size is the choice's time over the best algorithm's, less 1: noise
# makes it positive even for a perfect choice, which is why the algorithm that was chosen, forced,
# counts for the choice as well. Prints a table.
set -u
LC_ALL=C
export LC_ALL
ranks=2 from=64 to=16M factor=16 calls=20 rounds=5 column=time_us_median
while getopts n:b:e:f:i:r:t: option; do
    case $option in
    n) ranks=$OPTARG ;;
    b) from=$OPTARG ;;
    e) to=$OPTARG ;;
    f) factor=$OPTARG ;;
    i) calls=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) column=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- all_reduce broadcast all_gather reduce_scatter all_to_all
run=tools/twill-run
perf=perf/twill-perf
[ -x $run ] && [ -x $perf ] || {
    echo "run this in the build's top folder, after make" >&2
    exit 2
}
work=$(mktemp -d "${TMPDIR:-/tmp}/twill-regret-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# sweep COLLECTIVE: lines "size time algo" of the run
sweep() {
    $run -n "$ranks" $perf "$1" -b "$from" -e "$to" -f "$factor" -n "$calls" -w 3 -c 0 \
        --csv "$work/csv" >"$work/out" 2>&1 || return 1
    awk -F, -v column="$column" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["inplace"] + 0 == 0 && $at["inplace"] != "true" {
            print $at["size_bytes"], $at[column], $at["algo"] }' "$work/csv"
}

# algos COLLECTIVE: those that serve it, as the error of an unknown name lists them
algos() {
    TWILL_ALGO="$1=?" $perf barrier -n 1 2>&1 |
        sed -n 's/.*there are: //p' | head -n 1 | tr -d ','
}

for collective; do
    : >"$work/times"
    round=0
    while [ "$round" -lt "$rounds" ]; do
        sweep "$collective" | sed 's/^/- /' >>"$work/times"
        for algo in $(algos "$collective"); do
            case $algo in ordered*) continue ;; esac # they compete among themselves only
            TWILL_ALGO="$collective=$algo" sweep "$collective" | sed "s/^/$algo /" >>"$work/times"
        done
        round=$((round + 1))
    done
    echo "# $collective, $ranks ranks, least of $rounds rounds of $calls calls, $column"
    sort -k1,1 -k2,2n -k3,3g "$work/times" | awk '
        function flush() { if (n) { least[who, size] = time[1]; names[who] = 1 } n = 0 }
        { if ($1 != who || $2 != size) flush()
          who = $1; size = $2; sizes[size] = 1; time[++n] = $3; if (who == "-") of[size] = $4 }
        END { flush()
          for (s in sizes) {
            best = ""
            for (w in names) if (w != "-" && (w, s) in least &&
                (best == "" || least[w, s] < least[best, s])) best = w
            if (best == "" || !(("-", s) in least)) continue
            own = least["-", s]
            if ((of[s], s) in least && least[of[s], s] < own) own = least[of[s], s]
            printf "%12d %-20s %12.2f %-20s %12.2f %+8.0f%%\n", s, of[s], own, best,
                least[best, s], 100 * (own / least[best, s] - 1) } }' | sort -n |
        sed '1i\        size choice                    time best                       time   regret'
done
