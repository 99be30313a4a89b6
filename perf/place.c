/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which options go with which memory, and what this build and machine have. Never knows: how
 * anything runs there. */
#include "config.h"

#include <stdlib.h>

#include "cli.h"
#include "perf_cuda.h"
#include "team.h"

int perf_place_check(const struct perf_options *options)
{
    const char *why;
    if (options->cuda && !perf_cuda_built())
        return cli_usage("--device cuda: this build has no GPU support");
    if (!options->cuda && options->gpus)
        return cli_usage("-g: %sranks of host memory come from twill-run -n and -t",
                         perf_cuda_built() ? "is of --device cuda; "
                                           : "this build has no GPU support; ");
    if (!options->cuda && options->graph >= 0)
        return cli_usage("-G: %s", perf_cuda_built()
                                       ? "CUDA graphs are of --device cuda"
                                       : "this build has no CUDA graphs, since it has no GPU "
                                         "support");
    if (!options->cuda && options->max_sms != TWILL_UNSET)
        return cli_usage("--max-sms: kernels are of --device cuda");
    if (!options->cuda && options->registered == 2)
        return cli_usage("-R 2: symmetric windows are not in this build for host memory");
    if (!options->cuda && options->nccl)
        return cli_usage("--peer nccl: NCCL has no host memory: it goes with --device cuda");
    if (!options->cuda && options->overlap)
        return cli_usage("--overlap: %s", perf_cuda_built()
                                              ? "matrix products run on GPUs: it goes with "
                                                "--device cuda"
                                              : "this build has no matrix product, since it has "
                                                "no GPU support");
    /* Streams that share one of CUDA's few queues wait for each other; read when CUDA begins. */
    if (options->overlap && setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) != 0)
        return cli_usage("--overlap: out of memory");
    if (options->cuda && perf_cuda_count(&why) == 0)
        return cli_usage("--device cuda: there is no device here: %s", why);
    return CLI_GO_ON;
}
