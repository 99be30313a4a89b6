/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/data.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "device/reference.h"

namespace gpu
{

/* ---- elements ----------------------------------------------------------------------------------
 */

/* Bits of a float whose size is within a few powers of two of one. */
static uint64_t tame(Random *random, twill_type_t type)
{
    const reference::Format format = reference::format(type);
    const uint64_t bias = (1ull << (format.exponent_bits - 1)) - 1;
    const uint64_t fraction = random->bits() & ((1ull << format.fraction_bits) - 1);
    const uint64_t exponent = bias - 2 + random->below(4);

    return random->below(2) << (format.exponent_bits + format.fraction_bits) |
           exponent << format.fraction_bits | fraction;
}

static uint64_t special(Random *random, twill_type_t type)
{
    const reference::Format format = reference::format(type);
    const uint64_t fractions = (1ull << format.fraction_bits) - 1;
    const uint64_t exponents = ((1ull << format.exponent_bits) - 1) << format.fraction_bits;
    const uint64_t sign = random->below(2) << (format.exponent_bits + format.fraction_bits);

    switch (random->below(6)) {
    case 0:
        return sign; /* zero */
    case 1:
        return sign | exponents; /* infinity, or large */
    case 2:
        return sign | exponents | (random->bits() & fractions); /* mostly NaN */
    case 3:
        return sign | (random->bits() & fractions); /* subnormal */
    case 4:
        return sign | (exponents - (1ull << format.fraction_bits)) | fractions; /* largest, or so */
    default:
        return sign | 1ull << format.fraction_bits; /* smallest normal */
    }
}

static uint64_t element(Random *random, twill_type_t type, Bits bits)
{
    if (bits == WILD || !reference::is_float(type))
        return random->bits();
    return bits == SPECIAL && random->one_in(3) ? special(random, type) : tame(random, type);
}

Bytes draw_elements(Random *random, twill_type_t type, Bits bits, size_t count)
{
    const size_t elem = reference::bytes(type);
    const size_t period = std::min<size_t>(count, 65521);
    Bytes out(count * elem);

    for (size_t i = 0; i < period; i++) {
        const uint64_t value = element(random, type, bits); /* little endian: its low bytes */
        memcpy(&out[i * elem], &value, elem);
    }
    for (size_t done = period; done < count;) { /* in pieces that do not overlap */
        const size_t more = std::min(done, count - done) / period * period;
        const size_t some = more != 0 ? more : count - done;
        memcpy(&out[done * elem], &out[0], some * elem);
        done += some;
    }
    return out;
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static const size_t GUARD = 256; /* at least, on either side; also what regions are aligned to */

static size_t round_up(size_t bytes) { return (bytes + GUARD - 1) / GUARD * GUARD; }

void Arena::reset(size_t device_bytes, size_t host_bytes)
{
    device_used_ = host_used_ = 0;
    if (device_bytes > device_bytes_) {
        memory_.reset();
        memory_ = std::make_unique<Memory>(device_, device_bytes);
        device_bytes_ = device_bytes;
    }
    if (host_bytes > host_bytes_) {
        pinned_.reset();
        pinned_ = std::make_unique<Pinned>(host_bytes);
        host_bytes_ = host_bytes;
    }
}

static size_t advance(size_t *used, size_t bytes, size_t most)
{
    const size_t at = *used;
    *used += round_up(bytes);
    if (*used > most)
        throw Failure("the test's arena is too small");
    return at;
}
char *Arena::take_device(size_t bytes)
{
    return memory_->get() + advance(&device_used_, bytes, device_bytes_);
}
char *Arena::take_host(size_t bytes)
{
    return pinned_->get() + advance(&host_used_, bytes, host_bytes_);
}

size_t region_bytes(size_t payload, size_t shift_bytes)
{
    return round_up(GUARD + shift_bytes + payload + GUARD);
}

Region region_take(Arena *arena, size_t payload, size_t shift_bytes, char *device, uint64_t salt)
{
    Region region;

    region.bytes = region_bytes(payload, shift_bytes);
    region.at = GUARD + shift_bytes;
    region.payload = payload;
    region.device = device != nullptr ? device : arena->take_device(region.bytes);
    region.up = arena->take_host(region.bytes);
    region.down = arena->take_host(region.bytes);
    memset(region.up, (int)(salt & 0xff), region.bytes);
    for (size_t i = 0; i < region.at; i++)
        region.up[i] = (char)(i * 167 + salt);
    for (size_t i = region.at + payload; i < region.bytes; i++)
        region.up[i] = (char)(i * 167 + salt);
    memset(region.down, (int)(~salt & 0xff), region.bytes);
    return region;
}

/* ---- comparing ---------------------------------------------------------------------------------
 */

static std::string difference(const Region &region, size_t from, const char *want, size_t bytes,
                              size_t elem)
{
    const char *found = region.down + from;
    size_t i = 0, wrong = 0;

    if (bytes == 0 || memcmp(found, want, bytes) == 0)
        return "";
    while (found[i] == want[i])
        i++;
    for (size_t k = i; k < bytes; k++)
        wrong += found[k] != want[k];
    const bool before = from + i < region.at, behind = from + i >= region.at + region.payload;
    const long offset = (long)(from + i) - (long)region.at;
    std::string out = format("%s byte %ld (element %ld)",
                             before   ? "in front of the buffer,"
                             : behind ? "behind the buffer,"
                                      : "in the buffer,",
                             offset, offset / (long)elem);
    out += format(" of %zu, and %zu bytes in all; expected, found:", region.payload, wrong);
    for (size_t k = i; k < bytes && k < i + 8; k++)
        out += format(" %02x,%02x", (unsigned char)want[k], (unsigned char)found[k]);
    return out;
}

std::string compare(const Region &region, const std::vector<Piece> &pieces, size_t elem)
{
    size_t at = 0;
    std::string wrong;

    for (const Piece &piece : pieces) {
        const size_t from = region.at + piece.at;

        if (wrong.empty())
            wrong = difference(region, at, region.up + at, from - at, elem);
        if (wrong.empty())
            wrong = difference(region, from, piece.want, piece.bytes, elem);
        at = from + piece.bytes;
    }
    return wrong.empty() ? difference(region, at, region.up + at, region.bytes - at, elem) : wrong;
}

/* ---- results -----------------------------------------------------------------------------------
 */

Reference::Reference(int size) : comms_((size_t)size)
{
    struct twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = 1;
    config.device = TWILL_DEVICE_HOST;
    config.name = "reference";
    TWILL(twill_comm_init_all(comms_.data(), size, nullptr, &config), nullptr);
}

Reference::~Reference()
{
    for (twill_comm_t comm : comms_)
        (void)twill_comm_destroy(comm);
}

Bytes Reference::reduce(const Case &c, const std::vector<Bytes> &inputs,
                        const std::vector<Bytes> &scalars)
{
    const size_t count = c.in_count(0); /* everybody's */
    Bytes result(count * reference::bytes(c.type));
    std::vector<twill_redop_t> ops(comms_.size(), (twill_redop_t)c.op);
    const bool created = c.op >= PREMUL_VALUE;

    for (size_t r = 0; r < comms_.size() && created; r++)
        TWILL(twill_op_create_premul_sum(&ops[r], scalars[r].data(), c.type, TWILL_SCALAR_VALUE,
                                         comms_[r]),
              comms_[r]);
    grouped([&] {
        for (size_t r = 0; r < comms_.size(); r++)
            TWILL(twill_reduce(inputs[r].data(), r == 0 ? result.data() : nullptr, count, c.type,
                               ops[r], 0, comms_[r], nullptr),
                  comms_[r]);
    });
    for (size_t r = 0; r < comms_.size() && created; r++)
        TWILL(twill_op_destroy(ops[r], comms_[r]), comms_[r]);
    return result;
}

Reference &reference_of(int size)
{
    static std::map<int, std::unique_ptr<Reference>> all;
    std::unique_ptr<Reference> &one = all[size];
    if (!one)
        one = std::make_unique<Reference>(size);
    return *one;
}

Round draw_round(const Case &c, int round)
{
    Random random(mix(c.seed * 64 + (uint64_t)round + 1));
    Random fixed(mix(c.seed)); /* a scalar that is given by its value is that of all rounds */
    Round out;

    for (int r = 0; r < c.size; r++) {
        const size_t count = has_in(c.kind, r == c.root) ? c.in_count(r) : 0;
        Random *scalars = c.op == PREMUL_POINTER ? &random : &fixed;

        out.inputs.push_back(draw_elements(&random, c.type, c.bits, count));
        out.scalars.push_back(draw_elements(scalars, c.type, c.bits, 1));
    }
    if (reduces(c.kind) && c.in_count(0) != 0)
        out.result = reference_of(c.size).reduce(c, out.inputs, out.scalars);
    return out;
}

std::vector<Piece> expect(const Case &c, const Round &round, int rank, size_t out_at)
{
    const size_t elem = reference::bytes(c.type);
    std::vector<Piece> pieces;

    if (!has_out(c.kind, rank == c.root))
        return pieces;
    for (int from = 0; from < c.size; from++) {
        const bool one = !many_out(c.kind);
        const int giver = one ? c.root : from;
        const Bytes &data = reduces(c.kind) ? round.result : round.inputs[(size_t)giver];
        const size_t count = c.block(giver, rank);

        if (count != 0)
            pieces.push_back({out_at + (one ? 0 : c.out_first(rank, from) * elem), count * elem,
                              data.data() + c.in_before(giver, rank) * elem});
        if (one)
            break;
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece &a, const Piece &b) { return a.at < b.at; });
    return pieces;
}

} // namespace gpu
