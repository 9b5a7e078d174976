// SPDX-License-Identifier: Apache-2.0
// What one sees first: is all well, what is at risk, what is done about it, and what holds that up.
import {el, named, told} from './dom.js';
import {clock, count, duration, eta, heldBack, isAway, isMaintenance, isMove, isTrouble, limit,
        rate, shape, wait} from './words.js';

const NAMES_SHOWN = 6;

// `age`: seconds since the answer was made; `lost`: why it is not to be trusted any more, or ''.
export function verdict(answer, age, lost) {
  if (!answer) {
    return [el('h1', {}, el('span', {class: 'state', 'data-state': 'lost'},
                            lost ? '?\u00a0no answer' : '…\u00a0waiting')),
            el('p', {class: 'summary', role: lost && 'alert'},
               lost || 'The coordinator has not answered yet.')];
  }
  const at = clock(answer.unix_ms, Date.now());
  if (lost) {
    return [el('h1', {}, el('span', {class: 'state', 'data-state': 'lost'}, '?\u00a0out of date')),
            el('p', {class: 'summary', role: 'alert'},
               `${lost} What is below was so at ${at}: ${answer.state}. This page goes on asking.`),
            el('p', {class: 'age'}, `${duration(Math.floor(age))} old`)];
  }
  return [el('h1', {}, el('span', {class: 'state', 'data-state': answer.state},
                          `${shape(answer.state)}\u00a0${answer.state}`)),
          el('p', {class: 'summary'}, answer.summary),
          el('p', {class: 'age'}, `at ${at}, ${duration(Math.floor(age))} ago`)];
}

const sum = (list, value) => list.reduce((all, item) => all + value(item), 0);

// The newest of each node in which something was, or is, to be done.
function newestRecoveries(answer) {
  const newest = new Map();
  for (const recovery of answer.recoveries.shown) {
    if (!recovery.only_announced && !(newest.get(recovery.node)?.recovery > recovery.recovery)) {
      newest.set(recovery.node, recovery);
    }
  }
  return newest;
}

// Blocks that a recovery has still to do.
const left = (recovery) => recovery.ended_unix_ms === null
    ? recovery.waiting_blocks + recovery.running_blocks : 0;

function names(list) {
  const shown = list.slice(0, NAMES_SHOWN).flatMap((name, i) => [i > 0 && ', ', named(name)]);
  return list.length > NAMES_SHOWN ? [shown, `, and ${list.length - NAMES_SHOWN} more`] : shown;
}

function atRisk(answer) {
  const nodes = answer.nodes.racks.flatMap((rack) => rack.nodes);
  const newest = newestRecoveries(answer);
  const under = (node) => newest.get(node)?.ended_unix_ms === null;
  const dead = nodes.filter((node) => node.state === 'dead' && !isAway(node) && !node.recovered);
  // Where not all recoveries are told, nobody knows here.
  const alone = answer.recoveries.more > 0 ? [] :
    dead.filter((node) => !under(node.node)).map((node) => node.node);
  const silent = nodes.filter((node) => node.silent_because !== '').map((node) => node.node);
  const broken = nodes.filter((node) => node.state !== 'dead' && node.failed_roots.length > 0)
      .map((node) => node.node);
  const tooFew = answer.queue.shown.filter((block) => block.spare_survivors < 0).length;
  const last = answer.queue.shown.filter((block) => block.spare_survivors === 0).length;
  const givenUp = sum([...newest.values()], (recovery) => recovery.failed_blocks);
  const missing = sum(answer.recoveries.shown.filter((recovery) => !isMove(recovery)), left);
  const more = answer.queue.more > 0 ? ' or more' : '';
  const lines = [
    tooFew > 0 && `${shape('stuck')} ${count(tooFew, 'block')}${more}: too few survivors now`,
    last > 0 && `${shape('degraded')} ${count(last, 'block')}${more}: not one survivor to spare`,
    givenUp > 0 && `${shape('stuck')} ${count(givenUp, 'block')} given up`,
    answer.marks.corrupt_blocks > 0 &&
        `${shape('degraded')} ${count(answer.marks.corrupt_blocks, 'corrupt block')}`,
    answer.marks.suspect_blocks > 0 &&
        `${count(answer.marks.suspect_blocks, 'block')} to be checked: somebody calls them corrupt`,
    alone.length > 0 && [`${shape('dead')} ${count(alone.length, 'dead node')
        } that no recovery rebuilds: `, names(alone)],
    silent.length > 0 && [`${shape('trouble')} no answer from `, names(silent)],
    broken.length > 0 && [`${shape('trouble')} failed roots on `, names(broken)],
  ].filter(Boolean);
  const head = missing > 0 ? `${count(missing, 'block')} to rebuild`
      : lines.length > 0 ? 'see below' : 'nothing that is known';
  return tile('At risk', head, lines);
}

