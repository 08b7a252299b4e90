// The gateway's API. If the admin listener wants a token, the page has a session: a value of its own, in the storage of
// its origin, which pages of other ports cannot read. A cookie would go to all ports of the host.

export class ApiError extends Error {
  constructor(status, detail, column) {
    super(detail);
    this.status = status;
    this.column = column;
  }
}

const place = "httpware-session";
let own = null;

function session() {
  try {
    return localStorage.getItem(place);
  } catch {
    return own;
  }
}

function keep(value) {
  own = value;
  try {
    if (value) localStorage.setItem(place, value);
    else localStorage.removeItem(place);
  } catch { /* kept until the page is closed */ }
}

/** Begins a session with the token, or with the code that a URL had. */
export async function begin(proof) {
  let answer;
  try {
    answer = await fetch("/v1/session", {
      method: "POST",
      cache: "no-store",
      headers: { Authorization: "Bearer " + proof },
    });
  } catch {
    throw new ApiError(0, "the gateway does not answer, or that is not its token");
  }
  if (!answer.ok) {
    throw new ApiError(
      answer.status,
      answer.status === 401 ? "that is not its token" : "the gateway answers " + answer.status,
    );
  }
  keep((await answer.json()).session);
}

let whenUnknown = () => {};
export const onTokenNeeded = (body) => {
  whenUnknown = body;
};

export async function ask(path, options) {
  let answer;
  const known = session();
  try {
    answer = await fetch(path, {
      cache: "no-store",
      ...options,
      headers: { ...options?.headers, ...(known ? { Authorization: "Bearer " + known } : {}) },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the gateway does not answer");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    // Another tab may have a newer session.
    if (known && session() === known) keep(null);
    whenUnknown();
  }
  let problem = {};
  try {
    problem = await answer.json();
  } catch { /* not a problem document */ }
  const error = new ApiError(answer.status, problem.detail ?? path + ": " + answer.status, problem.column);
  error.errors = problem.errors;
  throw error;
}

export const get = async (path, options) => (await ask(path, options)).json();

export async function post(path, value, options) {
  const answer = await ask(path, {
    method: "POST",
    ...(value === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }),
    ...options,
  });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

export const remove = (path, options) => ask(path, { ...options, method: "DELETE" });

/**
 * Reads server-sent events until `signal`, and tries again when the stream breaks. Calls `take(type, data)` for each
 * event, and `state(isOpen)` when the stream opens or breaks.
 */
export async function follow(path, signal, take, state) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const answer = await ask(path, { signal });
      state(true);
      pause = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest += value;
        const events = rest.split("\n\n");
        rest = events.pop();
        for (const event of events) {
          let type = "message", data = "";
          for (const line of event.split("\n")) {
            if (line.startsWith("event: ")) type = line.slice(7);
            else if (line.startsWith("data: ")) data += line.slice(6);
          }
          if (data) take(type, JSON.parse(data));
        }
      }
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 400 || error.status === 404) return;
    }
    if (signal.aborted) return;
    state(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 8000);
  }
}
