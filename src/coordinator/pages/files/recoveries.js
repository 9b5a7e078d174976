// SPDX-License-Identifier: Apache-2.0
// Full-node recoveries, and the blocks of all of them that wait.
import {bar, el, fold, named, table, told} from './dom.js';
import {bytes, clock, count, duration, eta, isMaintenance, isMove, isTrouble, limit, percent, rate,
        shape, wait} from './words.js';

const WELL = new Set(['done', 'returned']);

function numbers(recovery, now) {
  const done = isMove(recovery) ? 'moved' : 'rebuilt';
  const counts = [
    [recovery.done_blocks, done], [recovery.there_blocks, 'there again'],
    [recovery.running_blocks, 'under way'], [recovery.waiting_blocks, 'waiting'],
    [recovery.failed_blocks, 'given up'],
  ].filter(([number, what]) => number > 0 || what === done);
  const facts = [counts.map(([number, what]) => `${number.toLocaleString('en')} ${what}`).join(', ')
      + ` of ${count(recovery.blocks, 'block')}${recovery.listing ? ' counted so far' : ''}`,
      `${bytes(recovery.done_bytes)} of ${bytes(recovery.bytes)}`];
  if (recovery.ended_unix_ms !== null) {
    return [...facts, `took ${duration((recovery.ended_unix_ms - recovery.started_unix_ms) / 1000)
    }, until ${clock(recovery.ended_unix_ms, now)}`];
  }
  return [...facts, rate(recovery.bytes_per_second),
          `ends in: ${eta(recovery.eta_seconds, now)}`,
          recovery.begins_in_seconds > 0 &&
              `begins in ${duration(recovery.begins_in_seconds)}, unless the node comes back`,
      ].filter(Boolean);
}

function maintenanceCard(recovery) {
  const left = `ends in ${duration(recovery.begins_in_seconds)}`;
  return el('article', {class: 'card', 'data-key': `recovery ${recovery.recovery}`},
            el('h3', {}, `${shape('draining')} Maintenance of `, named(recovery.node), `: ${left}`),
            el('p', {}, 'It takes no blocks until then. At the end recovery ',
               `${recovery.recovery} rebuilds what it does not have.`));
}

function recoveryCard(recovery, now) {
  const whole = recovery.blocks - recovery.there_blocks;
  const stuck = recovery.running_blocks === 0 && recovery.waits.some(({kind}) => isTrouble(kind));
  const mark = recovery.ended_unix_ms === null ? stuck ? 'stuck' : 'repairing'
      : WELL.has(recovery.state) && recovery.failed_blocks === 0 ? 'healthy' : 'degraded';
  return el('article', {class: 'card', 'data-key': `recovery ${recovery.recovery}`},
            el('h3', {}, `${shape(mark)} `, isMove(recovery)
                ? ['Drain of ', named(recovery.node), `, recovery ${recovery.recovery}`]
                : [`Recovery ${recovery.recovery} of `, named(recovery.node)],
               `: ${recovery.state}, ${percent(recovery.done_blocks, whole)}`),
            bar(whole > 0 ? recovery.done_blocks / whole : 0),
            el('p', {}, numbers(recovery, now).join(' · ')),
            recovery.waits.length > 0 && el('ul', {}, recovery.waits.map(
                ({kind, blocks, reason}) => el(
                    'li', {}, isTrouble(kind) && `${shape('stuck')} `,
                    count(blocks, 'block'), ': ',
                    el('b', {}, wait(kind)), ' (', told(reason), ')'))));
}

export function recoveries(answer) {
  const now = answer.unix_ms;
  const {shown, all, more} = answer.recoveries;
  const maintenances = shown.filter(isMaintenance);
  const running = shown.filter(
      (recovery) => recovery.ended_unix_ms === null && !isMaintenance(recovery));
  const ended = shown.filter((recovery) => recovery.ended_unix_ms !== null);
  return [el('h2', {}, `Recoveries (${running.length} not ended)`),
          running.length === 0 && el('p', {class: 'none'}, 'No recovery is under way.'),
          running.map((recovery) => recoveryCard(recovery, now)),
          maintenances.map(maintenanceCard),
          ended.length > 0 && fold(
              'recoveries that have ended', false,
              `${ended.length} that have ended${more > 0 ? `, of ${all} in all` : ''}`,
              () => ended.map((recovery) => recoveryCard(recovery, now)))];
}

function spare(number) {
  if (number < 0) return `${shape('stuck')} ${-number} too few`;
  return number === 0 ? `${shape('degraded')} none to spare` : `${number} to spare`;
}

const QUEUE = [
  {title: 'Block'}, {title: 'Survivors'}, {title: 'Waits for'}, {title: 'Why'},
  {title: 'Next try'}, {title: 'Tries', number: true}, {title: 'Size', number: true},
  {title: 'Of'},
];

function queueRow(block) {
  return {key: block.block, cells: [
    named(block.block), spare(block.spare_survivors),
    [isTrouble(block.kind) && `${shape('stuck')} `, wait(block.kind)], block.reason,
    block.next_try_in_seconds > 0 ? `in ${duration(block.next_try_in_seconds)}` : 'when it can',
    block.attempts, bytes(block.bytes),
    [named(block.node), ', ', el('span', {class: 'whole'}, `recovery ${block.recovery}`)],
  ]};
}

const QUEUE_SHOWN = 12;

export function queue(answer) {
  const {shown, all, more} = answer.queue;
  const limits = `Limits in effect: ${limit(answer.limits.repair_bytes_per_second)} for all ` +
      `repairs together, ${count(answer.limits.max_running, 'repair')} at once; a node's own are ` +
      'in its row.';
  const rest = shown.slice(QUEUE_SHOWN);
  return [el('h2', {}, `Queue (${count(all, 'block')})`),
          all === 0 ? el('p', {class: 'none'}, 'No block waits.')
              : [el('p', {}, 'The most urgent first. ', limits),
                 table('Blocks that wait', QUEUE, shown.slice(0, QUEUE_SHOWN).map(queueRow))],
          rest.length > 0 && fold('rest of the queue', false, `${rest.length} more`,
                                  () => table('More blocks that wait', QUEUE, rest.map(queueRow))),
          more > 0 && el('p', {class: 'none'}, `${count(more, 'block')} behind these.`)];
}
