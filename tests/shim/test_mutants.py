"""Each rule of the shim that keeps memory safe, removed: one of the shim's tests must fail."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SHIM = Path(__file__).parent.parent.parent / "shim"
MUTANTS = [
    ("simulation", "judge.cpp", " && before < kMeasureInAllNs", ""),
    ("safety", "safety.cpp", "if (open[i].claim - open[i].held > available) return false;", ""),
    ("safety", "safety.cpp", "    available = available + open[i].held - open[i].residue;", ""),
    ("safety", "safety.cpp", " - open[i].residue;", ";"),
    ("safety", "safety.cpp", "if (a_gives != b_gives) return a_gives;", ""),
    ("safety", "safety.cpp", "a.claim - a.held < b.claim - b.held", "a.claim < b.claim"),
    ("safety", "safety.cpp", "a.claim - a.residue > b.claim - b.residue", "a.claim > b.claim"),
    ("pool", "fences.cpp", "device_->make_wait(waiter, e.second);", ""),
    ("cuda_captures", "fences.cpp", "  if (captured) return;\n", ""),
    (
        "cuda_captures",
        "fences.cpp",
        "if (!waits && device_->capturing(waiter))",
        "if (false)",
    ),
    ("cuda_captures", "fences.cpp", "  if (captured) finish_before_capture(a, stream);\n", ""),
    (
        "cuda_captures",
        "fences.cpp",
        "  if (asynchronous_ && device_->capturing(stream)) device_->abandon_capture(stream);\n",
        "",
    ),
    (
        "cuda_elsewhere",
        "runtime.cpp",
        "    if (account_of(stream) == account) governor_.fences()",
        "    governor_.fences()",
    ),
    ("cuda_elsewhere", "runtime.cpp", "if (account_of(stream) == account)\n", "if (true)\n"),
    ("forks", "forks.cpp", " || forks_ == 0 ||", " ||"),
    ("forks", "waits.cpp", " && !w.no_wait);", ");"),
    ("iteration_kinds", "curve.cpp", "return note_beyond(static_cast<uint32_t>(held_pages));", "return;"),
    ("sleepers", "rests.cpp", "  if (computes_outside(a)) a.computed_ns = now;\n", ""),
    ("sleepers", "judge.cpp", "std::max(o.moved_ns, since_ns) + patience", "UINT64_MAX"),
    ("sleepers", "waits.cpp", "return waited - std::min(waited, idle);", "return waited;"),
    ("sleepers", "copying_out.cpp", "last = std::min(last + ns, now);", ";"),
    ("pool", "pool.cpp", "if (!passed(p)) fences_->finish(p.user, p.batch);", ""),
    ("governor", "judge.cpp", "if (room && safe_after(a, n, 0, limit))", "if (safe_after(a, n, 0, limit))"),
    ("clauses", "judge.cpp", "{room ? kClaims : kResidues,", "{kClaims,"),
    (
        "governor",
        "judge.cpp",
        "if (others_measured(a) && patient) return",
        "if (false) return",
    ),
    (
        "governor",
        "judge.cpp",
        "if (o.open ? o.alone : between) return true;",
        "if (o.open && o.alone) return true;",
    ),
    ("simulation", "judge.cpp", "a.curve.known() ? a.curve.claim(0) : 0);\n  for", "uint64_t{0});\n  for"),
    ("simulation", "judge.cpp", "? std::min(held, a.curve.residue()) : held", "? held : held"),
    ("simulation", "simulation.cpp", "if (a.in_iteration) a.recorder", "a.recorder"),
    ("governor", "governor.cpp", "  resolve_wedge();\n  make_way", "  make_way"),
    ("iteration_kinds", "iteration_kinds.cpp", "known->second.seen >= kSeenOften && ", ""),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "known->second.kinds |= Set{1} << found;",
        "known->second.kinds = Set{1} << found;",
    ),
    ("iteration_kinds", "iteration_kinds.cpp", "  may_be_ = 0;\n}\n\ntemplate", "}\n\ntemplate"),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        " && difference(r, kinds_[best].curve) <= kSlackPages + most / kAlike",
        "",
    ),
    ("iteration_kinds", "iteration_kinds.cpp", "return as_long(", "return true || as_long("),
    ("iteration_kinds", "iteration_kinds.cpp", "if (batch && std::ranges", "if (false && std::ranges"),
    ("governor", "waits.cpp", ".no_wait = no_wait, ", ""),
    ("simulation", "openings.cpp", "if (by_forecast && !forecast_fits(a, self))", "if (false)"),
    (
        "simulation",
        "openings.cpp",
        "if (self && self->misfit == now) return false;",
        "if (self && self->misfit) return false;",
    ),
    ("simulation", "openings.cpp", "if (turns && has_quanta(order) && keeps_turn(a)) continue;", ""),
    (
        "simulation",
        "openings.cpp",
        "if (has_quanta(order) && take_turns(a, last) && keeps_turn(last))",
        "if (false)",
    ),
    (
        "simulation",
        "openings.cpp",
        " && o.opening > a.opening && take_turns(a, o)",
        " && o.opening > a.opening",
    ),
    ("simulation", "openings.cpp", " && o.opening > a.opening && take_turns(a, o)", " && take_turns(a, o)"),
    (
        "simulation",
        "openings.cpp",
        "return !take_turns(a, newcomer) && std::ranges",
        "return false && std::ranges",
    ),
    ("simulation", "openings.cpp", "== 0 || waits_for_turn_of_another(o, a)))", "== 0))"),
    (
        "simulation",
        "openings.cpp",
        "return o.open && !o.saved && o.id != a.id && o.id",
        "return o.id != a.id && o.id",
    ),
    ("simulation", "openings.cpp", "if (order < 0) return {kBehind, last.id};", ""),
    ("simulation", "openings.cpp", "return order == 0 || order_ == Order::kFair;", "return order == 0;"),
    ("simulation", "openings.cpp", "starts_apart(a, b) && starts_apart(b, a)", "starts_apart(a, b)"),
    ("simulation", "waits.cpp", "plan_look(*w, shut);", ""),
    ("simulation", "planned_looks.cpp", "w.plans = shut.why == kShift && w.first;", "w.plans = w.first;"),
    ("simulation", "planned_looks.cpp", " && w.look_ns > now", ""),
    ("simulation", "planned_looks.cpp", "same ? std::min(2 * w.in_vain, kMostNs) : ", ""),
    ("simulation", "planned_looks.cpp", "w->plans && !", "!"),
    ("simulation", "waits.cpp", " && w->look_ns <= now_ns()) w->misfit = 0;", ");"),
    ("simulation", "planned_looks.cpp", "w.planned_for == beside", "true"),
    ("simulation", "openings.cpp", "at_least = std::max(at_least, permit_wait(a, o));", ""),
    ("simulation", "openings.cpp", "if (p.by_forecast) by_forecast = o.id;", ""),
    ("simulation", "openings.cpp", "if (at_least > 0 && !by_forecast) return at_least;", ""),
    ("simulation", "doors.cpp", ".permit[p.after] = p.permit;", ".permit[p.after] = p.permit, pump();"),
    ("simulation", "waits.cpp", "if (opens && for_permits)", "if (opens)"),
    ("governor", "planned_looks.cpp", "if (w.look_ns < looks_at_ns_) looks_changed_.notify_all();", ""),
    ("simulation", "openings.cpp", "if (order_ == Order::kRanked && order < 0) return {kBehind, o.id};", ""),
    (
        "simulation",
        "charges.cpp",
        "a.granted += std::max(pages_beyond(held, residue), least) * seconds;",
        "",
    ),
    (
        "simulation",
        "charges.cpp",
        "std::max(pages_beyond(held, residue), least)",
        "pages_beyond(held, residue)",
    ),
    ("simulation", "openings.cpp", "uint64_t now = room + ", "uint64_t now = "),
    ("simulation", "doors.cpp", "if (a.opening == 0) a.granted = least_granted(a);", ""),
    ("simulation", "openings.cpp", "o.curve.known() && o.opening > 0 &&", "o.curve.known() &&"),
    ("simulation", "openings.cpp", "if (!o.at_door()) return false;", ""),
    ("simulation", "openings.cpp", "now > marked + kLingersNs && ", ""),
    ("simulation", "openings.cpp", "others + a.curve.claim(0) + headroom_ <= planned_budget()", "true"),
    (
        "simulation",
        "openings.cpp",
        "o.recorder.ordinal() < p.made && !lingers(o, a)",
        "o.recorder.ordinal() < p.made",
    ),
    ("simulation", "openings.cpp", "o.id != a.id && !lingers(o, a)", "o.id != a.id"),
    (
        "simulation",
        "governor.cpp",
        "a.overrun_here > most || (a.distrusted > 0 && !within)",
        "a.overrun_here > most",
    ),
    ("simulation", "governor.cpp", "if (a.id && !a.ended) most", "if (a.id) most"),
    ("simulation", "wedges.cpp", "over && a.open && a.trusted()", "a.open && a.trusted()"),
    ("forks", "forks.cpp", " || rests_for_fork(a)) continue;", ") continue;"),
    ("forks", "forks.cpp", "a.rests_in_libraries ? is_asleep(a, kWillSleepOnNs) : ", ""),
    ("forks", "forks.cpp", "a.rests_in_libraries ? ", "true ? "),
    ("forks", "forks.cpp", "  if (a.threads == 0) return false;", ""),
    ("forks", "rests.cpp", "  if (!parked_by_another(accounts_[id])) return;", "  return;"),
    ("forks", "rests.cpp", "bool held = rest == Rest::kInPython;", "bool held = false;"),
    ("forks", "rests.cpp", "bool held = rest == Rest::kInPython;", "bool held = true;"),
    ("forks", "rests.cpp", "return parked_by_another(a) && !a.cancelled && ", "return !a.cancelled && "),
    ("forks", "rests.cpp", " && !a.cancelled && stands_still(a);", " && !a.cancelled;"),
    ("forks", "rests.cpp", "rest != Rest::kInPython || hold_for_fork(a, lock);", "true;"),
    ("forks", "forks.cpp", " && !a.saved && !a.at_door();", " && !a.saved;"),
    ("forks", "forks.cpp", "parked_in_vain_ ? all_stand() : ", ""),
    ("forks", "rests.cpp", "lock, longest_hold,", "lock, std::chrono::hours(1),"),
    ("forks", "forks.cpp", "  if (w.pauses && a.memory_waits++ == 0) a", "  if (w.pauses) a"),
    ("forks", "forks.cpp", "ForkWait w{now_ns(), stands_still(a),", "ForkWait w{now_ns(), true,"),
    ("forks", "forks.cpp", "strictly && !stands_still(a) ? a.fork_waits : 0", "0"),
    ("forks", "forks.cpp", " || unpark_at_ns_) && !a.away;", ") && !a.away;"),
    ("forks", "forks.cpp", "now + static_cast<uint64_t>(between_forks.count());", "now;"),
    ("forks", "forks.cpp", "now - parked_since_ns_ >= ", "0 > "),
    ("forks", "doors.cpp", "  if (parked_for_ == a.id && unpark_at_ns_) end_park();", ""),
    ("forks", "governor.cpp", "  unpark_if_due(now_ns());\n", ""),
    ("forks", "openings.cpp", "  if (parked_by_another(a)) return", "  if (false) return"),
    ("iteration_kinds", "iteration_kinds.cpp", " && (started_processes_ + 1) * kRarely <= ended_", ""),
    ("iteration_kinds", "iteration_kinds.cpp", "std::max(kErrandTimes * usual, kErrandNs)", "kErrandNs"),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "std::max(kErrandTimes * usual, kErrandNs)",
        "kErrandTimes * usual",
    ),
    ("iteration_kinds", "iteration_kinds.cpp", "errand && began_process ? 0 : ", ""),
    ("forks", "forks.cpp", "  a.started_process = true;\n", ""),
    ("forks", "doors.cpp", "  a.started_process = false;\n", ""),
    ("forks", "iteration_kinds.cpp", "std::min(1.0, part) + errand", "std::min(1.0, part)"),
    ("forks", "progress.cpp", "marked > opened_ns ?", "false ?"),
    ("forks", "governor.cpp", "held, time_ns, profiled_one", "held, times.duration_ns, profiled_one"),
    ("iteration_kinds", "iteration_kinds.cpp", " && here * kUsualShare >= since", ""),
    ("iteration_kinds", "iteration_kinds.cpp", "here >= kUsualFrom && ", ""),
    ("iteration_kinds", "iteration_kinds.cpp", "kind.batch || (!", "(!"),
    ("iteration_kinds", "iteration_kinds.cpp", "kind.batch || (!kind.usual && !was)", "kind.batch || !was"),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "kind.batch || (!kind.usual && !was)",
        "kind.batch || !kind.usual",
    ),
    ("forks", "rests.cpp", "now_ns() >= a.moved_ns + for_ns", "false"),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "else if (!came_lately(measure_) && last_ < count())",
        "else if (false)",
    ),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "kinds_[found].weight = by.weight * longer;",
        "kinds_[found].weight = longer;",
    ),
    ("governor", "openings.cpp", "if (Shut shut = shut_by_others_waiting(a, self)) return shut;", ""),
    ("governor", "openings.cpp", "!others_live(a) || fits_beside_residues(a, 0)", "true"),
    ("governor", "openings.cpp", " || !has_place_now(*w)) continue", ") continue"),
    ("clauses", "waits.cpp", "  ++moment_;\n", ""),
    ("governor", "openings.cpp", "o.recorder.ordinal() < p.made", "false"),
    ("governor", "openings.cpp", "if (!a.trusted()) return {kMeasured, largest_other(a)};", ""),
    ("governor", "waits.cpp", "bool opens = a.at_door();", "bool opens = true;"),
    ("governor", "doors.cpp", "!a.at_door() ||", "a.stop.exchange(Stop::kNowhere) != Stop::kHere ||"),
    (
        "evaluation",
        "evaluation.cpp",
        "batches_ > 0 && (in_a_row_ < kRow || batches_ > kFewBatches);",
        "false;",
    ),
    ("evaluation", "evaluation.cpp", "batches_ > 0 && (in_a_row_", "batches_ > 0 && (true || in_a_row_"),
    ("evaluation", "evaluation.cpp", "(in_a_row_ < kRow || batches_ > kFewBatches)", "(in_a_row_ < kRow)"),
    ("evaluation", "evaluation.cpp", "  if (!may_end_) return;", ""),
    ("evaluation", "evaluation.cpp", "std::min(prelude_, allocations)", "std::max(prelude_, allocations)"),
    ("evaluation", "evaluation.cpp", " - prelude_ / kForgets", ""),
    ("evaluation", "evaluation.cpp", "2 * prelude_ + kFew", "kFew"),
    ("evaluation", "evaluation.cpp", " || preludes_ < kLeastPreludes", ""),
    ("evaluation", "evaluation.cpp", "!may_end_ || ended_ ||", "ended_ ||"),
    ("evaluation", "evaluation.cpp", "if (!keeps_little) return false;", ""),
    ("evaluation", "evaluation.cpp", "  before_ = at;\n  low_ = live;\n", "  before_ = at;\n"),
    ("evaluation", "evaluation.cpp", "lost = at >= lost_from_", "lost = false"),
    ("evaluation", "evaluation.cpp", "still ? kFew : ", ""),
    ("evaluation", "evaluation.cpp", "  bool fell = !is_low_;\n", "  bool fell = true;\n"),
    ("evaluation", "doors.cpp", "if (a.captures.load()) return false;", ""),
    ("evaluation", "doors.cpp", "= a.held <= a.little", "= true"),
    ("evaluation", "governor.cpp", "if (batch) held = a.curve.residue();", ""),
    ("evaluation", "governor.cpp", "batch ? a.curve.cover(a.recorder) : ", ""),
    ("evaluation", "doors.cpp", "batch ? kBatches : kIterations", "kIterations"),
    ("evaluation", "doors.cpp", "policy_ != Policy::kUnmanaged && a.trusted()", "true"),
    (
        "copying",
        "rests.cpp",
        "return a.threads == a.waiting_threads + a.resting && a.tasks == 0;",
        "return true;",
    ),
    ("copying", "rests.cpp", "a.waiting_threads + a.resting", "a.waiting_threads"),
    ("copying", "waits.cpp", "  a.threads += more;\n", ""),
    ("copying", "waits.cpp", "  a.threads -= more;\n", ""),
    ("forks", "forks.cpp", "  a.threads += !entered;\n", ""),
    ("forks", "forks.cpp", "  a.threads -= !entered;\n", ""),
    (
        "forks",
        "forks.cpp",
        "if (a.open && !(entered && now_ns() >= stops_within_from_ns_)) return;",
        "if (a.open) return;",
    ),
    ("forks", "forks.cpp", "(entered && now_ns() >= stops_within_from_ns_)", "entered"),
    (
        "forks",
        "forks.cpp",
        "(entered && now_ns() >= stops_within_from_ns_)",
        "(now_ns() >= stops_within_from_ns_)",
    ),
    ("forks", "forks.cpp", "  if (!parked_for_) parked", "  if (parked_for_ != id) parked"),
    ("forks", "forks.cpp", "waiting_threads -= std::exchange(accounts_[id].stopped, 0);", "stopped = 0;"),
    ("forks", "forks.cpp", "  end_pause(a, w);\n  --a", "  --a.memory_waits;\n  --a"),
    ("copying", "rests.cpp", "  if (!a.away && ", "  if (true || "),
    ("copying", "rests.cpp", "parked_changed_.wait(lock, [&] { return !a.away && !a.abandoned; });", ""),
    ("copying", "rests.cpp", "  a.away = false;\n", ""),
    ("copying", "rests.cpp", " && a.tasks == 0", ""),
    ("copying", "governor.cpp", "  change_places();\n", ""),
    (
        "copying",
        "copying_out.cpp",
        "parked_changed_.wait(again, [&] { return !a.saved && !a.abandoned; });",
        "",
    ),
    ("copying", "rests.cpp", "return a.saved && !a.abandoned && a.woken", "return a.saved && a.woken"),
    ("copying", "stranded.cpp", "  std::erase_if(memory_waiters_, of_it);\n", ""),
    ("copying", "stranded.cpp", " && kept_by_nobody_here() + all > budget_", ""),
    ("copying", "stranded.cpp", "      a.stranded_since_ns = 0;", "      ;"),
    ("copying", "copying_out.cpp", "  held_ -= n;\n  last_free_ns_", "  last_free_ns_"),
    (
        "copying",
        "pool.cpp",
        "    device_->forget(address(p), page_bytes_);\n    page = {.use = Use::kReserved};\n",
        "",
    ),
    ("copying", "openings.cpp", "if (Shut shut = shut_by_memory_waiters(true)) return shut;", ""),
    ("aside", "openings.cpp", "if (stands_aside(a)) return {kSetAside, largest_other(a)};", ""),
    ("aside", "judge.cpp", "  if (w.pages == 0 && stands_aside(a)) return false;\n", ""),
    ("aside", "copying_out.cpp", "  if (stands_aside(a)) return false;\n  if (!a.open)", "  if (!a.open)"),
    ("aside", "copying_out.cpp", "a.open || std::ranges::none_of(memory_waiters_, waits_here)", "a.open"),
    ("sleepers", "copying_out.cpp", "(o->pages && !accounts_[o->id].open) || would", "would"),
    ("copying", "copying_out.cpp", "w->id != a.id && !accounts_[w->id].saved;", "true;"),
    ("copying", "copying_out.cpp", "(a.open || !others_open(a)) && held_", "held_"),
    ("copying", "copying_out.cpp", "(a.open || !others_open(a)) && held_", "a.open && held_"),
    (
        "copying",
        "copying_out.cpp",
        "return can_leave(accounts_[w.id]); }",
        "return w.pages == 0 && can_leave(accounts_[w.id]); }",
    ),
    ("aside", "aside.cpp", "o.curve.known() && ", ""),
    ("aside", "aside.cpp", " && !is_told_to_stand_aside(o)", ""),
    ("aside", "governor.cpp", "  send_aside();\n", ""),
    ("aside", "budget.cpp", " && !stands_aside(a)", ""),
    ("aside", "rests.cpp", "aside_ &= ~(uint64_t{1} << away);", ""),
    ("governor", "budget.cpp", "wanted_budget_ < budget_ && !cut_fits()", "false"),
    ("forks", "forks.cpp", "    begun = begin_fork_wait(a);\n    return", "    return"),
    ("governor", "openings.cpp", "budget = planned_budget(), reserve", "budget = budget_, reserve"),
    ("governor", "budget.cpp", "  pool_.set_budget(budget_);\n", ""),
    ("heap", "placing.cpp", "if (persistent && others) place.cost += kPinnedPage;", ""),
    ("heap", "placing.cpp", "persistent = persistent && !frugal;", ""),
    ("heap", "placing.cpp", "++looked_at == kCandidates && !frugal", "++looked_at == kCandidates"),
    ("heap", "placing.cpp", "        drop_slack();\n", ""),
    ("heap", "heap.cpp", "    drop_slack();\n", ""),
    ("heap", "placing.cpp", "    place.cost += (end - begin) * kNewPage;\n", ""),
    ("heap", "placing.cpp", "    if (spare) add_missing(spare_page_ + 1, to);\n", ""),
    ("heap", "placing.cpp", "spare ? spare_page_ : to);", "to);"),
    ("heap", "placing.cpp", "  if (to > from) add_page(to);\n", ""),
    (
        "cuda_arenas",
        "placing.cpp",
        "  if (arena_) {\n    for (uint32_t p",
        "  if (false) {\n    for (uint32_t p",
    ),
    ("heap", "placing.cpp", "  if (ended()) {", "  if (false) {"),
    ("heap", "heap.cpp", "  if (ended()) delete_unused();\n", ""),
    ("heap", "regions.cpp", "last = to > from ? is_left(r->pages[to]) : first;", "last = first;"),
    ("heap", "regions.cpp", "  if (to > from) add(r->pages[to]);\n", ""),
    ("heap", "regions.cpp", "    page.held = true;\n", ""),
    ("heap", "regions.cpp", "{1, b->persistent, true};", "{1, false, true};"),
    ("heap", "kinds.cpp", "&& table->made[ordinal].bytes == bytes", ""),
    ("heap", "trace.cpp", "made_[place[it->second]].persistent = false;", ""),
    ("pool", "device_work.cpp", "std::max(known->batch, batch);", "known->batch;"),
    ("pool", "fences.cpp", "for (Stream s : a.streams) record", "if (Stream s = a.streams[0]) record"),
    ("pool", "fences.cpp", "if (a.open.load(std::memory_order_relaxed) <= batch) close_early(a);", ""),
    ("cuda_programs", "device_work.cpp", "a.device_waits += fences_.wait(stream, account, batch, id);", ";"),
    (
        "cuda_programs",
        "device_work.cpp",
        "a.cpu_waits += fences_.finish(account, batch);\n  work",
        ";\n  work",
    ),
    ("cuda_programs", "fences.cpp", "std::ranges::for_each(a.removed, wait_for);\n", ""),
    ("cuda_programs", "fences.cpp", "  if (!a.removed.empty()) return;\n", ""),
    ("cuda_arenas", "arenas.cpp", "  drop_empty();  // slabs: others may come to lie there\n", ""),
    ("cuda_arenas", "arenas.cpp", "  extents_.erase(span->first);\n", ""),
    ("cuda_arenas", "arenas.cpp", "    kept_extents_.erase(it);\n", ""),
    ("cuda_arenas", "arenas.cpp", "use_of(at(b.address)) != GS_USED;", "false;"),
    ("cuda_arenas", "arenas.cpp", "    reclaim(governor_, a, false);\n", ""),
    ("cuda_arenas", "arenas.cpp", "    finish_in_arenas(governor_, a);\n", ""),
    ("cuda_arenas", "foreign.cpp", "if (!block->waits || !block->span->heap->is_arena()) ", ""),
    ("cuda_saving", "saving.cpp", " || !device_->can_copy_out(pages.size() * page_bytes_)", ""),
    ("cuda_elsewhere", "foreign.cpp", "  counts_.heap_ended |= ended();\n", ""),
    ("cuda_elsewhere", "foreign.cpp", "block->span->heap->ended() || fences", "fences"),
    (
        "cuda_elsewhere",
        "foreign.cpp",
        "    else if (!look_at_all)\n      return;\n",
        "    else\n      return;\n",
    ),
    (
        "cuda_arenas",
        "foreign.cpp",
        "!still_there(a, all.front())) all.pop_front();",
        "true) all.pop_front();",
    ),
    ("cuda_arenas", "foreign.cpp", "  finish_in_arenas(*governor_, counts_);\n", ""),
    ("cuda_arenas", "arenas.cpp", "  if (a.captures.load(std::memory_order_relaxed))\n", "  if (false)\n"),
    ("cuda_arenas", "heap.cpp", "  if (counts_.captures.load(std::memory_order_relaxed)) return;\n", ""),
    ("cuda_arenas", "runtime.cpp", "  if (governor_.account(account).captures.load()) {", "  if (false) {"),
    ("cuda_arenas", "runtime.cpp", "while (before && !captures", "while (!captures"),
    ("cuda_arenas", "runtime.cpp", "  for (uint32_t arena : late) end_arena(account, arena);\n", ""),
    ("cuda_arenas", "placing.cpp", "if (place.missing.count) throw", "if (!place.missing.count) throw"),
    ("cuda_arenas", "slabs.cpp", "  std::iter_swap(free, room - 1);\n", ""),
    ("cuda_stress", "foreign.cpp", " || it->second.freed != freed.batch) return {};", ") return {};"),
    (
        "cuda_programs",
        "fences.cpp",
        "for (Stream s : a.streams) record",
        "if (Stream s = a.streams[0]) record",
    ),
    ("cuda_programs", "fences.cpp", "c.batch >= batch;", "c.batch >= batch - 1;"),
    ("cuda_programs", "fences.cpp", "known->second >= batch) return 0;", "true) return 0;"),
    (
        "cuda_programs",
        "foreign.cpp",
        "if (!block_at(address, span).bytes) return false;",
        "return block_at(address, span).bytes > 0;",
    ),
    ("cuda_programs", "foreign.cpp", "a.device_waits += governor.fences().wait(s, a.id, latest, a.id);", ";"),
    ("cuda_programs", "runtime.cpp", "  governor_.fences().add_stream(heap->account(), stream);\n", ""),
    ("cuda_programs", "runtime.cpp", "  governor_.fences().remove_stream(stream);\n", ""),
    ("cuda_programs", "device_work.cpp", "std::max(known->batch, batch);", "known->batch;"),
    (
        "clauses",
        "judge.cpp",
        "o.live_job() && !o.saved && !o.curve.known()",
        "o.live_job() && !o.curve.known()",
    ),
    ("copying", "judge.cpp", "(to_those_here || sleeps_away(o))", "sleeps_away(o)"),
    ("sleepers", "rests.cpp", "a.woken > 0 && ", "a.saved && "),
    ("sleepers", "rests.cpp", "if (moved || a.moved_ns", "if (a.moved_ns"),
    ("sleepers", "rests.cpp", "if (at_an_end && std::ranges::any_of(accounts(), goes_on))", "if (false)"),
    ("sleepers", "rests.cpp", "  pause(a, now_ns());\n", ""),
    ("sleepers", "rests.cpp", "w.pages == 0 || (waiting.open && !w.no_wait)", "w.pages == 0"),
    ("sleepers", "rests.cpp", "w.no_wait                      ? kAsleepForALockNs", "w.no_wait ? kAsleepNs"),
    ("copying", "copying_out.cpp", "return w->id == a.id && w->no_wait;", "return w->id == 0 && w->no_wait;"),
    (
        "copying",
        "waits.cpp",
        "if (--a.memory_waits == 0) pause(a, now);",
        "--a.memory_waits, a.paused_ns += waited;",
    ),
    (
        "cuda_programs",
        "pool.cpp",
        "last.account == account && last.stream == stream &&",
        "last.account == account &&",
    ),
    ("cuda_programs", "pool.cpp", "p.frame != kNoFrame && !passed(p)", "false"),
    ("cuda_unplaced", "pool.cpp", "    if (stays[f]) continue;", "    if (stays[f]) break;"),
    ("cuda_unplaced", "governor.cpp", "  close_for_trim();\n", ""),
    (
        "cuda_programs",
        "recent.cpp",
        "stream, fences_->open(account)});",
        "stream, fences_->open(account) - 1});",
    ),
    ("cuda_programs", "ranges.cpp", "return cost(first, n) >= kStalls;", "return false;"),
    (
        "cuda_programs",
        "fences.cpp",
        "  std::erase_if(a.waited, [&](const auto& w) { return w.first == stream; });\n",
        "",
    ),
    ("cuda_programs", "foreign.cpp", "  governor_->forget_stream(old);\n", ""),
    (
        "cuda_programs",
        "foreign.cpp",
        "if (!arena_ && counts_.captures.load(std::memory_order_relaxed))",
        "if (false)",
    ),
    ("cuda_programs", "heap.cpp", "if (arena_) return keep_extent", "if (false) return keep_extent"),
    ("cuda_programs", "device_work.cpp", "bool on_cpu = stream == Fences::kGone;", "bool on_cpu = false;"),
    ("cuda_programs", "runtime.cpp", "  fences.settles(account, fences.open(account));\n}", "}"),
    ("cuda_steady", "pool.cpp", "use_idle(page.frame, p, account, stream, work);", "continue;"),
    ("cuda_faults", "device_work.cpp", "  work.merge(std::move(other));", ""),
    ("cuda_faults", "foreign.cpp", "    pending_.merge(std::move(work));\n", ""),
    ("cuda_faults", "pool.cpp", "  if (m.create) frames_.remove(m.frame);\n", ""),
    ("cuda_given_up", "heap.cpp", "stream_, true, &work);", "stream_, true);"),
    ("cuda_given_up", "heap.cpp", "capture.by == account_ || ", ""),
    (
        "cuda_given_up",
        "foreign.cpp",
        "return {span->first + from, span->first + to};",
        "return {first, first};",
    ),
    ("cuda_given_up", "foreign.cpp", "        drop_unready();\n", ""),
    ("cuda_unplaced", "pool.cpp", "  if (stale_) unmap_stale();\n", ""),
    ("cuda_unplaced", "pool.cpp", "  stale_ += m.unmap;\n", ""),
    ("cuda_given_up", "heap.cpp", " || std::chrono::steady_clock::now() >= end) throw;", ") throw;"),
    ("cuda_given_up", "heap.cpp", "std::chrono::steady_clock::now() >= end) throw;", "true) throw;"),
    ("cuda_given_up", "regions.cpp", "stream_, false, &undone);", "stream_, false);"),
    (
        "cuda_given_up",
        "foreign.cpp",
        "any_of(pending_.unready, lies_on)",
        "any_of(pending_.unready, [](auto) { return false; })",
    ),
    ("cuda_given_up", "device_work.cpp", "    if (of_these(page)) taken.unready.push_back(page);\n", ""),
    ("cuda_unplaced", "device_work.cpp", "    if (of_these(m.page)) taken.mappings.push_back(m);\n", ""),
    ("cuda_given_up", "device_work.cpp", "  if (mappings.empty() && unready.empty()) *this = {};\n", ""),
    ("cuda_given_up", "pool.cpp", "  work.unready.push_back(page);\n", ""),
    ("cuda_given_up", "pool.cpp", "  for (PageIndex p : work.unready) mark_unused(page_[p]);\n", ""),
    ("cuda_unplaced", "pool.cpp", "  mark_unused(page);\n", ""),
    ("cuda_unplaced", "pool.cpp", "  page.stale = m.unmap;\n", ""),
    ("cuda_unplaced", "pool.cpp", "bool unmap = occupied(p);", "bool unmap = p.frame != kNoFrame;"),
    ("cuda_unplaced", "pool.cpp", "std::exchange(p.stale, false)", "p.stale"),
    ("cuda_unplaced", "pool.cpp", "+= !page.unused;", "+= 1;"),
    ("cuda_unplaced", "recent.cpp", "  if (!unused) page.user", "  page.user"),
    ("cuda_given_up", "recent.cpp", "  if (!unused) frames_", "  frames_"),
    ("cuda_saving", "saving.cpp", "fences_->finish(account, open);", ";"),
    ("cuda_saving", "saving.cpp", "found += ends;", "++found;"),
    ("cuda_saving", "saving.cpp", " || frames_.count() >= budget_pages_", ""),
    ("cuda_saving", "saving.cpp", "    if (device_->create(f)) return true;", "    return true;"),
    (
        "cuda_captures",
        "fences.cpp",
        "    if (!device_->spoilt(e.second)) return false;\n",
        "    return false;\n",
    ),
    ("cuda_captures", "fences.cpp", "    if (e.first != kGone) closed.late.push_back(e.first);\n", ""),
    ("cuda_captures", "fences.cpp", "  if (capturing(a)) return false;\n", ""),
    ("cuda_captures", "fences.cpp", "if (device_->capturing(s)) {", "if (false) {"),
    ("cuda_captures", "fences.cpp", "    std::erase(c.late, stream);\n", ""),
    ("cuda_captures", "fences.cpp", "return !found || complete(a, *found);", "return true;"),
    ("cuda_captures", "fences.cpp", "    if (!complete(a, oldest)) return;\n", ""),
    ("cuda_captures", "fences.cpp", "if (found && !complete(a, *found)) throw", "if (false) throw"),
    ("cuda_captures", "fences.cpp", "std::ranges::any_of(closed.late, captured)", "false"),
    ("cuda_saving", "pool.cpp", " && (!on_cpu || own != kNoFrame)) break;", ") break;"),
    ("pool", "pool.cpp", "(!on_cpu || own != kNoFrame)", "!on_cpu"),
    (
        "cuda_saving",
        "saving.cpp",
        "  for (auto [account, batch] : work.waits) fences_->finish(account, batch);\n",
        "",
    ),
    ("cuda_stress", "foreign.cpp", "if (!turn.owns_lock()) turn.lock();", ""),
    (
        "cuda_device_stress",
        "device_work.cpp",
        "a.device_waits += fences_.wait(stream, account, batch, id);",
        ";",
    ),
    (
        "cuda_device_stress",
        "foreign.cpp",
        "if (!block_at(address, span).bytes) return false;",
        "return block_at(address, span).bytes > 0;",
    ),
    ("cuda_programs", "heap.cpp", "if (!unsettled_.load(std::memory_order_acquire)) return", "return"),
    ("simulation", "openings.cpp", "  if (a.curve.known()) return first;\n", "  return first;\n"),
    ("leases", "segments.cpp", "if (moved >= split) end_at(i);", ""),
    ("leases", "segments.cpp", "    moved = 0;\n", ""),
    ("leases", "judge.cpp", "std::max(o.held.load(), o.lease)", "o.held.load()"),
    ("leases", "judge.cpp", "    all += taken - held;\n", ""),
    ("leases", "charges.cpp", "  trim_leases();\n", ""),
    ("leases", "waits.cpp", "  trim_leases();\n", ""),
    ("leases", "charges.cpp", "  if (!over) promise(a, after);\n", ""),
    ("leases", "charges.cpp", "  if (fits && alone && !no_wait && !over) promise(a, after);\n", ""),
    ("leases", "charges.cpp", "if (!safe && over) {", "if (false) {"),
    ("leases", "doors.cpp", "  promise(a, a.held.load(std::memory_order_relaxed));\n", ""),
    ("leases", "doors.cpp", "  accounts_[id].lease = 0;\n", ""),
    ("leases", "doors.cpp", "  a.lease = 0;\n", ""),
    ("leases", "budget.cpp", "if (wanted_budget_ < budget_) drop_leases();", ""),
    ("leases", "governor.cpp", "  drop_leases_that_last();\n", ""),
    ("leases", "leases.cpp", " || wanted_budget_ < budget_)", ")"),
    ("leases", "leases.cpp", "others || !a.trusted()", "!a.trusted()"),
    ("leases", "leases.cpp", " || a.cancelled ||", " ||"),
    ("leases", "leases.cpp", ", a.limit});", "});"),
    ("leases", "leases.cpp", "std::max(a.lease, held)", "a.lease"),
    ("leases", "leases.cpp", "    a.iteration_kinds.recognise(a.recorder);\n", ""),
    (
        "leases",
        "leases.cpp",
        "a.segments.need(a.recorder.ordinal()), claim_of(a)});\n    any",
        "a.lease});\n    any",
    ),
    ("leases", "leases.cpp", "claim_of(a)});\n    any", "a.lease});\n    any"),
    ("leases", "leases.cpp", "  if (any && !safe_after(", "  if (false && !safe_after("),
    ("leases", "leases.cpp", ">= kLongestKeptNs) return", ">= 0) return"),
    ("leases", "leases.cpp", "  drop_leases();\n  pump();", "  pump();"),
    (
        "leases",
        "leases.cpp",
        "if (!safe_after(a, level - now, std::max(level, claim_of(a)), budget_ - headroom_)) return;",
        "",
    ),
    ("clauses", "judge.cpp", "return all <= limit && is_safe", "return is_safe"),
    ("clauses", "judge.cpp", "if ((!o.open || o.saved) && ", "if (!o.open && "),
    ("clauses", "charges.cpp", " && after + most_saved_ <= budget_;", ";"),
    ("clauses", "judge.cpp", "others_open(a) ? budget - reserve : budget;", "budget;"),
    ("clauses", "charges.cpp", "  if (!safe) return {Verdict::kWait, {kClaims, largest_other(a)}};\n", ""),
    ("steps", "charges.cpp", "  if (!safe) return {Verdict::kWait, {kClaims, largest_other(a)}};\n", ""),
    ("steps", "judge.cpp", "uint64_t taken = std::max(held, o.lease);", "uint64_t taken = held;"),
    ("leases", "judge.cpp", "uint64_t taken = std::max(held, o.lease);", "uint64_t taken = held;"),
    (
        "clauses",
        "openings.cpp",
        "if (!safe_after(a, 0, a.curve.claim(0), budget - reserve)) return",
        "if (false) return",
    ),
    (
        "steps",
        "openings.cpp",
        "if (!safe_after(a, 0, a.curve.claim(0), budget - reserve)) return",
        "if (false) return",
    ),
    (
        "clauses",
        "budget.cpp",
        " &&\n         safe_after(accounts_[0], 0, 0, wanted_budget_ - reserve);",
        ";",
    ),
    (
        "clauses",
        "copying_out.cpp",
        "return !others_open(a) || (in_nobodys_way && safe_after(a, n, a.open ? claim : 0, budget_));",
        "return true;",
    ),
    (
        "clauses",
        "charges.cpp",
        "uint64_t limit = over ? budget_ : budget_ - headroom_;",
        "uint64_t limit = budget_;",
    ),
    (
        "clauses",
        "charges.cpp",
        "if (o.overrunning && o.id != a.id) return {Verdict::kWait, {kOverran, o.id}};",
        ";",
    ),
    ("clauses", "judge.cpp", "std::max(most, residue), residue}", "most, residue}"),
    (
        "clauses",
        "judge.cpp",
        "o.curve.known() ? o.curve.residue() : held;\n    open",
        "o.curve.known() ? o.curve.residue() : 0;\n    open",
    ),
    ("recent", "recent.cpp", "  if (unlike_[account]) return false;\n", ""),
    ("recent", "recent.cpp", "lies_in(r, first, n) && r.account == account", "lies_in(r, first, n)"),
    (
        "recent",
        "recent.cpp",
        "r.account == account && r.stream == stream;\n  });\n  if (found == recent_.rend()) return false",
        "r.account == account;\n  });\n  if (found == recent_.rend()) return false",
    ),
    ("recent", "recent.cpp", "r.n == n && r.account == account", "r.n == n"),
    ("recent", "recent.cpp", "r.released && r.n == n", "r.n == n"),
    (
        "recent",
        "recent.cpp",
        "r.account == account && r.stream == stream;\n  });\n  if (found == recent_.rend()) return kNoPage",
        "r.account == account;\n  });\n  if (found == recent_.rend()) return kNoPage",
    ),
    ("recent", "recent.cpp", "  if (stream == Fences::kGone) return false;\n", ""),
    ("recent", "recent.cpp", "  if (stream == Fences::kGone) return kNoPage;\n", ""),
    ("recent", "recent.cpp", "  if (behind.n) at = recent_.insert(at, behind);\n", ""),
    ("recent", "recent.cpp", "  if (before.n) recent_.insert(at, before);\n", ""),
    ("recent", "recent.cpp", "  if (recent_.size() >= kRecent) settle();\n", ""),
    ("recent", "recent.cpp", "  if (recent_.size() > kRecent) settle();\n", ""),
    ("recent", "fences.cpp", "if (!asynchronous_ || open(account) != batch) return;", ""),
    ("recent", "fences.cpp", "before - std::min(before, bytes)", "before"),
    (
        "recent",
        "recent.cpp",
        "return false;\n  fences_->uncount(account, found->batch, n * page_bytes_);\n",
        "return false;\n",
    ),
    (
        "recent",
        "recent.cpp",
        "return kNoPage;\n  fences_->uncount(account, found->batch, n * page_bytes_);\n",
        "return kNoPage;\n",
    ),
    ("recent", "recent.cpp", "    if (r.released) free_range(r.first, r.n);\n", ""),
    ("recent", "pool.cpp", "stream)) return;\n  settle();\n", "stream)) return;\n"),
    ("recent", "pool.cpp", "DeviceWork& work) {\n  settle();\n", "DeviceWork& work) {\n"),
    (
        "recent",
        "pool.cpp",
        "forget_stream(Stream stream) {\n  settle();\n",
        "forget_stream(Stream stream) {\n",
    ),
    ("recent", "pool.cpp", "<= budget_pages_) return;\n  settle();\n", "<= budget_pages_) return;\n"),
    ("recent", "pool.cpp", 'than may be";\n  settle();\n', 'than may be";\n'),
    ("recent", "pool.cpp", "  unlike_[page.holder] += !page.unused;\n", ""),
    ("recent", "pool.cpp", "if (page.use == Use::kSaved || page.unused) --unlike_[account];", ""),
    ("recent", "saving.cpp", "save(uint32_t account) {\n  settle();\n", "save(uint32_t account) {\n"),
    ("recent", "saving.cpp", "restore(uint32_t account) {\n  settle();\n", "restore(uint32_t account) {\n"),
    ("recent", "saving.cpp", "  unlike_[account] += pages.size();\n", ""),
    ("recent", "saving.cpp", "    --unlike_[account];\n", ""),
    ("recent", "ranges.cpp", "reserve_range(uint64_t n) {\n  settle();\n", "reserve_range(uint64_t n) {\n"),
    ("recent", "ranges.cpp", "uint64_t n) {\n  settle();\n  free_range", "uint64_t n) {\n  free_range"),
    (
        "recent",
        "ranges.cpp",
        "  settle();\n  return cost(first, n) >= kStalls;",
        "  return cost(first, n) >= kStalls;",
    ),
    ("clauses", "judge.cpp", "if (room && safe_after(a, n, 0, limit))", "if (room)"),
    (
        "patience",
        "judge.cpp",
        "std::max(hoped_ns(a, n, now - waited_ns), alone_since_ns_)",
        "hoped_ns(a, n, now - waited_ns)",
    ),
    ("patience", "doors.cpp", "  alone_since_ns_ = now;\n", ""),
    ("patience", "doors.cpp", "  w.copying_before_ns = copying_ns_ + stopped_until(w.since_ns);\n", ""),
    ("patience", "waits.cpp", "now < ticked_ns_ + kStoppedNs", "true"),
    (
        "patience",
        "wedges.cpp",
        "victim->pages == 0 && a.at_door() && would_help(*victim, 0)",
        "false",
    ),
    ("patience", "budget.cpp", "!stands_aside(a) && !sleeps_away(a)", "!stands_aside(a)"),
    ("passing", "passing.cpp", "now_ns() >= a.goes_on_until_ns && ", ""),
    ("passing", "passing.cpp", " && goes_after(a, first);", ";"),
    ("passing", "passing.cpp", "order_ == Order::kFair || ", ""),
    ("passing", "passing.cpp", "waited_for(w) < kPassedNs", "false"),
    ("passing", "passing.cpp", "sum >= lacks(w, false) ? last : nullptr", "last"),
    ("passing", "passing.cpp", "can_leave(a) ? kHeldNs : kCannotLeaveNs", "kCannotLeaveNs"),
    ("passing", "passing.cpp", "  if (give_up_holding(false)) pump();\n", ""),
    ("passing", "copying_out.cpp", "    if (makes_way_for_passed(a)) return false;\n", ""),
    ("passing", "openings.cpp", "uint32_t passed = passes_for_long(a)", "uint32_t passed = 0"),
    ("passing", "copying_out.cpp", "order == 0 ? a.id > b.id : order > 0", "a.id > b.id"),
    ("passing", "copying_out.cpp", ": goes_after(a, b);\n}", ": true;\n}"),
    ("passing", "judge.cpp", "!o.saved || order_ == Order::kFair || !goes_after(o, a)", "true"),
    ("passing", "waits.cpp", "Shut{kReturning, largest_other(a)}", "Shut{kResidues, largest_other(a)}"),
    (
        "iteration_kinds",
        "iteration_kinds.cpp",
        "  work_ += 1;\n",
        "",
    ),
    ("governor", "governor.cpp", "(a.alone || (a.curve_given && !batch))", "a.alone"),
    ("governor", "governor.cpp", "most <= a.curve.claim(0) || !a.curve.cover(a.recorder)", "true"),
    (
        "simulation",
        "openings.cpp",
        "return by(&Account::granted);",
        "return (a.granted > b.granted) - (a.granted < b.granted);",
    ),
    ("clauses", "charges.cpp", "if (a.open && after > claim_of(a)) a.iteration_kinds.mistaken();", ""),
    ("clauses", "openings.cpp", "if (goes_on(o) && !o.trusted())", "if (false)"),
    ("clauses", "openings.cpp", "goes_on(o) && !o.trusted()", "goes_on(o) && !o.curve.known()"),
    ("clauses", "openings.cpp", "if (Shut shut = shut_by_memory_waiters(false)) return shut;", ""),
    ("clauses", "openings.cpp", "w->starts_seen[a.id] == 0 || waits_for", "true || waits_for"),
    ("clauses", "budget.cpp", " || (a.open && !a.curve.known())", ""),
    ("clauses", "budget.cpp", "a.saved && !a.abandoned && !stands_aside(a) && !sleeps_away(a);", "false;"),
    ("clauses", "budget.cpp", "a.open ? a.held_max_here : 0", "0"),
    ("clauses", "budget.cpp", "shared + held + w->pages", "shared + held"),
    ("clauses", "budget.cpp", "wanted_budget_ >= least_budget() &&\n", "\n"),
]
# What needs torch.
NOT_LINKED = ("interpose*.cpp", "api*.cpp", "crash.cpp")
COMPILE = ("g++", "-std=c++20", "-O1", "-pthread", "-fPIC")
# A mutant may wait for ever: it is given so many times as long as the test takes without it, and so many seconds more.
PATIENCE, MORE_S = 1.25, 4.0
# In these threads meet by chance: on a loaded machine a run may end before they do.
RACES = ("cuda_stress", "cuda_device_stress", "governor", "patience")
MOST_TRIES = 5


@dataclass(frozen=True)
class Built:
    """Object files of the shim as it is, by the name of their source, and the fake CUDA driver, in a folder."""

    objects: dict[str, Path]
    fake_cuda: Path
    folder: Path

    def test(self, name: str) -> tuple[Path, float]:
        """The object file of a test's own source, and how long the test takes; found when it is first asked for."""
        compiled, told = self.folder / f"test-{name}.o", self.folder / f"test-{name}.seconds"
        with once(told) as first:
            if first:
                source = next(SHIM.glob(f"tests/{name}*.cpp"))
                fake = f'-DGPUSHARE_FAKE_CUDA="{self.fake_cuda}"'
                subprocess.run([*COMPILE, fake, "-c", "-o", compiled, source], check=True)
                program = self.folder / f"test-{name}"
                self.link(program, compiled, *self.objects.values())
                begin_s = time.monotonic()
                subprocess.run(**self.command(name, program), capture_output=True)
                told.write_text(str(time.monotonic() - begin_s))
        return compiled, float(told.read_text())

    def link(self, program: Path, *parts: Path) -> None:
        """Objects, or sources, to a test program."""
        fake = [self.fake_cuda, f"-Wl,-rpath,{self.folder}"]
        subprocess.run([*COMPILE, "-o", program, *parts, *fake, "-ldl"], check=True)

    def command(self, name: str, program: Path) -> dict[str, Any]:
        """How a test is run."""
        if name != "cuda_device_stress":
            return {"args": [program]}
        # The stress for a real driver opens what it is told to.
        return {
            "args": [program, self.fake_cuda, "3"],
            "env": {**os.environ, "FAKE_CUDA_GRANULARITY": "65536"},
        }


