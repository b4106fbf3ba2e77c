# SPDX-License-Identifier: Apache-2.0
# A project that takes tenure from Conan, as conan_test builds and runs it: main.cpp is a program of examples/.
import os

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class Uses(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        self.run(os.path.join(self.cpp.build.bindir, "uses"), env="conanrun")
