// SPDX-License-Identifier: Apache-2.0
// The text of the scripts of a group, put together from parts.
#include "group_scripts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tenure::redis {
namespace {

// Tokens, beats and ids are compared as text: Lua's numbers lose bits beyond 2^53. A test asks the server for each
// sha1.
//
// A script that fails keeps what it has written. So each one first reads all three keys: if one holds something else,
// nothing is written.

/// Scripts that share parts are put together at compile time.
template <std::size_t... Sizes>
constexpr auto joined(const char (&... part)[Sizes]) {
  std::array<char, (Sizes + ...) - sizeof...(Sizes)> text{};
  auto to = text.begin();
  ((to = std::copy_n(part, Sizes - 1, to)), ...);
  return text;
}

template <std::size_t Size>
constexpr Script script(const std::array<char, Size>& text, std::string_view sha1) {
  return {{text.data(), text.size()}, sha1};
}

constexpr char basics[] = R"(local S, E, L = KEYS[1], KEYS[2], KEYS[3]
local call, match = redis.call, string.match
local at = 0
local function arg() at = at + 1; return ARGV[at] end
local function args() local out = {}; for i = 1, tonumber(arg()) do out[i] = arg() end; return out end
local time = call('TIME')
local ms = time[1] .. string.format('%03d', math.floor(time[2] / 1000))
call('XLEN', L)
local marker = call('HGET', S, '')
if marker ~= call('HGET', E, '') then marker = false end
if marker and not match(marker, '^1 ') then return redis.error_reply('FORMAT ' .. marker) end
local function more(a, b) return #a > #b or (#a == #b and a > b) end
local function follows_retired()
  local token = match(call('HGET', S, 'next') or '', '^%d+$') or '0'
  return more(token, '4611686018427387904') and '0' or token
end
local function has(list, value) for _, v in ipairs(list) do if v == value then return true end end end
)";

/// `entry`: a beat and '', then an election and '' for each that changed. Returns it as XRANGE does. Every renewal
/// reads the last entry of the log, so a long one is followed by one of the beat alone, whose id is returned. Who may
/// not PUBLISH still elects; the others then see the news with their next renewal.
constexpr char telling[] =
    R"(local function add(entry) return call('XADD', L, 'MAXLEN', '~', '1000', '*', unpack(entry)) end
local function tell(entry)
  local id = add(entry)
  return {#entry > 16 and add({entry[1], ''}) or id, entry}
end
local function push(told, words) redis.pcall('PUBLISH', L, told[1] .. (words or '')) end
)";

/// `news`: the log from the cursor's own entry on, or nothing if that entry is not there any more. `mine`: what was
/// told since. `id`: of the only session that is told. HMGET takes only so many names at once. `whole`: without a log
/// the leads of `only` are told, and not no lead.
constexpr char looking[] = R"(local whole = true
local function news()
  local id, beat = arg(), arg()
  local log = call('XRANGE', L, id, '+')
  return log[1] and log[1][1] == id and log[1][2][1] == beat and log
