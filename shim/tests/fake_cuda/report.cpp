#include "report.h"

#include <algorithm>
#include <cstdio>

namespace gpushare::fake_cuda {

CUresult Report::misuse(CUresult result, std::string text) {
  auto is_in_it = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  if (std::ranges::any_of(expected, is_in_it)) {
    ++counters.expected_misuses;
    return result;
  }
  ++counters.misuses;
  last_misuse = std::move(text);
  return result;
}

CUresult Report::capture_error(CUresult result) {
  ++counters.capture_errors;
  return result;
}

void Report::wrong_read(std::string text) {
  ++counters.wrong_reads;
  last_wrong_read = std::move(text);
}

std::string hex(unsigned long long value) {
  char text[32];
  snprintf(text, sizeof text, "%#llx", value);
  return text;
}

}  // namespace gpushare::fake_cuda
