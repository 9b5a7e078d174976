// SPDX-License-Identifier: Apache-2.0
// Nodes by rack. Those that need somebody stand above all racks as well, and racks with more of
// them come first.
import {bar, el, fold, named, table} from './dom.js';
import {bytes, count, duration, isAway, isNodeTrouble, limit, rate, shape} from './words.js';

const OPEN_RACKS_UP_TO = 24;  // nodes: then all fit on a screen or two
const TROUBLES_SHOWN = 20;

const COLUMNS = [
  {title: 'Node'}, {title: 'State'}, {title: 'Sends'}, {title: 'Receives'},
  {title: 'May send', number: true}, {title: 'Parts', number: true},
  {title: 'Blocks', number: true}, {title: 'Free', number: true},
  {title: 'Heartbeat', number: true},
];

// The word whose shape it has.
function kindOf(node) {
  if (isAway(node)) return 'draining';
  return node.state === 'live' && isNodeTrouble(node) ? 'trouble' : node.state;
}

function state(node) {
  const troubles = [node.silent_because, ...node.failed_roots].filter(Boolean);
  const words = [node.state, node.kept_out].filter(Boolean).join(', ');
  return [`${shape(kindOf(node))} ${words}`, troubles.map((text) => el('div', {class: 'trouble'},
                                                                     text))];
}

// `most`: what a full bar stands for, unless the node has a limit.
const use = (speed, most) => [bar(most > 0 ? speed / most : 0), rate(speed)];

// On the disks where it stores blocks, by its last heartbeat.
function free(node) {
  const of = node.disk_bytes === null ? '' : ` of ${bytes(node.disk_bytes)}`;
  return `${bytes(node.free_bytes)}${of}`;
}

function heartbeat(node) {
  const age = duration(node.heartbeat_seconds_ago);
  if (!node.heartbeat_unknown) return age;
  return el('span', {class: 'words'}, `none for ${age}, since the start`);
}

function row(node, fastest, place) {
  const most = node.limit_bytes_per_second || fastest;
  return {key: node.node, cells: [
    [named(node.node), place && [' in ', named(place)]], state(node),
    use(node.send_bytes_per_second, most), use(node.receive_bytes_per_second, fastest),
    limit(node.limit_bytes_per_second),
    `${node.parts} of ${node.max_parts || '?'}`,
    `${node.blocks.toLocaleString('en')}${node.counting ? ' so far' : ''}, ${
      bytes(node.block_bytes)}`,
    free(node),
    heartbeat(node),
  ]};
}

// Many racks are called so.
function rackName({rack}) {
  if (rack === '') return 'without a rack';
  return /rack/i.test(rack) ? rack : `rack ${rack}`;
}

function rackSummary(rack) {
  const of = (test) => rack.nodes.filter(test).length;
  const dead = of((node) => node.state === 'dead' && !isAway(node));
  const away = of(isAway);
  const troubled = of((node) => node.state !== 'dead' && isNodeTrouble(node));
  const draining = of((node) => node.state === 'draining');
  const sends = rack.nodes.reduce((all, node) => all + node.send_bytes_per_second, 0);
  const marks = rack.nodes.map((node) => shape(kindOf(node)));
  return [el('span', {class: 'what'}, el('bdi', {}, rackName(rack)), ': ', [
    count(rack.all, 'node'), dead > 0 && `${shape('dead')} ${dead} dead`,
    troubled > 0 && `${shape('trouble')} ${troubled} in trouble`,
    away > 0 && `${shape('draining')} ${away} in maintenance`,
    draining > 0 && `${shape('draining')} ${draining} draining`,
    sends > 0 && `sends ${rate(sends)}`,
  ].filter(Boolean).join(', ')),
          el('span', {class: 'marks', 'aria-hidden': 'true'}, marks.join('\u200b'))];
}

export function nodes(answer) {
  const {all, live, draining, away, dead, more, racks, refused} = answer.nodes;
  const everyone = racks.flatMap((rack) => rack.nodes.map((node) => ({node, rack})));
  const fastest = Math.max(0, ...everyone.flatMap(({node}) => [
    node.send_bytes_per_second, node.receive_bytes_per_second]));
  const troubled = everyone.filter(({node}) => isNodeTrouble(node));
  const badness = (rack) => rack.nodes.filter(isNodeTrouble).length;
  const order = [...racks].sort((a, b) => badness(b) - badness(a));
  const small = all <= OPEN_RACKS_UP_TO;
  return [
    el('h2', {}, `Nodes (${all}: ${live} live, ${draining} draining, ` +
        `${away > 0 ? `${away} in maintenance, ` : ''}${dead} dead)`),
    all === 0 && el('p', {class: 'none'}, 'No helper has registered. A helper needs the address ' +
        'of this coordinator in its helper.toml; its log says why it does not come.'),
    fastest > 0 && el('p', {class: 'hint'}, 'A bar is full at the limit of the node; without ' +
        `one, at ${rate(fastest)}, what the busiest node sends or receives for repairs.`),
    !small && troubled.length > 0 && [
      table('Nodes that need somebody', COLUMNS, troubled.slice(0, TROUBLES_SHOWN).map(
          ({node, rack}) => row(node, fastest, rackName(rack)))),
      troubled.length > TROUBLES_SHOWN && el('p', {class: 'none'},
          `${troubled.length - TROUBLES_SHOWN} more of these in the racks below.`)],
    order.map((rack) => fold(
        `rack ${rack.rack}`, small, rackSummary(rack),
        () => [table(`Nodes ${rack.rack === '' ? '' : 'of '}${rackName(rack)}`, COLUMNS,
                     rack.nodes.map((node) => row(node, fastest))),
               rack.all > rack.nodes.length && el(
                   'p', {class: 'none'}, `${rack.all - rack.nodes.length} more are not shown.`)])),
    more > 0 && el('p', {class: 'none'}, `${count(more, 'node')} not shown; those need nobody, ` +
        'if fewer than 600 others do.'),
    refused.length > 0 && [el('h3', {}, `${shape('trouble')} Helpers that may not register`),
      el('ul', {}, refused.map(({node, address, reason}) => el(
          'li', {}, named(node), ' at ', named(address), `: ${reason}`)))],
  ];
}
