# Build helpers of Humming. Leaf CMake files are lists; the cleverness is here.
#
#   humming_setup_build()      build type, language, folders, ccache, lld
#   humming_find_llvm()        LLVM (and MLIR), their flags and helpers
#   humming_add_library(...)   a static library of the package
#   humming_add_tool(...)      a program in bin/
#   humming_add_unittest(...)  a gtest program in unittests/
#   humming_install_package()  find_package(Humming) for other projects
#
# Two ways to link LLVM and MLIR. The development build takes the shared
# libMLIR and libLLVM: links in a second. HUMMING_STATIC takes the component
# archives: tools that run on a machine without LLVM. The two must never be
# mixed: two copies of MLIR in one process have two sets of type ids.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(HummingStatic)

macro(humming_setup_build)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  # Installed tools find the shared libMLIR where this LLVM is.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Without a time stamp in it, ccache can share a precompiled header.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Xclang>
                        $<$<COMPILE_LANGUAGE:CXX>:-fno-pch-timestamp>)
  endif()
  humming_use_ccache()
endmacro()

# Puts ccache before the compiler, if it is installed. A precompiled header
# needs two relaxations: its defines are part of it, and it has no __TIME__.
macro(humming_use_ccache)
  find_program(HUMMING_CCACHE ccache)
  foreach(lang C CXX)
    set(_launcher "${CMAKE_${lang}_COMPILER_LAUNCHER}")
    if(HUMMING_CCACHE AND (NOT _launcher OR _launcher MATCHES "^([^;]*/)?ccache$"))
      set(CMAKE_${lang}_COMPILER_LAUNCHER
          env CCACHE_SLOPPINESS=pch_defines,time_macros ${HUMMING_CCACHE})
    endif()
  endforeach()
endmacro()

# Takes the lld that belongs to this LLVM, else any, else the default linker.
# HUMMING_LLD says whether lld links.
macro(humming_use_lld)
  set(HUMMING_LLD OFF)
  if(NOT "${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=")
    find_program(HUMMING_LLD_PATH NAMES ld.lld-22 ld.lld lld-22
                 HINTS ${LLVM_TOOLS_BINARY_DIR})
    if(HUMMING_LLD_PATH AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      add_link_options(--ld-path=${HUMMING_LLD_PATH})
      set(HUMMING_LLD ON)
    elseif(HUMMING_LLD_PATH)
      # GCC looks for ld.lld on its program path only.
      get_filename_component(_lld_folder ${HUMMING_LLD_PATH} DIRECTORY)
      add_link_options(-fuse-ld=lld -B${_lld_folder})
      set(HUMMING_LLD ON)
    endif()
  elseif("${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=[^ ]*lld")
    set(HUMMING_LLD ON)
  endif()
endmacro()

# Finds LLVM (and MLIR when the compiler is built) and sets compile flags.
macro(humming_find_llvm)
  # Debian and Ubuntu install each release under its own prefix.
  set(_llvm_prefix /usr/lib/llvm-22)
  if(HUMMING_ENABLE_COMPILER)
    find_package(MLIR REQUIRED CONFIG PATHS ${_llvm_prefix})
    list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}")
  else()
    find_package(LLVM REQUIRED CONFIG PATHS ${_llvm_prefix})
  endif()
  # Their version files accept an exact major.minor only, so this is by hand.
  if(NOT LLVM_VERSION_MAJOR EQUAL 22)
    message(FATAL_ERROR "expected LLVM 22, got ${LLVM_PACKAGE_VERSION} in "
      "${LLVM_DIR}; pass -DMLIR_DIR=<prefix>/lib/cmake/mlir")
  endif()
  list(APPEND CMAKE_MODULE_PATH "${LLVM_CMAKE_DIR}")
  set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
  set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
  if(HUMMING_STATIC)
    set(LLVM_LINK_LLVM_DYLIB OFF)
    set(MLIR_LINK_MLIR_DYLIB OFF)
  else()
    # The packages do not set these.
    set(LLVM_LINK_LLVM_DYLIB ON)
    set(MLIR_LINK_MLIR_DYLIB ON)
  endif()
  include(TableGen)
  include(AddLLVM)
  if(HUMMING_ENABLE_COMPILER)
    include(AddMLIR)
  endif()
  include(HandleLLVMOptions)
  separate_arguments(_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  # HandleLLVMOptions adds this one again: a warning per file otherwise.
  list(REMOVE_ITEM _llvm_definitions -D_GLIBCXX_USE_CXX11_ABI=1)
  add_definitions(${_llvm_definitions})
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall>)
  if(HUMMING_ENABLE_WERROR)
    add_compile_options(-Werror)
  endif()
  humming_use_lld()
  if(HUMMING_STATIC)
    humming_setup_static()
  endif()
