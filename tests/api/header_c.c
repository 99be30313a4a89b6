/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that the public header stands alone in C11 under -Wpedantic, and every name in it.
 * Never knows: what the functions do. */
#pragma GCC diagnostic error "-Wpedantic"
#include "twill.h"

struct header_names {
    const char *(*status_string)(enum twill_status);
    enum twill_status (*version)(int *);
    const char *(*last_error)(twill_comm_t);
    enum twill_status (*param_set)(const char *, const char *);
    enum twill_status (*get_unique_id)(twill_unique_id *);
    enum twill_status (*init)(twill_comm_t *, int, const twill_unique_id *, int,
                              const struct twill_config *);
    enum twill_status (*init_env)(twill_comm_t *, const struct twill_config *);
    enum twill_status (*init_all)(twill_comm_t *, int, const int *, const struct twill_config *);
    enum twill_status (*comm[3])(twill_comm_t);
    enum twill_status (*async_error)(twill_comm_t, enum twill_status *);
    enum twill_status (*ask[3])(twill_comm_t, int *);
    enum twill_status (*stream_create)(twill_stream_t *);
    enum twill_status (*stream[3])(twill_stream_t);
    enum twill_status (*group[2])(void);
    enum twill_status (*all_reduce)(const void *, void *, size_t, twill_type_t, twill_redop_t,
                                    twill_comm_t, twill_stream_t);
    enum twill_status (*reduce)(const void *, void *, size_t, twill_type_t, twill_redop_t, int,
                                twill_comm_t, twill_stream_t);
    enum twill_status (*broadcast)(const void *, void *, size_t, twill_type_t, int, twill_comm_t,
                                   twill_stream_t);
    enum twill_status (*reduce_scatter)(const void *, void *, size_t, twill_type_t, twill_redop_t,
                                        twill_comm_t, twill_stream_t);
    enum twill_status (*moves[2])(const void *, void *, size_t, twill_type_t, twill_comm_t,
                                  twill_stream_t);
    enum twill_status (*barrier)(twill_comm_t, twill_stream_t);
    enum twill_status (*send)(const void *, size_t, twill_type_t, int, twill_comm_t,
                              twill_stream_t);
    enum twill_status (*recv)(void *, size_t, twill_type_t, int, twill_comm_t, twill_stream_t);
    enum twill_status (*mem_alloc)(void **, size_t, int);
    enum twill_status (*mem_free)(void *);
    enum twill_status (*reg[2])(twill_comm_t, void *, size_t, twill_reg_t *);
    enum twill_status (*dereg)(twill_comm_t, twill_reg_t);
};

const struct header_names *header_names(void);
struct twill_config header_config(void);

const struct header_names *header_names(void)
{
    static const struct header_names names = {
        twill_status_string,
        twill_version,
        twill_last_error,
        twill_param_set,
        twill_get_unique_id,
        twill_comm_init,
        twill_comm_init_env,
        twill_comm_init_all,
        {twill_comm_finalize, twill_comm_destroy, twill_comm_abort},
        twill_comm_async_error,
        {twill_comm_rank, twill_comm_size, twill_comm_device},
        twill_stream_create,
        {twill_stream_destroy, twill_stream_synchronize, twill_stream_query},
        {twill_group_start, twill_group_end},
        twill_all_reduce,
        twill_reduce,
        twill_broadcast,
        twill_reduce_scatter,
        {twill_all_gather, twill_all_to_all},
        twill_barrier,
        twill_send,
        twill_recv,
        twill_mem_alloc,
        twill_mem_free,
        {twill_register, twill_register_symmetric},
        twill_deregister,
    };
    return &names;
}

struct twill_config header_config(void)
{
    const struct twill_config config = TWILL_CONFIG_INIT;
    return config;
}
