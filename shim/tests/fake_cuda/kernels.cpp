#include "kernels.h"

#include <algorithm>
#include <cstring>

namespace gpushare::fake_cuda {

namespace {

constexpr size_t kChunk = size_t{1} << 20;

uint64_t tag_from(uint64_t tag, CUdeviceptr address) {
  unsigned shift = 8 * (address % 8);
  return shift ? tag >> shift | tag << (64 - shift) : tag;
}

// The pattern of bytes at an address, whatever the address is a multiple of.
std::vector<char> pattern(uint64_t tag, CUdeviceptr address, size_t bytes) {
  std::vector<uint64_t> words((bytes + 7) / 8, tag_from(tag, address));
  std::vector<char> result(bytes);
  if (bytes) memcpy(result.data(), words.data(), bytes);
  return result;
}

// Calls chunk(bytes done, bytes to do): what is copied is never all in the host's memory at once.
template <class Chunk>
void in_chunks(size_t bytes, Chunk chunk) {
  for (size_t done = 0; done < bytes; done += kChunk) chunk(done, std::min(kChunk, bytes - done));
}

void write(Memory& memory, const Operation& op) {
  in_chunks(op.bytes, [&](size_t done, size_t n) {
    memory.write(op.address + done, pattern(op.tag, op.address + done, n).data(), n);
  });
}

std::string wrong_read(uint64_t stream, const Operation& op, size_t offset, char expected,
                       uint64_t found) {
  return "stream " + hex(stream) + " reads " + hex(op.address) + " + " + std::to_string(op.bytes) +
         ": expected tag " + hex(op.tag) + ", found " + hex(found) + ", first wrong offset " +
         std::to_string(offset) + " (byte " + hex(static_cast<unsigned char>(expected)) +
         " expected)";
}

// What was written there in its place: the 8 bytes at the multiple of 8 that holds the address.
uint64_t tag_at(const Memory& memory, CUdeviceptr address) {
  uint64_t tag = 0;
  memory.read(address & ~CUdeviceptr{7}, &tag, sizeof tag);
  return tag;
}

// As the kernel itself does on a real device: how many, and of the first where and what.
void count_in_host(const Operation& op, CUdeviceptr address, uint64_t found) {
  auto* counts = static_cast<uint64_t*>(op.host);
  if (!counts || counts[0]++) return;
  counts[1] = address, counts[2] = found, counts[3] = op.tag;
}

void read(Memory& memory, Report& report, uint64_t stream, const Operation& op) {
  bool wrong = false;
  in_chunks(op.bytes, [&](size_t done, size_t n) {
    if (wrong) return;
    auto expected = pattern(op.tag, op.address + done, n);
    std::vector<char> found(n);
    memory.read(op.address + done, found.data(), n);
    auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin());
    if (e == expected.end()) return;
    wrong = true;
    size_t offset = done + static_cast<size_t>(f - found.begin());
    uint64_t instead = tag_at(memory, op.address + offset);
    report.wrong_read(wrong_read(stream, op, offset, *e, instead));
    count_in_host(op, op.address + offset, instead);
  });
}

void copy(Memory& memory, const Operation& op) {
  in_chunks(op.bytes, [&](size_t done, size_t n) {
    char* host = static_cast<char*>(op.host) + done;
    if (op.kind == Operation::kToHost) memory.read(op.address + done, host, n);
    if (op.kind == Operation::kToDevice) memory.write(op.address + done, host, n);
  });
}

}  // namespace

bool may_touch(const Memory& memory, Report& report, const Operation& op, const char* when) {
  if (memory.may(op.writes(), op.address, op.bytes)) return true;
  report.misuse(CUDA_ERROR_ILLEGAL_ADDRESS, std::string("an operation ") + when + " without " +
                                                (op.writes() ? "write" : "read") + " access to " +
                                                hex(op.address) + " + " + std::to_string(op.bytes));
  return false;
}

void execute(Memory& memory, Report& report, uint64_t stream, const Operation& op) {
  ++report.counters.operations;
  if (!may_touch(memory, report, op, "runs")) return;
  if (op.kind == Operation::kWrite) write(memory, op);
  if (op.kind == Operation::kRead) read(memory, report, stream, op);
  if (op.kind == Operation::kToHost || op.kind == Operation::kToDevice) copy(memory, op);
}

}  // namespace gpushare::fake_cuda
