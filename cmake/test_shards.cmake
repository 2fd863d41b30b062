# lamina_test_shards(program COUNT n): ctest runs the GoogleTest program as n processes, each with a share of the tests; one
# process per test would spend most of its time loading LLVM. Each process writes a report to test_results, which
# scripts/test_results.py summarises.

function(lamina_test_shards program)
  cmake_parse_arguments(SHARDS "" "COUNT" "" ${ARGN})
  foreach(shard RANGE 1 ${SHARDS_COUNT})
    set(name ${program}.${shard}_of_${SHARDS_COUNT})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name} COMMAND ${program} --gtest_output=xml:${PROJECT_BINARY_DIR}/test_results/${name}.xml)
    # Tests use more threads than cores; passive waiting keeps waiting threads from blocking the others.
    set_tests_properties(${name} PROPERTIES LABELS gtest
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${SHARDS_COUNT};GTEST_SHARD_INDEX=${index};OMP_WAIT_POLICY=passive")
  endforeach()
endfunction()
