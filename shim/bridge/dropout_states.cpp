// The state of cuDNN's dropout in recurrent networks, per job. Torch keeps one for each device
// (ATen/native/cudnn/RNN.cpp, get_dropout_state): whoever seeds its generator makes it anew, and
// everybody draws from the last one that was made. So a job's numbers would depend on others, and
// its kernels would write to memory of another job, which does not know of them.
//
// What torch keeps is a tensor without elements here, whose storage stands for a state. The
// operators take it for the state that it stands for where it is the job's own, and else for the
// last one that the job has made: a generator asks for one before its first use. As operators are
// differentiated before they come here, graphs keep what stands for a state, and not the state.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_cudnn_init_dropout_state_cuda_dispatch.h>
#include <ATen/ops/_cudnn_rnn_backward_cuda_dispatch.h>
#include <ATen/ops/_cudnn_rnn_cuda_dispatch.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gpushare.h"

namespace gpushare::bridge {

namespace dropout_states {

namespace {

using at::Tensor;

struct State {
  gs_account account;
  Tensor tensor;  // undefined once its job has ended, whoever still keeps what stands for it
};
using Shared = std::shared_ptr<State>;

// Never destroyed: tensors outlive everything at exit. No state is freed with the mutex in hand.
std::mutex& mutex = *new std::mutex;
std::array<Shared, GS_MAX_ACCOUNTS>& latest = *new std::array<Shared, GS_MAX_ACCOUNTS>;

void drop(void* state) { delete static_cast<Shared*>(state); }

const Shared* stands_for(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& data = tensor.storage().data_ptr();
  return data.get_deleter() == &drop ? static_cast<const Shared*>(data.get_context()) : nullptr;
}

Tensor stand_in(const Shared& state) {
  auto context = std::make_unique<Shared>(state);
  Tensor made = at::empty({0}, state->tensor.options());
  // Its address is never used: it has no elements.
  auto* kept = context.get();
  made.storage().set_data_ptr_noswap(
      c10::DataPtr(kept, context.release(), &drop, state->tensor.device()));
  return made;
}

// A graph's hooks may have saved a copy of what stands for a state: it has no elements either.
bool is_a_state(const std::optional<Tensor>& given) {
  return given && given->defined() && given->numel() > 0;
}

Tensor own_state(const Tensor& given) {
  const Shared* found = stands_for(given);
  gs_account account = gs_thread_account();
  std::lock_guard lock(mutex);
  // An account comes again: what torch keeps may be of the job that had it before.
  bool is_own = found && (*found)->account == account && (*found)->tensor.defined();
  const Shared& state = is_own ? *found : latest[account];
  return state ? state->tensor : Tensor();
}

Tensor init_dropout_state(double dropout, bool train, int64_t seed,
                          std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                          std::optional<at::Device> device, std::optional<bool> pinned) {
  auto state = std::make_shared<State>();
  state->account = gs_thread_account();
  state->tensor =
      at::cuda::_cudnn_init_dropout_state(dropout, train, seed, dtype, layout, device, pinned);
  Tensor made = stand_in(state);
  std::unique_lock lock(mutex);
  Shared before = std::exchange(latest[state->account], std::move(state));
  lock.unlock();
  return made;
}

// As torch makes one (get_dropout_state): for the job whose last try to make one has failed, where
// torch has another job's, and so asks for none.
Tensor made_late(const Tensor& input, double dropout) {
  auto options = at::TensorOptions().device(input.device());
  auto generator = at::globalContext().defaultGenerator(input.device());
  auto seed = at::empty({}, options.dtype(at::kLong)).random_(generator).item<int64_t>();
  Tensor made =
      init_dropout_state(dropout, true, seed, at::kByte, at::kStrided, input.device(), {});
  return own_state(made);
}

std::optional<Tensor> own(const std::optional<Tensor>& given, const Tensor& input, double dropout) {
  if (is_a_state(given)) return given;
  Tensor state = given ? own_state(*given) : Tensor();
  if (dropout > 0 && !state.defined()) state = made_late(input, dropout);
  return state;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> rnn(
    const Tensor& input, at::TensorList weight, int64_t weight_stride,
    const std::optional<Tensor>& weights, const Tensor& hx, const std::optional<Tensor>& cx,
    int64_t mode, int64_t hidden_size, int64_t proj_size, int64_t layers, bool batch_first,
    double dropout, bool train, bool bidirectional, at::IntArrayRef batch_sizes,
    const std::optional<Tensor>& state) {
  return at::cuda::_cudnn_rnn(input, weight, weight_stride, weights, hx, cx, mode, hidden_size,
                              proj_size, layers, batch_first, dropout, train, bidirectional,
                              batch_sizes, own(state, input, train ? dropout : 0));
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> rnn_backward(
    const Tensor& input, at::TensorList weight, int64_t weight_stride, const Tensor& weights,
    const Tensor& hx, const std::optional<Tensor>& cx, const Tensor& output,
    const std::optional<Tensor>& grad_output, const std::optional<Tensor>& grad_hy,
    const std::optional<Tensor>& grad_cy, int64_t mode, int64_t hidden_size, int64_t proj_size,
    int64_t layers, bool batch_first, double dropout, bool train, bool bidirectional,
    at::IntArrayRef batch_sizes, const std::optional<Tensor>& state, const Tensor& reserve,
    std::array<bool, 4> wanted) {
  return at::cuda::_cudnn_rnn_backward(
      input, weight, weight_stride, weights, hx, cx, output, grad_output, grad_hy, grad_cy, mode,
      hidden_size, proj_size, layers, batch_first, dropout, train, bidirectional, batch_sizes,
      own(state, input, train ? dropout : 0), reserve, wanted);
}

// Torch warns, once for all operators, where a kernel takes the place of another one: scripts are
// to see that of their own.
class Quiet : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

void make_own() {
  Quiet quiet;
  c10::WarningUtils::WarningHandlerGuard unheard(&quiet);
  c10::WarningUtils::WarnAlways always;  // so that this is not the one time
  static torch::Library& aten =
      *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("_cudnn_init_dropout_state", TORCH_FN(init_dropout_state));
  aten.impl("_cudnn_rnn", TORCH_FN(rnn));
  aten.impl("_cudnn_rnn_backward", TORCH_FN(rnn_backward));
}

void leave(gs_account account) {
  std::unique_lock lock(mutex);
  Shared last = std::exchange(latest[account], nullptr);
  Tensor gone = last ? std::exchange(last->tensor, Tensor()) : Tensor();
  lock.unlock();
}

}  // namespace dropout_states

}  // namespace gpushare::bridge

// The account's last state is freed. Called by its own thread.
extern "C" __attribute__((visibility("default"))) void gpushare_bridge_leave_dropout_state(
    gs_account account) {
  gpushare::bridge::dropout_states::leave(account);
}
