// One request: its fields on both sides of the chain, content, messages, times, and what can be done with it.
import {
  button,
  bytes,
  clock,
  copy,
  dialog,
  duration,
  empty,
  facts,
  field,
  fullTime,
  make,
  statusClass,
  table,
  toast,
} from "./dom.js";
import { ask, get, post } from "./api.js";
import { choices, link } from "./state.js";
import { waterfall } from "./waterfall.js";
import { showContent } from "./content.js";
import { prettyJson } from "./parse.js";
import { formats, isMasked, variables } from "./copyas.js";

const names = {
  headers: "Headers",
  request: "Request",
  response: "Response",
  messages: "Messages",
  timing: "Timing",
  connection: "Connection",
  notes: "Notes",
};

export class Detail {
  constructor(actions) {
    this.actions = actions;
    this.id = null;
    this.tab = "headers";
    this.capture = null;
    this.record = null;
    this.turn = 0;
    this.title = make("h2");
    this.tools = make("div.tools");
    this.tabs = make("div.tabs", {
      role: "tablist",
      "aria-label": "parts of the request",
      onkeydown: (event) => this.moveTab(event),
    });
    this.body = make("div.part", { role: "tabpanel", tabindex: 0 });
    const handle = make("div.handle", {
      role: "separator",
      "aria-orientation": "vertical",
      "aria-label": "width of the detail",
      tabindex: 0,
      onpointerdown: (event) => this.drag(event),
      onkeydown: (event) => this.resize(event),
    });
    this.element = make(
      "section.detail",
      { hidden: true, "aria-label": "request" },
      handle,
      make("div.inner", make("div.detailhead", this.title, this.tools), this.tabs, this.body),
    );
    this.setWidth(choices.read("width", 52));
  }

  setWidth(percent) {
    this.width = Math.max(25, Math.min(80, percent));
    this.element.style.setProperty("--width", this.width + "%");
  }

