// The gateway's listeners, and the views that have anything to show.
import { get } from "./api.js";

/** The listeners with their mode, address and whether they speak TLS; empty if the gateway does not say. */
export async function listeners() {
  try {
    const [{ listeners }, { values }] = await Promise.all([get("/v1/routes"), get("/v1/config")]);
    return listeners.map(({ name, mode, address, routes }) => ({
      name,
      mode,
      address,
      routes: routes.length,
      isTls: values.some(({ path }) => path.startsWith(`listeners.${name}.tls`)),
    }));
  } catch {
    return [];
  }
}

/** An address that a client on this machine can use. */
const reachable = (address) => address.replace(/^(0\.0\.0\.0|\[::\]|\*)(?=:)/, "127.0.0.1");

/** The command that sends a request through a listener. */
export function sample({ mode, address, isTls }) {
  if (address.startsWith("/") || address.startsWith("unix:")) {
    return `curl --unix-socket ${address.replace(/^unix:/, "")} http://localhost/`;
  }
  const place = reachable(address);
  if (mode === "forward") return `curl -x ${isTls ? "https" : "http"}://${place} http://example.com/`;
  return `curl ${isTls ? "-k https" : "http"}://${place}/`;
}

/** The views that have nothing to show: those of what the configuration does not name. */
export async function emptyViews() {
  const names = {
    questions: isWithoutQuestions,
    services: isWithoutServices,
    cache: isWithoutCache,
    tokens: isWithoutTokens,
    routes: isWithoutRoutes,
  };
  const found = await Promise.all(Object.values(names).map((isEmpty) => isEmpty().catch(() => false)));
  return Object.keys(names).filter((_, place) => found[place]);
}

async function isWithoutQuestions() {
  const [{ questions }, { approvals }] = await Promise.all([get("/v1/questions"), get("/v1/approvals")]);
  return !questions.length && !approvals.length;
}

async function isWithoutServices() {
  const { services, discovery } = await get("/v1/services");
  return !services.length && !discovery;
}

async function isWithoutCache() {
  const { stores, routes } = await get("/v1/cache");
  return !routes.length && stores.every(({ responses }) => !responses);
}

async function isWithoutTokens() {
  const [{ credentials }, { holds }] = await Promise.all([get("/v1/credentials"), get("/v1/holds")]);
  return !credentials.length && !holds.length;
}

/** A proxy for debugging has one route, which it made itself. */
async function isWithoutRoutes() {
  const { listeners } = await get("/v1/routes");
  const routes = listeners.flatMap((listener) => listener.routes);
  return routes.length < 2 && listeners.every(({ mode }) => mode === "forward");
}
