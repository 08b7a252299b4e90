// Routes, with a question which one takes a URL, and the configuration as it is in force.
import { button, empty, facts, fullTime, make, table } from "./dom.js";
import { get, post } from "./api.js";
import { link } from "./state.js";

const place = (at) => {
  const found = /^(.*):(\d+):(\d+)$/.exec(at ?? "");
  return found ? make("a.quiet", { href: link("configuration", null, { file: found[1], line: found[2] }) }, at) : at;
};

export function routes(main) {
  const box = make("div"), answer = make("div.explanation", { "aria-live": "polite" });
  const method = make("input", { name: "method", value: "GET", size: 8, "aria-label": "method" }),
    url = make("input", {
      name: "url",
      required: true,
      "aria-label": "URL",
      placeholder: "http://localhost:8080/orders/7",
      spellcheck: "false",
    });
  main.append(
    make("div.viewhead", make("h2", "Routes")),
    make(
      "form.line",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            answer.replaceChildren(
              explained(await post("/v1/explain", { method: method.value.trim(), url: url.value.trim() })),
            );
          } catch (error) {
            answer.replaceChildren(make("p.mistake", error.message));
          }
        },
      },
      method,
      url,
      make("button.primary", { type: "submit" }, "explain"),
    ),
    answer,
    box,
  );
  (async () => {
    try {
      const { listeners } = await get("/v1/routes");
      box.replaceChildren(
        ...listeners.map((listener) =>
          make(
            "section.card",
            make(
              "h3",
              listener.name,
              make("span.quiet", `  ${listener.mode}, ${listener.address}  `),
              place(listener.at),
            ),
            listener.routes.length
              ? table(
                ["route", "matches", "service", "wares; ? on a condition", "written at"],
                listener.routes.map((route) => [
                  route.name,
                  route.match.map((item) => item.key + " " + item.value).join(", ") || "everything",
                  route.service ?? "none",
                  chain(route.chain),
                  place(route.at),
                ]),
              )
              : make("p.quiet", "no routes"),
          )
        ),
      );
    } catch (error) {
      box.replaceChildren(empty("They cannot be shown", error.message));
    }
  })();
  return {};
}

const chain = (chain) =>
  make(
    "span.chain",
    chain.middlewares.concat(chain.postwares).map((ware) =>
      make("code", { title: ware.at }, ware.label + (ware.conditional ? "?" : ""))
    ),
  );

/** The answer of /v1/explain: which route takes it, and what each ware would do. */
function explained(value) {
  const steps = value.middlewares.map(
    (step) => [
      step.label,
      make("span.badge." + ({ passed: "s2", answers: "s3", failed: "s5" }[step.decision] ?? "s0"), step.decision),
      [
        step.reason,
        step.target,
        ...(step.added ?? []).map((line) => "+ " + line),
        ...(step.removed ?? []).map((line) => "− " + line),
      ].filter(Boolean).join("\n"),
      step.if ?? "",
      place(step.at),
    ],
  );
  const answer = value.answer &&
    `${value.answer.status} by ${value.answer.by}` + (value.answer.because ? ": " + value.answer.because : "");
  return make(
    "section.card",
    facts([
      ["listener", value.listener.name],
      ["route", value.route ? [value.route.name, " ", place(value.route.at)] : "none"],
      ["service", value.service?.name],
      ["sent to", value.upstream?.to],
      ["answer", answer],
      ["tunnel", value.interception],
    ]),
    value.passed.length
      ? make(
        "details",
        make("summary", `${value.passed.length} routes before it do not match`),
        table(["route", "because", "written at"], value.passed.map((item) => [item.name, item.reason, place(item.at)])),
      )
      : null,
    steps.length ? table(["ware", "decision", "effect", "if", "written at"], steps) : null,
    value.postwares.length
      ? table(
        ["postware", "decision", "if", "written at"],
        value.postwares.map((step) => [step.label, step.decision, step.if ?? "", place(step.at)]),
      )
      : null,
  );
}

export function configuration(main, start) {
  const box = make("div"), result = make("div", { role: "alert" });
  main.append(
    make("div.viewhead", make("h2", "Configuration"), button("reload", reload, { class: "primary" })),
    result,
    box,
  );
  let wanted = start.parameters;

  async function reload() {
    try {
      const answer = await post("/v1/reload");
      result.replaceChildren(
        make(
          "p.good",
          `The configuration was read again and is in force: ${answer.changes} ${
            answer.changes === 1 ? "change" : "changes"
          }.`,
        ),
        ...answer.warnings.map((text) => make("p.note", text)),
      );
    } catch (error) {
      result.replaceChildren(
        make("p.mistake", error.message),
        ...(error.errors ?? []).map((text) => make("pre.mistake", linked(text))),
      );
    }
    load();
  }

  /** `file:line:column: …` leads to the line. */
  function linked(text) {
    const found = /^(.*?:\d+:\d+)(: .*)$/s.exec(text);
    return found ? [place(found[1]), found[2]] : text;
  }

  async function load() {
    try {
      const { values, lastReload } = await get("/v1/config");
      let texts = [];
      try {
        texts = (await get("/v1/config/text")).files;
      } catch { /* only values */ }
      const parts = [
        make(
          "p.quiet",
          `${lastReload.success ? "loaded" : "refused"} ${fullTime(lastReload.time)}`,
          lastReload.reloads ? `, read again ${lastReload.reloads} times` : "",
        ),
      ];
      if (lastReload.error) parts.push(make("pre.mistake", lastReload.error));
      for (const file of texts) parts.push(make("h3", file.name), source(file));
      parts.push(
        make(
          "details",
          { open: !texts.length },
          make("summary", "values in force, with what was not written"),
          table(
            ["path", "value", "written at"],
            values.map(
              (value) => [
                make("code", value.path),
                make(value.secret ? "span.masked" : "span", value.value),
                place(value.at),
              ],
            ),
          ),
        ),
      );
      box.replaceChildren(...parts);
      box.querySelector(".marked")?.scrollIntoView({ block: "center" });
    } catch (error) {
      box.replaceChildren(empty("It cannot be shown", error.message));
    }
  }

  function source(file) {
    const line = wanted.get("file") === file.name || files1(wanted, file) ? Number(wanted.get("line")) : 0;
    return make(
      "ol.source",
      file.lines.map((text, index) =>
        make(
          "li" + (index + 1 === line ? ".marked" : ""),
          { id: index + 1 === line ? "line" : null },
          make("code", text || " "),
        )
      ),
    );
  }
  const files1 = (wanted, file) => wanted.get("file") && file.name.endsWith("/" + wanted.get("file"));

  load();
  return {
    update(now) {
      wanted = now.parameters;
      load();
    },
  };
}
