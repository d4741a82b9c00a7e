// The JavaScript SDKs, unmodified, for checks that are written once, in Python: a command a line in, an answer a line out, in
// whatever order they end.
//
//     {"id": 1, "sdk": "stripe", "client": {..}, "with": {..}}
//     {"id": 1, "ok": ..}
//     {"id": 1, "error": {"type", "status", "code", "message"}}    one of the SDK's own errors
//     {"id": 1, "broken": "TypeError: .."}                         anything else: nothing that its users could expect

const { createInterface } = require("node:readline");
const { Client } = require("@googlemaps/google-maps-services-js");
const Stripe = require("stripe");
const twilio = require("twilio");

const google = {
  make: () => new Client({}),
  call: async (client, { method, ...request }) => (await client[method](request)).data.results,
  isError: (error) => error.isAxiosError,
  status: (error) => error.response?.status,
};

const stripe = {
  make: ({ key, ...config }) => new Stripe(key, config),
  async call(client, { params, options }) {
    const intent = await client.paymentIntents.create(params, options);
    return [intent.id, intent.lastResponse.headers];
  },
  isError: (error) => error instanceof Stripe.errors.StripeError,
  status: (error) => error.statusCode,
};

const messages = {
  make({ account, token, url, headers, ...options }) {
    const httpClient = new twilio.RequestClient(options);
    Object.assign(httpClient.axios.defaults.headers.post, headers);
    const client = twilio(account, token, { httpClient });
    client.api.baseUrl = url;
    return client;
  },
  async call(client, params) {
    const message = await client.messages.create(params);
    return [message.sid, client.httpClient.lastResponse.headers];
  },
  isError: (error) => error instanceof twilio.RestException || error.isAxiosError,
  status: (error) => error.status,
};

const sdks = { google, stripe, twilio: messages };
const clients = new Map();

// A client is kept for as long as its user would keep it, with its connections.
function clientOf(name, config) {
  const known = `${name} ${JSON.stringify(config)}`;
  if (!clients.has(known)) clients.set(known, sdks[name].make(config));
  return clients.get(known);
}

async function answer({ sdk: name, client, with: given }) {
  const sdk = sdks[name];
  try {
    return { ok: await sdk.call(clientOf(name, client), given) };
  } catch (error) {
    if (!sdk.isError(error)) return { broken: String(error?.stack ?? error) };
    const { type, constructor, code, message } = error;
    return { error: { type: type ?? constructor.name, status: sdk.status(error), code, message } };
  }
}

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const { id, ...command } = JSON.parse(line);
    console.log(JSON.stringify({ id, ...(await answer(command)) }));
  })
  .on("close", () => process.exit());
