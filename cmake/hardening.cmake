# What Debian gives its own programs, for builds that people use: a function whose stack was written
# over ends the process, calls of libc that are given a buffer's size are checked against it, and
# tables of addresses are written before main() and never again. Of value 3 of _FORTIFY_SOURCE the
# checks cost time at each call; a macro that a distribution has set already gives way.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ECPIPE_SANITIZE)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C CXX)
  add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  add_link_options(LINKER:-z,relro LINKER:-z,now)
endif()
