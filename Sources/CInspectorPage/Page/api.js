// The gateway's API. A token, where the admin listener wants one, comes as a cookie: the server sets it for /?token=…

export class ApiError extends Error {
  constructor(status, detail, column) {
    super(detail);
    this.status = status;
    this.column = column;
  }
}

let whenUnknown = () => {};
export const onTokenNeeded = body => { whenUnknown = body; };

export async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the gateway does not answer");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) whenUnknown();
  let problem = {};
  try { problem = await answer.json(); } catch { /* not a problem document */ }
  const error = new ApiError(answer.status, problem.detail ?? path + ": " + answer.status, problem.column);
  error.errors = problem.errors;
  throw error;
}

export const get = async (path, options) => (await ask(path, options)).json();

export async function post(path, value, options) {
  const answer = await ask(path, {
    method: "POST", ...(value === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }), ...options,
  });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

export const remove = path => ask(path, { method: "DELETE" });

/** Server-sent events until `signal`: calls `take(type, data)` for each, `state(isOpen)` when the stream opens or breaks; tries again. */
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
    await new Promise(resolve => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 8000);
  }
}