  drag(event) {
    const handle = event.target, parent = this.element.parentElement.getBoundingClientRect();
    handle.setPointerCapture(event.pointerId);
    const move = (event) => this.setWidth((parent.right - event.clientX) / parent.width * 100);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => {
      handle.removeEventListener("pointermove", move);
      choices.write("width", this.width);
    }, { once: true });
  }

  resize(event) {
    const step = { ArrowLeft: 3, ArrowRight: -3 }[event.key];
    if (!step) return;
    event.stopPropagation();
    this.setWidth(this.width + step);
    choices.write("width", this.width);
  }

  leave() {
    this.turn += 1;
    clearTimeout(this.timer);
  }

  show(id, tab) {
    const isNew = id !== this.id;
    const wanted = tab && names[tab] ? tab : "headers";
    if (!isNew && wanted === this.tab) return;
    this.tab = wanted;
    this.id = id;
    this.element.hidden = id === null;
    if (id === null) {
      this.leave();
      return;
    }
    if (isNew) {
      this.capture = null;
      this.load();
    } else this.draw();
  }

  /** Shows the capture again when it changes, if it is still under way: at most four times a second. */
  refresh() {
    if (!this.id || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.load();
    }, 250);
  }

  async load() {
    const own = ++this.turn;
    if (this.record && this.record.id === this.id) {
      this.capture = { ...fromRecord(this.record) };
      return this.draw();
    }
    try {
      const capture = await get("/v1/captures/" + encodeURIComponent(this.id));
      if (own !== this.turn) return;
      const before = this.capture;
      this.capture = capture;
      // Content on the screen is drawn again only if it has changed.
      if (before && before.state === "ended" && (this.tab === "request" || this.tab === "response")) {
        return this.drawHead();
      }
      this.draw();
    } catch (error) {
      if (own !== this.turn || error.name === "AbortError") return;
      this.title.textContent = "Request " + this.id;
      this.tools.replaceChildren(button("close", () => this.actions.close(), { "aria-label": "close" }));
      this.tabs.replaceChildren();
      this.body.replaceChildren(
        empty(
          error.status === 404 ? "It is not kept any more" : "It cannot be shown",
          error.status === 404
            ? "Captures are bounded in bytes: the oldest go first. Pin a request to keep it longer."
            : error.message,
        ),
      );
    }
  }

  drawHead() {
    const capture = this.capture;
    this.title.replaceChildren(
      make("span.method", capture.method),
      " ",
      make("span.url", { title: capture.url }, capture.url),
      " ",
      make(
        "span.badge." + statusClass(capture),
        capture.status
          ? String(capture.status)
          : capture.state === "open"
          ? "under way"
          : capture.fault ?? "no response",
      ),
    );
    const menu = make(
      "details.menu",
      make("summary", { role: "button" }, "copy"),
      make(
        "div",
        { role: "menu" },
        Object.entries(formats).map(([name, write]) =>
          make("button", {
            type: "button",
            role: "menuitem",
            onclick: () => {
              menu.open = false;
              this.copyAs(name, write);
            },
          }, name)
        ),
      ),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        event.stopPropagation();
        menu.open = false;
        menu.firstChild.focus();
      }
    });
    const isWhole = !capture.isRecord;
    this.tools.replaceChildren(...[
      isWhole && button("edit and send again", () => this.edit(), { "aria-label": "edit and send again" }),
      isWhole && menu,
      isWhole && button("compare", () => this.actions.compare(this.id), { "aria-label": "compare" }),
      isWhole && button(capture.pinned ? "unpin" : "pin", () => this.pin()),
      isWhole && make("a.button", { href: link("rules", null, { filter: ruleFilter(capture) }) }, "rule"),
      button("close", () => this.actions.close(), { "aria-label": "close" }),
    ].filter(Boolean));
  }

  draw() {
    const capture = this.capture;
    if (!capture) return;
    this.drawHead();
    const shown = Object.keys(names).filter((name) =>
      capture.isRecord
        ? name === "timing" || name === "connection"
        : name !== "messages" || capture.messages > 0 || capture.kind !== "http"
    );
    if (!shown.includes(this.tab)) this.tab = shown[0];
    this.tabs.replaceChildren(...shown.map((name) =>
      make(
        "button",
        {
          type: "button",
          role: "tab",
          id: "tab-" + name,
          "aria-selected": String(name === this.tab),
          tabindex: name === this.tab ? 0 : -1,
          onclick: () => this.actions.tab(name),
        },
        names[name],
        name === "messages" ? make("span.count", String(capture.messages)) : null,
      )
    ));
    this.body.setAttribute("aria-labelledby", "tab-" + this.tab);
    const top = this.body.dataset.part === this.tab + this.id ? this.body.scrollTop : 0;
    this.body.dataset.part = this.tab + this.id;
    this[this.tab](capture);
    this.body.scrollTop = top;
  }

  moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    const tabs = [...this.tabs.children], now = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const next = tabs[(now + step + tabs.length) % tabs.length];
    next.click();
    requestAnimationFrame(() => document.getElementById(next.id)?.focus());
  }

  // The parts

  headers(capture) {
    const record = capture.record;
    this.body.replaceChildren(
      make("h3", "Request"),
      summary(capture),
      fieldTable(
        capture.request.client,
        capture.request.origin,
        edits(record, "request"),
        "the client sent",
        "the origin server got",
      ),
      make("h3", "Response"),
      capture.response.client || capture.response.origin
        ? fieldTable(
          capture.response.origin,
          capture.response.client,
          edits(record, "response"),
          "the origin server sent",
          "the client got",
        )
        : make(
          "p.quiet",
          capture.state === "open"
            ? "There is none yet."
            : "There was none" + (capture.fault ? ": " + capture.fault : "") + ".",
        ),
    );
  }

  request(capture) {
    this.content(capture, "request");
  }
  response(capture) {
    this.content(capture, "response");
  }

  async content(capture, half) {
    const own = this.turn, sides = capture[half];
    const box = make("div");
    this.body.replaceChildren(box);
    const hasBoth = sides.client && sides.origin && sides.client.content.size + sides.origin.content.size > 0 &&
      (sides.client.content.sha256 !== sides.origin.content.sha256 ||
        sides.client.content.size !== sides.origin.content.size);
    let side = sides.client ? "client" : "origin";
    const draw = async (isRaw) => {
      const message = sides[side];
      if (!message || !message.content.size) {
        return box.replaceChildren(empty("No content", message ? null : "There is no such message."));
      }
      try {
        const answer = await ask(`/v1/captures/${capture.id}/${half}/content?side=${side}${isRaw ? "&raw=true" : ""}`);
        const data = new Uint8Array(await answer.arrayBuffer());
        if (own !== this.turn) return;
        const choice = hasBoth
          ? make(
            "label",
            "side ",
            make(
              "select",
              {
                onchange: (event) => {
                  side = event.target.value;
                  draw(isRaw);
                },
              },
              [["client", half === "request" ? "as the client sent it" : "as the client got it"], [
                "origin",
                half === "request" ? "as the origin server got it" : "as the origin server sent it",
              ]].map(([value, text]) => make("option", { value, selected: value === side }, text)),
            ),
          )
          : null;
        showContent(box, {
          data,
          fields: message.headers,
          content: message.content,
          isOpen: capture.state === "open",
          isRaw,
          name: "content-" + capture.id + "-" + half,
          choice,
          raw: draw,
        });
      } catch (error) {
        if (error.name !== "AbortError") box.replaceChildren(empty("The content cannot be shown", error.message));
      }
    };
    await draw(false);
  }

  async messages(capture) {
    const own = this.turn;
    try {
      const { messages } = await get(`/v1/captures/${capture.id}/messages`);
      if (own !== this.turn) return;
      const shown = messages.slice(-2000);
      const isAtEnd = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < 40;
      const heads = ["time", "", "#size", "message"];
      this.body.replaceChildren(
        messages.length > shown.length
          ? make("p.note", `The last ${shown.length} of ${messages.length} are shown.`)
          : "",
        messages.length
          ? table(heads, shown.map((message, place) => messageRow(message, place)))
          : empty("No messages yet"),
      );
      if (isAtEnd && capture.state === "open") this.body.scrollTop = this.body.scrollHeight;
    } catch (error) {
      if (error.name !== "AbortError") this.body.replaceChildren(empty("The messages cannot be shown", error.message));
    }
  }

  timing(capture) {
    const record = capture.record;
    this.body.replaceChildren(
      record ? waterfall(record) : empty(
        capture.state === "open" ? "Under way" : "No record",
        capture.state === "open"
          ? "The steps of the wares are shown when the request has ended."
          : "An imported request has no record of wares.",
      ),
    );
  }

  connection(capture) {
    const record = capture.record ?? {}, tunnel = record.tunnel, tls = capture.tls ?? {};
    this.body.replaceChildren(
      make("h3", "Client"),
      facts([["address", capture.client ?? record.client], ["listener", capture.listener], [
        "protocol",
        capture.version ?? record.protocol,
      ], [
        "passes unread",
        {
          notListed: "intercept.hosts does not list the host",
          excepted: "intercept.except lists the host",
          pinned: "the client refused the certificate for the host",
          opaque: "the client speaks neither TLS nor HTTP",
        }[record.unread] ?? record.unread,
      ], [
        "tunnel",
        tunnel &&
        tunnel.host + ":" + tunnel.port + (tunnel.address ? " at " + tunnel.address : "") +
          (tunnel.principal ? ", opened by " + tunnel.principal : ""),
      ], ...tlsFacts(tls.client)]),
      make("h3", "Origin server"),
      record.attempts || capture.server
        ? facts([
          ["address", capture.server ?? record.endpoint],
          ["service", capture.service],
          ["attempts", record.attempts],
          ["connection", record.attempts ? record.reused ? "reused" : "new" : null],
          ...tlsFacts(tls.server),
        ])
        : make("p.quiet", "It was not asked."),
      make("h3", "Exchange"),
      facts([
        ["begun", fullTime(capture.time)],
        ["duration", duration(capture.duration)],
        ["route", capture.route],
        ["response made by", record.responder],
        ["cache", record.cache],
        ["end", record.end],
        ["fault", record.fault],
        ["reason", record.reason],
        ["id", record.exchange ?? capture.id],
        [
          "sent again from",
          capture.replayOf
            ? make("a", { href: link("requests", capture.replayOf) }, "request " + capture.replayOf)
            : null,
        ],
        ["rules", capture.rules?.length ? capture.rules.join(", ") : null],
      ]),
    );
  }

  notes(capture) {
    const text = make("textarea", { name: "comment", rows: 4, maxlength: 4096, value: capture.comment ?? "" });
    this.body.replaceChildren(make(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await post(`/v1/captures/${capture.id}/comment`, { comment: text.value });
            toast("comment kept");
            this.actions.changed({ id: this.id, comment: text.value });
          } catch (error) {
            toast(error.message);
          }
        },
      },
      field("Comment", text, "It is kept with the request, and ~comment finds it."),
      make("button.primary", { type: "submit" }, "Keep"),
    ));
  }

  // Actions

  async pin() {
    try {
      const pinned = !this.capture.pinned;
      await post(`/v1/captures/${this.id}/pin`, { pinned });
      this.capture.pinned = pinned;
      this.actions.changed({ id: this.id, pinned });
      this.drawHead();
    } catch (error) {
      toast(error.message);
    }
  }

  async body_() {
    const content = this.capture.request.client?.content;
    if (!content?.size) return new Uint8Array();
    return new Uint8Array(await (await ask(`/v1/captures/${this.id}/request/content?raw=true`)).arrayBuffer());
  }

  async copyAs(name, write) {
    try {
      if (name === "HAR") {
        return copy(await (await ask("/v1/har?filter=" + encodeURIComponent("~id " + this.id))).text(), name);
      }
      const text = write(this.capture, await this.body_()), names = variables(text);
      await copy(text, names.length ? name + ", which reads " + names.join(" and ") + "," : name);
    } catch (error) {
      toast(error.message);
    }
  }

  copyCurl() {
    if (this.capture && !this.capture.isRecord) this.copyAs("curl", formats.curl);
  }

  async edit() {
    const capture = this.capture;
    if (!capture || capture.isRecord) return;
    try {
      const data = await this.body_();
      let text = "", isText = true;
      try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(data);
      } catch {
        isText = false;
      }
      const lines = capture.request.client.headers.map((line) => line.name + ": " + line.value).join("\n");
      const whole = capture.request.client.content.kept === capture.request.client.content.size;
      const method = make("input", {
        name: "method",
        value: capture.method,
        required: true,
        size: 10,
        spellcheck: "false",
      });
      const url = make("input", { name: "url", value: capture.url, required: true, spellcheck: "false" });
      const headers = make("textarea", { name: "headers", rows: 10, value: lines, spellcheck: "false" });
      const body = make("textarea", {
        name: "body",
        rows: 8,
        value: text,
        spellcheck: "false",
        disabled: !isText || !whole,
      });
      dialog("Edit and send again", [
        make("div.line", field("Method", method), field("URL", url)),
        field(
          "Headers",
          headers,
          "A value that is masked is put back by the gateway, as long as scheme and host are the same.",
        ),
        field(
          "Body",
          body,
          isText
            ? whole ? null : "Only the beginning was kept: the body is sent as it was, if the gateway still has it."
            : "It is not text, and is sent as it was.",
        ),
      ], async () => {
        const change = {};
        if (method.value !== capture.method) change.method = method.value;
        if (url.value !== capture.url) change.url = url.value;
        if (headers.value !== lines) change.headers = readFields(headers.value);
        if (!body.disabled && body.value !== text) change.body = body.value;
        const answer = await post(`/v1/captures/${capture.id}/replay`, change);
        toast("sent as request " + answer.id);
        this.actions.again(String(answer.id));
      }, "Send");
    } catch (error) {
      toast(error.message);
    }
  }
}

