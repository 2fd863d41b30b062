#!/usr/bin/env python3
"""Finds files that use a name of the standard library, of LLVM or of GoogleTest without including its header.

    check_includes.py [FOLDER]...      default: every folder of sources of the tree

A file may include a header directly or through the project's own headers, which are included in quotes. Includes between
standard headers differ between libraries and do not count; neither do precompiled headers. Exits with 1 if an include is
missing.
"""
import functools
import pathlib
import re
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["include", "src", "compat", "tools", "benchmarks", "tests", "examples", "python"]
# Where `#include "..."` looks, besides the folder of the file itself.
ROOTS = ["src", "src/handles", "tools", "tests", "compat/infiniop/include", "compat/onednn_primitive/include", "compat/onednn_graph/src"]
ANGLE_ROOTS = ["include", "compat/infiniop/include", "compat/onednn_primitive/include"]

# header: the names in namespace std that are its own. Where several headers declare a name, each of them is enough.
STD_NAMES = {
    "algorithm": """all_of any_of none_of for_each for_each_n find find_if find_if_not count count_if mismatch equal search copy copy_n copy_if
        copy_backward fill fill_n transform generate generate_n remove_if unique reverse rotate sort stable_sort partial_sort nth_element is_sorted
        lower_bound upper_bound equal_range binary_search merge set_union set_difference set_intersection includes min max minmax min_element
        max_element minmax_element clamp lexicographical_compare next_permutation stable_partition adjacent_find replace shuffle""",
    "array": "array to_array",
    "atomic": "atomic atomic_ref memory_order_relaxed memory_order_acquire memory_order_release atomic_thread_fence atomic_flag",
    "bit": "bit_cast popcount countr_zero countl_zero bit_width bit_ceil bit_floor has_single_bit rotl rotr endian",
    "charconv": "from_chars to_chars chars_format from_chars_result to_chars_result",
    "chrono": "chrono",
    "cmath": """sqrt cbrt exp exp2 expm1 log log2 log10 log1p pow sin cos tan tanh sinh cosh asin acos atan atan2 erf erfc tgamma lgamma floor ceil
        trunc round lround llround nearbyint rint fmod remainder fma fabs isnan isinf isfinite signbit copysign nextafter ldexp frexp ilogb
        logb scalbn hypot fmin fmax isnormal modf""",
    "complex": "complex",
    "condition_variable": "condition_variable condition_variable_any",
    "cstddef": "byte max_align_t nullptr_t",
    "cstdint": """int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t int_fast32_t
        uint_fast32_t""",
    "cstdio": "printf fprintf snprintf sprintf fopen fclose fread fwrite fputs puts perror FILE fflush fgets fputc putchar sscanf",
    "cstdlib": "getenv abort exit strtol strtoll strtoul strtoull strtod strtof system malloc free aligned_alloc atoi quick_exit",
    "cstring": "memcpy memset memcmp memmove strlen strcmp strncmp strstr strchr strerror memchr",
    "deque": "deque",
    "exception": "exception exception_ptr current_exception rethrow_exception make_exception_ptr terminate uncaught_exceptions",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream filebuf",
    "functional": "function hash less greater plus minus multiplies divides equal_to not_equal_to bit_xor ref cref invoke not_fn bind_front reference_wrapper",
    "future": "future promise async packaged_task shared_future",
    "iomanip": "setw setprecision setfill quoted put_time",
    "iostream": "cout cerr clog cin",
    "iterator": """back_inserter inserter istreambuf_iterator ostreambuf_iterator istream_iterator make_move_iterator distance advance
        iterator_traits reverse_iterator ostream_iterator""",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "numpunct use_facet",
    "map": "map multimap",
    "memory": """unique_ptr shared_ptr weak_ptr make_unique make_shared allocator enable_shared_from_this addressof align uninitialized_copy
        make_unique_for_overwrite static_pointer_cast destroy_at construct_at""",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex timed_mutex",
    "new": "bad_alloc align_val_t nothrow hardware_destructive_interference_size launder",
    "numbers": "numbers",
    "numeric": "accumulate iota reduce inner_product partial_sum gcd lcm exclusive_scan inclusive_scan adjacent_difference transform_reduce midpoint",
    "optional": "optional nullopt nullopt_t make_optional",
    "queue": "queue priority_queue",
    "random": """mt19937 mt19937_64 random_device uniform_int_distribution uniform_real_distribution normal_distribution bernoulli_distribution
        minstd_rand default_random_engine""",
    "ranges": "views",
    "regex": "regex smatch cmatch regex_search regex_match regex_replace sregex_iterator sregex_token_iterator",
    "set": "set multiset",
    "shared_mutex": "shared_mutex shared_lock shared_timed_mutex",
    "source_location": "source_location",
    "span": "span dynamic_extent as_bytes",
    "sstream": "ostringstream istringstream stringstream stringbuf",
    "stack": "stack",
    "stdexcept": "runtime_error logic_error invalid_argument out_of_range length_error domain_error overflow_error range_error",
    "string": "string to_string stoi stol stoll stoul stoull stod stof getline u8string wstring basic_string char_traits",
    "string_view": "string_view basic_string_view",
    "system_error": "error_code errc system_error error_condition make_error_code generic_category",
    "thread": "thread jthread this_thread",
    "tuple": "tuple make_tuple tie forward_as_tuple apply ignore tuple_element_t tuple_size_v tuple_cat",
    "type_traits": """is_same_v is_same enable_if_t enable_if conditional_t conditional decay_t is_integral_v is_floating_point_v is_signed_v is_unsigned_v
        is_convertible_v is_base_of_v underlying_type_t remove_reference_t remove_cvref_t remove_const_t is_enum_v invoke_result_t make_unsigned_t
        make_signed_t void_t true_type false_type is_trivially_copyable_v is_invocable_v is_pointer_v is_arithmetic_v is_void_v is_const_v
        integral_constant bool_constant is_standard_layout_v is_nothrow_move_constructible_v is_constructible_v is_copy_constructible_v type_identity_t""",
    "typeinfo": "type_info bad_cast",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set unordered_multiset",
    "utility": "pair make_pair move forward swap exchange declval index_sequence make_index_sequence in_place as_const cmp_less integer_sequence unreachable",
    "variant": "variant visit get_if holds_alternative monostate variant_size_v variant_alternative_t bad_variant_access",
    "vector": "vector",
}
CONTAINERS = """array deque functional list map memory optional set span string string_view tuple unordered_map unordered_set variant
    vector""".split()
