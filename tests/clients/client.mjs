// A client as others write one: graphql-ws, and `ws` where the protocol has to be broken on purpose.
//
//   node client.mjs SCENARIO '{"url": "ws://…", …}'
//
// Tells what happens as lines of JSON. A line on standard input lets a scenario that waits go on.
import { createInterface } from 'node:readline';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

const say = (told) => process.stdout.write(`${JSON.stringify(told)}\n`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const toldToGoOn = () => lines.next();

function connect({ url, params }, more = {}) {
  return createClient({
    url,
    webSocketImpl: WebSocket,
    connectionParams: params,
    retryAttempts: 0,
    ...more,
  });
}

// What a promise was rejected with: a close event, or the errors of an operation.
function refusal(found) {
  if (Array.isArray(found)) return { errors: found.map(({ message, extensions }) => ({ message, extensions })) };
  return { refused: found.code, reason: found.reason };
}

const scenarios = {
  // Each operation to its end, one after the other, on one socket.
  async run({ operations, ...options }) {
    const client = connect(options, { lazy: false });
    for (const operation of operations) {
      try {
        for await (const result of client.iterate(operation)) say(result);
        say({ complete: true });
      } catch (found) {
        say(refusal(found));
      }
    }
    await client.dispose();
  },

  // A subscription until it has so many results; then it is completed by us, and the socket stays.
  async follow({ operation, count, ...options }) {
    const client = connect(options, { lazy: false, on: { pong: () => say({ following: true }) } });
    let left = count;
    const socket = await new Promise((resolve) => client.on('connected', resolve));
    const results = client.iterate(operation);
    const first = results.next();
    // The answer to a ping comes behind all that was read before it.
    setImmediate(() => socket.send('{"type":"ping"}'));
    for (let next = await first; !next.done; next = await results.next()) {
      say(next.value);
      if (--left === 0) break;
    }
    await results.return();
    say({ left: true });
    await toldToGoOn();
    await client.dispose();
  },

  // The same, and come back whenever the socket is closed, with the number of the last event that has come.
  async resume({ query, session, until, ...options }) {
    let last = options.after;
    const client = connect(options, {
      retryAttempts: 10,
      retryWait: async () => {
        await toldToGoOn();
      },
      on: {
        connected: () => say({ connected: true }),
        closed: ({ code }) => say({ closed: code }),
      },
    });
    // Variables are written down anew for each subscribe message, and so is the number.
    const variables = {
      session,
      get after() {
        return last;
      },
    };
    for await (const { data, extensions } of client.iterate({ query, variables })) {
      last = data.sessionEvents.seq;
      say({ seq: last, data: data.sessionEvents.data, extensions });
      if (data.sessionEvents.data.label === until) break;
    }
    await client.dispose();
  },

  // Messages as they are, right or wrong, and what the connection is closed with.
  async raw({ url, protocols, messages, headers }) {
    const socket = new WebSocket(url, protocols, { headers });
    socket.on('open', () => messages.forEach((message) => socket.send(message)));
    socket.on('message', (data) => say(JSON.parse(data)));
    socket.on('error', ({ message }) => say({ error: message }));
    const [code, reason] = await new Promise((resolve) => socket.on('close', (...told) => resolve(told)));
    say({ closed: code, reason: String(reason) });
  },
};

const [scenario, options] = process.argv.slice(2);
await scenarios[scenario](JSON.parse(options));
process.exit(0);
