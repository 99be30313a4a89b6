/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that there are sweeps and comparisons. Never knows: what they do. */
#include "base/log.h"
#include "cli.h"
#include "sim.h"

static int run(int argc, char **argv)
{
    struct sim_options options;
    tw_log_configure("error", NULL); /* what fails is said once, at the end */
    int status = sim_options_parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    return options.nagainst ? sim_against(&options) : sim_sweep(&options);
}

int main(int argc, char **argv)
{
    cli_streams_hold();
    return cli_output_close(run(argc, argv), SIM_EXIT_FAILED);
}
