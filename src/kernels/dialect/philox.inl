// Word `index` of Philox4x32-10. A block has four words, and the block counter is the index without its two lowest bits.
// Written in the dialect of real.inl.

LM_FN lm_s64 lm_philox_word(lm_s64 index, lm_s64 seed, lm_s64 offset) {
  const lm_u64 block = (lm_u64)index & ~(lm_u64)3;
  lm_u32 c0 = (lm_u32)(lm_u64)offset, c1 = (lm_u32)((lm_u64)offset >> 32), c2 = (lm_u32)block, c3 = (lm_u32)(block >> 32);
  lm_u32 k0 = (lm_u32)(lm_u64)seed, k1 = (lm_u32)((lm_u64)seed >> 32);
  int round;
  for (round = 0; round < 10; ++round) {
    const lm_u64 x = (lm_u64)c0 * 0xD2511F53u;
    const lm_u64 y = (lm_u64)c2 * 0xCD9E8D57u;
    c0 = (lm_u32)(y >> 32) ^ c1 ^ k0;
    c1 = (lm_u32)y;
    c2 = (lm_u32)(x >> 32) ^ c3 ^ k1;
    c3 = (lm_u32)x;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  {
    const int place = (int)((lm_u64)index & 3);
    return (lm_s64)(place == 0 ? c0 : place == 1 ? c1 : place == 2 ? c2 : c3);
  }
}
