# SPDX-License-Identifier: Apache-2.0
# The program candidate_broken: the candidate with a copy of the libraries in which each of these rules can be broken.
# broken.cpp says when broken() is true.

# tenure_broken_rule(RULE SOURCE file FROM text TO text)
# SOURCE with FROM, which must stand there once, replaced by TO. There BROKEN is whether this rule is the broken one.
function(tenure_broken_rule rule)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;FROM;TO" "")
  string(MAKE_C_IDENTIFIER ${arg_SOURCE} source)
  get_property(text GLOBAL PROPERTY tenure_broken_${source})
  if(NOT text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_SOURCE})
    file(READ ${PROJECT_SOURCE_DIR}/${arg_SOURCE} text)
  endif()
  string(REPLACE BROKEN "tenure::test::broken(\"${rule}\")" to "${arg_TO}")
  string(REPLACE "${arg_FROM}" "${to}" broken "${text}")
  string(REPLACE "${arg_FROM}" "" without "${text}")
  string(LENGTH "${text}" length)
  string(LENGTH "${without}" length_without)
  string(LENGTH "${arg_FROM}" length_from)
  math(EXPR removed "${length} - ${length_without}")
  if(NOT removed EQUAL length_from)
    message(FATAL_ERROR "tenure_broken_rule(${rule}): ${arg_SOURCE} must have this once: ${arg_FROM}")
  endif()
  set_property(GLOBAL PROPERTY tenure_broken_${source} "${broken}")
  string(TOLOWER candidate_${rule} name)
  set_property(GLOBAL APPEND PROPERTY tenure_broken_names ${name})
  target_compile_definitions(tenure_broken_candidates INTERFACE
    TENURE_CANDIDATE_${rule}="${CMAKE_CURRENT_BINARY_DIR}/${name}")
endfunction()

# tenure_broken_room(ROOM folder): all sources of this room, with what the rules above replaced in them.
function(tenure_broken_room room folder)
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/src/*.cpp)
  set(files)
  foreach(source IN LISTS sources)
    string(MAKE_C_IDENTIFIER ${source} identifier)
    get_property(text GLOBAL PROPERTY tenure_broken_${identifier})
    set(file ${PROJECT_SOURCE_DIR}/${source})
    if(text)
      set(file ${CMAKE_CURRENT_BINARY_DIR}/broken/${identifier}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "@text@" @ONLY)
      list(APPEND replaced ${source})
    endif()
    list(APPEND files ${file})
  endforeach()
  if(NOT replaced)
    message(FATAL_ERROR "no rule of ${room} is broken")
  endif()
  add_library(tenure_broken_${room} OBJECT ${files})
  target_link_libraries(tenure_broken_${room} PRIVATE tenure::${room}_internals)
  target_compile_options(tenure_broken_${room} PRIVATE -O1 -include ${CMAKE_CURRENT_SOURCE_DIR}/broken.hpp)
  set_target_properties(tenure_broken_${room} PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_link_libraries(candidate_broken PRIVATE tenure_broken_${room})
endfunction()

tenure_broken_rule(NO_LEASE SOURCE core/src/lock_table/lock_table_decisions.cpp
  FROM "if (!sighting_) return" TO "if (!sighting_ || BROKEN) return")
tenure_broken_rule(NO_RISE SOURCE core/src/lock_table/lock_table_decisions.cpp
  FROM "return Token{least};" TO "return Token{BROKEN ? 1 : least};")
tenure_broken_rule(FROM_ANSWER SOURCE core/src/election/candidacy.cpp
  FROM "t.lease.extend(asked);" TO "t.lease.extend(BROKEN ? boot_clock().now() : asked);")
tenure_broken_rule(MANY_NO_WAIT SOURCE core/src/group/rivals.cpp
  FROM "rival.bound.end(longest);" TO "BROKEN ? at + longest / 2 : rival.bound.end(longest);")
tenure_broken_rule(MANY_LATE SOURCE core/src/group/group_candidacy.cpp
  FROM "own_->lease.extend(asked);" TO "own_->lease.extend(BROKEN ? asked + 3 * timing_.term : asked);")
tenure_broken_rule(MANY_TWICE SOURCE core/src/group/group_candidacy.cpp
  FROM "tenure.end_voluntarily(emitter(), election, reason, std::move(detail), now + timing_.drain, bounds_of(tenure).end);"
  TO "tenure.end_voluntarily(emitter(), election, reason, detail, now + timing_.drain, bounds_of(tenure).end);
  if (BROKEN) emit(effects_.back());")
tenure_broken_rule(NO_LOCK SOURCE backends/file/src/store.cpp
  FROM "written_in == file.id() && *free" TO "(BROKEN || (written_in == file.id() && *free))")
# Linked before the archives, each room takes the place of its sound twin.
tenure_test_program(candidate_broken SOURCES broken.cpp LINK tenure_test_candidate)
tenure_broken_room(core core)
tenure_broken_room(file backends/file)
if(TARGET tenure::kafka)
  tenure_broken_rule(NO_WAIT SOURCE backends/kafka/src/record_view.cpp
    FROM "return free() ? doubted_until_" TO "return free() || BROKEN ? at_once")
  tenure_broken_rule(NO_DRAIN SOURCE backends/kafka/src/neli.cpp
    FROM "if (member_.drained()) emit("
    TO "if (member_.drained() || (BROKEN && std::exchange(member_->drain_by, std::nullopt))) emit(")
  tenure_broken_rule(COMMITS_LATE SOURCE backends/kafka/src/neli.cpp
    FROM "if (!owner()) return reply_when_late(" TO "if (!owner() && !BROKEN) return reply_when_late(")
  tenure_broken_rule(ROLES_NO_DRAIN SOURCE backends/kafka/src/role_machine.cpp
    FROM "if (member_ && member_.drained()) emit("
    TO "if (member_ && (member_.drained() || (BROKEN && std::exchange(member_->drain_by, std::nullopt)))) emit(")
  tenure_broken_rule(ROLES_COMMIT_LATE SOURCE backends/kafka/src/role_machine.cpp
    FROM "member_.lose_place(revoked.lost, now_);"
    TO "member_.lose_place(revoked.lost, now_);
  if (BROKEN) member_->assigned = true;")
  tenure_broken_room(kafka backends/kafka)
endif()

get_property(names GLOBAL PROPERTY tenure_broken_names)
foreach(name IN LISTS names)
  add_custom_command(TARGET candidate_broken POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E create_symlink candidate_broken ${name})
endforeach()
add_dependencies(tenure_broken_candidates candidate_broken)
