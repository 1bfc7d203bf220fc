# HUMMING_STATIC: tools that hold all of LLVM and MLIR that they use.
#
# The archives are in the distribution's packages, but two of their CMake
# targets are meant for the shared build: every MLIR archive says that it
# needs `LLVM`, the shared library, and LLVMSupport asks for the shared zstd,
# zlib and z3. humming_setup_static() rewrites those links, in this project's
# view of the imported targets only. Archives that nothing refers to cost
# nothing, so one list of LLVM components serves all.
include_guard(GLOBAL)

macro(humming_setup_static)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(LINKER:--gc-sections -static-libstdc++ -static-libgcc)
  find_library(HUMMING_ZLIB NAMES libz.a REQUIRED)
  find_library(HUMMING_ZSTD NAMES libzstd.a REQUIRED)
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
    "LLVMDemangle;${HUMMING_ZSTD};${HUMMING_ZLIB};dl;m;pthread")
  if(HUMMING_ENABLE_COMPILER)
    humming_setup_static_mlir()
  endif()
endmacro()

# Lets every MLIR archive link LLVM's components in place of libLLVM.so.
function(humming_setup_static_mlir)
  # What MLIR's archives need for the dialects, the passes and NVPTX.
  llvm_map_components_to_libnames(llvm_libs
    Support Core IRReader AsmParser BitReader BitWriter Linker Passes
    IRPrinter TargetParser Target MC Option Remarks FrontendOpenMP
    FrontendOffloading Object BinaryFormat TransformUtils ipo
    NVPTXCodeGen NVPTXDesc NVPTXInfo)
  add_library(HummingStaticLLVM INTERFACE)
  humming_add_absent_backends()
  target_link_libraries(HummingStaticLLVM INTERFACE ${llvm_libs} HummingAbsentBackends)
  get_property(archives GLOBAL PROPERTY MLIR_ALL_LIBS)
  foreach(archive ${archives})
    if(TARGET ${archive})
      get_target_property(links ${archive} INTERFACE_LINK_LIBRARIES)
      if(links)
        list(TRANSFORM links REPLACE "^LLVM$" "HummingStaticLLVM")
        list(TRANSFORM links REPLACE "^[$]<LINK_ONLY:LLVM>$" "HummingStaticLLVM")
        set_target_properties(${archive} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
      endif()
    endif()
  endforeach()
endfunction()

# MLIR's ROCDL target and its translation utilities start every backend that
# LLVM was built with. Here only NVPTX is linked; starting another one does
# nothing, and asking for it later is the usual error "no such target".
function(humming_add_absent_backends)
  set(code "/* Written by CMake: backends that are not linked. */\n")
  foreach(backend ${LLVM_TARGETS_TO_BUILD})
    if(NOT backend STREQUAL "NVPTX")
      foreach(part Target TargetInfo TargetMC AsmPrinter AsmParser Disassembler)
        string(APPEND code "void LLVMInitialize${backend}${part}(void);\n"
          "void LLVMInitialize${backend}${part}(void) {}\n")
      endforeach()
    endif()
  endforeach()
  set(file ${CMAKE_BINARY_DIR}/AbsentBackends.c)
  file(GENERATE OUTPUT ${file} CONTENT "${code}")
  add_library(HummingAbsentBackends STATIC ${file})
endfunction()

# Strips a tool (its symbol table is as large as a third of its code) and links
# it to a fixed address: 1.5 MB less, and no relocations to apply at its start.
# Identical code is not folded: the distribution's archives have lost the
# address significance table that lld's safe mode needs, and MLIR compares
# addresses.
function(humming_finish_static_tool name)
  target_link_options(${name} PRIVATE LINKER:-s -no-pie)
endfunction()
