// SPDX-License-Identifier: Apache-2.0
// The pipeline of a repair as a graph: bytes go down, or to the right where it is wide.
import {svg} from './dom.js';
import {rate, shape} from './words.js';

const BOX = {width: 150, height: 28};
const LABELLED = 24;       // links: with more of them the texts would cover each other
const SHOWN_LETTERS = 18;  // of a name: what fits into a box
const NEARLY_EVEN = 0.9;   // of the fastest: slower than that is worth a mark

// The link to mark, and with which words. What the coordinator has found goes first.
export function slowest(pipeline) {
  const by = pipeline.held_back_by;
  if (by) {
    const link = pipeline.links.find(
        (one) => one.from === by.from && (by.kind !== 'link' || one.to === by.to));
    const words = {link: 'holds it back', limit: 'at its limit', disk: 'waits for its disk'};
    return {link, words: words[by.kind] ?? 'holds it back'};
  }
  const told = pipeline.links.filter((link) => link.bytes_per_second !== null);
  const speeds = told.map((link) => link.bytes_per_second / link.streams);
  const least = Math.min(...speeds);
  if (told.length < 2 || !(least < NEARLY_EVEN * Math.max(...speeds))) return {};
  return {link: told[speeds.indexOf(least)], words: 'the slowest'};
}

// Which links go back in a circle, as those of cyclic lanes do: without them there is an order.
function backLinks(names, links) {
  const leaving = new Map(names.map((name) => [name, links.filter((link) => link.from === name)]));
  const entered = new Set(links.map((link) => link.to));
  const state = new Map();
  const back = new Set();
  const visit = (name) => {
    state.set(name, 'open');
    for (const link of leaving.get(name)) {
      if (state.get(link.to) === 'open') back.add(link);
      else if (!state.has(link.to)) visit(link.to);
    }
    state.set(name, 'left');
  };
  for (const name of [...names.filter((one) => !entered.has(one)), ...names]) {
    if (!state.has(name)) visit(name);
  }
  return back;
}

// Each node's layer, 0 farthest from where the bytes go, and its place in it, 0 in the middle.
export function layout(links) {
  const names = [...new Set(links.flatMap((link) => [link.from, link.to]))];
  const back = backLinks(names, links);
  const forward = links.filter((link) => !back.has(link));
  const heights = new Map();
  const height = (name) => {
    if (!heights.has(name)) {
      heights.set(name, Math.max(0, ...forward.filter((link) => link.from === name)
                                        .map((link) => 1 + height(link.to))));
    }
    return heights.get(name);
  };
  const depth = Math.max(...names.map(height));
  const places = new Map();
  let breadth = 1;
  for (let layer = depth; layer >= 0; --layer) {
    const members = names.filter((name) => depth - height(name) === layer);
    const wish = new Map(members.map((name) => {
      const targets = forward.filter((link) => link.from === name && places.has(link.to));
      return [name, targets.reduce((all, link) => all + places.get(link.to).slot, 0) /
          Math.max(1, targets.length)];
    }));
    members.sort((a, b) => wish.get(a) - wish.get(b));
    members.forEach((name, i) => places.set(name, {layer, slot: i - (members.length - 1) / 2}));
    breadth = Math.max(breadth, members.length);
  }
  return {places, back, depth, breadth};
}

// From box to box. A link that skips layers, or goes back, leaves at the side and bows around what
// is between.
function curve(from, to, span, sideways) {
  const {width, height} = BOX;
  if (span === 1) {
    return sideways
        ? {a: {x: from.x + width / 2, y: from.y}, b: {x: to.x - width / 2, y: to.y}}
        : {a: {x: from.x, y: from.y + height / 2}, b: {x: to.x, y: to.y - height / 2}};
  }
  const side = span > 0 ? 1 : -1;
  const bow = 26 + 12 * Math.abs(span);
  if (sideways) {
    const a = {x: from.x, y: from.y + side * height / 2};
    const b = {x: to.x, y: to.y + side * height / 2};
    return {a, b, by: {x: (a.x + b.x) / 2, y: (side > 0 ? Math.max : Math.min)(a.y, b.y) +
        side * bow}};
  }
  const a = {x: from.x + side * width / 2, y: from.y};
  const b = {x: to.x + side * width / 2, y: to.y};
  return {a, b, by: {x: (side > 0 ? Math.max : Math.min)(a.x, b.x) + side * bow,
                     y: (a.y + b.y) / 2}};
}

