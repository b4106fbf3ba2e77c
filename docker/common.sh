# SPDX-License-Identifier: Apache-2.0
# Every script of the repository sources this. It knows where things are, prints messages, installs packages, and starts
# processes so that none of them outlives the script.
# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source it

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The versions of Kafka, newest first. The tests run against each, everything else uses the first.
: "${TENURE_KAFKA_VERSIONS:=4.4.0 3.9.2}"
default_kafka_version=${TENURE_KAFKA_VERSIONS%% *}

# The stores, and those of them that have a server.
all_stores=() all_servers=()
while read -r name _; do
  [[ $name =~ ^[a-z_]+$ ]] || continue
  all_stores+=("$name")
  [[ ! -x $root/docker/$name ]] || all_servers+=("$name")
done <"$root/backends/stores.list"

[[ $0 == */* ]] && self=$(cd "${0%/*}" && pwd) || self=$PWD
self=${self##*/}/${0##*/}
say() { printf '%s: %s\n' "$self" "$*"; }
die() { say "$*" >&2; exit 1; }

# Where downloads are kept: the user's cache, or the repository's own if that cannot be written (or there is no HOME).
cache_dir() {
  local dir
  for dir in "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/tenure}" "${HOME:+$HOME/.cache/tenure}" "$root/.cache"; do
    if [[ -n $dir ]] && mkdir -p "$dir" 2>/dev/null && [[ -w $dir ]]; then
      echo "$dir"
      return
    fi
  done
  die "no cache directory is writable; set XDG_CACHE_HOME to one"
}

# need WHY PACKAGE...: installs what is missing of these Debian packages, and says so.
need() {
  local why=$1 package missing=()
  shift
  for package; do
    is_here "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null ||
    die "missing ($why): ${missing[*]}; these are names of Debian packages, install those of your system"
  local as_root=()
  if ((EUID)); then
    command -v sudo >/dev/null || die "missing ($why): run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n)
  fi
  say "installing ($why): ${missing[*]}"
  local log lock
  # Two of our scripts may want packages at the same time, and apt-get waits for nobody where it updates its lists.
  exec {lock}>"$(cache_dir)/apt-get.lock"
  flock "$lock"
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get -q update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 install "${missing[@]}"
  } >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: ${missing[*]}"
  fi
  exec {lock}>&-
  rm -f "$log"
}

# Asks for what the package provides and not for its name, so that another provider counts.
is_here() {
  case $1 in
    ninja-build) command -v ninja ;;
    default-jre-headless) command -v java ;;
    maven) command -v mvn ;;
    g++ | cmake | pkg-config | clang-format | clang-tidy | shellcheck | git) command -v "$1" ;;
    librdkafka-dev) pkg-config --exists 'rdkafka >= 2.0.2' ;;
    libpqxx-dev) pkg-config --exists 'libpqxx >= 6.4' ;;
    libcurl4-openssl-dev) pkg-config --exists 'libcurl >= 7.88' ;;
    libssl-dev) pkg-config --exists libcrypto ;;
    libhiredis-dev) pkg-config --exists 'hiredis >= 0.14.1' ;;
    redis-tools) [[ -n ${TENURE_REDIS_SERVER:-} ]] || command -v redis-server valkey-server redis-check-rdb ;;
    nlohmann-json3-dev) [[ -e /usr/include/nlohmann/json.hpp ]] || pkg-config --exists nlohmann_json ;;
    python3-jsonschema) /usr/bin/python3 -c 'import jsonschema' ;;
    libcpp-httplib-dev) pkg-config --exists 'cpp-httplib >= 0.11.4' ;;
    chromium-headless-shell) [[ -n ${TENURE_CHROMIUM:-} ]] || command -v chromium-headless-shell chromium ;;
    libspdlog-dev) pkg-config --exists spdlog ;;
    prometheus-cpp-dev) pkg-config --exists prometheus-cpp-core ;;
    libcli11-dev) [[ -e /usr/include/CLI/CLI.hpp ]] || pkg-config --exists CLI11 ;;
    libgtest-dev) [[ -e /usr/include/gtest/gtest.h ]] || pkg-config --exists gtest ;;
    libgmock-dev) [[ -e /usr/include/gmock/gmock.h ]] || pkg-config --exists gmock ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed' ;;
  esac >/dev/null 2>&1
}

build_packages=(g++ cmake ninja-build pkg-config librdkafka-dev libpqxx-dev libhiredis-dev nlohmann-json3-dev libgtest-dev
  libgmock-dev libspdlog-dev libcpp-httplib-dev libcli11-dev libcurl4-openssl-dev libssl-dev prometheus-cpp-dev
  python3-jsonschema python3-prometheus-client)
