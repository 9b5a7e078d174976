# ccache, where it is installed and nobody has named another launcher. Its entries serve every clone
# and build folder; the sloppiness is what precompiled headers need.
find_program(ECPIPE_CCACHE ccache)
mark_as_advanced(ECPIPE_CCACHE)
if(ECPIPE_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${ECPIPE_CCACHE})
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()
