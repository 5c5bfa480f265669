// The C API: streams, captures and random numbers of jobs on a GPU.
#include "api.h"
#include "gil.h"

using namespace gpushare;

extern "C" {

void gs_stream_begin(gs_account job, gs_stream stream) {
  if (Runtime* r = active(); r && is_job(job)) r->begin_stream(static_cast<uint32_t>(job), stream);
}

gs_account gs_stream_account(gs_stream stream) {
  Runtime* r = active();
  return r ? static_cast<gs_account>(r->account_of(stream)) : GS_SHARED;
}

void gs_stream_end(gs_stream stream) {
  if (Runtime* r = active()) r->end_stream(stream);
}

void gs_capture_prepare(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->governor().fences().close(static_cast<uint32_t>(account));
}

void gs_capture_begin(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->begin_capture(static_cast<uint32_t>(account));
}

void gs_capture_end(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->end_capture(static_cast<uint32_t>(account));
}

void gs_arena_end(gs_account account, gs_arena arena) {
  if (Runtime* r = active(); r && is_account(account))
    r->end_arena(static_cast<uint32_t>(account), arena);
}

void gs_thread_cuda_stream(gs_stream stream) { thread_state.cuda_stream = stream; }

void gs_thread_cuda_generator(void* generator) { thread_state.cuda_generator = generator; }

gs_stream gs_side_stream(gs_account job, int32_t priority) {
  Runtime* r = active();
  if (!r || !is_job(job) || r->device() < 0) {
    fail("no job of a run on a GPU");
    return 0;
  }
  try {
    return r->side_stream(static_cast<uint32_t>(job), priority);
  } catch (const std::exception& e) {
    fail(e.what());
    return 0;
  }
}

int gs_synchronize(gs_account account) {
  Runtime* r = active();
  if (!r || !is_account(account)) return 0;
  GilReleased released;
  try {
    if (r->synchronize(static_cast<uint32_t>(account))) return 0;
    fail("gpushare: a job that captures a CUDA graph can't wait for its device");
    return GS_CAPTURED;
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}

}  // extern "C"
