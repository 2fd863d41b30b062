// The kernels for one instruction set: vectors of LAMINA_VECTOR_BYTES, functions with LAMINA_VECTOR_TARGET. Included once per
// instruction set. Uses the compiler's vector types, which are only passed between functions of one instruction set.

constexpr int64_t kWidth = LAMINA_VECTOR_BYTES / sizeof(float);
using Floats = float __attribute__((vector_size(LAMINA_VECTOR_BYTES)));
using Ints = int32_t __attribute__((vector_size(LAMINA_VECTOR_BYTES)));
using Words = uint32_t __attribute__((vector_size(LAMINA_VECTOR_BYTES)));

// ---- elements in memory, of any alignment

LAMINA_VECTOR_TARGET inline Words word(const void* from) {
  Words values;
  __builtin_memcpy(&values, from, sizeof values);
  return values;
}

template <int count>
LAMINA_VECTOR_TARGET inline void load(const float* from, Floats (&lanes)[count]) {
  for (int i = 0; i < count; ++i) lanes[i] = reinterpret_cast<Floats>(word(from + i * kWidth));
}

template <int count>
LAMINA_VECTOR_TARGET inline void store(const Floats (&lanes)[count], float* to) {
  for (int i = 0; i < count; ++i) __builtin_memcpy(to + i * kWidth, &lanes[i], sizeof lanes[i]);
}

// Loads bf16 in pairs, each the upper half of a word of f32: even lanes in one vector and odd ones in the next.
template <int count>
LAMINA_VECTOR_TARGET inline void load(const Bf16* from, Floats (&lanes)[count]) {
  for (int i = 0; i < count; i += 2) {
    const Words pairs = word(from + i * kWidth);
    lanes[i] = reinterpret_cast<Floats>(pairs << 16);
    lanes[i + 1] = reinterpret_cast<Floats>(pairs & 0xffff0000);
  }
}

// Rounds to nearest even. NaN stays NaN.
LAMINA_VECTOR_TARGET inline Words rounded_to_bf16(const Floats& values) {
  const Words bits = reinterpret_cast<Words>(values);
  return values != values ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
}

template <int count>
LAMINA_VECTOR_TARGET inline void store(const Floats (&lanes)[count], Bf16* to) {
  for (int i = 0; i < count; i += 2) {
    const Words pairs = (rounded_to_bf16(lanes[i]) >> 16) | (rounded_to_bf16(lanes[i + 1]) & 0xffff0000);
    __builtin_memcpy(to + i * kWidth, &pairs, sizeof pairs);
  }
}

template <int count>
LAMINA_VECTOR_TARGET inline void divide(Floats (&sums)[count], float divisor) {
  if (divisor == 1) return;
  for (int i = 0; i < count; ++i) sums[i] /= divisor;
}

// ---- strips: `count` vectors of lanes, starting at `lane`, of all pixels of a row. `slot` is the offset of their argmax.

template <typename Element>
struct Sum {
  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      Floats sum[count], x[count];
      for (int i = 0; i < count; ++i) sum[i] = Floats{};
      for (const Line& line : row.lines)
        for (const Tap *tap = row.taps->begin(pixel), *end = row.taps->end(pixel); tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          for (int i = 0; i < count; ++i) sum[i] += x[i];
        }
      divide(sum, row.divisor * row.taps->divisor(pixel));
      store(sum, output_of<Element>(row, pixel) + lane);
    }
  }
};

template <typename Element>
struct WeightedSum {
  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      Floats sum[count], x[count];
      for (int i = 0; i < count; ++i) sum[i] = Floats{};
      for (const Line& line : row.lines)
        for (const Tap *tap = row.taps->begin(pixel), *end = row.taps->end(pixel); tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          const float weight = line.weight * tap->weight;
          for (int i = 0; i < count; ++i) sum[i] += x[i] * weight;
        }
      divide(sum, row.divisor * row.taps->divisor(pixel));
      store(sum, output_of<Element>(row, pixel) + lane);
    }
  }
};

// A sum of sums of sums, so that errors grow with the number of terms of each and not with the total number.
template <typename Element>
struct LongSum {
  static constexpr int64_t kPart = 32;

  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      Floats total[count], sum[count], part[count], x[count];
      for (int i = 0; i < count; ++i) total[i] = sum[i] = part[i] = Floats{};
      int64_t terms = 0;
      for (const Line& line : row.lines)
        for (const Tap *tap = row.taps->begin(pixel), *end = row.taps->end(pixel); tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          const float weight = line.weight * tap->weight;
          for (int i = 0; i < count; ++i) part[i] += x[i] * weight;
          if (++terms % kPart != 0) continue;
          for (int i = 0; i < count; ++i) sum[i] += part[i], part[i] = Floats{};
          if (terms % (kPart * kPart) != 0) continue;
          for (int i = 0; i < count; ++i) total[i] += sum[i], sum[i] = Floats{};
        }
      for (int i = 0; i < count; ++i) total[i] += sum[i] + part[i];
      divide(total, row.divisor * row.taps->divisor(pixel));
      store(total, output_of<Element>(row, pixel) + lane);
    }
  }
};