# Names that several headers declare: each of these is enough. The report suggests the first one.
EITHER = {
    "swap": ["utility", *CONTAINERS],
    "move": ["utility", "algorithm", *CONTAINERS],
    "forward": ["utility", *CONTAINERS],
    "pair": ["utility", *CONTAINERS],
    "make_pair": ["utility", "map", "unordered_map"],
    "hash": ["functional", "string", "string_view", "memory", "optional", "variant", "vector", "thread", "system_error"],
    "less": ["functional", "map", "set"],
    "distance": ["iterator", *CONTAINERS],
    "advance": ["iterator", *CONTAINERS],
    "reverse_iterator": ["iterator", *CONTAINERS],
    "byte": ["cstddef", "span"],
    "exception": ["exception", "stdexcept", "new", "typeinfo", "system_error"],
    "errc": ["system_error", "charconv"],
    "error_code": ["system_error", "filesystem"],
    "atomic": ["atomic", "memory"],
    "is_same_v": ["type_traits", "variant", "tuple"],
    "tuple_size_v": ["tuple", "array", "utility"],
    **{name: ["cstdint", "cinttypes"] for name in STD_NAMES["cstdint"].split()},
}
# Headers that include these by their synopsis, hence in every library.
BRINGS = {
    "string": ["string_view"],
    "fstream": ["ostream", "istream", "ios"],
    "sstream": ["ostream", "istream", "ios", "string"],
    "iostream": ["ostream", "istream", "ios"],
    "filesystem": ["string", "chrono", "system_error", "string_view"],
    "regex": ["string"],
    "queue": ["vector", "deque"],
    "gtest/gtest.h": ["string", "vector", "ostream", "memory", "tuple", "sstream", "set", "map", "utility", "functional", "iostream"],
    "gmock/gmock.h": ["gtest/gtest.h"],
    "cinttypes": ["cstdint"],
    "thread": ["chrono"],
    "condition_variable": ["mutex", "chrono"],
}
# Precompiled headers besides the standard library: the names they declare, and the header to include.
PRECOMPILED = [
    (re.compile(r"\b(llvm)::"), "backends/cpu/llvm/headers.h"),
    (re.compile(r"\b((?:EXPECT|ASSERT)_\w+|TEST|TEST_P|TEST_F|GTEST_SKIP)\("), "gtest/gtest.h"),
    (re.compile(r"\b((?:EXPECT|ASSERT)_THAT|MATCHER|MATCHER_P)\("), "gmock/gmock.h"),
]
GENERATED = ["code_version.h"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
STD_NAME = re.compile(r"\bstd::(\w+)")
BARE_NAME = re.compile(r"(?<![\w:.>])(u?int(?:8|16|32|64|ptr)_t)\b")


def code_of(text):
    """Returns the text without comments and literals; digit separators as in 16'384 do not start literals."""
    return COMMENT_OR_TEXT.sub(" ", re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text))


