# Exports the model of examples/serve, and loads the server for a few seconds.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${PYTHON} ${EXAMPLE_DIR}/make_model.py ${WORK_DIR})
run(${DRIVER} export ${WORK_DIR}/graph.json -o ${WORK_DIR}/model.lamina --weights ${WORK_DIR} --shapes 0:1..16x256)
run(${PYTHON} ${EXAMPLE_DIR}/load.py ${SERVER} ${WORK_DIR}/model.lamina --may-grow ${MAY_GROW})
