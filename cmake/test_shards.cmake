# lamina_test_shards(program COUNT n): ctest runs the GoogleTest program as n processes, each with a share of the tests; one
# process per test would spend most of its time loading LLVM. Each process writes a report to test_results, which
# scripts/test_results.py summarises.
#
# Without oneDNN, suites and tests that need matrix products or convolutions on the CPU are excluded.
set(LAMINA_TESTS_LEFT_OUT)
if(NOT LAMINA_ONEDNN)
  set(suites Batches Constants ConvolutionStep DequantizedWeights GoldenGraphs LibraryFork LibraryThreads Kinds/ManyThreads MatmulStep QuantizedConvolution
    QuantizedProduct Scratchpad Cases/ThreadPool ThreadPoolErrors ThreadPoolUse TiledPlan)
  set(tests Allocation.NoneForConstantsBeyondTheCapacity 
    Explain.TellsWhichKernelComputesAnOpOfATiledChain
    Explain.TellsWhatTilesAddTo Replay.TheReportTellsOfMemory)
  list(TRANSFORM suites APPEND ".*")
  list(JOIN suites ":" suites)
  list(JOIN tests ":" tests)
  set(LAMINA_TESTS_LEFT_OUT "GTEST_FILTER=-${suites}:${tests}")
endif()

# For scripts that start programs without ctest (scripts/test-arm).
file(WRITE ${PROJECT_BINARY_DIR}/tests_left_out "${LAMINA_TESTS_LEFT_OUT}\n")

function(lamina_test_shards program)
  cmake_parse_arguments(SHARDS "" "COUNT" "" ${ARGN})
  foreach(shard RANGE 1 ${SHARDS_COUNT})
    set(name ${program}.${shard}_of_${SHARDS_COUNT})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name} COMMAND ${program} --gtest_output=xml:${PROJECT_BINARY_DIR}/test_results/${name}.xml)
    # Tests use more threads than cores; passive waiting keeps waiting threads from blocking the others.
    set_tests_properties(${name} PROPERTIES LABELS gtest
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${SHARDS_COUNT};GTEST_SHARD_INDEX=${index};OMP_WAIT_POLICY=passive;${LAMINA_TESTS_LEFT_OUT}")
  endforeach()
endfunction()
