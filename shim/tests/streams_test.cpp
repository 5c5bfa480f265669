// What this program opens by the name of a standard stream is the job's, as what the interpreter
// opens is.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "../src/api.h"
#include "check.h"

using namespace gpushare;

namespace {

bool same(int one, int other) {
  struct stat a, b;
  CHECK(fstat(one, &a) == 0 && fstat(other, &b) == 0);
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool opens(const char* path, int wanted, int flags = O_WRONLY) {
  int file = open(path, flags);
  CHECK(file >= 0);
  bool found = same(file, wanted);
  close(file);
  return found;
}

}  // namespace

int main() {
  constexpr uint64_t kMiB = 1 << 20;
  gs_config config = {64 * kMiB, 64 << 10, 2 * kMiB, 0, GS_ZICO, -1, 0, -1, 0, GS_HOST, 0, nullptr};
  CHECK(gs_start(&config) == 0);
  CHECK(gs_streams_watch() > 0);
  CHECK(gs_streams_watch() == 0);
  gs_account job = gs_job_begin(0, 0);
  int in[2], out[2], err[2];
  CHECK(pipe(in) == 0 && pipe(out) == 0 && pipe(err) == 0);
  // So that they can be opened by their names however the test is run.
  CHECK(dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1);
  CHECK(pipe(in) == 0 && pipe(out) == 0);
  const int32_t own[3] = {in[0], out[1], err[1]};
  gs_streams_set(job, own);
  CHECK(opens("/dev/stdout", 1));  // this thread is of no job yet
  gs_thread_enter(job, nullptr);
  CHECK(opens("/dev/stdout", out[1]) && opens("/dev/fd/1", out[1]));
  CHECK(opens("/proc/self/fd/2", err[1]) && opens("/dev/stderr", err[1]));
  CHECK(opens("/proc/thread-self/fd/0", in[0], O_RDONLY) && opens("/dev/stdin", in[0], O_RDONLY));
  std::string by_process = "/proc/" + std::to_string(getpid()) + "/fd/1";
  CHECK(opens(by_process.c_str(), out[1]));
  std::string by_number = "/proc/self/fd/" + std::to_string(err[1]);
  CHECK(opens(by_number.c_str(), err[1]));
  umask(0);
  char made[] = "/tmp/gpushare-streams-XXXXXX";
  close(mkstemp(made));
  CHECK(unlink(made) == 0);
  int file = open(made, O_CREAT | O_WRONLY, 0640);
  struct stat told;
  CHECK(file >= 0 && fstat(file, &told) == 0 && (told.st_mode & 0777) == 0640);
  CHECK(close(file) == 0 && unlink(made) == 0);
  CHECK(open("/dev/stdouts", O_WRONLY) == -1 && open("/dev/fd/", O_WRONLY) == -1);
  int theirs = open("/dev/stdout", O_WRONLY);
  CHECK(write(2, "to err", 6) == 6 && write(theirs, "to out", 6) == 6);
  char read_back[8] = {};
  CHECK(read(err[0], read_back, 8) == 6 && std::string(read_back) == "to err");
  CHECK(read(out[0], read_back, 8) == 6 && std::string(read_back) == "to out");
  CHECK(close(theirs) == 0);
  pid_t child = fork();
  if (child == 0) _exit(opens("/dev/stdout", 1) ? 0 : 1);  // its descriptors are its own
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(close(2) == 0 && write(2, "again", 5) == 5);
  CHECK(read(err[0], read_back, 8) == 5);
  gs_streams_set(job, nullptr);
  CHECK(opens("/dev/stdout", 1));
  gs_streams_set(0, own);
  gs_streams_set(GS_MAX_ACCOUNTS, own);
  gs_thread_leave();
  gs_job_end(job);
  return 0;
}
