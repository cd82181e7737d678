// The one way to the server: every request carries the token in a header, nothing is sent anywhere else.

const KEY = 'quipu.token';
let token = null;

/** Takes the token, or the one-time code that is exchanged for it, out of the address; or asks another tab of the same page. */
export async function findToken() {
  const [, kind, said] = /^#(token|code)=([\w.~-]+)/.exec(location.hash) ?? [];
  // First of all: a reload or a bookmark must not hold it.
  if (said) history.replaceState(null, '', '#/now');
  if (kind === 'token') token = said;
  else token = (kind === 'code' ? await exchange(said) : null) ?? recall() ?? (await askOthers());
  keep();
  answerOthers();
  return token !== null;
}

/** Gives up the code for the token. It works once; a code that is used or too old gives nothing. */
async function exchange(code) {
  try {
    const response = await fetch('/api/code', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }),
    });
    return response.ok ? (await response.json()).token : null;
  } catch {
    return null;
  }
}

function keep() {
  try { if (token) sessionStorage.setItem(KEY, token); } catch { /* kept in memory then */ }
}

function recall() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

function askOthers() {
  if (typeof BroadcastChannel === 'undefined') return Promise.resolve(null);
  return new Promise((done) => {
    const channel = new BroadcastChannel(KEY);
    const end = (found) => { channel.close(); done(found); };
    channel.onmessage = (event) => { if (event.data?.token) end(event.data.token); };
    channel.postMessage({ ask: true });
    setTimeout(() => end(null), 250);
  });
}

function answerOthers() {
  if (typeof BroadcastChannel === 'undefined') return;
  const channel = new BroadcastChannel(KEY);
  channel.onmessage = (event) => { if (event.data?.ask && token) channel.postMessage({ token }); };
}

export class Refused extends Error {
  constructor(told, status) {
    super(told.error ?? `status ${status}`);
    this.remedy = told.do;
    this.rule = told.rule;
    this.status = status;
  }
}

async function ask(address, options = {}) {
  let response;
  try {
    response = await fetch(address, { ...options, headers: { authorization: `Bearer ${token}`, ...options.headers } });
  } catch {
    throw new Refused({ error: 'offline' }, 0);
  }
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(told, response.status);
  return told;
}

export function get(path, parameters = {}, options = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const query = new URLSearchParams(given).toString();
  return ask(`/api/${path}${query ? `?${query}` : ''}`, options);
}

/** The bytes of a picture. An address alone would not do: it cannot carry the token. */
export async function getPicture(path, at) {
  const response = await fetch(`/api/picture?${new URLSearchParams(at ? { path, at } : { path })}`, { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Refused({}, response.status);
  return response.blob();
}

export const post = (path, given = {}, options = {}) => ask(`/api/${path}`, { ...options, method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(given) });

/** Calls an operation of the table, as a person would on the command line. */
export function call(operation, given = {}, unit = undefined, options = {}) {
  return post('call', { operation, arguments: given, unit }, options);
}

/** Hears what happens, for as long as the page is open. `EventSource` cannot send a header, so the stream is read by hand. */
export function listen(onNews, onState) {
  let wait = 500;
  const hear = async () => {
    try {
      const response = await fetch('/api/events', { headers: { authorization: `Bearer ${token}` } });
      if (!response.ok) throw new Refused({}, response.status);
      onState('live');
      wait = 500;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let left = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (left + value).split('\n\n');
        left = parts.pop();
        for (const part of parts) if (part.startsWith('data: ')) onNews(JSON.parse(part.slice(6)));
      }
    } catch (error) {
      if (error.status === 401) return onState('refused');
    }
    onState('offline');
    setTimeout(hear, wait);
    wait = Math.min(wait * 2, 8000);
  };
  hear();
}