const linkShape = (link, mark, name, ...parts) => svg(
    'g', {class: mark ? 'link held' : 'link', 'data-key': `${name} ${link.from}\n${link.to}`},
    parts);

function lineShape(link, {a, b, by}, mark) {
  const path = by ? `M${a.x} ${a.y}Q${by.x} ${by.y} ${b.x} ${b.y}` : `M${a.x} ${a.y}L${b.x} ${b.y}`;
  return linkShape(link, mark, 'line',
                   svg('title', {}, `${link.from} → ${link.to}: ${rate(link.bytes_per_second)}`),
                   svg('path', {d: path, 'marker-end': 'url(#arrow)'}));
}

// Texts are drawn after all lines, so that none strikes them through.
function labelShape(link, {a, b, by}, mark, sideways, label) {
  // Where many links meet, their texts stand near where they begin.
  const part = sideways ? 0.35 : 0.5;
  const middle = by ? {x: (a.x + 2 * by.x + b.x) / 4, y: (a.y + 2 * by.y + b.y) / 4}
      : {x: a.x + part * (b.x - a.x), y: a.y + part * (b.y - a.y)};
  const text = [mark && shape('trouble'), (label || mark) && rate(link.bytes_per_second),
                mark && !sideways && mark].filter(Boolean).join(' ');
  return text && linkShape(link, mark, 'label', svg('text', sideways
      ? {x: middle.x, y: middle.y + 4, 'text-anchor': 'middle'}
      : {x: middle.x + 9, y: middle.y + 4}, text));
}

function nodeShape(name, at, mark) {
  const letters = [...name];
  const shown = letters.length > SHOWN_LETTERS
      ? `${letters.slice(0, SHOWN_LETTERS - 1).join('')}…` : name;
  return svg('g', {class: mark ? 'node held' : 'node', 'data-key': name},
             svg('title', {}, name),
             svg('rect', {x: at.x - BOX.width / 2, y: at.y - BOX.height / 2, width: BOX.width,
                          height: BOX.height, rx: 4}),
             svg('text', {x: at.x, y: at.y + 4, 'text-anchor': 'middle'},
                 mark ? `${shape('trouble')} ${shown}` : shown));
}

// `held`: what slowest() has returned.
export function drawing(pipeline, held) {
  const {links} = pipeline;
  const {places, back, depth, breadth} = layout(links);
  const sideways = breadth > 2;
  const step = sideways ? {along: BOX.width + 150, across: BOX.height + 16}
      : {along: BOX.height + 28, across: BOX.width + 110};
  const at = (name) => {
    const {layer, slot} = places.get(name);
    return sideways ? {x: layer * step.along, y: slot * step.across}
        : {x: slot * step.across, y: layer * step.along};
  };
  const points = [...places.keys()].map(at);
  const lines = links.map((link) => {
    const span = places.get(link.to).layer - places.get(link.from).layer;
    return curve(at(link.from), at(link.to), back.has(link) ? Math.min(span, -1) : span, sideways);
  });
  for (const {a, b, by} of lines) {
    if (by) points.push({x: (a.x + 2 * by.x + b.x) / 4, y: (a.y + 2 * by.y + b.y) / 4});
  }
  const label = links.length <= LABELLED;
  const heldNode = pipeline.held_back_by && pipeline.held_back_by.kind !== 'link'
      ? pipeline.held_back_by.from : null;
  // Beside a straight way down stand its texts.
  const room = {left: BOX.width / 2 + 8, right: sideways ? BOX.width / 2 + 8 : 240,
                above: BOX.height / 2 + 8, below: BOX.height / 2 + 8};
  const left = Math.min(...points.map(({x}) => x)) - room.left;
  const right = Math.max(...points.map(({x}) => x)) + room.right;
  const top = Math.min(...points.map(({y}) => y)) - room.above;
  const bottom = Math.max(...points.map(({y}) => y)) + room.below;
  const mark = (link) => link === held.link && held.words;
  const said = held.link ? `; ${held.link.from} to ${held.link.to}: ${held.words}` : '';
  return svg('svg', {viewBox: `${left} ${top} ${right - left} ${bottom - top}`,
                     width: right - left, height: bottom - top, role: 'img',
                     'aria-label': `${links.length} links over ${depth} steps${said}`},
             links.map((link, i) => lineShape(link, lines[i], mark(link))),
             links.map((link, i) => labelShape(link, lines[i], mark(link), sideways, label)),
             [...places.keys()].map((name) => nodeShape(name, at(name), name === heldNode)));
}
