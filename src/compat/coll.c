/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calls that move and reduce, their types and operations. Never knows: how they run. */
#include "config.h"

#include "compat/compat.h"

/* The values of types and operations are the same; so are those of created operations. */
_Static_assert((int)ncclInt8 == (int)TWILL_INT8 && (int)ncclUint8 == (int)TWILL_UINT8 &&
                   (int)ncclInt32 == (int)TWILL_INT32 && (int)ncclUint32 == (int)TWILL_UINT32 &&
                   (int)ncclInt64 == (int)TWILL_INT64 && (int)ncclUint64 == (int)TWILL_UINT64 &&
                   (int)ncclFloat16 == (int)TWILL_FLOAT16 &&
                   (int)ncclFloat32 == (int)TWILL_FLOAT32 &&
                   (int)ncclFloat64 == (int)TWILL_FLOAT64 &&
                   (int)ncclBfloat16 == (int)TWILL_BFLOAT16 &&
                   (int)ncclFloat8e4m3 == (int)TWILL_FLOAT8E4M3 &&
                   (int)ncclFloat8e5m2 == (int)TWILL_FLOAT8E5M2,
               "types are passed on as they are");
_Static_assert((int)ncclSum == (int)TWILL_SUM && (int)ncclProd == (int)TWILL_PROD &&
                   (int)ncclMax == (int)TWILL_MAX && (int)ncclMin == (int)TWILL_MIN &&
                   (int)ncclAvg == (int)TWILL_AVG && (int)TWILL_OP_CREATED >= (int)ncclNumOps,
               "operations are passed on as they are");

#define NO_ROOT (-1)
#define NO_OP (-1)

struct call {
    const char *name;
    ncclComm_t comm;
    cudaStream_t stream;
    size_t count;
    ncclDataType_t type;
    int root, op;
    bool message; /* send, recv: count 0 is one too */
};

static twill_type_t type_of(ncclDataType_t type) { return (twill_type_t)type; }
static twill_redop_t op_of(ncclRedOp_t op) { return (twill_redop_t)op; }

/* A collective of nothing is no call, but its arguments are looked at. */
static ncclResult_t nothing_check(const struct call *call)
{
    enum twill_status state = TWILL_OK;
    int size = 0;
    enum twill_status status = twill_comm_async_error(call->comm->comm, &state);
    if (status == TWILL_OK && state < 0)
        status = state;
    if (status == TWILL_OK)
        status = twill_comm_size(call->comm->comm, &size);
    if (status != TWILL_OK)
        return tw_compat_say(status, call->comm->comm);
    if ((int)call->type < 0 || call->type >= ncclNumTypes)
        return tw_compat_fail(ncclInvalidArgument, "%s: %d is no type", call->name,
                              (int)call->type);
    if (call->root != NO_ROOT && (call->root < 0 || call->root >= size))
        return tw_compat_fail(ncclInvalidArgument, "%s: root %d is out of range: ranks are 0 to %d",
                              call->name, call->root, size - 1);
    return ncclSuccess;
}

/* What twill cannot know: handles and values that are this interface's. */
static ncclResult_t check(const struct call *call)
{
    if (atomic_load(&call->comm->revoked))
        return tw_compat_fail(ncclInvalidUsage, "%s: the communicator was revoked", call->name);
    if (call->comm->device == TWILL_DEVICE_HOST && call->stream)
        return tw_compat_fail(ncclInvalidArgument,
                              "%s: the stream is not NULL, and the communicator is on the host: "
                              "no CUDA device can be used here",
                              call->name);
    if (call->op != NO_OP &&
        (call->op < 0 || (call->op >= ncclNumOps && call->op < (int)TWILL_OP_CREATED)))
        return tw_compat_fail(ncclInvalidArgument, "%s: %d is no operation", call->name, call->op);
    return call->count || call->message ? ncclSuccess : nothing_check(call);
}

/* @return whether the call is to be made and then ended with tw_compat_end; otherwise *result is
 * what it returns */
static bool begin(const struct call *call, ncclResult_t *result)
{
    *result = tw_compat_enter(call->comm, call->name);
    if (*result != ncclSuccess)
        return false;
    *result = check(call);
    if (*result == ncclSuccess && (call->count || call->message))
        return true;
    tw_compat_group_spoil(*result);
    tw_compat_leave(call->comm);
    return false;
}

