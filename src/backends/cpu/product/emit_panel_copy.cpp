#include "backends/cpu/product/emit_product.h"

#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/tuning.h"
#include "backends/cpu/vector/transpose.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

using tuning::kLine;

// Of the register tiles that read panels of this type.
kernel::Type sum_type(DataType panel) {
  if (panel == DataType::f64) return kernel::Type::f64;
  return is_byte_integer(panel) || panel == DataType::s32 ? kernel::Type::s32 : kernel::Type::f32;
}

class CopyEmitter {
 public:
  CopyEmitter(llvm::Module& module, const std::string& symbol, const PanelCopy& copy, const Instructions& target)
      : copy_(copy),
        f_(module, symbol, parameter_types(module.getContext(), "pwpw"), target, copy.vector_bits, sum_type(copy.to),
           lane_bits_of(sum_type(copy.to))),
        from_bytes_(element_bytes(copy.from)),
        to_bytes_(element_bytes(copy.to)),
        row_bytes_(copy.vectors * f_.lanes * to_bytes_) {}

  void emit() {
    if (copy_.along_k)
      emit_transpose();
    else
      emit_rows();
    f_.b.CreateRetVoid();
  }

 private:
  bool is_of_integers() const { return is_byte_integer(copy_.from); }

  // As they are stored in the panel.
  llvm::Value* loaded(llvm::Type* type, llvm::Value* from) {
    if (is_of_integers()) return converted(load_pairs(f_, type, from));
    return copy_.from == copy_.to ? f_.load_elements(copy_.from, type, from) : f_.load_converted(copy_.from, type, from);
  }
  llvm::Value* converted(llvm::Value* pairs) {
    return copy_.from == copy_.to ? pairs : words_of_pairs(f_, copy_.from, copy_.zero_point, pairs);
  }
  void store(llvm::Value* elements, llvm::Value* to) {
    f_.b.CreateAlignedStore(elements, to, llvm::Align(static_cast<uint64_t>(to_bytes_)));
  }

  void emit_rows() {
    if (copy_.joins_rows || (is_of_integers() && !copy_.is_paired)) return emit_pairs_of_rows();
    const int64_t read_bytes = copy_.vectors * f_.lanes * from_bytes_;
    f_.repeat(f_.arg(3), {f_.arg(0), f_.arg(2)}, [&](const Values& state) {
      for (int64_t byte = 0; copy_.bytes_ahead > 0 && byte < read_bytes; byte += kLine)
        f_.prefetch_weights(f_.at(state[0], f_.i64(copy_.bytes_ahead + byte)), copy_.prefetches_to_first);
      for (int64_t i = 0; i < copy_.vectors * f_.lanes; i += f_.lanes)
        store(loaded(f_.vector, f_.at(state[0], f_.i64(i * from_bytes_))), f_.at(state[1], f_.i64(i * to_bytes_)));
      return Values{f_.at(state[0], f_.arg(1)), f_.at(state[1], f_.i64(row_bytes_))};
    });
  }

  // The entries of a pair are in two rows.
  void emit_pairs_of_rows() {
    const int64_t entry_bytes = bytes_of(copy_.from, 1), read_bytes = copy_.vectors * f_.lanes * entry_bytes;
    llvm::Value* const stride = f_.arg(1);
    f_.repeat(f_.arg(3), {f_.arg(0), f_.arg(2)}, [&](const Values& state) {
      llvm::Value* const second = f_.at(state[0], stride);
      for (llvm::Value* const row : {state[0], second}) {
        for (int64_t byte = 0; copy_.bytes_ahead > 0 && byte < read_bytes; byte += kLine)
          f_.prefetch_weights(f_.at(row, f_.i64(copy_.bytes_ahead + byte)), copy_.prefetches_to_first);
      }
      Values joined = copy_.joins_rows ? words_of_rows(f_, copy_.vectors, state[0], second) : Values{};
      for (int64_t i = 0; !copy_.joins_rows && i < read_bytes; i += f_.lanes * entry_bytes)
        joined.push_back(converted(pairs_of_rows(f_, f_.at(state[0], f_.i64(i)), f_.at(second, f_.i64(i)))));
      for (size_t j = 0; j < joined.size(); ++j)
        store(joined[j], f_.at(state[1], f_.i64(static_cast<int64_t>(j) * f_.lanes * to_bytes_)));
      return Values{f_.at(second, stride), f_.at(state[1], f_.i64(row_bytes_))};
    });
  }

