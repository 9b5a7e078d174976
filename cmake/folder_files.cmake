# Sets the variable to the files of a folder, beside the caller, that match the pattern. The next
# build configures anew when a file comes or goes: its folder is a dependency of the configuration.
# (CONFIGURE_DEPENDS would do, but a build of which nothing is left would no longer say so in a dry
# run, and deploy/quickstart.sh asks that.)
function(ecpipe_folder_files variable folder pattern)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  file(GLOB files ${path}/${pattern})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
