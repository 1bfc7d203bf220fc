//===- HummingPCH.cpp - Owner of the precompiled header -------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CMake ties a precompiled header to a source file; this is that file.
//
//===----------------------------------------------------------------------===//
