// SPDX-License-Identifier: Apache-2.0
// Elements from data, and as little change as possible in what is shown. All text comes in as text:
// nothing here reads markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== '') {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

// An element with attributes (null, undefined, false: without) and children: elements, texts, or
// lists of them.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Words of somebody else: their letters do not change the order of what stands beside them. A name
// stays on one line if it fits there.
export const named = (text) => el('bdi', {class: 'name'}, text);
export const told = (text) => el('bdi', {class: 'told'}, text);

// What a node is known by among its siblings: its kind and its data-key, or its number.
function identities(nodes) {
  const seen = new Map();
  return nodes.map((node) => {
    const key = `${node.nodeName} ${node.getAttribute?.('data-key') ?? ''}`;
    const number = seen.get(key) ?? 0;
    seen.set(key, number + 1);
    return `${number} ${key}`;
  });
}

// Makes `shown` equal to `fresh`, which is used up. What is the same stays the element that it was,
// with its focus and its place on the screen.
export function morph(shown, fresh) {
  if (shown.nodeType !== 1) {
    if (shown.data !== fresh.data) shown.data = fresh.data;
    return;
  }
  for (const {name} of [...shown.attributes]) {
    if (!fresh.hasAttribute(name)) shown.removeAttribute(name);
  }
  for (const {name, value} of [...fresh.attributes]) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  morphChildren(shown, [...fresh.childNodes]);
}

export function morphChildren(shown, wanted) {
  const wantedIds = identities(wanted);
  const keep = new Set(wantedIds);
  const old = new Map();
  const present = [...shown.childNodes];
  identities(present).forEach((id, i) => {
    if (keep.has(id)) old.set(id, present[i]);
    else present[i].remove();
  });
  let place = shown.firstChild;
  wanted.forEach((node, i) => {
    const found = old.get(wantedIds[i]);
    if (found) morph(found, node);
    const there = found ?? node;
    if (there === place) place = place.nextSibling;
    else shown.insertBefore(there, place);
  });
}

// A table with a head. `columns`: {title, number: right-aligned}; a row: {key, cells}. On a narrow
// screen each row becomes a card, so the roles are said and each cell has its title.
export function table(caption, columns, rows) {
  const head = columns.map((column) => el(
      'th', {scope: 'col', role: 'columnheader', class: column.number && 'number'}, column.title));
  const body = rows.map((row) => el('tr', {role: 'row', 'data-key': row.key}, row.cells.map(
      (cell, i) => i === 0
          ? el('th', {scope: 'row', role: 'rowheader', 'data-title': columns[i].title}, cell)
          : el('td', {role: 'cell', 'data-title': columns[i].title,
                      class: columns[i].number && 'number'}, el('span', {}, cell)))));
  return el('table', {role: 'table'}, el('caption', {}, caption),
            el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, head)),
            el('tbody', {role: 'rowgroup'}, body));
}

// A part, 0 to 1, as a bar beside the number that says the same.
export function bar(part) {
  const width = Math.round(100 * Math.min(Math.max(part || 0, 0), 1));
  return svg('svg', {class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none',
                     'aria-hidden': 'true'},
             svg('rect', {class: 'rail', width: 100, height: 8}),
             svg('rect', {class: 'done', width, height: 8}));
}

// What folds. Whether it is open is the reader's choice, once he has made one; what is not seen is
// not made.
const choices = new Map();

export function isOpen(key, byDefault) {
  return choices.get(key) ?? byDefault;
}

export function fold(key, byDefault, summary, body) {
  const open = isOpen(key, byDefault);
  return el('details', {'data-key': key, open}, el('summary', {}, summary), open && body());
}

// `redraw` is called after a choice.
export function listenToFolds(redraw) {
  document.addEventListener('click', (event) => {
    const details = event.target.closest?.('summary')?.parentNode;
    if (!details) return;
    event.preventDefault();
    choices.set(details.getAttribute('data-key'), !details.open);
    redraw();
  });
}
