// Device memory: parts of one memfd. Kernels reach it through the file, by the mappings that the
// driver's calls made, so whether an address is mapped is checked and not a matter of a fault. The
// addresses are mapped for the CPU as well, for tests that want to look.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "report.h"

namespace gpushare::fake_cuda {

class Memory {
 public:
  // Called with a range before it loses its memory or its access.
  using Guard = std::function<void(CUdeviceptr, size_t, const char* what)>;

  Memory(Report& report, uint64_t seed, Guard guard);
  ~Memory();
  Memory(const Memory&) = delete;

  size_t granularity = first_granularity();
  size_t total = size_t{1} << 30;
  size_t taken = 0;
  bool host_access = true;

  CUresult info(size_t* free, size_t* total_bytes) const;
  CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, unsigned long long flags);
  CUresult unreserve(CUdeviceptr address, size_t bytes);
  CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                  unsigned long long flags);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle,
               unsigned long long flags);
  CUresult unmap(CUdeviceptr address, size_t bytes);
  CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t count);
  CUresult check_properties(const CUmemAllocationProp*) const;

  // What the device does. The caller has checked that it may.
  bool may(bool write, CUdeviceptr address, size_t bytes) const;
  void write(CUdeviceptr address, const void* from, size_t bytes);
  void read(CUdeviceptr address, void* to, size_t bytes) const;
  // Offsets in the device's memory, and bytes.
  std::vector<std::pair<uint64_t, size_t>> places(CUdeviceptr address, size_t bytes) const;

 private:
  static size_t first_granularity();

  struct Handle {
    size_t bytes;
    uint64_t offset;  // in the file
    unsigned mappings;
    bool released;
  };
  struct Mapping {
    size_t bytes;
    CUmemGenericAllocationHandle handle;
    CUmemAccess_flags access;
  };
  using Mappings = std::map<CUdeviceptr, Mapping>;

  bool aligned(unsigned long long value) const { return value % granularity == 0; }
  size_t free_bytes() const;
  bool reserved(CUdeviceptr address, size_t bytes) const;
  bool overlaps_mapping(CUdeviceptr address, size_t bytes) const;
  // The mappings that make up exactly this range; empty if none do.
  std::vector<Mappings::iterator> whole(CUdeviceptr address, size_t bytes);
  void fill_with_junk(uint64_t offset, size_t bytes);
  void drop_if_unused(CUmemGenericAllocationHandle handle);
  void show_to_cpu(CUdeviceptr address, const Mapping& mapping) const;
  void hide_from_cpu(CUdeviceptr address, size_t bytes) const;
  // Calls piece(offset in the file, offset in the range, bytes) for each mapping that is touched.
  template <class Piece>
  void for_pieces(CUdeviceptr address, size_t bytes, Piece piece) const;

  Report& report_;
  Guard guard_;
  int file_;
  // Offsets and handles are never used again: a stale one is always found out.
  uint64_t file_bytes_ = 0;
  static constexpr CUmemGenericAllocationHandle kFirstHandle = 0x4d000001;
  CUmemGenericAllocationHandle next_handle_ = kFirstHandle;
  uint64_t junk_;
  std::map<CUdeviceptr, size_t> reservations_;
  std::map<CUmemGenericAllocationHandle, Handle> handles_;
  Mappings mappings_;
};

}  // namespace gpushare::fake_cuda
