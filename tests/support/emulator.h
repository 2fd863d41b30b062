// Shell commands that run programs of this build: directly or, when the programs are for another architecture, under the
// emulator. The emulator does not run child processes of that architecture, so each command names it explicitly.
#pragma once

#ifndef LAMINA_EMULATOR
#define LAMINA_EMULATOR ""  // otherwise "qemu-aarch64 -L FOLDER "
#endif

namespace lamina::testing {

inline constexpr bool kIsEmulated = sizeof(LAMINA_EMULATOR) > 1;
inline constexpr const char* kNoThreadsInAChild = "qemu 7.2 ends the child of a fork that starts a thread";

}  // namespace lamina::testing
