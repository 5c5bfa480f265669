#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

namespace gpushare::fake_cuda {

namespace {

// The fake itself has no way to go on without its own memory.
void need(bool done, const char* what) {
  if (done) return;
  perror(what);
  abort();
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

std::string range(CUdeviceptr address, size_t bytes) {
  return hex(address) + " + " + std::to_string(bytes);
}

}  // namespace

Memory::Memory(Report& report, uint64_t seed, Guard guard)
    : report_(report), guard_(std::move(guard)), junk_(seed) {
  file_ = memfd_create("fake_cuda", MFD_CLOEXEC);
  need(file_ >= 0, "memfd_create");
}

size_t Memory::first_granularity() {
  const char* asked = getenv("FAKE_CUDA_GRANULARITY");
  return asked ? strtoull(asked, nullptr, 10) : size_t{2} << 20;
}

Memory::~Memory() {
  for (auto& [address, bytes] : reservations_) munmap(pointer(address), bytes);
  close(file_);
}

size_t Memory::free_bytes() const {
  size_t used = report_.counters.bytes_held + taken;
  return used < total ? total - used : 0;
}

CUresult Memory::info(size_t* free, size_t* total_bytes) const {
  if (!free || !total_bytes)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuMemGetInfo: a null pointer");
  *free = free_bytes();
  *total_bytes = total;
  return CUDA_SUCCESS;
}

CUresult Memory::check_properties(const CUmemAllocationProp* p) const {
  if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      p->location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->win32HandleMetaData ||
      p->requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "the properties must be pinned memory of a device");
  if (p->location.id != 0)
    return report_.misuse(CUDA_ERROR_INVALID_DEVICE,
                          "there is device 0 only, but got " + std::to_string(p->location.id));
  return CUDA_SUCCESS;
}

CUresult Memory::reserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                         unsigned long long flags) {
  if (!address || !bytes || !aligned(bytes) || flags ||
      (alignment && !std::has_single_bit(alignment)))
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemAddressReserve: the size must be a multiple of the granularity and "
                          "the alignment a power of two, but got " +
                              std::to_string(bytes) + " and " + std::to_string(alignment));
  alignment = std::max(alignment, granularity);
  if (bytes + alignment < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* raw = mmap(nullptr, bytes + alignment, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  auto start = reinterpret_cast<CUdeviceptr>(raw);
  CUdeviceptr base = (start + alignment - 1) & ~(CUdeviceptr{alignment} - 1);
  if (base > start) munmap(raw, base - start);
  if (start + alignment > base) munmap(pointer(base + bytes), start + alignment - base);
  reservations_[base] = bytes;
  ++report_.counters.live_reservations;
  *address = base;
  return CUDA_SUCCESS;
}

CUresult Memory::unreserve(CUdeviceptr address, size_t bytes) {
  auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != bytes)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemAddressFree: no reservation is exactly " + range(address, bytes));
  if (overlaps_mapping(address, bytes))
    return report_.misuse(
        CUDA_ERROR_INVALID_VALUE,
        "cuMemAddressFree: something is still mapped in " + range(address, bytes));
  munmap(pointer(address), bytes);
  reservations_.erase(found);
  --report_.counters.live_reservations;
  return CUDA_SUCCESS;
}

CUresult Memory::create(CUmemGenericAllocationHandle* handle, size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
  if (auto wrong = check_properties(properties)) return wrong;
  if (!handle || flags || !bytes || !aligned(bytes))
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemCreate: the size must be a multiple of the granularity, but got " +
                              std::to_string(bytes));
  if (bytes > free_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t offset = file_bytes_;
  file_bytes_ += bytes;
  need(ftruncate(file_, static_cast<off_t>(file_bytes_)) == 0, "ftruncate");
  fill_with_junk(offset, bytes);
  handles_[next_handle_] = {bytes, offset, 0, false};
  *handle = next_handle_++;
  auto& counters = report_.counters;
  ++counters.live_handles;
  counters.bytes_created += bytes;
  counters.bytes_held += bytes;
  counters.bytes_held_peak = std::max(counters.bytes_held_peak, counters.bytes_held);
  return CUDA_SUCCESS;
}

// Not zeros: a driver promises nothing, and who relies on them is to notice.
void Memory::fill_with_junk(uint64_t offset, size_t bytes) {
  junk_ = junk_ * 6364136223846793005u + 1442695040888963407u;
  std::vector<uint64_t> junk(std::min(bytes, size_t{1} << 20) / sizeof(uint64_t), junk_ | 1);
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pwrite(file_, junk.data(), std::min(bytes - done, junk.size() * sizeof(uint64_t)),
                       static_cast<off_t>(offset + done));
    need(n > 0, "pwrite");
    done += static_cast<size_t>(n);
  }
}

CUresult Memory::release(CUmemGenericAllocationHandle handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end() || found->second.released)
    return report_.misuse(
        CUDA_ERROR_INVALID_VALUE,
        "cuMemRelease: " + hex(handle) +
            (handle < next_handle_ && handle >= kFirstHandle ? " has been released"
                                                             : " is no handle of an allocation"));
  found->second.released = true;
  --report_.counters.live_handles;
  drop_if_unused(handle);
  return CUDA_SUCCESS;
}

void Memory::drop_if_unused(CUmemGenericAllocationHandle handle) {
  auto found = handles_.find(handle);
  Handle& h = found->second;
  if (!h.released || h.mappings) return;
  need(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(h.offset),
                 static_cast<off_t>(h.bytes)) == 0,
       "fallocate");
  report_.counters.bytes_held -= h.bytes;
  handles_.erase(found);
}

bool Memory::reserved(CUdeviceptr address, size_t bytes) const {
  auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return false;
  auto& [base, size] = *std::prev(after);
  return address - base <= size && bytes <= size - (address - base);
}