function beingDone(answer) {
  const running = answer.recoveries.shown.filter(
      (recovery) => recovery.ended_unix_ms === null && !isMaintenance(recovery));
  const ends = running.map((recovery) => recovery.eta_seconds);
  const moving = answer.repairs.shown.filter((repair) => repair.bytes_per_second !== null);
  const speed = sum(moving, (repair) => repair.bytes_per_second * repair.blocks.length);
  const listing = running.filter((recovery) => recovery.listing).length;
  const drained = sum(running.filter(isMove), left);
  const lines = [
    running.length > 0 && `${count(running.length, 'recovery', 'recoveries')}, ` +
        (ends.includes(null) ? 'end not known yet'
                             : `all done in ${eta(Math.max(...ends), answer.unix_ms)}`),
    drained > 0 && `${count(drained, 'block')} to move off draining nodes`,
    listing > 0 && `${count(listing, 'recovery', 'recoveries')} still counting blocks`,
    answer.repairs.all > 0 &&
        (moving.length > 0 ? `together ${rate(speed)}` : 'speed not known yet'),
  ].filter(Boolean);
  return tile('Being done', answer.repairs.all > 0 ? `${count(answer.repairs.all, 'repair')}`
                                                   : 'no repair runs', lines);
}

// Reasons of all recoveries, those that do not end by themselves first.
function waits(answer) {
  const kinds = new Map();
  for (const recovery of answer.recoveries.shown) {
    for (const {kind, blocks, reason} of recovery.waits) {
      if (kind === 'next') continue;
      const known = kinds.get(kind) ?? {kind, blocks: 0, reason};
      kinds.set(kind, {...known, blocks: known.blocks + blocks});
    }
  }
  return [...kinds.values()].sort(
      (a, b) => isTrouble(b.kind) - isTrouble(a.kind) || b.blocks - a.blocks);
}

function heldUp(answer) {
  const reasons = waits(answer);
  const pipelines = new Map();
  for (const {pipeline} of answer.repairs.shown) {
    const by = heldBack(pipeline.held_back_by);
    if (by) pipelines.set(by, (pipelines.get(by) ?? 0) + 1);
  }
  const slow = [...pipelines].sort((a, b) => b[1] - a[1]).slice(0, 3);
  const lines = [
    ...reasons.slice(0, 3).map(({kind, blocks, reason}) =>
        [isTrouble(kind) && `${shape('stuck')} `, `${count(blocks, 'block')}: `, told(reason)]),
    ...slow.map(([by, repairs]) => [`${count(repairs, 'repair')}: `, told(by)]),
    `limits: ${limit(answer.limits.repair_bytes_per_second)} for all repairs together, ` +
        `${count(answer.limits.max_running, 'repair')} at once`,
  ];
  const head = reasons.length > 0 ? wait(reasons[0].kind)
      : slow.length > 0 ? slow[0][0] : 'nothing that is known';
  return tile('Held up by', head, lines);
}

const tile = (title, head, lines) => el(
    'section', {class: 'tile', 'aria-label': title},
    el('h2', {}, title), el('p', {class: 'head'}, head),
    lines.length > 0 && el('ul', {}, lines.map((line) => el('li', {}, line))));

export const overview = (answer) => [atRisk(answer), beingDone(answer), heldUp(answer)];