end
local function changed_in(log)
  local names, seen = {}, {}
  for i = 2, #log do
    local entry = log[i][2]
    for j = 3, #entry, 2 do
      if not seen[entry[j]] then names[#names + 1] = entry[j] end
      seen[entry[j]] = true
    end
  end
  return names
end
local function leads_of(names)
  local out = {}
  for first = 1, #names, 1000 do
    local last = math.min(first + 999, #names)
    local values = call('HMGET', E, unpack(names, first, last))
    for i = first, last do out[#out + 1] = names[i]; out[#out + 1] = values[i - first + 1] end
  end
  return out
end
local function look(log, mine, id, only)
  if not marker then return {ms, '', {}, 1, {}, ''} end
  local sessions = id and {id, call('HGET', S, id)} or call('HGETALL', S)
  if not log and not whole then return {ms, marker, sessions, 0, {}, ''} end
  if log then log[#log + 1] = mine end
  local last = mine or log and log[#log] or call('XREVRANGE', L, '+', '-', 'COUNT', 1)[1]
  return {ms, marker, sessions, log and 0 or 1, leads_of(log and changed_in(log) or only),
    last and last[1] .. ' ' .. last[2][1] or ''}
end
)";

/// If the cursor is not known, no lead is told, or those with these names.
constexpr auto look_text = joined(basics, looking, R"(local log, names = news(), args()
whole = arg() == '1'
return look(log, nil, nil, names))");

/// Some thousand of all leads. Nobody else is served meanwhile. The first page has the sessions, too.
constexpr auto page_text = joined(basics, looking, R"(local at = arg()
local page = marker and call('HSCAN', E, at, 'COUNT', '2000') or {'0', {}}
local found = look(nil, nil, at ~= '0' and '\0', {})
found[5] = page[2]
return {page[1], found})");

constexpr auto open_text =
    joined(basics, telling, looking, R"(local id, beat, session, fresh, names = arg(), arg(), arg(), arg(), args()
local founds, mine = not marker
if founds then
  call('DEL', S, E, L)
  marker = fresh
  call('HSET', S, '', marker)
  call('HSET', E, '', marker)
  mine = tell({beat, ''})
end
local granted = call('HEXISTS', S, id) == 0
if granted then call('HSET', S, id, beat .. ' 0 ' .. ms .. ' ' .. session) end
return {granted and 1 or 0, founds and 1 or 0, look(nil, mine, nil, names)})");

/// A server out of memory refuses no script that has begun to write. So the HDEL, which removes nothing: a session goes
/// on, and only a new one needs memory.
constexpr auto commit_text =
    joined(basics, telling, looking, R"(local expected, id, beat, session, at_least = arg(), arg(), arg(), arg(), arg()
local log = news()
whole = false
local beats, claims, releases, ended = args(), args(), args(), args()
local as_seen = marker and (expected == '' or expected == marker)
local stands, over = match(as_seen and call('HGET', S, id) or '', '^(%d+) ([01]) ')
if over ~= '0' or not has(beats, stands) then return {0, '0', {}, {}, look(log)} end
call('HDEL', S, '\0')
call('HSET', S, id, beat .. ' 0 ' .. ms .. ' ' .. session)

local gone = {[id] = true}
for _, other in ipairs(ended) do
  local session = call('HGET', S, other)
  gone[other] = not session or match(session, '^%d+ 1 ')
end
local least = follows_retired()
local token = more(at_least, ms) and at_least or ms
if more(least, token) then token = least end

local names, sets, entry, claimed, released = {}, {}, {beat, ''}, {}, {}
for i = 1, #claims, 2 do names[#names + 1] = claims[i] end
for i = 1, #releases, 3 do names[#names + 1] = releases[i] end
local leads = #names > 0 and call('HMGET', E, unpack(names)) or {}
local function set(name, lead)
  sets[#sets + 1] = name; sets[#sets + 1] = lead
  entry[#entry + 1] = name; entry[#entry + 1] = ''
end
for i = 1, #claims / 2 do
  local name, expects, lead = claims[2 * i - 1], claims[2 * i], leads[i]
  local has_token, by, free = match(lead or '', '^(%d+) (%d+) ([01]) ')
  if (not lead and (expects == '' or more(least, expects))) or (has_token and has_token == expects and (free == '1' or gone[by])) then
    set(name, token .. ' ' .. id .. ' 0 -')
    claimed[#claimed + 1] = i
  end
end
for i = 1, #releases / 3 do
  local name, of, heir, lead = releases[3 * i - 2], releases[3 * i - 1], releases[3 * i], leads[#claims / 2 + i]
  local ours = of .. ' ' .. id
  local held, rest = match(lead or '', '^(%d+ %d+) 0 %S+(.*)$')
  if held == ours then
    set(name, ours .. ' 1 ' .. heir .. rest)
    released[#released + 1] = i
  end
end
if #sets > 0 then call('HSET', E, unpack(sets)) end
local mine
if #sets > 0 or (not log and call('XLEN', L) == 0) then mine = tell(entry) end
if #released > 0 then
  local only = 3 * released[1]
  push(mine, #released == 1 and ' released ' .. releases[only - 1] .. ' ' .. releases[only] .. ' ' .. releases[only - 2])
end
return {1, token, claimed, released, look(log, mine, id)})");

constexpr auto end_text = joined(basics, telling, R"(local id, beat, beats = arg(), arg(), args()
local session = marker and call('HGET', S, id)
if not session then return {0, 0} end
local stands, over, rest = match(session, '^(%d+) ([01]) %d+(.*)$')
if over == '1' then return {0, 1} end
if over ~= '0' or not has(beats, stands) then return {0, 0} end
call('HDEL', S, '\0')
call('HSET', S, id, beat .. ' 1 ' .. ms .. rest)
push(tell({beat, ''}))
return {1, 1})");

/// A lead of a session that has ended may be claimed by anybody. If nobody takes part in its election any more, the
/// session would be named for ever. So such leads are released, and then the next sweep removes the session. Nobody
/// else is served meanwhile: so a call looks at some thousand leads. `old`: the sessions that had ended when the pass
/// over all leads began, and that none of those seen so far names. Nothing can begin to name them.
constexpr auto sweep_text = joined(basics, telling, R"(local beat, at, old = arg(), arg(), args()
local idle, freed, left, told = {}, {}, {}
if not marker then return {'0', 0, {}} end
local page = {'0', {}}
repeat
  if at ~= '0' then break end
  page = call('HSCAN', S, page[1], 'COUNT', '1000')
  for i = 1, #page[2], 2 do
    if match(page[2][i + 1], '^%d+ 1 %d') then old[#old + 1] = page[2][i] end
  end
until page[1] == '0' or #old >= 5000
if #old == 0 then return {'0', 0, {}} end
for _, id in ipairs(old) do idle[id] = true end
page = call('HSCAN', E, at, 'COUNT', '5000')
for i = 1, #page[2], 2 do
  local token, id, rest = match(page[2][i + 1], '^(%d+) (%d+) 0 %S+(.*)$')
  if id and idle[id] ~= nil then
    idle[id] = false
    freed[#freed + 1] = page[2][i]; freed[#freed + 1] = token .. ' ' .. id .. ' 1 -' .. rest
  end
end
for id, unnamed in pairs(idle) do
  local goes = unnamed and (page[1] ~= '0' or match(call('HGET', S, id) or '', '^%d+ 1 '))
  if goes then left[#left + 1] = id end
end
call('HDEL', S, '\0')
for first = 1, #freed, 1000 do
  local last, entry = math.min(first + 999, #freed), {beat, ''}
  call('HSET', E, unpack(freed, first, last))
  for i = first, last, 2 do entry[#entry + 1] = freed[i]; entry[#entry + 1] = '' end
  told = tell(entry)
end
if told then push(told) end
if page[1] ~= '0' then return {page[1], 0, left} end
for first = 1, #left, 1000 do call('HDEL', S, unpack(left, first, math.min(first + 999, #left))) end
return {'0', #left, {}})");

/// An entry of the log tells what stands, and not what is gone. So all look at everything anew.
constexpr auto retire_text = joined(basics, telling, R"(local leads, names, done, gone = args(), {}, {}, {}
if not marker or #leads == 0 then return {0, {}} end
for i = 1, #leads, 3 do names[#names + 1] = leads[i] end
local least, values = follows_retired(), call('HMGET', E, unpack(names))
for i, name in ipairs(names) do
  local token, by, free = match(values[i] or '', '^(%d+) (%d+) ([01]) ')
  local session = free == '0' and call('HGET', S, by)
  if token == leads[3 * i - 1] and (free == '1' or (session and match(session, '^%d+ 1 '))) then
    done[#done + 1] = i; gone[#gone + 1] = name
    if more(leads[3 * i], least) then least = leads[3 * i] end
  end
end
if #gone > 0 then
  call('HSET', S, 'next', least)
  call('HDEL', E, unpack(gone))
  call('DEL', L)
  tell({'0', ''})
end
return {0, done})");

constexpr auto step_down_lead_text =
    joined(basics, telling, R"(local name, token, request, beat = arg(), arg(), arg(), arg()
local stands = marker and call('HGET', E, name)
local lead, of = match(stands or '', '^((%d+) %d+ [01] %S+)')
if not stands then return {0, 0} end
if of == token then
  call('HSET', E, name, lead .. ' ' .. token .. ' ' .. request)
  push(tell({beat, '', name, ''}))
end
return {0, 1})");

}  // namespace

constinit const Script look_script = script(look_text, "51f8580950219605cc1e7b192483d908f7a71c2b");
constinit const Script page_script = script(page_text, "0f46bc61a31e7c4a9185889af9b909ac1d29ce16");
constinit const Script open_script = script(open_text, "0d8473470983615c8a8409ffe7e040b103ba6295");
constinit const Script commit_script = script(commit_text, "e691ca81af1ab4677f695fc4535fbc76bf1c6395");
constinit const Script end_script = script(end_text, "63af07d38bdca1cfa2469f9ff506a2873beebcb7");
constinit const Script sweep_script = script(sweep_text, "3bd2fe6984284add193361c85bd4e3eff2afb8c2");
constinit const Script retire_script = script(retire_text, "a39b0fc9a8cb7fd80ce5b4594da79d80c72e7a8a");
constinit const Script step_down_lead_script = script(step_down_lead_text, "9a98b826aca8fe91411abcd0ae8b4370b0afd223");

}  // namespace tenure::redis
