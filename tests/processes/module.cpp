// A library that uses lamina, for a program that does not and loads this one now and then.
#include "processes/work.h"

extern "C" __attribute__((visibility("default"))) uint64_t processes_work() { return processes::digest_of_work(2, false); }