[[ ${CXX:-} != *clang* ]] || build_packages+=(clang libclang-rt-dev)
kafka_packages=(default-jre-headless maven)
postgres_packages=(postgresql pgbouncer python3-psycopg2) # a client of another kind, for the page of fences
redis_packages=(redis-tools) # the server's program without a service that starts by itself
etcd_packages=(etcd-server etcd-client)
object_packages=(python3-venv) # what comes by pip
tool_packages=(zsh help2man groff-base python3-yaml) # what the tool is tested by
browser_packages=(chromium-headless-shell)

# shellcheck disable=SC2016 # expanded by the inner shell
# build PRESET [-DNAME=VALUE...] [TARGET...]: configures and builds quietly in build_dir; shows the output when it fails.
build() {
  local preset=$1 log settings=() targets=()
  build_dir=$root/build
  [[ $preset == default ]] || build_dir+=-$preset
  log=$build_dir/build.log
  mkdir -p "$build_dir"
  shift
  if command -v ccache >/dev/null; then
    settings=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    # Else it keeps nothing that uses a precompiled header.
    export CCACHE_SLOPPINESS=pch_defines,time_macros${CCACHE_SLOPPINESS:+,$CCACHE_SLOPPINESS}
  fi
  [[ -z ${CXX:-} ]] || settings+=("-DCMAKE_CXX_COMPILER=$CXX") # also where another one was used here before
  while [[ ${1:-} == -D* ]]; do settings+=("$1") && shift; done
  (($#)) && targets=(--target "$@")
  [[ -n ${HOME:-} && -w ${HOME:-} ]] || export CCACHE_DIR=${CCACHE_DIR:-$(cache_dir)/ccache}
  say "building (preset $preset)"
  local began=$SECONDS
  if ! run_guarded bash -c 'cd "$1" && cmake --preset "$2" $3 && cmake --build --preset "$2" "${@:4}"' build \
    "$root" "$preset" "${settings[*]}" "${targets[@]}" >"$log" 2>&1; then
    sed -n '/^FAILED\|Error\|error:/,$p' "$log" | head -n 60 >&2
    say "the whole output is in $log" >&2
    return 1
  fi
  say "built in $((SECONDS - began)) s"
  grep -E '^-- tenure::.* is left out' "$log" || true
}

# A process is known by its id and its start time, because ids are used again. Neither these nor pause start a process,
# so that whoever waits by them goes on where no further one can be started.
identity() { # PID -> "PID START"
  local stat=''
  [[ -n ${quietly:-} ]] || local found
  { IFS= read -rd '' stat <"/proc/$1/stat" || true; } 2>/dev/null
  [[ -n $stat ]] || return 1
  # shellcheck disable=SC2086 # the fields after the command name, which may hold blanks
  set -- "$1" ${stat##*) }
  [[ $2 != Z ]] || return 1
  found="$1 ${21}"
  [[ -n ${quietly:-} ]] || echo "$found"
}
alive() { local quietly=1 found=''; [[ -n ${1:-} ]] && identity "$1" && [[ $found == "$1 $2" ]]; } # PID START
server_alive() { # DIR, where `pid` has the identity of a server
  local known=()
  { read -ra known <"$1/pid"; } 2>/dev/null || true
  alive "${known[@]}"
}
pause() { # SECONDS
  [[ -n ${never:-} ]] || exec {never}<> <(:) # nothing ever comes by it
  read -rt "$1" -u "$never" || true
}

# watch_over DIR PID: starts a watcher, "$0 _watch DIR PID START", which calls watch. When that process is gone, even by
# SIGKILL, the watcher ends what runs in DIR. DIR/starter has the identity of the script that started it. end_watch ends
# the watcher.
watch_over() {
  # shellcheck disable=SC2046 # "PID START" is two words
  setsid "$(realpath "$0")" _watch "$1" $(identity "$2") >/dev/null 2>&1 </dev/null &
  identity $! >"$1/watch"
  disown
}
watch() { # END DIR PID START: END DIR is what ends it
  # Nothing may be left of a temporary directory, and a script that was removing it may have been killed.
  local starter=() here=$2/starter
  [[ ! -e $2/temporary ]] || here=$2
  while [[ -e $here ]]; do
    if ! alive "$3" "$4"; then
      read -ra starter 2>/dev/null <"$2/starter" || true
      ! alive "${starter[@]}" || kill -KILL "${starter[0]}"
      [[ $here != "$2" ]] || touch "$2/temporary" 2>/dev/null || true
      "$1" "$2"
      return
    fi
    pause 0.5
  done
}
end_watch() { # DIR
  local watcher
  read -ra watcher 2>/dev/null <"$1/watch" || return 0
  ! alive "${watcher[@]}" || kill "${watcher[0]}"
}

since() { awk -v began="$1" -v now="$EPOCHREALTIME" 'BEGIN { printf "%.1f", now - began }'; }

# What free ports are chosen from: sets first and last. It lies below the range from which the kernel takes ports for
# outgoing connections, and above the ports that the tests' own servers take (tests/support/port.hpp).
port_range() {
  local low=32768
  [[ ! -r /proc/sys/net/ipv4/ip_local_port_range ]] || read -r low _ </proc/sys/net/ipv4/ip_local_port_range
  first=25000 last=$((low - 1))
  ((last > first + 1000)) || first=10000 last=11000
}

# Prints " PORT PORT... ": those that somebody uses.
used_ports() {
  local port
  printf ' '
  { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } | awk '$1 != "sl" { sub(".*:", "", $2); print $2 }' | sort -u |
    while read -r port; do printf '%d ' "$((16#$port))"; done
}

# Prints the first of SPAN ports in a row on loopback that nobody uses. Each call goes on where the last one ended, whoever
# made it: so a server that is down for a while finds its port free when it starts again.
free_ports() { # SPAN
  local first last port='' used next lock n
  port_range
  next=$(cache_dir) || return
  next+=/next-port
  [[ ! -e $next || -w $next ]] || die "$next: must be writable; remove it"
  exec {lock}>>"$next"
  flock "$lock"
  used=$(used_ports)
  read -r port <"$next" || true
  [[ $port =~ ^[0-9]{4,5}$ ]] || port=$((first + (RANDOM * 32768 + RANDOM) % (last - first)))
  while :; do
    ((port >= first && port + $1 <= last + 1)) || port=$first
    for ((n = $1 - 1; n >= 0; n--)); do [[ "$used " != *" $((port + n)) "* ]] || break; done
    ((n >= 0)) || break
    port=$((port + n + 1))
  done
  echo $((port + $1)) >"$next"
  exec {lock}>&-
  echo "$port"
}
free_port() { free_ports 1; }

# Whether the process itself has the port. A server that is still starting answers nobody, and another may have got there
# first. REQUIRES: it runs as our user.
listens() { # PID PORT
  local socket
  socket=$(awk -v port="$(printf ':%04X$' "$2")" '$4 == "0A" && $2 ~ port { print $10; exit }' /proc/net/tcp)
  [[ -n $socket ]] && find "/proc/$1/fd" -lname "socket:?$socket?" 2>/dev/null | grep -q .
}

# choose_server_user USER: sets server_user, and as_server to the words that run a command as that user. It is USER if
# the package has made it, else nobody. A server should not run as root, and some refuse to.
choose_server_user() {
  server_user=$(id -un)
  as_server=()
  ((EUID == 0)) || return 0
  server_user=nobody
  ! id "$1" >/dev/null 2>&1 || server_user=$1
  as_server=(setpriv "--reuid=$server_user" "--regid=$(id -gn "$server_user")" --init-groups)
}

# temporary_dir NAME: makes a directory for the data of a server, sets dir, and marks it as one to be removed. It is in
# TENURE_SERVER_DATA if that is set, else where temporary files are.
as_server=()
temporary_dir() {
  dir=${TENURE_SERVER_DATA:-${TMPDIR:-/tmp}}
  if ! "${as_server[@]}" test -w "$dir"; then
    [[ -z ${TENURE_SERVER_DATA:-} ]] ||
      die "TENURE_SERVER_DATA=$dir: must be a directory that ${server_user:-$(id -un)} can write to"
    dir=/tmp # the server's user may not enter ours
  fi
  dir=$(mktemp -d "$dir/tenure-$1.XXXXXX")
  touch "$dir/temporary"
}

# run_guarded COMMAND...: runs it in a session of its own and waits for it. Its process group ends when this script
# ends, even by SIGKILL. Ctrl-C reaches only this script, whose trap calls stop_guarded.
guarded=
run_guarded() {
  local status=0 me
  me=$(identity $$)
  # What a script starts in the background has SIGINT ignored, and would hand that on.
  setsid env --default-signal=INT,QUIT "$@" </dev/null &
  guarded=$!
  # shellcheck disable=SC2016,SC2086 # expanded by the inner shell; "PID START" is two words
  setsid bash -c '
    source "$1"; group=$2; shift 2
    while alive "$@" && kill -0 -- "-$group" 2>/dev/null; do pause 0.5; done
    alive "$@" || end_group "$group"' guard "$root/docker/common.sh" "$guarded" $me </dev/null >/dev/null 2>&1 &
  disown
  wait "$guarded" || status=$?
  guarded=
  return "$status"
}
stop_guarded() { [[ -z $guarded ]] || end_group "$guarded"; }

end_group() {
  kill -TERM -- "-$1" 2>/dev/null
  kill -CONT -- "-$1" 2>/dev/null
  for _ in {1..100}; do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$1" 2>/dev/null
}
