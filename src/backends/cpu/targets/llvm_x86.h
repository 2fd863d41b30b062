// The fence around what LLVM calls x86-64's own.
#pragma once

#include "backends/cpu/code/llvm_headers.h"

#include <llvm/IR/IntrinsicsX86.h>
