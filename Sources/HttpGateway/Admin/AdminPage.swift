import HttpWare

extension AdminEndpoint {
    /// The inspector: a page that shows the data of the other endpoints. It consists of constants, contacts no other
    /// server, and inserts data as text only.
    static func page() -> [AdminEndpoint] {
        func file(_ path: String, _ type: StaticString, _ text: String) -> AdminEndpoint {
            let content = Array(text.utf8)
            let line = FieldLine(literal: .contentType, type)
            return AdminEndpoint(path: path, access: .local) { _, _ in
                var response = HttpResponse(.ok, content: .bytes(content))
                response.fields.append(line)
                return .abort(with: response)
            }
        }
        return [
            file("/", "text/html; charset=utf-8", AdminPage.html),
            file("/inspector.js", "text/javascript; charset=utf-8", AdminPage.script),
            file("/inspector.css", "text/css; charset=utf-8", AdminPage.style),
        ]
    }
}

/// The files of the inspector page.
enum AdminPage {
    static let html = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>httpware</title>
        <link rel="stylesheet" href="/inspector.css">
        <script src="/inspector.js" defer></script>
        </head>
        <body>
        <header>
        <h1>httpware</h1>
        <nav><button data-view="requests">Requests</button><button data-view="routes">Routes</button><button data-view="config">Configuration</button></nav>
        <span id="state" role="status"></span>
        </header>
        <form id="token" hidden><label>Token <input type="password" autocomplete="off"></label><button>Send</button></form>
        <main>
        <section id="requests"><p><label>filter <input id="filter" size="36" placeholder="method, target, status, route"></label> <label><input type="checkbox" id="hold"> pause</label></p>
        <table><thead><tr><th>time</th><th>status</th><th>method</th><th>target</th><th>route</th><th>cache</th><th class="number">ms</th><th class="number">bytes</th></tr></thead><tbody id="rows"></tbody></table></section>
        <section id="routes" hidden></section>
        <section id="config" hidden></section>
        </main>
        <aside id="detail" hidden></aside>
        </body>
        </html>