export function readFields(text) {
  return text.split(/\r?\n/).filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`a header line is “Name: value”, not “${line}”`);
    return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
  });
}

/** A filter for requests like this one. */
function ruleFilter(capture) {
  try {
    const url = new URL(capture.url);
    return `~m ^${capture.method}$ & ~d ^${url.hostname.replaceAll(".", "\\.")}$ & ~u "${
      url.pathname.replaceAll(/[.*+?()[\]{}|^$\\]/g, "\\$&")
    }"`;
  } catch {
    return "";
  }
}

const fromRecord = (record) => ({
  ...record,
  isRecord: true,
  record,
  url: (record.tunnel ? "https://" : "http://") + (record.host ?? "") + (record.target === "-" ? "" : record.target),
  state: "ended",
  kind: "http",
  version: record.protocol,
  rules: [],
});

const summary = (capture) => make("p.summary", capture.method + " " + capture.url + " " + (capture.version ?? ""));

const tlsFacts = (tls) =>
  !tls ? [] : [
    ["TLS", [tls.version, tls.cipher, tls.group].filter(Boolean).join(", ")],
    ["ALPN", tls.alpn],
    ["name (SNI)", tls.name],
    ["session", tls.resumed ? "resumed" : null],
    ...certificateFacts("certificate", tls),
    ...tls.clientCertificate ? certificateFacts("certificate of the client", tls.clientCertificate) : [],
  ];

