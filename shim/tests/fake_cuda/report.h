// What went wrong, and what the counters say.
#pragma once

#include <string>
#include <vector>

#include "../../src/devices/cuda_api.h"
#include "fake_cuda.h"

namespace gpushare::fake_cuda {

using namespace gpushare::cuda;

class Report {
 public:
  // Returns the result, so that a refusal is one statement.
  CUresult misuse(CUresult result, std::string text);
  CUresult capture_error(CUresult result);
  void wrong_read(std::string text);

  fake_cuda_counters counters{};
  std::string last_misuse, last_wrong_read;
  std::vector<std::string> expected;  // parts of the texts of misuses that are no mistakes
};

// "0x..."
std::string hex(unsigned long long value);

}  // namespace gpushare::fake_cuda
