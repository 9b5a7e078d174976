# Debian packages by CPack, one a component. deploy/make-packages.sh makes what is
# installed beside the programs (manual pages, completion, changelog) and runs cpack.
set(scripts ${CMAKE_SOURCE_DIR}/deploy/packages)
set(made ${CMAKE_BINARY_DIR}/packages)

# Of the packages alone: elsewhere /etc is not ours to write.
function(ecpipe_package component name)
  install(FILES ${scripts}/copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${made}/changelog.Debian.gz  # who installs without packages has none
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL
    OPTIONAL)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
endfunction()

# The manual pages and the completion of a program, where they have been made.
function(ecpipe_program component name)
  install(DIRECTORY ${made}/man/${name}/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component} OPTIONAL)
  install(FILES ${made}/completions/${name}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    COMPONENT ${component} OPTIONAL)
endfunction()

# A daemon: units, user, configuration, and the scripts that dpkg runs.
function(ecpipe_daemon component units)
  set(unit_files ${units})
  list(TRANSFORM unit_files PREPEND ${CMAKE_SOURCE_DIR}/deploy/systemd/)
  install(FILES ${unit_files} DESTINATION lib/systemd/system COMPONENT ${component})
  set(drop_ins credentials.conf block-roots.conf ${ARGN})
  list(TRANSFORM drop_ins PREPEND ${CMAKE_SOURCE_DIR}/deploy/systemd/)
  install(FILES ${drop_ins}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ecpipe-${component}/examples COMPONENT ${component})
  install(FILES ${scripts}/sysusers.conf
    DESTINATION lib/sysusers.d RENAME ecpipe-${component}.conf COMPONENT ${component})
  install(FILES ${CMAKE_SOURCE_DIR}/deploy/${component}.toml
    DESTINATION /etc/ecpipe COMPONENT ${component} EXCLUDE_FROM_ALL)
  # @units@: as systemctl takes them, with all instances of a template.
  string(REPLACE ";" " " units "${units}")
  string(REPLACE "@." "@*." units "${units}")
  string(REPLACE " " "' '" quoted_units "'${units}'")
  foreach(script conffiles postinst prerm postrm)
    configure_file(${scripts}/${script}.in ${made}/${component}/${script} @ONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
                       GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND control ${made}/${component}/${script})
  endforeach()
  file(CHMOD ${made}/${component}/conffiles
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${control} PARENT_SCOPE)
  # Its postinst calls systemd-sysusers. The first is for systems without systemd.
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS
    "systemd-standalone-sysusers | systemd-sysusers" PARENT_SCOPE)
endfunction()

ecpipe_package(coordinator ecpipe-coordinator)
ecpipe_package(helper ecpipe-helper)
ecpipe_package(command ecpipe)
ecpipe_package(library libecpipe0)
ecpipe_package(development libecpipe-dev)
ecpipe_package(hdfs ecpipe-hdfs)
ecpipe_package(qfs ecpipe-qfs)
ecpipe_program(coordinator ecpipe-coordinator)
ecpipe_program(helper ecpipe-helper)
ecpipe_program(command ecpipe)
ecpipe_daemon(coordinator ecpipe-coordinator.service)
ecpipe_daemon(helper "ecpipe-helper.service;ecpipe-helper@.service" hdfs-datanode.conf)
install(FILES deploy/prometheus/ecpipe-alerts.yml deploy/prometheus/scrape.yml
              deploy/grafana/ecpipe.json docs/runbook.md docs/operations.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ecpipe-coordinator/examples COMPONENT coordinator)
install(PROGRAMS deploy/make-certs.sh
  DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ecpipe-make-certs COMPONENT command)
install(FILES deploy/systemd/certs/ecpipe-certs.service deploy/systemd/certs/ecpipe-certs.timer
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ecpipe/examples COMPONENT command)

# Maven makes it; without it make-packages.sh leaves this component out.
install(FILES ${CMAKE_SOURCE_DIR}/build/hdfs/maven/ecpipe-hdfs-${PROJECT_VERSION}.jar
  DESTINATION ${CMAKE_INSTALL_DATADIR}/java COMPONENT hdfs EXCLUDE_FROM_ALL)
install(FILES integrations/hdfs/README.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ecpipe-hdfs COMPONENT hdfs EXCLUDE_FROM_ALL)
install(FILES integrations/qfs/README.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ecpipe-qfs COMPONENT qfs EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME ecpipe)
set(CPACK_PACKAGE_VENDOR ECPipe)
set(CPACK_PACKAGE_CONTACT "The ECPipe project <packages@ecpipe.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL coordinator helper command library development hdfs qfs)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Transport redis loads it when it is first used, so no program is linked with it.
string(REPLACE ".so." "" hiredis_package ${HIREDIS_SONAME})
set(CPACK_DEBIAN_HELPER_PACKAGE_RECOMMENDS ${hiredis_package})
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS ${hiredis_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS ${hiredis_package})
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# CPack's own shlibs come with scripts that call ldconfig, which Debian leaves to a trigger.
foreach(component library qfs)
  string(TOUPPER ${component} upper)
  set(library libecpipe)
  if(component STREQUAL qfs)
    set(library libecpipe_qfs)
  endif()
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  configure_file(${scripts}/shlibs.in ${made}/${component}/shlibs @ONLY)
  configure_file(${scripts}/triggers ${made}/${component}/triggers COPYONLY)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA
    ${made}/${component}/shlibs ${made}/${component}/triggers)
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HDFS_PACKAGE_SECTION java)
set(CPACK_DEBIAN_HDFS_PACKAGE_ARCHITECTURE all)
foreach(component DEVELOPMENT HDFS)  # nothing to link
  set(CPACK_DEBIAN_${component}_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_${component}_DEBUGINFO_PACKAGE OFF)
endforeach()

set(CPACK_COMPONENT_COORDINATOR_DESCRIPTION
"daemon that plans repairs of erasure-coded blocks
ECPipe rebuilds lost blocks of erasure-coded data in about the time of one
normal read. One coordinator in a cluster knows stripes and nodes, plans
repairs and hands them to the helpers.")
set(CPACK_COMPONENT_HELPER_DESCRIPTION
"daemon that serves a node's blocks to repairs
ECPipe rebuilds lost blocks of erasure-coded data in about the time of one
normal read. A helper runs beside each storage node: it serves the node's
blocks to repairs, and stores repaired blocks there.")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION
"command that repairs erasure-coded blocks
ECPipe rebuilds lost blocks of erasure-coded data in about the time of one
normal read. This is the command for operators and for scripts.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
"library that reads and rebuilds erasure-coded blocks
ECPipe rebuilds lost blocks of erasure-coded data in about the time of one
normal read. This library reads lost blocks in a program's own process.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"library that reads and rebuilds erasure-coded blocks, headers
Headers for C and C++, the CMake package and the pkg-config file of
libecpipe, which reads lost blocks in a program's own process.")
set(CPACK_COMPONENT_HDFS_DESCRIPTION
"ECPipe inside HDFS-3
A jar for the class path of HDFS's clients and DataNodes: degraded reads and
the reconstruction of lost blocks go through ECPipe.")

set(CPACK_COMPONENT_QFS_DESCRIPTION
"ECPipe inside QFS
The library by which a QFS chunkserver recovers lost chunks through ECPipe, the
headers that its builder includes, and a program that reads a chunk.")

# For systems that are not Debian's: all of it in one archive.
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)