const certificateFacts = (
  name,
  shown,
) => [
  [name, shown.sha256 ? shown.subject || "without a subject" : null],
  ["issued by", shown.issuer],
  [
    "names",
    shown.names?.length ? shown.names.join(", ") + (shown.moreNames ? ` and ${shown.moreNames} more` : "") : null,
  ],
  ["valid", shown.notAfter ? `${fullTime(shown.notBefore)} to ${fullTime(shown.notAfter)}` : null],
  ["SHA-256", shown.sha256],
];

/** Which ware added, removed or rewrote a field: a name in lower case to the wares. */
function edits(record, half) {
  const found = new Map();
  for (const ware of record?.wares ?? []) {
    if ((ware.side === "request") !== (half === "request")) continue;
    for (const list of [ware.added, ware.removed, ware.rewritten]) {
      for (const name of list ?? []) {
        const key = name.toLowerCase();
        if (!found.has(key)) found.set(key, new Set());
        found.get(key).add(ware.ware);
      }
    }
  }
  return found;
}

/** Fields before and after the chain in one table, changes marked. */
function fieldTable(before, after, wares, beforeText, afterText) {
  const rows = [];
  const by = (name) => [...wares.get(name.toLowerCase()) ?? []].join(", ");
  const line = (mark, field, note) =>
    make(
      "tr" + (mark ? "." + mark : ""),
      make("td.mark", { "aria-label": mark ?? "" }, { added: "+", removed: "−" }[mark] ?? ""),
      make("th", { scope: "row" }, field.name),
      make(
        "td.value",
        isMasked(field.value) ? make("span.masked", { title: "masked before it was kept" }, field.value) : field.value,
      ),
      make("td.quiet", note),
    );
  if (before && after) {
    const left = after.headers.slice();
    for (const field of before.headers) {
      const place = left.findIndex((other) =>
        other.name.toLowerCase() === field.name.toLowerCase() && other.value === field.value
      );
      if (place >= 0) {
        left.splice(place, 1);
        rows.push(line(null, field, ""));
      } else rows.push(line("removed", field, by(field.name) || "gateway"));
    }
    for (const field of left) rows.push(line("added", field, by(field.name) || "gateway"));
  } else {
    for (const field of (before ?? after)?.headers ?? []) rows.push(line(null, field, before ? "" : by(field.name)));
  }
  for (const field of (after ?? before)?.trailers ?? []) rows.push(line(null, field, "trailer"));
  const note = before && after
    ? rows.some((row) => row.className) ? make("p.quiet.legend", "− ", beforeText, ", + ", afterText) : null
    : make(
      "p.quiet.legend",
      before
        ? beforeText === "the client sent" ? "It did not go to an origin server." : "It did not reach the client."
        : "The gateway made it: no origin server sent it.",
    );
  return make(
    "div",
    note,
    make(
      "div.scroll",
      make("table.fields", make("tbody", rows.length ? rows : make("tr", make("td.quiet", "no fields")))),
    ),
  );
}

