// Requests and responses that a break rule holds: let them go on, change them, or abort them.
import { button, dialog, duration, empty, field, make, table, toast } from "./dom.js";
import { get, post } from "./api.js";
import { link } from "./state.js";
import { readFields, writeFields } from "./fields.js";

export function breakpoints(main) {
  const box = make("div");
  let timer = 0;
  const filter = make("input", {
    name: "filter",
    "aria-label": "filter of the breakpoint",
    placeholder: "filter, as ~u /orders & ~m POST",
    spellcheck: "false",
  });
  const side = make("select", { "aria-label": "side" }, ["request", "response"].map((name) => make("option", name)));
  main.append(
    make("div.viewhead", make("h2", "Breakpoints")),
    make(
      "form.line",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await post("/v1/rules", {
              filter: filter.value.trim(),
              ware: "break",
              options: { on: side.value },
              for: "30m",
              reason: "breakpoint of the inspector",
            });
            toast("the breakpoint is set for 30 minutes");
            load();
          } catch (error) {
            toast((error.column ? `column ${error.column}: ` : "") + error.message);
          }
        },
      },
      filter,
      side,
      make("button.primary", { type: "submit" }, "set a breakpoint"),
    ),
    box,
  );

  async function load() {
    try {
      const { breaks } = await get("/v1/breaks");
      box.replaceChildren(
        breaks.length
          ? table(
            ["id", "held", "what", "since", ""],
            breaks.map(
              (item) => [
                String(item.id),
                item.side,
                make(
                  "a",
                  { href: link("requests", item.capture) },
                  [item.method, item.url].filter(Boolean).join(" ") || "request " + item.capture,
                ),
                item.since ? duration(Math.max(0, Date.now() - new Date(item.since))) : "",
                make(
                  "span.tools",
                  button("resume", () => act(item, "resume", {}), { "aria-label": "resume " + item.id }),
                  button("edit", () => edit(item), { "aria-label": "edit " + item.id }),
                  button("abort", () => act(item, "abort"), { "aria-label": "abort " + item.id }),
                ),
              ],
            ),
          )
          : empty(
            "Nothing is held",
            "Set a breakpoint; requests that its filter finds wait here until they are resumed, changed or aborted.",
          ),
      );
    } catch (error) {
      box.replaceChildren(
        empty(
          error.status === 404 ? "Breakpoints are not on" : "They cannot be shown",
          error.status === 404
            ? "Write admin.capture: {} in the configuration, or start with httpware inspect."
            : error.message,
        ),
      );
    }
    clearTimeout(timer);
    timer = setTimeout(load, 1000);
  }

  async function act(item, what, value) {
    try {
      await post(`/v1/breaks/${item.id}/${what}`, value);
    } catch (error) {
      toast(error.message);
    }
    load();
  }

  async function edit(item) {
    const isRequest = item.side === "request";
    let capture = null;
    try {
      capture = item.capture ? await get("/v1/captures/" + item.capture) : null;
    } catch { /* it is edited without its fields */ }
    const half = isRequest ? capture?.request : capture?.response, message = half?.client ?? half?.origin;
    const lines = writeFields(message?.headers ?? []);
    const method = make("input", { name: "method", value: item.method ?? capture?.method ?? "", size: 10 }),
      url = make("input", { name: "url", value: item.url ?? capture?.url ?? "" });
    const status = make("input", {
      name: "status",
      type: "number",
      min: 200,
      max: 599,
      value: item.status ?? capture?.status ?? 200,
    });
    const headers = make("textarea", { name: "headers", rows: 8, value: lines, spellcheck: "false" }),
      body = make("textarea", {
        name: "body",
        rows: 6,
        spellcheck: "false",
        placeholder: "empty: the content stays as it is",
      });
    const first = { method: method.value, url: url.value, status: status.value };
    dialog(`Change the ${item.side}`, [
      isRequest ? make("div.line", field("Method", method), field("URL", url)) : field("Status", status),
      field("Headers", headers, "A masked value that is left as it is stays what it was."),
      field("Body", body),
    ], async () => {
      const change = {};
      if (isRequest && method.value !== first.method) change.method = method.value;
      if (isRequest && url.value !== first.url) change.url = url.value;
      if (!isRequest && status.value !== first.status) change.status = Number(status.value);
      if (headers.value !== lines) change.headers = readFields(headers.value);
      if (body.value) change.body = body.value;
      await post(`/v1/breaks/${item.id}/resume`, change);
      load();
    }, "Resume");
  }

  load();
  return {
    leave() {
      clearTimeout(timer);
    },
    key(event) {
      if (event.key === "/") {
        filter.focus();
        return true;
      }
      return false;
    },
  };
}