        """

    static let style = """
        :root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif; }
        body { margin: 0; }
        header { display: flex; gap: 1em; align-items: baseline; padding: .5em 1em; border-bottom: 1px solid #8884; position: sticky; top: 0; background: Canvas; }
        h1 { font-size: 1.1em; margin: 0; }
        #state { margin-left: auto; opacity: .7; }
        button { font: inherit; border: 0; background: none; padding: .2em .6em; border-radius: .3em; cursor: pointer; color: inherit; }
        button[aria-current] { background: #8883; }
        h2 { font-size: 1em; overflow-wrap: anywhere; }
        form, section { padding: .5em 1em; }
        label { margin-right: 1em; }
        table { border-collapse: collapse; }
        th { text-align: left; font-weight: 600; }
        th, td { padding: .15em .6em; border-bottom: 1px solid #8882; vertical-align: top; }
        #requests table { width: 100%; table-layout: fixed; }
        #requests :is(td, th) { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
        #requests :is(th:nth-child(1), th:nth-child(5)) { width: 9em; }
        #requests :is(th:nth-child(2), th:nth-child(3)) { width: 4.5em; }
        #requests :is(th:nth-child(6), th:nth-child(7), th:nth-child(8)) { width: 6em; }
        #rows tr { cursor: pointer; }
        #rows tr:is(:hover, :focus-visible) { background: #8882; outline: 0; }
        td, code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
        .number { text-align: right; white-space: nowrap; }
        .c4 { color: #b26a00; } .c5, .c0 { color: #c62828; } .hit { color: #2e7d32; } .quiet { opacity: .65; }
        aside { box-sizing: border-box; position: fixed; right: 0; top: 0; bottom: 0; width: min(48em, 92vw); overflow: auto; background: Canvas; border-left: 1px solid #8886; padding: 1em; box-shadow: -4px 0 16px #0003; }
        aside > button { float: right; }
        svg { width: 100%; display: block; margin-bottom: 1em; }
        svg text { font: 11px ui-monospace, monospace; fill: CanvasText; }
        rect.request { fill: #4a7dd8; } rect.responseHalf { fill: #8a5cc8; } rect.postware { fill: #3c9a72; } rect.phase { fill: #c98b2b; } rect.backoff { fill: #8888; } rect.fault { fill: #c62828; }

        """

    static let script = #"""
        "use strict";
        const most = 500, shown = new Map();
        let token = "", view = "requests", stream = null;
        const at = id => document.getElementById(id);
        // Whatever comes from outside becomes text, never markup.
        const make = (name, text, cls) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text; if (cls) e.className = cls; return e; };
        const ask = (path, more) => fetch(path, { headers: token ? { Authorization: "Bearer " + token } : {}, cache: "no-store", ...more });
        const say = text => { at("state").textContent = text; };

        async function opened(path, more) {
          const answer = await ask(path, more);
          if (answer.status === 401) { at("token").hidden = false; throw new Error("a token is required"); }
          if (!answer.ok) throw new Error(path + ": " + answer.status);
          return answer;
        }
        const json = async path => (await opened(path)).json();

        // Requests

        function matches(r) {
          const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
          const text = [r.method, r.host, r.target, r.status, r.route, r.service, r.responder, r.cache, r.fault].join(" ").toLowerCase();
          return words.every(word => text.includes(word));
        }

        const isHit = r => ["hit", "stale", "collapsed", "validated"].includes(r.cache);

        function row(r) {
          const line = make("tr");
          line.append(make("td", r.time.slice(11, 23)), make("td", r.status, "c" + String(r.status)[0]), make("td", r.method),
            make("td", (r.host || "") + r.target), make("td", r.route || r.responder), make("td", r.cache || "", isHit(r) ? "hit" : "quiet"), make("td", r.duration.toFixed(1), "number"), make("td", r.responseBytes, "number"));
          line.hidden = !matches(r);
          line.tabIndex = 0;
          line.addEventListener("click", () => detail(r));
          line.addEventListener("keydown", event => { if (event.key === "Enter") detail(r); });
          return line;
        }

        function add(r) {
          if (shown.has(r.id)) return;
          const line = row(r);
          shown.set(r.id, { r, line });
          at("rows").prepend(line);
          while (shown.size > most) { const [id, old] = shown.entries().next().value; old.line.remove(); shown.delete(id); }
        }

        const svg = (name, attributes, text) => {
          const e = document.createElementNS("http://www.w3.org/2000/svg", name);
          for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
          if (text !== undefined) e.textContent = text;
          return e;
        };

        // Which attempt a phase belongs to and where that went, as far as there were several, and what ended it.
        function phaseText(p, r) {
          const several = r.phases.some(other => other.attempt !== p.attempt), places = new Set(r.phases.map(other => other.endpoint).filter(Boolean));
          const words = [several && "attempt " + p.attempt, places.size > 1 && p.endpoint, p.fault].filter(Boolean);
          return p.phase + (words.length ? " (" + words.join(", ") + ")" : "");
        }

        function waterfall(r) {
          const bars = r.wares.map(w => ({ start: w.start, duration: w.duration, cls: w.side, text: w.ware + ": " + w.text, more: w }))
            .concat(r.phases.map(p => ({ start: p.start, duration: p.duration, cls: p.fault ? "fault" : p.phase === "backoff" ? "backoff" : "phase", text: phaseText(p, r) })))
            .sort((a, b) => a.start - b.start);
          const height = 34, scale = 100 / Math.max(r.duration, 0.001);
          const picture = svg("svg", { height: bars.length * height });
          bars.forEach((bar, index) => {
            const y = index * height;
            picture.append(svg("rect", { class: bar.cls, x: Math.min(99.6, bar.start * scale) + "%", y: y + 16, height: 10, width: Math.max(0.4, bar.duration * scale) + "%" }));
            let text = bar.text + "  " + bar.duration.toFixed(3) + " ms";
            for (const key of ["added", "removed", "rewritten"]) if (bar.more && bar.more[key]) text += "  " + key + " " + bar.more[key].join(", ");
            picture.append(svg("text", { x: 0, y: y + 12 }, text));
          });
          return picture;
        }

        const tunnelText = t => t.host + ":" + t.port + (t.address ? " at " + t.address : "") + (t.principal ? ", opened by " + t.principal : "");

        function detail(r) {
          const box = at("detail");
          box.replaceChildren();
          const close = make("button", "close");
          close.addEventListener("click", () => { box.hidden = true; });
          const facts = make("table");
          for (const [key, value] of Object.entries(r)) {
            if (key === "phases" || key === "wares") continue;
            const line = make("tr");
            line.append(make("th", key), make("td", key === "tunnel" ? tunnelText(value) : value));
            facts.append(line);
          }
          box.append(close, make("h2", r.method + " " + r.target), waterfall(r), facts);
          box.hidden = false;
        }

        // Events come by fetch, for an EventSource cannot show the token.
        async function follow() {
          if (stream) stream.abort();
          const own = stream = new AbortController();
          try {
            // The stream first: what ends while the list is read is in one of them, or in both.
            const answer = await opened("/v1/events", { signal: own.signal });
            for (const r of (await json("/v1/requests?limit=200")).reverse()) add(r);
            say("live");
            const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
            let rest = "";
            for (;;) {
              const { done, value } = await reader.read();
              if (done) break;
              rest += value;
              const events = rest.split("\n\n");
              rest = events.pop();
              for (const event of events) {
                if (event.startsWith("event: dropped")) { say("live, some were dropped"); continue; }
                if (event.startsWith("data: ") && !at("hold").checked) add(JSON.parse(event.slice(6)));
              }
            }
            throw new Error("the gateway closed the stream");
          } catch (error) {
            if (own.signal.aborted) return;
            say(error.message);
            setTimeout(() => { if (stream === own && at("token").hidden) follow(); }, 2000);
          }
        }

        // Routes and configuration

        async function showRoutes() {
          const box = at("routes");
          const { listeners } = await json("/v1/routes");
          box.replaceChildren();
          for (const listener of listeners) {
            box.append(make("h2", `${listener.name} (${listener.mode}) ${listener.address}`));
            const table = make("table"), head = make("tr");
            head.append(...["route", "matches", "service", "wares; ? on a condition", "written at"].map(name => make("th", name)));
            table.append(head);
            for (const route of listener.routes) {
              const line = make("tr");
              const wares = route.chain.middlewares.concat(route.chain.postwares).map(w => w.label + (w.conditional ? "?" : "")).join(" → ");
              line.append(make("td", route.name), make("td", route.match.map(m => m.key + " " + m.value).join(", ") || "everything"),
                make("td", route.service || "none"), make("td", wares), make("td", route.at, "quiet"));
              table.append(line);
            }
            box.append(table);
          }
        }

        async function showConfig() {
          const box = at("config");
          const { values, lastReload } = await json("/v1/config");
          box.replaceChildren(make("p", (lastReload.success ? "loaded " : "refused ") + lastReload.time, "quiet"));
          const table = make("table");
          for (const value of values) {
            const line = make("tr");
            line.append(make("td", value.path), make("td", value.value, value.secret ? "quiet" : ""), make("td", value.at, "quiet"));
            table.append(line);
          }
          box.append(table);
        }

        function show(name) {
          view = name;
          for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
          for (const button of document.querySelectorAll("nav button")) button.toggleAttribute("aria-current", button.dataset.view === name);
          if (name === "routes") showRoutes().catch(error => say(error.message));
          if (name === "config") showConfig().catch(error => say(error.message));
        }

        for (const button of document.querySelectorAll("nav button")) button.addEventListener("click", () => show(button.dataset.view));
        at("hold").addEventListener("change", event => { if (!event.target.checked) follow(); });
        at("filter").addEventListener("input", () => { for (const { r, line } of shown.values()) line.hidden = !matches(r); });
        at("token").addEventListener("submit", event => {
          event.preventDefault();
          token = event.target.querySelector("input").value;
          event.target.hidden = true;
          show(view);
          follow();
        });
        document.addEventListener("keydown", event => { if (event.key === "Escape") at("detail").hidden = true; });
        show("requests");
        follow();

        """#
}
