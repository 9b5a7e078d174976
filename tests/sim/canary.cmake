# Writes a source file with bugs in it:
#   cmake -D SOURCE=FILE -D OUTPUT=FILE -D CHANGES="sound@@bug@@sound@@bug" -P canary.cmake
# Each `sound` must be in the file exactly once, and is replaced by the `bug` after it.
file(READ "${SOURCE}" text)
string(REPLACE "@@" ";" changes "${CHANGES}")
while(changes)
  list(POP_FRONT changes sound bug)
  string(FIND "${text}" "${sound}" first)
  string(FIND "${text}" "${sound}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${SOURCE} does not have this once, so no bug can be put there: ${sound}\n"
                        "Change the canary in tests/sim/CMakeLists.txt.")
  endif()
  string(REPLACE "${sound}" "${bug}" text "${text}")
endwhile()
file(WRITE "${OUTPUT}" "${text}")
