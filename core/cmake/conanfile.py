# SPDX-License-Identifier: Apache-2.0
# A recipe for Conan 2, with the components of CMake and pkg-config:
#   conan create core/cmake -s compiler.cppstd=20
# A store whose option is False is not built, and neither is its client library.
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

# The list of stores lies beside the recipe that Conan keeps.
HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = [os.path.join(HERE, folder, "stores.list") for folder in (".", "../../backends")]
with open(next(path for path in LISTS if os.path.exists(path)), encoding="utf-8") as lines:
    STORES = [line.split()[0] for line in lines if line[0].isalpha()]
# The room, what it needs from others, and how Conan calls that.
ROOMS = {
    "kafka": ("librdkafka/[>=2.0.2]", ["librdkafka::librdkafka"]),
    "postgres": ("libpqxx/[>=6.4]", ["libpqxx::libpqxx"]),
    "redis": ("hiredis/[>=0.14.1]", ["hiredis::hiredis"]),
    "etcd": ("libcurl/[>=7.88]", ["libcurl::libcurl"]),
    "object": ("libcurl/[>=7.88]", ["libcurl::libcurl", "openssl::crypto"]),
    "json": ("nlohmann_json/[>=3.11]", ["nlohmann_json::nlohmann_json"]),
    "prometheuscpp": ("prometheus-cpp/[>=1.0.1]", ["prometheus-cpp::prometheus-cpp-core"]),
    "spdlog": ("spdlog/[>=1.10]", ["spdlog::spdlog"]),
    "gmock": ("gtest/[>=1.12]", ["gtest::gmock"]),
    "http": ("nlohmann_json/[>=3.11]", ["nlohmann_json::nlohmann_json"]),
}
HEADERS_ONLY = ("fence", "gmock", "prometheuscpp", "spdlog")


class Tenure(ConanFile):
    name = "tenure"
    description = "Leader election through the store you already run"
    license = "Apache-2.0"
    topics = ("leader-election", "kafka", "postgresql", "redis", "etcd", "s3")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], **{room: [True, False] for room in ROOMS}}
    default_options = {"shared": False, "fPIC": True, **{room: room in ("kafka", "postgres", "redis") for room in ROOMS}}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "../include/tenure/version.hpp"))
        self.version = re.search(r'define TENURE_VERSION "(.*)"', header).group(1)

    def export(self):
        copy(self, "stores.list", os.path.join(self.recipe_folder, "../../backends"), self.export_folder)

    def export_sources(self):
        for what in ("CMakeLists.txt", "LICENSE", "*.md", "core/*", "backends/*", "adapters/*"):
            copy(self, what, os.path.join(self.recipe_folder, "../.."), self.export_sources_folder, excludes="*build*/*")

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        asked = {}  # two rooms may need one library
        for room, (reference, _) in ROOMS.items():
            if self.options.get_safe(room):
                asked[reference] = asked.get(reference, False) or room in HEADERS_ONLY
        for reference, transitive in asked.items():
            self.requires(reference, transitive_headers=transitive)
        if (self.options.etcd or self.options.object) and not (self.options.json or self.options.http):
            self.requires(ROOMS["json"][0])
        if self.options.object:
            self.requires("openssl/[>=1.1.1]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TENURE_TESTS"] = False
        toolchain.cache_variables["TENURE_EXAMPLES"] = False
        toolchain.cache_variables["TENURE_TOOL"] = "OFF"
        toolchain.cache_variables["TENURE_CONTRACT"] = "OFF"
        for room in ROOMS:
            toolchain.cache_variables["TENURE_" + room.upper()] = "ON" if self.options.get_safe(room) else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for ours in ("lib/cmake", "lib/pkgconfig"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, ours))

    def package_info(self):
        stores = [store for store in STORES if store not in ROOMS or self.options.get_safe(store)]
        others = [room for room in ROOMS if room not in STORES and self.options.get_safe(room)]
        for room in ["core", *stores, "stores", "fence", "prometheus", "testing", *others]:
            component = self.cpp_info.components[room]
            component.set_property("cmake_target_name", "tenure::" + room)
            component.set_property("pkg_config_name", "tenure-" + room)
            component.libs = [] if room in HEADERS_ONLY else ["tenure_" + room]
            component.requires = [] if room == "core" else ["core"]
            if room == "core":
                component.system_libs = ["pthread"]
            if not self.options.shared and room not in (*HEADERS_ONLY, "testing"):
                component.defines = ["TENURE_STATIC_DEFINE" if room == "core" else f"TENURE_{room.upper()}_STATIC_DEFINE"]
            if room == "stores":
                component.requires += stores
            if room == "http":
                component.requires.append("prometheus")
            if room == "gmock":
                component.requires.append("testing")
            if room == "prometheuscpp":
                component.requires.append("prometheus")
            if room in ("etcd", "object"):
                component.requires += ROOMS["json"][1]
            component.requires += ROOMS.get(room, (None, []))[1]
