# What a wheel holds: Python's library and the command, of the same objects, linked to the C library and to nothing else
# of this system, so that they run on any Linux whose C library is not older. In build/wheel/, by the target wheel_parts.
# The command itself has no MPI; beside it stand the same with those that are here, which it becomes where it is started
# as one of several processes (apps/mpi_program.h).
set(STRETTO_WHEEL ${CMAKE_BINARY_DIR}/wheel)

# An archive of the library where there is one, else the library itself.
set(STRETTO_ARCHIVES)
foreach(name xxhash pcre2-8 utf8proc z)
  find_library(STRETTO_ARCHIVE_${name} NAMES lib${name}.a ${name})
  list(APPEND STRETTO_ARCHIVES ${STRETTO_ARCHIVE_${name}})
endforeach()
find_library(STRETTO_ARCHIVE_fmt NAMES libfmt.a)
set(STRETTO_FMT)
if(STRETTO_ARCHIVE_fmt)
  list(APPEND STRETTO_ARCHIVES ${STRETTO_ARCHIVE_fmt})
elseif(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)  # Debian 12 has no archive of it
  add_library(stretto_fmt OBJECT cmake/fmt.cpp)
  set_target_properties(stretto_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(stretto_fmt PRIVATE fmt::fmt)
  set(STRETTO_FMT $<TARGET_OBJECTS:stretto_fmt>)
else()
  list(APPEND STRETTO_ARCHIVES fmt::fmt)
endif()

function(link_alone target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARGN} ${STRETTO_ARCHIVES} Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -s -Wl,--gc-sections -Wl,--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${STRETTO_WHEEL}
                        RUNTIME_OUTPUT_DIRECTORY ${STRETTO_WHEEL})
  add_dependencies(wheel_parts ${target})
endfunction()
add_custom_target(wheel_parts)
compile_mpi_part(stretto_no_mpi "" "")
add_library(stretto_alone STATIC ${STRETTO_PARTS} $<TARGET_OBJECTS:stretto_no_mpi> ${STRETTO_FMT})

# Nothing of the library is visible but the C interface.
file(GLOB STRETTO_PYTHON CONFIGURE_DEPENDS python/*.cpp)
add_library(stretto_python SHARED ${STRETTO_PYTHON})
link_alone(stretto_python stretto_alone)
set_target_properties(stretto_python PROPERTIES UNITY_BUILD ${STRETTO_UNITY} UNITY_BUILD_BATCH_SIZE 0
                      CXX_VISIBILITY_PRESET hidden)
target_compile_options(stretto_python PRIVATE -O1)
target_compile_definitions(stretto_python PRIVATE STRETTO_VERSION="${PROJECT_VERSION}")

function(wheel_command name mpi_part)
  string(REPLACE "-" "_" target stretto_wheel_${name})
  add_executable(${target} $<TARGET_OBJECTS:stretto_cli> ${mpi_part})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  link_alone(${target} stretto_alone ${ARGN})
endfunction()
wheel_command(stretto "")
if(STRETTO_MPI_INCLUDE MATCHES "openmpi|mpich")
  wheel_command(stretto-${CMAKE_MATCH_0} $<TARGET_OBJECTS:stretto_mpi> ${STRETTO_MPI_LIBRARIES})
endif()
if(STRETTO_MPICH_LIBRARIES)
  wheel_command(stretto-mpich $<TARGET_OBJECTS:stretto_mpich_part> ${STRETTO_MPICH_LIBRARIES})
endif()