function messageRow(message, place) {
  const isSent = message.type === "send" || message.direction === "send";
  let text = message.encoding === "base64" ? "binary, " + bytes(message.size) : message.data ?? "";
  if (message.type === "grpc" && message.fields) {
    text = message.fields.map((field) =>
      field.number + ": " +
      (Array.isArray(field.value) ? JSON.stringify(field.value) : field.value.base64 ?? field.value)
    ).join("  ");
  }
  const head = [message.event, message.id && "id " + message.id].filter(Boolean).join(", ");
  const short = text.length > 300 ? text.slice(0, 300) + " …" : text;
  const open = () =>
    dialog(
      "Message " + (place + 1),
      make("pre.message", message.encoding === "base64" ? hexOf(message.data) : prettyJson(text).slice(0, 400000)),
    );
  return make(
    "tr.message",
    {
      onclick: open,
      tabindex: 0,
      onkeydown: (event) => {
        if (event.key === "Enter") {
          event.stopPropagation();
          open();
        }
      },
    },
    make("td.quiet", clock(message.time)),
    make("td." + (isSent ? "up" : "down"), { title: isSent ? "from the client" : "to the client" }, isSent ? "↑" : "↓"),
    make("td.number", bytes(message.size)),
    make("td.value", head ? make("b", head + "  ") : null, short),
  );
}

function hexOf(base64) {
  const text = atob(base64);
  const lines = [];
  for (let index = 0; index < text.length && index < 65536; index += 16) {
    const part = [...text.slice(index, index + 16)];
    lines.push(
      index.toString(16).padStart(8, "0") + "  " + part.map((c) =>
        c.charCodeAt(0).toString(16).padStart(2, "0")
      ).join(" ").padEnd(48) + " " + part.map((c) => c >= " " && c <= "~" ? c : ".").join(""),
    );
  }
  return lines.join("\n");
}