@contextlib.contextmanager
def once(told: Path) -> Iterator[bool]:
    """Whether nobody has done it yet, who tells it by this file; nobody else does it at the same time."""
    with told.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not told.exists()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The shim, compiled once, for all processes that run tests: each mutant compiles one file of it again."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "mutants"
    folder.mkdir(exist_ok=True)
    left_out = {source for pattern in NOT_LINKED for source in (SHIM / "src").glob(pattern)}
    sources = [source for source in sorted((SHIM / "src").rglob("*.cpp")) if source not in left_out]
    objects = {source.name: folder / f"{source.stem}.o" for source in sources}
    assert len(objects) == len(sources), "two sources have the same name"
    fake = folder / "libfake_cuda.so"
    with once(folder / "all.built") as first:
        if first:
            for source in sources:
                subprocess.run([*COMPILE, "-c", "-o", objects[source.name], source], check=True)
            parts = sorted((SHIM / "tests" / "fake_cuda").glob("*.cpp"))
            subprocess.run([*COMPILE, "-shared", "-o", fake, *parts], check=True)
            (folder / "all.built").touch()
    return Built(objects, fake, folder)


def fails(command: dict[str, Any], longest_s: float) -> bool:
    try:
        done = subprocess.run(**command, capture_output=True, timeout=longest_s)
    except subprocess.TimeoutExpired:
        return True  # nobody wakes any more, which is a failure as well
    return done.returncode != 0


def test_each_rule_is_written_as_it_is_here() -> None:
    """In a second, before any compiler runs: what to mend here after a rule was changed."""
    text = {file: (SHIM / "src" / file).read_text() for file in {file for _, file, _, _ in MUTANTS}}
    assert not [(file, rule) for _, file, rule, _ in MUTANTS if text[file].count(rule) != 1]


@pytest.mark.parametrize(("test", "file", "rule", "without"), MUTANTS)
def test_the_rule_is_needed(
    test: str, file: str, rule: str, without: str, tmp_path: Path, built: Built
) -> None:
    shutil.copytree(SHIM, tmp_path / "shim")
    source = tmp_path / "shim" / "src" / file
    text = source.read_text()
    assert text.count(rule) == 1, "the rule is written otherwise now: mend this test"
    source.write_text(text.replace(rule, without))
    compiled, seconds = built.test(test)
    program = tmp_path / "program"
    built.link(program, compiled, source, *(path for name, path in built.objects.items() if name != file))
    tries, longest_s = MOST_TRIES if test in RACES else 1, PATIENCE * seconds + MORE_S
    assert any(fails(built.command(test, program), longest_s) for _ in range(tries))
