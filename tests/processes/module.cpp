// A library that uses lamina, for a program that does not use lamina itself and loads the library repeatedly.
#include "processes/work.h"

extern "C" __attribute__((visibility("default"))) uint64_t processes_work() { return processes::digest_of_work(2, false); }
