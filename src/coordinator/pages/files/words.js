// SPDX-License-Identifier: Apache-2.0
// Numbers and names of /status.json in people's words.

export const UNKNOWN = 'not known';

const known = (value) => typeof value === 'number' && Number.isFinite(value);

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return `${unit > 0 && value < 99.95 ? value.toFixed(value < 9.995 ? 2 : 1) : Math.round(value)
  }\u00a0${units[unit]}`;
}

export const rate = (value) => known(value) ? `${bytes(value)}/s` : UNKNOWN;
export const limit = (value) => value > 0 ? rate(value) : 'no limit';

export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds > 0 && seconds < 1) return '<\u00a01\u00a0s';
  const s = Math.round(seconds);
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min ${s % 60}\u00a0s`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h ${Math.floor(s % 3600 / 60)}\u00a0min`;
  return `${Math.floor(s / 86400)}\u00a0d ${Math.floor(s % 86400 / 3600)}\u00a0h`;
}

// Of the reader's day; a date as well if it is another one.
export function clock(unixMs, nowMs) {
  if (!known(unixMs)) return UNKNOWN;
  const time = new Date(unixMs);
  const day = time.toDateString() === new Date(nowMs).toDateString()
      ? '' : `${time.toLocaleDateString('sv')} `;
  return day + time.toLocaleTimeString('sv');
}

export const percent = (part, all) => known(part) && all > 0
    ? `${Math.floor(100 * part / all)}\u00a0%` : UNKNOWN;

// "3 min 20 s (at 15:04:10)".
export const eta = (seconds, nowMs) => known(seconds)
    ? `${duration(seconds)} (at ${clock(nowMs + 1000 * seconds, nowMs)})` : UNKNOWN;

// States have a shape and a word: colour only repeats them.
const SHAPES = {
  healthy: '✔', repairing: '▶', throttled: '▮▮', degraded: '▲', stuck: '✖', empty: '○',
  live: '●', draining: '◐', dead: '✖', trouble: '▲',
};

export const shape = (state) => `${SHAPES[state] ?? '◆'}\ufe0e`;

const WAITS = {
  next: 'its turn', paused: 'the recovery is paused', starting: 'the coordinator has just started',
  delay: 'the node may come back', comparing: 'the node is back and is asked what it has',
  streams: 'enough repairs at its nodes', survivors: 'too few survivors',
  target: 'no node may take it', limit: 'a limit, or no room', helper: 'a helper does not answer',
  failed: 'its repair failed',
};
export const wait = (kind) => WAITS[kind] ?? kind;
// Waits that do not end by themselves.
export const isTrouble = (kind) => ['survivors', 'target', 'helper', 'failed'].includes(kind);

// What holds a pipeline back.
export function heldBack(by) {
  if (!by) return '';
  if (by.kind === 'limit') return `the limit of ${by.from}`;
  if (by.kind === 'disk') return `the disk of ${by.from}`;
  return `the link ${by.from} → ${by.to}`;
}

// It sends no heartbeats, as a maintenance has announced.
export const isAway = (node) => node.state === 'dead' && node.kept_out === 'in maintenance';

export const isNodeTrouble = (node) => !isAway(node) &&
    (node.state === 'dead' || node.silent_because !== '' || node.failed_roots.length > 0);

// A drain: its node lives, and has each block until another one has it.
export const isMove = (recovery) => recovery.kind === 'move';

// A maintenance whose time is not over.
export const isMaintenance = (recovery) =>
    recovery.only_announced && recovery.ended_unix_ms === null;
