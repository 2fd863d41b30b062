// Programs of this build as commands of a shell: by themselves or, where they are for another machine, under its emulator,
// which starts no programs of that machine by itself.
#pragma once

#ifndef LAMINA_EMULATOR
#define LAMINA_EMULATOR ""  // else "qemu-aarch64 -L FOLDER "
#endif

namespace lamina::testing {

inline constexpr bool kIsEmulated = sizeof(LAMINA_EMULATOR) > 1;
inline constexpr const char* kNoThreadsInAChild = "qemu 7.2 ends the child of a fork that starts a thread";

}  // namespace lamina::testing
