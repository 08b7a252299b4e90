// Rules for a while: wares that act on a running gateway without touching its file.
import { button, clock, dialog, duration, empty, field, make, table, toast } from "./dom.js";
import { get, post, remove } from "./api.js";

const edit = { rules: [{ find: "old", replace: "new" }] };
/** The options of a ware, as a beginning. */
const examples = {
  fault: { status: 503, ratio: "50%" },
  throttle: { preset: "3g" },
  break: { on: "request" },
  mock: { status: 200, body: "made by a rule\n" },
  rewrite: { path: { strip: "/v1" } },
  requestHeaders: { set: { "X-Rule": "yes" } },
  responseHeaders: { set: { "X-Rule": "yes" } },
  timeout: { total: "2s" },
  redirect: { to: "/elsewhere", status: 302 },
  errorPage: { body: "Sorry." },
  record: { file: "session" },
  replay: { file: "session" },
  rewriteBody: edit,
  rewriteRequestBody: edit,
  jsonTransform: { on: "response", set: { "/name": "new" } },
};

export function rules(main, start) {
  const box = make("div"), turn = { timer: 0 };
  main.append(
    make("div.viewhead", make("h2", "Rules for a while"), button("add a rule", () => add(""), { class: "primary" })),
    make(
      "p.quiet",
      "They act on requests that their filter finds, behind every ware that checks access and before the wares " +
        "that answer, and end by themselves. httpware rule save prints one for the file.",
    ),
    box,
  );

  async function load() {
    try {
      const { rules } = await get("/v1/rules");
      box.replaceChildren(
        rules.length
          ? table(
            ["id", "filter", "ware", "options", "reason", "until", "#hits", ""],
            rules.map((rule) => [
              String(rule.id),
              make("code", rule.filter || "all"),
              rule.ware,
              make("code", JSON.stringify(rule.options ?? {})),
              rule.reason ?? "",
              until(rule.until),
              rule.missed
                ? make("span", { title: "not acted on: " + rule.missedBecause }, rule.hits + ", missed " + rule.missed)
                : String(rule.hits),
              button("remove", async () => {
                try {
                  await remove("/v1/rules/" + rule.id);
                  load();
                } catch (error) {
                  toast(error.message);
                }
              }, { "aria-label": "remove rule " + rule.id }),
            ]),
          )
          : empty(
            "No rules are in force",
            "Add one to answer with a fault, slow requests down, hold them at a breakpoint, or change their headers.",
          ),
      );
    } catch (error) {
      box.replaceChildren(
        empty(
          error.status === 404 ? "Rules are not on" : "They cannot be shown",
          error.status === 404
            ? "Write admin.capture: {} in the configuration, or start with httpware inspect."
            : error.message,
        ),
      );
    }
    clearTimeout(turn.timer);
    turn.timer = setTimeout(load, 2000);
  }

  function until(text) {
    const left = new Date(text) - Date.now();
    return make(
      "span",
      { title: text },
      clock(text).slice(0, 8) + ", " + (left > 0 ? duration(left) + " left" : "over"),
    );
  }

  function add(filter) {
    const ware = make("select", {
      name: "ware",
      onchange: () => {
        options.value = JSON.stringify(examples[ware.value], null, 2);
      },
    }, Object.keys(examples).map((name) => make("option", name)));
    const text = make("input", {
      name: "filter",
      value: filter,
      spellcheck: "false",
      placeholder: "~d example.com & ~m POST",
    });
    const options = make("textarea", {
      name: "options",
      rows: 5,
      spellcheck: "false",
      value: JSON.stringify(examples.fault, null, 2),
    });
    const time = make("input", { name: "for", value: "10m", required: true, size: 6 }),
      count = make("input", { name: "count", type: "number", min: 1, size: 6 }),
      reason = make("input", { name: "reason", required: true, placeholder: "the reason, for other users" });
    dialog("Add a rule", [
      field("Ware", ware),
      field("Filter", text, "Empty for every request."),
      field("Options", options, "JSON, as the ware's options in the file."),
      make("div.line", field("For", time, "at most 24h"), field("Times at most", count)),
      field("Reason", reason),
    ], async () => {
      let value;
      try {
        value = options.value.trim() ? JSON.parse(options.value) : {};
      } catch (error) {
        throw new Error("the options are not JSON: " + error.message);
      }
      try {
        await post("/v1/rules", {
          filter: text.value.trim(),
          ware: ware.value,
          options: value,
          for: time.value.trim(),
          ...(count.value ? { count: Number(count.value) } : {}),
          reason: reason.value,
        });
      } catch (error) {
        if (error.column) throw new Error(`filter, column ${error.column}: ${error.message}`);
        throw error;
      }
      load();
    }, "Put in force");
  }

  load();
  if (start.parameters.has("filter")) add(start.parameters.get("filter"));
  return {
    leave() {
      clearTimeout(turn.timer);
    },
  };
}
