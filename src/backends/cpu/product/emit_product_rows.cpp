// Rows before and after a product: conversions of src, and results from sums of integers.
#include "backends/cpu/product/emit_product.h"

#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

class ConversionEmitter {
 public:
  ConversionEmitter(llvm::Module& module, const std::string& symbol, const RowConversion& conversion,
                    const Instructions& target)
      : conversion_(conversion),
        f_(module, symbol, parameter_types(module.getContext(), "ppw"), target, conversion.vector_bits, kernel::Type::f32, 32) {
  }

  void emit() {
    llvm::Value* const count = f_.arg(2);
    const Values rest = convert(f_.vector, f_.b.CreateUDiv(count, f_.i64(f_.lanes)), f_.lanes, {f_.arg(0), f_.arg(1)});
    convert(f_.scalar, f_.b.CreateURem(count, f_.i64(f_.lanes)), 1, rest);
    f_.b.CreateRetVoid();
  }

 private:
  // `type`: of f32.
  Values convert(llvm::Type* type, llvm::Value* times, int64_t elements, const Values& first) {
    const bool is_of_integers = is_byte_integer(conversion_.from);
    const int64_t to_bytes = is_of_integers ? 2 : bytes_of(conversion_.to, 1);
    return f_.repeat(times, first, [&](const Values& place) {
      llvm::Value* value = nullptr;
      if (is_of_integers)
        value = without_zero_point(f_, conversion_.from, conversion_.zero_point,
                                   f_.load_elements(conversion_.from, type, place[0]));
      else
        value = f_.load_converted(conversion_.from, type, place[0]);
      if (!is_of_integers && conversion_.to != DataType::f32)
        value = emit_from_f32(f_.b, conversion_.to, value, f_.instructions);
      f_.b.CreateAlignedStore(value, place[1], llvm::Align(static_cast<uint64_t>(to_bytes)));
      return Values{f_.at(place[0], f_.i64(bytes_of(conversion_.from, elements))),
                    f_.at(place[1], f_.i64(elements * to_bytes))};
    });
  }

  const RowConversion conversion_;
  ProductFunction f_;
};

class ScaledRowEmitter {
 public:
  ScaledRowEmitter(llvm::Module& module, const std::string& symbol, const ScaledRow& row, const Instructions& target)
      : row_(row),
        f_(module, symbol, parameter_types(module.getContext(), "ppppw"), target, row.vector_bits, kernel::Type::f32, 32) {}

  void emit() {
    const Values first{f_.arg(0), f_.arg(1), f_.arg(2), f_.arg(3)};
    f_.either(
        f_.b.CreateICmpNE(f_.arg(2), llvm::ConstantPointerNull::get(f_.b.getPtrTy())), [&] { return all(first, true); },
        [&] { return all(first, false); });
    f_.b.CreateRetVoid();
  }

 private:
  Values all(const Values& first, bool has_bias) {
    llvm::Value *const count = f_.arg(4), *const lanes = f_.i64(f_.lanes);
    const Values rest = scale(f_.vector, f_.b.CreateUDiv(count, lanes), f_.lanes, first, has_bias);
    scale(f_.scalar, f_.b.CreateURem(count, lanes), 1, rest, has_bias);
    return {};
  }
  Values scale(llvm::Type* type, llvm::Value* times, int64_t elements, const Values& first, bool has_bias) {
    return f_.repeat(times, first, [&](const Values& place) {
      llvm::Value* const sums = f_.load_elements(DataType::s32, type, place[0]);
      llvm::Value* value = f_.b.CreateFMul(f_.b.CreateSIToFP(sums, type), scales(type, place[1]));
      if (has_bias) value = f_.b.CreateFAdd(value, f_.load(type, place[2]));
      if (row_.to != DataType::f32) value = emit_from_f32(f_.b, row_.to, value, f_.instructions);
      f_.store_elements(row_.to, value, place[3]);
      const auto next = [&](llvm::Value* pointer, DataType dtype) { return f_.at(pointer, f_.i64(bytes_of(dtype, elements))); };
      return Values{next(place[0], DataType::s32), row_.has_one_scale ? place[1] : next(place[1], DataType::f32),
                    next(place[2], DataType::f32), next(place[3], row_.to)};
    });
  }
  llvm::Value* scales(llvm::Type* type, llvm::Value* pointer) {
    if (!row_.has_one_scale || !type->isVectorTy()) return f_.load(type, pointer);
    return f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), f_.load(f_.scalar, pointer));
  }

  const ScaledRow row_;
  ProductFunction f_;
};

}  // namespace

void emit_row_conversion(llvm::Module& module, const std::string& symbol, const RowConversion& conversion,
                         const Instructions& target) {
  ConversionEmitter(module, symbol, conversion, target).emit();
}

std::string describe(const RowConversion& conversion) {
  return join("row of ", name_of(conversion.from), " from ", conversion.zero_point, " to ", name_of(conversion.to),
              ", vectors of ", conversion.vector_bits, " bits");
}

void emit_scaled_row(llvm::Module& module, const std::string& symbol, const ScaledRow& row, const Instructions& target) {
  ScaledRowEmitter(module, symbol, row, target).emit();
}

std::string describe(const ScaledRow& row) {
  return join("scaled row to ", name_of(row.to), row.has_one_scale ? ", one scale" : "", ", vectors of ", row.vector_bits,
              " bits");
}

}  // namespace lamina::cpu