  void emit_transpose() {
    llvm::Value *const from = f_.arg(0), *const to = f_.arg(2), *const count = f_.arg(3);
    llvm::Value* const blocks = f_.b.CreateUDiv(count, f_.i64(f_.lanes));
    f_.repeat(f_.i64(copy_.vectors), {from, to}, [&](const Values& columns_of_vector) {
      f_.repeat(blocks, columns_of_vector, [&](const Values& place) {
        copy_block(place[0], place[1]);
        return Values{f_.at(place[0], f_.i64(f_.lanes * from_bytes_)), f_.at(place[1], f_.i64(f_.lanes * row_bytes_))};
      });
      return Values{f_.at(columns_of_vector[0], f_.b.CreateMul(f_.arg(1), f_.i64(f_.lanes))),
                    f_.at(columns_of_vector[1], f_.i64(f_.lanes * to_bytes_))};
    });
    copy_rest(from, to, blocks);
  }

  // As many entries of k of as many columns as a vector has lanes.
  void copy_block(llvm::Value* from, llvm::Value* to) {
    Values block;
    llvm::Value* column = from;
    for (int i = 0; i < f_.lanes; ++i) {
      block.push_back(in_lanes(loaded(f_.vector, column)));
      if (copy_.bytes_ahead > 0) f_.prefetch_weights(f_.at(column, f_.i64(copy_.bytes_ahead)), copy_.prefetches_to_first);
      column = f_.at(column, f_.arg(1));
    }
    fence(f_.b, block);
    transpose(f_.b, block, true);
    for (int i = 0; i < f_.lanes; ++i) store(out_of_lanes(block[static_cast<size_t>(i)]), f_.at(to, f_.i64(i * row_bytes_)));
  }

  // Elements of 16 bits are transposed in the low halves of lanes.
  llvm::Value* in_lanes(llvm::Value* elements) {
    if (elements->getType()->getScalarSizeInBits() == 16) elements = f_.b.CreateZExt(elements, words());
    return f_.scalar->isDoubleTy() ? elements : f_.b.CreateBitCast(elements, floats());
  }
  llvm::Value* out_of_lanes(llvm::Value* lanes) {
    if (to_bytes_ > 2) return lanes;
    auto* const narrow = llvm::FixedVectorType::get(f_.b.getInt16Ty(), static_cast<unsigned>(f_.lanes));
    return f_.b.CreateTrunc(f_.b.CreateBitCast(lanes, words()), narrow);
  }
  llvm::Type* floats() { return llvm::FixedVectorType::get(f_.b.getFloatTy(), static_cast<unsigned>(f_.lanes)); }
  llvm::Type* words() { return llvm::FixedVectorType::get(f_.b.getInt32Ty(), static_cast<unsigned>(f_.lanes)); }

  // The last entries of k, element by element.
  void copy_rest(llvm::Value* from, llvm::Value* to, llvm::Value* blocks) {
    llvm::Value* const copied = f_.b.CreateMul(blocks, f_.i64(f_.lanes));
    llvm::Value* const rest = f_.b.CreateSub(f_.arg(3), copied);
    const Values first{f_.at(from, f_.b.CreateMul(copied, f_.i64(from_bytes_))),
                       f_.at(to, f_.b.CreateMul(copied, f_.i64(row_bytes_)))};
    f_.repeat(rest, first, [&](const Values& state) {
      f_.repeat(f_.i64(copy_.vectors * f_.lanes), state, [&](const Values& place) {
        store(loaded(f_.scalar, place[0]), place[1]);
        return Values{f_.at(place[0], f_.arg(1)), f_.at(place[1], f_.i64(to_bytes_))};
      });
      return Values{f_.at(state[0], f_.i64(from_bytes_)), f_.at(state[1], f_.i64(row_bytes_))};
    });
  }

  const PanelCopy copy_;
  ProductFunction f_;
  const int64_t from_bytes_, to_bytes_, row_bytes_;  // of an element; of a row of the panel
};

}  // namespace

void emit_panel_copy(llvm::Module& module, const std::string& symbol, const PanelCopy& copy, const Instructions& target) {
  CopyEmitter(module, symbol, copy, target).emit();
}

std::string describe(const PanelCopy& copy) {
  return join("panel along ", copy.along_k ? "k" : "columns", " of ", copy.vectors, " vectors of ", copy.vector_bits, " bits, ",
              name_of(copy.from), " from ", copy.zero_point, " to ", name_of(copy.to),
              copy.is_paired    ? ", in pairs"
              : copy.joins_rows ? ", joins rows"
                                : "",
              ", prefetches ", copy.bytes_ahead, " bytes ahead", copy.prefetches_to_first ? " to the first level" : "");
}

}  // namespace lamina::cpu
