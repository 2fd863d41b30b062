# Installs BUILD_DIR into a new prefix below WORK_DIR, moves it, builds the consumer with find_package, and runs it. The moved
# library must find its dependencies relative to its own location.
file(REMOVE_RECURSE ${WORK_DIR})
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed --component lamina)
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G "${GENERATOR}" -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
run(${WORK_DIR}/build/front_ends)
# The runtime alone, then both: the examples, and a model as one file.
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/runtime --component runtime)
run(${CMAKE_COMMAND} -G "${GENERATOR}" -S ${EXAMPLES_DIR}/runtime -B ${WORK_DIR}/of_runtime -DCMAKE_PREFIX_PATH=${WORK_DIR}/runtime
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/of_runtime)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix --component runtime)
run(${CMAKE_COMMAND} -G "${GENERATOR}" -S ${EXAMPLES_DIR} -B ${WORK_DIR}/examples -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/examples)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/examples --output-on-failure)
run(${WORK_DIR}/prefix/bin/lamina export ${GRAPH} -o ${WORK_DIR}/model.lamina)
run(${WORK_DIR}/of_runtime/run_model ${WORK_DIR}/model.lamina)
# Starts the driver as a user does: the environment does not contain the location of its libraries.
unset(ENV{LD_LIBRARY_PATH})
run(${WORK_DIR}/prefix/bin/lamina --version)
run(${WORK_DIR}/prefix/bin/lamina replay --engine cpu --check ${GRAPH})
