// SPDX-License-Identifier: Apache-2.0
// Repairs that run, each with its pipeline, and those that have ended.
import {bar, el, fold, named, table} from './dom.js';
import {drawing, layout, slowest} from './graph.js';
import {UNKNOWN, bytes, clock, count, duration, eta, heldBack, percent, rate,
        shape} from './words.js';

const LINKS = [
  {title: 'From'}, {title: 'To'}, {title: 'Speed', number: true},
  {title: 'Held up by the network', number: true}, {title: 'Streams', number: true}, {title: ''},
];

// In the order of the drawing.
function linkTable(pipeline, held) {
  const {places} = layout(pipeline.links);
  const layer = (link) => places.get(link.from).layer;
  const links = [...pipeline.links].sort((a, b) => layer(a) - layer(b));
  return table('Links', LINKS, links.map((link) => ({
    key: `${link.from}\n${link.to}`,
    cells: [named(link.from), named(link.to), rate(link.bytes_per_second),
            link.bytes_per_second === null ? UNKNOWN : percent(link.network_share, 1),
            link.streams,
            link === held.link ? `${shape('trouble')} ${held.words}` : ''],
  })));
}

function verdictOf(pipeline, held) {
  const by = pipeline.held_back_by;
  if (by?.kind === 'limit') return `${by.from} sends as much as its limit allows.`;
  if (by?.kind === 'disk') return `The disk of ${by.from} holds it back.`;
  if (by) return `The link ${by.from} → ${by.to} holds it back.`;
  if (held.link) return 'No link, limit or disk is known to hold it back; the slowest is marked.';
  return 'Nothing is known to hold it back.';
}

function pipelineOf(repair) {
  const {pipeline} = repair;
  if (pipeline.links.length === 0) {
    return el('p', {class: 'none'}, 'No helper has told of its links yet.');
  }
  const held = slowest(pipeline);
  return [el('p', {}, el('b', {}, verdictOf(pipeline, held))),
          el('div', {class: 'pipeline'},
             el('div', {class: 'graph', tabindex: '0', role: 'group',
                        'aria-label': 'Drawing of the pipeline; the table has the same'},
                drawing(pipeline, held)),
             linkTable(pipeline, held)),
          pipeline.more > 0 && el('p', {class: 'none'}, `${pipeline.more} links more.`)];
}

function facts(repair, now) {
  const who = repair.hosts.length > 0 ? ['to be stored on ', names(repair.hosts)]
      : ['for ', named(repair.requestor)];
  return el('p', {}, `${repair.scheme} over ${repair.transport}, attempt ${repair.attempt + 1}, `,
            who, repair.recovery !== null && `, of recovery ${repair.recovery}`,
            `, since ${clock(repair.started_unix_ms, now)}, id ${repair.repair}…`,
            repair.heard_seconds_ago !== null &&
                `, last heard of ${duration(repair.heard_seconds_ago)} ago`);
}

const names = (list) => list.flatMap((name, i) => [i > 0 && ', ', named(name)]);

function summary(repair, now) {
  const by = heldBack(repair.pipeline.held_back_by);
  return [el('span', {class: 'what'}, names(repair.blocks)),
          el('span', {class: 'progress'}, bar(repair.done_bytes / repair.bytes),
             `${percent(repair.done_bytes, repair.bytes)} of ${bytes(repair.bytes)}`),
          el('span', {}, repair.phase, ', ', repair.bytes_per_second === null
              ? 'speed and end not known yet'
              : `${rate(repair.bytes_per_second)}, ends in: ${eta(repair.eta_seconds, now)}`),
          by && el('span', {class: 'held'}, `${shape('trouble')} held back by ${by}`)];
}

export function repairs(answer) {
  const {shown, all, more} = answer.repairs;
  const now = answer.unix_ms;
  return [el('h2', {}, `Repairs (${all} running)`),
          all === 0 && el('p', {class: 'none'}, 'No repair runs.'),
          shown.map((repair, i) => fold(
              `repair ${repair.repair}`, i === 0, summary(repair, now),
              () => [facts(repair, now), pipelineOf(repair)])),
          more > 0 && el('p', {class: 'none'}, `${count(more, 'repair')} more.`)];
}

const ENDED = [
  {title: 'Block'}, {title: 'Result'}, {title: 'Ended'}, {title: 'Took', number: true},
  {title: 'Size', number: true}, {title: 'Scheme'}, {title: 'For'},
];

// No fault of the repair: a client may want no more.
const WELL = ['done', 'cancelled'];

function endedRow(repair, now) {
  return {key: repair.repair, cells: [
    names(repair.blocks),
    [`${shape(WELL.includes(repair.state) ? 'healthy' : 'stuck')} ${repair.state}`,
     repair.detail !== '' && el('div', {class: 'trouble'}, repair.detail)],
    clock(repair.ended_unix_ms, now),
    duration((repair.ended_unix_ms - repair.started_unix_ms) / 1000), bytes(repair.bytes),
    repair.scheme, repair.hosts.length > 0 ? names(repair.hosts) : named(repair.requestor),
  ]};
}

export function ended(answer) {
  const {shown, error} = answer.ended;
  const failed = shown.filter((repair) => !WELL.includes(repair.state)).length;
  return [el('h2', {}, 'Repairs that have ended'),
          error !== null && el('p', {}, `${shape('trouble')} The journal could not be read: ${
            error}`),
          shown.length === 0 && error === null && el('p', {class: 'none'}, 'None yet.'),
          shown.length > 0 && fold(
              'ended repairs', false, `The newest ${shown.length}` +
                  (failed > 0 ? `: ${shape('stuck')} ${failed} failed or interrupted`
                              : ': none failed'),
              () => table('Repairs that have ended', ENDED,
                          shown.map((repair) => endedRow(repair, answer.unix_ms))))];
}
