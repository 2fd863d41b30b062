// The moves for one instruction set: functions with LAMINA_VECTOR_TARGET and vectors of LAMINA_VECTOR_BYTES; stream(to,
// vector) is a non-temporal store. Included once per instruction set.

constexpr size_t kWords = LAMINA_VECTOR_BYTES / sizeof(Word);  // at most a line's 16

LAMINA_VECTOR_TARGET inline Vector at(const Word* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}

template <Stores stores>
LAMINA_VECTOR_TARGET inline void put(Word* to, Vector vector) {
  if constexpr (stores == Stores::streaming)
    stream(to, vector);
  else
    __builtin_memcpy(to, &vector, sizeof vector);
}

template <Reads reads>
inline void prefetch_at(const Word* from, size_t i) {
  if (i % 16 == 0) prefetch<reads>(from + i);
}

template <Stores stores, Reads reads>
LAMINA_VECTOR_TARGET void copy(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += kWords) {
    prefetch_at<reads>(s.a, i);
    put<stores>(s.out + i, at(s.a + i));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_VECTOR_TARGET void triad(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += kWords) {
    prefetch_at<reads>(s.a, i);
    prefetch_at<reads>(s.b, i);
    put<stores>(s.out + i, at(s.a + i) ^ at(s.b + i));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_VECTOR_TARGET void two_to_two(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += kWords) {
    prefetch_at<reads>(s.a, i);
    prefetch_at<reads>(s.b, i);
    const Vector both = at(s.a + i) ^ at(s.b + i);
    put<stores>(s.out + i, both);
    put<stores>(s.second_out + i, ~both);
  }
  drain<stores>();
}

// kWords of each line of `a` are contiguous, and so are the results of joining four of these.
template <Stores stores, Reads reads>
LAMINA_VECTOR_TARGET void shrink(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += kWords) {
    const Word* const from = s.a + i * 4;
    for (size_t word = 0; word < 4 * kWords; word += 16) prefetch<reads>(from + word);
    put<stores>(s.out + i, (at(from) ^ at(from + kWords)) ^ (at(from + 2 * kWords) ^ at(from + 3 * kWords)));
  }
  drain<stores>();
}

template <Stores stores>
LAMINA_VECTOR_TARGET void fill(const Share& s) {
  const Vector ones = Vector{} + 1;
  for (Word* const to : {s.out, s.second_out}) {
    if (to == nullptr) continue;
    for (size_t i = 0; i < s.lines * 16; i += kWords) put<stores>(to + i, ones);
  }
  drain<stores>();
}

#define LAMINA_WRITTEN_WAYS(name, move)                                                               \
  {                                                                                                   \
    {name ", lines", move<Stores::ordinary, Reads::plain>, fill<Stores::ordinary>},                   \
        {name ", to L1", move<Stores::ordinary, Reads::to_first>, fill<Stores::ordinary>},            \
        {name ", to L2", move<Stores::ordinary, Reads::to_second>, fill<Stores::ordinary>},           \
        {name ", streaming", move<Stores::streaming, Reads::plain>, fill<Stores::streaming>},         \
        {name ", streaming, to L1", move<Stores::streaming, Reads::to_first>, fill<Stores::streaming>}, \
        {name ", streaming, to L2", move<Stores::streaming, Reads::to_second>, fill<Stores::streaming>}, \
  }

inline std::vector<Way> ways(Moves move) {
  switch (move) {
    case Moves::copy: return LAMINA_WRITTEN_WAYS("copy", copy);
    case Moves::triad: return LAMINA_WRITTEN_WAYS("triad", triad);
    case Moves::two_to_two: return LAMINA_WRITTEN_WAYS("2 to 2", two_to_two);
    case Moves::shrink: return LAMINA_WRITTEN_WAYS("shrink", shrink);
  }
  return {};
}

#undef LAMINA_WRITTEN_WAYS
#undef LAMINA_VECTOR_BYTES
#undef LAMINA_VECTOR_TARGET