/* ---- collectives --------------------------------------------------------------------------------
 */

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    const struct call call = {"ncclAllReduce", comm, stream, count, datatype, NO_ROOT, (int)op, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm, twill_all_reduce(sendbuff, recvbuff, count, type_of(datatype),
                                                op_of(op), comm->comm, stream));
}
TW_COMPAT_TWIN(AllReduce);

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclReduce", comm, stream, count, datatype, root, (int)op, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm, twill_reduce(sendbuff, recvbuff, count, type_of(datatype), op_of(op),
                                            root, comm->comm, stream));
}
TW_COMPAT_TWIN(Reduce);

static ncclResult_t broadcast(const struct call *call, const void *sendbuff, void *recvbuff)
{
    ncclResult_t result;
    if (!begin(call, &result))
        return result;
    return tw_compat_end(call->comm,
                         twill_broadcast(sendbuff, recvbuff, call->count, type_of(call->type),
                                         call->root, call->comm->comm, call->stream));
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclBroadcast", comm, stream, count, datatype, root, NO_OP, 0};
    return broadcast(&call, sendbuff, recvbuff);
}
TW_COMPAT_TWIN(Broadcast);

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream)
{
    const struct call call = {"ncclBcast", comm, stream, count, datatype, root, NO_OP, 0};
    return broadcast(&call, buff, buff);
}
TW_COMPAT_TWIN(Bcast);

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    const struct call call = {
        "ncclReduceScatter", comm, stream, recvcount, datatype, NO_ROOT, (int)op, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm,
                         twill_reduce_scatter(sendbuff, recvbuff, recvcount, type_of(datatype),
                                              op_of(op), comm->comm, stream));
}
TW_COMPAT_TWIN(ReduceScatter);

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclAllGather", comm,    stream, sendcount,
                              datatype,        NO_ROOT, NO_OP,  0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm, twill_all_gather(sendbuff, recvbuff, sendcount, type_of(datatype),
                                                comm->comm, stream));
}
TW_COMPAT_TWIN(AllGather);

ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclAlltoAll", comm, stream, count, datatype, NO_ROOT, NO_OP, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(
        comm, twill_all_to_all(sendbuff, recvbuff, count, type_of(datatype), comm->comm, stream));
}
TW_COMPAT_TWIN(AlltoAll);

ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclGather", comm, stream, count, datatype, root, NO_OP, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(
        comm, twill_gather(sendbuff, recvbuff, count, type_of(datatype), root, comm->comm, stream));
}
TW_COMPAT_TWIN(Gather);

ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclScatter", comm, stream, count, datatype, root, NO_OP, 0};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm, twill_scatter(sendbuff, recvbuff, count, type_of(datatype), root,
                                             comm->comm, stream));
}
TW_COMPAT_TWIN(Scatter);

/* ---- messages -----------------------------------------------------------------------------------
 */

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclSend", comm, stream, count, datatype, NO_ROOT, NO_OP, 1};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm,
                         twill_send(sendbuff, count, type_of(datatype), peer, comm->comm, stream));
}
TW_COMPAT_TWIN(Send);

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {"ncclRecv", comm, stream, count, datatype, NO_ROOT, NO_OP, 1};
    ncclResult_t result;
    if (!begin(&call, &result))
        return result;
    return tw_compat_end(comm,
                         twill_recv(recvbuff, count, type_of(datatype), peer, comm->comm, stream));
}
TW_COMPAT_TWIN(Recv);

/* ---- created operations -------------------------------------------------------------------------
 */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    static const char call[] = "ncclRedOpCreatePreMulSum";
    twill_redop_t made = TWILL_SUM;
    if (!op || (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
        return tw_compat_fail(ncclInvalidArgument,
                              op ? "%s: the residence is none" : "%s: the output is NULL", call);
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    enum twill_status status = twill_op_create_premul_sum(
        &made, scalar, type_of(datatype),
        residence == ncclScalarDevice ? TWILL_SCALAR_POINTER : TWILL_SCALAR_VALUE, comm->comm);
    if (status == TWILL_OK)
        *op = (ncclRedOp_t)made;
    result = tw_compat_say(status, comm->comm);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(RedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    ncclResult_t result = tw_compat_enter(comm, "ncclRedOpDestroy");
    if (result != ncclSuccess)
        return result;
    result = tw_compat_say(twill_op_destroy(op_of(op), comm->comm), comm->comm);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(RedOpDestroy);