bool Memory::overlaps_mapping(CUdeviceptr address, size_t bytes) const {
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return true;
  if (next == mappings_.begin()) return false;
  auto& [base, mapping] = *std::prev(next);
  return base + mapping.bytes > address;
}

CUresult Memory::map(CUdeviceptr address, size_t bytes, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  auto refuse = [&](const char* why) {
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemMap of " + range(address, bytes) + ": " + why);
  };
  auto found = handles_.find(handle);
  if (found == handles_.end() || found->second.released) return refuse("no such handle");
  // "offset must currently be zero", so a part of an allocation can't be mapped.
  if (offset || flags) return refuse("offset and flags must be 0");
  if (bytes != found->second.bytes) return refuse("the size must be that of the handle");
  if (!aligned(address)) return refuse("the address must be a multiple of the granularity");
  if (!reserved(address, bytes)) return refuse("the range is not reserved");
  if (overlaps_mapping(address, bytes)) return refuse("something is mapped there");
  ++found->second.mappings;
  mappings_[address] = {bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  ++report_.counters.live_mappings;
  show_to_cpu(address, mappings_[address]);
  return CUDA_SUCCESS;
}

std::vector<Memory::Mappings::iterator> Memory::whole(CUdeviceptr address, size_t bytes) {
  std::vector<Mappings::iterator> parts;
  for (CUdeviceptr at = address; at != address + bytes;) {
    auto found = mappings_.find(at);
    if (found == mappings_.end() || found->second.bytes > address + bytes - at) return {};
    parts.push_back(found);
    at += found->second.bytes;
  }
  return parts;
}

CUresult Memory::unmap(CUdeviceptr address, size_t bytes) {
  auto parts = whole(address, bytes);
  if (parts.empty())
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemUnmap: no whole mappings make up " + range(address, bytes));
  guard_(address, bytes, "unmapped");
  for (auto part : parts) {
    CUmemGenericAllocationHandle handle = part->second.handle;
    mappings_.erase(part);
    --report_.counters.live_mappings;
    --handles_.at(handle).mappings;
    drop_if_unused(handle);
  }
  hide_from_cpu(address, bytes);
  return CUDA_SUCCESS;
}

CUresult Memory::set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                            size_t count) {
  if (!descriptions || count != 1 || descriptions->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      (descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
       descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
       descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemSetAccess: one description, of the device's access, is expected");
  if (descriptions->location.id != 0)
    return report_.misuse(CUDA_ERROR_INVALID_DEVICE, "cuMemSetAccess: there is device 0 only");
  auto parts = whole(address, bytes);
  if (parts.empty())
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuMemSetAccess: no whole mappings make up " + range(address, bytes));
  if (descriptions->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
    guard_(address, bytes, "made inaccessible");
  for (auto part : parts) {
    part->second.access = descriptions->flags;
    show_to_cpu(part->first, part->second);
  }
  return CUDA_SUCCESS;
}

void Memory::show_to_cpu(CUdeviceptr address, const Mapping& mapping) const {
  int access = PROT_NONE;
  if (host_access && mapping.access & CU_MEM_ACCESS_FLAGS_PROT_READ) access |= PROT_READ;
  if (host_access && mapping.access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) access |= PROT_WRITE;
  auto offset = static_cast<off_t>(handles_.at(mapping.handle).offset);
  need(mmap(pointer(address), mapping.bytes, access, MAP_SHARED | MAP_FIXED, file_, offset) !=
           MAP_FAILED,
       "mmap");
}

void Memory::hide_from_cpu(CUdeviceptr address, size_t bytes) const {
  need(mmap(pointer(address), bytes, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED,
       "mmap");
}

bool Memory::may(bool write, CUdeviceptr address, size_t bytes) const {
  if (address + bytes < address) return false;
  auto needed = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
  for (CUdeviceptr at = address; at < address + bytes;) {
    auto after = mappings_.upper_bound(at);
    if (after == mappings_.begin()) return false;
    auto& [base, mapping] = *std::prev(after);
    if (at >= base + mapping.bytes || (mapping.access & needed) != needed) return false;
    at = base + mapping.bytes;
  }
  return true;
}

template <class Piece>
void Memory::for_pieces(CUdeviceptr address, size_t bytes, Piece piece) const {
  for (CUdeviceptr at = address; at < address + bytes;) {
    auto& [base, mapping] = *std::prev(mappings_.upper_bound(at));
    size_t n = std::min(base + mapping.bytes, address + bytes) - at;
    piece(handles_.at(mapping.handle).offset + (at - base), at - address, n);
    at += n;
  }
}

std::vector<std::pair<uint64_t, size_t>> Memory::places(CUdeviceptr address, size_t bytes) const {
  std::vector<std::pair<uint64_t, size_t>> found;
  for_pieces(address, bytes,
             [&](uint64_t in_file, size_t, size_t n) { found.emplace_back(in_file, n); });
  return found;
}

void Memory::write(CUdeviceptr address, const void* from, size_t bytes) {
  for_pieces(address, bytes, [&](uint64_t in_file, size_t done, size_t n) {
    ssize_t written =
        pwrite(file_, static_cast<const char*>(from) + done, n, static_cast<off_t>(in_file));
    need(written == static_cast<ssize_t>(n), "pwrite");
  });
}

void Memory::read(CUdeviceptr address, void* to, size_t bytes) const {
  for_pieces(address, bytes, [&](uint64_t in_file, size_t done, size_t n) {
    ssize_t got = pread(file_, static_cast<char*>(to) + done, n, static_cast<off_t>(in_file));
    need(got == static_cast<ssize_t>(n), "pread");
  });
}

}  // namespace gpushare::fake_cuda
