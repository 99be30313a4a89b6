/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which variables launchers other than twill-run set. Never knows: what is made of them. */
#ifndef TW_BASE_LAUNCHER_H
#define TW_BASE_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "twill.h"

/* X(id, variable). torchrun; Open MPI and PRRTE; launchers that speak PMI (MPICH, Slurm). */
#define TW_LAUNCHER_LIST(X)                                                                        \
    X(TORCH_RANK, "RANK")                                                                          \
    X(TORCH_SIZE, "WORLD_SIZE")                                                                    \
    X(TORCH_LOCAL_RANK, "LOCAL_RANK")                                                              \
    X(TORCH_LOCAL_SIZE, "LOCAL_WORLD_SIZE")                                                        \
    X(TORCH_ADDR, "MASTER_ADDR")                                                                   \
    X(TORCH_PORT, "MASTER_PORT")                                                                   \
    X(TORCH_RUN_ID, "TORCHELASTIC_RUN_ID")                                                         \
    X(TORCH_RESTART, "TORCHELASTIC_RESTART_COUNT")                                                 \
    X(OMPI_RANK, "OMPI_COMM_WORLD_RANK")                                                           \
    X(OMPI_SIZE, "OMPI_COMM_WORLD_SIZE")                                                           \
    X(OMPI_LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK")                                               \
    X(OMPI_LOCAL_SIZE, "OMPI_COMM_WORLD_LOCAL_SIZE")                                               \
    X(OMPI_JOB, "OMPI_MCA_ess_base_jobid")                                                         \
    X(PMIX_JOB, "PMIX_NAMESPACE")                                                                  \
    X(PMI_RANK, "PMI_RANK")                                                                        \
    X(PMI_SIZE, "PMI_SIZE")                                                                        \
    X(PMI_LOCAL_RANK, "MPI_LOCALRANKID")                                                           \
    X(PMI_LOCAL_SIZE, "MPI_LOCALNRANKS")                                                           \
    X(PMI_JOB, "PMI_JOBID")

enum tw_launcher_var {
#define TW_LAUNCHER_ENUM(id, variable) TW_LAUNCHER_##id,
    TW_LAUNCHER_LIST(TW_LAUNCHER_ENUM)
#undef TW_LAUNCHER_ENUM
        TW_LAUNCHER_COUNT
};

/** Name of the variable, for messages. */
const char *tw_launcher_name(enum tw_launcher_var var);

/** Its value in the environment now; NULL when unset or empty. Lives until the variable changes. */
const char *tw_launcher_text(enum tw_launcher_var var);

/**
 * Its value as an integer.
 *
 * @param value  out; untouched when the variable is unset or empty
 * @return TWILL_OK, also when unset; ERR_INVALID names variable and value when it is no integer
 */
enum twill_status tw_launcher_int(enum tw_launcher_var var, int *value);

#endif