@functools.cache
def resolve(folder, name, quoted):
    """Returns the project's file for an #include; None for other headers."""
    places = ([folder] + [TREE / root for root in ROOTS]) if quoted else []
    for place in places + [TREE / root for root in ANGLE_ROOTS]:
        if (place / name).is_file():
            return (place / name).resolve()
    return None


@functools.cache
def headers_of(path):
    """Returns the standard (and other external) headers that a file includes, directly and through the project's headers."""
    return frozenset(closure(path, set()))


def closure(path, seen):
    if path in seen:
        return set()
    seen.add(path)
    found = {str(path.relative_to(TREE / "src"))} if (TREE / "src") in path.parents else set()
    for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        inner = resolve(path.parent, name, bracket == '"')
        found |= closure(inner, seen) if inner else with_brought(name)
    return found


def with_brought(name):
    found = {name}
    for brought in BRINGS.get(name, []):
        found |= with_brought(brought)
    return found


def missing(path):
    """Returns (name, header) for each used name without an include."""
    headers = headers_of(path)
    code = code_of(path.read_text(encoding="utf-8"))
    homes = {name: [header] for header, names in STD_NAMES.items() for name in names.split()}
    homes.update(EITHER)
    faults = []
    for name in sorted(set(STD_NAME.findall(code))):
        if name in homes and not headers.intersection(homes[name]):
            faults.append((f"std::{name}", homes[name][0]))
    # C headers declare these outside of std as well.
    for name in sorted(set(BARE_NAME.findall(code))):
        if not headers.intersection(["cstdint", "stdint.h", "cinttypes"]):
            faults.append((name, "cstdint"))
    for pattern, header in PRECOMPILED:
        # Files that include LLVM's headers directly do not need the precompiled one; tests/layers checks which files may.
        if header not in headers and not (header.endswith("llvm/headers.h") and any(name.startswith("llvm/") for name in headers)):
            faults += [(name, header) for name in sorted(set(pattern.findall(code)))]
    return faults


def unknown_files(path):
    """Returns quoted includes that are not files of the tree."""
    quoted = [name for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")) if bracket == '"']
    return [name for name in quoted if name not in GENERATED and not resolve(path.parent, name, True)]


def main():
    folders = sys.argv[1:] or [TREE / folder for folder in FOLDERS]
    files = [path.resolve() for folder in folders for path in sorted(pathlib.Path(folder).rglob("*"))
             if path.suffix in (".h", ".hpp", ".cpp")]
    faults = [(path, name, header) for path in files for name, header in missing(path)]
    for path, name, header in faults:
        print(f"{path.relative_to(TREE)}: {name} without #include <{header}>")
    unknown = [(path, name) for path in files for name in unknown_files(path)]
    for path, name in unknown:
        print(f"{path.relative_to(TREE)}: \"{name}\" is no file of the tree")
    print(f"check_includes: {len(files)} files, {len(faults)} names without their header")
    return 1 if faults or unknown or not files else 0


if __name__ == "__main__":
    sys.exit(main())