// A comparison ignores NaN. A NaN is larger than infinity if its bits without the sign are compared as integers.
template <typename Element>
struct Maximum {
  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      Floats best[count], x[count];
      Ints magnitude[count];
      for (int i = 0; i < count; ++i) magnitude[i] = Ints{};
      for (int i = 0; i < count; ++i) best[i] = Floats{} - std::numeric_limits<float>::infinity();
      for (const Line& line : row.lines)
        for (const Tap *tap = row.taps->begin(pixel), *end = row.taps->end(pixel); tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          for (int i = 0; i < count; ++i) {
            const Ints bits = reinterpret_cast<Ints>(x[i]) & 0x7fffffff;
            best[i] = x[i] > best[i] ? x[i] : best[i];
            magnitude[i] = bits > magnitude[i] ? bits : magnitude[i];
          }
        }
      for (int i = 0; i < count; ++i) best[i] = magnitude[i] > 0x7f800000 ? reinterpret_cast<Floats>(magnitude[i]) : best[i];
      store(best, output_of<Element>(row, pixel) + lane);
    }
  }
};

// The first tap is the argmax until a larger value or the first NaN is read.
template <typename Element>
struct Argmax {
  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t slot) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      const Tap *const begin = row.taps->begin(pixel), *const end = row.taps->end(pixel);
      const bool has_taps = !row.lines.empty() && begin != end;
      Floats best[count], x[count];
      Ints argmax[count];
      for (int i = 0; i < count; ++i) best[i] = Floats{} - std::numeric_limits<float>::infinity();
      for (int i = 0; i < count; ++i) argmax[i] = Ints{} + (has_taps ? row.lines[0].first_tap + begin->number : -1);
      for (const Line& line : row.lines)
        for (const Tap* tap = begin; tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          const Ints number = Ints{} + (line.first_tap + tap->number);
          for (int i = 0; i < count; ++i) {
            const Ints is_larger = ~(x[i] <= best[i]) & (best[i] == best[i]);
            best[i] = is_larger ? x[i] : best[i];
            argmax[i] = is_larger ? number : argmax[i];
          }
        }
      int32_t* const output = output_of<int32_t>(row, pixel) + slot;
      for (int i = 0; i < count; ++i) __builtin_memcpy(output + i * kWidth, &argmax[i], sizeof argmax[i]);
    }
  }
};

// `exact`: the rounding errors of the additions are summed and added at the end.
template <typename Element, bool exact>
struct AnySumOfArgmax {
  template <int count>
  LAMINA_VECTOR_TARGET static void strip(const PixelRow& row, int64_t lane, int64_t slot) {
    const Reader<Element> reader(row, lane);
    for (int64_t pixel = row.pixels.begin; pixel < row.pixels.end; ++pixel) {
      Floats sum[count], rest[count], x[count];
      for (int i = 0; i < count; ++i) sum[i] = rest[i] = Floats{};
      for (const Line& line : row.lines)
        for (const Tap *tap = row.taps->begin(pixel), *end = row.taps->end(pixel); tap != end; ++tap) {
          load(reader.at(line, *tap), x);
          const int32_t* const argmax = row.argmax + (line.argmax_at + tap->pixel * row.argmax_stride + slot);
          const Ints number = Ints{} + (line.first_tap + tap->number);
          for (int i = 0; i < count; ++i) {
            const Ints is_argmax = reinterpret_cast<Ints>(word(argmax + i * kWidth)) == number;
            const Floats more = sum[i] + x[i], taken = more - sum[i];
            if (exact) rest[i] = is_argmax ? rest[i] + ((sum[i] - (more - taken)) + (x[i] - taken)) : rest[i];
            sum[i] = is_argmax ? more : sum[i];
          }
        }
      // The rounding error of an infinite sum is NaN and is not added.
      for (int i = 0; i < count; ++i) sum[i] = rest[i] == rest[i] ? sum[i] + rest[i] : sum[i];
      store(sum, output_of<Element>(row, pixel) + lane);
    }
  }
};

template <typename Element>
using SumOfArgmax = AnySumOfArgmax<Element, false>;
template <typename Element>
using LongSumOfArgmax = AnySumOfArgmax<Element, true>;

// Computes as many vectors at a time as fit the registers. The last lanes are computed together with lanes that are already
// done.
template <template <typename> typename Kernel, typename Element>
LAMINA_VECTOR_TARGET void along_row(const PixelRow& row) {
  constexpr int64_t group = least_lanes<Element>;
  constexpr int many = 4, few = group / kWidth;
  int64_t lane = 0;
  for (; lane + many * kWidth <= row.lanes; lane += many * kWidth) Kernel<Element>::template strip<many>(row, lane, lane);
  for (; lane < row.lanes; lane += group) Kernel<Element>::template strip<few>(row, std::min(lane, row.lanes - group), lane);
}

template <typename Element>
constexpr LaneKernels kKernels{along_row<Sum, Element>,         along_row<WeightedSum, Element>,  along_row<LongSum, Element>,
                               along_row<Maximum, Element>,     along_row<Argmax, Element>, along_row<SumOfArgmax, Element>,
                               along_row<LongSumOfArgmax, Element>};

constexpr LaneCode kCode{LAMINA_VECTOR_NAME, kKernels<float>, kKernels<Bf16>};

#undef LAMINA_VECTOR_NAME
#undef LAMINA_VECTOR_BYTES
#undef LAMINA_VECTOR_TARGET
