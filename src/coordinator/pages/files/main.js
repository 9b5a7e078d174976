// SPDX-License-Identifier: Apache-2.0
// Asks for /status.json again and again while the page is seen, shows what it tells, and says when
// that is out of date. It only reads.
import {el, listenToFolds, morphChildren} from './dom.js';
import {nodes} from './nodes.js';
import {overview, verdict} from './overview.js';
import {ended, repairs} from './repairs.js';
import {queue, recoveries} from './recoveries.js';
import {shape} from './words.js';

const PAUSE_MS = 2000;      // between an answer and the next question
const PATIENCE_MS = 10000;  // for an answer
const STALE_MS = 10000;     // an answer that is older is not the present any more

const SECTIONS = {overview, recoveries, repairs, queue, nodes, ended};

let answer = null;   // the latest that could be shown
let newAt = null;    // when it came, by performance.now(): no clock that somebody sets
let trouble = '';    // why the latest question failed
let asking = false;
let timer = 0;

function ageMs() {
  return newAt === null ? 0 : performance.now() - newAt;
}

function whyLost() {
  if (trouble) return trouble;
  return ageMs() > STALE_MS ? 'The coordinator gives no new answer.' : '';
}

// Changes what is shown, and leaves the reader where he is.
function put(id, content) {
  const wanted = el('div', {}, content);
  morphChildren(document.getElementById(id), [...wanted.childNodes]);
}

function keepingFocus(change) {
  const focused = document.activeElement;
  change();
  if (focused !== document.activeElement && focused?.isConnected) {
    focused.focus({preventScroll: true});
  }
}

function showVerdict() {
  const lost = whyLost();
  put('verdict', verdict(answer, ageMs() / 1000, lost));
  document.documentElement.toggleAttribute('data-lost', lost !== '');
  const word = lost ? 'out of date' : answer?.state ?? 'waiting';
  const news = `ECPipe is ${word}`;
  const line = document.getElementById('news');
  if (line.textContent !== news) line.textContent = news;
  const title = `${lost ? '?' : shape(word)} ${word} · ECPipe`;
  if (document.title !== title) document.title = title;
}

function show() {
  if (answer) {
    keepingFocus(() => {
      for (const [id, view] of Object.entries(SECTIONS)) put(id, view(answer));
      put('foot', `ECPipe ${answer.version}. This page only shows; the command ecpipe changes ` +
          'things. Rates are of the last seconds, times are those of this browser.');
    });
  }
  showVerdict();
}

// An answer that cannot be shown leaves the one before on the screen.
function take(told) {
  const before = answer;
  answer = told;
  try {
    show();
  } catch (error) {
    answer = before;
    throw new Error(`This page cannot show the answer (${error.message}); load it again.`);
  }
  if (before?.unix_ms !== told.unix_ms) newAt = performance.now();
}

async function askOnce() {
  let reply;
  try {
    reply = await fetch('status.json', {cache: 'no-store',
                                        signal: AbortSignal.timeout(PATIENCE_MS)});
  } catch (error) {
    throw new Error(error.name === 'TimeoutError'
        ? `The coordinator has not answered within ${PATIENCE_MS / 1000} s.`
        : 'The coordinator cannot be reached.');
  }
  if (!reply.ok) {
    throw new Error(`The coordinator has answered ${reply.status}: ` +
        `${(await reply.text()).slice(0, 200)}`);
  }
  take(await reply.json());
}

async function ask() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    await askOnce();
    trouble = '';
  } catch (error) {
    trouble = error.message;
  }
  asking = false;
  showVerdict();
  if (!document.hidden) timer = setTimeout(ask, PAUSE_MS);
}

listenToFolds(() => show());
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) ask();
});
setInterval(() => {
  if (!document.hidden) showVerdict();
}, 1000);
ask();
