# A component a package (packages.cmake): coordinator, helper, command (`ecpipe`), library
# (libecpipe.so), development (headers, CMake package, ecpipe.pc), hdfs, qfs (what a QFS
# chunkserver's host needs, and its builder). No package has samples.
# All with `cmake --install BUILD`, one with `--component NAME`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS ecpipe-coordinator
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT coordinator)
install(TARGETS ecpipe-helper
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT helper)
install(TARGETS ecpipe
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(FILES deploy/coordinator.toml deploy/helper.toml deploy/requestor.toml
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT samples)

install(TARGETS ecpipe_c EXPORT ecpipe
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY docs/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

install(TARGETS ecpipe_qfs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT qfs)
install(TARGETS qfs_chunk_reader RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT qfs)
install(FILES integrations/qfs/shim/ecpipe_qfs.h integrations/qfs/hook/ecpipe_ext_reader.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT qfs)
install(FILES deploy/qfs-shim.conf DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT qfs)

# find_package(ecpipe), then link ecpipe::ecpipe.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ecpipe)
install(EXPORT ecpipe NAMESPACE ecpipe:: FILE ecpipe-config.cmake
  DESTINATION ${package_dir} COMPONENT development)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ecpipe-config-version.cmake
  COMPATIBILITY SameMajorVersion)
# The folders are found from where ecpipe.pc lies, so that an installation can be moved.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/ecpipe.pc.in ecpipe.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ecpipe-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ecpipe.pc
  DESTINATION ${pc_dir} COMPONENT development)
