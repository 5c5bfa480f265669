// The fake CUDA driver's memory: what may be mapped where, and each misuse.
#include <unistd.h>

#include <cstring>
#include <vector>

#include "fake_cuda/fixture.h"

using namespace gpushare::fake_cuda;

static CUresult create(size_t bytes, CUmemGenericAllocationHandle* handle) {
  auto properties = on_device();
  return cuMemCreate(handle, bytes, &properties, 0);
}

static CUresult access(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags) {
  CUmemAccessDesc description{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  return cuMemSetAccess(address, bytes, &description, 1);
}

static size_t free_memory() {
  size_t free, total;
  CHECK(cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  return free;
}

static void granularity_can_be_set() {
  Fresh fake;
  size_t granularity;
  auto properties = on_device();
  fake_cuda_reset(1);
  CHECK(cuInit(0) == CUDA_SUCCESS);
  for (size_t set : {size_t{2} << 20, size_t{64} << 10, kPage}) {
    if (set != size_t{2} << 20) fake_cuda_set_granularity(set);
    CHECK(cuMemGetAllocationGranularity(&granularity, &properties,
                                        CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS);
    CHECK(granularity == set);
  }
}

static void addresses_are_aligned() {
  Fresh fake;
  for (size_t alignment : {size_t{0}, kPage, size_t{1} << 21, size_t{1} << 25}) {
    CUdeviceptr address;
    CHECK(cuMemAddressReserve(&address, 3 * kPage, alignment, 0, 0) == CUDA_SUCCESS);
    CHECK(address % (alignment ? alignment : kPage) == 0);
    CHECK(cuMemAddressFree(address, 3 * kPage) == CUDA_SUCCESS);
  }
  CHECK(fake_cuda_read_counters().live_reservations == 0 && !fake.misuses.any());
}

static void memory_is_limited() {
  Fresh fake;
  fake_cuda_set_memory(10 * kPage);
  CUmemGenericAllocationHandle handle, rest;
  CHECK(create(11 * kPage, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
  handle = fake.create(6 * kPage);
  CHECK(free_memory() == 4 * kPage);
  fake_cuda_take(3 * kPage);
  CHECK(free_memory() == kPage && create(2 * kPage, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(create(kPage, &rest) == CUDA_SUCCESS && free_memory() == 0);  // exactly what is left
  CHECK(cuMemRelease(rest) == CUDA_SUCCESS);
  fake_cuda_take(20 * kPage);
  CHECK(free_memory() == 0 && create(kPage, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
  fake_cuda_take(0);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS && free_memory() == 10 * kPage);
  auto counters = fake_cuda_read_counters();
  CHECK(counters.bytes_created == 7 * kPage && counters.bytes_held_peak == 7 * kPage);
  CHECK(counters.bytes_held == 0 && counters.live_handles == 0 && counters.misuses == 0);
}

static void new_memory_is_junk() {
  Fresh fake;
  std::vector<unsigned char> bytes(3 * kPage);
  CUdeviceptr memory = fake.memory(bytes.size());
  CHECK(cuMemcpyDtoH_v2(bytes.data(), memory, bytes.size()) == CUDA_SUCCESS);
  for (size_t page = 0; page < 3; ++page) CHECK(bytes[page * kPage] & 1);
}

static void a_handle_can_be_mapped_twice() {
  Fresh fake;
  auto handle = fake.create(2 * kPage);
  CUdeviceptr one = fake.reserve(2 * kPage), two = fake.reserve(4 * kPage) + kPage;
  CHECK(cuMemMap(one, 2 * kPage, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(two, 2 * kPage, 0, handle, 0) == CUDA_SUCCESS);
  fake.open(one, 2 * kPage);
  fake.open(two, 2 * kPage);
  fake.write(nullptr, one + kPage, 0x1234567890abcdef);
  fake.read(nullptr, two + kPage, 0x1234567890abcdef);
  CHECK(cuStreamSynchronize(nullptr) == CUDA_SUCCESS && wrong_reads() == 0);
  CHECK(*reinterpret_cast<uint64_t*>(two + kPage) == 0x1234567890abcdef);
  *reinterpret_cast<uint64_t*>(two) = 5;
  CHECK(*reinterpret_cast<uint64_t*>(one) == 5);
}

static void memory_lives_until_its_last_mapping() {
  Fresh fake;
  auto handle = fake.create();
  CUdeviceptr one = fake.reserve(kPage), two = fake.reserve(kPage);
  CHECK(cuMemMap(one, kPage, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(two, kPage, 0, handle, 0) == CUDA_SUCCESS);
  fake.open(two, kPage);
  fake.write(nullptr, two, 9);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().live_handles == 0);
  CHECK(cuMemUnmap(one, kPage) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().bytes_held == kPage);
  fake.read(nullptr, two, 9);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0 && !fake.misuses.any());
  CHECK(cuMemMap(one, kPage, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE && fake.misuses.any());
  CHECK(cuMemUnmap(two, kPage) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().bytes_held == 0);
  CHECK(fake_cuda_read_counters().live_mappings == 0);
}

static void remapped_memory_keeps_its_bytes() {
  Fresh fake;
  auto handle = fake.create();
  CUdeviceptr at = fake.reserve(2 * kPage);
  for (CUdeviceptr to : {at, at + kPage}) {
    CHECK(cuMemMap(to, kPage, 0, handle, 0) == CUDA_SUCCESS);
    fake.open(to, kPage);
    if (to == at) fake.write(nullptr, to, 3);
    fake.read(nullptr, to, 3);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(cuMemUnmap(to, kPage) == CUDA_SUCCESS);
  }
  CHECK(wrong_reads() == 0 && !fake.misuses.any());
}

static void misuses_of_memory_are_counted() {
  Fresh fake;
  Misuses& m = fake.misuses;
  auto invalid = CUDA_ERROR_INVALID_VALUE;
  CUmemGenericAllocationHandle handle = fake.create(2 * kPage), other = fake.create();
  CUdeviceptr at = fake.reserve(4 * kPage), none;
  CHECK(cuMemAddressReserve(&none, kPage + 1, 0, 0, 0) == invalid && m.one("granularity"));
  CHECK(cuMemAddressReserve(&none, kPage, 3 * kPage, 0, 0) == invalid && m.one("power of two"));
  CHECK(create(kPage / 2, &other) == invalid && m.one("cuMemCreate"));
  CHECK(cuMemMap(at, 2 * kPage, 0, handle + 77, 0) == invalid && m.one("no such handle"));
  CHECK(cuMemMap(at, kPage, 0, handle, 0) == invalid && m.one("size must be that"));
  CHECK(cuMemMap(at, kPage, kPage, handle, 0) == invalid && m.one("offset"));
  CHECK(cuMemMap(at + 8, 2 * kPage, 0, handle, 0) == invalid && m.one("granularity"));
  CHECK(cuMemMap(at + 3 * kPage, 2 * kPage, 0, handle, 0) == invalid && m.one("not reserved"));
  CHECK(!m.any() && cuMemMap(at + kPage, 2 * kPage, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(at, 2 * kPage, 0, handle, 0) == invalid && m.one("mapped there"));
  CHECK(cuMemMap(at + 2 * kPage, kPage, 0, other, 0) == invalid && m.one("mapped there"));
  CHECK(cuMemUnmap(at + kPage, kPage) == invalid && m.one("cuMemUnmap"));
  CHECK(cuMemUnmap(at + 2 * kPage, kPage) == invalid && m.one("cuMemUnmap"));
  CHECK(cuMemUnmap(at, 3 * kPage) == invalid && m.one("cuMemUnmap"));
  CHECK(access(at, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ) == invalid && m.one("cuMemSetAccess"));
  CHECK(cuMemAddressFree(at, 4 * kPage) == invalid && m.one("still mapped"));
  CHECK(!m.any() && cuMemUnmap(at + kPage, 2 * kPage) == CUDA_SUCCESS && !m.any());
  CHECK(cuMemUnmap(at + kPage, 2 * kPage) == invalid && m.one("cuMemUnmap"));
  CHECK(cuMemAddressFree(at, 3 * kPage) == invalid && m.one("exactly"));
  CHECK(cuMemAddressFree(at, 4 * kPage) == CUDA_SUCCESS && !m.any());
  CHECK(cuMemMap(at, 2 * kPage, 0, handle, 0) == invalid && m.one("not reserved"));
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS && !m.any());
  CHECK(cuMemRelease(handle) == invalid && m.one("has been released"));
  CHECK(cuMemRelease(1) == invalid && m.one("no handle"));
}

static void neighbours_are_unmapped_together() {
  Fresh fake;
  CUdeviceptr at = fake.reserve(3 * kPage);
  for (int i = 0; i < 3; ++i)
    CHECK(cuMemMap(at + i * kPage, kPage, 0, fake.create(), 0) == CUDA_SUCCESS);
  fake.open(at, 3 * kPage);
  CHECK(fake_cuda_launch_write(nullptr, at, 3 * kPage, 1) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, at + 100, 2 * kPage, 1) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0);
  CHECK(cuMemUnmap(at, 3 * kPage) == CUDA_SUCCESS && !fake.misuses.any());
}

static void access_must_be_granted() {
  Fresh fake;
  CUdeviceptr at = fake.reserve(kPage);
  CHECK(cuMemMap(at, kPage, 0, fake.create(), 0) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, at, 8, 1) && fake.misuses.one("without read access"));
  CHECK(access(at, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, at, 8, 1) == CUDA_SUCCESS && !fake.misuses.any());
  CHECK(fake_cuda_launch_write(nullptr, at, 8, 1) && fake.misuses.one("without write access"));
  CHECK(cuMemcpyHtoDAsync_v2(at, &at, 8, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(fake.misuses.one("without write access"));
  CHECK(access(at, kPage, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
  CHECK(fake.misuses.one("made inaccessible under pending work"));
  CHECK(fake_cuda_run_all() == 1 && fake.misuses.one("runs without read access"));
  CHECK(cuMemUnmap(at, kPage) == CUDA_SUCCESS);
  CHECK(cuMemMap(at, kPage, 0, fake.create(), 0) == CUDA_SUCCESS);
  fake.open(at, kPage);
  CHECK(cuMemUnmap(at, kPage) == CUDA_SUCCESS);
  CHECK(cuMemMap(at, kPage, 0, fake.create(), 0) == CUDA_SUCCESS);  // starts without access again
  CHECK(fake_cuda_launch_read(nullptr, at, 8, 1) && fake.misuses.one("without read access"));
  CHECK(fake_cuda_launch_read(nullptr, at + kPage - 4, 8, 1) && fake.misuses.any());
}

static void unmapping_under_pending_work_is_found() {
  Fresh fake;
  CUstream stream = fake.stream();
  CUdeviceptr one = fake.memory(), two = fake.memory();
  fake.write(stream, one, 1);
  CHECK(cuMemUnmap(two, kPage) == CUDA_SUCCESS && !fake.misuses.any());  // nobody's
  CHECK(cuMemUnmap(one, kPage) == CUDA_SUCCESS && fake.misuses.one("unmapped under pending work"));
  CHECK(fake_cuda_run_all() == 1 && fake.misuses.one("runs without write access"));
}

static void neighbours_of_pending_work_can_be_unmapped() {
  Fresh fake;
  CUdeviceptr at = fake.reserve(3 * kPage);
  for (int i = 0; i < 3; ++i)
    CHECK(cuMemMap(at + i * kPage, kPage, 0, fake.create(), 0) == CUDA_SUCCESS);
  fake.open(at, 3 * kPage);
  fake.write(nullptr, at + kPage, 1);
  CHECK(cuMemUnmap(at, kPage) == CUDA_SUCCESS && cuMemUnmap(at + 2 * kPage, kPage) == CUDA_SUCCESS);
  CHECK(fake_cuda_run_all() == 1 && !fake.misuses.any());
}

// Whether the CPU may read there, asked of the kernel and not by a fault.
static bool cpu_can_read(CUdeviceptr address) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  bool can = write(ends[1], reinterpret_cast<void*>(address), 8) == 8;
  close(ends[0]);
  close(ends[1]);
  return can;
}

static void the_cpu_sees_memory_if_the_test_wants() {
  Fresh fake;
  CUdeviceptr seen = fake.memory();
  CHECK(cpu_can_read(seen));
  fake_cuda_set_host_access(0);
  CUdeviceptr unseen = fake.memory();
  CHECK(!cpu_can_read(unseen));
  fake.write(nullptr, unseen, 1);
  fake.read(nullptr, unseen, 1);
  CHECK(cuMemUnmap(seen, kPage) == CUDA_SUCCESS && !cpu_can_read(seen));
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0 && !fake.misuses.any());
}

static void reads_look_at_every_byte() {
  Fresh fake;
  CUdeviceptr at = fake.memory();
  uint64_t tag = 0x0807060504030201;
  fake.write(nullptr, at, tag);
  for (size_t from : {0, 1, 7, 8, 13})
    for (size_t bytes : {1, 7, 8, 9, 100})
      CHECK(fake_cuda_launch_read(nullptr, at + from, bytes, tag) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0);
  CHECK(cuMemsetD8Async(at + 1001, 0xff, 1, nullptr) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, at + 5, 996, tag) == CUDA_SUCCESS);  // ends before it
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0);
  CHECK(fake_cuda_launch_read(nullptr, at + 5, 997, tag) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 1);
  std::string text = fake_cuda_last_wrong_read();
  for (auto part : {"stream 0 ", "expected tag 0x807060504030201", "found 0x80706050403ff01",
                    "first wrong offset 996"})
    CHECK(text.find(part) != std::string::npos);
}

// Two mappings, of more than a chunk of copying each.
struct Large {
  explicit Large(Fresh& fake) : at(fake.reserve(2 * half)) {
    for (CUdeviceptr part : {at, at + half})
      CHECK(cuMemMap(part, half, 0, fake.create(half), 0) == CUDA_SUCCESS);
    fake.open(at, 2 * half);
  }
  static constexpr size_t half = (size_t{3} << 19) + kPage, words = 2 * half / 8;
  CUdeviceptr at;
};

static void copies_happen_late() {
  Fresh fake;
  CUstream stream = fake.stream();
  Large large(fake);
  std::vector<uint64_t> from(Large::words), to(Large::words, 0);
  for (size_t i = 0; i < from.size(); ++i) from[i] = i + 1;
  CHECK(cuMemcpyHtoDAsync_v2(large.at, from.data(), 8 * from.size(), stream) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoHAsync_v2(to.data(), large.at, 8 * to.size(), stream) == CUDA_SUCCESS);
  from[5] = 7;
  CHECK(to[0] == 0);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(from == to && fake_cuda_read_counters().copy_waits.calls == 0);
}

static void the_cpu_waits_for_other_copies() {
  Fresh fake;
  CUdeviceptr at = fake.memory();
  uint64_t word = 8, back = 0;
  CHECK(cuMemcpyHtoD_v2(at, &word, 8) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH_v2(&back, at, 8) == CUDA_SUCCESS && back == 8);
  CHECK(fake_cuda_read_counters().copy_waits.calls == 2);
  CHECK(cuMemcpyDtoH_v2(&word, at + kPage, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(fake.misuses.one("without read access"));
}

static void a_wrong_read_is_found_wherever_it_is() {
  Fresh fake;
  Large large(fake);
  size_t wrong = Large::half * 2 - 3;
  CHECK(fake_cuda_launch_write(nullptr, large.at, 2 * Large::half, 4) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, large.at, 2 * Large::half, 4) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0);
  CHECK(cuMemsetD8Async(large.at + wrong, 1, 1, nullptr) == CUDA_SUCCESS);
  CHECK(fake_cuda_launch_read(nullptr, large.at, 2 * Large::half, 4) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 1);
  CHECK(strstr(fake_cuda_last_wrong_read(), ("offset " + std::to_string(wrong)).c_str()));
}

int main() {
  granularity_can_be_set();
  addresses_are_aligned();
  memory_is_limited();
  new_memory_is_junk();
  a_handle_can_be_mapped_twice();
  memory_lives_until_its_last_mapping();
  remapped_memory_keeps_its_bytes();
  misuses_of_memory_are_counted();
  neighbours_are_unmapped_together();
  access_must_be_granted();
  unmapping_under_pending_work_is_found();
  neighbours_of_pending_work_can_be_unmapped();
  the_cpu_sees_memory_if_the_test_wants();
  reads_look_at_every_byte();
  copies_happen_late();
  the_cpu_waits_for_other_copies();
  a_wrong_read_is_found_wherever_it_is();
}
