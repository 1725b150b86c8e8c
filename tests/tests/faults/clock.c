/* Moves the wall clock of one process: as many seconds as the file ROPEWALK_TEST_CLOCK holds. Loaded before libc.
   Whoever is told another offset than before is noted beside that file, in `.seen`: its process and the offset. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  const char *path = getenv("ROPEWALK_TEST_CLOCK");
  FILE *file = path ? fopen(path, "re") : NULL;
  long seconds = 0;
  if (file) {
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
  }
  return seconds;
}

static void note(long seconds) {
  char path[4096];
  snprintf(path, sizeof path, "%s.seen", getenv("ROPEWALK_TEST_CLOCK"));
  FILE *file = fopen(path, "ae");
  if (!file) return;
  fprintf(file, "%d %ld\n", getpid(), seconds);
  fclose(file);
}

int clock_gettime(clockid_t id, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, time);
  if (result == 0 && id == CLOCK_REALTIME) {
    static long told;
    long seconds = offset();
    if (seconds != told) {
      told = seconds;
      note(seconds);
    }
    time->tv_sec += seconds;
  }
  return result;
}
