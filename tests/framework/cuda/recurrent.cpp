// Stand before torch's kernels of recurrent networks, which need cuDNN: they say which state of
// dropout they were given, and compute nothing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_cudnn_init_dropout_state_cuda_dispatch.h>
#include <ATen/ops/_cudnn_rnn_backward_cuda_dispatch.h>
#include <ATen/ops/_cudnn_rnn_cuda_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/random_ops.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#define EXPORTED __attribute__((visibility("default")))

using at::Tensor;
using Given = const std::optional<Tensor>&;

namespace {

const void *made = nullptr, *given = nullptr;

void note(Given state) { given = state && state->defined() ? state->data_ptr() : nullptr; }

}  // namespace

// Numbers need a kernel.
namespace at::_ops {

EXPORTED Tensor& random_::call(Tensor& self, ::std::optional<at::Generator>) { return self; }

}  // namespace at::_ops

template <>
EXPORTED int64_t at::Tensor::item() const {
  return 7;
}

namespace at::cuda {

EXPORTED Tensor _cudnn_init_dropout_state(double, bool, int64_t, std::optional<ScalarType> type,
                                          std::optional<Layout>, std::optional<Device> device,
                                          std::optional<bool>) {
  Tensor state = at::empty({1 << 16}, TensorOptions().dtype(type).device(device));
  made = state.data_ptr();
  return state;
}

EXPORTED std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _cudnn_rnn(
    const Tensor& input, TensorList, int64_t, Given, const Tensor& hx, Given cx, int64_t, int64_t,
    int64_t, int64_t, bool, double, bool, bool, IntArrayRef, Given state) {
  note(state);
  Tensor reserve = at::empty({16}, input.options().dtype(at::kByte));
  return {at::empty_like(input), at::empty_like(hx), at::empty_like(*cx), reserve,
          at::empty({16}, input.options())};
}

EXPORTED std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> _cudnn_rnn_backward(
    const Tensor& input, TensorList weight, int64_t, const Tensor&, const Tensor& hx, Given cx,
    const Tensor&, Given, Given, Given, int64_t, int64_t, int64_t, int64_t, bool, double, bool,
    bool, IntArrayRef, Given state, const Tensor&, std::array<bool, 4>) {
  note(state);
  return {at::empty_like(input), at::empty_like(hx), at::empty_like(*cx),
          std::vector<Tensor>(weight.size())};
}

}  // namespace at::cuda

extern "C" EXPORTED const void* last_made() { return made; }

extern "C" EXPORTED const void* last_given() { return given; }