endmacro()

# Makes `target` take the shared precompiled header (lib/HummingPCH.h). It
# must be compiled with the flags of the libraries.
function(humming_use_pch target)
  if(HUMMING_ENABLE_PCH AND TARGET HummingPCH)
    target_precompile_headers(${target} REUSE_FROM HummingPCH)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      # Programs would be compiled with -fPIE, the header is with -fPIC.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
endfunction()

# Sets `out` if the target itself or a library it links uses MLIR.
function(humming_uses_mlir out mlir_libs link_libs)
  set(${out} OFF PARENT_SCOPE)
  if(mlir_libs)
    set(${out} ON PARENT_SCOPE)
    return()
  endif()
  foreach(lib ${link_libs})
    if(TARGET ${lib})
      get_target_property(uses ${lib} HUMMING_USES_MLIR)
      if(uses)
        set(${out} ON PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# humming_add_library(Name SOURCES a.cpp ... [LINK_LIBS lib ...] [DEPENDS t ...]
#                     [LLVM_COMPONENTS Core ...] [MLIR_LIBS MLIRIR ...])
#
# A static library, part of the installed package. LLVM and MLIR come from the
# shared libraries in a development build, from the named components in a
# HUMMING_STATIC build; so a library must name every one that it uses. One that
# uses MLIR, itself or through LINK_LIBS, is compiled with the precompiled
# header.
function(humming_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK_LIBS;DEPENDS;LLVM_COMPONENTS;MLIR_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(Humming::${name} ALIAS ${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  humming_link_llvm(${name} PUBLIC COMPONENTS Support ${ARG_LLVM_COMPONENTS} MLIR_LIBS ${ARG_MLIR_LIBS})
  humming_uses_mlir(uses_mlir "${ARG_MLIR_LIBS}" "${ARG_LINK_LIBS}")
  set_target_properties(${name} PROPERTIES HUMMING_USES_MLIR ${uses_mlir})
  if(uses_mlir)
    humming_use_pch(${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY HUMMING_LIBRARIES ${name})
endfunction()

# humming_link_llvm(target PUBLIC|PRIVATE [COMPONENTS ...] [MLIR_LIBS ...])
#
# ALL among the MLIR_LIBS stands for what mlir::registerAllDialects,
# registerAllExtensions and registerAllPasses need.
function(humming_link_llvm target scope)
  cmake_parse_arguments(ARG "" "" "COMPONENTS;MLIR_LIBS" ${ARGN})
  if("ALL" IN_LIST ARG_MLIR_LIBS)
    list(REMOVE_ITEM ARG_MLIR_LIBS ALL)
    list(APPEND ARG_MLIR_LIBS MLIRRegisterAllDialects MLIRRegisterAllExtensions
         MLIRRegisterAllPasses)
  endif()
  if(HUMMING_STATIC)
    llvm_map_components_to_libnames(llvm_libs ${ARG_COMPONENTS})
    target_link_libraries(${target} ${scope} ${ARG_MLIR_LIBS} ${llvm_libs})
  else()
    if(ARG_MLIR_LIBS)
      target_link_libraries(${target} ${scope} MLIR)
    endif()
    target_link_libraries(${target} ${scope} LLVM)
  endif()
endfunction()

# humming_add_tool(name SOURCES a.cpp ... LINK_LIBS lib ... [PCH]
#                  [LLVM_COMPONENTS ...] [MLIR_LIBS ...])
function(humming_add_tool name)
  cmake_parse_arguments(ARG "PCH" "" "SOURCES;LINK_LIBS;LLVM_COMPONENTS;MLIR_LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  humming_link_llvm(${name} PRIVATE COMPONENTS Support ${ARG_LLVM_COMPONENTS} MLIR_LIBS ${ARG_MLIR_LIBS})
  if(ARG_PCH)
    humming_use_pch(${name})
  endif()
  if(HUMMING_STATIC)
    humming_finish_static_tool(${name})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_property(GLOBAL APPEND PROPERTY HUMMING_TOOLS ${name})
endfunction()

# humming_add_plugin(name SOURCES a.cpp ... LINK_LIBS lib ... [PCH])
#
# A shared library in lib/ that a program with the shared libMLIR loads. It
# exports the plugin entry points alone (cmake/plugin.map).
function(humming_add_plugin name)
  cmake_parse_arguments(ARG "PCH" "" "SOURCES;LINK_LIBS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  set(map ${PROJECT_SOURCE_DIR}/cmake/plugin.map)
  target_link_options(${name} PRIVATE LINKER:--version-script=${map} LINKER:--gc-sections)
  set_target_properties(${name} PROPERTIES PREFIX "" LINK_DEPENDS ${map})
  if(ARG_PCH)
    humming_use_pch(${name})
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY HUMMING_TOOLS ${name})
endfunction()

# humming_add_unittest(Name SOURCES a.cpp ... LINK_LIBS lib ...)
#
# One gtest program; lit runs its cases one by one, ctest the program.
function(humming_add_unittest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main)
  humming_link_llvm(${name} PRIVATE COMPONENTS Support)
  target_compile_definitions(${name} PRIVATE HUMMING_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # lit finds the programs by their suffix.
  set_target_properties(${name} PROPERTIES SUFFIX .gtest
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  add_test(NAME ${name} COMMAND ${name})
  set_property(GLOBAL APPEND PROPERTY HUMMING_UNITTESTS ${name})
endfunction()

# humming_add_test_program(name SOURCES a.c ... LINK_LIBS lib ...
#                          [MLIR_CAPI_LIBS MLIRCAPIIR ...])
#
# A program that a lit test runs by its name. MLIR's C API is in no shared
# library: it is linked from archives, by file, because their targets would
# bring a second MLIR along.
function(humming_add_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK_LIBS;MLIR_CAPI_LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/bin)
  if(NOT HUMMING_STATIC)
    list(TRANSFORM ARG_MLIR_CAPI_LIBS REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} ${ARG_MLIR_CAPI_LIBS})
  humming_link_llvm(${name} PRIVATE COMPONENTS Support)
  set_property(GLOBAL APPEND PROPERTY HUMMING_TEST_PROGRAMS ${name})
endfunction()

# Installs headers, generated headers, .td files, libraries and the package
# files. A static build installs its tools only: its libraries would hand the
# choice of LLVM's archives on to every consumer.
function(humming_install_package)
  if(HUMMING_STATIC)
    return()
  endif()
  get_property(libraries GLOBAL PROPERTY HUMMING_LIBRARIES)
  if(NOT libraries)
    return()
  endif()
  string(REPLACE ";" " " HUMMING_EXPORTED_LIBRARIES "${libraries}")
  install(TARGETS ${libraries} EXPORT HummingTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
    PATTERN "CMakeFiles" EXCLUDE)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Humming)
  install(EXPORT HummingTargets NAMESPACE Humming:: DESTINATION ${package})
  include(CMakePackageConfigHelpers)
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/modules/HummingConfig.cmake.in
    ${PROJECT_BINARY_DIR}/cmake/HummingConfig.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/cmake/HummingConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/HummingConfig.cmake
                ${PROJECT_BINARY_DIR}/cmake/HummingConfigVersion.cmake
    DESTINATION ${package})
endfunction()
